//! `portolan status`

mod cluster;
mod elastic;
mod fleet;
mod peers;
mod workload;

use super::{doctor, leader};
use crate::cli::{DataFormat, StatusArgs};
use crate::failure::{Failure, NotShown};
use crate::kind::Kind;
use crate::style::mark;
use crate::{clean, connection, output};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Something is not Ready.
const NOT_READY: u8 = 3;

pub(super) fn run(args: &StatusArgs, verbose: bool) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ready = runtime.block_on(Box::pin(status(args, verbose)))?;
    Ok(if ready { ExitCode::SUCCESS } else { ExitCode::from(NOT_READY) })
}

/// What a status says: for people, for programs, and whether all is well.
struct Report {
    ready: bool,
    text: String,
    data: Value,
    /// What the user may not read.
    not_shown: NotShown,
}

/// How long the hub, and each member, may take to be checked.
const CHECKED_WITHIN: Duration = Duration::from_secs(30);

/// The checks of the hub and its members, or of the one member that was asked for.
async fn checks(args: &StatusArgs) -> Result<doctor::Report, Failure> {
    let names: Vec<String> = one_member(args)?.into_iter().collect();
    let request = doctor::Request {
        cluster: &args.cluster,
        lease: &args.lease,
        names: &names,
        contexts: &[],
        timeout: CHECKED_WITHIN,
    };
    doctor::examine(&request).await
}

/// The member that was asked for, if it is one.
fn one_member(args: &StatusArgs) -> Result<Option<String>, Failure> {
    if args.object.is_empty() {
        return Ok(None);
    }
    let (kind, name) = Kind::parse_one(&args.object)?;
    Ok(Some(name).filter(|_| kind == Kind::Cluster))
}

/// Prints the status, and answers whether all is well.
async fn status(args: &StatusArgs, verbose: bool) -> Result<bool, Failure> {
    let checks = if verbose { Some(checks(args).await?) } else { None };
    let shown = Box::pin(show(args, checks.as_ref())).await;
    if shown.is_err() {
        // Which hop fails is what somebody wants to know who asks for more.
        checks.iter().for_each(|checks| anstream::eprint!("{}\n", clean::styled(&checks.text())));
    }
    shown
}

async fn show(args: &StatusArgs, checks: Option<&doctor::Report>) -> Result<bool, Failure> {
    let (hub, _) = connection::answering(&args.cluster).await?;
    let mut report = if args.object.is_empty() {
        fleet::report(&hub, args.namespace.as_deref()).await?
    } else {
        let (kind, name) = Kind::parse_one(&args.object)?;
        let namespace = kind.namespace(&hub, args.namespace.as_deref());
        let object = kind.get(&hub, namespace.as_deref(), &name).await?;
        match kind {
            Kind::Cluster => cluster::report(&hub, object).await?,
            _ if kind.is_workload() => workload::report(&hub, kind, object).await?,
            _ => elastic::report(&hub, kind, object).await?,
        }
    };
    let problem = report.not_shown.unless_forbidden(leader::problem(&hub, &args.lease).await)?.flatten();
    if let Some(problem) = &problem {
        report.ready = false;
        report.data["ready"] = false.into();
        report.text = format!("{} {problem}\n\n{}", mark(false), report.text);
    }
    report.data["controller"] = json!({"ready": problem.is_none(), "message": problem});
    report.data["notShown"] = json!(report.not_shown.reasons);
    if let Some(checks) = checks {
        let only = one_member(args)?;
        let is_shown = args.object.is_empty() || only.is_some();
        if is_shown {
            let peers = peers::report(&hub, only.as_deref(), checks, &mut report.not_shown).await?;
            report.text.push_str(&peers.text);
            report.data["controller"]["checks"] = json!(peers.controller);
            report.data["peers"] = json!(peers.data);
        }
        report.ready &= !checks.has_problem();
        report.data["ready"] = report.ready.into();
        report.data["doctor"] = checks.data();
        report.text = format!("{}\nChecks\n{}", report.text, checks.text());
    }
    match args.output {
        None => anstream::print!("{}", clean::styled(&report.text)),
        Some(DataFormat::Json) => output::json(&[report.data], false)?,
        Some(DataFormat::Yaml) => output::yaml(&[report.data])?,
    }
    report.not_shown.report();
    Ok(report.ready)
}

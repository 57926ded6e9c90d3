//! `portolan status`

mod cluster;
mod elastic;
mod fleet;
mod workload;

use super::leader;
use crate::cli::{DataFormat, StatusArgs};
use crate::failure::{Failure, NotShown};
use crate::kind::Kind;
use crate::style::mark;
use crate::{clean, connection, output};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Something is not Ready.
const NOT_READY: u8 = 3;

pub(super) fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ready = runtime.block_on(Box::pin(status(args)))?;
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

/// Prints the status, and answers whether all is well.
async fn status(args: &StatusArgs) -> Result<bool, Failure> {
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
    match args.output {
        None => anstream::print!("{}", clean::styled(&report.text)),
        Some(DataFormat::Json) => output::json(&[report.data], false)?,
        Some(DataFormat::Yaml) => output::yaml(&[report.data])?,
    }
    report.not_shown.report();
    Ok(report.ready)
}

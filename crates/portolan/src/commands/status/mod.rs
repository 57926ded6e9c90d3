//! `portolan status`

mod fleet;
mod workload;

use crate::cli::StatusArgs;
use crate::connection;
use crate::failure::Failure;
use crate::kind::Kind;
use kube::api::ListParams;
use std::process::ExitCode;

/// Something is not Ready.
const NOT_READY: u8 = 3;

pub(super) fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ready = runtime.block_on(Box::pin(status(args)))?;
    Ok(if ready { ExitCode::SUCCESS } else { ExitCode::from(NOT_READY) })
}

/// Tells, and answers whether all is well.
async fn status(args: &StatusArgs) -> Result<bool, Failure> {
    let (hub, _) = connection::answering(&args.cluster).await?;
    let Some(named) = &args.workload else { return fleet::show(&hub, args.namespace.as_deref()).await };
    let (kind, names) = Kind::parse(named)?;
    let (Some(name), true) = (names.first(), kind.namespaced()) else {
        return Err(Failure::input(format!("{named:?} is not one workload"))
            .hint("give KIND/NAME, such as mcd/web, or nothing for the whole fleet"));
    };
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.default_namespace().to_owned());
    let only = ListParams::default().fields(&format!("metadata.name={name}"));
    let found = kind.list(&hub, Some(&namespace), &only).await?;
    match found.first() {
        Some(object) => workload::show(&hub, kind, object).await,
        None => Err(Failure::other(format!("{} {name:?} is not there", kind.name()))
            .hint(format!("it was looked for in namespace {namespace}"))),
    }
}

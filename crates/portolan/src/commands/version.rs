//! `portolan version`

use super::leader;
use crate::cli::{DataFormat, VersionArgs};
use crate::failure::Failure;
use crate::human::age;
use crate::{clean, connection, output};
use jiff::Timestamp;
use kube::Client;
use portolan_api::API_VERSION;
use portolan_runtime::{call, chain};
use serde::Serialize;

/// The annotation of the controller's Lease that holds the version of the leading controller.
pub(super) const VERSION_ANNOTATION: &str = "portolan.dev/version";

/// The versions of all parts.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hub: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kinds: Option<Vec<String>>,
}

pub(super) fn run(args: &VersionArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(version(args)))
}

async fn version(args: &VersionArgs) -> Result<(), Failure> {
    let client = env!("CARGO_PKG_VERSION").to_owned();
    let mut versions = Versions { client, ..Versions::default() };
    let asked = if args.client { Ok(()) } else { ask(args, &mut versions).await };
    match args.output {
        Some(format) => {
            let value = serde_json::to_value(&versions).map_err(Failure::other)?;
            match format {
                DataFormat::Json => output::json(&[value], false)?,
                DataFormat::Yaml => output::yaml(&[value])?,
            }
        }
        None => {
            let kinds = versions.kinds.map(|kinds| match kinds.as_slice() {
                [] => format!("none of {API_VERSION}: `portolan peer` installs them"),
                all => format!("{API_VERSION}: {}", all.join(", ")),
            });
            let lines = [
                ("client", Some(versions.client)),
                ("hub", versions.hub.map(|version| format!("Kubernetes {version}"))),
                ("controller", versions.controller),
                ("kinds", kinds),
            ];
            let lines = lines.into_iter().filter_map(|(name, text)| text.map(|text| (name, text)));
            let text: String =
                lines.map(|(name, text)| format!("{name:<11} {}\n", clean::line(&text))).collect();
            output::data(&text)?;
        }
    }
    asked
}

async fn ask(args: &VersionArgs, versions: &mut Versions) -> Result<(), Failure> {
    let (hub, version) = connection::answering(&args.cluster).await?;
    versions.hub = Some(version);
    versions.controller = Some(controller(&hub, args).await);
    let served =
        call(format!("list the kinds of {API_VERSION}"), hub.list_api_group_resources(API_VERSION)).await;
    versions.kinds = Some(match served {
        Ok(list) => {
            let whole = list.resources.into_iter().filter(|each| !each.name.contains('/'));
            whole.map(|each| each.kind).collect()
        }
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(Failure::other(chain(&error))),
    });
    Ok(())
}

/// What the Lease of the controllers says about the one that leads.
async fn controller(hub: &Client, args: &VersionArgs) -> String {
    let lease = match leader::lease(hub, &args.lease).await {
        Ok(Some(lease)) => lease,
        Ok(None) => return format!("none has led yet: there is no Lease {}", leader::place(&args.lease)),
        Err(error) => return format!("unknown: {}", chain(&error)),
    };
    let annotations = lease.metadata.annotations.unwrap_or_default();
    let version = annotations.get(VERSION_ANNOTATION).map_or("unknown version", String::as_str);
    let spec = lease.spec.unwrap_or_default();
    let renewed = spec.renew_time.map(|time| time.0);
    let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
    match holder {
        Some(holder) => {
            format!("{version}, leader {holder}, renewed {} ago", age(renewed, Timestamp::now()))
        }
        None => format!("none leads; the last one was {version}"),
    }
}

//! `portolan install` and `portolan upgrade`

mod apply;
pub(super) mod cluster;
mod desired;
mod wait;

use crate::cli::{InstallArgs, PeerFormat, UpgradeArgs};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{connection, output};
use apply::Change;
use kube::Client;
use portolan_install::{Phase, VERSION, check_skew, merge, parse, render};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) use wait::{identity, pods};

pub(super) fn run(args: &InstallArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(install(args)))
}

pub(super) fn run_upgrade(args: &UpgradeArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(upgrade(args)))
}

/// How to go about it.
struct Manner {
    dry_run: bool,
    output: Option<PeerFormat>,
    timeout: Duration,
    /// What is said at the end.
    done: &'static str,
}

async fn install(args: &InstallArgs) -> Result<(), Failure> {
    let given = desired::given(&args.values)?;
    parse(&given).map_err(|error| desired::refused(&error))?;
    desired::warn_of_unneeded(&args.cloud);
    let (client, version) = connection::answering(&args.cluster).await?;
    let told = desired::told(&client, &version, args).await?;
    let record = cluster::record(&client).await?;
    let recorded = record.as_ref().map_or_else(|| json!({}), |record| record.values.clone());
    let values = merge(merge(told, &recorded), &given);
    if args.only_output_values {
        return write_values(args, &values);
    }
    if let Some(record) = record.as_ref().filter(|record| record.version != VERSION) {
        check_skew(&record.version, VERSION).map_err(Failure::other)?;
        return Err(Failure::other(format!(
            "Portolan {} is installed here, and this program is {VERSION}",
            record.version
        ))
        .hint("`portolan upgrade` is the command for it"));
    }
    let manner =
        Manner { dry_run: args.dry_run, output: args.output, timeout: args.timeout.0, done: "is installed" };
    change(&client, record.as_ref(), &values, &manner).await
}

async fn upgrade(args: &UpgradeArgs) -> Result<(), Failure> {
    let given = desired::given(&args.values)?;
    let (client, _) = connection::answering(&args.cluster).await?;
    let record = cluster::record(&client).await?.ok_or_else(|| {
        Failure::other("no installation of Portolan is on record in this cluster")
            .hint("`portolan install` installs it, and takes over what was applied by kubectl")
            .hint("`helm upgrade` upgrades what Helm installed")
    })?;
    check_skew(&record.version, VERSION).map_err(|error| {
        Failure::other(error).hint("upgrade by the program of each minor version in between")
    })?;
    if record.phase == Phase::Changing {
        anstream::eprintln!("an earlier change was interrupted: this one goes on from there");
    }
    let recorded =
        if args.reset_values { json!({"cluster": record.values["cluster"]}) } else { record.values.clone() };
    let values = merge(recorded, &given);
    let manner = Manner {
        dry_run: args.dry_run,
        output: args.output,
        timeout: args.timeout.0,
        done: "is installed and current",
    };
    change(&client, Some(&record), &values, &manner).await
}

async fn change(
    client: &Client,
    record: Option<&portolan_install::Record>,
    overrides: &Value,
    manner: &Manner,
) -> Result<(), Failure> {
    let values = parse(overrides).map_err(|error| desired::refused(&error))?;
    let rendered = render(&values).map_err(Failure::other)?;
    let change = Change::prepare(client, record, overrides, rendered).await?;
    cluster::refuse_helm(change.existing(), "upgrade")?;
    let wanted = change.wanted();
    let unserved = cluster::unserved(client, &wanted).await?;
    if manner.dry_run {
        for kind in &unserved {
            anstream::eprintln!("\u{1b}[1mwarning\u{1b}[0m: the cluster does not serve {kind}");
        }
        for line in change.preview().await? {
            anstream::eprintln!("{}", crate::clean::line(&line));
        }
        return output::objects(Some(manner.output.unwrap_or(PeerFormat::Yaml)), &wanted);
    }
    if !unserved.is_empty() {
        return Err(Failure::other(format!("the cluster does not serve {}", unserved.join(" and ")))
            .hint("install the Prometheus Operator first, which defines them")
            .hint("or leave them out: --set monitoring.enabled=false"));
    }
    change.refuse_missing_rights().await?;
    let progress = Progress::start();
    change.run(manner.timeout, &progress).await?;
    let name = &values.cluster.name;
    progress.done(&format!("Portolan {VERSION} {} in cluster {name}", manner.done));
    output::objects(manner.output, &wanted)
}

/// Writes the values that differ from those of the chart.
fn write_values(args: &InstallArgs, values: &Value) -> Result<(), Failure> {
    parse(values).map_err(|error| desired::refused(&error))?;
    let text = serde_saphyr::to_string(values).map_err(Failure::other)?;
    let path = &args.dump_values_path;
    std::fs::write(path, text)
        .map_err(|error| Failure::other(format!("cannot write {}: {error}", path.display())))?;
    anstream::eprintln!("the values are in {}; nothing was installed", path.display());
    Ok(())
}

//! The fleet at a glance.

use crate::commands::get::{health, summary};
use crate::failure::Failure;
use crate::human::share;
use crate::kind::Kind;
use crate::style::{mark, state};
use anstream::println;
use kube::Client;
use kube::api::ListParams;
use portolan_api::ForeignCluster;
use serde_json::Value;

/// Tells how the members and the workloads fare; answers whether all is well.
pub(super) async fn show(hub: &Client, namespace: Option<&str>) -> Result<bool, Failure> {
    let all = ListParams::default();
    let clusters = Kind::Cluster.list(hub, None, &all).await?;
    let mut well = true;
    let mut ready = 0;
    let mut lines = Vec::new();
    for object in &clusters {
        let cluster: ForeignCluster = serde_json::from_value(object.clone()).map_err(Failure::other)?;
        let (word, message) = health(&cluster);
        let fine = word.starts_with("True");
        ready += usize::from(fine);
        well &= fine;
        let status = cluster.status.clone().unwrap_or_default();
        let room = ["cpu", "memory"]
            .map(|name| format!("{name} {}", share(name, &status.allocated, &status.capacity)));
        let pending = status.pending_pods.filter(|count| *count > 0);
        let pending = pending.map(|count| format!(", {count} pods wait for a node")).unwrap_or_default();
        let told = if fine { format!("{}{pending}", room.join(", ")) } else { message };
        lines.push((fine, cluster.metadata.name.unwrap_or_default(), told));
    }
    println!("{} members, {ready} ready", clusters.len());
    tell(&lines);
    for kind in Kind::WORKLOADS {
        let objects = kind.list(hub, namespace, &all).await?;
        if objects.is_empty() {
            continue;
        }
        let lines: Vec<_> = objects.iter().map(|object| line(kind, object)).collect();
        let ready = lines.iter().filter(|(fine, ..)| *fine).count();
        well &= ready == objects.len();
        println!("\n{} {}, {ready} ready", objects.len(), kind.plural());
        tell(&lines);
    }
    Ok(well)
}

fn line(kind: Kind, object: &Value) -> (bool, String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (fine, message) = state(object);
    let (ready, pending) = summary(kind, object);
    let mut told = ready;
    if pending > 0 {
        told.push_str(&format!(", {pending} pending"));
    }
    if !fine && !message.is_empty() {
        told.push_str(&format!(": {message}"));
    }
    (fine, format!("{}/{}", text("namespace"), text("name")), told)
}

fn tell(lines: &[(bool, String, String)]) {
    let width = lines.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
    for (fine, name, told) in lines {
        println!("  {} {name:width$}  {told}", mark(*fine));
    }
}

//! The fleet at a glance.

use super::Report;
use crate::clean;
use crate::commands::get::{health, is_orphaned, marks, offer_lines, summary};
use crate::failure::{Failure, NotShown, RIGHTS};
use crate::human::share;
use crate::kind::Kind;
use crate::style::{mark, state};
use kube::Client;
use kube::api::ListParams;
use portolan_api::ForeignCluster;
use serde_json::{Value, json};

/// One member, workload or other object: whether it is well, its name, and what is to be said.
type Line = (bool, String, String);

/// The state of the members and of the workloads.
pub(super) async fn report(hub: &Client, namespace: Option<&str>) -> Result<Report, Failure> {
    let all = ListParams::default();
    let mut not_shown = NotShown::default();
    let members = not_shown.unless_forbidden(Kind::Cluster.list(hub, None, &all).await)?;
    let may_list_members = members.is_some();
    let (mut lines, mut consuming) = (Vec::new(), Vec::new());
    for object in members.unwrap_or_default() {
        let cluster: ForeignCluster =
            serde_json::from_value(clean::object(object)).map_err(Failure::other)?;
        let listed = if consumes_only(&cluster) { &mut consuming } else { &mut lines };
        listed.push(member(&cluster));
    }
    let count = |lines: &[Line]| lines.iter().filter(|(fine, ..)| *fine).count();
    let mut well = lines.iter().chain(&consuming).all(|(fine, ..)| *fine);
    let mut text = String::new();
    if may_list_members {
        let all = Kind::Cluster.count(lines.len());
        text.push_str(&format!("{all}, {} ready\n{}", count(&lines), listed(&lines)));
    }
    if may_list_members && lines.is_empty() {
        text.push_str("  `portolan peer` adds a cluster to the fleet\n");
    }
    let entry = |(ready, name, message): &Line| json!({"name": name, "ready": ready, "message": message});
    let clusters: Vec<Value> = lines.iter().map(entry).collect();
    let consumers: Vec<Value> = consuming.iter().map(entry).collect();
    if !consuming.is_empty() {
        let plural = if consuming.len() == 1 { "" } else { "s" };
        let all = format!("{} consumer{plural}, {} ready", consuming.len(), count(&consuming));
        text.push_str(&format!("\n{all}\n{}", listed(&consuming)));
    }
    let mut workloads = Vec::new();
    for kind in Kind::WORKLOADS {
        let objects = not_shown.unless_forbidden(kind.list(hub, namespace, &all).await)?;
        let objects = objects.unwrap_or_default();
        if objects.is_empty() {
            continue;
        }
        let lines: Vec<_> = objects.into_iter().map(|object| line(kind, &clean::object(object))).collect();
        well &= count(&lines) == lines.len();
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!(
            "{gap}{}, {} ready\n{}",
            kind.count(lines.len()),
            count(&lines),
            listed(&lines)
        ));
        workloads.extend(lines.iter().map(|line| named(kind, line)));
    }
    if not_shown.reasons.len() == 1 + Kind::WORKLOADS.len() {
        let failure = Failure::other(not_shown.reasons.join("\n")).hint(RIGHTS);
        return Err(match namespace {
            Some(_) => failure,
            None => failure.hint("-n NAMESPACE shows the workloads of one namespace"),
        });
    }
    let mut data =
        json!({"ready": well, "clusters": clusters, "consumers": consumers, "workloads": workloads});
    for kind in Kind::ELASTIC {
        let lines = elastic(hub, kind, namespace, &mut not_shown).await?;
        let not_ready: Vec<Line> = lines.iter().filter(|(fine, ..)| !*fine).cloned().collect();
        if !not_ready.is_empty() {
            data["ready"] = false.into();
            well = false;
            let gap = if text.is_empty() { "" } else { "\n" };
            let all = kind.count(lines.len());
            text.push_str(&format!("{gap}{all}, {} ready\n{}", count(&lines), listed(&not_ready)));
        }
        data[format!("{}s", kind.name())] = lines.iter().map(|line| named(kind, line)).collect();
    }
    Ok(Report { ready: well, text, data, not_shown })
}

/// The objects of a kind that is mentioned where one of them is not Ready.
async fn elastic(
    hub: &Client,
    kind: Kind,
    namespace: Option<&str>,
    not_shown: &mut NotShown,
) -> Result<Vec<Line>, Failure> {
    let place = namespace.filter(|_| kind.namespaced());
    let objects = match kind.list(hub, place, &ListParams::default()).await {
        // The definitions of a hub may be older than this program.
        Err(failure) if failure.is_not_found() => return Ok(Vec::new()),
        // No role for developers lists CloudProvisioners: the hint to ask for one would not help.
        Err(failure) if failure.is_forbidden() && kind == Kind::Provisioner => return Ok(Vec::new()),
        objects => not_shown.unless_forbidden(objects)?.unwrap_or_default(),
    };
    let line = |object: Value| {
        let object = clean::object(object);
        let (fine, message) = state(&object);
        (fine, place_of(&object), message)
    };
    Ok(objects.into_iter().map(line).collect())
}

/// One object for programs.
fn named(kind: Kind, (ready, name, message): &Line) -> Value {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    json!({
        "kind": kind.name(), "namespace": namespace, "name": name, "ready": ready, "message": message,
    })
}

/// The name of an object, with its namespace if it has one.
fn place_of(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let namespace = text("namespace");
    if namespace.is_empty() { text("name").to_owned() } else { format!("{namespace}/{}", text("name")) }
}

/// Whether a cluster is no part of the fleet: it consumes from this one, and this one does not use it.
fn consumes_only(cluster: &ForeignCluster) -> bool {
    cluster.spec.incoming.is_some() && cluster.spec.outgoing.is_none() && !cluster.spec.is_member()
}

fn member(cluster: &ForeignCluster) -> Line {
    let (word, message) = health(cluster);
    let fine = word.starts_with("True");
    let status = cluster.status.clone().unwrap_or_default();
    let room =
        ["cpu", "memory"].map(|name| format!("{name} {}", share(name, &status.allocated, &status.capacity)));
    let pending = match status.pending_pods.unwrap_or(0) {
        0 => String::new(),
        1 => ", 1 pod waits for a node".to_owned(),
        count => format!(", {count} pods wait for a node"),
    };
    let mut said = match fine {
        false => message,
        true if cluster.spec.is_member() => format!("{}{pending}", room.join(", ")),
        true => offer_lines(cluster).join("; "),
    };
    for mark in marks(cluster) {
        said.push_str(&format!(", {}", mark.to_lowercase()));
    }
    if is_orphaned(cluster) {
        said.push_str(": `portolan adopt --list` names them");
    }
    (fine, cluster.metadata.name.clone().unwrap_or_default(), said)
}

fn line(kind: Kind, object: &Value) -> Line {
    let (fine, message) = state(object);
    let (ready, pending) = summary(kind, object);
    let mut told = ready;
    if pending > 0 {
        told.push_str(&format!(", {pending} pending"));
    }
    if !fine && !message.is_empty() {
        told.push_str(&format!(": {message}"));
    }
    (fine, place_of(object), told)
}

fn listed(lines: &[Line]) -> String {
    let width = lines.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
    lines.iter().map(|(fine, name, said)| format!("  {} {name:width$}  {said}\n", mark(*fine))).collect()
}

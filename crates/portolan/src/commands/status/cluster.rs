//! One member: its numbers, what it holds, and what happened.

use super::Report;
use crate::clean;
use crate::commands::events;
use crate::commands::get::{health, marks, offer_lines, parts};
use crate::failure::{Failure, NotShown};
use crate::human::{age, share};
use crate::kind::Kind;
use crate::style::{conditions, mark};
use jiff::Timestamp;
use kube::Client;
use kube::api::ListParams;
use portolan_api::ForeignCluster;
use serde_json::{Value, json};

/// The state of a member.
pub(super) async fn report(hub: &Client, raw: Value) -> Result<Report, Failure> {
    let now = Timestamp::now();
    let object = clean::object(raw.clone());
    let cluster: ForeignCluster = serde_json::from_value(object.clone()).map_err(Failure::other)?;
    let (word, message) = health(&cluster);
    let ready = word.starts_with("True");
    let status = cluster.status.clone().unwrap_or_default();
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let since = age(cluster.metadata.creation_timestamp.as_ref().map(|time| time.0), now);
    let marks: String = marks(&cluster).iter().map(|mark| format!(", {}", mark.to_lowercase())).collect();
    let mut text = format!("{} member {name}{marks}, {since} old\n  {message}\n", mark(ready));
    if let Some(nodes) = status.nodes {
        let room = ["cpu", "memory", "pods"]
            .map(|name| format!("{name} {}", share(name, &status.allocated, &status.capacity)));
        text.push_str(&format!("  {}/{} nodes ready, {}\n", nodes.ready, nodes.total, room.join(", ")));
    }
    for line in offer_lines(&cluster) {
        text.push_str(&format!("  {line}\n"));
    }
    let mut not_shown = NotShown::default();
    let held = held(hub, &name, &mut not_shown).await?;
    if !held.is_empty() {
        text.push_str("\nWorkloads\n");
    }
    for line in &held {
        text.push_str(&format!("  {line}\n"));
    }
    text.push_str(&conditions(&object, now));
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let events = events::about(hub, events::namespace(&object), &[uid.to_owned()]).await;
    let events = not_shown.unless_forbidden(events)?.unwrap_or_default();
    text.push_str(&events::listed(&events, now));
    let events: Vec<Value> = events.iter().map(events::Happened::data).collect();
    let data =
        json!({"ready": ready, "message": message, "object": raw, "workloads": held, "events": events});
    Ok(Report { ready, text, data, not_shown })
}

/// The workloads that the member holds something of, in words.
async fn held(hub: &Client, cluster: &str, not_shown: &mut NotShown) -> Result<Vec<String>, Failure> {
    let mut held = Vec::new();
    for kind in Kind::WORKLOADS {
        let objects = kind.list(hub, None, &ListParams::default()).await;
        for object in not_shown.unless_forbidden(objects)?.unwrap_or_default() {
            let object = clean::object(object);
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let here = parts(kind, &object).into_iter().filter(|part| part.cluster == cluster);
            held.extend(here.map(|part| {
                let (ready, wanted, state) = (part.ready, part.wanted, part.state);
                let line = format!(
                    "{}/{} in {}  {ready}/{wanted}  {state}",
                    kind.short(),
                    text("name"),
                    text("namespace")
                );
                line.trim_end().to_owned()
            }));
        }
    }
    Ok(held)
}

//! One autoscaler, CloudProvisioner or rescheduler: what it does for which clusters and workloads, and what happened.

mod autoscaler;
mod provisioner;
mod rescheduler;
mod tree;

use super::Report;
use crate::clean;
use crate::commands::events;
use crate::failure::{Failure, NotShown};
use crate::human::age;
use crate::kind::Kind;
use crate::style::{conditions, mark, state};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

/// The state of the object.
pub(super) async fn report(hub: &Client, kind: Kind, raw: Value) -> Result<Report, Failure> {
    let now = Timestamp::now();
    let object = clean::object(raw.clone());
    let (ready, message) = state(&object);
    let mut text = description(kind, &object, now);
    let mut not_shown = NotShown::default();
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let events = events::about(hub, events::namespace(&object), &[uid.to_owned()]).await;
    let events = not_shown.unless_forbidden(events)?.unwrap_or_default();
    text.push_str(&events::listed(&events, now));
    let events: Vec<Value> = events.iter().map(events::Happened::data).collect();
    let data = json!({"ready": ready, "message": message, "object": raw, "events": events});
    Ok(Report { ready, text, data, not_shown })
}

/// All that the object itself says.
fn description(kind: Kind, object: &Value, now: Timestamp) -> String {
    let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (ready, message) = state(object);
    let (numbers, branches) = match kind {
        Kind::Provisioner => (provisioner::summary(object), provisioner::branches(object, now)),
        Kind::Rescheduler => (rescheduler::summary(object, now), rescheduler::branches(object, now)),
        _ => (autoscaler::summary(object), autoscaler::branches(object)),
    };
    let place = if kind.namespaced() { format!("{}/", meta("namespace")) } else { String::new() };
    let mut text = format!(
        "{} {} {place}{}  {numbers}, {} old\n",
        mark(ready),
        kind.name(),
        meta("name"),
        age(meta("creationTimestamp").parse().ok(), now)
    );
    if !message.is_empty() {
        text.push_str(&format!("  {message}\n"));
    }
    text + &tree::drawn(&branches) + &conditions(object, now)
}

/// A text of an object; nothing where it is absent or empty.
fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object[field].as_str().filter(|text| !text.is_empty())
}

/// A number of an object; 0 where it is absent.
fn number(object: &Value, field: &str) -> i64 {
    object[field].as_i64().unwrap_or(0)
}

/// A list of an object.
fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// How long ago a time of an object is; nothing where it is absent.
fn ago(object: &Value, field: &str, now: Timestamp) -> Option<String> {
    let time: Timestamp = object[field].as_str()?.parse().ok()?;
    Some(age(Some(time), now))
}

/// A workload as users ask for it.
fn workload(kind: &str, namespace: &str, name: &str) -> String {
    let kind = Kind::parse(kind).map_or(kind, |(kind, _)| kind.short());
    format!("{kind}/{name} in {namespace}")
}

//! One workload: its clusters, what waits, and what happened.

use super::Report;
use crate::clean;
use crate::commands::events;
use crate::commands::get::{Part, parts, summary};
use crate::failure::{Failure, NotShown};
use crate::human::age;
use crate::kind::Kind;
use crate::style::{conditions, mark, state};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

/// The state of a workload.
pub(super) async fn report(hub: &Client, kind: Kind, raw: Value) -> Result<Report, Failure> {
    let now = Timestamp::now();
    let object = clean::object(raw.clone());
    let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (ready, message) = state(&object);
    let (numbers, pending) = summary(kind, &object);
    let mut text = format!(
        "{} {} {}/{}  {numbers} {}, {} old\n",
        mark(ready),
        kind.name(),
        meta("namespace"),
        meta("name"),
        if kind == Kind::Job { "finished" } else { "ready" },
        age(meta("creationTimestamp").parse().ok(), now)
    );
    if !message.is_empty() {
        text.push_str(&format!("  {message}\n"));
    }
    text.push_str(&tree(kind, &object, pending));
    text.push_str(&conditions(&object, now));
    let mut not_shown = NotShown::default();
    let events = events::about(hub, meta("namespace"), &[meta("uid").to_owned()]).await;
    let events = not_shown.unless_forbidden(events)?.unwrap_or_default();
    text.push_str(&events::listed(&events, now));
    let events: Vec<Value> = events.iter().map(events::Happened::data).collect();
    let data = json!({"ready": ready, "message": message, "object": raw, "events": events});
    Ok(Report { ready, text, data, not_shown })
}

/// What each cluster holds, and why the rest is pending.
fn tree(kind: Kind, object: &Value, pending: i64) -> String {
    let mut text = String::new();
    let parts = parts(kind, object);
    for (position, part) in parts.iter().enumerate() {
        let last = position + 1 == parts.len() && pending == 0;
        text.push_str(&format!("{} {}\n", if last { "└─" } else { "├─" }, line(kind, part)));
    }
    if pending > 0 {
        text.push_str(&format!("└─ {pending} pending\n"));
        let waiting: Vec<_> = object["status"]["pending"].as_array().cloned().unwrap_or_default();
        for (position, each) in waiting.iter().enumerate() {
            let field = |name: &str| each[name].as_str().unwrap_or_default();
            let branch = if position + 1 == waiting.len() { "└─" } else { "├─" };
            let (cluster, reason, message) = (field("cluster"), field("reason"), field("message"));
            text.push_str(&format!("   {branch} {cluster}: {reason}: {message}\n"));
        }
    }
    text
}

fn line(kind: Kind, part: &Part) -> String {
    let mut text = match kind {
        Kind::Service => format!("{}  {} endpoints ready of {}", part.cluster, part.ready, part.wanted),
        _ => format!("{}  {}/{}", part.cluster, part.ready, part.wanted),
    };
    for word in [&part.state, &part.cause].into_iter().filter(|word| !word.is_empty()) {
        text.push_str(&format!("  {word}"));
    }
    if !part.stands_in_for.is_empty() {
        text.push_str(&format!(" for {}", part.stands_in_for));
    }
    if !part.message.is_empty() {
        text.push_str(&format!(": {}", part.message));
    }
    text
}

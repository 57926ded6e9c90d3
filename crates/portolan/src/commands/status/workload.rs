//! One workload: its clusters, what waits, and what happened.

use crate::commands::get::{Part, parts, summary};
use crate::failure::Failure;
use crate::human::age;
use crate::kind::Kind;
use crate::style::{mark, state};
use anstream::println;
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_runtime::call;
use serde_json::Value;

/// How many events are told, the latest last.
const EVENTS: usize = 10;

/// Tells how a workload fares; answers whether it is Ready.
pub(super) async fn show(hub: &Client, kind: Kind, object: &Value) -> Result<bool, Failure> {
    let now = Timestamp::now();
    let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (fine, message) = state(object);
    let (ready, pending) = summary(kind, object);
    let since = age(meta("creationTimestamp").parse().ok(), now);
    println!(
        "{} {} {}/{}  {ready} {}, {since} old",
        mark(fine),
        kind.name(),
        meta("namespace"),
        meta("name"),
        if kind == Kind::Job { "finished" } else { "ready" }
    );
    if !message.is_empty() {
        println!("  {message}");
    }
    let waiting: Vec<_> = object["status"]["pending"].as_array().cloned().unwrap_or_default();
    let parts = parts(kind, object);
    for (position, part) in parts.iter().enumerate() {
        let last = position + 1 == parts.len() && pending == 0;
        println!("{} {}", if last { "└─" } else { "├─" }, line(kind, part));
    }
    if pending > 0 {
        println!("└─ {pending} pending");
        for (position, each) in waiting.iter().enumerate() {
            let text = |field: &str| each[field].as_str().unwrap_or_default();
            let branch = if position + 1 == waiting.len() { "└─" } else { "├─" };
            println!("   {branch} {}: {}: {}", text("cluster"), text("reason"), text("message"));
        }
    }
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    if !conditions.is_empty() {
        println!("\nConditions");
    }
    for each in &conditions {
        let text = |field: &str| each[field].as_str().unwrap_or_default();
        let since = age(text("lastTransitionTime").parse().ok(), now);
        println!(
            "  {} {} for {since}, {}: {}",
            text("type"),
            text("status"),
            text("reason"),
            text("message")
        );
    }
    events(hub, meta("namespace"), meta("uid"), now).await?;
    Ok(fine)
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

async fn events(hub: &Client, namespace: &str, uid: &str, now: Timestamp) -> Result<(), Failure> {
    let api: Api<Event> = Api::namespaced(hub.clone(), namespace);
    let listed = call("list events", api.list(&ListParams::default())).await;
    let listed = listed.map_err(|error| Failure::other(portolan_runtime::chain(&error)))?;
    let about = |event: &Event| event.regarding.as_ref().and_then(|each| each.uid.as_deref()) == Some(uid);
    let mut events: Vec<Event> = listed.items.into_iter().filter(about).collect();
    let when = |event: &Event| {
        let made = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
        event.event_time.as_ref().map(|time| time.0).or(made)
    };
    events.sort_by_key(when);
    if !events.is_empty() {
        println!("\nEvents");
    }
    for event in events.iter().skip(events.len().saturating_sub(EVENTS)) {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        println!(
            "  {} ago  {}  {}: {}",
            age(when(event), now),
            text(&event.type_),
            text(&event.reason),
            text(&event.note)
        );
    }
    Ok(())
}

//! `portolan events`, and the events that `portolan status` shows.

use super::members::{self, Workload};
use crate::cli::{EventsArgs, WorkloadArgs};
use crate::failure::{Failure, NotShown};
use crate::human::age;
use crate::kind::Kind;
use crate::{clean, connection, output};
use anstream::eprintln;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::{NamespaceResourceScope, serde::de::DeserializeOwned};
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use portolan_control::names::WORKLOAD_LABEL;
use portolan_runtime::{call, chain};
use serde_json::{Value, json};
use std::fmt::Debug;

/// How many events `portolan status` shows, the latest last.
const LATEST: usize = 10;

/// What the hub is called beside its members.
const HUB: &str = "hub";

/// An event, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Happened {
    when: Option<Timestamp>,
    type_: String,
    reason: String,
    object: String,
    note: String,
}

pub(super) fn run(args: &EventsArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(events(args)))
}

/// What was found, each event with its cluster, and what was not.
#[derive(Default)]
struct Found {
    events: Vec<(String, Happened)>,
    failed: Vec<(String, Failure)>,
    not_shown: NotShown,
}

impl Found {
    fn add(&mut self, cluster: &str, events: Vec<Happened>) {
        self.events.extend(events.into_iter().map(|event| (cluster.to_owned(), event)));
    }
}

async fn events(args: &EventsArgs) -> Result<(), Failure> {
    let (kind, name) = Kind::parse_one(&args.workload.object)?;
    let Found { events: mut all, failed, not_shown } = if Kind::ELASTIC.contains(&kind) {
        in_hub(&args.workload, kind, &name).await?
    } else {
        everywhere(&args.workload).await?
    };
    all.sort_by_key(|one| one.1.when);
    let now = Timestamp::now();
    let mut table = crate::table::table(&["LAST SEEN", "CLUSTER", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
    for (cluster, event) in &all {
        let Happened { when, type_, reason, object, note } = event.clone();
        table.add_row([age(when, now), clean::line(cluster), type_, reason, object, note]);
    }
    match all.is_empty() {
        true if not_shown.reasons.is_empty() => eprintln!("No events found."),
        true => {}
        false if args.no_headers => output::data(&crate::table::body(&table))?,
        false => output::data(&crate::table::text(&table))?,
    }
    not_shown.report();
    let mut failed = failed.into_iter();
    let Some((first, failure)) = failed.next() else { return Ok(()) };
    for (cluster, failure) in failed {
        eprintln!("{}: {}", clean::line(&cluster), clean::line(failure.message()));
    }
    Err(failure.about(&first))
}

/// The events of a workload, in the hub and in its members.
async fn everywhere(args: &WorkloadArgs) -> Result<Found, Failure> {
    let workload = members::find(args).await?;
    let mut found = Found::default();
    let of_hub = about(&workload.hub, &workload.namespace, std::slice::from_ref(&workload.object_uid)).await;
    let of_hub = found.not_shown.unless_forbidden(of_hub)?;
    found.add(HUB, of_hub.unwrap_or_default());
    for (cluster, client) in workload.members(args).await {
        let of_member = match client {
            Ok(client) => in_member(&client, &workload).await,
            Err(failure) => Err(failure),
        };
        match of_member {
            Ok(events) => found.add(&cluster, events),
            Err(failure) => found.failed.push((cluster, failure)),
        }
    }
    Ok(found)
}

/// The events of an object that members have no copies of.
async fn in_hub(args: &WorkloadArgs, kind: Kind, name: &str) -> Result<Found, Failure> {
    if !args.clusters.is_empty() || !args.contexts.is_empty() {
        let message = format!("{}/{name} is in the hub only, and so are its events", kind.short());
        return Err(Failure::input(message).hint("leave out --cluster and --member-context"));
    }
    let (hub, _) = connection::answering(&args.cluster).await?;
    let place = kind.namespace(&hub, args.namespace.as_deref());
    let object = kind.get(&hub, place.as_deref(), name).await?;
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let mut found = Found::default();
    let of_hub = found.not_shown.unless_forbidden(about(&hub, namespace(&object), &[uid]).await)?;
    found.add(HUB, of_hub.unwrap_or_default());
    Ok(found)
}

/// The events of the copy in a member, and of what was made from it there.
async fn in_member(client: &Client, workload: &Workload) -> Result<Vec<Happened>, Failure> {
    let mut uids = match workload.kind {
        Kind::Job => marked::<Job>(client, workload).await?,
        Kind::Service => marked::<Service>(client, workload).await?,
        _ => {
            let mut uids = marked::<Deployment>(client, workload).await?;
            uids.extend(marked::<ReplicaSet>(client, workload).await?);
            uids
        }
    };
    uids.extend(marked::<Pod>(client, workload).await?);
    about(client, &workload.namespace, &uids).await
}

/// The uids of the objects of one kind that belong to the workload.
async fn marked<K>(client: &Client, workload: &Workload) -> Result<Vec<String>, Failure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), &workload.namespace);
    let ours = ListParams::default().labels(&format!("{WORKLOAD_LABEL}={}", workload.uid));
    let what = format!("list {} of namespace {}", K::plural(&()), workload.namespace);
    let found = call(what, api.list(&ours)).await.map_err(|error| Failure::other(chain(&error)))?;
    Ok(found.into_iter().filter_map(|object| object.uid()).collect())
}

/// Where the API server keeps the events of an object: those of objects without a namespace are in default.
pub(super) fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or("default")
}

/// The events about the objects with these uids, the latest last.
pub(super) async fn about(
    client: &Client,
    namespace: &str,
    uids: &[String],
) -> Result<Vec<Happened>, Failure> {
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let what = format!("list the events of namespace {namespace}");
    let listed = call(what, api.list(&ListParams::default())).await;
    let listed = listed.map_err(|error| Failure::call(&error))?;
    let regarding = |event: &Event| event.regarding.as_ref().and_then(|each| each.uid.clone());
    let ours = |event: &Event| regarding(event).is_some_and(|uid| uids.contains(&uid));
    let mut events: Vec<Happened> = listed.items.iter().filter(|event| ours(event)).map(happened).collect();
    events.sort_by_key(|event| event.when);
    Ok(events)
}

fn happened(event: &Event) -> Happened {
    let text = |part: Option<&String>| clean::line(part.map_or("", String::as_str));
    let repeated = event.series.as_ref().map(|series| series.last_observed_time.0);
    let old = event.deprecated_last_timestamp.as_ref().map(|time| time.0);
    let made = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let object = event.regarding.clone().unwrap_or_default();
    let kind = text(object.kind.as_ref()).to_lowercase();
    Happened {
        when: repeated.or(event.event_time.as_ref().map(|time| time.0)).or(old).or(made),
        type_: text(event.type_.as_ref()),
        reason: text(event.reason.as_ref()),
        object: format!("{kind}/{}", text(object.name.as_ref())),
        note: text(event.note.as_ref()),
    }
}

/// The latest events as lines, with a heading.
pub(super) fn listed(events: &[Happened], now: Timestamp) -> String {
    let mut text = if events.is_empty() { String::new() } else { "\nEvents\n".to_owned() };
    for event in events.iter().skip(events.len().saturating_sub(LATEST)) {
        let Happened { type_, reason, note, .. } = event;
        text.push_str(&format!("  {} ago  {type_}  {reason}: {note}\n", age(event.when, now)));
    }
    text
}

impl Happened {
    /// The event for programs.
    pub(super) fn data(&self) -> Value {
        let when = self.when.map(|when| when.to_string());
        json!({"time": when, "type": self.type_, "reason": self.reason, "object": self.object, "note": self.note})
    }
}

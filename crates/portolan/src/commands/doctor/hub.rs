//! What the hub must have: kinds, a leader, its controller, rights, and nothing in the way.

use super::report::{Sheet, unasked};
use super::{in_the_way, rights, tenant_policy};
use crate::cli::LeaseArgs;
use crate::commands::{controllers, leader, version};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::{Api, Client};
use portolan_api::{API_VERSION, ForeignCluster};
use portolan_control::peering::hub_needs;
use portolan_core::doctor::{
    Check, Controllers, Definitions, Evidence, Kubernetes, Leader, LeaseFacts, PodFacts, Portolan,
};
use portolan_runtime::{LEASE_DURATION, call, chain, foreign_text};
use std::collections::BTreeSet;
use std::time::Duration;

/// A leader renews its Lease more often than this.
const RENEWED_WITHIN: Duration = Duration::from_secs(4);
const OFTEN: Duration = Duration::from_millis(500);

/// Verbs that admission webhooks are asked about.
const WRITES: [&str; 4] = ["create", "update", "patch", "delete"];

/// Makes all checks of the hub but those of its hops, at the same time.
pub(super) async fn check(sheet: &Sheet, hub: &Client, lease: &LeaseArgs, members: &[ForeignCluster]) {
    let needs = hub_needs().into_iter().filter(|need| WRITES.contains(&need.verb.as_str()));
    let written: BTreeSet<(String, String)> = needs
        .map(|need| (need.group, need.resource.split('/').next().unwrap_or_default().to_owned()))
        .collect();
    tokio::join!(
        kubernetes(sheet, hub),
        definitions(sheet, hub),
        leading(sheet, hub, lease, members),
        pods(sheet, hub, lease),
        rights::of_caller(sheet, hub),
        rights::of_controller(sheet, hub),
        tenant_policy::check(sheet, hub),
        in_the_way::check(sheet, hub, written.into_iter().collect()),
    );
}

/// The version of a cluster's Kubernetes.
pub(super) async fn kubernetes(sheet: &Sheet, client: &Client) {
    let evidence = match call("ask for its version", client.apiserver_version()).await {
        Ok(info) => Evidence::Kubernetes(Kubernetes { version: foreign_text(&info.git_version) }),
        Err(error) => unasked(&error, "get /version"),
    };
    sheet.add(Check::Kubernetes, "", &evidence);
}

async fn definitions(sheet: &Sheet, hub: &Client) {
    sheet.add(Check::Definitions, "", &installed(hub).await);
}

/// The definitions that the hub has, against those of this program.
async fn installed(hub: &Client) -> Evidence {
    let wanted = match portolan_api::hub_crds() {
        Ok(wanted) => wanted,
        Err(error) => return Evidence::NotAsked { why: chain(&error), advice: String::new() },
    };
    let api: Api<CustomResourceDefinition> = Api::all(hub.clone());
    let mut found = Definitions { wanted: wanted.len(), ..Definitions::default() };
    for ours in &wanted {
        let name = ours.metadata.name.clone().unwrap_or_default();
        match call(format!("read CustomResourceDefinition {name}"), api.get(&name)).await {
            Ok(theirs) => compare(&mut found, &name, ours, &theirs),
            Err(error) if error.is_not_found() => found.missing.push(name),
            Err(error) if error.code() == Some(403) => return served(hub, &wanted).await,
            Err(error) => return unasked(&error, "get customresourcedefinitions.apiextensions.k8s.io"),
        }
    }
    Evidence::Definitions(found)
}

/// The kinds that the hub serves, for those who may not read definitions.
async fn served(hub: &Client, wanted: &[CustomResourceDefinition]) -> Evidence {
    let own: Vec<&CustomResourceDefinition> = wanted.iter().filter(|each| is_own(each)).collect();
    let mut found = Definitions { wanted: own.len(), names_only: true, ..Definitions::default() };
    let served: BTreeSet<String> =
        match call("list the kinds of the hub", hub.list_api_group_resources(API_VERSION)).await {
            Ok(list) => list.resources.into_iter().map(|each| each.kind).collect(),
            Err(error) if error.is_not_found() => BTreeSet::new(),
            Err(error) => return unasked(&error, "get /apis"),
        };
    let missing = own.iter().filter(|each| !served.contains(&each.spec.names.kind));
    found.missing = missing.filter_map(|each| each.metadata.name.clone()).collect();
    Evidence::Definitions(found)
}

/// Whether a definition is of a kind of Portolan; others come from elsewhere, in versions of their own.
fn is_own(definition: &CustomResourceDefinition) -> bool {
    API_VERSION.starts_with(&format!("{}/", definition.spec.group))
}

fn compare(
    found: &mut Definitions,
    name: &str,
    ours: &CustomResourceDefinition,
    theirs: &CustomResourceDefinition,
) {
    let conditions = theirs.status.as_ref().and_then(|status| status.conditions.as_ref());
    let established = conditions.into_iter().flatten().find(|condition| condition.type_ == "Established");
    if established.is_none_or(|condition| condition.status != "True") {
        let why = established.and_then(|condition| condition.message.clone());
        let why = why.unwrap_or_else(|| "it is not Established".to_owned());
        found.not_served.push((name.to_owned(), foreign_text(&why)));
        return;
    }
    for version in &ours.spec.versions {
        let same = theirs.spec.versions.iter().find(|each| each.name == version.name);
        let Some(theirs) = same.filter(|each| each.served) else {
            found.not_served.push((name.to_owned(), format!("version {} is not served", version.name)));
            continue;
        };
        if !is_own(ours) {
            continue;
        }
        let fields = |version: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion| {
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            let mut fields = BTreeSet::new();
            schema.into_iter().for_each(|schema| collect(schema, "", &mut fields));
            fields
        };
        let (mine, other) = (fields(version), fields(theirs));
        let (older, newer) = (beyond(&mine, &other), beyond(&other, &mine));
        if !older.is_empty() {
            found.older.push((name.to_owned(), older));
        }
        if !newer.is_empty() {
            found.newer.push((name.to_owned(), newer));
        }
    }
}

/// The fields of a schema, by their paths.
fn collect(schema: &JSONSchemaProps, path: &str, fields: &mut BTreeSet<String>) {
    for (name, inner) in schema.properties.iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        collect(inner, &path, fields);
        fields.insert(path);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        collect(items, &format!("{path}[]"), fields);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        collect(values, &format!("{path}{{}}"), fields);
    }
}

/// What one has beyond the other, without what is inside of what is named.
fn beyond(one: &BTreeSet<String>, other: &BTreeSet<String>) -> Vec<String> {
    let only: Vec<&String> = one.difference(other).collect();
    let outermost = |path: &&&String| {
        !only.iter().any(|outer| {
            path.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with(['.', '[', '{']))
        })
    };
    only.iter().filter(outermost).map(|path| (*path).clone()).collect()
}

/// The Lease of the controllers, and the version of the one that leads.
async fn leading(sheet: &Sheet, hub: &Client, args: &LeaseArgs, members: &[ForeignCluster]) {
    let place = leader::place(args);
    let right = format!("get leases.coordination.k8s.io in namespace {}", args.lease_namespace);
    let seen = members.iter().filter_map(|member| Some(member.status.as_ref()?.last_seen.as_ref()?.0)).max();
    let found = match leader::lease(hub, args).await {
        Ok(found) => found,
        Err(error) => {
            let evidence = unasked(&error, &right);
            sheet.add(Check::Leader, &place, &evidence);
            sheet.add(Check::Portolan, "", &evidence);
            return;
        }
    };
    let version = found.as_ref().and_then(|lease| {
        let version = lease.metadata.annotations.as_ref()?.get(version::VERSION_ANNOTATION)?;
        Some(foreign_text(version))
    });
    let client = env!("CARGO_PKG_VERSION").to_owned();
    sheet.add(Check::Portolan, "", &Evidence::Portolan(Portolan { client, controller: version }));
    let mut lease = found.as_ref().map(facts);
    // The clock of this machine and that of the controller may differ: a Lease that is renewed is held.
    let first = lease.as_ref().and_then(|lease| lease.renewed);
    let mut waited = Duration::ZERO;
    while let Some(known) = &mut lease
        && waited < RENEWED_WITHIN
        && !known.holder.is_empty()
        && known.renewed.is_none_or(|time| sheet.clock().now().duration_since(time) > known.duration)
    {
        tokio::time::sleep(OFTEN).await;
        waited += OFTEN;
        if let Ok(Some(again)) = leader::lease(hub, args).await {
            *known = facts(&again);
            if known.renewed != first {
                known.renewed = Some(sheet.clock().now());
            }
        }
    }
    sheet.add(Check::Leader, &place, &Evidence::Leader(Leader { place: place.clone(), lease, seen }));
}

fn facts(lease: &k8s_openapi::api::coordination::v1::Lease) -> LeaseFacts {
    let spec = lease.spec.clone().unwrap_or_default();
    let usual = i32::try_from(LEASE_DURATION.as_secs()).unwrap_or(i32::MAX);
    LeaseFacts {
        holder: foreign_text(&spec.holder_identity.unwrap_or_default()),
        renewed: spec.renew_time.map(|time| time.0),
        duration: SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or(usual).into()),
    }
}

/// The pods of the controller.
async fn pods(sheet: &Sheet, hub: &Client, args: &LeaseArgs) {
    let namespace = args.lease_namespace.clone();
    let evidence = match controllers::pods(hub, &namespace).await {
        Ok(pods) => Evidence::Controllers(Controllers { pods: pods.iter().map(pod).collect(), namespace }),
        Err(error) => unasked(&error, &format!("list pods in namespace {namespace}")),
    };
    sheet.add(Check::Controller, "", &evidence);
}

fn pod(pod: &Pod) -> PodFacts {
    let status = pod.status.clone().unwrap_or_default();
    let ready = status.conditions.iter().flatten().any(|each| each.type_ == "Ready" && each.status == "True");
    let containers = status.container_statuses.unwrap_or_default();
    let reason = containers.iter().find_map(|each| {
        let waits = each.state.as_ref().and_then(|state| state.waiting.as_ref()?.reason.clone());
        let ended = each.last_state.as_ref().and_then(|state| state.terminated.as_ref()?.reason.clone());
        match (waits, ended) {
            (Some(waits), Some(ended)) => Some(format!("{waits} after {ended}")),
            (waits, ended) => waits.or(ended),
        }
    });
    PodFacts {
        name: foreign_text(pod.metadata.name.as_deref().unwrap_or_default()),
        ready,
        restarts: containers.iter().map(|each| each.restart_count).sum(),
        reason: reason.map(|reason| foreign_text(&reason)),
    }
}

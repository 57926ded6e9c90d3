//! What the status of a service says: pure, from what it follows and what was seen.

use super::desired::holds;
use super::follow::Following;
use super::observe::{ClusterSnapshot, answered_elsewhere};
use crate::copies::Desired;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::multiclusterservice::{Protocol, ServiceClusterStatus};
use portolan_api::{MultiClusterService, MultiClusterServiceStatus};
use std::collections::BTreeMap;

/// What a status is made from.
pub(super) struct Situation<'a> {
    pub(super) service: &'a MultiClusterService,
    pub(super) following: &'a Following,
    pub(super) seen: &'a BTreeMap<String, ClusterSnapshot>,
    pub(super) desired: &'a Desired,
    /// By cluster: reason and message of a refusal.
    pub(super) failures: BTreeMap<String, (Reason, String)>,
}

/// The new status. Numbers of a silent cluster stay as last reported.
pub(super) fn status(situation: &Situation<'_>, now: &Time) -> MultiClusterServiceStatus {
    let service = situation.service;
    let before = service.status.clone().unwrap_or_default();
    let clusters: Vec<ServiceClusterStatus> = situation
        .seen
        .iter()
        .filter_map(|(name, seen)| {
            let last = before.clusters.iter().find(|each| each.cluster == *name);
            cluster(situation, name, seen, last, now)
        })
        .collect();
    let summary: Vec<_> =
        clusters.iter().map(|each| format!("{}={}", each.cluster, each.ready_endpoints)).collect();
    let ports = service.spec.ports.iter().map(|port| {
        let protocol = match port.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        };
        format!("{}/{protocol}", port.port)
    });
    let generation = service.metadata.generation;
    let mut status = MultiClusterServiceStatus {
        observed_generation: generation,
        conditions: before.conditions,
        follows: situation.following.workloads.clone(),
        ready_endpoints: clusters.iter().map(|each| each.ready_endpoints).fold(0, i32::saturating_add),
        ports_summary: Some(ports.collect::<Vec<_>>().join(",")),
        locations_summary: (!summary.is_empty()).then(|| summary.join(",")),
        clusters: Vec::new(),
        reservation: before.reservation,
    };
    for finding in findings(situation, &clusters, status.ready_endpoints) {
        conditions::set(&mut status.conditions, finding, generation, now.0);
    }
    status.clusters = clusters;
    status
}

/// The service in one cluster; nothing if it neither is there nor should be.
fn cluster(
    situation: &Situation<'_>,
    name: &str,
    seen: &ClusterSnapshot,
    last: Option<&ServiceClusterStatus>,
    now: &Time,
) -> Option<ServiceClusterStatus> {
    let wanted = situation.following.wanted.contains(name);
    let mut entry = last
        .cloned()
        .unwrap_or_else(|| ServiceClusterStatus { cluster: name.to_owned(), ..Default::default() });
    let mut say = |reason: Reason, message: Option<String>| {
        entry.reason = Some(reason.into());
        entry.message = message;
    };
    if seen.member.is_none() {
        let message = "it does not answer: these are the last numbers known".to_owned();
        say(Reason::Unreachable, Some(message));
        return (wanted || last.is_some() || seen.copy.is_some()).then_some(entry);
    }
    let refused = situation.failures.get(name).cloned().or_else(|| seen.closed.clone()).filter(|_| wanted);
    let Some(copy) = &seen.copy else {
        let (reason, message) =
            refused.unwrap_or((Reason::Applying, "the Service is being made there".to_owned()));
        say(reason, Some(message));
        entry.cluster_ips.clear();
        entry.load_balancer.clear();
        (entry.ready_endpoints, entry.not_ready_endpoints) = (0, 0);
        return wanted.then_some(entry);
    };
    match refused {
        Some((reason, message)) => say(reason, Some(message)),
        None if situation.following.kept.contains(name) => {
            let message = "the selector selects no pods any more: the Service stays there as it was";
            say(Reason::NoMatchingWorkload, Some(message.to_owned()));
        }
        None if !wanted && situation.following.lingering.contains(name) => {
            say(Reason::Removing, Some("the pods that it serves are being taken away".to_owned()));
        }
        None if !wanted && !answered_elsewhere(situation.following, situation.seen) => {
            say(Reason::Removing, Some("it stays until a pod in another cluster is ready".to_owned()));
        }
        None if !wanted => say(Reason::Removing, None),
        None if !holds(copy, situation.desired) => {
            say(Reason::Applying, Some("the Service is being changed there".to_owned()));
        }
        None if seen.ready > 0 => say(Reason::Ready, None),
        None => say(Reason::NoEndpoints, Some("no pod that it selects is ready there".to_owned())),
    }
    let news = (entry.ready_endpoints, entry.not_ready_endpoints) != (seen.ready, seen.not_ready)
        || entry.cluster_ips != copy.cluster_ips
        || entry.load_balancer != copy.load_balancer;
    // The time moves with the numbers only, so that a status without news is the same bytes.
    if news || entry.observed_at.is_none() {
        entry.observed_at = Some(now.clone());
    }
    (entry.ready_endpoints, entry.not_ready_endpoints) = (seen.ready, seen.not_ready);
    entry.cluster_ips = copy.cluster_ips.clone();
    entry.load_balancer = copy.load_balancer.clone();
    Some(entry)
}

fn findings(situation: &Situation<'_>, clusters: &[ServiceClusterStatus], ready: i32) -> [Finding; 3] {
    let wanted = &situation.following.wanted;
    let named = |reason: Reason| {
        let found =
            clusters.iter().filter(|each| each.reason.as_deref().and_then(Reason::parse) == Some(reason));
        found.map(|each| each.cluster.as_str()).collect::<Vec<_>>().join(", ")
    };
    // A silent cluster that once reported the Service still has it, as far as anybody knows.
    let is_there = |each: &&ServiceClusterStatus| {
        matches!(each.reason.as_deref().and_then(Reason::parse), Some(Reason::Ready | Reason::NoEndpoints))
            || (each.reason.as_deref().and_then(Reason::parse) == Some(Reason::Unreachable)
                && each.observed_at.is_some())
    };
    let of_wanted = || clusters.iter().filter(|each| wanted.contains(&each.cluster));
    let missing: Vec<_> = of_wanted()
        .filter(|each| !is_there(each))
        .map(|each| format!("{}: {}", each.cluster, each.message.as_deref().unwrap_or_default()))
        .collect();
    let nothing = format!(
        "no pods to serve: no MultiClusterDeployment with replicas in this namespace has the labels {} in its template",
        situation
            .service
            .spec
            .selector
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join(",")
    );
    let placed = if wanted.is_empty() {
        Finding::new(ConditionType::Placed, false, Reason::NoMatchingWorkload, nothing.clone())
    } else if missing.is_empty() {
        let message = "every cluster that holds the pods has the Service";
        Finding::new(ConditionType::Placed, true, Reason::Placed, message)
    } else {
        Finding::new(ConditionType::Placed, false, Reason::Incomplete, missing.join("; "))
    };
    let silent = named(Reason::Unreachable);
    let refused = of_wanted().find(|each| {
        situation.failures.contains_key(&each.cluster)
            || matches!(
                each.reason.as_deref().and_then(Reason::parse),
                Some(Reason::NamespaceClosed | Reason::NamespaceNotFound)
            )
    });
    let ready = if !silent.is_empty() {
        let message = format!("{silent} cannot be asked: {ready} endpoints were last known ready");
        Finding::new(ConditionType::Ready, ConditionStatus::Unknown, Reason::Unreachable, message)
    } else if wanted.is_empty() {
        Finding::new(ConditionType::Ready, false, Reason::NoMatchingWorkload, nothing)
    } else if let Some(refused) = refused {
        let why = refused.message.as_deref().unwrap_or_default();
        Finding::new(ConditionType::Ready, false, Reason::Failed, format!("{}: {why}", refused.cluster))
    } else if !missing.is_empty() {
        Finding::new(ConditionType::Ready, false, Reason::Progressing, missing.join("; "))
    } else if ready == 0 {
        let message = "no pod that it selects is ready in any cluster";
        Finding::new(ConditionType::Ready, false, Reason::NoEndpoints, message)
    } else {
        let message = format!("{ready} endpoints are ready");
        Finding::new(ConditionType::Ready, true, Reason::Ready, message)
    };
    let unreachable = if silent.is_empty() {
        let message = "every cluster that has the Service answers";
        Finding::new(ConditionType::Unreachable, false, Reason::AllClustersReachable, message)
    } else {
        let message = format!("{silent} does not answer: what it has is kept on record");
        Finding::new(ConditionType::Unreachable, true, Reason::Unreachable, message)
    };
    [ready, placed, unreachable]
}

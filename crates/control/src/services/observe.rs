//! A service in every cluster of the fleet, as the indexes know it. No requests.

use super::Services;
use super::facts::ServiceFacts;
use super::follow::Following;
use crate::copies::Copied;
use crate::driver::Declared;
use crate::fleet::{CopyMeta, Member, Reachability};
use crate::names::{OPT_IN, OPT_IN_LABEL};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use portolan_api::MultiClusterService;
use portolan_api::Reason;
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A cluster, as one service sees it.
pub(super) struct ClusterSnapshot {
    /// The member, if it answers.
    pub(super) member: Option<Arc<Member>>,
    /// The Service there that is ours, as last seen.
    pub(super) copy: Option<Arc<ServiceFacts>>,
    /// Ready endpoints, as last seen.
    pub(super) ready: i32,
    /// Endpoints that are not ready, as last seen.
    pub(super) not_ready: i32,
    /// Whether the Service may change any moment, or has changed since it was seen: work about it is under way.
    pub(super) changing: bool,
    /// Why the cluster does not let the Service in, if so.
    pub(super) closed: Option<(Reason, String)>,
}

/// What is known of a service in all clusters.
pub(super) enum Observed {
    /// A cluster is not listed yet.
    NotSynced,
    /// A workload that the service follows cannot be read: the service stays as it is.
    WorkloadUnreadable,
    /// Every cluster.
    Clusters(BTreeMap<String, ClusterSnapshot>),
}

impl Services {
    /// Looks at all clusters for one service.
    pub(super) fn observe(&self, key: &Key, service: &MultiClusterService) -> Observed {
        let fleet = &self.base.context.fleet;
        if !fleet.clusters.synced() || !self.workloads.synced() {
            return Observed::NotSynced;
        }
        let mut follows = service.status.iter().flat_map(|status| &status.follows);
        let unread =
            |name: &String| self.workloads.health().unreadable(&Key::new(&key.namespace, name)).is_some();
        if follows.any(unread) {
            return Observed::WorkloadUnreadable;
        }
        let clusters = fleet.clusters.all().into_iter();
        let seen = clusters.map(|(name, _)| self.see(key, service, &name.name).map(|seen| (name.name, seen)));
        seen.collect::<Option<_>>().map_or(Observed::NotSynced, Observed::Clusters)
    }

    fn see(&self, key: &Key, service: &MultiClusterService, name: &str) -> Option<ClusterSnapshot> {
        let fleet = &self.base.context.fleet;
        let reached = fleet.reachability_of::<Service>(name, None, Service::NEEDS, key);
        if reached.joining && (fleet.is_starting() || service.is_in(name)) {
            return None;
        }
        let Reachability { member, is_known, .. } = reached;
        let Some(member) = member else {
            return Some(ClusterSnapshot {
                member: None,
                copy: None,
                ready: 0,
                not_ready: 0,
                changing: false,
                closed: None,
            });
        };
        let changing = self.base.copies.is_changing(&member, key);
        let is_ours =
            |mark: &CopyMeta| mark.is_of(service.uid()) || fleet.is_former(&member, Service::NAME, key, mark);
        let copy = member.index::<Service>().get(key).filter(|copy| is_ours(&copy.meta));
        let mut endpoints: BTreeMap<String, bool> = BTreeMap::new();
        member.index::<EndpointSlice>().for_each_in(&key.namespace, |_, slice| {
            if slice.service.as_ref() == Some(key) {
                for (identity, ready) in &slice.endpoints {
                    *endpoints.entry(identity.clone()).or_default() |= ready;
                }
            }
        });
        let count = |wanted: bool| {
            let count = endpoints.values().filter(|ready| **ready == wanted).count();
            i32::try_from(count).unwrap_or(i32::MAX)
        };
        let (ready, not_ready) = (count(true), count(false));
        let memory = &self.base.copies.memory;
        let outdated = copy.as_ref().is_some_and(|copy| memory.is_outdated(key, name, &copy.meta));
        let changing = changing || outdated;
        let closed = closed(&member, &key.namespace);
        Some(ClusterSnapshot {
            member: Some(member).filter(|_| is_known),
            copy,
            ready,
            not_ready,
            changing,
            closed,
        })
    }
}

fn closed(member: &Member, namespace: &str) -> Option<(Reason, String)> {
    match member.index::<Namespace>().get(&Key::cluster(namespace)).as_deref() {
        Some(true) => None,
        Some(false) => Some((
            Reason::NamespaceClosed,
            format!(
                "its namespace {namespace} has no label {OPT_IN_LABEL}={OPT_IN}: `portolan peer --namespace \
                 {namespace}` opens it"
            ),
        )),
        None => Some((
            Reason::NamespaceNotFound,
            format!(
                "it has no namespace {namespace}: `portolan peer --namespace {namespace}` creates and opens it"
            ),
        )),
    }
}

/// Whether users that come through a Service which is to be taken away are served elsewhere, or nowhere for good.
pub(super) fn answered_elsewhere(following: &Following, seen: &BTreeMap<String, ClusterSnapshot>) -> bool {
    let ready = |cluster: &String| {
        seen.get(cluster).is_some_and(|seen| {
            seen.member.is_some() && seen.copy.is_some() && seen.ready > 0 && !seen.changing
        })
    };
    !following.undecided && (following.wanted.is_empty() || following.wanted.iter().any(ready))
}

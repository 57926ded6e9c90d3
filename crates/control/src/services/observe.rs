//! A service in every cluster of the fleet, as the indexes know it. No requests.

use super::Controller;
use crate::fleet::{Mark, Member, Needs, Reached, ServiceFacts};
use crate::names::{OPT_IN, OPT_IN_LABEL};
use crate::recovery::SERVICE;
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A cluster, as one service sees it.
pub(super) struct Seen {
    /// The member, if it answers.
    pub(super) member: Option<Arc<Member>>,
    /// The Service there that is ours, as last seen.
    pub(super) copy: Option<Arc<ServiceFacts>>,
    /// Ready endpoints, as last seen.
    pub(super) ready: i32,
    /// Endpoints that are not ready, as last seen.
    pub(super) not_ready: i32,
    /// Why the cluster does not let the Service in, if so.
    pub(super) closed: Option<(&'static str, String)>,
}

impl Controller {
    /// Looks at all clusters for one service; nothing if one of them is not known well enough yet.
    pub(super) fn observe(&self, key: &Key, uid: &str) -> Option<BTreeMap<String, Seen>> {
        if !self.fleet.clusters.synced() || !self.workloads.synced() {
            return None;
        }
        // What follows a workload that cannot be read stays as it is.
        let service = self.services.get(key);
        let mut follows =
            service.iter().flat_map(|service| &service.status).flat_map(|status| &status.follows);
        let unread =
            |name: &String| self.workloads.health().unreadable(&Key::new(&key.namespace, name)).is_some();
        if follows.any(unread) {
            return None;
        }
        let clusters = self.fleet.clusters.all();
        clusters
            .into_iter()
            .map(|(name, _)| self.see(key, uid, &name.name).map(|seen| (name.name, seen)))
            .collect()
    }

    fn see(&self, key: &Key, uid: &str, name: &str) -> Option<Seen> {
        let reached = self.fleet.reached(name, None, Needs::Services);
        let is_there = || {
            let service = self.services.get(key);
            let status = service.as_ref().and_then(|service| service.status.as_ref());
            status.is_some_and(|status| status.clusters.iter().any(|each| each.cluster == name))
        };
        if reached.joining && (self.fleet.is_starting() || is_there()) {
            return None;
        }
        let Reached { member, answers, .. } = reached;
        let Some(member) = member else {
            return Some(Seen { member: None, copy: None, ready: 0, not_ready: 0, closed: None });
        };
        let is_ours = |mark: &Mark| mark.is_of(uid) || self.fleet.is_former(&member, SERVICE, key, mark);
        let copy = member.services.get(key).filter(|copy| is_ours(&copy.mark));
        let mut endpoints: BTreeMap<String, bool> = BTreeMap::new();
        member.slices.for_each_in(&key.namespace, |_, slice| {
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
        let closed = closed(&member, &key.namespace);
        Some(Seen { member: Some(member).filter(|_| answers), copy, ready, not_ready, closed })
    }
}

fn closed(member: &Member, namespace: &str) -> Option<(&'static str, String)> {
    match member.namespaces.get(&Key::cluster(namespace)).as_deref() {
        Some(true) => None,
        Some(false) => Some((
            "NamespaceClosed",
            format!(
                "its namespace {namespace} has no label {OPT_IN_LABEL}={OPT_IN}: `portolan peer --namespace \
                 {namespace}` opens it"
            ),
        )),
        None => Some((
            "NamespaceMissing",
            format!(
                "it has no namespace {namespace}: `portolan peer --namespace {namespace}` creates and opens it"
            ),
        )),
    }
}

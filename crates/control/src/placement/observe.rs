//! What a decision is taken on: every cluster of the fleet as the workload sees it. Indexes only, no requests.

use super::facts::DeploymentFacts;
use super::{Placement, Workload, weights};
use crate::capacity::Book;
use crate::copies::Copied;
use crate::driver::Declared;
use crate::fleet::{Fleet, Member, Reachability};
use crate::names::{OPT_IN, OPT_IN_LABEL};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use portolan_api::ForeignCluster;
use portolan_api::Reason;
use portolan_api::placement::PlacementPolicy;
use portolan_core::capacity::{Room, View};
use portolan_core::placement::{Candidate, PlacementRequest, Refusal};
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// More replicas than any workload may have.
const MOST_REPLICAS: u32 = 1_000_000;

/// A cluster, as one workload sees it.
pub(super) struct ClusterSnapshot {
    pub(super) candidate: Candidate,
    /// The member, once it is connected.
    pub(super) member: Option<Arc<Member>>,
    /// The workload's copy there, as last seen.
    pub(super) copy: Option<Arc<DeploymentFacts>>,
    /// Whether the member answers now.
    pub(super) is_known: bool,
    /// Whether the copy may change any moment, or has changed since it was seen: work about it is under way.
    pub(super) changing: bool,
}

impl Placement {
    /// Looks at all clusters for one workload; nothing if a cluster is not known well enough yet to decide.
    pub(super) fn observe(
        &self,
        book: &mut Book,
        key: &Key,
        workload: &Workload,
    ) -> Option<BTreeMap<String, ClusterSnapshot>> {
        if !self.base.context.fleet.clusters.synced() || !book.is_complete() {
            return None;
        }
        let clusters = self.base.context.fleet.clusters.all();
        clusters
            .into_iter()
            .map(|(name, cluster)| Some((name.name, self.see(book, key, workload, &cluster)?)))
            .collect()
    }

    fn see(
        &self,
        book: &mut Book,
        key: &Key,
        workload: &Workload,
        cluster: &ForeignCluster,
    ) -> Option<ClusterSnapshot> {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let reached =
            self.base.context.fleet.reachability_of::<Deployment>(&name, Some(book), Deployment::NEEDS, key);
        // Who has nothing there need not wait until it is known.
        if reached.joining
            && (self.base.context.fleet.is_starting() || book.reserved(&name, workload.uid()) > 0)
        {
            return None;
        }
        let Reachability { member, unknown, is_known, .. } = reached;
        // Asked before the index: what ends in between is seen there.
        let copies = &self.base.copies;
        let running = member.as_ref().is_some_and(|member| copies.is_changing(member, key));
        let copy = member.as_ref().and_then(|member| member.index::<Deployment>().get(key));
        let copy = copy.filter(|copy| copy.meta.is_of(workload.uid()));
        let view = match &workload.shape {
            Ok(shape) => book.view(&name, workload.uid(), shape),
            Err(_) => View { reserved: book.reserved(&name, workload.uid()), ..View::default() },
        };
        let mut candidate =
            candidate(&self.base.context.fleet, cluster, member.as_deref(), unknown, &key.namespace, view);
        let record = workload.object.status.iter().flat_map(|status| &status.placements);
        let record = record
            .filter(|placed| placed.cluster == name)
            .filter_map(|placed| placed.substitute_for.as_ref());
        candidate.stands_in_for = record.flat_map(|names| names.split(',')).map(str::to_owned).collect();
        candidate.traffic = member.as_ref().and_then(|member| self.traffic(key, workload, member));
        candidate.running = match &copy {
            Some(copy) => u32::try_from(copy.replicas).unwrap_or(0),
            None if candidate.silent => candidate.reserved,
            None => 0,
        };
        if workload.is_unlabelled() {
            // The ledger takes its pods for those of others.
            candidate.reserved =
                workload.held().find(|(cluster, _)| *cluster == name).map_or(0, |(_, held)| held);
            candidate.bound = copy.as_ref().map_or(0, |copy| u32::try_from(copy.ready).unwrap_or(0));
        }
        if copy.is_none()
            && is_known
            && member.as_ref().is_some_and(|member| !has_namespace(member, &key.namespace))
        {
            // Whatever was placed there went with its namespace.
            candidate.reserved = 0;
        }
        let outdated = copy.as_ref().is_some_and(|copy| copies.memory.is_outdated(key, &name, &copy.meta));
        if let (Some(member), Some(_)) = (&member, &copy) {
            copies.memory.is_awaited(member, key, true);
        }
        Some(ClusterSnapshot { candidate, member, copy, is_known, changing: running || outdated })
    }

    /// If the record is older than the members, what runs counts as placed: nothing moves because of it.
    pub(super) fn count_what_runs(&self, workload: &Workload, seen: &mut BTreeMap<String, ClusterSnapshot>) {
        if !self.unrecorded(workload, seen).is_empty() {
            for seen in seen.values_mut().filter(|seen| seen.is_known) {
                seen.candidate.reserved = seen.candidate.running;
            }
        }
    }

    /// The replicas that run in clusters which the record does not name, and ran there before this leader.
    pub(super) fn unrecorded(
        &self,
        workload: &Workload,
        seen: &BTreeMap<String, ClusterSnapshot>,
    ) -> BTreeMap<String, u32> {
        let fleet = &self.base.context.fleet;
        let unrecorded = |(name, seen): (&String, &ClusterSnapshot)| {
            let (member, copy) = (seen.member.as_ref()?, seen.copy.as_ref()?);
            let unrecorded = fleet.is_unrecorded(member, Deployment::NAME, &copy.meta, workload.is_in(name));
            unrecorded.then(|| (name.clone(), seen.candidate.running))
        };
        seen.iter().filter_map(unrecorded).collect()
    }

    /// The traffic that the workload's part of its services receives in a member, if the policy asks for it.
    fn traffic(&self, key: &Key, workload: &Workload, member: &Member) -> Option<u64> {
        if workload.object.spec.placement.effective_policy() != PlacementPolicy::TrafficAware {
            return None;
        }
        let now = self.base.context.clock.now();
        let asked = member.asked_traffic.of(key, &workload.labels, now);
        asked.or_else(|| member.traffic.of(key, &workload.labels, now))
    }
}

/// A cluster as it stands before a workload that sees it so.
pub(crate) fn candidate(
    fleet: &Fleet,
    cluster: &ForeignCluster,
    member: Option<&Member>,
    unknown: Option<(Reason, String)>,
    namespace: &str,
    view: View,
) -> Candidate {
    Candidate {
        site: fleet.site(cluster),
        silent: unknown.is_some() || member.is_none(),
        closed: closed(cluster, member, unknown, namespace),
        leaving: cluster.metadata.deletion_timestamp.is_some(),
        // Replicas that find no node yet wait for the nodes that the cluster may still get.
        room: Room { max_replicas: view.max_replicas_if_grown.min(MOST_REPLICAS), ..view.room },
        bound: view.bound,
        reserved: view.reserved,
        ..Candidate::default()
    }
}

/// Why nothing new may go to the cluster, whatever room it has.
fn closed(
    cluster: &ForeignCluster,
    member: Option<&Member>,
    unknown: Option<(Reason, String)>,
    namespace: &str,
) -> Option<Refusal> {
    let refusal = |reason, message| Some(Refusal { reason, message });
    let Some(member) = member else {
        return refusal(
            Reason::NotConnected,
            "it is not connected yet: see the Ready condition of its ForeignCluster".into(),
        );
    };
    if let Some((reason, message)) = unknown {
        return refusal(reason, message);
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return refusal(Reason::Terminating, "its ForeignCluster is being deleted".into());
    }
    if cluster.spec.unschedulable {
        return refusal(Reason::Unschedulable, "its ForeignCluster has spec.unschedulable: true".into());
    }
    match member.index::<Namespace>().get(&Key::cluster(namespace)).as_deref() {
        Some(true) => None,
        Some(false) => refusal(
            Reason::NamespaceClosed,
            format!(
                "its namespace {namespace} has no label {OPT_IN_LABEL}={OPT_IN}: `portolan peer --namespace \
                 {namespace}` opens it"
            ),
        ),
        None => refusal(
            Reason::NamespaceNotFound,
            format!(
                "it has no namespace {namespace}: `portolan peer --namespace {namespace}` creates and opens it"
            ),
        ),
    }
}

fn has_namespace(member: &Member, namespace: &str) -> bool {
    member.index::<Namespace>().get(&Key::cluster(namespace)).is_some()
}

/// What the workload asks for, in the terms of the decision. A template that cannot be read asks for nothing.
///
/// A total is divided by `shares`, if there are any, and otherwise by the weights of the workload.
pub(super) fn wanted(workload: &Workload, shares: BTreeMap<String, u32>) -> Result<PlacementRequest, String> {
    let spec = &workload.object.spec;
    Ok(PlacementRequest {
        shape: workload.shape.clone()?,
        replicas: u32::try_from(spec.replicas).unwrap_or(0),
        mode: spec.replicas_mode,
        weights: if shares.is_empty() { weights(spec) } else { shares },
        placement: spec.placement.clone(),
        bursting: spec.enable_bursting,
    })
}

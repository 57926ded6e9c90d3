//! What a rescheduler knows of a workload, and what it lets the placement do.

use super::observe::{ClusterSnapshot, wanted};
use super::{Placement, Workload};
use crate::driver::Declared;
use crate::fleet::{Member, budgets_of};
use crate::names::WORKLOAD_LABEL;
use crate::reschedule::Rescheduler;
use kube::ResourceExt;
use portolan_api::placement::{PlacementState, PlacementStatus};
use portolan_core::placement::{Candidate, PlacementRequest};
use portolan_core::reschedule::{WorkloadSnapshot, confine, may_leave, stands_in, whereabouts};
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A cluster is not known well enough yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheNotSynced;

impl Placement {
    /// Has replicas that stand in stay where they are, if a rescheduler brings the workload home, except those of a
    /// move. Nothing while it is not known whether one does: before that, all would go home at once.
    pub(super) fn confine(
        &self,
        key: &Key,
        workload: &Workload,
        wanted: &PlacementRequest,
        candidates: &mut [Candidate],
    ) -> Option<()> {
        if let Some(rescheduler) = self.rescheduler(key, workload)? {
            let moving = rescheduler.move_of(key).filter(|moving| moving.is_of(workload.uid()));
            confine(wanted, candidates, placements(workload), moving);
        }
        Some(())
    }

    /// The name of the rescheduler that replicas wait for which only stand in where they are.
    pub(super) fn awaited_rescheduler(&self, key: &Key, workload: &Workload) -> Option<String> {
        let rescheduler = self.rescheduler(key, workload)??;
        let wanted = wanted(workload, self.shares.of(key)?).ok()?;
        self.is_away(workload, &wanted).then(|| rescheduler.name().to_owned())
    }

    fn rescheduler(&self, key: &Key, workload: &Workload) -> Option<Option<Arc<Rescheduler>>> {
        self.base.context.reschedulers.of(key, workload.object.labels())
    }

    /// What is known of a workload that has replicas away from home, or that moves; nothing of any other, nor of one that
    /// is being deleted or cannot be read.
    pub(crate) fn whereabouts(
        &self,
        key: &Key,
        workload: &Workload,
        moves: bool,
    ) -> Result<Option<WorkloadSnapshot>, CacheNotSynced> {
        let shares = self.shares.of(key).ok_or(CacheNotSynced)?;
        let Ok(wanted) = wanted(workload, shares) else { return Ok(None) };
        let leaving = workload.object.metadata.deletion_timestamp.is_some();
        if leaving || !(moves || self.is_away(workload, &wanted)) {
            return Ok(None);
        }
        let seen = self.base.context.fleet.ledger.transact(|book| {
            let mut seen = self.observe(book, key, workload)?;
            self.count_what_runs(workload, &mut seen);
            self.mark_lost(workload, &mut seen);
            self.mark_refusing(key, workload, &mut seen);
            Some(seen)
        });
        let seen = seen.ok_or(CacheNotSynced)?;
        let candidates: Vec<Candidate> = seen.values().map(|each| each.candidate.clone()).collect();
        let placements: Vec<PlacementStatus> =
            placements(workload).iter().map(|placed| with_ready(placed, seen.get(&placed.cluster))).collect();
        let (held, leaving, homes) = whereabouts(&wanted, &candidates, &placements);
        let labels = pod_labels(workload);
        let is_asked = |name: &String| moves || held.get(name).is_some_and(|held| held.away);
        let budgets = seen.iter().filter(|(name, _)| is_asked(name)).filter_map(|(name, seen)| {
            let found = budgets_of(seen.member.as_deref()?, &key.namespace, &labels).ok()?;
            Some((name.clone(), found))
        });
        let budgets = budgets.collect();
        Ok(Some(WorkloadSnapshot {
            uid: workload.uid().to_owned(),
            labels: workload.object.labels().clone(),
            held,
            leaving,
            budgets,
            homes,
            settled: is_settled(workload, &seen),
            paused: workload.object.spec.paused,
        }))
    }

    /// Whether so many replicas of a copy have to stay where they are for now: a move brings them home, and they may not
    /// leave yet.
    pub(super) fn waits_for_leave(
        &self,
        key: &Key,
        workload: &Workload,
        cluster: &str,
        member: Option<&Member>,
        replicas: u32,
    ) -> bool {
        let rescheduler = self.rescheduler(key, workload).flatten();
        let moving = rescheduler.as_ref().and_then(|each| each.move_of(key));
        let moving = moving.filter(|moving| moving.is_of(workload.uid()));
        if moving.is_none() || replicas == 0 {
            return false;
        }
        let labels = pod_labels(workload);
        let budgets = member.and_then(|member| budgets_of(member, &key.namespace, &labels).ok());
        !may_leave(moving, cluster, replicas, budgets.as_ref())
    }

    /// Whether a cluster of the workload only stands in until there is room at home.
    fn is_away(&self, workload: &Workload, wanted: &PlacementRequest) -> bool {
        let clusters = &self.base.context.fleet.clusters;
        let cloud = |name: &str| clusters.get(&Key::cluster(name)).is_some_and(|each| each.spec.cloud);
        placements(workload).iter().any(|placed| stands_in(wanted, placed, cloud(&placed.cluster)))
    }
}

fn placements(workload: &Workload) -> &[PlacementStatus] {
    workload.object.status.as_ref().map(|status| status.placements.as_slice()).unwrap_or_default()
}

/// The labels of the pods in members.
fn pod_labels(workload: &Workload) -> BTreeMap<String, String> {
    let mut labels = workload.labels.clone();
    if !workload.is_unlabelled() {
        labels.insert(WORKLOAD_LABEL.to_owned(), workload.uid().to_owned());
    }
    labels
}

/// The placement with what is ready now. A copy that is being changed may be less any moment: nobody counts on it.
fn with_ready(placed: &PlacementStatus, seen: Option<&ClusterSnapshot>) -> PlacementStatus {
    let ready_replicas = match seen.filter(|seen| seen.is_known) {
        Some(seen) if seen.changing => 0,
        Some(seen) => seen.copy.as_ref().map_or(0, |copy| copy.ready),
        None => placed.ready_replicas,
    };
    PlacementStatus { ready_replicas, ..placed.clone() }
}

/// Whether all copies are as decided and ready, and none is left where nothing was decided. What a silent cluster has is
/// not known.
fn is_settled(workload: &Workload, seen: &BTreeMap<String, ClusterSnapshot>) -> bool {
    let status = workload.object.status.as_ref();
    let decided = status.and_then(|status| status.observed_generation) == workload.object.metadata.generation;
    let as_decided = |(name, seen): (&String, &ClusterSnapshot)| {
        let placed =
            placements(workload).iter().find(|placed| placed.cluster == *name && placed.replicas > 0);
        match (placed, &seen.copy) {
            (None, None) => true,
            (Some(placed), Some(copy)) => {
                !seen.changing
                    && placed.state == PlacementState::Ready
                    && copy.replicas == placed.replicas
                    && copy.rolled_out(placed.replicas)
            }
            (None, Some(_)) | (Some(_), None) => false,
        }
    };
    decided && seen.iter().filter(|(_, seen)| seen.is_known).all(as_decided)
}

//! The copies of a workload as the way to a decision sees them.

use super::facts::DeploymentFacts;
use super::observe::ClusterSnapshot;
use super::{Placement, Workload};
use portolan_api::placement::PlacementStatus;
use portolan_core::placement::{CopySnapshot, Decision};
use portolan_runtime::Key;
use std::collections::BTreeMap;

impl Placement {
    /// What runs of the workload in each cluster. Of a silent cluster, the numbers last known count.
    pub(super) fn snapshots(
        &self,
        key: &Key,
        workload: &Workload,
        decision: &Decision,
        seen: &BTreeMap<String, ClusterSnapshot>,
    ) -> BTreeMap<String, CopySnapshot> {
        let recorded = workload.object.status.iter().flat_map(|status| &status.placements);
        let recorded: BTreeMap<&str, &PlacementStatus> =
            recorded.map(|placed| (placed.cluster.as_str(), placed)).collect();
        let stays = |cluster: &str, seen: &ClusterSnapshot, copy: &DeploymentFacts| {
            let decided = decision.placed.get(cluster).map_or(0, |placed| placed.replicas);
            let leaving = count(copy.replicas).saturating_sub(decided);
            self.waits_for_leave(key, workload, cluster, seen.member.as_deref(), leaving)
        };
        let snapshot =
            |cluster: &String, seen: &ClusterSnapshot| match (&seen.copy, recorded.get(cluster.as_str())) {
                (copy, record) if !seen.is_known => {
                    let asked =
                        copy.as_ref().map(|copy| copy.replicas).or(record.map(|record| record.replicas));
                    Some(CopySnapshot {
                        replicas: count(asked.unwrap_or(0)),
                        ready: count(record.map_or(0, |record| record.ready_replicas)),
                        ..CopySnapshot::default()
                    })
                }
                // A copy that is being changed may be less any moment: nobody counts on what is ready there.
                (Some(copy), _) => Some(CopySnapshot {
                    replicas: count(copy.replicas),
                    ready: if seen.changing { 0 } else { count(copy.ready) },
                    lately_ready: self.lately_ready.greatest(key, cluster, copy),
                    rolling: !copy.settled || copy.outdated > 0,
                    current: !seen.changing
                        && copy.settled
                        && self.is_current(workload, decision, cluster, copy),
                    stays: stays(cluster, seen, copy),
                    reachable: true,
                }),
                (None, _) => None,
            };
        let all = seen.iter();
        all.filter_map(|(cluster, seen)| Some((cluster.clone(), snapshot(cluster, seen)?))).collect()
    }

    /// Whether a copy is of the present template: as it was applied with the replicas that it has or is to have.
    pub(super) fn is_current(
        &self,
        workload: &Workload,
        decision: &Decision,
        cluster: &str,
        copy: &DeploymentFacts,
    ) -> bool {
        let Some(applied) = &copy.meta.digest else { return false };
        let target = decision.placed.get(cluster).map(|placed| placed.replicas);
        let recorded = workload.held().find(|(name, _)| *name == cluster).map(|(_, replicas)| replicas);
        let asked = [Some(count(copy.replicas)), target, recorded];
        asked.into_iter().flatten().any(|replicas| self.digest(workload, replicas) == *applied)
    }
}

fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

//! What a cluster holds that has been silent for too long is placed elsewhere.
//!
//! How long it has been silent is told by the recorded transition of its `Reachable` condition, so that a restart in
//! the middle does not start the time anew. Once replaced, it stays replaced until it answers again, whatever becomes
//! of the policy meanwhile: going back on it would take away copies that serve.

use super::observe::Seen;
use super::{Placement, Workload};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::placement::{OnUnreachable, PlacementState, PlacementStatus};
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::time::Duration;

impl Placement {
    /// Marks the clusters whose replicas are to be replaced; answers when the next one will be due.
    pub(super) fn mark_lost(
        &self,
        workload: &Workload,
        seen: &mut BTreeMap<String, Seen>,
    ) -> Option<Duration> {
        let mut due: Option<Duration> = None;
        let recorded = workload.object.status.iter().flat_map(|status| &status.placements);
        let recorded: BTreeMap<&str, &PlacementStatus> =
            recorded.map(|placed| (placed.cluster.as_str(), placed)).collect();
        for (name, seen) in seen.iter_mut() {
            let Some(member) = seen.member.as_ref().filter(|member| member.reach.silence().is_some()) else {
                continue;
            };
            let Some(record) = recorded.get(name.as_str()) else { continue };
            let left = match is_replaced(record) {
                true => Some(Duration::ZERO),
                false => self.left(workload, &member.name),
            };
            match left {
                Some(Duration::ZERO) => {
                    seen.candidate.lost = true;
                    seen.candidate.reserved = 0;
                    seen.candidate.running = 0;
                }
                Some(left) => due = Some(due.map_or(left, |due| due.min(left))),
                None => {}
            }
        }
        due
    }

    /// How long a silent cluster's replicas are still waited for; nothing if for ever.
    fn left(&self, workload: &Workload, cluster: &str) -> Option<Duration> {
        let placement = &workload.object.spec.placement;
        let patience =
            placement.replace_after.filter(|_| placement.on_unreachable == OnUnreachable::ReplaceAfter)?;
        let foreign = self.base.context.fleet.clusters.get(&Key::cluster(cluster))?;
        let status = foreign.status.as_ref()?;
        let reachable = conditions::find(&status.conditions, ConditionType::Reachable)?;
        if reachable.status == "True" {
            // The silence is not on record yet; its record brings us back.
            return None;
        }
        let silent = self.base.context.clock.now().duration_since(reachable.last_transition_time.0);
        let silent = Duration::try_from(silent).unwrap_or(Duration::ZERO);
        Some(patience.0.saturating_sub(silent))
    }
}

/// Whether the replicas of a silent cluster were given to others already.
pub(super) fn is_replaced(record: &PlacementStatus) -> bool {
    record.replicas == 0 && record.state == PlacementState::Unknown
}

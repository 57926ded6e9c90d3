//! What a cluster holds that has been silent for too long is placed elsewhere.
//!
//! How long it has been silent is on record in the conditions of its ForeignCluster, so that a restart in the middle
//! does not start the time anew; what silence is, and since when, is told by [`Silence`]. While so many clusters are
//! silent that the hub is probably cut off itself, nothing is replaced. Once replaced, it stays replaced until it answers
//! again, whatever becomes of the policy meanwhile: going back on it would take away copies that serve.

use super::observe::ClusterSnapshot;
use super::{Placement, Workload};
use crate::fleet::Silence;
use portolan_api::placement::{OnUnreachable, PlacementState, PlacementStatus};
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::time::Duration;

impl Placement {
    /// Marks the clusters whose replicas are to be replaced; answers when the next one will be due.
    pub(super) fn mark_lost(
        &self,
        workload: &Workload,
        seen: &mut BTreeMap<String, ClusterSnapshot>,
    ) -> Option<Duration> {
        let mut due: Option<Duration> = None;
        let recorded = workload.object.status.iter().flat_map(|status| &status.placements);
        let recorded: BTreeMap<&str, &PlacementStatus> =
            recorded.map(|placed| (placed.cluster.as_str(), placed)).collect();
        for (name, seen) in seen.iter_mut() {
            let Some(record) = recorded.get(name.as_str()) else { continue };
            if !self.base.context.fleet.is_silent(name) {
                continue;
            }
            let left = match is_replaced(record) {
                true => Some(Duration::ZERO),
                false => self.left(workload, name),
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
        let context = &self.base.context;
        let silence: Silence = context.fleet.silence(&foreign, context.clock.now());
        silence.left(patience.0)
    }

    /// Why nothing of the silent clusters is replaced although the workload asks for it, if so.
    pub(super) fn doubts(
        &self,
        workload: &Workload,
        seen: &BTreeMap<String, ClusterSnapshot>,
    ) -> Option<String> {
        let placement = &workload.object.spec.placement;
        let held = |cluster: &str| workload.held().any(|(name, replicas)| name == cluster && replicas > 0);
        let silent = seen.iter().any(|(name, seen)| !seen.is_known && held(name));
        if placement.on_unreachable != OnUnreachable::ReplaceAfter || !silent {
            return None;
        }
        let doubt = self.base.context.fleet.doubt()?;
        seen.keys().any(|name| held(name) && doubt.is_about(name)).then(|| doubt.message())
    }
}

/// Whether the replicas of a silent cluster were given to others already.
pub(super) fn is_replaced(record: &PlacementStatus) -> bool {
    record.replicas == 0 && record.state == PlacementState::Unknown
}

//! What of a new status has to be told at once, and what may wait until there is more to tell.
//!
//! Where replicas go is written before anything is done about it. How far their copies have come changes with every
//! pod; it is told within a moment, and in one write with what else has changed by then.

use super::{Placement, Workload};
use portolan_api::MultiClusterDeploymentStatus;
use portolan_api::placement::{PlacementState, PlacementStatus};
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How far copies have come is told within this time.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

/// How far copies have come is told within this time, however much there is to do.
const WRITTEN_AT_LAST: Duration = Duration::from_secs(30);

/// By workload: since when its status does not say how far its copies have come.
#[derive(Debug, Default)]
pub(super) struct Unwritten(Mutex<BTreeMap<Key, Instant>>);

impl Unwritten {
    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl Placement {
    /// How much longer a new status may wait, if it tells no more than how far copies have come.
    pub(super) fn may_wait(
        &self,
        key: &Key,
        workload: &Workload,
        new: &MultiClusterDeploymentStatus,
    ) -> Option<Duration> {
        let mut unwritten = self.unwritten.0.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = |old: &MultiClusterDeploymentStatus| old != new && only_progress(old, new);
        if !workload.object.status.as_ref().is_some_and(progress) {
            unwritten.remove(key);
            return None;
        }
        let since = *unwritten.entry(key.clone()).or_insert_with(Instant::now);
        let within = self.base.queue.behind().clamp(WRITTEN_WITHIN, WRITTEN_AT_LAST);
        let left = within.saturating_sub(since.elapsed());
        if left.is_zero() {
            unwritten.remove(key);
            return None;
        }
        Some(left)
    }
}

/// Whether nothing but this has changed: copies have come further. Every decision and every condition is the same, and
/// no number has become less, since others may count on it when a cluster falls silent.
fn only_progress(old: &MultiClusterDeploymentStatus, new: &MultiClusterDeploymentStatus) -> bool {
    let moving = |state: PlacementState| {
        matches!(state, PlacementState::Reserved | PlacementState::Applied | PlacementState::Ready)
    };
    let mut as_before = MultiClusterDeploymentStatus {
        ready_replicas: old.ready_replicas,
        updated_replicas: old.updated_replicas,
        available_replicas: old.available_replicas,
        ready_summary: old.ready_summary.clone(),
        ..new.clone()
    };
    for (before, now) in old.placements.iter().zip(&mut as_before.placements) {
        let further = now.ready_replicas >= before.ready_replicas
            && now.updated_replicas >= before.updated_replicas
            && now.available_replicas >= before.available_replicas;
        if !further || (now.state != before.state && !(moving(now.state) && moving(before.state))) {
            return false;
        }
        *now = PlacementStatus {
            cluster: now.cluster.clone(),
            replicas: now.replicas,
            staying_replicas: now.staying_replicas,
            cause: now.cause,
            substitute_for: now.substitute_for.clone(),
            reason: now.reason.clone(),
            message: now.message.clone(),
            ..before.clone()
        };
    }
    for (before, now) in old.conditions.iter().zip(&mut as_before.conditions) {
        now.message.clone_from(&before.message);
    }
    as_before == *old
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_api::Reason;
    use portolan_api::conditions::{self, ConditionType, Finding};

    fn status(state: PlacementState, ready: i32, is_ready: bool) -> MultiClusterDeploymentStatus {
        let placement = PlacementStatus {
            cluster: "a".into(),
            replicas: 2,
            ready_replicas: ready,
            state,
            ..PlacementStatus::default()
        };
        let mut status = MultiClusterDeploymentStatus {
            replicas: 2,
            ready_replicas: ready,
            placements: vec![placement],
            ..MultiClusterDeploymentStatus::default()
        };
        let (reason, message) =
            (if is_ready { Reason::Ready } else { Reason::Progressing }, format!("{ready} of 2"));
        let finding = Finding::new(ConditionType::Ready, is_ready, reason, message);
        conditions::set(&mut status.conditions, finding, Some(1), jiff::Timestamp::UNIX_EPOCH);
        status
    }

    #[test]
    fn progress_may_wait_and_nothing_else() {
        use PlacementState::{Applied, Failed, Ready, Reserved};
        let reserved = status(Reserved, 0, false);
        assert!(only_progress(&reserved, &status(Applied, 0, false)));
        assert!(only_progress(&reserved, &status(Applied, 1, false)));
        assert!(!only_progress(&status(Applied, 1, false), &status(Applied, 0, false)), "less is ready");
        assert!(!only_progress(&status(Applied, 1, false), &status(Ready, 2, true)), "it is ready");
        assert!(!only_progress(&reserved, &status(Failed, 0, false)), "it was refused");
        let mut elsewhere = reserved.clone();
        elsewhere.placements[0].cluster = "b".into();
        assert!(!only_progress(&reserved, &elsewhere));
        let mut more = reserved.clone();
        more.placements.extend(elsewhere.placements.clone());
        assert!(!only_progress(&reserved, &more) && !only_progress(&more, &reserved));
        let mut waiting = reserved.clone();
        waiting.pending_replicas = 1;
        assert!(!only_progress(&reserved, &waiting));
    }
}

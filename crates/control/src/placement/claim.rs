//! A new leader makes all workloads its own before it decides anything.

use super::reconcile::lock;
use super::{Controller, Workload};
use portolan_api::MultiClusterDeploymentStatus;
use portolan_api::placement::Reservation;
use portolan_runtime::{CallError, Key, Next, Weight, chain};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

/// How soon to look again while workloads are still being claimed.
const CLAIMING: Duration = Duration::from_millis(250);

/// The workloads that still carry an older epoch; nothing is known before they have been listed.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<Option<Open>>);

#[derive(Debug, Default)]
struct Open {
    unclaimed: BTreeSet<Key>,
    /// Those among them whose status the hub refuses whoever writes it. Nobody can decide about them, an older leader
    /// neither: the others need not wait for them.
    refused: BTreeSet<Key>,
}

impl Controller {
    /// Claims a workload for this leader's term, if it was not; answers when to look again if nothing may be decided
    /// yet.
    pub(super) async fn claim(&self, key: &Key) -> Result<Option<Next>, CallError> {
        let Some(epoch) = self.term.epoch() else { return Ok(None) };
        let workload = self.workloads.get(key);
        let recorded = workload.as_ref().map(|workload| workload.epoch());
        if recorded.is_some_and(|recorded| recorded > epoch) {
            self.term.outranked(recorded.unwrap_or_default());
            return Ok(Some(Next::Done));
        }
        let (claimed, all) = {
            let mut claims = lock(&self.claims.0);
            let open = claims.get_or_insert_with(|| {
                let all = self.workloads.all().into_iter();
                let unclaimed = all.filter(|(_, each)| each.epoch() < epoch).map(|(key, _)| key).collect();
                Open { unclaimed, refused: BTreeSet::new() }
            });
            if recorded.is_none_or(|recorded| recorded == epoch) {
                open.unclaimed.remove(key);
                open.refused.remove(key);
            }
            (!open.unclaimed.contains(key), open.unclaimed.len() == open.refused.len())
        };
        match (claimed, workload) {
            (true, _) if all => Ok(None),
            (false, Some(workload)) => {
                let mut status = workload.object.status.clone().unwrap_or_default();
                status.reservation = self.reservation(&workload, &status);
                // The new version comes through the watch, and brings us back.
                match self.write_status(&workload, status).await {
                    Err(error) if is_refused(&error) => {
                        self.leave_out(key, &workload, &error).await;
                        Err(error)
                    }
                    other => other.map(|_| Some(Next::After(CLAIMING))),
                }
            }
            _ => Ok(Some(Next::After(CLAIMING))),
        }
    }

    /// The others do not wait any longer for a workload that cannot be claimed; it is tried again on its own.
    async fn leave_out(&self, key: &Key, workload: &Workload, error: &CallError) {
        let news = lock(&self.claims.0).as_mut().is_some_and(|open| open.refused.insert(key.clone()));
        if news {
            let why = chain(error);
            tracing::error!(workload = %key, why, "the hub refuses its status: nothing is decided about it until it is mended");
            let note = format!("nothing is decided about it, since the hub refuses its status: {why}");
            self.recorder.record(&workload.object, Weight::Warning, "StatusRefused", &note).await;
        }
    }

    /// Who stands for what a status says: this leader, since the placements last changed hands or places.
    pub(super) fn reservation(
        &self,
        workload: &Workload,
        new: &MultiClusterDeploymentStatus,
    ) -> Option<Reservation> {
        let old = workload.object.status.as_ref();
        let last = old.and_then(|status| status.reservation.clone());
        let epoch = self.term.epoch().unwrap_or_else(|| workload.epoch());
        let holder = self.term.holder();
        let places = |status: &MultiClusterDeploymentStatus| {
            let each = status.placements.iter().map(|placed| (placed.cluster.clone(), placed.replicas));
            each.collect::<Vec<_>>()
        };
        let same = last.as_ref().is_some_and(|last| last.epoch == epoch && last.holder == holder)
            && old.map(places) == Some(places(new));
        if same {
            return last;
        }
        Some(Reservation { epoch, holder: holder.to_owned(), time: Some(self.clock.time()) })
    }
}

/// Whether the hub finds the object itself invalid, whoever writes it.
fn is_refused(error: &CallError) -> bool {
    matches!(error.code(), Some(400 | 422))
}

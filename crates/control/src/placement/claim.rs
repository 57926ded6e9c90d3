//! A new leader makes all workloads its own before it decides anything.

use super::{Controller, KIND, Workload};
use crate::claims::{Step, reservation};
use portolan_api::MultiClusterDeploymentStatus;
use portolan_api::placement::Reservation;
use portolan_runtime::{CallError, Key, Next};

impl Controller {
    /// Claims a workload for this leader's term, if it was not; answers when to look again if nothing may be decided
    /// yet.
    pub(super) async fn claim(&self, key: &Key) -> Result<Option<Next>, CallError> {
        let workload = self.workloads.get(key);
        let recorded = workload.as_ref().map(|workload| workload.claimant());
        match (self.claims.step(KIND, key, recorded).await, workload) {
            (Step::Claim, Some(workload)) => {
                let mut status = workload.object.status.clone().unwrap_or_default();
                status.reservation = self.reservation(&workload, &status);
                let written = self.write_status(&workload, status).await.map(|_| ());
                self.claims.written(KIND, &workload.object, &self.recorder, written).await.map(Some)
            }
            (Step::Wait(next), _) => Ok(Some(next)),
            _ => Ok(None),
        }
    }

    /// Who stands for what a status says: this leader, since the placements last changed hands or places.
    pub(super) fn reservation(
        &self,
        workload: &Workload,
        new: &MultiClusterDeploymentStatus,
    ) -> Option<Reservation> {
        let old = workload.object.status.as_ref();
        let places = |status: &MultiClusterDeploymentStatus| {
            let each = status.placements.iter().map(|placed| (placed.cluster.clone(), placed.replicas));
            each.collect::<Vec<_>>()
        };
        let last = old.and_then(|status| status.reservation.as_ref());
        Some(reservation(&self.term, &self.clock, last, old.map(places) != Some(places(new))))
    }
}

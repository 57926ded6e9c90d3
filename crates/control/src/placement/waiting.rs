//! What a cloud cluster would help: replicas that fit nowhere, for the CloudProvisioners.

use super::{Placement, Workload};
use crate::driver::Declared;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ObjectMeta;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::placement::PlacementStatus;
use portolan_core::provision::Waiting;
use portolan_runtime::Key;

impl Placement {
    /// Calls this whenever a workload has changed.
    pub(crate) fn on_change(&self, listener: impl Fn(&Key) + Send + 'static) {
        self.base.on_change(listener);
    }

    /// The workloads for which the last decision asked for a cloud cluster; `refused` says whether the clusters that there
    /// are refuse it for another reason than room.
    pub(crate) fn waiting(&self, refused: impl Fn(&[(&str, Reason)]) -> bool) -> Vec<(Key, Waiting)> {
        let mut all = Vec::new();
        self.base.objects.for_each(|key, workload| {
            all.extend(workload.waiting(key, &refused).map(|waiting| (key.clone(), waiting)));
        });
        all
    }
}

impl Workload {
    fn waiting(&self, key: &Key, refused: impl Fn(&[(&str, Reason)]) -> bool) -> Option<Waiting> {
        let status = self.object.status.as_ref().filter(|_| self.to_cloud)?;
        let replicas = without_room(status.pending_replicas, &status.placements);
        let reasons: Vec<(&str, Reason)> = status
            .pending
            .iter()
            .filter_map(|each| Some((each.cluster.as_str(), Reason::parse(&each.reason)?)))
            .collect();
        Some(Waiting {
            workload: format!("{}/{key}", Self::KIND),
            shape: self.shape.as_ref().ok()?.clone(),
            replicas: u32::try_from(replicas).unwrap_or(0),
            to_cloud: !refused(&reasons),
            near: self.object.spec.placement.locations.first().cloned(),
        })
    }
}

/// Whether the last decision about an object asked for a cloud cluster, and the object is there to stay.
pub(crate) fn asks_for_cloud(meta: &ObjectMeta, conditions: Option<&Vec<Condition>>) -> bool {
    let asks = |conditions: &Vec<Condition>| conditions::is_true(conditions, ConditionType::ToCloud);
    meta.deletion_timestamp.is_none() && conditions.is_some_and(asks)
}

/// How many replicas have no cluster, or only stay where they are for want of another one.
fn without_room(pending: i32, placements: &[PlacementStatus]) -> i32 {
    placements.iter().map(|placed| placed.staying_replicas).fold(pending, i32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_replicas_that_stay_count_of_a_cluster_that_keeps_some() {
        let home = PlacementStatus {
            cluster: "home".into(),
            replicas: 100,
            staying_replicas: 1,
            reason: Some(Reason::NoRoom.into()),
            ..PlacementStatus::default()
        };
        assert_eq!(without_room(2, &[home]), 3);
    }
}

//! What waits for the cloud.

use super::Provision;
use portolan_api::{CloudProvisioner, Reason};
use portolan_core::provision::Waiting;
use portolan_runtime::Key;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Provision {
    /// The workloads whose last decision asked for a cloud cluster.
    ///
    /// One that every cloud cluster refuses for another reason than room is left out: more nodes would not help it.
    pub(super) fn waiting(&self, provisioners: &[Arc<CloudProvisioner>]) -> Vec<(Key, Waiting)> {
        let names: BTreeSet<&str> =
            provisioners.iter().map(|each| each.spec.cloud_cluster_name.as_str()).collect();
        let refused = |reasons: &[(&str, Reason)]| {
            let refuses =
                |name: &&str| reasons.iter().any(|(cluster, reason)| cluster == name && is_lasting(*reason));
            !names.is_empty() && names.iter().all(refuses)
        };
        let mut all = self.placement.waiting(refused);
        all.extend(self.jobs.waiting(refused));
        all.retain(|(_, waiting)| waiting.to_cloud && waiting.replicas > 0);
        all
    }
}

/// Whether a cluster that gave this reason would also refuse the workload if it had more nodes.
fn is_lasting(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NotSelected
            | Reason::TaintNotTolerated
            | Reason::LatencyExceeded
            | Reason::Refused
            | Reason::NameTaken
    )
}

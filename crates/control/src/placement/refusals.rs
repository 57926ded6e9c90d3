//! What members refuse of a workload.

use super::observe::ClusterSnapshot;
use super::{Placement, Workload};
use crate::copies::Failure;
use portolan_core::placement::Refusal;
use portolan_runtime::Key;
use std::collections::BTreeMap;

impl Placement {
    /// Tells the decision which clusters refuse the workload as it is now: others are tried first. A cluster that was
    /// closed is another one when it opens.
    pub(super) fn mark_refusing(
        &self,
        key: &Key,
        workload: &Workload,
        seen: &mut BTreeMap<String, ClusterSnapshot>,
    ) {
        let memory = &self.base.copies.memory;
        for (cluster, failure) in memory.failures(key) {
            let Some(seen) = seen.get_mut(&cluster) else { continue };
            if seen.candidate.closed.is_some() {
                if !seen.candidate.silent && !failure.while_closed {
                    memory.set_closed(key, &cluster);
                }
            } else if failure.while_closed {
                memory.forgive_in(key, &cluster);
            } else if failure.keeps_away() && failure.template == self.template(workload) {
                let Failure { reason, message, .. } = failure;
                seen.candidate.refused = Some(Refusal { reason, message });
            }
        }
    }

    /// The failures to report: those of what would be applied now.
    pub(super) fn failures(&self, key: &Key, workload: &Workload) -> BTreeMap<String, Failure> {
        let mut failures = self.base.copies.memory.failures(key);
        if !failures.is_empty() {
            let template = self.template(workload);
            failures.retain(|_, failure| failure.template == template && failure.is_reported());
        }
        failures
    }
}

/// Tells the decision which clusters would refuse the workload, as they said when it was tried there.
pub(super) fn suppose_refusing(
    seen: &mut BTreeMap<String, ClusterSnapshot>,
    refusing: &BTreeMap<String, Refusal>,
) {
    for (cluster, refusal) in refusing {
        if let Some(seen) = seen.get_mut(cluster).filter(|seen| seen.candidate.closed.is_none()) {
            seen.candidate.refused.get_or_insert_with(|| refusal.clone());
        }
    }
}

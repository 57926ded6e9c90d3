//! What members refuse of a workload.

use super::observe::ClusterSnapshot;
use super::{Placement, Workload};
use crate::copies::{Failure, Round};
use crate::fleet::Member;
use portolan_core::placement::Refusal;
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

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
            } else if (failure.keeps_away()
                || failure.is_doubtful() && is_served_without(workload, &cluster, seen))
                && failure.template == self.template(workload)
            {
                let Failure { reason, message, .. } = failure;
                seen.candidate.refused = Some(Refusal { reason, message });
            }
        }
    }

    /// Whether a cluster did not take the workload as it is now, some time ago, and is left out only since nobody has asked it
    /// since.
    pub(super) fn is_to_be_probed(
        &self,
        key: &Key,
        template: &str,
        cluster: &str,
        seen: &ClusterSnapshot,
    ) -> bool {
        let failure = self.base.copies.memory.failure(key, cluster);
        seen.candidate.refused.is_some()
            && failure.is_some_and(|failure| failure.is_doubtful() && failure.template == template)
    }

    /// Has a member say whether it takes the workload by now: it would be given back what others serve meanwhile.
    pub(super) fn submit_probe(
        self: &Arc<Self>,
        key: &Key,
        workload: &Arc<Workload>,
        member: &Arc<Member>,
        template: &str,
        round: Round,
    ) {
        let (placement, name) = (Arc::clone(self), key.clone());
        let (workload, there) = (Arc::clone(workload), Arc::clone(member));
        self.base.copies.submit(round, member, key, template, move || async move {
            let desired = placement.desired(&workload, 1);
            placement.base.copies.probe(&there, &name, &desired).await
        });
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

/// Whether the workload has nothing in a cluster, and something elsewhere. Then a refusal there is not put to the test with
/// what others serve: it would go there and back each time.
fn is_served_without(workload: &Workload, cluster: &str, seen: &ClusterSnapshot) -> bool {
    let placement = &workload.object.spec.placement;
    let overflows = placement.enable_substitution || workload.object.spec.enable_bursting;
    let wanted =
        placement.locations.is_empty() || overflows || placement.locations.iter().any(|name| name == cluster);
    let (mut here, mut elsewhere) = (0, 0);
    for (name, held) in workload.held() {
        *(if name == cluster { &mut here } else { &mut elsewhere }) += held;
    }
    wanted && seen.copy.is_none() && here == 0 && elsewhere > 0
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

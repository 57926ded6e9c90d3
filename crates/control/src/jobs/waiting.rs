//! What a cloud cluster would help: completions that fit nowhere, for the CloudProvisioners.

use super::{DeclaredJob, Jobs, record};
use crate::driver::Declared;
use portolan_api::Reason;
use portolan_core::provision::Waiting;
use portolan_runtime::Key;

impl Jobs {
    /// Calls this whenever a job has changed.
    pub(crate) fn on_change(&self, listener: impl Fn(&Key) + Send + 'static) {
        self.base.on_change(listener);
    }

    /// The jobs for which the last decision asked for a cloud cluster; `refused` says whether the clusters that there are
    /// refuse it for another reason than room.
    pub(crate) fn waiting(&self, refused: impl Fn(&[(&str, Reason)]) -> bool) -> Vec<(Key, Waiting)> {
        let mut all = Vec::new();
        self.base.objects.for_each(|key, job| {
            all.extend(job.waiting(key, &refused).map(|waiting| (key.clone(), waiting)));
        });
        all
    }
}

impl DeclaredJob {
    fn waiting(&self, key: &Key, refused: impl Fn(&[(&str, Reason)]) -> bool) -> Option<Waiting> {
        let status = self.object.status.as_ref().filter(|_| self.to_cloud)?;
        let recorded = record::record(Some(status));
        let used = recorded.parts.values().fold(0u32, |used, part| used.saturating_add(part.in_use()));
        let most = record::count(self.object.spec.parallelism).saturating_mul(self.times());
        let pending = u32::try_from(status.pending_completions).unwrap_or(0);
        let reasons: Vec<(&str, Reason)> = status
            .pending
            .iter()
            .filter_map(|each| Some((each.cluster.as_str(), Reason::parse(&each.reason)?)))
            .collect();
        Some(Waiting {
            workload: format!("{}/{key}", Self::KIND),
            shape: self.shape.as_ref().ok()?.clone(),
            // More pods than may run at the same time need no room.
            replicas: pending.min(most.saturating_sub(used)),
            to_cloud: !refused(&reasons),
            near: self.object.spec.placement.locations.first().cloned(),
        })
    }
}

//! What members refuse, and for how long they are not asked again.

use super::apply::Outcome;
use super::memory::{Failure, FailureKind};
use super::observe::Seen;
use super::{Controller, Workload};
use portolan_api::Reason;
use portolan_core::placement::Refusal;
use portolan_runtime::{Key, chain, foreign_text};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;
use tokio::time::Instant;

/// What a member refused is tried again after this long: somebody may have mended it there. Each time it refuses again,
/// after twice as long.
const REFUSAL_HOLDS: Duration = Duration::from_secs(30);

/// It is tried again after this long at the latest.
const REFUSAL_HOLDS_AT_MOST: Duration = Duration::from_secs(120);

impl Controller {
    /// Tells the decision which clusters refuse the workload as it is now: others are tried first. A cluster that was
    /// closed is another one when it opens.
    pub(super) fn mark_refusing(&self, key: &Key, workload: &Workload, seen: &mut BTreeMap<String, Seen>) {
        for (cluster, failure) in self.memory.failures.of(key) {
            let Some(seen) = seen.get_mut(&cluster) else { continue };
            if seen.candidate.closed.is_some() {
                if !seen.candidate.silent && !failure.while_closed {
                    self.memory.failures.set(key, &cluster, Failure { while_closed: true, ..failure });
                }
            } else if failure.while_closed {
                self.memory.failures.remove(key, &cluster);
            } else if failure.keeps_away() && failure.template == self.digest(workload, 1) {
                let Failure { reason, message, .. } = failure;
                seen.candidate.refused = Some(Refusal { reason, message });
            }
        }
    }

    /// The failures to tell: those of what would be applied now.
    pub(super) fn failures(&self, key: &Key, workload: &Workload) -> BTreeMap<String, Failure> {
        let mut failures = self.memory.failures.of(key);
        if !failures.is_empty() {
            let template = self.digest(workload, 1);
            failures.retain(|_, failure| failure.template == template && failure.is_told());
        }
        failures
    }

    /// When the first of the members that refused the workload is tried again.
    pub(super) fn refusals_end(&self, key: &Key) -> Option<Duration> {
        let failures = self.memory.failures.of(key).into_values();
        let refusals = failures.filter(|failure| failure.kind != FailureKind::MemberError);
        // One that has ended was tried again, or its cluster is not to hold anything.
        refusals.map(|failure| failure.left()).filter(|left| !left.is_zero()).min()
    }

    /// Remembers that what is to be applied was refused.
    pub(super) fn refused(
        &self,
        key: &Key,
        cluster: &str,
        workload: &Workload,
        kind: FailureKind,
        (reason, message): (Reason, String),
    ) -> Outcome {
        tracing::warn!(cluster, workload = %key, %reason, message = foreign_text(&message), "a member refuses a workload");
        let template = self.digest(workload, 1);
        let before = self.memory.failures.get(key, cluster);
        let again = before.filter(|before| before.kind == kind && before.template == template);
        let holds = again.map_or(REFUSAL_HOLDS, |before| (before.holds * 2).min(REFUSAL_HOLDS_AT_MOST));
        let (message, at) = (foreign_text(&message), Instant::now());
        let failure = Failure { template, kind, reason, message, at, holds, times: 1, while_closed: false };
        self.memory.failures.set(key, cluster, failure);
        Outcome::Refused
    }

    /// Forgets that a member could not be asked, or failed.
    pub(super) fn answered(&self, key: &Key, cluster: &str) {
        let failure = self.memory.failures.get(key, cluster);
        if failure.is_some_and(|failure| failure.kind == FailureKind::MemberError) {
            self.memory.failures.remove(key, cluster);
        }
    }

    /// Remembers that a member could not be asked, or failed. It is tried again with all else that is due.
    pub(super) fn failing(
        &self,
        key: &Key,
        cluster: &str,
        workload: &Workload,
        error: &(dyn Error + 'static),
    ) {
        let (template, kind) = (self.digest(workload, 1), FailureKind::MemberError);
        let before = self.memory.failures.get(key, cluster);
        // A refusal that still holds says more.
        if before.as_ref().is_some_and(|before| !before.left().is_zero()) {
            return;
        }
        let again = before.filter(|before| before.kind == kind && before.template == template);
        let times = again.map_or(1, |before| before.times.saturating_add(1));
        let (message, at) = (foreign_text(&chain(error)), Instant::now());
        let (reason, holds) = (Reason::MemberError, Duration::ZERO);
        let failure = Failure { template, kind, reason, message, at, holds, times, while_closed: false };
        self.memory.failures.set(key, cluster, failure);
    }
}

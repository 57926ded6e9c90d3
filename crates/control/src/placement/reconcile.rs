//! One look at one workload.

use super::apply::REFUSAL_HOLDS;
use super::observe::{Seen, wanted};
use super::status::{status, undecided};
use super::{Controller, Workload};
use crate::copy;
use crate::names::FINALIZER;
use portolan_api::{MultiClusterDeployment, MultiClusterDeploymentStatus};
use portolan_core::placement::{Decision, Placed, decide};
use portolan_runtime::{CallError, Key, Next, Weight};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How soon to look again while a cluster is still being got to know.
const GETTING_TO_KNOW: Duration = Duration::from_millis(250);

/// What this process remembers of what it did in members; all of it can be found out again.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By cluster and workload: what was applied, and the generation that made.
    pub(super) applied: Mutex<BTreeMap<(String, Key), Applied>>,
    /// By cluster and workload: what was refused for good.
    pub(super) failures: Mutex<BTreeMap<(String, Key), Failure>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) digest: String,
    pub(super) generation: i64,
    pub(super) at: Instant,
}

/// A member refused what was to be applied, and will again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) digest: String,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) at: Instant,
}

/// What came of deciding.
enum Decided {
    /// Not enough is known yet.
    NotYet,
    /// It was decided on a version of the workload that is not the last one.
    OnWhatWas,
    /// What was seen, and the decision on it.
    So(BTreeMap<String, Seen>, Decision),
    /// Nothing can be decided: the reason, in a word and in a sentence.
    Not(&'static str, String),
}

/// Locks a part of the memory.
pub(super) fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Controller {
    pub(super) async fn reconcile(&self, key: Key) -> Result<Next, CallError> {
        if !self.workloads.synced() {
            return Ok(Next::After(GETTING_TO_KNOW));
        }
        if let Some(next) = self.claim(&key).await? {
            return Ok(next);
        }
        let Some(workload) = self.workloads.get(&key) else {
            return self.sweep(&key, None).await;
        };
        if workload.object.metadata.deletion_timestamp.is_some() {
            return self.remove(&key, &workload).await;
        }
        if !workload.object.metadata.finalizers.iter().flatten().any(|each| each == FINALIZER) {
            self.add_finalizer(&workload).await?;
            return Ok(Next::Done);
        }
        let swept = self.sweep(&key, Some(workload.uid())).await?;
        let (seen, decision) = match self.decide(&key, &workload) {
            Decided::NotYet => return Ok(Next::After(GETTING_TO_KNOW)),
            // The workload has changed meanwhile, and the change brings us back.
            Decided::OnWhatWas => return Ok(Next::Done),
            Decided::So(seen, decision) => (seen, decision),
            Decided::Not(reason, message) => {
                let told = undecided(&workload, reason, &message, &self.clock.time());
                self.write_status(&workload, told).await?;
                return Ok(Next::Done);
            }
        };
        let failures = self.failures(&key, &workload, &decision);
        let mut new = status(&workload, &decision, &seen, &failures, &self.clock.time());
        new.reservation = self.reservation(&workload, &new);
        let Some(reserved) = self.write_status(&workload, new).await? else { return Ok(Next::Done) };
        if workload.object.spec.paused {
            return Ok(Next::Done);
        }
        self.tell(&workload, &reserved).await;
        let next = self.effect(&key, &workload, &decision, &seen).await?;
        Ok(match (failures.is_empty(), swept) {
            (true, Next::Done) => next,
            (true, again) => again,
            (false, _) => Next::After(REFUSAL_HOLDS),
        })
    }

    /// Observes, decides and holds what was decided, in one step: no other decision counts the same room.
    fn decide(&self, key: &Key, workload: &Workload) -> Decided {
        self.fleet.ledger.transact(|book| {
            let Some(seen) = self.observe(book, key, workload) else { return Decided::NotYet };
            let wanted = match wanted(workload) {
                Ok(wanted) => wanted,
                Err(problem) => return Decided::Not("InvalidTemplate", problem),
            };
            let uid = workload.uid();
            let decided = decide(&wanted, &candidates(&seen), |cluster, more| {
                book.shortage(cluster, uid, &wanted.shape, more)
            });
            let decision = match decided {
                Ok(decision) if workload.object.spec.paused => held(workload, decision),
                Ok(decision) => decision,
                Err(why) => return Decided::Not("PolicyUnavailable", why.to_string()),
            };
            let placed = decision.placed.iter().map(|(cluster, placed)| (cluster.clone(), placed.replicas));
            let version = workload.object.metadata.resource_version.as_deref();
            match book.assume(uid, version, &wanted.shape, placed.collect()) {
                true => Decided::So(seen, decision),
                false => Decided::OnWhatWas,
            }
        })
    }

    /// The failures that still hold: those of exactly what would be applied now.
    fn failures(&self, key: &Key, workload: &Workload, decision: &Decision) -> BTreeMap<String, Failure> {
        let failures = lock(&self.memory.failures);
        let current = |cluster: &String, replicas: u32| {
            let failure = failures.get(&(cluster.clone(), key.clone()))?;
            (failure.digest == self.desired(workload, replicas).digest).then(|| failure.clone())
        };
        let placed = decision.placed.iter();
        placed
            .filter_map(|(cluster, placed)| Some((cluster.clone(), current(cluster, placed.replicas)?)))
            .collect()
    }

    /// Writes the status if it says anything new, by compare-and-swap on the version that the decision was taken on.
    ///
    /// Nothing means that the workload has changed meanwhile: whoever changed it brings us back.
    pub(super) async fn write_status(
        &self,
        workload: &Workload,
        status: MultiClusterDeploymentStatus,
    ) -> Result<Option<MultiClusterDeployment>, CallError> {
        if workload.object.status.as_ref() == Some(&status) {
            self.fleet.ledger.transact(|book| book.retract(workload.uid()));
            return Ok(Some(workload.object.clone()));
        }
        let update = MultiClusterDeployment { status: Some(status), ..workload.object.clone() };
        match copy::replace_status(&self.term, &self.hub.client, &update).await {
            Ok(None) => {
                self.fleet.ledger.transact(|book| book.retract(workload.uid()));
                Ok(None)
            }
            Ok(written) => Ok(written),
            Err(error) => {
                // The write may have taken effect although the answer was lost: until the index tells, the room counts.
                if error.code().is_some() {
                    self.fleet.ledger.transact(|book| book.retract(workload.uid()));
                }
                Err(error)
            }
        }
    }

    async fn add_finalizer(&self, workload: &Workload) -> Result<(), CallError> {
        let mut finalizers = workload.object.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(FINALIZER.to_owned());
        copy::set_finalizers(&self.term, &self.hub.client, &workload.object, &finalizers).await
    }

    /// Tells the user, as an event, when replicas got another place.
    async fn tell(&self, before: &Workload, now: &MultiClusterDeployment) {
        let summary = |object: &MultiClusterDeployment| {
            object.status.as_ref().and_then(|s| s.locations_summary.clone())
        };
        let (old, new) = (summary(&before.object), summary(now));
        if old != new {
            let note = format!("placed {}", new.as_deref().unwrap_or("nothing"));
            self.recorder.record(now, Weight::Normal, "Placed", &note).await;
        }
        let pending =
            |object: &MultiClusterDeployment| object.status.as_ref().map_or(0, |s| s.pending_replicas);
        if pending(now) > 0 && pending(&before.object) != pending(now) {
            let conditions = now.status.iter().flat_map(|status| &status.conditions);
            let why =
                conditions.filter(|each| each.type_ == "Placed").map(|each| each.message.as_str()).next();
            self.recorder.record(now, Weight::Warning, "Pending", why.unwrap_or_default()).await;
        }
    }
}

fn candidates(seen: &BTreeMap<String, Seen>) -> Vec<portolan_core::placement::Candidate> {
    seen.values().map(|each| each.candidate.clone()).collect()
}

/// While paused, the last decision stands, whatever would be decided now.
fn held(workload: &Workload, mut decision: Decision) -> Decision {
    let last = workload.object.status.iter().flat_map(|status| &status.placements);
    let place = |placed: &portolan_api::placement::PlacementStatus| {
        let replicas = u32::try_from(placed.replicas).ok().filter(|replicas| *replicas > 0)?;
        let stands_in_for = placed.substitute_for.iter().cloned().collect();
        Some((placed.cluster.clone(), Placed { replicas, cause: placed.cause?, stands_in_for }))
    };
    decision.placed = last.filter_map(place).collect();
    decision
}

//! Making members hold what was decided.

use super::desired::{Desired, desired};
use super::memory::{Applied, Failure, FailureKind, lock};
use super::observe::Seen;
use super::{Controller, Workload};
use crate::copies::is_superseded;
use crate::copy::{self, Put};
use crate::dependencies::{NOT_PROPAGATED, References, carry};
use crate::fleet::Member;
use k8s_openapi::api::apps::v1::Deployment;
use portolan_api::placement::DriftPolicy;
use portolan_core::placement::{Decision, Order};
use portolan_runtime::{CallError, Key, Next, Weight, chain};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How often a workload is looked at without any news, in case some were missed.
const FULL_LOOK: Duration = Duration::from_secs(300);

/// A member that has too much to do is asked again after this long.
pub(super) const BUSY_FOR: Duration = Duration::from_secs(2);

/// What we applied or deleted comes back through the watch within this time; until then we do not do it again.
pub(super) const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// What came of making one member hold its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It holds the copy as decided, or is getting it.
    AsDecided,
    /// It was given the copy a moment ago, and the watch does not show it yet.
    NotSeenYet,
    /// It refused the copy just now.
    Refused,
}

impl Controller {
    /// Does in all clusters at once what is to be done on the way to the decision. A member that fails costs itself only:
    /// the others are served all the same, and it is tried again.
    pub(super) async fn effect(
        &self,
        key: &Key,
        workload: &Workload,
        decision: &Decision,
        seen: &BTreeMap<String, Seen>,
        orders: &BTreeMap<String, Order>,
    ) -> Result<Next, CallError> {
        let answering = seen.iter().filter(|(_, seen)| seen.answers);
        let members = answering.filter_map(|(cluster, seen)| Some((cluster, seen, seen.member.as_ref()?)));
        let served = members.map(|(cluster, seen, member)| async move {
            let used = decision.placed.contains_key(cluster);
            let order = orders.get(cluster).copied();
            let current = seen.copy.as_ref().is_some_and(|copy| {
                copy.rolled_out(copy.replicas) && self.is_current(workload, decision, cluster, copy)
            });
            let outcome = self.serve(key, workload, (member, seen), order, (used, current)).await;
            (cluster, outcome)
        });
        let failures = self.memory.failures.of(key).into_iter();
        let told: Vec<String> =
            failures.filter(|(_, failure)| failure.is_told()).map(|(cluster, _)| cluster).collect();
        let mut next = Next::After(FULL_LOOK);
        let (mut refused, mut busy, mut failed) = (false, false, None);
        for (cluster, outcome) in futures::future::join_all(served).await {
            if outcome.is_ok() {
                self.answered(key, cluster);
            }
            match outcome {
                Ok(Outcome::AsDecided) => {}
                Ok(Outcome::NotSeenYet) => next = Next::After(SEEN_WITHIN),
                Ok(Outcome::Refused) => refused = true,
                Err(error @ CallError::NotLeading { .. }) => return Err(error),
                Err(error) if error.is_busy() => busy = true,
                Err(error) => {
                    self.failing(key, cluster, workload, &error);
                    failed = Some(error);
                }
            }
        }
        // What succeeds without changing anything in the member brings no news that would have it told.
        let recovered = told.iter().any(|cluster| self.memory.failures.get(key, cluster).is_none());
        match failed {
            Some(error) => Err(error),
            None if refused || recovered => Ok(Next::After(Duration::ZERO)),
            None if busy => Ok(Next::After(BUSY_FOR)),
            None => Ok(next),
        }
    }

    /// Does what is to be done in one member, and releases the ConfigMaps and Secrets that are not needed there any more.
    async fn serve(
        &self,
        key: &Key,
        workload: &Workload,
        (member, seen): (&Member, &Seen),
        order: Option<Order>,
        (used, current): (bool, bool),
    ) -> Result<Outcome, CallError> {
        let outcome = match order {
            Some(Order::Apply { replicas }) => self.apply(key, workload, member, seen, replicas).await?,
            Some(Order::Keep) => self.keep(key, member, seen).await?,
            Some(Order::Delete) => self.delete_copy(key, seen).await.map(|()| Outcome::NotSeenYet)?,
            None => Outcome::AsDecided,
        };
        let none = References::new();
        let kept = match &seen.copy {
            // Pods of a former template still need what the present one does not refer to.
            Some(_) if !current || order == Some(Order::Keep) => return Ok(outcome),
            Some(_) => &workload.references,
            None if used => &workload.references,
            None => &none,
        };
        match self.release(key, workload, member, kept).await? {
            true if outcome == Outcome::AsDecided => Ok(Outcome::NotSeenYet),
            _ => Ok(outcome),
        }
    }

    /// Leaves a copy as it is, in this leader's name.
    async fn keep(&self, key: &Key, member: &Member, seen: &Seen) -> Result<Outcome, CallError> {
        if let Some(copy) = &seen.copy
            && self.term.epoch().is_some_and(|epoch| copy.mark.epoch != Some(epoch))
        {
            if is_superseded(&self.term, member, key, Some(&copy.mark)).await {
                return Ok(Outcome::NotSeenYet);
            }
            copy::stamp::<Deployment>(&self.term, member, key, copy.mark.sight()).await?;
        }
        Ok(Outcome::AsDecided)
    }

    /// Applies one copy, if the member does not hold it already.
    async fn apply(
        &self,
        key: &Key,
        workload: &Workload,
        member: &Member,
        seen: &Seen,
        replicas: u32,
    ) -> Result<Outcome, CallError> {
        let (cluster, digest) = (member.name.as_str(), self.digest(workload, replicas));
        let holds =
            |failure: &Failure| !failure.left().is_zero() && failure.template == self.digest(workload, 1);
        if self.memory.failures.get(key, cluster).as_ref().is_some_and(holds) {
            return Ok(Outcome::AsDecided);
        }
        let refused = |reason, message| {
            Ok(self.refused(key, cluster, workload, FailureKind::RefusedByMember, (reason, message)))
        };
        let (uid, references) = (workload.uid(), &workload.references);
        let carried =
            carry(&self.term, &self.hub, &self.sources, member, &key.namespace, uid, references).await?;
        if let Some((reason, problem)) = carried.problems.into_iter().next() {
            // What the hub itself may not give is refused everywhere.
            let kind =
                if reason == NOT_PROPAGATED { FailureKind::NotInOrder } else { FailureKind::RefusedByMember };
            return Ok(self.refused(key, cluster, workload, kind, (reason, problem)));
        }
        if carried.outdated {
            return Ok(Outcome::NotSeenYet);
        }
        let applied = self.memory.applied.get(key, &member.name);
        let applied = applied.filter(|applied| applied.digest == digest);
        let seen_generation = seen.copy.as_ref().map(|copy| copy.generation);
        if let Some(applied) = &applied
            && seen_generation.is_none_or(|generation| generation < applied.generation)
            && applied.at.elapsed() < SEEN_WITHIN
        {
            return Ok(Outcome::NotSeenYet);
        }
        if let Some(copy) = &seen.copy {
            if is_superseded(&self.term, member, key, Some(&copy.mark)).await {
                return Ok(Outcome::NotSeenYet);
            }
            // A copy whose label somebody took off gets it back.
            let as_applied = copy.mark.digest.as_deref() == Some(&digest) && copy.mark.is_of(uid);
            // A generation that we did not make is somebody's change; after a restart we apply once to be sure.
            let drifted = applied.is_none_or(|applied| applied.generation < copy.generation);
            let correct = workload.object.spec.drift_policy == DriftPolicy::Correct;
            if as_applied && !(drifted && correct) {
                if self.term.epoch().is_some_and(|epoch| copy.mark.epoch != Some(epoch)) {
                    copy::stamp::<Deployment>(&self.term, member, key, copy.mark.sight()).await?;
                }
                // Whatever stood in the way of applying it does no longer.
                self.memory.failures.remove(key, &member.name);
                return Ok(Outcome::AsDecided);
            }
        }
        let (desired, sight) =
            (self.desired(workload, replicas), seen.copy.as_ref().map(|copy| copy.mark.sight()));
        let put = match copy::put::<Deployment>(&self.term, member, &desired.object, sight).await {
            // Only a namespace that is gone is not found.
            Err(error) if error.is_not_found() => return refused("NamespaceMissing", chain(&error)),
            put => put?,
        };
        match put {
            Put::Applied(applied) => {
                self.tell_corrected(workload, &member.name, seen, &desired, &applied).await;
                let generation = applied.metadata.generation.unwrap_or_default();
                self.memory.failures.remove(key, &member.name);
                let applied = Applied { digest, generation, at: Instant::now() };
                self.memory.applied.set(key, &member.name, applied);
                Ok(Outcome::AsDecided)
            }
            Put::Outdated => Ok(Outcome::NotSeenYet),
            Put::Taken(message) => refused("NameTaken", message),
            Put::Refused(message) => refused("Refused", message),
        }
    }

    /// Tells, as an event, when somebody's change in a member was undone.
    async fn tell_corrected(
        &self,
        workload: &Workload,
        cluster: &str,
        seen: &Seen,
        desired: &Desired,
        applied: &Deployment,
    ) {
        let Some(copy) = &seen.copy else { return };
        let undone = copy.mark.digest.as_ref() == Some(&desired.digest)
            && applied.metadata.generation.is_some_and(|generation| generation > copy.generation);
        if undone {
            let note = format!(
                "somebody changed the copy in {cluster}: it was set back (generation {})",
                copy.generation
            );
            self.recorder.record(&workload.object, Weight::Normal, "DriftCorrected", &note).await;
        }
    }

    /// What a member is to hold of a workload, applied in this leader's name.
    pub(super) fn desired(&self, workload: &Workload, replicas: u32) -> Desired {
        desired(&workload.object, &self.hub.id, self.term.epoch(), replicas)
    }

    /// The digest of that, made once.
    pub(super) fn digest(&self, workload: &Workload, replicas: u32) -> String {
        let mut digests = lock(&workload.digests);
        digests.entry(replicas).or_insert_with(|| self.desired(workload, replicas).digest).clone()
    }
}

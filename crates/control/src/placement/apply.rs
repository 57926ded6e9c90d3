//! Making members hold what was decided.

use super::desired::{Desired, desired};
use super::memory::{Applied, Failure, lock};
use super::observe::Seen;
use super::{Controller, Workload};
use crate::copy::{self, Put};
use crate::dependencies::{References, carry};
use crate::fleet::Member;
use k8s_openapi::api::apps::v1::Deployment;
use portolan_api::placement::DriftPolicy;
use portolan_core::placement::Decision;
use portolan_runtime::{CallError, Key, Next, Weight};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How often a workload is looked at without any news, in case some were missed.
const FULL_LOOK: Duration = Duration::from_secs(300);

/// What a member refused is tried again after this long: somebody may have mended it there.
pub(super) const REFUSAL_HOLDS: Duration = Duration::from_secs(30);

/// What we applied or deleted comes back through the watch within this time; until then we do not do it again.
pub(super) const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// What came of making one member hold its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It holds the copy as decided, or is getting it.
    AsDecided,
    /// It was given the copy a moment ago, and the watch does not show it yet.
    NotSeenYet,
    /// It refused the copy just now.
    Refused,
}

impl Controller {
    /// Applies what was decided in all clusters at once, then takes away what is no longer wanted elsewhere.
    pub(super) async fn effect(
        &self,
        key: &Key,
        workload: &Workload,
        decision: &Decision,
        seen: &BTreeMap<String, Seen>,
        for_now: &BTreeMap<String, u32>,
    ) -> Result<Next, CallError> {
        let applies = for_now.iter().filter_map(|(cluster, replicas)| {
            let seen = seen.get(cluster).filter(|seen| seen.answers)?;
            let member = seen.member.as_ref()?;
            Some(self.apply(key, workload, member, seen, *replicas))
        });
        let outcomes = futures::future::join_all(applies).await;
        let mut next = Next::After(FULL_LOOK);
        for outcome in outcomes {
            match outcome? {
                Outcome::AsDecided => {}
                Outcome::NotSeenYet => next = Next::After(SEEN_WITHIN),
                Outcome::Refused => return Ok(Next::After(Duration::ZERO)),
            }
        }
        // Moves surge first: an old copy goes when all new ones are ready.
        if self.ready_everywhere(workload, decision, seen) {
            let surplus =
                seen.iter().filter(|(cluster, seen)| seen.answers && !decision.placed.contains_key(*cluster));
            for (_, seen) in surplus.filter(|(_, seen)| seen.copy.is_some()) {
                self.delete_copy(key, seen).await?;
                next = Next::After(SEEN_WITHIN);
            }
            let none = References::new();
            for (cluster, seen) in seen.iter().filter(|(_, seen)| seen.answers) {
                let Some(member) = &seen.member else { continue };
                let used = decision.placed.contains_key(cluster) || seen.copy.is_some();
                let kept = if used { &workload.references } else { &none };
                if self.release(key, workload, member, kept).await? {
                    next = Next::After(SEEN_WITHIN);
                }
            }
        }
        Ok(next)
    }

    /// Whether every cluster that is to hold replicas has them, of the present template, ready.
    fn ready_everywhere(
        &self,
        workload: &Workload,
        decision: &Decision,
        seen: &BTreeMap<String, Seen>,
    ) -> bool {
        decision.placed.iter().all(|(cluster, placed)| {
            let digest = self.digest(workload, placed.replicas);
            let replicas = i32::try_from(placed.replicas).unwrap_or(i32::MAX);
            let copy = seen.get(cluster).filter(|seen| seen.answers).and_then(|seen| seen.copy.as_ref());
            copy.is_some_and(|copy| copy.mark.digest.as_ref() == Some(&digest) && copy.rolled_out(replicas))
        })
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
        let (place, digest) = ((key, member.name.as_str()), self.digest(workload, replicas));
        let holds = |failure: &Failure| failure.digest == digest && failure.at.elapsed() < REFUSAL_HOLDS;
        if self.memory.failures.get(key, &member.name).as_ref().is_some_and(holds) {
            return Ok(Outcome::AsDecided);
        }
        let (uid, references) = (workload.uid(), &workload.references);
        let carried =
            carry(&self.term, &self.hub, &self.sources, member, &key.namespace, uid, references).await?;
        if let Some((reason, problem)) = carried.problems.into_iter().next() {
            return Ok(self.refused(place, digest, reason, problem));
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
            if let (Some(theirs), Some(ours)) = (copy.mark.epoch, self.term.epoch())
                && theirs > ours
            {
                self.term.outranked(theirs);
                return Ok(Outcome::NotSeenYet);
            }
            let as_applied = copy.mark.digest.as_deref() == Some(&digest);
            // A generation that we did not make is somebody's change; after a restart we apply once to be sure.
            let drifted = applied.is_none_or(|applied| applied.generation < copy.generation);
            let correct = workload.object.spec.drift_policy == DriftPolicy::Correct;
            if as_applied && !(drifted && correct) {
                if self.term.epoch().is_some_and(|epoch| copy.mark.epoch != Some(epoch)) {
                    copy::stamp::<Deployment>(&self.term, member, key, copy.mark.sight()).await?;
                }
                return Ok(Outcome::AsDecided);
            }
        }
        let (desired, sight) =
            (self.desired(workload, replicas), seen.copy.as_ref().map(|copy| copy.mark.sight()));
        match copy::put::<Deployment>(&self.term, member, &desired.object, sight).await? {
            Put::Applied(applied) => {
                self.tell_corrected(workload, &member.name, seen, &desired, &applied).await;
                let generation = applied.metadata.generation.unwrap_or_default();
                self.memory.failures.remove(key, &member.name);
                let applied = Applied { digest, generation, at: Instant::now() };
                self.memory.applied.set(key, &member.name, applied);
                Ok(Outcome::AsDecided)
            }
            Put::Outdated => Ok(Outcome::NotSeenYet),
            Put::Taken(message) => Ok(self.refused(place, digest, "NameTaken", message)),
            Put::Refused(message) => Ok(self.refused(place, digest, "Refused", message)),
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

    fn refused(
        &self,
        (key, cluster): (&Key, &str),
        digest: String,
        reason: &'static str,
        message: String,
    ) -> Outcome {
        tracing::warn!(cluster, workload = %key, reason, message, "a member refuses a workload");
        self.memory.failures.set(key, cluster, Failure { digest, reason, message, at: Instant::now() });
        Outcome::Refused
    }
}

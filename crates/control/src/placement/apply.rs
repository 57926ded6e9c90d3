//! Making members hold what was decided.

use super::desired::{Desired, desired};
use super::observe::Seen;
use super::reconcile::{Applied, Failure, lock};
use super::{Controller, Workload};
use crate::fleet::Member;
use crate::names::{FIELD_MANAGER, WORKLOAD_LABEL};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::placement::DriftPolicy;
use portolan_core::placement::Decision;
use portolan_runtime::{CallError, Key, Next, call};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How often a workload is looked at without any news, in case some were missed.
const FULL_LOOK: Duration = Duration::from_secs(300);

/// What a member refused is tried again after this long: somebody may have mended it there.
pub(super) const REFUSAL_HOLDS: Duration = Duration::from_secs(30);

/// What we applied comes back through the watch within this time; until then we do not apply it again.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

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
    ) -> Result<Next, CallError> {
        let applies = decision.placed.iter().filter_map(|(cluster, placed)| {
            let seen = seen.get(cluster).filter(|seen| seen.answers)?;
            let member = seen.member.as_ref()?;
            Some(self.apply(
                key,
                workload,
                member,
                seen,
                desired(&workload.object, &self.hub.id, placed.replicas),
            ))
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
            for (_, seen) in surplus {
                self.delete_copy(key, seen).await?;
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
            let digest = desired(&workload.object, &self.hub.id, placed.replicas).digest;
            let replicas = i32::try_from(placed.replicas).unwrap_or(i32::MAX);
            let copy = seen.get(cluster).filter(|seen| seen.answers).and_then(|seen| seen.copy.as_ref());
            copy.is_some_and(|copy| {
                copy.digest.as_ref() == Some(&digest)
                    && copy.settled
                    && copy.updated >= replicas
                    && copy.ready >= replicas
            })
        })
    }

    /// Applies one copy, if the member does not hold it already.
    async fn apply(
        &self,
        key: &Key,
        workload: &Workload,
        member: &Member,
        seen: &Seen,
        desired: Desired,
    ) -> Result<Outcome, CallError> {
        let place = (member.name.clone(), key.clone());
        let holds =
            |failure: &Failure| failure.digest == desired.digest && failure.at.elapsed() < REFUSAL_HOLDS;
        if lock(&self.memory.failures).get(&place).is_some_and(holds) {
            return Ok(Outcome::AsDecided);
        }
        let applied = lock(&self.memory.applied).get(&place).cloned();
        let applied = applied.filter(|applied| applied.digest == desired.digest);
        let seen_generation = seen.copy.as_ref().map(|copy| copy.generation);
        if let Some(applied) = &applied
            && seen_generation.is_none_or(|generation| generation < applied.generation)
            && applied.at.elapsed() < SEEN_WITHIN
        {
            return Ok(Outcome::NotSeenYet);
        }
        if let Some(copy) = &seen.copy {
            let as_applied = copy.digest.as_deref() == Some(&desired.digest);
            // A generation that we did not make is somebody's change; after a restart we apply once to be sure.
            let drifted = applied.is_none_or(|applied| applied.generation < copy.generation);
            let correct = workload.object.spec.placement.drift_policy == DriftPolicy::Correct;
            if as_applied && !(drifted && correct) {
                return Ok(Outcome::AsDecided);
            }
        }
        let api: Api<Deployment> = Api::namespaced(member.client.clone(), &key.namespace);
        let what = format!("apply Deployment {key} in {}", member.name);
        if seen.copy.is_none() && self.is_somebody_elses(&api, key, workload, member).await? {
            let message =
                format!("Deployment {key} exists there already and is not ours: rename one of the two");
            return Ok(self.refused(place, desired.digest, "NameTaken", message));
        }
        // What is ours we set back, whoever changed it; what may not be ours we do not take over.
        let params = PatchParams { force: seen.copy.is_some(), ..PatchParams::apply(FIELD_MANAGER) };
        match call(what, api.patch(&key.name, &params, &Patch::Apply(&desired.object))).await {
            Ok(applied) => {
                let generation = applied.metadata.generation.unwrap_or_default();
                lock(&self.memory.failures).remove(&place);
                let applied = Applied { digest: desired.digest, generation, at: Instant::now() };
                lock(&self.memory.applied).insert(place, applied);
                Ok(Outcome::AsDecided)
            }
            Err(error) if error.is_final() => {
                Ok(self.refused(place, desired.digest, "Refused", portolan_runtime::chain(&error)))
            }
            Err(error) => Err(error),
        }
    }

    async fn is_somebody_elses(
        &self,
        api: &Api<Deployment>,
        key: &Key,
        workload: &Workload,
        member: &Member,
    ) -> Result<bool, CallError> {
        let what = format!("look for Deployment {key} in {}", member.name);
        let found = call(what, api.get_metadata_opt(&key.name)).await?;
        Ok(found.is_some_and(|found| {
            let labels = found.metadata.labels.unwrap_or_default();
            labels.get(WORKLOAD_LABEL).map(String::as_str) != Some(workload.uid())
        }))
    }

    fn refused(
        &self,
        place: (String, Key),
        digest: String,
        reason: &'static str,
        message: String,
    ) -> Outcome {
        tracing::warn!(cluster = place.0, workload = %place.1, reason, message, "a member refuses a workload");
        lock(&self.memory.failures).insert(place, Failure { digest, reason, message, at: Instant::now() });
        Outcome::Refused
    }
}

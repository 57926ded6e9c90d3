//! Making members do what was planned.

use super::desired::{Numbers, desired};
use super::observe::Seen;
use super::{Controller, Declared};
use crate::copies::{Desired, FAILING_AGAIN, Outcome, SEEN_WITHIN, earlier, is_superseded};
use crate::copy::{self, Marks};
use crate::dependencies::{Carried, References, carry, release_recorded, release_seen};
use crate::fleet::{JobFacts, Member};
use crate::names::FIELD_MANAGER;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_core::jobs::{Order, Part, Plan};
use portolan_runtime::{CallError, Key, Next};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a job is looked at without any news, in case some were missed.
const FULL_LOOK: Duration = Duration::from_secs(300);

impl Controller {
    /// Gives the orders of the plan to all clusters at once.
    pub(super) async fn effect(
        &self,
        key: &Key,
        job: &Declared,
        plan: &Plan,
        seen: &BTreeMap<String, Seen>,
    ) -> Result<Next, CallError> {
        let orders = plan.orders.iter().filter_map(|(cluster, order)| {
            let seen = seen.get(cluster).filter(|seen| seen.answers)?;
            let (member, part) = (seen.member.as_deref()?, plan.record.parts.get(cluster)?);
            let given = self.give(key, job, (order, part), member, seen);
            Some(async move { self.memory.kept(member, key, given.await) })
        });
        let awaited = seen.values().any(|seen| seen.awaited);
        let mut next = Next::After(if awaited { SEEN_WITHIN } else { FULL_LOOK });
        let mut refused = false;
        for outcome in futures::future::join_all(orders).await {
            match outcome? {
                Some(Outcome::AsDecided) => {}
                Some(Outcome::NotSeenYet) => next = earlier(next, Next::After(SEEN_WITHIN)),
                Some(Outcome::Refused) => refused = true,
                None => next = earlier(next, Next::After(FAILING_AGAIN)),
            }
        }
        if refused {
            return Ok(Next::After(Duration::ZERO));
        }
        for (cluster, seen) in seen.iter().filter(|(_, seen)| seen.answers) {
            let Some(member) = &seen.member else { continue };
            let makes = seen.awaited || matches!(plan.orders.get(cluster), Some(Order::Create { .. }));
            let kept = if seen.job.is_some() || makes { &job.references } else { &References::new() };
            let released = self.release(key, job, member, kept).await;
            if let Err(error @ CallError::NotLeading { .. }) = released {
                return Err(error);
            }
            // What could not be let go is tried again; it holds up nothing.
            if released.unwrap_or(true) {
                next = earlier(next, Next::After(SEEN_WITHIN));
            }
        }
        Ok(next)
    }

    /// Brings what the template refers to into a member, and keeps it current.
    async fn carry(&self, key: &Key, job: &Declared, member: &Member) -> Result<Carried, CallError> {
        let (uid, references) = (job.uid(), &job.references);
        carry(&self.term, &self.hub, &self.sources, member, &key.namespace, uid, references).await
    }

    /// Lets go of the ConfigMaps and Secrets that the job needed in a member, but for some; answers whether any may be
    /// left. Where none are expected, what is known to be there is let go all the same.
    pub(super) async fn release(
        &self,
        key: &Key,
        job: &Declared,
        member: &Member,
        kept: &References,
    ) -> Result<bool, CallError> {
        match job.has_dependencies() && job.is_in(&member.name) {
            true => release_recorded(&self.term, member, &key.namespace, job.uid(), kept).await,
            false => release_seen(&self.term, member, &key.namespace, job.uid(), kept).await,
        }
    }

    async fn give(
        &self,
        key: &Key,
        job: &Declared,
        (order, part): (&Order, &Part),
        member: &Member,
        seen: &Seen,
    ) -> Result<Outcome, CallError> {
        match (order, seen.job.as_deref()) {
            (Order::Create { attempt, finished_before, completions, parallelism }, None) => {
                // A namespace that was closed since takes no new Job.
                if seen.candidate.closed.is_some() {
                    return Ok(Outcome::AsDecided);
                }
                let (attempt, finished_before) = (*attempt, *finished_before);
                let (completions, parallelism) = (*completions, *parallelism);
                let numbers = Numbers { attempt, finished_before, completions, parallelism };
                let desired = self.desired(key, job, numbers);
                let carried = self.carry(key, job, member).await?;
                if let Some((reason, problem)) = carried.problems.into_iter().next() {
                    return Ok(self.memory.refuse(member, key, &desired, reason, problem));
                }
                if carried.outdated {
                    return Ok(Outcome::NotSeenYet);
                }
                self.memory.apply::<Job>(&self.term, member, key, None, &desired).await
            }
            (Order::Resume { parallelism }, Some(there)) => {
                // A Job that runs goes on with what it has; a problem with that is told where it is made.
                if self.carry(key, job, member).await?.outdated {
                    return Ok(Outcome::NotSeenYet);
                }
                let numbers = Numbers {
                    attempt: part.attempt,
                    finished_before: part.finished_before,
                    completions: there.completions,
                    parallelism: *parallelism,
                };
                self.run(key, job, numbers, member, there).await
            }
            (Order::Suspend, Some(there)) => self.hold(key, member, there).await,
            (Order::Delete, Some(there)) => {
                self.memory.delete::<Job>(&self.term, member, key, &there.mark).await?;
                Ok(Outcome::NotSeenYet)
            }
            _ => Ok(Outcome::AsDecided),
        }
    }

    /// The Job for these numbers, in this leader's name.
    pub(super) fn desired(&self, key: &Key, job: &Declared, numbers: Numbers) -> Desired {
        let marks = Marks { hub: &self.hub.id, workload: job.uid(), owner: key, epoch: self.term.epoch() };
        let (object, digest) = desired(&job.object, numbers, &marks);
        Desired { object, digest }
    }

    /// Lets a Job run as planned; what somebody changed there is set back.
    async fn run(
        &self,
        key: &Key,
        job: &Declared,
        numbers: Numbers,
        member: &Member,
        there: &JobFacts,
    ) -> Result<Outcome, CallError> {
        let as_planned = there.parallelism == numbers.parallelism
            && (there.attempt, there.finished_before) == (numbers.attempt, numbers.finished_before)
            && there.mark.digest.is_some()
            && !there.suspended
            && there.deadline == job.object.spec.active_deadline_seconds;
        if as_planned {
            if self.term.epoch().is_some_and(|epoch| there.mark.epoch != Some(epoch)) {
                if is_superseded(&self.term, member, key, Some(&there.mark)).await {
                    return Ok(Outcome::NotSeenYet);
                }
                copy::stamp::<Job>(&self.term, member, key, there.mark.sight()).await?;
            }
            return Ok(Outcome::AsDecided);
        }
        let desired = self.desired(key, job, numbers);
        if self.memory.made(&member.name, key, &desired.digest, &there.mark.version) {
            return Ok(Outcome::AsDecided);
        }
        self.memory.apply::<Job>(&self.term, member, key, Some(&there.mark), &desired).await
    }

    /// Holds a Job: its pods are stopped, what it has finished stays counted.
    async fn hold(&self, key: &Key, member: &Member, there: &JobFacts) -> Result<Outcome, CallError> {
        if there.suspended || is_superseded(&self.term, member, key, Some(&there.mark)).await {
            return Ok(Outcome::AsDecided);
        }
        let api: Api<Job> = Api::namespaced(member.client.clone(), &key.namespace);
        let seen = there.mark.sight();
        let patch = json!({
            "metadata": {"uid": seen.uid, "resourceVersion": seen.version},
            "spec": {"suspend": true},
        });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let what = format!("hold Job {key} in {}", member.name);
        match self.term.call(what, api.patch(&key.name, &params, &Patch::Merge(patch))).await {
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Outcome::NotSeenYet),
            other => other.map(|_| Outcome::NotSeenYet),
        }
    }
}

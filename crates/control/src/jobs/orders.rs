//! Handing the orders of a plan to the members.

use super::desired::{Numbers, desired, template_digest};
use super::facts::JobFacts;
use super::observe::ClusterSnapshot;
use super::{DeclaredJob, Jobs};
use crate::copies::{
    Copies, Desired, FailureKind, Outcome, Ownership, Round, insert, is_superseded, refusal_message,
};
use crate::dependencies::Propagation;
use crate::driver::Declared;
use crate::fleet::Member;
use crate::names::{
    ATTEMPT_ANNOTATION, DIGEST_ANNOTATION, EPOCH_ANNOTATION, FIELD_MANAGER, FINISHED_BEFORE_ANNOTATION,
    HUB_LABEL, WORKLOAD_LABEL,
};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::Reason;
use portolan_core::jobs::{Order, Part, Plan};
use portolan_runtime::{CallError, Key, Term};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One order, and what it needs to be carried out in a member.
struct Task {
    copies: Arc<Copies<Job>>,
    propagation: Propagation,
    term: Term,
    member: Arc<Member>,
    key: Key,
    /// What is to be created, or what the Job is to be like; nothing if it is suspended or deleted.
    desired: Option<Desired>,
    there: Option<Arc<JobFacts>>,
    /// A digest of the template in the hub: what a member refuses is known by it.
    template: String,
    /// Whether the Job that exists is as planned.
    as_planned: bool,
    /// Whether the Job that exists has another template than the hub. A Job does not let it be changed.
    is_outdated: bool,
    order: Order,
}

impl Jobs {
    /// Hands the orders of the plan to the actuators of the members, and has ConfigMaps and Secrets released that are not
    /// needed any more.
    pub(super) fn submit(
        &self,
        key: &Key,
        job: &Arc<DeclaredJob>,
        plan: &Plan,
        seen: &BTreeMap<String, ClusterSnapshot>,
        round: Round,
    ) {
        for (cluster, seen) in seen.iter().filter(|(_, seen)| seen.is_known) {
            let Some(member) = &seen.member else { continue };
            if seen.missing {
                self.search(key, job, member, round);
                continue;
            }
            let order = plan.orders.get(cluster).filter(|order| is_to_be_done(order, seen));
            let task = order
                .zip(plan.record.parts.get(cluster))
                .map(|(order, part)| self.task(key, job, (order, part), member, seen));
            let creates = seen.awaited || matches!(plan.orders.get(cluster), Some(Order::Create { .. }));
            match task {
                Some(task) => {
                    let template = task.template.clone();
                    self.base.copies.submit(round, member, key, &template, move || task.run());
                }
                None if seen.job.is_some() || creates => {}
                None => _ = self.base.release(round, key, job, member),
            }
        }
    }

    fn task(
        &self,
        key: &Key,
        job: &Arc<DeclaredJob>,
        (order, part): (&Order, &Part),
        member: &Arc<Member>,
        seen: &ClusterSnapshot,
    ) -> Task {
        let there = seen.job.clone();
        let numbers = match (order, &there) {
            (Order::Create { attempt, finished_before, completions, parallelism }, _) => Some(Numbers {
                attempt: *attempt,
                finished_before: *finished_before,
                completions: *completions,
                parallelism: *parallelism,
            }),
            (Order::Resume { parallelism }, Some(there)) => Some(Numbers {
                attempt: part.attempt,
                finished_before: part.finished_before,
                completions: there.completions,
                parallelism: *parallelism,
            }),
            _ => None,
        };
        let deadline = job.object.spec.active_deadline_seconds;
        let as_planned = |there: &JobFacts, numbers: Numbers| {
            there.parallelism == numbers.parallelism
                && (there.attempt, there.finished_before) == (numbers.attempt, numbers.finished_before)
                && there.meta.digest.is_some()
                && !there.suspended
                && there.deadline == deadline
        };
        let (context, template) = (&self.base.context, template_digest(&job.object));
        Task {
            copies: Arc::clone(&self.base.copies),
            propagation: self.base.propagation(key, job, member),
            term: context.term.clone(),
            member: Arc::clone(member),
            key: key.clone(),
            as_planned: there
                .as_deref()
                .zip(numbers)
                .is_some_and(|(there, numbers)| as_planned(there, numbers)),
            is_outdated: there.as_deref().is_some_and(|there| there.template.as_deref() != Some(&template)),
            template,
            desired: numbers.map(|numbers| self.desired(key, job, numbers)),
            there,
            order: order.clone(),
        }
    }

    /// The Job for these numbers, in this leader's name.
    pub(super) fn desired(&self, key: &Key, job: &DeclaredJob, numbers: Numbers) -> Desired {
        let context = &self.base.context;
        let ownership =
            Ownership { hub: &context.hub.id, workload: job.uid(), owner: key, epoch: context.term.epoch() };
        let (object, digest) = desired(&job.object, numbers, &ownership);
        Desired { object, digest, template: template_digest(&job.object) }
    }
}

/// Whether an order asks anything of a member as it was seen.
fn is_to_be_done(order: &Order, seen: &ClusterSnapshot) -> bool {
    match order {
        // A namespace that was closed since takes no new Job.
        Order::Create { .. } => seen.job.is_none() && seen.candidate.closed.is_none(),
        Order::Resume { .. } | Order::Suspend | Order::Delete => seen.job.is_some(),
        Order::Noop => false,
    }
}

impl Task {
    async fn run(self) -> Result<Outcome, CallError> {
        let outcome = self.carry_out().await?;
        if self.desired.is_none() {
            return Ok(outcome);
        }
        self.propagation.release_others(outcome).await
    }

    async fn carry_out(&self) -> Result<Outcome, CallError> {
        let Self { copies, member, key, .. } = &self;
        match (&self.order, self.there.as_deref(), &self.desired) {
            (Order::Create { .. }, None, Some(desired)) => {
                if let Some(outcome) = self.propagation.bring(copies, &desired.template).await? {
                    return Ok(outcome);
                }
                Ok(copies.apply(member, key, None, desired).await?.0)
            }
            (Order::Resume { .. }, Some(there), Some(desired)) => {
                // A Job that runs goes on with what it has; a problem with that is reported where it is created.
                if self.propagation.keep_current().await? {
                    return Ok(Outcome::NotSeenYet);
                }
                if self.as_planned {
                    return copies.confirm(member, key, &there.meta).await;
                }
                if self.is_outdated {
                    let patch = resumed(&desired.object);
                    return self.patch(there, format!("resume Job {key} in {}", member.name), patch).await;
                }
                if copies.memory.made(key, &member.name, &desired.digest, &there.meta.version) {
                    return Ok(Outcome::AsDecided);
                }
                Ok(copies.apply(member, key, Some(&there.meta), desired).await?.0)
            }
            (Order::Suspend, Some(there), _) => self.suspend(there).await,
            (Order::Delete, Some(there), _) => match copies.delete(member, key, &there.meta).await {
                Err(error) if error.is_final() => Ok(self.refused(&error)),
                outcome => outcome,
            },
            _ => Ok(Outcome::AsDecided),
        }
    }

    /// Suspends a Job: its pods are stopped, what it has finished stays counted.
    async fn suspend(&self, there: &JobFacts) -> Result<Outcome, CallError> {
        if there.suspended {
            return Ok(Outcome::AsDecided);
        }
        let what = format!("suspend Job {} in {}", self.key, self.member.name);
        self.patch(there, what, json!({"spec": {"suspend": true}})).await
    }

    /// Changes a Job that still is as it was seen, and nothing else of it.
    async fn patch(&self, there: &JobFacts, what: String, mut patch: Value) -> Result<Outcome, CallError> {
        let Self { copies, member, key, term, .. } = self;
        if copies.is_refused(member, key, &self.template)
            || is_superseded(term, member, key, Some(&there.meta)).await
        {
            return Ok(Outcome::AsDecided);
        }
        let api: Api<Job> = Api::namespaced(member.client.clone(), &key.namespace);
        let seen = there.meta.object_version();
        insert(&mut patch, &["metadata"], "uid", json!(seen.uid));
        insert(&mut patch, &["metadata"], "resourceVersion", json!(seen.version));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match member.gate.call(term, what, api.patch(&key.name, &params, &Patch::Merge(patch))).await {
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Outcome::NotSeenYet),
            Err(error) if error.is_final() => Ok(self.refused(&error)),
            Err(error) => Err(error),
            Ok(_) => {
                copies.memory.forgive_in(key, &member.name);
                Ok(Outcome::NotSeenYet)
            }
        }
    }

    /// Remembers that the member does not let its Job be changed.
    fn refused(&self, error: &CallError) -> Outcome {
        let Self { copies, member, key, template, .. } = self;
        let why = (Reason::Refused, refusal_message(error, &key.namespace));
        copies.memory.refuse(key, &member.name, template, FailureKind::RefusedByMember, why);
        Outcome::Refused
    }
}

/// What a Job is given of what it is to be like, so that it goes on with the template that it began with.
fn resumed(desired: &Value) -> Value {
    let taken = |field: &str, names: &[&str]| -> Value {
        let all = &desired["metadata"][field];
        let taken = names.iter().filter_map(|name| Some(((*name).to_owned(), all.get(name)?.clone())));
        Value::Object(taken.collect())
    };
    let annotations = [ATTEMPT_ANNOTATION, FINISHED_BEFORE_ANNOTATION, DIGEST_ANNOTATION, EPOCH_ANNOTATION];
    json!({
        "metadata": {
            "labels": taken("labels", &[HUB_LABEL, WORKLOAD_LABEL]),
            "annotations": taken("annotations", &annotations),
        },
        "spec": {
            "suspend": desired["spec"]["suspend"],
            "parallelism": desired["spec"]["parallelism"],
            "activeDeadlineSeconds": desired["spec"]["activeDeadlineSeconds"],
        },
    })
}

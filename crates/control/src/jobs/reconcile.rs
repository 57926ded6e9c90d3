//! One look at one job.

use super::desired::template_digest;
use super::observe::ClusterSnapshot;
use super::record::{record, work};
use super::status::{Situation, status, undecided};
use super::supposed::Supposed;
use super::{DeclaredJob, Jobs};
use crate::capacity::Book;
use crate::copies::{FailureKind, Round};
use crate::dependencies::{finding, needs_recorded};
use crate::driver::{CHANGED_MEANWHILE, Declared, RESYNC_PERIOD, SYNC_POLL_INTERVAL, Write};
use crate::names::LEAVING_TAINT;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::multiclusterjob::{JobPlacementStatus, JobRelease, MultiClusterJob, MultiClusterJobStatus};
use portolan_api::placement::PlacementState;
use portolan_core::capacity::PODS;
use portolan_core::jobs::{End, Order, Plan, Work, plan};
use portolan_core::placement::{Candidate, Refusal};
use portolan_runtime::{Action, CallError, EventType, Key};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What came of planning.
enum Planned {
    /// A cluster is not listed yet.
    CacheNotSynced,
    /// The job has changed since it was read.
    StaleObject,
    /// What was seen, the plan on it, and how many completions are asked for.
    Made(BTreeMap<String, ClusterSnapshot>, Box<Plan>, u32),
    /// Nothing can be planned: the reason, in a word and in a sentence.
    Impossible(Reason, String),
}

/// What came of planning without holding room.
pub(super) enum Evaluated {
    /// A cluster is not listed yet.
    CacheNotSynced,
    /// What was seen, what is asked for, and the plan on it.
    Made { seen: BTreeMap<String, ClusterSnapshot>, work: Box<Work>, plan: Box<Plan> },
    /// Nothing can be planned: the reason, in a word and in a sentence.
    Impossible(Reason, String),
}

impl Jobs {
    pub(super) async fn look(
        &self,
        key: &Key,
        job: &Arc<DeclaredJob>,
        round: Round,
    ) -> Result<Action, CallError> {
        let (base, memory) = (&self.base, &self.base.copies.memory);
        let observed = job.object.status.as_ref().and_then(|status| status.observed_generation);
        if observed != job.object.metadata.generation {
            // What is asked for now may be taken where what was asked for before was not.
            memory.forgive(key);
        }
        let now = || base.context.clock.time();
        let (seen, plan, total) = match self.plan(key, job) {
            Planned::CacheNotSynced => return Ok(Action::RequeueAfter(SYNC_POLL_INTERVAL)),
            // The change brings us back.
            Planned::StaleObject => return Ok(Action::AwaitChange),
            Planned::Made(seen, plan, total) => {
                base.decisions.made(plan.pending > 0);
                (seen, plan, total)
            }
            Planned::Impossible(reason, message) => {
                base.decisions.impossible();
                let new = undecided(&job.object, reason, &message, &now());
                let written = base.write_status(job, new, Write::IfChanged).await?;
                return Ok(if written.is_some() {
                    Action::AwaitChange
                } else {
                    Action::RequeueAfter(CHANGED_MEANWHILE)
                });
            }
        };
        let errors = memory.failures(key).into_iter();
        let errors = errors.filter(|(_, each)| each.kind == FailureKind::MemberError && each.is_reported());
        let situation = Situation {
            job: &job.object,
            plan: &plan,
            seen: &seen,
            total,
            failures: self.failures(key, job, &plan, &seen),
            troubles: errors.map(|(cluster, failure)| (cluster, failure.message)).collect(),
            requests: self.requests(job),
            dependencies: self.dependencies(key, job, &seen),
            doubt: self.doubts(job, &seen),
        };
        let new = status(&situation, &now());
        let refused = self.tried_again(key, &seen);
        // A Job may be created only by the last record: what it is to bring might be finished by a later one.
        let creates = plan.orders.values().any(|order| matches!(order, Order::Create { .. }));
        let write = if creates { Write::Always } else { Write::IfChanged };
        let Some(written) = base.write_status(job, new, write).await? else {
            return Ok(Action::RequeueAfter(CHANGED_MEANWHILE));
        };
        self.tell(&job.object, &written).await;
        self.submit(key, job, &plan, &seen, round);
        let awaited = seen.values().any(|seen| seen.awaited);
        let next = Action::RequeueAfter(if awaited { crate::copies::CACHE_LAG_GRACE } else { RESYNC_PERIOD });
        self.in_time(&written, &seen, next, refused).await
    }

    /// Observes, plans and holds the room that was planned, in one step: no other decision counts the same room.
    fn plan(&self, key: &Key, job: &DeclaredJob) -> Planned {
        self.base.context.fleet.ledger.transact(|book| {
            let (seen, work, planned) = match self.consider(book, key, job, &Supposed::default()) {
                Evaluated::CacheNotSynced => return Planned::CacheNotSynced,
                Evaluated::Impossible(reason, message) => return Planned::Impossible(reason, message),
                Evaluated::Made { seen, work, plan } => (seen, work, plan),
            };
            let version = job.object.metadata.resource_version.as_deref();
            if book.assume(job.uid(), version, &work.request.shape, planned.record.reserved()) {
                Planned::Made(seen, planned, work.total())
            } else {
                Planned::StaleObject
            }
        })
    }

    /// Observes and plans; nothing is held. More may be supposed of clusters than is seen.
    pub(super) fn consider(
        &self,
        book: &mut Book,
        key: &Key,
        job: &DeclaredJob,
        supposed: &Supposed,
    ) -> Evaluated {
        let Some(mut seen) = self.observe(book, key, job) else { return Evaluated::CacheNotSynced };
        self.close_where_refused(key, &mut seen);
        supposed.put_on(&mut seen);
        let shape = match &job.shape {
            Ok(shape) => shape,
            Err(problem) => return Evaluated::Impossible(Reason::InvalidTemplate, problem.clone()),
        };
        let leaves = |(name, seen): (&String, &ClusterSnapshot)| {
            let leaving = seen.candidate.site.taints.iter().any(|taint| taint.key == LEAVING_TAINT);
            leaving.then(|| name.clone())
        };
        let work = work(&job.object, shape, seen.iter().filter_map(leaves).collect());
        let mut record = record(job.object.status.as_ref());
        let states = seen.iter().map(|(name, seen)| (name.clone(), seen.state.clone())).collect();
        if record.end.is_none() && self.deadline(&job.object).is_some_and(|left| left.is_zero()) {
            let seconds = job.object.spec.active_deadline_seconds.unwrap_or_default();
            let message = format!("the job was active for longer than spec.activeDeadlineSeconds {seconds}");
            record.end = Some(End::Failed { reason: Reason::DeadlineExceeded, message });
        }
        let candidates: Vec<Candidate> = seen.values().map(|each| each.candidate.clone()).collect();
        let planned = plan(&work, &record, &states, &candidates, |cluster, more| {
            book.shortage(cluster, job.uid(), shape, more)
        });
        match planned {
            Ok(plan) => Evaluated::Made { seen, work: Box::new(work), plan: Box::new(plan) },
            Err(why) => Evaluated::Impossible(Reason::PolicyUnavailable, why.to_string()),
        }
    }

    /// A cluster that refused the Job a moment ago takes none of it for a while: it goes elsewhere, if it may.
    fn close_where_refused(&self, key: &Key, seen: &mut BTreeMap<String, ClusterSnapshot>) {
        let memory = &self.base.copies.memory;
        for (cluster, failure) in memory.failures(key) {
            let Some(seen) = seen.get_mut(&cluster) else { continue };
            if seen.candidate.closed.is_some() {
                // A namespace that is opened again is tried at once.
                memory.forgive_in(key, &cluster);
            } else if seen.member.as_ref().is_some_and(|member| failure.holds_in(member)) {
                seen.candidate.closed = Some(Refusal { reason: failure.reason, message: failure.message });
            }
        }
    }

    /// When the first of the clusters that refused the Job is tried again.
    fn tried_again(&self, key: &Key, seen: &BTreeMap<String, ClusterSnapshot>) -> Option<Duration> {
        let failures = self.base.copies.memory.failures(key).into_iter();
        let holds = failures.filter(|(cluster, failure)| {
            let member = seen.get(cluster).and_then(|seen| seen.member.as_ref());
            member.is_some_and(|member| failure.holds_in(member))
        });
        holds.map(|(_, failure)| failure.left()).min()
    }

    /// How long the job may still take.
    fn deadline(&self, job: &MultiClusterJob) -> Option<Duration> {
        let seconds = job.spec.active_deadline_seconds?;
        let started = job.status.as_ref()?.start_time.as_ref()?;
        let elapsed = self.base.context.clock.now().duration_since(started.0);
        let left = SignedDuration::from_secs(seconds).saturating_sub(elapsed);
        Some(Duration::try_from(left).unwrap_or_default())
    }

    /// Looks again when a time is up: the deadline, a silent cluster's, or the time to live, after which the job goes.
    async fn in_time(
        &self,
        job: &MultiClusterJob,
        seen: &BTreeMap<String, ClusterSnapshot>,
        next: Action,
        refused: Option<Duration>,
    ) -> Result<Action, CallError> {
        let mut waits: Vec<Duration> = seen.values().filter_map(|seen| seen.patience).collect();
        waits.retain(|wait| !wait.is_zero());
        waits.extend(refused);
        match ended(job) {
            None => waits.extend(self.deadline(job)),
            Some(at) => {
                if let Some(seconds) = job.spec.ttl_seconds_after_finished {
                    let lived = self.base.context.clock.now().duration_since(at.0);
                    let left = SignedDuration::from_secs(i64::from(seconds)).saturating_sub(lived);
                    match Duration::try_from(left).ok().filter(|left| !left.is_zero()) {
                        Some(left) => waits.push(left),
                        None => return self.expire(job).await,
                    }
                }
            }
        }
        waits.extend(match next {
            Action::RequeueAfter(wait) => Some(wait),
            Action::AwaitChange => None,
        });
        Ok(waits.into_iter().min().map_or(Action::AwaitChange, Action::RequeueAfter))
    }

    async fn expire(&self, job: &MultiClusterJob) -> Result<Action, CallError> {
        let key = Key::of(job);
        let api: Api<MultiClusterJob> = Api::namespaced(self.base.context.hub.client.clone(), &key.namespace);
        let preconditions = Preconditions { uid: job.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let what = format!("delete MultiClusterJob {key}, whose time to live is over");
        match self.base.context.term.call(what, api.delete(&key.name, &params)).await {
            Err(error) if error.is_not_found() => Ok(Action::AwaitChange),
            other => other.map(|_| Action::AwaitChange),
        }
    }

    /// The refusals of what would be created, changed or deleted now.
    fn failures(
        &self,
        key: &Key,
        job: &DeclaredJob,
        plan: &Plan,
        seen: &BTreeMap<String, ClusterSnapshot>,
    ) -> BTreeMap<String, (Reason, String)> {
        let (refusals, template) = (self.base.copies.memory.failures(key), template_digest(&job.object));
        let failure = |cluster: &String, order: &Order| {
            let closed = || seen.get(cluster).and_then(|seen| seen.candidate.closed.clone());
            match order {
                Order::Noop => return None,
                Order::Create { .. } => {
                    if let Some(closed) = closed() {
                        return Some((closed.reason, closed.message));
                    }
                }
                Order::Resume { .. } | Order::Suspend | Order::Delete => {}
            }
            let refusal = refusals.get(cluster)?;
            let current = refusal.template == template && refusal.kind != FailureKind::MemberError;
            current.then(|| (refusal.reason, refusal.message.clone()))
        };
        let orders = plan.orders.iter();
        orders.filter_map(|(cluster, order)| Some((cluster.clone(), failure(cluster, order)?))).collect()
    }

    /// Whether what the template refers to follows the job; nothing once it refers to nothing and nothing is left.
    fn dependencies(
        &self,
        key: &Key,
        job: &DeclaredJob,
        seen: &BTreeMap<String, ClusterSnapshot>,
    ) -> Option<Finding> {
        let left = |(cluster, seen): (&String, &ClusterSnapshot)| match seen
            .member
            .as_ref()
            .filter(|_| seen.is_known)
        {
            Some(member) => job.is_in(cluster) && needs_recorded(member, &key.namespace, job.uid()),
            None => job.is_in(cluster),
        };
        if job.references.is_empty() && !(job.has_dependencies() && seen.iter().any(left)) {
            return None;
        }
        let missing = self
            .base
            .context
            .sources
            .synced()
            .then(|| self.base.context.sources.missing(&key.namespace, &job.references));
        Some(finding(&key.namespace, &job.references, missing.as_ref()))
    }

    fn requests(&self, job: &DeclaredJob) -> portolan_api::placement::Resources {
        let mut requests = job.shape.as_ref().map(|shape| shape.requests.quantities()).unwrap_or_default();
        requests.remove(PODS);
        requests
    }

    /// Tells the user, as events, what became of the job.
    async fn tell(&self, before: &MultiClusterJob, now: &MultiClusterJob) {
        let status = |job: &MultiClusterJob| job.status.clone().unwrap_or_default();
        let (old, new) = (status(before), status(now));
        if old.locations_summary != new.locations_summary {
            let note = format!("placed {}", new.locations_summary.as_deref().unwrap_or("nothing"));
            self.base.recorder.record(now, EventType::Normal, Reason::Placed, &note).await;
        }
        let message = |type_| {
            let found = conditions::find(&new.conditions, type_);
            found.map(|found| found.message.clone()).unwrap_or_default()
        };
        if new.pending_completions > 0 && old.pending_completions != new.pending_completions {
            self.base
                .recorder
                .record(now, EventType::Warning, Reason::Pending, &message(ConditionType::Placed))
                .await;
        }
        if new.retries > old.retries {
            let failed = new
                .placements
                .iter()
                .filter(|placed| placed.reason.as_deref().and_then(Reason::parse) == Some(Reason::JobFailed));
            let failed = failed.map(|placed| placed.cluster.as_str()).collect::<Vec<_>>().join(", ");
            let note = format!("what failed in {failed} goes to another cluster: retry {}", new.retries);
            self.base.recorder.record(now, EventType::Warning, Reason::Retried, &note).await;
        }
        for placed in &new.placements {
            let before = old.placements.iter().find(|each| each.cluster == placed.cluster);
            let given_away = matches!(placed.released, Some(JobRelease::NoRoom | JobRelease::Refused));
            if given_away && before.is_none_or(|before| before.released != placed.released) {
                let why = placed.message.as_deref().unwrap_or_default();
                let note = format!("{}: {why}", placed.cluster);
                // What is tried in vain again and again is told once.
                if self.base.copies.memory.is_news(&Key::of(now), &placed.cluster, &note) {
                    self.base.recorder.record(now, EventType::Warning, Reason::Rescheduled, &note).await;
                }
            } else if let Some(note) = refused_news(placed, before)
                && self.base.copies.memory.is_news(&Key::of(now), &placed.cluster, &note)
            {
                self.base.recorder.record(now, EventType::Warning, Reason::Refused, &note).await;
            }
        }
        if let Some(doubted) = doubted(&new).filter(|_| doubted(&old).is_none()) {
            self.base
                .recorder
                .record(now, EventType::Warning, Reason::SilenceDoubted, &doubted.message)
                .await;
        }
        for (type_, weight, reason) in [
            (ConditionType::Complete, EventType::Normal, Reason::Complete),
            (ConditionType::Failed, EventType::Warning, Reason::Failed),
        ] {
            if conditions::is_true(&new.conditions, type_) && !conditions::is_true(&old.conditions, type_) {
                self.base.recorder.record(now, weight, reason, &message(type_)).await;
            }
        }
    }
}

/// What a cluster has against its part of a job, if it refuses it and did not before.
fn refused_news(placed: &JobPlacementStatus, before: Option<&JobPlacementStatus>) -> Option<String> {
    let refuses = |placed: &JobPlacementStatus| {
        let reason = placed.reason.as_deref().and_then(Reason::parse);
        placed.state == PlacementState::Failed
            && placed.released.is_none()
            && matches!(reason, Some(Reason::NameTaken | Reason::Refused | Reason::Immutable))
    };
    let news = refuses(placed) && !before.is_some_and(refuses);
    news.then(|| format!("{}: {}", placed.cluster, placed.message.as_deref().unwrap_or_default()))
}

/// The condition that says that silent clusters are not believed to be lost, if it does.
fn doubted(status: &MultiClusterJobStatus) -> Option<&Condition> {
    let unreachable = conditions::find(&status.conditions, ConditionType::Unreachable);
    unreachable.filter(|found| found.reason == Reason::SilenceDoubted.as_str())
}

/// When the job ended, if it did.
fn ended(job: &MultiClusterJob) -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
    let conditions = &job.status.as_ref()?.conditions;
    let ends = [ConditionType::Complete, ConditionType::Failed];
    let end = ends.into_iter().find(|type_| conditions::is_true(conditions, *type_))?;
    Some(conditions::find(conditions, end)?.last_transition_time.clone())
}

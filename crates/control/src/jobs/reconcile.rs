//! One look at one job.

use super::desired::Numbers;
use super::observe::Seen;
use super::record::{count, record, signed, work};
use super::status::{Situation, status, undecided};
use super::{Controller, Declared, KIND};
use crate::capacity::Book;
use crate::claims::{Step, reservation};
use crate::copies::{Failure, earlier};
use crate::dependencies::{finding, needs_recorded};
use crate::fleet::SILENCE_DOUBTED;
use crate::names::LEAVING_TAINT;
use crate::{copy, declared};
use jiff::SignedDuration;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::multiclusterjob::{JobRelease, MultiClusterJob, MultiClusterJobStatus};
use portolan_api::placement::Reservation;
use portolan_core::capacity::PODS;
use portolan_core::jobs::{End, Order, Plan, Work, plan};
use portolan_core::placement::{Candidate, Refusal};
use portolan_runtime::{CallError, Key, Next, Weight};
use std::collections::BTreeMap;
use std::time::Duration;

/// How soon to look again while a cluster is still being got to know.
const GETTING_TO_KNOW: Duration = Duration::from_millis(250);

/// How soon to look again at what somebody else changed; usually the change itself brings us back earlier.
const CHANGED_MEANWHILE: Duration = Duration::from_secs(1);

/// What came of planning.
enum Planned {
    /// Not enough is known yet.
    NotYet,
    /// It was planned on a version of the job that is not the last one.
    OnWhatWas,
    /// What was seen, and the plan on it.
    So(BTreeMap<String, Seen>, Box<Plan>, u32),
    /// Nothing can be planned: the reason, in a word and in a sentence.
    Not(&'static str, String),
}

/// What came of looking.
pub(super) enum Considered {
    /// Not enough is known yet.
    NotYet,
    /// What was seen, what is asked for, and the plan on it.
    So { seen: BTreeMap<String, Seen>, work: Box<Work>, plan: Box<Plan> },
    /// Nothing can be planned: the reason, in a word and in a sentence.
    Not(&'static str, String),
}

impl Controller {
    pub(super) async fn reconcile(&self, key: Key) -> Result<Next, CallError> {
        if !self.jobs.synced() {
            return Ok(Next::After(GETTING_TO_KNOW));
        }
        let job = self.jobs.get(&key);
        let recorded = job.as_ref().map(|job| job.claimant());
        match (self.claims.step(KIND, &key, recorded).await, &job) {
            (Step::Claim, Some(job)) => return self.claim(job).await,
            (Step::Wait(next), _) => return Ok(next),
            _ => {}
        }
        let Some(job) = job else {
            if declared::is_unreadable::<MultiClusterJob, _>(&self.jobs, &key, &self.recorder).await {
                return Ok(Next::Done);
            }
            return self.memory.sweep::<Job>(&self.term, &self.fleet, &key, None).await;
        };
        if job.object.metadata.deletion_timestamp.is_some() {
            return self.remove(&key, &job).await;
        }
        if !declared::is_kept(&job.object) {
            declared::keep(&self.term, &self.hub.client, &job.object).await?;
            return Ok(Next::Done);
        }
        if let Some(next) = self.identify(&key, &job).await? {
            return Ok(next);
        }
        let swept = self.memory.sweep::<Job>(&self.term, &self.fleet, &key, Some(job.uid())).await?;
        let observed = job.object.status.as_ref().and_then(|status| status.observed_generation);
        if observed != job.object.metadata.generation {
            // What is asked for now may be taken where what was asked for before was not.
            self.memory.forgive(&key);
        }
        let (seen, plan, total) = match self.plan(&key, &job) {
            Planned::NotYet => return Ok(Next::After(GETTING_TO_KNOW)),
            // The job has changed meanwhile, and the change brings us back.
            Planned::OnWhatWas => return Ok(Next::Done),
            Planned::So(seen, plan, total) => (seen, plan, total),
            Planned::Not(reason, message) => {
                let told = undecided(&job.object, reason, &message, &self.clock.time());
                let written = self.write(&job, told, false).await?;
                return Ok(if written.is_some() { Next::Done } else { Next::After(CHANGED_MEANWHILE) });
            }
        };
        let situation = Situation {
            job: &job.object,
            plan: &plan,
            seen: &seen,
            total,
            failures: self.failures(&key, &job, &plan, &seen),
            troubles: self.memory.troubles(&key),
            requests: self.requests(&job),
            dependencies: self.dependencies(&key, &job, &seen),
            doubt: self.doubts(&job, &seen),
        };
        let mut new = status(&situation, &self.clock.time());
        new.reservation = self.reservation(&job.object, &new);
        let refused = self.tried_again(&key, &seen);
        // A Job may be made only by the last record: what it is to bring might be finished by a later one.
        let makes = plan.orders.values().any(|order| matches!(order, Order::Make { .. }));
        let Some(written) = self.write(&job, new, makes).await? else {
            return Ok(Next::After(CHANGED_MEANWHILE));
        };
        self.tell(&job.object, &written).await;
        let next = earlier(self.effect(&key, &job, &plan, &seen).await?, swept);
        self.in_time(&written, &seen, next, refused).await
    }

    /// Makes a job this leader's own, and leaves all else as it is.
    async fn claim(&self, job: &Declared) -> Result<Next, CallError> {
        let fresh = || {
            let total = signed(count(job.object.spec.completions).saturating_mul(job.times()));
            MultiClusterJobStatus { completions: total, pending_completions: total, ..Default::default() }
        };
        let mut status = job.object.status.clone().unwrap_or_else(fresh);
        status.reservation = self.reservation(&job.object, &status);
        let written = self.write(job, status, false).await.map(|_| ());
        self.claims.written(KIND, &job.object, &self.recorder, written).await
    }

    /// Observes, plans and holds the room that was planned, in one step: no other decision counts the same room.
    fn plan(&self, key: &Key, job: &Declared) -> Planned {
        self.fleet.ledger.transact(|book| {
            let (seen, work, planned) = match self.consider(book, key, job) {
                Considered::NotYet => return Planned::NotYet,
                Considered::Not(reason, message) => return Planned::Not(reason, message),
                Considered::So { seen, work, plan } => (seen, work, plan),
            };
            let version = job.object.metadata.resource_version.as_deref();
            match book.assume(job.uid(), version, &work.wanted.shape, planned.record.held()) {
                true => Planned::So(seen, planned, work.total()),
                false => Planned::OnWhatWas,
            }
        })
    }

    /// Observes and plans; nothing is held.
    pub(super) fn consider(&self, book: &mut Book, key: &Key, job: &Declared) -> Considered {
        let Some(mut seen) = self.observe(book, key, job) else { return Considered::NotYet };
        self.close_where_refused(key, &mut seen);
        let shape = match &job.shape {
            Ok(shape) => shape,
            Err(problem) => return Considered::Not("InvalidTemplate", problem.clone()),
        };
        let leaves = |(name, seen): (&String, &Seen)| {
            let leaving = seen.candidate.site.taints.iter().any(|taint| taint.key == LEAVING_TAINT);
            leaving.then(|| name.clone())
        };
        let work = work(&job.object, shape, seen.iter().filter_map(leaves).collect());
        let mut record = record(job.object.status.as_ref());
        let sights = seen.iter().map(|(name, seen)| (name.clone(), seen.sight.clone())).collect();
        if record.end.is_none() && self.deadline(&job.object).is_some_and(|left| left.is_zero()) {
            let seconds = job.object.spec.active_deadline_seconds.unwrap_or_default();
            let message = format!("the job was active for longer than spec.activeDeadlineSeconds {seconds}");
            record.end = Some(End::Failed { reason: "DeadlineExceeded".to_owned(), message });
        }
        let candidates: Vec<Candidate> = seen.values().map(|each| each.candidate.clone()).collect();
        let planned = plan(&work, &record, &sights, &candidates, |cluster, more| {
            book.shortage(cluster, job.uid(), shape, more)
        });
        match planned {
            Ok(plan) => Considered::So { seen, work: Box::new(work), plan: Box::new(plan) },
            Err(why) => Considered::Not("PolicyUnavailable", why.to_string()),
        }
    }

    /// A cluster that refused the Job a moment ago takes none of it for a while: it goes elsewhere, if it may.
    fn close_where_refused(&self, key: &Key, seen: &mut BTreeMap<String, Seen>) {
        for (cluster, seen) in seen {
            if seen.candidate.closed.is_some() {
                // Once it is open again, it is another cluster than the one that refused.
                self.memory.forgive_there(cluster, key);
            } else if let Some((Failure { reason, message, .. }, _)) =
                seen.member.as_ref().and_then(|member| self.memory.refusal(member, key))
            {
                seen.candidate.closed = Some(Refusal { reason, message });
            }
        }
    }

    /// When the first of the clusters that refused the Job is tried again.
    fn tried_again(&self, key: &Key, seen: &BTreeMap<String, Seen>) -> Option<Duration> {
        let members = seen.values().filter_map(|seen| seen.member.as_ref());
        members.filter_map(|member| Some(self.memory.refusal(member, key)?.1)).min()
    }

    /// How long the job may still take.
    fn deadline(&self, job: &MultiClusterJob) -> Option<Duration> {
        let seconds = job.spec.active_deadline_seconds?;
        let started = job.status.as_ref()?.start_time.as_ref()?;
        let elapsed = self.clock.now().duration_since(started.0);
        let left = SignedDuration::from_secs(seconds).saturating_sub(elapsed);
        Some(Duration::try_from(left).unwrap_or_default())
    }

    /// Looks again when a time is up: the deadline, a silent cluster's, or the time to live, after which the job goes.
    async fn in_time(
        &self,
        job: &MultiClusterJob,
        seen: &BTreeMap<String, Seen>,
        next: Next,
        refused: Option<Duration>,
    ) -> Result<Next, CallError> {
        let mut waits: Vec<Duration> = seen.values().filter_map(|seen| seen.patience).collect();
        waits.retain(|wait| !wait.is_zero());
        waits.extend(refused);
        match ended(job) {
            None => waits.extend(self.deadline(job)),
            Some(at) => {
                if let Some(seconds) = job.spec.ttl_seconds_after_finished {
                    let lived = self.clock.now().duration_since(at.0);
                    let left = SignedDuration::from_secs(i64::from(seconds)).saturating_sub(lived);
                    match Duration::try_from(left).ok().filter(|left| !left.is_zero()) {
                        Some(left) => waits.push(left),
                        None => return self.expire(job).await,
                    }
                }
            }
        }
        waits.extend(match next {
            Next::After(wait) => Some(wait),
            Next::Done => None,
        });
        Ok(waits.into_iter().min().map_or(Next::Done, Next::After))
    }

    async fn expire(&self, job: &MultiClusterJob) -> Result<Next, CallError> {
        let key = Key::of(job);
        let api: Api<MultiClusterJob> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let preconditions = Preconditions { uid: job.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let what = format!("delete MultiClusterJob {key}, whose time to live is over");
        match self.term.call(what, api.delete(&key.name, &params)).await {
            Err(error) if error.is_not_found() => Ok(Next::Done),
            other => other.map(|_| Next::Done),
        }
    }

    /// The refusals that still hold: those of exactly what would be made now.
    fn failures(
        &self,
        key: &Key,
        job: &Declared,
        plan: &Plan,
        seen: &BTreeMap<String, Seen>,
    ) -> BTreeMap<String, (&'static str, String)> {
        let failure = |cluster: &String, order: &Order| {
            let Order::Make { attempt, finished_before, completions, parallelism } = *order else {
                return None;
            };
            if let Some(closed) = seen.get(cluster).and_then(|seen| seen.candidate.closed.clone()) {
                return Some((closed.reason, closed.message));
            }
            let desired =
                self.desired(key, job, Numbers { attempt, finished_before, completions, parallelism });
            let failure = self.memory.failure(cluster, key, &desired.digest)?;
            Some((failure.reason, failure.message))
        };
        let orders = plan.orders.iter();
        orders.filter_map(|(cluster, order)| Some((cluster.clone(), failure(cluster, order)?))).collect()
    }

    /// Whether what the template refers to follows the job; nothing once it refers to nothing and nothing is left.
    fn dependencies(&self, key: &Key, job: &Declared, seen: &BTreeMap<String, Seen>) -> Option<Finding> {
        let left = |(cluster, seen): (&String, &Seen)| match seen.member.as_ref().filter(|_| seen.answers) {
            Some(member) => job.is_in(cluster) && needs_recorded(member, &key.namespace, job.uid()),
            None => job.is_in(cluster),
        };
        if job.references.is_empty() && !(job.has_dependencies() && seen.iter().any(left)) {
            return None;
        }
        let missing = self.sources.synced().then(|| self.sources.missing(&key.namespace, &job.references));
        Some(finding(&key.namespace, &job.references, missing.as_ref()))
    }

    fn requests(&self, job: &Declared) -> portolan_api::placement::Resources {
        let mut requests = job.shape.as_ref().map(|shape| shape.requests.quantities()).unwrap_or_default();
        requests.remove(PODS);
        requests
    }

    /// Writes the status by compare-and-swap, if it says anything new or it must be sure that nobody else has.
    ///
    /// Nothing means that the job has changed meanwhile: whoever changed it brings us back.
    pub(super) async fn write(
        &self,
        job: &Declared,
        status: MultiClusterJobStatus,
        sure: bool,
    ) -> Result<Option<MultiClusterJob>, CallError> {
        let retract = || self.fleet.ledger.transact(|book| book.retract(job.uid()));
        if job.object.status.as_ref() == Some(&status) && !sure {
            retract();
            return Ok(Some(job.object.clone()));
        }
        let same = job.object.status.as_ref() == Some(&status);
        match copy::replace_status(&self.term, &self.hub.client, &job.object, &status).await {
            Ok(None) => {
                retract();
                Ok(None)
            }
            Ok(written) => {
                // A write that changes nothing does not come back through the watch.
                if same {
                    retract();
                }
                Ok(written)
            }
            Err(error) => {
                // The write may have taken effect although the answer was lost: until the index tells, the room counts.
                if error.code().is_some() {
                    retract();
                }
                Err(error)
            }
        }
    }

    /// Who stands for what a status says: this leader, since the placements last changed hands or places.
    fn reservation(&self, job: &MultiClusterJob, new: &MultiClusterJobStatus) -> Option<Reservation> {
        let old = job.status.as_ref();
        let last = old.and_then(|status| status.reservation.as_ref());
        let places = |status: &MultiClusterJobStatus| {
            let each = status.placements.iter();
            each.map(|placed| (placed.cluster.clone(), placed.completions, placed.attempt))
                .collect::<Vec<_>>()
        };
        Some(reservation(&self.term, &self.clock, last, old.map(places) != Some(places(new))))
    }

    /// Tells the user, as events, what became of the job.
    async fn tell(&self, before: &MultiClusterJob, now: &MultiClusterJob) {
        let status = |job: &MultiClusterJob| job.status.clone().unwrap_or_default();
        let (old, new) = (status(before), status(now));
        if old.locations_summary != new.locations_summary {
            let note = format!("placed {}", new.locations_summary.as_deref().unwrap_or("nothing"));
            self.recorder.record(now, Weight::Normal, "Placed", &note).await;
        }
        let message = |type_| {
            let found = conditions::find(&new.conditions, type_);
            found.map(|found| found.message.clone()).unwrap_or_default()
        };
        if new.pending_completions > 0 && old.pending_completions != new.pending_completions {
            self.recorder.record(now, Weight::Warning, "Pending", &message(ConditionType::Placed)).await;
        }
        if new.retries > old.retries {
            let failed = new.placements.iter().filter(|placed| placed.reason.as_deref() == Some("JobFailed"));
            let failed = failed.map(|placed| placed.cluster.as_str()).collect::<Vec<_>>().join(", ");
            let note = format!("what failed in {failed} goes to another cluster: retry {}", new.retries);
            self.recorder.record(now, Weight::Warning, "RetriedElsewhere", &note).await;
        }
        for placed in &new.placements {
            let before = old.placements.iter().find(|each| each.cluster == placed.cluster);
            let given_away = matches!(placed.released, Some(JobRelease::NoRoom | JobRelease::Refused));
            if given_away && before.is_none_or(|before| before.released != placed.released) {
                let why = placed.message.as_deref().unwrap_or_default();
                let note = format!("{}: {why}", placed.cluster);
                // What is tried in vain again and again is told once.
                if self.memory.is_news(&placed.cluster, &Key::of(now), &note) {
                    self.recorder.record(now, Weight::Warning, "GivenElsewhere", &note).await;
                }
            }
        }
        if let Some(doubted) = doubted(&new).filter(|_| doubted(&old).is_none()) {
            self.recorder.record(now, Weight::Warning, SILENCE_DOUBTED, &doubted.message).await;
        }
        for (type_, weight) in
            [(ConditionType::Complete, Weight::Normal), (ConditionType::Failed, Weight::Warning)]
        {
            if conditions::is_true(&new.conditions, type_) && !conditions::is_true(&old.conditions, type_) {
                self.recorder.record(now, weight, type_.as_str(), &message(type_)).await;
            }
        }
    }
}

/// The condition that says that silent clusters are not believed to be lost, if it does.
fn doubted(status: &MultiClusterJobStatus) -> Option<&Condition> {
    let unreachable = conditions::find(&status.conditions, ConditionType::Unreachable);
    unreachable.filter(|found| found.reason == SILENCE_DOUBTED)
}

/// When the job ended, if it did.
fn ended(job: &MultiClusterJob) -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
    let conditions = &job.status.as_ref()?.conditions;
    let ends = [ConditionType::Complete, ConditionType::Failed];
    let end = ends.into_iter().find(|type_| conditions::is_true(conditions, *type_))?;
    Some(conditions::find(conditions, end)?.last_transition_time.clone())
}

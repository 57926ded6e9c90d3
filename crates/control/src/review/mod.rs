//! Reviews: users ask where something is and why, or where manifests would go, and the leader answers.
//!
//! A PlacementReview is a question in a namespace. The leader answers it in the status, by its own decisions on its own
//! view of the fleet, and deletes it some minutes later. So nobody needs a member's credential to ask, and a user with
//! rights in one namespace sees nothing of the others: what their workloads hold is told as one number.

mod answer;
mod cluster;
mod deployment;
mod job;
mod manifest;
mod merge;
mod plan;
mod rollout;
mod service;
mod trial;

use crate::driver::{Context, Delay, SYNC_POLL_INTERVAL, replace_status, watch};
use crate::fleet::{Fleet, Hub};
use crate::{jobs, placement, services};
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use portolan_api::PlacementReview;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::placement::Reservation;
use portolan_api::placementreview::PlacementReviewStatus;
use portolan_runtime::{
    Action, CallError, Clock, Index, Key, Queue, Seed, Term, chain, foreign_text, supervise, work,
};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// An answered review is deleted after this long.
const TTL: Duration = Duration::from_secs(300);

/// After this long, what is not known is told instead of an answer.
const PATIENCE: Duration = Duration::from_secs(10);

const WORKERS: usize = 2;

/// Answers reviews, on what the other controllers know.
pub(crate) struct Reviews {
    hub: Hub,
    fleet: Fleet,
    placement: placement::Previews,
    jobs: jobs::Previews,
    services: services::Previews,
    reviews: Index<Known>,
    queue: Queue<Key>,
    clock: Clock,
    term: Term,
    seed: Seed,
}

/// What is kept of a review: all of it until it is answered, and then when it goes.
enum Known {
    Open { review: Box<PlacementReview>, since: Instant },
    Answered { uid: String, at: jiff::Timestamp },
    Deleting,
}

impl Known {
    fn of(review: PlacementReview) -> Self {
        let meta = &review.metadata;
        if meta.deletion_timestamp.is_some() {
            return Self::Deleting;
        }
        let status = review.status.as_ref().filter(|status| status.observed_generation == meta.generation);
        match status.and_then(|status| status.observed_time.as_ref()) {
            Some(time) => Self::Answered { uid: meta.uid.clone().unwrap_or_default(), at: time.0 },
            None => Self::Open { review: Box::new(review), since: Instant::now() },
        }
    }
}

/// Why there is no answer.
enum Unanswered {
    /// Not enough is known yet.
    NotYet,
    /// The hub cannot be asked.
    Failed(CallError),
}

impl From<CallError> for Unanswered {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

impl Reviews {
    /// Reviews for the hub, answered by these controllers.
    pub(crate) fn new(
        context: &Context,
        placement: placement::Previews,
        jobs: jobs::Previews,
        services: services::Previews,
    ) -> Self {
        let seed = context.seed.child("reviews");
        Self {
            hub: context.hub.clone(),
            fleet: context.fleet.clone(),
            placement,
            jobs,
            services,
            reviews: Index::default(),
            queue: context.fleet.queues.show("PlacementReview", Queue::new(seed.child("queue"))),
            clock: context.clock.clone(),
            term: context.term.clone(),
            seed,
        }
    }

    /// Answers reviews for ever.
    pub(crate) async fn run(self) {
        let mut tasks = JoinSet::new();
        let seed = self.seed.child("placementreviews");
        let hub = &self.hub.client;
        let at_once = |_: &portolan_runtime::Change<Known>| Delay::NONE;
        tasks.spawn(watch(hub, Known::of, &self.reviews, &self.queue, at_once, |_| (), seed));
        let work = work(&self.queue, WORKERS, &self.clock, |key| self.reconcile(key));
        supervise(tasks, work).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Action, CallError> {
        let Some(known) = self.reviews.get(&key) else { return Ok(Action::AwaitChange) };
        match &*known {
            Known::Deleting => Ok(Action::AwaitChange),
            Known::Answered { uid, at } => self.expire(&key, uid, *at).await,
            Known::Open { review, since } => match self.answer(&key.namespace, &review.spec).await {
                Ok(objects) => {
                    let result = objects.iter().map(|object| object.result).max();
                    let status =
                        PlacementReviewStatus { result, objects, ..PlacementReviewStatus::default() };
                    match self.write(review, status, Ok(())).await {
                        // An answer that the hub does not take, for its size say, is not computed for ever.
                        Err(error) if since.elapsed() >= PATIENCE => self.fail(review, &error).await,
                        written => written,
                    }
                }
                Err(Unanswered::NotYet) if since.elapsed() < PATIENCE => {
                    Ok(Action::RequeueAfter(SYNC_POLL_INTERVAL))
                }
                Err(Unanswered::NotYet) => {
                    let seconds = PATIENCE.as_secs();
                    let why = format!("not known after {seconds} s: {}", self.unknown());
                    self.write(review, PlacementReviewStatus::default(), Err((Reason::CacheNotSynced, why)))
                        .await
                }
                Err(Unanswered::Failed(error)) if since.elapsed() < PATIENCE => Err(error),
                Err(Unanswered::Failed(error)) => self.fail(review, &error).await,
            },
        }
    }

    /// Answers that there is no answer, and why.
    async fn fail(&self, review: &PlacementReview, error: &CallError) -> Result<Action, CallError> {
        let why = foreign_text(&chain(error));
        self.write(review, PlacementReviewStatus::default(), Err((Reason::HubRequestFailed, why))).await
    }

    async fn write(
        &self,
        review: &PlacementReview,
        mut status: PlacementReviewStatus,
        outcome: Result<(), (Reason, String)>,
    ) -> Result<Action, CallError> {
        let generation = review.metadata.generation;
        let now = self.clock.time();
        let finding = match outcome {
            Ok(()) => Finding::new(ConditionType::Ready, true, Reason::Answered, "the review is answered"),
            Err((reason, message)) => Finding::new(ConditionType::Ready, false, reason, message),
        };
        conditions::set(&mut status.conditions, finding, generation, now.0);
        status.observed_generation = generation;
        status.decided_by = Some(Reservation {
            epoch: self.term.epoch().unwrap_or_default(),
            holder: self.term.holder().to_owned(),
            time: Some(now.clone()),
        });
        status.observed_time = Some(now);
        // Whoever changed or deleted it meanwhile brings us back.
        replace_status(&self.term, &self.hub.client, review, &status).await?;
        Ok(Action::AwaitChange)
    }

    /// Deletes an answered review when its time has come.
    async fn expire(&self, key: &Key, uid: &str, at: jiff::Timestamp) -> Result<Action, CallError> {
        let age = Duration::try_from(self.clock.now().duration_since(at)).unwrap_or_default();
        let left = TTL.saturating_sub(age);
        if !left.is_zero() {
            return Ok(Action::RequeueAfter(left));
        }
        let api: Api<PlacementReview> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let what = format!("delete PlacementReview {key}");
        match self.term.call(what, api.delete(&key.name, &params)).await {
            Err(error) if !(error.is_not_found() || error.is_conflict()) => Err(error),
            _ => Ok(Action::AwaitChange),
        }
    }

    /// What is not known, in words.
    fn unknown(&self) -> String {
        let complete = self.fleet.ledger.transact(|book| book.is_complete());
        if !complete || !self.fleet.clusters.synced() {
            return "the workloads of the hub".to_owned();
        }
        let unknown = |name: &String| self.fleet.is_joining(name);
        let clusters = self.fleet.clusters.all().into_iter().map(|(key, _)| key.name);
        let names: Vec<String> = clusters.filter(unknown).take(10).collect();
        if names.is_empty() { "the services of a member".to_owned() } else { names.join(", ") }
    }
}

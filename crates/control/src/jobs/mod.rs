//! Jobs over clusters: a MultiClusterJob becomes a Job in every member that has a part of the work.
//!
//! A reconcile observes (indexes only), plans (pure, see [`portolan_core::jobs`]), writes the plan into the status by
//! compare-and-swap, and only then touches members. So what was counted once is on record before the Job that brought
//! it can go, and a Job is made only by a record that is the last one: finished work is never run again.

mod desired;
mod effect;
mod identify;
mod observe;
mod preview;
mod reconcile;
mod record;
mod remove;
mod status;

pub(crate) use preview::{JobOutlook, Previews};

use crate::capacity::{Claim, Owner};
use crate::claims::{self, Claimant, Claims};
use crate::copies::Memory;
use crate::declared::{self, AT_ONCE};
use crate::dependencies::{Reference, References, Sources, has_dependencies, references};
use crate::fleet::{Fleet, Hub, Touched};
use crate::identity::{Bearer, Identity};
use portolan_api::MultiClusterJob;
use portolan_api::multiclusterjob::JobPlacementStatus;
use portolan_api::placement::ReplicasMode;
use portolan_core::capacity::{PodShape, Shape};
use portolan_runtime::{
    Change, Clock, Index, Key, Queue, Recorder, Seed, Term, WatchHealth, supervise, work,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The kind, as the ledger of reservations knows it.
pub(crate) const KIND: &str = "MultiClusterJob";

/// Namespaces open in bursts; one look after this long serves them all.
const ROOM_SETTLES: Duration = Duration::from_millis(100);

/// How many are decided about at the same time. One member may hold a quarter of them; see the gate of a member.
pub(crate) const WORKERS: usize = 24;

/// The jobs controller, ready to be run.
pub(crate) struct Jobs {
    queue: Queue<Key>,
    controller: Arc<Controller>,
    seed: Seed,
}

/// What the controller works with.
struct Controller {
    hub: Hub,
    fleet: Fleet,
    jobs: Index<Declared>,
    sources: Sources,
    memory: Memory,
    claims: Claims,
    clock: Clock,
    term: Term,
    recorder: Recorder,
}

/// A job of the hub, and the shape of its pods, read once.
#[derive(Debug)]
struct Declared {
    object: MultiClusterJob,
    identity: Identity,
    shape: Result<Shape, String>,
    references: References,
}

impl Declared {
    fn of(object: MultiClusterJob) -> Self {
        let shape = match object.spec.template.to_typed() {
            Ok(template) => {
                PodShape::of_template(&template).map(Shape::from).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let references = references(&object.spec.template.0);
        Self { identity: Identity::of(&object.metadata), object, shape, references }
    }

    /// Its identity: the uid, unless an annotation says otherwise.
    fn uid(&self) -> &str {
        self.identity.get()
    }

    fn bearer(&self) -> Bearer<'_> {
        let recorded = self.object.status.as_ref().is_some_and(|status| !status.placements.is_empty());
        Bearer { identity: &self.identity, meta: &self.object.metadata, recorded }
    }

    /// Whether ConfigMaps or Secrets were carried for it, or are to be.
    fn has_dependencies(&self) -> bool {
        let conditions = self.object.status.as_ref().map(|status| status.conditions.as_slice());
        has_dependencies(&self.references, conditions)
    }

    /// The leader that planned it last, if any did.
    fn claimant(&self) -> Claimant {
        claims::claimant(self.object.status.as_ref().and_then(|status| status.reservation.as_ref()))
    }

    /// For how many locations the numbers of the spec count.
    fn times(&self) -> u32 {
        match self.object.spec.completions_mode {
            ReplicasMode::PerLocation => {
                u32::try_from(self.object.spec.placement.effective_locations()).unwrap_or(u32::MAX)
            }
            ReplicasMode::Total => 1,
        }
    }

    /// The room that the job holds, as its status says: for the pods that may run at the same time.
    fn claim(&self) -> Claim {
        let record = record::record(self.object.status.as_ref());
        let spec = &self.object.spec;
        let (used, open) = record.parts.values().fold((0u32, 0u32), |(used, open), part| {
            (used.saturating_add(part.in_use()), open.saturating_add(part.open()))
        });
        let most = record::count(spec.parallelism).saturating_mul(self.times());
        let slow = used < open.min(most);
        let waits = record.end.is_none() && !spec.suspend && (self.is_unsettled() || slow);
        Claim {
            uid: self.uid().to_owned(),
            version: self.object.metadata.resource_version.clone(),
            shape: self.shape.as_ref().ok().cloned(),
            held: record.held(),
            waits,
        }
    }

    /// Whether the cluster has a part of the job, by the record.
    fn is_in(&self, cluster: &str) -> bool {
        let placements = self.object.status.iter().flat_map(|status| &status.placements);
        placements.into_iter().any(|placed| placed.cluster == cluster)
    }

    /// Whether a change of clusters makes a difference: completions wait for a cluster, or in one that cannot run them.
    fn is_unsettled(&self) -> bool {
        let stuck = |placed: &JobPlacementStatus| {
            placed.completions > placed.succeeded && (placed.reason.is_some() || placed.active == 0)
        };
        self.object
            .status
            .as_ref()
            .is_none_or(|status| status.pending_completions > 0 || status.placements.iter().any(stuck))
    }
}

impl Jobs {
    /// Jobs for the hub on this fleet.
    pub(crate) fn new(
        hub: &Hub,
        fleet: &Fleet,
        sources: &Sources,
        clock: &Clock,
        seed: Seed,
        claims: &Claims,
        term: &Term,
    ) -> Self {
        fleet.ledger.expect(KIND);
        claims.expect(KIND);
        let controller = Controller {
            hub: hub.clone(),
            fleet: fleet.clone(),
            jobs: Index::default(),
            sources: sources.clone(),
            memory: Memory::default(),
            claims: claims.clone(),
            clock: clock.clone(),
            term: term.clone(),
            recorder: Recorder::new(hub.client.clone(), clock.clone(), "portolan.dev/jobs"),
        };
        Self { queue: Queue::new(seed.child("queue")), controller: Arc::new(controller), seed }
    }

    /// Tells the controller what has changed in members.
    pub(crate) fn wake(&self) -> Wake {
        Wake { jobs: self.controller.jobs.clone(), queue: self.queue.clone() }
    }

    /// How the watch of the kind stands.
    pub(crate) fn health(&self) -> &WatchHealth {
        self.controller.jobs.health()
    }

    /// Runs jobs for ever.
    pub(crate) async fn run(self) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.watch());
        let work = work(&self.queue, WORKERS, &self.controller.clock, |key| self.controller.reconcile(key));
        supervise(tasks, work).await;
    }

    /// Keeps the jobs and what they hold known, for ever.
    pub(crate) fn watch(&self) -> impl Future<Output = ()> + Send + 'static {
        let (ledger, claims) = (self.controller.fleet.ledger.clone(), self.controller.claims.clone());
        let health = self.controller.jobs.health().clone();
        let identities = self.controller.fleet.identities.clone();
        let first = move |change: &Change<Declared>| {
            identities.take(KIND, change, Declared::bearer);
            // The ledger first: whoever sees a job sees what it holds.
            ledger.transact(|book| {
                book.cannot_read(KIND, health.unreadable_uids());
                book.take(KIND, change, Declared::claim);
            });
            claims.take(KIND, change, Declared::claimant);
            AT_ONCE
        };
        let (hub, jobs) = (&self.controller.hub.client, &self.controller.jobs);
        let seed = self.seed.child("multiclusterjobs");
        declared::watch(hub, Declared::of, jobs, &self.queue, first, |_| (), seed)
    }
}

/// Decides which jobs a change concerns.
#[derive(Clone)]
pub(crate) struct Wake {
    jobs: Index<Declared>,
    queue: Queue<Key>,
}

impl Wake {
    /// Room has changed for somebody who waits for it.
    pub(crate) fn room(&self, owner: &Owner) {
        if owner.kind == KIND {
            self.queue.add(owner.key.clone());
        }
    }

    /// Whether a job of a namespace that is on record in a cluster refers to a ConfigMap or Secret.
    pub(crate) fn uses(&self, cluster: &str, namespace: &str, reference: &Reference) -> bool {
        let mut used = false;
        self.jobs.for_each_in(namespace, |_, job| {
            used = used || (job.references.contains_key(reference) && job.is_in(cluster));
        });
        used
    }

    /// Looks again at the jobs of a namespace that refer to a ConfigMap or Secret.
    pub(crate) fn needs(&self, namespace: &str, reference: &Reference) {
        self.jobs.for_each_in(namespace, |key, job| {
            if job.references.contains_key(reference) {
                self.queue.add_after(key.clone(), ROOM_SETTLES);
            }
        });
    }

    /// Something has changed in a member.
    pub(crate) fn touched(&self, cluster: &str, what: &Touched) {
        match what {
            Touched::Job(key) => self.queue.add(key.clone()),
            Touched::Reach | Touched::Distance => self.jobs.for_each(|key, job| {
                if job.is_unsettled() || job.is_in(cluster) {
                    self.queue.add(key.clone());
                }
            }),
            Touched::Room(namespace) => self.jobs.for_each_in(namespace, |key, job| {
                if job.is_unsettled() {
                    self.queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            Touched::Dependency(namespace, reference) => self.needs(namespace, reference),
            Touched::Workload(_) | Touched::Service(_) | Touched::Numbers | Touched::Traffic(_) => {}
        }
    }
}

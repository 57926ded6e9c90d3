//! Placing MultiClusterDeployments: from what is declared in the hub to Deployments in members, and back into status.
//!
//! A reconcile observes (indexes only), decides (pure), reserves (the placement is written into the workload's status by
//! compare-and-swap), and only then touches members. Each step can be repeated; killed anywhere, the next run goes on
//! from what the API says.
//!
//! # Two leaders at once
//!
//! A lease elects one leader, but a leader that stood still or was cut off may come back and go on where it was, with
//! a successor at work. It does no harm, because:
//!
//! 1. **What it still sends rests on what it read before its successor was elected.** Every write goes through
//!    [`Term::call`], which looks at the end of the term just before; see `portolan_runtime`'s lease.
//! 2. **Its decisions lose.** The successor first *claims* every workload, job and service: it writes its own epoch into
//!    `status.reservation` by compare-and-swap, and decides nothing before all are claimed. A decision of the old leader
//!    that arrives later was taken on a version that is gone, and is refused with 409. One that arrived earlier makes
//!    the claim fail and be repeated: then the successor has read it, and counts its room. Workloads made after the
//!    election the old leader has never read, by (1).
//! 3. **Its applies and deletions lose, or are undone.** A change of a copy that exists carries the version that was
//!    seen. The successor writes its epoch on every copy that it keeps, so whatever the old leader saw is outdated.
//!    A copy that the old leader makes where there was none carries the older epoch and its digest: the successor sees
//!    it through its watch, and sets it right or takes it away.
//! 4. **Only the Lease says who leads.** An epoch in a status or on a copy that is greater than one's own is a reason to
//!    ask the Lease ([`Term::confirm`]), and to leave the object alone until it has answered. If the Lease names another
//!    leader, the term ends. If it still names this one, nobody was elected after it: by (1) no leader has that epoch
//!    and may still write. Somebody else wrote the number, or the Lease has lost its count, because it was deleted or
//!    the hub was restored from a backup. The object is then written over with the version that was seen, so what an
//!    older leader saw of it is outdated as in (2) and (3). For this (2) does not compare epochs: an object is claimed
//!    unless its status names this very leader and this very term. So (2) and (3) need no epoch that only grows; that
//!    terms of one holder have different epochs is enough, and a Lease that was deleted goes on from what its candidates
//!    saw of it. An epoch that no Lease can hold is not read at all.

mod adopt;
mod apply;
mod availability;
mod claim;
mod desired;
mod drift;
mod dry_run;
mod identify;
mod memory;
mod news;
mod observe;
mod preview;
mod reconcile;
mod refusals;
mod remove;
mod replace;
mod snapshots;
mod status;

pub(crate) use observe::candidate;

use crate::capacity::{Claim, Owner};
use crate::claims::{self, Claimant, Claims};
use crate::declared::{self, AT_ONCE};
use crate::dependencies::{Reference, References, Sources, has_dependencies, references};
use crate::fleet::{Fleet, Hub, Touched};
use crate::identity::{Bearer, Identity};
use memory::Memory;
use portolan_api::placement::{
    PlacementCause, PlacementPolicy, PlacementState, PlacementStatus, ReplicasMode,
};
use portolan_api::{MultiClusterDeployment, MultiClusterDeploymentSpec};
use portolan_core::capacity::{PodShape, Shape, ShapeError};
use portolan_core::placement::is_shared_out;
use portolan_runtime::{Change, Clock, Index, Key, Queue, Recorder, Seed, Term, supervise, work_in_tasks};
pub(crate) use preview::{Outlook, Previews, Trial};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// Namespaces open in bursts; one look after this long serves them all.
const ROOM_SETTLES: Duration = Duration::from_millis(100);

/// The kind whose claims placement tells the ledger.
const KIND: &str = "MultiClusterDeployment";

/// Most of a look is waiting for API servers. With many more at once, busy ones get less done and other users of theirs
/// wait: of 1,000 workloads on five real clusters, 24 at once were placed faster than 8, 48 or 128.
pub(crate) const WORKERS: usize = 24;

/// A copy on its way to readiness changes several times; one look after this long serves the changes of a moment.
const COPY_SETTLES: Duration = Duration::from_millis(200);

/// The same while those who are asked take long to answer.
const COPY_SETTLES_BUSY: Duration = Duration::from_secs(10);

/// While there is more to do, changes are gathered for so long: what nobody has looked at yet goes first.
const SETTLES_AT_LAST: Duration = Duration::from_secs(30);

/// What changes a whole cluster concerns many workloads; what is begun with some is ended before more are begun.
const CLUSTER_SETTLES_AT_LAST: Duration = Duration::from_secs(120);

/// When to look at a copy that has changed: not before those who are asked can keep up with it.
fn copy_settles(queue: &Queue<Key>) -> (Duration, Duration) {
    (queue.under_way().clamp(COPY_SETTLES, COPY_SETTLES_BUSY), SETTLES_AT_LAST)
}

/// Placement, ready to be run: the workloads of the hub and what decides about them.
pub(crate) struct Placement {
    queue: Queue<Key>,
    controller: Arc<Controller>,
    seed: Seed,
}

impl Placement {
    /// Placement for the hub on this fleet, for the length of a term.
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
        let queue = Queue::new(seed.child("workloads"));
        let controller = Controller {
            recorder: Recorder::new(hub.client.clone(), clock.clone(), "portolan.dev/placement"),
            hub: hub.clone(),
            fleet: fleet.clone(),
            workloads: Index::default(),
            claims: claims.clone(),
            term: term.clone(),
            sources: sources.clone(),
            memory: Memory::default(),
            clock: clock.clone(),
            queue: queue.clone(),
        };
        Self { queue, controller: Arc::new(controller), seed }
    }

    /// Tells placement what has changed in members.
    pub(crate) fn wake(&self) -> Wake {
        Wake { workloads: self.controller.workloads.clone(), queue: self.queue.clone() }
    }

    /// The workloads of the hub.
    pub(crate) fn workloads(&self) -> &Index<Workload> {
        &self.controller.workloads
    }

    /// Places workloads for ever, and tells which of them change.
    pub(crate) async fn run(self, told: impl Fn(&Key) + Send + 'static) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.watch(told));
        let queue = self.queue.clone();
        let (clock, controller) = (self.controller.clock.clone(), self.controller);
        let reconcile = move |key| {
            let controller = Arc::clone(&controller);
            async move { controller.reconcile(key).await }
        };
        supervise(tasks, work_in_tasks(&queue, WORKERS, &clock, reconcile)).await;
    }

    /// Keeps the workloads and what they hold known, for ever, and tells which of them change.
    pub(crate) fn watch(
        &self,
        told: impl Fn(&Key) + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (ledger, claims) = (self.controller.fleet.ledger.clone(), self.controller.claims.clone());
        let (known, queue) = (self.controller.workloads.clone(), self.queue.clone());
        let identities = self.controller.fleet.identities.clone();
        let first = move |change: &Change<Workload>| {
            identities.take(KIND, change, Workload::bearer);
            // The ledger first: whoever sees a workload sees what it holds.
            ledger.transact(|book| {
                book.cannot_read(KIND, known.health().unreadable_uids());
                book.take(KIND, change, Workload::claim);
            });
            claims.take(KIND, change, Workload::claimant);
            match change {
                // Only leaders write its status, and whoever wrote it goes on from there.
                Change::Set(key, now) if known.get(key).is_some_and(|before| before.asks_as(now)) => {
                    copy_settles(&queue)
                }
                _ => AT_ONCE,
            }
        };
        let (hub, workloads) = (&self.controller.hub.client, &self.controller.workloads);
        let seed = self.seed.child("multiclusterdeployments");
        declared::watch(hub, Workload::of, workloads, &self.queue, first, told, seed)
    }
}

/// What the controller works with.
struct Controller {
    hub: Hub,
    fleet: Fleet,
    workloads: Index<Workload>,
    claims: Claims,
    term: Term,
    sources: Sources,
    memory: Memory,
    clock: Clock,
    recorder: Recorder,
    queue: Queue<Key>,
}

/// A workload of the hub, and the shape of its pods, read once.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) object: MultiClusterDeployment,
    identity: Identity,
    shape: Result<Shape, String>,
    /// The labels of its pods.
    labels: BTreeMap<String, String>,
    references: References,
    /// The digests of its copies, by replicas, as they are asked for.
    digests: Mutex<BTreeMap<u32, String>>,
}

impl Workload {
    pub(crate) fn of(object: MultiClusterDeployment) -> Self {
        let template = object.spec.template.to_typed().map_err(|error| error.to_string());
        let labels = template.as_ref().ok().and_then(|template| template.metadata.as_ref()?.labels.clone());
        let shape = template.and_then(|template| {
            let shape = PodShape::of_template(&template).map(Shape::from);
            shape.map_err(|error: ShapeError| error.to_string())
        });
        let references = references(&object.spec.template.0);
        let (identity, labels) = (Identity::of(&object.metadata), labels.unwrap_or_default());
        Self { object, identity, shape, labels, references, digests: Mutex::default() }
    }

    /// Its identity: the uid, unless an annotation says otherwise.
    fn uid(&self) -> &str {
        self.identity.get()
    }

    fn bearer(&self) -> Bearer<'_> {
        let recorded = self.object.status.as_ref().is_some_and(|status| !status.placements.is_empty());
        Bearer { identity: &self.identity, meta: &self.object.metadata, recorded }
    }

    /// Whether users and others who write more than its status left it as it was.
    fn asks_as(&self, other: &Self) -> bool {
        let (one, other) = (&self.object.metadata, &other.object.metadata);
        one.uid == other.uid
            && one.generation == other.generation
            && one.deletion_timestamp == other.deletion_timestamp
            && one.finalizers == other.finalizers
            && one.labels == other.labels
            && one.annotations == other.annotations
    }

    /// Whether ConfigMaps or Secrets were carried for it, or are to be.
    fn has_dependencies(&self) -> bool {
        let conditions = self.object.status.as_ref().map(|status| status.conditions.as_slice());
        has_dependencies(&self.references, conditions)
    }

    /// The leader that decided its placement, if any did.
    fn claimant(&self) -> Claimant {
        claims::claimant(self.object.status.as_ref().and_then(|status| status.reservation.as_ref()))
    }

    /// What the workload holds, as its status says.
    fn claim(&self) -> Claim {
        let placements = self.object.status.iter().flat_map(|status| &status.placements);
        let held = placements.map(|placed| {
            let replicas = u32::try_from(placed.replicas).unwrap_or(0);
            (placed.cluster.as_str(), self.reserves(replicas, placed.ready_replicas))
        });
        let held = held.filter(|(_, replicas)| *replicas > 0);
        Claim {
            uid: self.uid().to_owned(),
            version: self.object.metadata.resource_version.clone(),
            shape: self.shape.as_ref().ok().cloned(),
            held: held.map(|(name, replicas)| (name.to_owned(), replicas)).collect(),
            waits: self.waits_for_room(),
        }
    }

    /// Whether room makes a difference: replicas wait for a cluster, or for a node in their cluster.
    fn is_unsettled(&self) -> bool {
        self.waits_for_room()
            || self
                .object
                .status
                .iter()
                .flat_map(|status| &status.placements)
                .any(|placed| placed.state != PlacementState::Ready)
    }

    /// Whether room would be used: replicas have no cluster, one that only stands in until there is room at home, or
    /// one that has more than its share of them.
    fn waits_for_room(&self) -> bool {
        let Some(status) = &self.object.status else { return true };
        status.pending_replicas > 0 || status.placements.iter().any(stands_in) || !self.is_shared_out()
    }

    fn is_shared_out(&self) -> bool {
        let spec = &self.object.spec;
        spec.replicas_mode != ReplicasMode::Total
            || is_shared_out(
                &spec.placement,
                u32::try_from(spec.replicas).unwrap_or(0),
                &weights(spec),
                &self.held().filter(|(_, replicas)| *replicas > 0).collect(),
            )
    }

    /// The replicas that each cluster is to hold, by the last decision.
    fn held(&self) -> impl Iterator<Item = (&str, u32)> {
        let placements = self.object.status.iter().flat_map(|status| &status.placements);
        placements.map(|placed| (placed.cluster.as_str(), u32::try_from(placed.replicas).unwrap_or(0)))
    }
}

/// Whether a cluster only stands in until there is room at home.
fn stands_in(placed: &PlacementStatus) -> bool {
    use PlacementCause::{Bursting, Cloud, Replacement, Staying, Substitution};
    let cause = matches!(placed.cause, Some(Substitution | Bursting | Cloud | Replacement | Staying));
    placed.replicas > 0 && (cause || placed.substitute_for.is_some())
}

/// The shares of clusters when a total is divided.
fn weights(spec: &MultiClusterDeploymentSpec) -> BTreeMap<String, u32> {
    let weight = |weight: i32| u32::try_from(weight).unwrap_or(0);
    spec.weights.iter().map(|each| (each.cluster.clone(), weight(each.weight))).collect()
}

/// Decides which workloads a change in a member concerns.
#[derive(Clone)]
pub(crate) struct Wake {
    workloads: Index<Workload>,
    queue: Queue<Key>,
}

impl Wake {
    /// Looks again at the workloads of a namespace that refer to a ConfigMap or Secret.
    pub(crate) fn needs(&self, namespace: &str, reference: &Reference) {
        self.workloads.for_each_in(namespace, |key, workload| {
            if workload.references.contains_key(reference) {
                self.queue.add_after(key.clone(), ROOM_SETTLES);
            }
        });
    }

    /// Whether a workload of a namespace that is on record in a cluster refers to a ConfigMap or Secret.
    pub(crate) fn uses(&self, cluster: &str, namespace: &str, reference: &Reference) -> bool {
        let mut used = false;
        self.workloads.for_each_in(namespace, |_, workload| {
            let refers = || workload.references.contains_key(reference);
            used = used || (refers() && workload.held().any(|(name, _)| name == cluster));
        });
        used
    }

    /// Something has changed for a workload that none of its own objects tells: room, or what was carried for it.
    pub(crate) fn room(&self, owner: &Owner) {
        if owner.kind == KIND {
            self.queue.add(owner.key.clone());
        }
    }

    pub(crate) fn touched(&self, cluster: &str, what: &Touched) {
        match what {
            Touched::Workload(key) => {
                let (wait, at_last) = copy_settles(&self.queue);
                self.queue.add_within(key.clone(), wait, at_last);
            }
            Touched::Room(namespace) => self.workloads.for_each_in(namespace, |key, workload| {
                if workload.is_unsettled() {
                    self.queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            Touched::Dependency(namespace, reference) => self.needs(namespace, reference),
            Touched::Service(_) | Touched::Job(_) | Touched::Numbers => {}
            Touched::Traffic(namespace) => self.workloads.for_each_in(namespace, |key, workload| {
                let policy = workload.object.spec.placement.effective_policy();
                if policy == PlacementPolicy::TrafficAware {
                    self.queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            // Who has its place asks how far it is only if it may not be too far.
            Touched::Distance => self.workloads.for_each(|key, workload| {
                if workload.waits_for_room() || workload.object.spec.placement.max_latency.is_some() {
                    self.queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            Touched::Reach => self.workloads.for_each(|key, workload| {
                if workload.is_unsettled() || workload.held().any(|(name, _)| name == cluster) {
                    self.queue.add_within(key.clone(), Duration::ZERO, CLUSTER_SETTLES_AT_LAST);
                }
            }),
        }
    }
}

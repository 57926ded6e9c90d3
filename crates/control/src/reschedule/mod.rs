//! Bringing work home from the cloud and from substitutes, as MultiClusterReschedulers ask for.
//!
//! A rescheduler has no copies in members, so the driver of declared kinds has nothing to do for it: this is a small
//! controller beside it, of the same parts. It looks at all workloads that are away from home, plans (pure), and writes the plan
//! into the status by compare-and-swap. The placement does the rest: it reads the moves from there ([`Reschedulers`]) and
//! confines its decisions to them, so that replicas that stand in stay where they are unless a move says otherwise.
//! Everything is in the status: killed anywhere, the next leader goes on with the moves on record.

mod known;
mod look;
mod status;

pub(crate) use known::{Rescheduler, Reschedulers};

use crate::capacity::Owner;
use crate::driver::{Context, Controller, Declared};
use crate::jobs::Jobs;
use crate::placement::{Placement, Workload};
use kube::Api;
use kube::runtime::watcher;
use portolan_api::MultiClusterRescheduler;
use portolan_core::reschedule::{Stay, WorkloadKey};
use portolan_runtime::{Change, Index, Key, Queue, Recorder, follow_with, supervise, work};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The kind of reschedulers.
pub(crate) const KIND: &str = "MultiClusterRescheduler";

/// Room and copies change in bursts; one look after this long serves them all.
const SETTLES: Duration = Duration::from_secs(1);

/// There are few reschedulers, and a look takes long only while the hub is slow.
const WORKERS: usize = 2;

/// Decides about MultiClusterReschedulers.
pub(crate) struct Rescheduling {
    context: Context,
    placement: Arc<Placement>,
    jobs: Arc<Jobs>,
    queue: Queue<Key>,
    recorder: Recorder,
    /// The stays of each rescheduler, by its uid as well: the status does not list them all.
    stays: Mutex<BTreeMap<Key, (Option<String>, Stays)>>,
}

type Stays = BTreeMap<WorkloadKey, Stay>;

impl Rescheduling {
    /// Rescheduling for a hub, of the workloads that placement places. Jobs are not moved, only named.
    pub(crate) fn new(context: &Context, placement: &Arc<Placement>, jobs: &Arc<Jobs>) -> Arc<Self> {
        let queue = Queue::new(context.seed.child(KIND).child("queue"));
        let queue = context.fleet.queues.show(KIND, queue);
        let recorder =
            Recorder::new(context.hub.client.clone(), context.clock.clone(), "portolan.dev/reschedule");
        let (workloads, known, looks) =
            (placement.base().objects.clone(), context.reschedulers.clone(), queue.clone());
        placement.base().on_change(move |key| workload_changed(&known, &workloads, &looks, key));
        Arc::new(Self {
            context: context.clone(),
            placement: Arc::clone(placement),
            jobs: Arc::clone(jobs),
            queue,
            recorder,
            stays: Mutex::default(),
        })
    }

    /// There is room that a workload waits for.
    pub(crate) fn room_appeared(&self, owner: &Owner) {
        if owner.kind == Workload::KIND {
            let workloads = &self.placement.base().objects;
            workload_changed(&self.context.reschedulers, workloads, &self.queue, &owner.key);
        }
    }

    /// Brings work home for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.watch());
        let work = work(&self.queue, WORKERS, &self.context.clock, |key| self.look(key));
        supervise(tasks, work).await;
    }

    fn stays(&self) -> MutexGuard<'_, BTreeMap<Key, (Option<String>, Stays)>> {
        self.stays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the reschedulers known, for ever. What changes of them has the placement decide again about the workloads
    /// concerned: once it is known here, and not when it was written, so that it is what the decision goes by.
    fn watch(&self) -> impl Future<Output = ()> + Send + 'static {
        let (known, looks) = (self.context.reschedulers.index().clone(), self.queue.clone());
        let base = self.placement.base();
        let (workloads, decisions) = (base.objects.clone(), base.queue.clone());
        let health = known.health().clone();
        let take = move |change| {
            let is_listed = matches!(change, Change::Listed(_));
            for changed in known.replace(change) {
                let (before, after) = (changed.before.as_deref(), changed.after.as_deref());
                if !Rescheduler::asks_alike(before, after) {
                    looks.add(changed.key.clone());
                }
                if Rescheduler::selector(before) != Rescheduler::selector(after) {
                    workloads.for_each(|key, workload| {
                        if workload.stands_in() {
                            decisions.add(key.clone());
                        }
                    });
                }
                for key in moves_that_differ(before, after) {
                    decisions.add(Key::new(&key.namespace, &key.name));
                }
            }
            if is_listed {
                known.health().all_unreadable().into_iter().for_each(|(key, _)| looks.add(key));
            }
        };
        let api = Api::<MultiClusterRescheduler>::all(self.context.hub.client.clone());
        let seed = self.context.seed.child(KIND);
        follow_with(api, watcher::Config::default(), Rescheduler::of, take, seed, health)
    }
}

/// The workloads whose move began, turned or ended.
fn moves_that_differ<'a>(
    before: Option<&'a Rescheduler>,
    after: Option<&'a Rescheduler>,
) -> BTreeSet<&'a WorkloadKey> {
    let known = |each: Option<&'a Rescheduler>, key: &WorkloadKey| {
        each.and_then(|each| each.record.moves.get(key)).map(|each| (each.phase, &each.targets))
    };
    let keys = [before, after].into_iter().flatten().flat_map(|each| each.record.moves.keys());
    keys.filter(|key| known(before, key) != known(after, key)).collect()
}

/// A workload has changed, or what it waits for: looks again at the reschedulers that it concerns.
fn workload_changed(reschedulers: &Reschedulers, workloads: &Index<Workload>, queue: &Queue<Key>, key: &Key) {
    reschedulers.index().for_each(|name, rescheduler| {
        let on_record = rescheduler.knows(key);
        if on_record || workloads.get(key).is_some_and(|workload| workload.stands_in()) {
            queue.add_after(name.clone(), SETTLES);
        }
    });
}

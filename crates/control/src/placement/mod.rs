//! Placing MultiClusterDeployments: from what is declared in the hub to Deployments in members, and back into status.
//!
//! A reconcile observes (indexes only), decides (pure), reserves (the placement is written into the workload's status by
//! compare-and-swap), and only then touches members. Each step can be repeated; killed anywhere, the next run goes on
//! from what the API says.

mod apply;
mod assumed;
mod desired;
mod observe;
mod reconcile;
mod remove;
mod status;

use crate::fleet::{Connect, Fleet, Hub, Touched, keep};
use assumed::Assumed;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::MultiClusterDeployment;
use portolan_api::placement::PlacementState;
use portolan_core::capacity::{PodShape, ShapeError};
use portolan_runtime::{Clock, Index, Key, Queue, Recorder, Seed, feed, work};
use reconcile::Memory;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Changes of room come in bursts; one look after this long serves them all.
const ROOM_SETTLES: Duration = Duration::from_millis(100);

const WORKERS: usize = 16;

/// Runs placement for ever: the fleet's membership and all workloads of the hub. Dropped, it stops at once.
pub async fn run(hub: Client, connect: Arc<dyn Connect>, clock: Clock, seed: Seed) {
    let hub = Hub::identify(hub, seed).await;
    let queue = Queue::<Key>::new(seed.child("workloads"));
    let workloads = Index::<Workload>::default();
    let fleet = Fleet::default();
    let mut tasks = JoinSet::new();
    let changed = queue.clone();
    tasks.spawn(feed(
        Api::<MultiClusterDeployment>::all(hub.client.clone()),
        watcher::Config::default(),
        Workload::of,
        workloads.clone(),
        move |key| changed.add(key.clone()),
        seed.child("multiclusterdeployments"),
    ));
    let wake = Wake { workloads: workloads.clone(), queue: queue.clone() };
    tasks.spawn(keep(
        hub.clone(),
        fleet.clone(),
        connect,
        clock.clone(),
        seed.child("fleet"),
        move |cluster, what| wake.touched(cluster, what),
    ));
    let controller = Controller {
        recorder: Recorder::new(hub.client.clone(), clock.clone(), "portolan.dev/placement"),
        hub,
        fleet,
        workloads,
        assumed: Assumed::default(),
        memory: Memory::default(),
        clock: clock.clone(),
    };
    work(&queue, WORKERS, &clock, |key| controller.reconcile(key)).await;
}

/// What the controller works with.
struct Controller {
    hub: Hub,
    fleet: Fleet,
    workloads: Index<Workload>,
    assumed: Assumed,
    memory: Memory,
    clock: Clock,
    recorder: Recorder,
}

/// A workload of the hub, and the shape of its pods, read once.
#[derive(Debug)]
struct Workload {
    object: MultiClusterDeployment,
    shape: Result<PodShape, String>,
}

impl Workload {
    fn of(object: MultiClusterDeployment) -> Self {
        let shape = match object.spec.template.to_typed() {
            Ok(template) => PodShape::of_template(&template).map_err(|error: ShapeError| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        Self { object, shape }
    }

    fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Whether room makes a difference: replicas wait for a cluster, or for a node in their cluster.
    fn is_unsettled(&self) -> bool {
        self.object.status.as_ref().is_none_or(|status| {
            status.pending_replicas > 0
                || status.placements.iter().any(|placed| placed.state != PlacementState::Ready)
        })
    }

    /// The replicas that each cluster is to hold, by the last decision.
    fn held(&self) -> impl Iterator<Item = (&str, u32)> {
        let placements = self.object.status.iter().flat_map(|status| &status.placements);
        placements.map(|placed| (placed.cluster.as_str(), u32::try_from(placed.replicas).unwrap_or(0)))
    }
}

/// Decides which workloads a change in a member concerns.
#[derive(Clone)]
struct Wake {
    workloads: Index<Workload>,
    queue: Queue<Key>,
}

impl Wake {
    fn touched(&self, cluster: &str, what: Touched) {
        match what {
            Touched::Workload(key) => self.queue.add(key),
            Touched::Room => self.workloads.for_each(|key, workload| {
                if workload.is_unsettled() {
                    self.queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            Touched::Reach => self.workloads.for_each(|key, workload| {
                if workload.is_unsettled() || workload.held().any(|(name, _)| name == cluster) {
                    self.queue.add(key.clone());
                }
            }),
        }
    }
}

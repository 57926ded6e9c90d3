//! Services over clusters: a MultiClusterService becomes a Service in every member that holds the pods it selects.
//!
//! It follows the MultiClusterDeployments whose template it selects: where they are placed, a Service is applied; where
//! their copy is gone, the Service goes too, once pods elsewhere answer. What serves it is read from EndpointSlices.

mod desired;
mod follow;
mod observe;
mod preview;
mod reconcile;
mod remove;
mod status;

pub(crate) use preview::{Previews, ServiceOutlook, ServicePart};

use crate::claims::{self, Claimant, Claims};
use crate::copies::Memory;
use crate::declared::{self, AT_ONCE};
use crate::fleet::{Fleet, Hub, Touched};
use crate::placement::Workload;
use portolan_api::MultiClusterService;
use portolan_runtime::{
    Change, Clock, Index, Key, Queue, Recorder, Seed, Term, WatchHealth, supervise, work,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Namespaces open in bursts; one look after this long serves them all.
const ROOM_SETTLES: Duration = Duration::from_millis(100);

/// The kind, as those know it who claim.
const KIND: &str = "MultiClusterService";

/// How many are decided about at the same time. One member may hold a quarter of them; see the gate of a member.
pub(crate) const WORKERS: usize = 24;

/// The services controller, ready to be run.
pub(crate) struct Services {
    queue: Queue<Key>,
    controller: Arc<Controller>,
    seed: Seed,
}

/// What the controller works with.
struct Controller {
    hub: Hub,
    fleet: Fleet,
    services: Index<MultiClusterService>,
    workloads: Index<Workload>,
    memory: Memory,
    claims: Claims,
    clock: Clock,
    term: Term,
    recorder: Recorder,
}

impl Services {
    /// Services for the hub on this fleet, following these workloads.
    pub(crate) fn new(
        hub: &Hub,
        fleet: &Fleet,
        workloads: &Index<Workload>,
        clock: &Clock,
        seed: Seed,
        claims: &Claims,
        term: &Term,
    ) -> Self {
        claims.expect(KIND);
        let controller = Controller {
            hub: hub.clone(),
            fleet: fleet.clone(),
            services: Index::default(),
            workloads: workloads.clone(),
            memory: Memory::default(),
            claims: claims.clone(),
            clock: clock.clone(),
            term: term.clone(),
            recorder: Recorder::new(hub.client.clone(), clock.clone(), "portolan.dev/services"),
        };
        Self { queue: Queue::new(seed.child("queue")), controller: Arc::new(controller), seed }
    }

    /// Tells the controller what has changed.
    pub(crate) fn wake(&self) -> Wake {
        Wake {
            services: self.controller.services.clone(),
            workloads: self.controller.workloads.clone(),
            queue: self.queue.clone(),
        }
    }

    /// How the watch of the kind stands.
    pub(crate) fn health(&self) -> &WatchHealth {
        self.controller.services.health()
    }

    /// Keeps services for ever.
    pub(crate) async fn run(self) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.watch());
        let work = work(&self.queue, WORKERS, &self.controller.clock, |key| self.controller.reconcile(key));
        supervise(tasks, work).await;
    }

    /// Keeps the services of the hub known, for ever.
    pub(crate) fn watch(&self) -> impl Future<Output = ()> + Send + 'static {
        let (claims, hub) = (self.controller.claims.clone(), &self.controller.hub.client);
        let identities = self.controller.fleet.identities.clone();
        let first = move |change: &Change<MultiClusterService>| {
            identities.take_uids(KIND, change, |service| &service.metadata);
            claims.take(KIND, change, claimant);
            AT_ONCE
        };
        let (services, seed) = (&self.controller.services, self.seed.child("multiclusterservices"));
        declared::watch(hub, |service| service, services, &self.queue, first, |_| (), seed)
    }
}

/// The leader that decided about a service last, if any did.
fn claimant(service: &MultiClusterService) -> Claimant {
    claims::claimant(service.status.as_ref().and_then(|status| status.reservation.as_ref()))
}

/// Decides which services a change concerns.
#[derive(Clone)]
pub(crate) struct Wake {
    services: Index<MultiClusterService>,
    workloads: Index<Workload>,
    queue: Queue<Key>,
}

impl Wake {
    /// Something has changed in a member.
    pub(crate) fn touched(&self, cluster: &str, what: &Touched) {
        match what {
            Touched::Service(key) => self.queue.add(key.clone()),
            Touched::Reach => self.services.for_each(|key, service| {
                let known = service.status.iter().flat_map(|status| &status.clusters);
                if known.into_iter().any(|each| each.cluster == cluster) {
                    self.queue.add(key.clone());
                }
            }),
            // A namespace that is open now lets in a Service that waits for it.
            Touched::Room(namespace) => self.services.for_each_in(namespace, |key, service| {
                let known = service.status.iter().flat_map(|status| &status.clusters);
                if known.into_iter().any(|each| each.cluster == cluster && each.reason.is_some()) {
                    self.queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            Touched::Workload(_)
            | Touched::Job(_)
            | Touched::Dependency(..)
            | Touched::Numbers
            | Touched::Distance
            | Touched::Traffic(_) => {}
        }
    }

    /// A MultiClusterDeployment of the hub has changed.
    pub(crate) fn workload_changed(&self, key: &Key) {
        let workload = self.workloads.get(key);
        self.services.for_each_in(&key.namespace, |service_key, service| {
            let followed = service.status.iter().flat_map(|status| &status.follows);
            let selected = workload.as_ref().is_some_and(|workload| follow::selects(service, workload));
            if selected || followed.into_iter().any(|name| *name == key.name) {
                self.queue.add(service_key.clone());
            }
        });
    }
}

//! CloudProvisioners: clusters and nodes that Cluster API makes on demand.
//!
//! What is to be done is decided by [`portolan_core::provision`]: what waits is divided over all CloudProvisioners, and each
//! of them is planned for. A round does that for all of them: it observes (Clusters and Machines of Cluster API in the hub,
//! the ForeignCluster, the nodes of the member), plans, writes the record into the status by compare-and-swap, and only
//! then carries out the orders.
//!
//! # Why this is no controller of the driver
//!
//! The driver is for kinds with copies in members. A CloudProvisioner has none: its orders go to the hub's own Cluster API,
//! and one decision is about all CloudProvisioners at once.
//!
//! # Two leaders at once
//!
//! No claim is needed. No order is carried out unless a write of the status has succeeded that carried the version which the
//! plan was made on, so of two leaders one loses and looks again. Requests of an old leader that are still under way then
//! do no harm: a Cluster has a name that follows from the record, so it is created once; the number of nodes is changed
//! with the version that was read; a mark, a ForeignCluster or a Cluster that comes late is found, and undone or adopted.

mod cluster_api;
mod condition;
mod demand;
mod member;
mod nodes;
mod object;
mod observe;
mod open;
mod order_error;
mod orders;
mod parts;
mod peer;
mod round;
mod status;
mod templates;
mod topology;
mod visit;
mod watch;

use crate::driver::Context;
use crate::fleet::{Connect, MemberEvent};
use crate::jobs::Jobs;
use crate::placement::Placement;
pub(crate) use cluster_api::GROUP as CLUSTER_API_GROUP;
use cluster_api::{Cluster, DeploymentFacts, MachineFacts, Served};
use nodes::CloudNodes;
use portolan_api::CloudProvisioner;
use portolan_core::provision::Failure;
use portolan_runtime::{Index, Key, Queue, Recorder, Unreadable, supervise, work};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use visit::{VISITORS, Visits};

/// Changes come in bursts; one round after this long serves them all.
const SETTLES: Duration = Duration::from_secs(1);

/// Makes and removes clusters and nodes in clouds.
pub(crate) struct Provision {
    context: Context,
    connect: Arc<dyn Connect>,
    placement: Arc<Placement>,
    jobs: Arc<Jobs>,
    provisioners: Index<CloudProvisioner>,
    clusters: Index<Cluster>,
    deployments: Index<DeploymentFacts>,
    machines: Index<MachineFacts>,
    /// One key: a round is about all CloudProvisioners.
    queue: Queue<()>,
    /// Cloud clusters that are to be visited, by uid of their CloudProvisioner.
    visits: Queue<String>,
    recorder: Recorder,
    /// There are CloudProvisioners.
    appeared: Arc<Notify>,
    state: Mutex<State>,
}

/// What is remembered between rounds; nothing depends on it after a restart.
#[derive(Default)]
struct State {
    served: Served,
    /// The nodes of cloud clusters, by name of their ForeignCluster.
    nodes: BTreeMap<String, CloudNodes>,
    /// Why a Cluster could not be created, by its name.
    refused: BTreeMap<String, Failure>,
    /// Why orders could not be carried out, by uid of the CloudProvisioner.
    problems: BTreeMap<String, String>,
    /// Visits to cloud clusters, by uid of the CloudProvisioner.
    visits: BTreeMap<String, Visits>,
    /// CloudProvisioners that cannot be read, as their users were told.
    unreadable: BTreeMap<Key, Unreadable>,
    /// Clusters without a CloudProvisioner that were reported.
    orphans: Vec<String>,
}

impl Provision {
    /// The provisioning of a hub.
    pub(crate) fn new(
        context: &Context,
        connect: Arc<dyn Connect>,
        placement: &Arc<Placement>,
        jobs: &Arc<Jobs>,
    ) -> Arc<Self> {
        let (seed, queues) = (context.seed.child("provision"), &context.fleet.queues);
        let queue = queues.show("CloudProvisioner", Queue::new(seed.child("queue")));
        for_changes(&queue, |changed| placement.on_change(changed));
        for_changes(&queue, |changed| jobs.on_change(changed));
        Arc::new(Self {
            context: context.clone(),
            connect,
            placement: Arc::clone(placement),
            jobs: Arc::clone(jobs),
            provisioners: Index::default(),
            clusters: Index::default(),
            deployments: Index::default(),
            machines: Index::default(),
            queue,
            visits: queues.show("CloudVisits", Queue::new(seed.child("visits"))),
            recorder: Recorder::new(
                context.hub.client.clone(),
                context.clock.clone(),
                "portolan.dev/provision",
            ),
            appeared: Arc::default(),
            state: Mutex::default(),
        })
    }

    /// The CloudProvisioners of the hub.
    pub(crate) fn provisioners(&self) -> &Index<CloudProvisioner> {
        &self.provisioners
    }

    /// Something has changed in a member.
    pub(crate) fn member_changed(&self, cluster: &str, event: &MemberEvent) {
        if matches!(event, MemberEvent::Health | MemberEvent::Namespace(_)) {
            let mut ours = false;
            self.provisioners.for_each(|_, object| ours |= object.spec.cloud_cluster_name == cluster);
            if ours {
                self.queue.add_after((), SETTLES);
            }
        }
    }

    /// Provisions for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.watch_provisioners());
        tasks.spawn(Arc::clone(&self).watch_cluster_api());
        let rounds = work(&self.queue, 1, &self.context.clock, |()| self.round());
        let visits = work(&self.visits, VISITORS, &self.context.clock, |uid| self.visit(uid));
        supervise(tasks, async { _ = tokio::join!(rounds, visits) }).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has a round made soon when something has changed.
fn for_changes(queue: &Queue<()>, listen: impl FnOnce(Box<dyn Fn(&Key) + Send>)) {
    let queue = queue.clone();
    listen(Box::new(move |_: &Key| queue.add_after((), SETTLES)));
}

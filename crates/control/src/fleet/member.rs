//! One member: its client, and what is known of it.

use super::actuator::{Actuator, Spawner};
use super::facts::is_open;
use super::gate::Gate;
use super::prometheus::ask;
use super::reach::probe;
use super::readable::{Needs, Readable, Watches, supervise};
use super::traffic::Told;
use super::{DeploymentFacts, JobFacts, Mark, Reach, ServiceFacts, SliceFacts, Traffic};
use crate::capacity::{Book, ClusterFeed, Ledger};
use crate::dependencies::{Carriage, Reference};
use crate::names::{HUB_LABEL, TRAFFIC_LABEL, WORKLOAD_LABEL};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::foreigncluster::TrafficSource;
use portolan_core::capacity::{NodeFacts, PodFacts};
use portolan_runtime::{Clock, Index, Key, Seed, feed, follow, follow_with};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What has changed in a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// A copy of a workload: the workload's key in the hub.
    Workload(Key),
    /// A Service of ours or what serves it: the MultiClusterService's key in the hub.
    Service(Key),
    /// A Job of ours: the MultiClusterJob's key in the hub.
    Job(Key),
    /// A namespace: it may be open now.
    Room(String),
    /// Its nodes or pods, and so its numbers. The ledger tells those who wait for room.
    Numbers,
    /// It fell silent, or answers again, or what its ForeignCluster asks for has changed.
    Reach,
    /// How far away it is.
    Distance,
    /// The traffic of services in this namespace.
    Traffic(String),
    /// A ConfigMap or Secret that was carried there: its namespace and which.
    Dependency(String, Reference),
}

/// A cluster of the fleet, watched for as long as this is kept.
pub struct Member {
    /// The name of its ForeignCluster.
    pub name: String,
    /// A client for it.
    pub client: Client,
    /// Its Deployments that this hub has placed there.
    pub deployments: Index<DeploymentFacts>,
    /// Its Services that this hub has placed there.
    pub services: Index<ServiceFacts>,
    /// The EndpointSlices of those Services, which carry their labels.
    pub slices: Index<SliceFacts>,
    /// Its Jobs that this hub has placed there.
    pub jobs: Index<JobFacts>,
    /// Its namespaces, and whether each lets workloads in.
    pub namespaces: Index<bool>,
    /// The traffic that its services tell.
    pub traffic: Traffic,
    /// The ConfigMaps and Secrets that this hub has carried there.
    pub carried: Carriage,
    /// The traffic that its Prometheus tells, if one is asked; it goes before the other.
    pub asked_traffic: Traffic,
    /// Whether it answers.
    pub reach: Reach,
    /// How much it is asked to do at the same time.
    pub(crate) gate: Arc<Gate>,
    /// What is to be done in it.
    pub(crate) actuator: Actuator,
    /// Since when it is watched through this client: a change of its ForeignCluster makes another one.
    pub since: Instant,
    watches: Watches,
    room: Arc<ClusterFeed>,
    _tasks: JoinSet<()>,
}

impl Member {
    /// Starts watching a member, for the hub of this identity. Its nodes and pods go to the ledger.
    #[must_use]
    #[allow(clippy::too_many_arguments, reason = "each is something else that only the caller knows")]
    pub(crate) fn watch(
        name: &str,
        client: Client,
        hub: &str,
        ledger: &Ledger,
        spawner: &Spawner,
        source: Option<&TrafficSource>,
        clock: &Clock,
        seed: Seed,
        touched: impl Fn(Touched) + Clone + Send + Sync + 'static,
    ) -> Self {
        let (reach, traffic, asked_traffic) = (Reach::default(), Traffic::default(), Traffic::default());
        let watches = Watches::new(&reach);
        let deployments = Index::<DeploymentFacts>::fed_by(watches.deployments.clone());
        let namespaces = Index::fed_by(watches.namespaces.clone());
        let room = ledger.open(name);
        let mut tasks = JoinSet::new();
        let opened = {
            let touched = touched.clone();
            move |key: &Key| touched(Touched::Room(key.name.clone()))
        };
        let all = watcher::Config::default;
        let (nodes, pods) = (Arc::clone(&room), Arc::clone(&room));
        let (of_nodes, of_pods) = (touched.clone(), touched.clone());
        tasks.spawn(follow_with(
            Api::<Node>::all(client.clone()),
            all(),
            |node| NodeFacts::of(&node),
            move |change| {
                nodes.nodes(change);
                of_nodes(Touched::Numbers);
            },
            seed.child("nodes"),
            watches.nodes.clone(),
        ));
        tasks.spawn(follow_with(
            Api::<Pod>::all(client.clone()),
            all(),
            |pod| PodFacts::of(&pod, WORKLOAD_LABEL),
            move |change| {
                pods.pods(change);
                of_pods(Touched::Numbers);
            },
            seed.child("pods"),
            watches.pods.clone(),
        ));
        tasks.spawn(feed(
            Api::<Namespace>::all(client.clone()),
            all(),
            |namespace| is_open(&namespace),
            namespaces.clone(),
            opened,
            seed.child("namespaces"),
        ));
        let (heard, busy) = (traffic.clone(), touched.clone());
        tasks.spawn(follow(
            Api::<Service>::all(client.clone()),
            all().labels(TRAFFIC_LABEL),
            |service| Told::of(&service),
            move |change| {
                heard.take(change).into_iter().for_each(|namespace| busy(Touched::Traffic(namespace)))
            },
            seed.child("traffic"),
        ));
        let (index, told) = (deployments.clone(), touched.clone());
        tasks.spawn(feed(
            Api::<Deployment>::all(client.clone()),
            all().labels(&format!("{HUB_LABEL}={hub}")),
            |deployment| DeploymentFacts::of(&deployment),
            deployments.clone(),
            move |key| told(Touched::Workload(owner(index.get(key).map(|each| each.mark.clone()), key))),
            seed.child("deployments"),
        ));
        let ours = || all().labels(&format!("{HUB_LABEL}={hub}"));
        let services = Index::<ServiceFacts>::fed_by(watches.services.clone());
        let slices = Index::<SliceFacts>::fed_by(watches.slices.clone());
        let jobs = Index::<JobFacts>::fed_by(watches.jobs.clone());
        let (index, told) = (services.clone(), touched.clone());
        tasks.spawn(feed(
            Api::<Service>::all(client.clone()),
            ours(),
            |service| ServiceFacts::of(&service),
            services.clone(),
            move |key| told(Touched::Service(owner(index.get(key).map(|each| each.mark.clone()), key))),
            seed.child("services"),
        ));
        let (serves, told) = (Serves::new(slices.clone()), touched.clone());
        tasks.spawn(feed(
            Api::<EndpointSlice>::all(client.clone()),
            ours(),
            |slice| SliceFacts::of(&slice),
            slices.clone(),
            move |key| serves.of(key).into_iter().for_each(|service| told(Touched::Service(service))),
            seed.child("endpointslices"),
        ));
        let (index, told) = (jobs.clone(), touched.clone());
        tasks.spawn(feed(
            Api::<Job>::all(client.clone()),
            ours(),
            |job| JobFacts::of(&job),
            jobs.clone(),
            move |key| told(Touched::Job(owner(index.get(key).map(|each| each.mark.clone()), key))),
            seed.child("jobs"),
        ));
        let carried =
            Carriage::new(client.clone(), hub, seed.child("dependencies"), Arc::new(touched.clone()));
        if let Some(source) = source {
            let (query, told) = (source.prometheus.clone(), touched.clone());
            tasks.spawn(ask(client.clone(), query, asked_traffic.clone(), told, clock.clone()));
        }
        let (told, changed) = (touched.clone(), watches.clone());
        let heard = move |what: Touched| {
            changed.look_again();
            told(what);
        };
        tasks.spawn(probe(client.clone(), reach.clone(), heard, clock.clone()));
        let gate = Arc::<Gate>::default();
        let mut supervisor = JoinSet::new();
        supervisor.spawn(supervise(name.to_owned(), tasks, watches.clone(), touched));
        Self {
            name: name.to_owned(),
            client,
            deployments,
            services,
            slices,
            jobs,
            namespaces,
            traffic,
            carried,
            asked_traffic,
            reach,
            actuator: Actuator::new(Arc::clone(&gate), spawner.clone()),
            gate,
            since: Instant::now(),
            watches,
            room,
            _tasks: supervisor,
        }
    }

    /// Whether all that placing a workload needs is known, and fresh.
    #[must_use]
    pub fn known(&self) -> bool {
        self.readable(Needs::Placement) == Readable::Known
    }

    /// Whether what a decision needs is known, and if not, why.
    #[must_use]
    pub fn readable(&self, needs: Needs) -> Readable {
        self.watches.readable(needs)
    }

    /// Whether the room of its cluster in the ledger is what its watches tell: another connection may have taken over.
    pub(crate) fn is_in(&self, book: &Book) -> bool {
        self.room.is_current(book)
    }
}

/// What an object in a member belongs to. A copy has the name of its owner, so that of one that is gone it is still
/// found.
fn owner(mark: Option<Mark>, key: &Key) -> Key {
    mark.and_then(|mark| mark.owner).unwrap_or_else(|| key.clone())
}

/// Finds the Service of a slice that changed, also of one that is gone.
struct Serves {
    slices: Index<SliceFacts>,
    known: Mutex<BTreeMap<Key, Key>>,
}

impl Serves {
    fn new(slices: Index<SliceFacts>) -> Self {
        Self { slices, known: Mutex::default() }
    }

    fn of(&self, slice: &Key) -> Option<Key> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match self.slices.get(slice) {
            Some(facts) => {
                let service = facts.service.clone()?;
                known.insert(slice.clone(), service.clone());
                Some(service)
            }
            None => known.remove(slice),
        }
    }
}

//! A world: clusters, a clock, a seed, and what goes wrong between them.

mod check;
mod config;
mod fault;
mod hostile;
mod kubeconfig;
mod link;
mod log;
mod partial;
mod requests;
mod service;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portolan_runtime::{Clock, Seed};
use tokio::task::JoinHandle;

use crate::admission::{DenyingPolicy, MutatingHook};
use crate::api::Api;
use crate::auth::User;
use crate::cluster;
use crate::pki::{self, CertificateError, ClientCertificate};
use crate::serve::{self, ServeError, Served};
use crate::server::{Called, Calls, Server};
use crate::store::ObjectKey;
use crate::usage::{self, Flow, PodUsage, ServedTraffic, Source, Traffic};

pub use check::Violation;
pub use config::{ClusterConfig, NodeConfig, WorldConfig};
pub use fault::{Crash, CrashPoint, FaultPlan, FaultRates};
pub use hostile::{HostileAnswer, HostileRule, ObjectEdit};
pub use kubeconfig::ConnectionError;
pub use log::{Change, EventLog, Listener, LogEntry};
pub use partial::{FaultAnswer, PartialFault};
pub use requests::RequestFilter;
pub(crate) use service::ApiService;

use link::Links;

/// Clusters that share a clock, a seed and a network.
///
/// Must be made and used within a tokio runtime. With that runtime single-threaded and its time paused from
/// the start, the same seed gives the same history.
#[derive(Clone)]
pub struct World(Arc<Inner>);

pub(crate) struct Inner {
    clock: Clock,
    seed: Seed,
    log: EventLog,
    links: Arc<Links>,
    traffic: Arc<Traffic>,
    ring_size: usize,
    traffic_sample: Duration,
    clusters: Mutex<BTreeMap<String, (Server, JoinHandle<()>)>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let clusters = self.clusters.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, task) in clusters.values() {
            task.abort();
        }
    }
}

impl World {
    /// A world without clusters.
    #[must_use]
    pub fn new(config: WorldConfig) -> Self {
        let clock = Clock::starting_at(config.start);
        let seed = Seed::new(config.seed);
        let log = EventLog::new();
        let links =
            Links::new(config.faults, clock.clone(), seed.child("faults"), log.clone(), config.latency);
        Self(Arc::new(Inner {
            clock,
            seed,
            log,
            links: Arc::new(links),
            traffic: Arc::default(),
            ring_size: config.ring_size,
            traffic_sample: config.traffic_sample,
            clusters: Mutex::new(BTreeMap::new()),
        }))
    }

    /// Adds a cluster with its nodes and starts its controllers.
    ///
    /// A second cluster of the same name takes the place of the first, which then answers no more.
    pub fn add_cluster(&self, config: ClusterConfig) -> Cluster {
        let seed = self.0.seed.child("cluster").child(&config.name);
        let ring_size = config.ring_size.unwrap_or(self.0.ring_size);
        let clock = self.0.clock.skewed(config.skew);
        let mut api = Api::new(&config.name, clock, seed, self.0.log.clone(), ring_size);
        api.profile = Arc::new(config.profile.clone());
        cluster::bootstrap(&mut api, &config);
        let api = Arc::new(Mutex::new(api));
        let task = tokio::spawn(cluster::run(api.clone(), config.clone()));
        self.0.traffic.add_cluster(&config.name, &api);
        let server = Server::new(api, self.0.traffic.clone());
        let mut clusters = self.0.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, old)) = clusters.insert(config.name.clone(), (server.clone(), task)) {
            old.abort();
        }
        Cluster { name: config.name.into(), server, world: self.0.clone() }
    }

    /// Removes a cluster with all that is in it; answers whether there was one. Connections to it break, and nobody can
    /// connect to it any more.
    pub fn remove_cluster(&self, name: &str) -> bool {
        let found = self.0.clusters.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        let Some((server, task)) = found else { return false };
        task.abort();
        server.remove();
        self.0.traffic.remove_cluster(name);
        self.0.links.remove_cluster(name);
        true
    }

    /// The cluster of that name.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<Cluster> {
        let clusters = self.0.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        let (server, _) = clusters.get(name)?;
        Some(Cluster { name: name.into(), server: server.clone(), world: self.0.clone() })
    }

    /// The clock that all clusters go by.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The seed of this world; take a child of it for whatever else draws.
    #[must_use]
    pub fn seed(&self) -> &Seed {
        &self.0.seed
    }

    /// The history of this world.
    #[must_use]
    pub fn log(&self) -> &EventLog {
        &self.0.log
    }

    /// Cuts a party off from a cluster, both ways: requests wait and time out, watches fall silent.
    pub fn partition(&self, party: &str, cluster: &str) {
        self.0.links.cut(party, cluster);
    }

    /// Joins a party and a cluster again.
    pub fn heal(&self, party: &str, cluster: &str) {
        self.0.links.join(party, cluster);
    }

    /// Cuts a cluster off from everybody.
    pub fn isolate(&self, cluster: &str) {
        self.0.links.cut(link::EVERYBODY, cluster);
    }

    /// Ends the isolation of a cluster; partitions from single parties stay.
    pub fn rejoin(&self, cluster: &str) {
        self.0.links.join(link::EVERYBODY, cluster);
    }

    /// Comes true when the fault plan crashes that party: drop all its tasks, then [`World::restart`] it.
    pub fn crash_signal(&self, party: &str) -> impl Future<Output = ()> + Send + 'static {
        let links = self.0.links.clone();
        let party = party.to_owned();
        async move { links.crashed(&party).await }
    }

    /// Crashes a party now: its requests are never answered again.
    pub fn crash(&self, party: &str) {
        self.0.links.crash(party, "on demand");
    }

    /// Lets a party live again. Clients made before stay dead; make new ones.
    pub fn restart(&self, party: &str) {
        self.0.links.restart(party);
    }

    /// How many requests a party has made.
    #[must_use]
    pub fn requests(&self, party: &str) -> u64 {
        self.0.links.requests(party)
    }

    /// Says how long the way between two names (clusters, parties) and back takes: for requests of a party to a
    /// cluster, and for traffic from one cluster to another.
    pub fn set_round_trip(&self, a: &str, b: &str, time: Duration) {
        self.0.links.set_round_trip(a, b, time);
        self.0.traffic.set_round_trip(a, b, time);
    }

    /// Lets users send requests to a service, or changes how many; the name tells this source from others.
    pub fn send_traffic(&self, name: &str, source: Source) {
        self.0.log.record(self.0.clock.now(), &source.cluster, &format!("traffic {name}: {source:?}"), &[]);
        self.0.traffic.sample();
        let first = !self.0.traffic.flows_now();
        self.0.traffic.set_source(name, Some(source));
        if first {
            self.0.traffic.sample();
            let (traffic, every) = (Arc::downgrade(&self.0.traffic), self.0.traffic_sample);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(every).await;
                    match traffic.upgrade() {
                        Some(traffic) if traffic.flows_now() => traffic.sample(),
                        _ => return,
                    }
                }
            });
        }
    }

    /// What became of all requests since the beginning, or since [`World::forget_traffic`]: for each cluster that users
    /// are in and each service, how many were sent and lost, and how long the others took.
    #[must_use]
    pub fn served_traffic(&self) -> Vec<ServedTraffic> {
        self.0.traffic.served()
    }

    /// Begins to count anew what becomes of requests.
    pub fn forget_traffic(&self) {
        self.0.traffic.forget();
    }

    /// Ends the traffic of a source.
    pub fn stop_traffic(&self, name: &str) {
        self.0.log.record(self.0.clock.now(), "-", &format!("traffic {name} ends"), &[]);
        self.0.traffic.sample();
        self.0.traffic.set_source(name, None);
        self.0.traffic.sample();
    }

    /// Where all requests go at this moment.
    #[must_use]
    pub fn traffic(&self) -> Vec<Flow> {
        self.0.traffic.flows()
    }

    /// Lets some requests fail in one way from now on; a fault of the same name ends.
    pub fn add_fault(&self, fault: PartialFault) {
        self.0.links.add_fault(fault);
    }

    /// Ends a partial fault.
    pub fn end_fault(&self, name: &str) {
        self.0.links.end_fault(name);
    }

    /// Puts rules between a cluster and all who ask it: the first that matches a request answers it. Without rules the
    /// cluster is honest again.
    pub fn hostile(&self, cluster: &str, rules: Vec<HostileRule>) {
        self.0.links.set_hostile(cluster, rules);
    }

    /// Ends the watches that a party has open in a cluster, as an API server does that is started anew.
    pub fn end_watches(&self, party: &str, cluster: &str) {
        self.0.links.end_watches(party, cluster);
    }

    /// Ends all injected request faults; partitions and hostile clusters stay.
    pub fn stop_faults(&self) {
        self.0.links.stop_faults();
    }

    /// Which verbs on which resources were called in all clusters together, and how often.
    #[must_use]
    pub fn calls(&self) -> Vec<Called> {
        let clusters = self.0.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Calls::default();
        clusters.values().for_each(|(server, _)| all.merge(&server.api().calls));
        all.list()
    }

    /// What no store may ever show: every violation found, none if all is well.
    #[must_use]
    pub fn check(&self) -> Vec<Violation> {
        let clusters = self.0.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        clusters.iter().flat_map(|(name, (server, _))| check::check(name, &server.api())).collect()
    }
}

/// One cluster of a world.
#[derive(Clone)]
pub struct Cluster {
    name: Arc<str>,
    server: Server,
    world: Arc<Inner>,
}

impl Cluster {
    /// The cluster's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A client for `party`, whose faults, partitions and crashes it suffers.
    #[must_use]
    pub fn client(&self, party: &str) -> kube::Client {
        self.client_as(party, User::admin())
    }

    /// A client for `party` that calls as `user`, and may do what the cluster's roles allow.
    #[must_use]
    pub fn client_as(&self, party: &str, user: User) -> kube::Client {
        kube::Client::new(self.service(party, Some(user)), "default")
    }

    /// A client for `party` that shows a certificate (in PEM) and has the key to it, as over TLS: it may do what the
    /// cluster's roles allow the certificate's user, as long as the certificate holds.
    pub fn client_with(
        &self,
        party: &str,
        shown: &ClientCertificate,
    ) -> Result<kube::Client, CertificateError> {
        let chain = pki::chain(shown)?;
        Ok(kube::Client::new(self.service(party, None).shown(chain), "default"))
    }

    /// A certificate for a user and its groups, as an administrator has it from the authority's own hand.
    pub fn certificate(
        &self,
        user: &str,
        groups: &[&str],
        life: Duration,
    ) -> Result<ClientCertificate, CertificateError> {
        let mut api = self.server.api();
        let serial = api.new_serial();
        let authority = api.authority().map_err(|error| CertificateError::Text(error.to_string()))?;
        let key = self.world.seed.child("certificate").child(&self.name).child(&format!("{serial:?}"));
        pki::issue(authority, user, groups, (api.now(), life), serial, &key)
    }

    /// Serves this cluster with TLS on `address`; callers there belong to `party` and show a token or a certificate.
    pub async fn serve(&self, party: &str, address: std::net::SocketAddr) -> Result<Served, ServeError> {
        let identity = {
            let api = self.server.api();
            let authority = api.authority().map_err(|error| CertificateError::Text(error.to_string()))?;
            serve::Identity {
                cluster: self.name.to_string(),
                authority: authority.clone(),
                clock: api.clock.clone(),
                seed: self.world.seed.child("serve").child(&self.name),
                token: api.admin_token(),
            }
        };
        serve::serve(address, self.service(party, None), identity).await
    }

    fn service(&self, party: &str, user: Option<User>) -> ApiService {
        ApiService::new(self.server.clone(), self.world.clone(), self.name.clone(), party, user)
    }

    /// Makes a simulated node fall silent: its pods neither start nor stop, and after 40 seconds it is unreachable.
    pub fn fail_node(&self, node: &str) {
        let mut api = self.server.api();
        let now = api.now();
        api.silent_nodes.insert(node.into(), now);
        api.touch_node(node, "falls silent");
    }

    /// A node comes up that was not there at first.
    pub(crate) fn register_node(&self, node: serde_json::Value) -> Result<(), crate::error::ApiError> {
        let mut api = self.server.api();
        let row = api.row("", "nodes")?;
        api.create(&row, "", node, &crate::api::Writer::named("kubelet")).map(|_| ())
    }

    /// Lets a silent node speak again.
    pub fn restore_node(&self, node: &str) {
        let mut api = self.server.api();
        api.silent_nodes.remove(node);
        api.touch_node(node, "is back");
    }

    /// Stops the signers of certificates, or lets them run again: requests that are approved meanwhile are signed then.
    pub fn stop_signers(&self, stopped: bool) {
        self.note(if stopped { "signers stop" } else { "signers run" });
        self.server.api().signers_stopped = stopped;
    }

    /// What a pod uses at this moment; none if it does not run.
    #[must_use]
    pub fn pod_usage(&self, namespace: &str, pod: &str) -> Option<PodUsage> {
        let key = ObjectKey::new(namespace, pod);
        let load = self.world.traffic.loads(&self.name).get(&key).copied().unwrap_or(0);
        let api = self.server.api();
        let found = api.store.get("/pods", &key)?;
        usage::metered(&api, &found).usage(load, api.now()).map(PodUsage::from)
    }

    /// Installs a hook; one of the same name goes.
    pub fn add_hook(&self, hook: MutatingHook) {
        self.note(&format!("hook {} is installed", hook.name()));
        self.server.api().admission.hooks.insert(hook.name().to_owned(), hook);
    }

    /// Installs a policy; one of the same name goes.
    pub fn add_policy(&self, policy: DenyingPolicy) {
        self.note(&format!("policy {} is installed", policy.name()));
        self.server.api().admission.policies.insert(policy.name().to_owned(), policy);
    }

    /// Removes the hook and the policy of this name.
    pub fn remove_admission(&self, name: &str) {
        self.note(&format!("{name} is removed from admission"));
        let mut api = self.server.api();
        api.admission.hooks.remove(name);
        api.admission.policies.remove(name);
    }

    fn note(&self, text: &str) {
        self.world.log.record(self.world.clock.now(), &self.name, text, &[]);
    }

    /// Forgets past events: watches from earlier revisions are told 410 and must list again.
    pub fn compact(&self) {
        self.server.api().store.compact();
    }

    /// Which verbs on which resources were called here, and how often.
    #[must_use]
    pub fn calls(&self) -> Vec<Called> {
        self.server.api().calls.list()
    }

    /// The revision of the last change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.server.api().store.revision()
    }

    /// How many objects of a resource (`deployments`, group `apps`) there are.
    #[must_use]
    pub fn count(&self, group: &str, plural: &str) -> usize {
        self.server.api().store.count(&format!("{group}/{plural}"))
    }
}

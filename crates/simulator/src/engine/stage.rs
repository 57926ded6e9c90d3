//! The world of a scenario: a hub with the controllers of production, its members, and clouds.

use super::{SimulationError, access, beginning, cloud, manifests};
use crate::record::Observer;
use crate::scenario::{Baseline, Scenario};
use jiff::Timestamp;
use kube::{Client, Config};
use portolan_control::fleet::{Bearer, Credentials};
use portolan_control::peering::{self, Address, Peer, Sides, join};
use portolan_control::{Settings, run_with};
use portolan_runtime::{Seed, Term, chain};
use portolan_sandbox::{CloudApi, Cluster, ClusterConfig, User, World, WorldConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The name by which the requests of the controllers are known to the world.
pub(super) const CONTROLLER: &str = "controller";

/// When simulations begin: a Monday at midnight, UTC.
const BEGINNING: i64 = 1_799_625_600;

/// What becomes of single requests is not recorded, and to note it takes most of the time if it is done often.
const RARELY: Duration = Duration::from_secs(600);

/// How long the controllers have to know the fleet before time is counted.
const WARM_UP: Duration = Duration::from_secs(60);

/// Longer than any simulation: tokens are never renewed.
const TOKEN_LIFETIME: i64 = 30 * 86_400;

/// The world of a scenario, with the controllers at work.
pub(crate) struct Stage {
    pub(crate) world: World,
    /// The clouds by name.
    pub(crate) clouds: BTreeMap<String, CloudApi>,
    hub: Cluster,
    _controllers: JoinSet<()>,
}

impl Stage {
    /// Makes the clusters and lets the controllers know them.
    pub(super) async fn build(
        scenario: &Scenario,
        seed: u64,
        baseline: Option<Baseline>,
        observer: &Observer,
    ) -> Result<Self, SimulationError> {
        let start = Timestamp::from_second(BEGINNING).unwrap_or(Timestamp::UNIX_EPOCH);
        let world = World::new(WorldConfig { seed, start, traffic_sample: RARELY, ..WorldConfig::default() });
        observer.follow(&world);
        let hub = world.add_cluster(ClusterConfig::named("hub"));
        let namespaces = namespaces(scenario);
        let user = hub.client("user");
        for name in &namespaces {
            access::apply(&user, &manifests::open_namespace(name)).await?;
        }
        distances(scenario, &world);
        for index in 0..scenario.clusters.len() {
            add_member(scenario, index, &world, &hub, &namespaces).await?;
        }
        let mut stage = Self { world, clouds: BTreeMap::new(), hub, _controllers: JoinSet::new() };
        if baseline.is_none() {
            beginning::place(scenario, &stage.hub.client("user")).await?;
            stage.clouds = cloud::install(scenario, &stage.world, &stage.hub).await?;
            stage._controllers.spawn(control(stage.world.clone(), stage.hub.clone(), Seed::new(seed)));
        }
        tokio::time::sleep(WARM_UP).await;
        Ok(stage)
    }

    /// Clients of a user, in these clusters or in the hub if none is named.
    pub(super) fn users(&self, clusters: &[String]) -> Result<Vec<Client>, SimulationError> {
        if clusters.is_empty() {
            return Ok(vec![self.hub.client("user")]);
        }
        clusters.iter().map(|name| self.client(name, "user")).collect()
    }

    /// A client of a cluster.
    pub(super) fn client(&self, cluster: &str, party: &str) -> Result<Client, SimulationError> {
        let missing =
            || SimulationError::SetUp { cluster: cluster.to_owned(), reason: "it does not exist".to_owned() };
        self.world.cluster(cluster).map(|found| found.client(party)).ok_or_else(missing)
    }
}

/// The namespaces of the scenario: its own, and those that objects name.
fn namespaces(scenario: &Scenario) -> BTreeSet<String> {
    let manifests = scenario.objects.iter().filter_map(|step| step.manifest.as_ref());
    let named = manifests.filter_map(|manifest| manifest["metadata"]["namespace"].as_str());
    let traffic = scenario.traffic.iter().filter_map(|traffic| traffic.namespace.as_deref());
    named.chain(traffic).chain([scenario.namespace.as_str()]).map(str::to_owned).collect()
}

/// Tells the world how far its clusters are from each other and from the controllers.
fn distances(scenario: &Scenario, world: &World) {
    let names: Vec<&str> = scenario.clusters.iter().map(|each| each.name.as_str()).collect();
    for (index, name) in names.iter().enumerate() {
        for other in names.iter().skip(index + 1) {
            if let Some(rtt) = scenario.rtt(scenario.site_of(name), scenario.site_of(other)) {
                world.set_round_trip(name, other, rtt.0);
            }
        }
        let hub = scenario.hub.site.as_deref();
        if let Some(rtt) = hub.and_then(|hub| scenario.rtt(hub, scenario.site_of(name))) {
            world.set_round_trip(CONTROLLER, name, rtt.0);
        }
    }
}

async fn add_member(
    scenario: &Scenario,
    index: usize,
    world: &World,
    hub: &Cluster,
    namespaces: &BTreeSet<String>,
) -> Result<(), SimulationError> {
    let Some(spec) = scenario.clusters.get(index) else { return Ok(()) };
    let member = world.add_cluster(beginning::cluster(spec));
    let others = scenario.clusters.iter().take(index).map(|each| each.name.as_str());
    let latencies = others.filter_map(|other| manifests::latency(scenario, &spec.name, other)).collect();
    let mut labels: BTreeMap<String, String> = spec.labels.clone();
    labels.extend(spec.site.clone().map(|site| ("site".to_owned(), site)));
    let address = Address { server: format!("https://{}", spec.name), ..Address::default() };
    let sides = Sides { hub: hub.client("admin"), member: member.client("admin"), address };
    let peer = Peer {
        name: spec.name.clone(),
        labels,
        latencies,
        namespaces: beginning::open_namespaces(spec, namespaces),
        token_lifetime: TOKEN_LIFETIME,
        ..Peer::default()
    };
    let joined = join(&sides, &peer, world.clock().now(), &|_| ()).await;
    let refused = |error| SimulationError::SetUp { cluster: spec.name.clone(), reason: chain(&error) };
    joined.map_err(refused)?;
    beginning::member(spec, namespaces, &hub.client("admin"), &member).await
}

/// The controllers of a hub, as in production; clusters are reached inside the world.
async fn control(world: World, hub: Cluster, seed: Seed) {
    let (hub, clock) = (hub.client(CONTROLLER), world.clock().clone());
    let dial = move |config: Config, bearer: Option<&Bearer>| {
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        let cluster = world.cluster(&host).ok_or_else(|| format!("no cluster is called {host}"))?;
        let anonymous = || cluster.client_as(CONTROLLER, User::named("system:anonymous"));
        Ok(bearer.map_or_else(|| cluster.client(CONTROLLER), |bearer| bearer.put_on(anonymous())))
    };
    let connect = Arc::new(Credentials::dialling(hub.clone(), Arc::new(dial)));
    let term = Term::alone("simulator");
    let running = run_with(
        hub.clone(),
        connect.clone(),
        clock.clone(),
        seed.child("controllers"),
        term,
        Settings::default(),
    );
    tokio::join!(running, peering::run(hub, connect, clock, seed.child("peering")));
}

//! Clusters with all of Portolan at work in each, by the rights that are documented.

use super::dial::{by_config, keys};
use super::judge::Judge;
use super::own_work;
use super::plan::{Plan, Site};
use crate::open_namespace;
use crate::simulation::{CONTROLLER, apply};
use jiff::Timestamp;
use kube::{Client, Config};
use portolan_control::fleet::{Bearer, Credentials};
use portolan_control::peering::{self, hub_roles, install_definitions};
use portolan_control::{sharing, tenancy};
use portolan_runtime::{Clock, Seed, Term};
use portolan_sandbox::{Cluster, ClusterConfig, NodeConfig, User, World, WorldConfig};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Who nothing goes wrong for: an administrator with kubectl.
pub(super) const ADMIN: &str = "admin";

/// A namespace that may be opened beside the usual one.
pub(super) const EXTRA: &str = "extra";

/// The controllers of a cluster, as the world knows them.
pub(super) fn controller(cluster: &str) -> String {
    format!("{CONTROLLER}-{cluster}")
}

/// The commands of a cluster's administrator.
pub(super) fn command(cluster: &str) -> String {
    format!("command-{cluster}")
}

/// The clusters of a world, and what runs in them.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) sites: Vec<Site>,
    pub(super) lifetime: i32,
    seed: Seed,
    /// The controllers that run, by cluster.
    running: BTreeMap<&'static str, JoinHandle<()>>,
}

impl Stage {
    pub(super) async fn new(seed: u64, plan: Plan, judge: &Judge) -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap_or_default();
        let latency = (Duration::from_millis(1), Duration::from_millis(12));
        let config = WorldConfig { seed, start, faults: plan.faults, latency, ..WorldConfig::default() };
        let world = World::new(config);
        let cpus = |site: &Site| {
            (site.name.to_owned(), i64::from(site.cpus) * 1000 * i64::try_from(site.nodes).unwrap_or(0))
        };
        judge.follow(&world, plan.clusters.iter().map(cpus).collect());
        for site in &plan.clusters {
            let node = NodeConfig::new(site.cpus.to_string(), "8Gi");
            let config = ClusterConfig::named(site.name).nodes(site.nodes, node).skew(site.ahead);
            let admin = world.add_cluster(config).client(ADMIN);
            let installed = install_definitions(&admin).await;
            assert!(installed.is_ok(), "{installed:?}");
            for role in hub_roles() {
                apply(&admin, &role).await;
            }
            apply(&admin, &open_namespace()).await;
            let mut extra = open_namespace();
            extra["metadata"]["name"] = json!(EXTRA);
            apply(&admin, &extra).await;
            own_work::create(&admin).await;
        }
        let seed = Seed::new(seed);
        let (sites, lifetime) = (plan.clusters, plan.lifetime);
        let mut stage = Self { world, sites, lifetime, seed, running: BTreeMap::new() };
        for site in 0..stage.sites.len() {
            stage.start(site);
        }
        stage
    }

    pub(super) fn name(&self, site: usize) -> &'static str {
        self.sites[site].name
    }

    pub(super) fn cluster(&self, site: usize) -> Cluster {
        let found = self.world.cluster(self.name(site));
        found.expect("clusters stay")
    }

    /// A client of an administrator to whom nothing goes wrong.
    pub(super) fn admin(&self, site: usize) -> Client {
        self.cluster(site).client(ADMIN)
    }

    /// The clock of a cluster.
    pub(super) fn clock(&self, site: usize) -> Clock {
        self.world.clock().skewed(self.sites[site].ahead)
    }

    /// Starts the controllers of a cluster, if they do not run.
    pub(super) fn start(&mut self, site: usize) {
        let (name, clock) = (self.name(site), self.clock(site));
        if self.running.contains_key(name) {
            return;
        }
        self.world.restart(&controller(name));
        let work = for_ever(self.world.clone(), name, clock, self.seed.child(name));
        self.running.insert(name, tokio::spawn(work));
    }

    /// Ends the controllers of a cluster, without a word.
    pub(super) fn end(&mut self, site: usize) -> bool {
        let name = self.name(site);
        let Some(task) = self.running.remove(name) else { return false };
        task.abort();
        self.world.crash(&controller(name));
        true
    }

    pub(super) fn stop(&mut self) {
        std::mem::take(&mut self.running).into_values().for_each(|task| task.abort());
    }
}

/// Runs the controllers of a cluster for ever; crashed, they start anew a second later.
async fn for_ever(world: World, name: &'static str, clock: Clock, seed: Seed) {
    let party = controller(name);
    loop {
        tokio::select! {
            biased;
            () = world.crash_signal(&party) => {}
            () = controllers(&world, name, &clock, seed) => {}
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.restart(&party);
    }
}

/// One life of the controllers, as `portolan controller` runs them.
async fn controllers(world: &World, name: &str, clock: &Clock, seed: Seed) {
    let party = controller(name);
    let Some(cluster) = world.cluster(name) else { return };
    let account = User::service_account(peering::NAMESPACE, peering::CONTROLLER);
    let hub = cluster.client_as(&party, account);
    let (others, who) = (world.clone(), party.clone());
    let dial = move |config: Config, bearer: Option<&Bearer>| {
        let client = by_config(&others, &who, &config)?;
        Ok(bearer.map_or(client.clone(), |bearer| bearer.put_on(client)))
    };
    let connect = Arc::new(Credentials::dialling(hub.clone(), Arc::new(dial)));
    let term = Term::alone(&party);
    // Each life has keys of its own.
    let new_keys = keys(&format!("{name} renews from {}", clock.now()));
    let own = seed.child("tenancy");
    let placing = portolan_control::run(hub.clone(), connect.clone(), clock.clone(), seed, term.clone());
    let peering = peering::run(hub.clone(), connect.clone(), clock.clone(), seed.child("peering"));
    let serving = tenancy::run(hub.clone(), clock.clone(), own, term.clone());
    let renewing = tenancy::renew(hub.clone(), connect, clock.clone(), own, term, new_keys);
    let sharing = sharing::provide(hub, clock.clone(), seed.child("sharing"));
    Box::pin(async {
        tokio::select! { biased; () = placing => {}, () = peering => {}, () = sharing => {}, () = serving => {}, () = renewing => {} }
    })
    .await;
}

//! A hub with Cluster API, members that have joined it, and controllers that go by the credentials in the hub.

use super::cloud::{CLOUDS, cluster_class, cluster_templates};
use super::draw::Plan;
use crate::simulation::readiness::Readiness;
use crate::simulation::{CONTROLLER, apply};
use crate::{NAMESPACE, open_namespace};
use jiff::Timestamp;
use kube::Config;
use portolan_control::fleet::{Bearer, Credentials};
use portolan_control::peering::{self, Address, Peer, Sides, join};
use portolan_runtime::{Seed, Term};
use portolan_sandbox::{CloudApi, Cluster, ClusterConfig, FaultPlan, NodeConfig, User, World, WorldConfig};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The clusters of a world, and the cloud behind the hub.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) hub: Cluster,
    pub(super) cloud: CloudApi,
}

impl Stage {
    pub(super) async fn new(seed: u64, faults: FaultPlan, plan: &Plan, readiness: &Readiness) -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap_or_default();
        let world = World::new(WorldConfig { seed, start, faults, ..WorldConfig::default() });
        readiness.follow(&world);
        let hub = world.add_cluster(ClusterConfig::named("hub"));
        for (name, nodes, cpus) in &plan.members {
            let node = NodeConfig::new(cpus.to_string(), "16Gi");
            let member = world.add_cluster(ClusterConfig::named(*name).nodes(*nodes, node));
            let address = Address { server: format!("https://{name}"), ..Address::default() };
            let sides = Sides { hub: hub.client("admin"), member: member.client("admin"), address };
            let peer = Peer {
                name: (*name).to_owned(),
                namespaces: vec![NAMESPACE.to_owned()],
                token_lifetime: 86_400,
                ..Peer::default()
            };
            let joined = join(&sides, &peer, world.clock().now(), &|_| ()).await;
            assert!(joined.is_ok(), "{name} cannot join: {joined:?}");
        }
        let cloud = CloudApi::install(&world, &hub, plan.cloud.clone()).await;
        let cloud = cloud.expect("the hub takes the definitions of Cluster API");
        let user = hub.client("user");
        apply(&user, &open_namespace()).await;
        apply(&user, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLOUDS}})).await;
        for object in cluster_class().into_iter().chain(cluster_templates(&["small", "large"])) {
            apply(&user, &object).await;
        }
        Self { world, hub, cloud }
    }
}

/// Runs the controllers for ever; crashed, they start anew a second later.
pub(super) async fn for_ever(world: World, hub: Cluster, seed: Seed) {
    loop {
        tokio::select! {
            biased;
            () = world.crash_signal(CONTROLLER) => {}
            () = controllers(&world, &hub, seed) => {}
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.restart(CONTROLLER);
    }
}

/// One life of the controllers, those of peering among them. They reach clusters by the kubeconfigs in the hub; one without a
/// token is that of an administrator.
pub async fn controllers(world: &World, hub: &Cluster, seed: Seed) {
    let (hub, clock) = (hub.client(CONTROLLER), world.clock().clone());
    let others = world.clone();
    let dial = move |config: Config, bearer: Option<&Bearer>| {
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        let cluster = others.cluster(&host).ok_or_else(|| format!("no cluster is called {host}"))?;
        let anonymous = || cluster.client_as(CONTROLLER, User::named("system:anonymous"));
        Ok(bearer.map_or_else(|| cluster.client(CONTROLLER), |bearer| bearer.put_on(anonymous())))
    };
    let connect = Arc::new(Credentials::dialling(hub.clone(), Arc::new(dial)));
    let term = Term::alone(CONTROLLER);
    let running = portolan_control::run(hub.clone(), connect.clone(), clock.clone(), seed, term);
    tokio::join!(running, peering::run(hub, connect, clock, seed.child("peering")));
}

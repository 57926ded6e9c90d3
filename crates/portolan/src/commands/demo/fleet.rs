//! The fleet of the demo: the five sites of the mck8s paper, with their sizes, and a hub.

use super::live;
use crate::failure::Failure;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_control::fleet::{Connect, ConnectError};
use portolan_control::peering::identity;
use portolan_runtime::{Seed, Term};
use portolan_sandbox::{Cluster, ClusterConfig, NodeConfig, Served, World, WorldConfig};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Site, CPUs and memory of each of its five nodes.
const SITES: [(&str, &str, &str, &str); 5] = [
    ("cluster1", "Rennes", "4", "16Gi"),
    ("cluster2", "Nantes", "2", "4Gi"),
    ("cluster3", "Lille", "2", "4Gi"),
    ("cluster4", "Grenoble", "2", "4Gi"),
    ("cluster5", "Luxembourg", "4", "16Gi"),
];

/// Round-trip times between the sites in milliseconds: Table II of the paper, in the order of [`SITES`].
const RTT: [[f64; 5]; 5] = [
    [0.0, 2.16, 23.26, 17.45, 27.41],
    [2.16, 0.0, 22.21, 16.38, 26.29],
    [23.26, 22.21, 0.0, 12.06, 11.88],
    [17.45, 16.38, 12.06, 0.0, 15.33],
    [27.41, 26.29, 11.88, 15.33, 0.0],
];

const CONTROLLER: &str = "controller";

/// The namespace that the demo works in.
pub(super) const NAMESPACE: &str = "demo";

/// The clusters of the demo, with the controllers at work on them.
pub(super) struct Fleet {
    pub(super) hub: Client,
    world: World,
    served: Vec<Served>,
    _tasks: JoinSet<()>,
}

impl Fleet {
    pub(super) async fn start(seed: u64) -> Result<Self, Failure> {
        let world = World::new(WorldConfig { seed, start: Timestamp::now(), ..WorldConfig::default() });
        let hub = world.add_cluster(ClusterConfig::named("hub"));
        let user = hub.client("user");
        for crd in portolan_api::served_crds() {
            apply(&user, &serde_json::to_value(crd).map_err(Failure::other)?).await?;
        }
        apply(&user, &namespace()).await?;
        let mut served = vec![serve(&hub).await?];
        for (index, (name, site, cpu, memory)) in SITES.into_iter().enumerate() {
            let member = world.add_cluster(ClusterConfig::named(name).nodes(5, NodeConfig::new(cpu, memory)));
            apply(&member.client("user"), &namespace()).await?;
            served.push(serve(&member).await?);
            let id = identity(&member.client("user"), name).await.map_err(Failure::other)?;
            apply(&user, &foreign_cluster(index, name, site, &id)).await?;
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(control(world.clone(), hub.clone(), Seed::new(seed)));
        tasks.spawn(live::follow(user.clone()));
        Ok(Self { hub: user, world, served, _tasks: tasks })
    }

    /// The clusters as kubectl reaches them, the hub first.
    pub(super) fn served(&self) -> &[Served] {
        &self.served
    }

    /// The world that the clusters are in.
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Cuts the controllers off from a member.
    pub(super) fn cut(&self, member: &str) {
        self.world.partition(CONTROLLER, member);
    }

    /// Joins what was cut.
    pub(super) fn heal(&self, member: &str) {
        self.world.heal(CONTROLLER, member);
    }

    /// How many Deployments of this name are in the members.
    pub(super) async fn copies(&self, name: &str) -> Result<usize, Failure> {
        Ok(self.deployments(name).await?.len())
    }

    /// How many replicas of the Deployments of this name are ready, in all members together.
    pub(super) async fn ready(&self, name: &str) -> Result<i32, Failure> {
        let ready = |each: Deployment| each.status.and_then(|status| status.ready_replicas).unwrap_or(0);
        Ok(self.deployments(name).await?.into_iter().map(ready).sum())
    }

    async fn deployments(&self, name: &str) -> Result<Vec<Deployment>, Failure> {
        let mut found = Vec::new();
        for (cluster, ..) in SITES {
            let Some(member) = self.world.cluster(cluster) else { continue };
            let api: Api<Deployment> = Api::namespaced(member.client("user"), NAMESPACE);
            found.extend(api.get_opt(name).await.map_err(Failure::other)?);
        }
        Ok(found)
    }
}

/// Serves a cluster to kubectl on a free port of this machine's own.
async fn serve(cluster: &Cluster) -> Result<Served, Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let served = cluster.serve("kubectl", address).await;
    served.map_err(|error| Failure::other(format!("cannot serve cluster {}: {error}", cluster.name())))
}

/// The sites, as lines for people.
pub(super) fn sites() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    SITES.iter().map(|(name, site, cpu, memory)| (*name, *site, format!("5 nodes of {cpu} CPUs, {memory}")))
}

/// Applies an object to a cluster, as `kubectl apply --server-side` does.
pub(super) async fn apply(client: &Client, object: &Value) -> Result<(), Failure> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply("demo").force();
    match api.patch(name, &params, &Patch::Apply(object)).await {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::other(format!(
            "cannot apply {} {name}: {}",
            text("kind"),
            portolan_runtime::chain(&error)
        ))),
    }
}

async fn control(world: World, hub: Cluster, seed: Seed) {
    let connect = Arc::new(InProcess { world: world.clone() });
    let term = Term::alone(CONTROLLER);
    portolan_control::run(hub.client(CONTROLLER), connect, world.clock().clone(), seed, term).await;
}

struct InProcess {
    world: World,
}

impl Connect for InProcess {
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let client = self.world.cluster(name).map(|cluster| cluster.client(CONTROLLER));
        Box::pin(async { client.ok_or(ConnectError::NoCredentials) })
    }
}

fn namespace() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"portolan.dev/placement": "allowed"}},
    })
}

fn foreign_cluster(index: usize, name: &str, site: &str, id: &str) -> Value {
    let latency = |other: usize| json!({"to": SITES[other].0, "rtt": format!("{}ms", RTT[index][other])});
    let latencies: Vec<Value> = (index + 1..SITES.len()).map(latency).collect();
    json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "ForeignCluster",
        "metadata": {"name": name, "labels": {"site": site}},
        "spec": {"clusterIdentity": {"clusterID": id, "clusterName": site}, "latencies": latencies},
    })
}

//! A management cluster with a simulated Cluster API, and what is asked of it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::common::world;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use portolan_sandbox::{
    CloudApi, CloudConfig, CloudMachine, Cluster, ClusterConfig, NodeConfig, World, cluster_class,
};
use serde_json::{Value, json};
pub(crate) const NAMESPACE: &str = "default";
pub(crate) const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";

/// A management cluster with Cluster API.
pub(crate) struct Stage {
    pub world: World,
    pub hub: Cluster,
    pub cloud: CloudApi,
}

pub(crate) fn config() -> CloudConfig {
    CloudConfig::default()
        .machine_type("small", CloudMachine::new(NodeConfig::new("2", "4Gi")).price(40_000))
        .machine_type("large", CloudMachine::new(NodeConfig::new("8", "32Gi")).price(160_000))
}

impl Stage {
    pub(crate) async fn new(seed: u64, config: CloudConfig) -> Self {
        Self::in_world(world(seed), config).await
    }

    pub(crate) async fn in_world(world: World, config: CloudConfig) -> Self {
        let hub = world.add_cluster(ClusterConfig::named("hub"));
        let cloud = CloudApi::install(&world, &hub, config).await.unwrap();
        let stage = Self { world, hub, cloud };
        for object in class() {
            stage.create(&object).await.unwrap();
        }
        stage
    }

    pub(crate) fn client(&self) -> Client {
        self.hub.client("user")
    }

    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let group = match kind {
            kind if kind.starts_with("SandboxControlPlane") => "controlplane.cluster.x-k8s.io",
            kind if kind.starts_with("SandboxBootstrap") => "bootstrap.cluster.x-k8s.io",
            kind if kind.starts_with("Sandbox") => "infrastructure.cluster.x-k8s.io",
            _ => "cluster.x-k8s.io",
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", kind));
        Api::namespaced_with(self.client(), NAMESPACE, &resource)
    }

    pub(crate) async fn create(&self, object: &Value) -> Result<(), kube::Error> {
        let api = self.api(object["kind"].as_str().unwrap());
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        api.create(&PostParams::default(), &object).await.map(|_| ())
    }

    pub(crate) async fn get(&self, kind: &str, name: &str) -> Value {
        serde_json::to_value(self.api(kind).get(name).await.unwrap()).unwrap()
    }

    pub(crate) async fn list(&self, kind: &str) -> Vec<Value> {
        let all = self.api(kind).list(&ListParams::default()).await.unwrap().items;
        all.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect()
    }

    /// Sets how many machines the only pool of the cluster has.
    pub(crate) async fn scale(&self, cluster: &str, replicas: u32) {
        let mut object = self.get("Cluster", cluster).await;
        object["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"] = json!(replicas);
        let patch = json!({"spec": {"topology": object["spec"]["topology"]}});
        self.api("Cluster").patch(cluster, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    pub(crate) async fn mark(&self, machine: &str) {
        let patch = json!({"metadata": {"annotations": {DELETE_MACHINE: "portolan"}}});
        self.api("Machine").patch(machine, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// A client by the kubeconfig that Cluster API gives out.
    pub(crate) async fn workload(&self, cluster: &str) -> Client {
        let secrets: Api<Secret> = Api::namespaced(self.client(), NAMESPACE);
        let secret = secrets.get(&format!("{cluster}-kubeconfig")).await.unwrap();
        assert_eq!(secret.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
        assert_eq!(secret.labels()["cluster.x-k8s.io/cluster-name"], cluster);
        let kubeconfig = String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap();
        self.world.connect("user", &kubeconfig).unwrap()
    }

    /// Waits, for at most a quarter of an hour.
    pub(crate) async fn until<F: AsyncFnMut() -> bool>(&self, what: &str, mut condition: F) {
        for _ in 0..900 {
            if condition().await {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let (clusters, machines) = (self.list("Cluster").await, self.list("Machine").await);
        panic!("not within 15 minutes: {what}\n{clusters:#?}\n{machines:#?}");
    }

    pub(crate) async fn until_available(&self, cluster: &str, nodes: u64) {
        self.until("the cluster is available with its nodes", async || {
            let found = self.get("Cluster", cluster).await;
            is_true(&found, "Available")
                && is_true(&found, "TopologyReconciled")
                && found["status"]["workers"]["availableReplicas"] == json!(nodes)
                && found["status"]["workers"]["replicas"] == json!(nodes)
        })
        .await;
    }

    pub(crate) async fn until_gone(&self, cluster: &str) {
        self.until("the cluster is gone", async || {
            self.api("Cluster").get_opt(cluster).await.unwrap().is_none()
        })
        .await;
    }

    pub(crate) async fn machine_names(&self) -> BTreeSet<String> {
        self.list("Machine").await.iter().map(|machine| text(machine, "/metadata/name").to_owned()).collect()
    }
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|found| found["type"] == kind).unwrap_or_default()
}

pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind)["status"] == "True"
}

/// The status, reason and message of a condition.
pub(crate) fn said(object: &Value, kind: &str) -> (String, String, String) {
    let found = condition(object, kind);
    let part = |pointer: &str| text(&found, pointer).to_owned();
    (part("/status"), part("/reason"), part("/message"))
}

/// A ClusterClass with a machine type as variable, one of two, and its templates.
fn class() -> Vec<Value> {
    let mut objects = cluster_class(NAMESPACE, "sandbox", "small", &[]);
    let class = objects.last_mut().unwrap();
    class["spec"]["variables"][0]["schema"]["openAPIV3Schema"]["enum"] = json!(["small", "large"]);
    objects
}

pub(crate) fn pool(name: &str, machine_type: &str, replicas: u32) -> Value {
    json!({
        "class": "default", "name": name, "replicas": replicas,
        "metadata": {"labels": {"node.cluster.x-k8s.io/pool": name, "plain": "x"}},
        "variables": {"overrides": [{"name": "machineType", "value": machine_type}]},
    })
}

pub(crate) fn cluster(name: &str, pools: &[Value]) -> Value {
    let mut topology = json!({"classRef": {"name": "sandbox"}, "version": "v1.36.3"});
    if !pools.is_empty() {
        topology["workers"] = json!({"machineDeployments": pools});
    }
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"topology": topology},
    })
}

//! The simulated Cluster API: clusters and machines come, scale, fail and go, and a client sees what the real one shows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{available, code, deployment, world};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, ResourceExt};
use portolan_sandbox::{
    BootTime, CloudApi, CloudConfig, CloudFailure, CloudMachine, Cluster, ClusterConfig, FaultPlan,
    FaultRates, NodeConfig, World, WorldConfig,
};
use serde_json::{Value, json};

const NAMESPACE: &str = "default";
const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";

/// A management cluster with Cluster API.
struct Stage {
    world: World,
    hub: Cluster,
    cloud: CloudApi,
}

fn config() -> CloudConfig {
    CloudConfig::default()
        .machine_type("small", CloudMachine::new(NodeConfig::new("2", "4Gi")).price(40_000))
        .machine_type("large", CloudMachine::new(NodeConfig::new("8", "32Gi")).price(160_000))
}

impl Stage {
    async fn new(seed: u64, config: CloudConfig) -> Self {
        Self::in_world(world(seed), config).await
    }

    async fn in_world(world: World, config: CloudConfig) -> Self {
        let hub = world.add_cluster(ClusterConfig::named("hub"));
        let cloud = CloudApi::install(&world, &hub, config).await.unwrap();
        let stage = Self { world, hub, cloud };
        for object in class() {
            stage.create(&object).await.unwrap();
        }
        stage
    }

    fn client(&self) -> Client {
        self.hub.client("user")
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let group = match kind {
            kind if kind.starts_with("SandboxControlPlane") => "controlplane.cluster.x-k8s.io",
            kind if kind.starts_with("SandboxBootstrap") => "bootstrap.cluster.x-k8s.io",
            kind if kind.starts_with("Sandbox") => "infrastructure.cluster.x-k8s.io",
            _ => "cluster.x-k8s.io",
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", kind));
        Api::namespaced_with(self.client(), NAMESPACE, &resource)
    }

    async fn create(&self, object: &Value) -> Result<(), kube::Error> {
        let api = self.api(object["kind"].as_str().unwrap());
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        api.create(&PostParams::default(), &object).await.map(|_| ())
    }

    async fn get(&self, kind: &str, name: &str) -> Value {
        serde_json::to_value(self.api(kind).get(name).await.unwrap()).unwrap()
    }

    async fn list(&self, kind: &str) -> Vec<Value> {
        let all = self.api(kind).list(&ListParams::default()).await.unwrap().items;
        all.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect()
    }

    /// Sets how many machines the only pool of the cluster has.
    async fn scale(&self, cluster: &str, replicas: u32) {
        let mut object = self.get("Cluster", cluster).await;
        object["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"] = json!(replicas);
        let patch = json!({"spec": {"topology": object["spec"]["topology"]}});
        self.api("Cluster").patch(cluster, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    async fn mark(&self, machine: &str) {
        let patch = json!({"metadata": {"annotations": {DELETE_MACHINE: "portolan"}}});
        self.api("Machine").patch(machine, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// A client by the kubeconfig that Cluster API gives out.
    async fn workload(&self, cluster: &str) -> Client {
        let secrets: Api<Secret> = Api::namespaced(self.client(), NAMESPACE);
        let secret = secrets.get(&format!("{cluster}-kubeconfig")).await.unwrap();
        assert_eq!(secret.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
        assert_eq!(secret.labels()["cluster.x-k8s.io/cluster-name"], cluster);
        let kubeconfig = String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap();
        self.world.connect("user", &kubeconfig).unwrap()
    }

    /// Waits, for at most a quarter of an hour.
    async fn until<F: AsyncFnMut() -> bool>(&self, what: &str, mut condition: F) {
        for _ in 0..900 {
            if condition().await {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let (clusters, machines) = (self.list("Cluster").await, self.list("Machine").await);
        panic!("not within 15 minutes: {what}\n{clusters:#?}\n{machines:#?}");
    }

    async fn until_available(&self, cluster: &str, nodes: u64) {
        self.until("the cluster is available with its nodes", async || {
            let found = self.get("Cluster", cluster).await;
            is_true(&found, "Available")
                && is_true(&found, "TopologyReconciled")
                && found["status"]["workers"]["availableReplicas"] == json!(nodes)
                && found["status"]["workers"]["replicas"] == json!(nodes)
        })
        .await;
    }

    async fn until_gone(&self, cluster: &str) {
        self.until("the cluster is gone", async || {
            self.api("Cluster").get_opt(cluster).await.unwrap().is_none()
        })
        .await;
    }

    async fn machine_names(&self) -> BTreeSet<String> {
        self.list("Machine").await.iter().map(|machine| text(machine, "/metadata/name").to_owned()).collect()
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|found| found["type"] == kind).unwrap_or_default()
}

fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind)["status"] == "True"
}

/// The status, reason and message of a condition.
fn said(object: &Value, kind: &str) -> (String, String, String) {
    let found = condition(object, kind);
    let part = |pointer: &str| text(&found, pointer).to_owned();
    (part("/status"), part("/reason"), part("/message"))
}

/// A ClusterClass with a machine type as variable, and its templates.
fn class() -> Vec<Value> {
    let template = |group: &str, kind: &str, spec: Value| {
        json!({
            "apiVersion": format!("{group}.cluster.x-k8s.io/v1beta2"), "kind": kind,
            "metadata": {"name": "sandbox"}, "spec": {"template": {"spec": spec}},
        })
    };
    let reference = |group: &str, kind: &str| json!({"templateRef": {"apiVersion": format!("{group}.cluster.x-k8s.io/v1beta2"), "kind": kind, "name": "sandbox"}});
    let class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"name": "sandbox"},
        "spec": {
            "infrastructure": reference("infrastructure", "SandboxClusterTemplate"),
            "controlPlane": reference("controlplane", "SandboxControlPlaneTemplate"),
            "workers": {"machineDeployments": [{
                "class": "default",
                "infrastructure": reference("infrastructure", "SandboxMachineTemplate"),
                "bootstrap": reference("bootstrap", "SandboxBootstrapConfigTemplate"),
            }]},
            "variables": [{"name": "machineType", "required": true, "schema": {"openAPIV3Schema": {
                "type": "string", "default": "small", "enum": ["small", "large"],
            }}}],
            "patches": [{"name": "machineType", "definitions": [{
                "selector": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "SandboxMachineTemplate",
                    "matchResources": {"machineDeploymentClass": {"names": ["default"]}},
                },
                "jsonPatches": [{
                    "op": "replace", "path": "/spec/template/spec/machineType", "valueFrom": {"variable": "machineType"},
                }],
            }]}],
        },
    });
    vec![
        template("infrastructure", "SandboxClusterTemplate", json!({})),
        template("infrastructure", "SandboxMachineTemplate", json!({"machineType": "small"})),
        template("controlplane", "SandboxControlPlaneTemplate", json!({})),
        template("bootstrap", "SandboxBootstrapConfigTemplate", json!({})),
        class,
    ]
}

fn pool(name: &str, machine_type: &str, replicas: u32) -> Value {
    json!({
        "class": "default", "name": name, "replicas": replicas,
        "metadata": {"labels": {"node.cluster.x-k8s.io/pool": name, "plain": "x"}},
        "variables": {"overrides": [{"name": "machineType", "value": machine_type}]},
    })
}

fn cluster(name: &str, pools: &[Value]) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"topology": {
            "classRef": {"name": "sandbox"}, "version": "v1.36.3", "workers": {"machineDeployments": pools},
        }},
    })
}

#[tokio::test(start_paused = true)]
async fn a_cluster_comes_phase_by_phase_and_its_kubeconfig_runs_a_pod() {
    let stage = Stage::new(1, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 2), pool("big", "large", 1)])).await.unwrap();
    let (mut phases, mut machine_phases, mut usable) = (Vec::new(), Vec::new(), Vec::new());
    stage
        .until("the cluster is available with three nodes", async || {
            let found = stage.get("Cluster", "burst").await;
            let phase = text(&found, "/status/phase").to_owned();
            if phases.last() != Some(&phase) {
                phases.push(phase);
            }
            for machine in stage.list("Machine").await {
                let phase = text(&machine, "/status/phase").to_owned();
                if !machine_phases.contains(&phase) {
                    machine_phases.push(phase);
                }
            }
            let secrets: Api<Secret> = Api::namespaced(stage.client(), NAMESPACE);
            for (what, seen) in [
                ("secret", secrets.get_opt("burst-kubeconfig").await.unwrap().is_some()),
                ("infrastructure", is_true(&found, "InfrastructureReady")),
                ("control plane", is_true(&found, "ControlPlaneAvailable")),
                (
                    "workers",
                    is_true(&found, "WorkersAvailable") && found["status"]["workers"]["replicas"] == 3,
                ),
            ] {
                if seen && !usable.contains(&what) {
                    usable.push(what);
                }
            }
            is_true(&found, "Available") && found["status"]["workers"]["availableReplicas"] == json!(3)
        })
        .await;
    phases.retain(|phase| !phase.is_empty());
    machine_phases.retain(|phase| !phase.is_empty());
    assert_eq!(phases.last().map(String::as_str), Some("Provisioned"));
    assert_eq!(phases[phases.len() - 2..], ["Provisioning", "Provisioned"]);
    assert_eq!(machine_phases, ["Pending", "Provisioning", "Provisioned", "Running"]);
    assert_eq!(usable, ["secret", "infrastructure", "control plane", "workers"]);

    let found = stage.get("Cluster", "burst").await;
    for (kind, reason) in [
        ("Available", "Available"),
        ("TopologyReconciled", "ReconcileSucceeded"),
        ("InfrastructureReady", "Ready"),
        ("ControlPlaneInitialized", "Initialized"),
        ("ControlPlaneAvailable", "Available"),
        ("RemoteConnectionProbe", "ProbeSucceeded"),
        ("WorkersAvailable", "Available"),
        ("WorkerMachinesReady", "Ready"),
        ("WorkerMachinesUpToDate", "UpToDate"),
    ] {
        assert_eq!(said(&found, kind), ("True".into(), reason.into(), String::new()), "{kind}");
        assert_eq!(condition(&found, kind)["observedGeneration"], found["metadata"]["generation"]);
    }
    for (kind, reason) in
        [("ScalingUp", "NotScalingUp"), ("RollingOut", "NotRollingOut"), ("Deleting", "NotDeleting")]
    {
        assert_eq!(said(&found, kind), ("False".into(), reason.into(), String::new()));
    }
    assert_eq!(found["spec"]["controlPlaneEndpoint"], json!({"host": "burst", "port": 6443}));

    let secrets: Api<Secret> = Api::namespaced(stage.client(), NAMESPACE);
    let secret = secrets.get("burst-kubeconfig").await.unwrap();
    let kubeconfig =
        Kubeconfig::from_yaml(std::str::from_utf8(&secret.data.unwrap()["value"].0).unwrap()).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    assert_eq!(config.cluster_url.host(), Some("burst"), "the host is the name of the cluster in the world");
    assert!(config.root_cert.is_some() && config.auth_info.token.is_some());
    let workload = stage.workload("burst").await;
    let nodes = Api::<Node>::all(workload.clone()).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(nodes.len(), 3);
    for node in &nodes {
        let machine = stage.get("Machine", &node.name_any()).await;
        let spec = node.spec.clone().unwrap();
        assert_eq!(spec.provider_id.as_deref(), machine["spec"]["providerID"].as_str());
        assert_eq!(machine["status"]["nodeRef"]["name"], node.name_any());
        let pool = &machine["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"];
        let kind = if pool == "big" { "large" } else { "small" };
        assert_eq!(node.labels()["node.kubernetes.io/instance-type"], kind);
        assert_eq!(node.labels()["node.cluster.x-k8s.io/pool"], *pool);
        assert!(!node.labels().contains_key("plain"), "only labels of Cluster API's domains reach nodes");
        assert_eq!(node.annotations()["cluster.x-k8s.io/machine"], node.name_any());
        let cpu = node.status.clone().unwrap().allocatable.unwrap()["cpu"].0.clone();
        assert_eq!(cpu, if kind == "large" { "8" } else { "2" });
        for (condition, reason) in
            [("Ready", "Ready"), ("NodeReady", "NodeReady"), ("InfrastructureReady", "Ready")]
        {
            assert_eq!(said(&machine, condition), ("True".into(), reason.into(), String::new()));
        }
    }
    let deployments: Api<Deployment> = Api::namespaced(workload, NAMESPACE);
    deployments.create(&PostParams::default(), &deployment("web", 4)).await.unwrap();
    stage.until("the pods run", async || available(&deployments, "web", 4).await).await;
}

#[tokio::test(start_paused = true)]
async fn scaling_in_takes_the_marked_machine_and_respects_budgets() {
    let stage = Stage::new(2, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 1)])).await.unwrap();
    stage.until_available("burst", 1).await;
    stage.scale("burst", 3).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let found = stage.get("Cluster", "burst").await;
    let (status, reason, message) = said(&found, "Available");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "NotAvailable"),
        "every scale-up looks like an outage"
    );
    assert!(message.contains("1 available replicas, at least 3 required"), "{message}");
    assert!(is_true(&found, "ControlPlaneAvailable") && is_true(&found, "RemoteConnectionProbe"));
    assert_eq!(said(&found, "ScalingUp").0, "False", "the objects exist, though they do not run");
    stage.until_available("burst", 3).await;

    let workload = stage.workload("burst").await;
    let deployments: Api<Deployment> = Api::namespaced(workload.clone(), NAMESPACE);
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap();
    stage.until("the pods run", async || available(&deployments, "web", 3).await).await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(workload.clone(), NAMESPACE);
    let budget = json!({
        "metadata": {"name": "web"}, "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
    });
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;

    let before = stage.machine_names().await;
    // Not the one that would go otherwise, which is the first by name.
    let marked = before.last().unwrap().clone();
    stage.mark(&marked).await;
    stage.scale("burst", 2).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    let machine = stage.get("Machine", &marked).await;
    assert_eq!(text(&machine, "/status/phase"), "Deleting");
    let (status, reason, message) = said(&machine, "Deleting");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "DrainingNode"));
    assert!(
        message.contains("The disruption budget web needs 3 healthy pods and has 3 currently"),
        "{message}"
    );
    assert!(!text(&machine, "/status/deletion/nodeDrainStartTime").is_empty());
    let nodes: Api<Node> = Api::all(workload);
    assert_eq!(nodes.get(&marked).await.unwrap().spec.unwrap().unschedulable, Some(true));
    let found = stage.get("Cluster", "burst").await;
    assert!(said(&found, "ScalingDown").2.contains("Scaling down from 3 to 2 replicas"));

    budgets.delete("web", &DeleteParams::default()).await.unwrap();
    stage.until_available("burst", 2).await;
    let after = stage.machine_names().await;
    assert_eq!(before.difference(&after).collect::<Vec<_>>(), [&marked]);
    assert!(nodes.get_opt(&marked).await.unwrap().is_none(), "its node is deleted");
    stage.until("the pods run elsewhere", async || available(&deployments, "web", 3).await).await;
    assert_eq!(stage.cloud.running().len(), 3, "two machines and the control plane");
    assert!(
        stage.list("SandboxMachine").await.len() == 2
            && stage.list("SandboxBootstrapConfig").await.len() == 2
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_takes_too_long_is_given_up_if_asked_for() {
    let stage = Stage::new(3, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 1)])).await.unwrap();
    stage.until_available("burst", 1).await;
    let workload = stage.workload("burst").await;
    let deployments: Api<Deployment> = Api::namespaced(workload.clone(), NAMESPACE);
    deployments.create(&PostParams::default(), &deployment("web", 1)).await.unwrap();
    let budget = json!({
        "metadata": {"name": "web"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    });
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(workload, NAMESPACE);
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    stage.until("the pod runs", async || available(&deployments, "web", 1).await).await;
    stage.scale("burst", 0).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.machine_names().await.len(), 1, "without a timeout it waits for ever");
    let mut impatient = pool("md-0", "small", 0);
    impatient["deletion"] = json!({"nodeDrainTimeoutSeconds": 60});
    let patch = json!({"spec": {"topology": {"workers": {"machineDeployments": [impatient]}}}});
    stage.api("Cluster").patch("burst", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(stage.machine_names().await.len(), 0, "it reaches machines that are being drained");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_quota_says_why_until_there_is_some() {
    let stage = Stage::new(4, CloudConfig { max_clusters: Some(1), ..config() }).await;
    stage.create(&cluster("first", &[])).await.unwrap();
    stage
        .until("the first is available", async || is_true(&stage.get("Cluster", "first").await, "Available"))
        .await;
    stage.create(&cluster("second", &[pool("md-0", "small", 1)])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let found = stage.get("Cluster", "second").await;
    let quota = "the quota of the cloud is 1 clusters, and 1 exist";
    assert_eq!(said(&found, "InfrastructureReady"), ("False".into(), "QuotaExceeded".into(), quota.into()));
    let (status, reason, message) = said(&found, "Available");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NotAvailable"));
    assert!(message.contains(quota), "{message}");
    assert_eq!(text(&found, "/status/phase"), "Provisioning");
    assert!(stage.machine_names().await.is_empty(), "machines wait for the control plane");
    assert!(stage.world.cluster("second").is_none());

    stage.api("Cluster").delete("first", &DeleteParams::default()).await.unwrap();
    stage.until_gone("first").await;
    stage.until_available("second", 1).await;
    // A name that the world has already is refused, and the cluster that has it stays.
    stage.api("Cluster").delete("second", &DeleteParams::default()).await.unwrap();
    stage.until_gone("second").await;
    stage.create(&cluster("hub", &[])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(said(&stage.get("Cluster", "hub").await, "InfrastructureReady").1, "NameInUse");
    stage.api("Cluster").delete("hub", &DeleteParams::default()).await.unwrap();
    stage.until_gone("hub").await;
    assert!(stage.world.cluster("hub").is_some());
}

#[tokio::test(start_paused = true)]
async fn machines_fail_hang_and_meet_the_quota_each_in_its_own_words() {
    let broken = CloudMachine {
        fails: Some((1000, CloudFailure::new("InstanceCreateFailed", "No valid host was found"))),
        ..CloudMachine::new(NodeConfig::new("2", "4Gi"))
    };
    let hanging = CloudMachine { hangs: 1000, ..CloudMachine::new(NodeConfig::new("2", "4Gi")) };
    let config = config().machine_type("small", broken).machine_type("large", hanging);
    let stage = Stage::new(5, CloudConfig { max_machines: Some(2), ..config }).await;
    stage.create(&cluster("burst", &[pool("bad", "small", 1), pool("slow", "large", 1)])).await.unwrap();
    stage.until("both machines were tried", async || stage.cloud.running().len() == 3).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let of_pool = async |pool: &str| {
        let mut all = stage.list("Machine").await.into_iter();
        all.find(|machine| machine["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"] == pool)
            .unwrap()
    };
    let bad = of_pool("bad").await;
    let words = ("False".into(), "InstanceCreateFailed".into(), "No valid host was found".into());
    assert_eq!(said(&bad, "InfrastructureReady"), words);
    assert_eq!(text(&bad, "/status/phase"), "Provisioning");
    let slow = of_pool("slow").await;
    assert_eq!(text(&slow, "/status/phase"), "Provisioned");
    let (status, reason, message) = said(&slow, "NodeHealthy");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "InspectionFailed"));
    assert!(message.starts_with("Waiting for a Node with spec.providerID sandbox://"), "{message}");
    let found = stage.get("Cluster", "burst").await;
    assert!(
        said(&found, "WorkerMachinesReady").2.contains("No valid host was found"),
        "the message comes up"
    );

    stage.create(&cluster("more", &[pool("md-0", "small", 1)])).await.unwrap();
    stage
        .until("the quota is met", async || {
            let all = stage.list("Machine").await;
            all.iter().any(|machine| said(machine, "InfrastructureReady").1 == "QuotaExceeded")
        })
        .await;
    for name in ["burst", "more"] {
        stage.api("Cluster").delete(name, &DeleteParams::default()).await.unwrap();
        stage.until_gone(name).await;
    }
    assert!(stage.cloud.running().is_empty());
}

#[tokio::test(start_paused = true)]
async fn deletion_goes_in_order_and_leaves_nothing() {
    let stage = Stage::new(6, config()).await;
    let first = stage.world.log().count();
    stage.create(&cluster("burst", &[pool("md-0", "small", 2)])).await.unwrap();
    stage.until_available("burst", 2).await;
    assert!(stage.world.log().count() > first);
    let workload = stage.workload("burst").await;
    stage.api("Cluster").delete("burst", &DeleteParams::default()).await.unwrap();
    let mut reasons = Vec::new();
    stage
        .until("the cluster is gone", async || {
            let Some(found) = stage.api("Cluster").get_opt("burst").await.unwrap() else { return true };
            let found = serde_json::to_value(found).unwrap();
            let (_, reason, _) = said(&found, "Deleting");
            if reason != "NotDeleting" && reasons.last() != Some(&reason) {
                assert_eq!(text(&found, "/status/phase"), "Deleting");
                reasons.push(reason);
            }
            false
        })
        .await;
    let order =
        ["WaitingForWorkersDeletion", "WaitingForControlPlaneDeletion", "WaitingForInfrastructureDeletion"];
    assert_eq!(reasons, order);
    tokio::time::sleep(Duration::from_secs(5)).await;
    for kind in
        ["Cluster", "MachineDeployment", "Machine", "SandboxCluster", "SandboxControlPlane", "SandboxMachine"]
    {
        assert!(stage.list(kind).await.is_empty(), "{kind}");
    }
    assert_eq!(stage.list("SandboxMachineTemplate").await.len(), 1, "only that of the class is left");
    let secrets: Api<Secret> = Api::namespaced(stage.client(), NAMESPACE);
    assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert!(stage.world.cluster("burst").is_none() && stage.cloud.running().is_empty());
    let error = workload.apiserver_version().await.unwrap_err();
    assert!(format!("{error:?}").contains("cluster burst was removed"), "{error:?}");

    let records = stage.cloud.machines();
    let kinds: Vec<&str> = records.iter().map(|record| record.machine_type.as_str()).collect();
    assert_eq!(kinds, ["control-plane", "small", "small"]);
    let now = stage.world.clock().now();
    let seconds: u64 = records[1..].iter().map(|record| record.seconds(now)).sum();
    assert_eq!(stage.cloud.cost(), seconds * 40_000 / 3600);
    assert!(seconds > 80, "they took some time to boot: {seconds} s");

    // The name is free again.
    stage.create(&cluster("burst", &[pool("md-0", "small", 1)])).await.unwrap();
    stage.until_available("burst", 1).await;
    let nodes = Api::<Node>::all(stage.workload("burst").await).list(&ListParams::default()).await.unwrap();
    assert_eq!(nodes.items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_never_came_is_deleted_at_once() {
    let stage = Stage::new(7, config()).await;
    stage.cloud.refuse_clusters(Some(CloudFailure::new("Unauthorized", "the credentials are not valid")));
    stage.create(&cluster("burst", &[pool("md-0", "small", 1)])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let found = stage.get("Cluster", "burst").await;
    assert_eq!(said(&found, "InfrastructureReady").2, "the credentials are not valid");
    stage.api("Cluster").delete("burst", &DeleteParams::default()).await.unwrap();
    stage.until_gone("burst").await;
    assert!(stage.cloud.machines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_topology_that_cannot_be_is_named_and_a_missing_class_too() {
    let stage = Stage::new(8, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "huge", 1)])).await.unwrap();
    let mut other = cluster("other", &[]);
    other["spec"]["topology"]["classRef"]["name"] = json!("nobody");
    stage.create(&other).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (status, reason, message) = said(&stage.get("Cluster", "burst").await, "TopologyReconciled");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ReconcileFailed"));
    assert!(message.contains("variable \"machineType\": Unsupported value: \"huge\""), "{message}");
    let (_, reason, message) = said(&stage.get("Cluster", "other").await, "TopologyReconciled");
    assert_eq!(reason, "ReconcileFailed");
    assert!(message.contains("ClusterClass default/nobody"), "{message}");
    let mut wrong = cluster("wrong", &[]);
    wrong["spec"]["topology"]["controlPlane"] = json!({});
    assert_eq!(code(&stage.create(&wrong).await.unwrap_err()), 422, "at least one property");
    let class = stage.get("ClusterClass", "sandbox").await;
    assert!(is_true(&class, "VariablesReady") && is_true(&class, "RefVersionsUpToDate"));
    let catalogue = &class["status"]["variables"][0]["definitions"][0]["schema"]["openAPIV3Schema"]["enum"];
    assert_eq!(*catalogue, json!(["small", "large"]));
}

#[tokio::test(start_paused = true)]
async fn pools_come_go_and_change_their_machine_type() {
    let stage = Stage::new(9, config()).await;
    stage.create(&cluster("burst", &[pool("a", "small", 1)])).await.unwrap();
    stage.until_available("burst", 1).await;
    let set_pools = async |pools: Value| {
        let patch = json!({"spec": {"topology": {"workers": {"machineDeployments": pools}}}});
        stage.api("Cluster").patch("burst", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    };
    set_pools(json!([pool("a", "small", 1), pool("b", "large", 2)])).await;
    stage.until_available("burst", 3).await;
    set_pools(json!([pool("b", "large", 2)])).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.until_available("burst", 2).await;
    assert_eq!(stage.list("MachineDeployment").await.len(), 1);
    // Another machine type: new machines come before the old ones go.
    set_pools(json!([pool("b", "small", 2)])).await;
    let mut least = 2;
    stage
        .until("the machines are replaced", async || {
            let found = stage.get("Cluster", "burst").await;
            least = least.min(found["status"]["workers"]["availableReplicas"].as_u64().unwrap_or(0));
            let running = stage.cloud.running();
            running.iter().filter(|record| record.machine_type == "small").count() == 2
                && running.iter().all(|record| record.machine_type != "large")
        })
        .await;
    stage.until_available("burst", 2).await;
    assert_eq!(least, 2, "never fewer than asked for");
    assert!(!is_true(&stage.get("Cluster", "burst").await, "RollingOut"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_and_a_lost_node_are_seen_and_nothing_is_removed() {
    let stage = Stage::new(10, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 2)])).await.unwrap();
    stage.until_available("burst", 2).await;
    stage.world.isolate("burst");
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(
        is_true(&stage.get("Cluster", "burst").await, "RemoteConnectionProbe"),
        "there is a grace period"
    );
    tokio::time::sleep(Duration::from_secs(40)).await;
    let found = stage.get("Cluster", "burst").await;
    assert_eq!(said(&found, "RemoteConnectionProbe").1, "ProbeFailed");
    assert!(!is_true(&found, "Available"));
    let machine = stage.list("Machine").await.remove(0);
    let told = said(&machine, "NodeReady");
    assert_eq!((told.0.as_str(), told.1.as_str()), ("Unknown", "ConnectionDown"));
    assert_eq!(text(&machine, "/status/phase"), "Running", "the phase only says that there was a node");
    stage.world.rejoin("burst");
    stage.until_available("burst", 2).await;

    let name = text(&machine, "/metadata/name").to_owned();
    stage.world.cluster("burst").unwrap().fail_node(&name);
    stage
        .until("the node is missed", async || {
            said(&stage.get("Machine", &name).await, "NodeReady").0 == "Unknown"
        })
        .await;
    assert_eq!(said(&stage.get("Machine", &name).await, "NodeReady").1, "NodeReadyUnknown");
    assert_eq!(stage.machine_names().await.len(), 2);
    // An unhealthy machine goes before a healthy one.
    stage.scale("burst", 1).await;
    stage.until_available("burst", 1).await;
    assert!(!stage.machine_names().await.contains(&name));
}

#[tokio::test(start_paused = true)]
async fn faults_delay_cluster_api_and_nothing_is_made_twice_or_left() {
    let faults = FaultPlan::none().party("cluster-api", FaultRates::evenly(150));
    let start = "2026-01-01T00:00:00Z".parse().unwrap();
    let world = World::new(WorldConfig { seed: 13, start, faults, ..WorldConfig::default() });
    let stage = Stage::in_world(world, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 3)])).await.unwrap();
    stage.until_available("burst", 3).await;
    assert_eq!(stage.list("SandboxMachine").await.len(), 3);
    assert_eq!(stage.cloud.machines().len(), 4, "three machines and the control plane, none twice");
    stage.scale("burst", 1).await;
    stage.until_available("burst", 1).await;
    stage.api("Cluster").delete("burst", &DeleteParams::default()).await.unwrap();
    stage.until_gone("burst").await;
    assert!(stage.cloud.running().is_empty() && stage.world.cluster("burst").is_none());
}

/// A burst with everything in it: the hash of its log and the lives of its machines.
async fn burst(seed: u64) -> (String, String) {
    let slow = CloudMachine { slow: (500, 3), ..CloudMachine::new(NodeConfig::new("2", "4Gi")) };
    let slow = slow.boot(BootTime::between(20, 90));
    let stage = Stage::new(seed, config().machine_type("small", slow)).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 3)])).await.unwrap();
    stage.until_available("burst", 3).await;
    stage.scale("burst", 1).await;
    stage.until_available("burst", 1).await;
    stage.api("Cluster").delete("burst", &DeleteParams::default()).await.unwrap();
    stage.until_gone("burst").await;
    (stage.world.log().hash(), format!("{:?}", stage.cloud.machines()))
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_history() {
    let first = burst(11).await;
    assert_eq!(first, burst(11).await);
    assert_ne!(first.1, burst(12).await.1, "boot times are drawn");
}

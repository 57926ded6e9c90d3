//! Clusters and nodes that Cluster API makes on demand.
//!
//! Here the objects of Cluster API are written by hand, one at a time, so that each order and each reading is seen alone.

use crate::stage::{asking, pass};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams, ObjectMeta, Patch, PatchParams};
use kube::core::ApiResource;
use portolan_api::cloudprovisioner::CloudPhase;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{CloudProvisioner, CloudProvisionerStatus, ForeignCluster, MultiClusterDeployment};
use portolan_control::peering::{Address, Peer, Sides, join};
use portolan_runtime::Seed;
use portolan_sandbox::{
    Cluster, ClusterConfig, DenyingPolicy, FaultPlan, HostileAnswer, HostileRule, NodeConfig, RequestFilter,
    World, WorldConfig,
};
pub(crate) use portolan_tests::simulation::elastic::CLOUDS;
use portolan_tests::simulation::elastic::controllers;
use portolan_tests::simulation::{CONTROLLER, apply};
use portolan_tests::{NAMESPACE, open_namespace, workload};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// A hub and one member, home, with room for four pods of one CPU.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) hub: Cluster,
    controllers: JoinSet<()>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(FaultPlan::none()).await
    }

    pub(crate) async fn with(faults: FaultPlan) -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let world = World::new(WorldConfig { seed: 1, start, faults, ..WorldConfig::default() });
        let hub = world.add_cluster(ClusterConfig::named("hub"));
        let home = world.add_cluster(ClusterConfig::named("home").nodes(1, NodeConfig::new("4", "8Gi")));
        let address = Address { server: "https://home".to_owned(), ..Address::default() };
        let sides = Sides { hub: hub.client("admin"), member: home.client("admin"), address };
        let peer = Peer {
            name: "home".to_owned(),
            namespaces: vec![NAMESPACE.to_owned()],
            token_lifetime: 86_400,
            ..Peer::default()
        };
        join(&sides, &peer, world.clock().now(), &|_| ()).await.unwrap();
        apply(&hub.client("user"), &open_namespace()).await;
        let mut stage = Self { world, hub, controllers: JoinSet::new() };
        stage.control();
        stage
    }

    /// Starts the controllers, or starts them anew; crashed, they start anew a second later. A kubeconfig without a token is
    /// that of an administrator.
    pub(crate) fn control(&mut self) {
        self.controllers = JoinSet::new();
        let (hub, world) = (self.hub.clone(), self.world.clone());
        self.controllers.spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    () = world.crash_signal(CONTROLLER) => {}
                    () = controllers(&world, &hub, Seed::new(1)) => {}
                }
                pass(1).await;
                world.restart(CONTROLLER);
            }
        });
    }

    /// Serves the kinds of Cluster API, with a class.
    pub(crate) async fn serve_cluster_api(&self) {
        let user = self.hub.client("user");
        for (kind, plural) in [
            ("Cluster", "clusters"),
            ("MachineDeployment", "machinedeployments"),
            ("Machine", "machines"),
            ("ClusterClass", "clusterclasses"),
        ] {
            let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            let definition = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.cluster.x-k8s.io")},
                "spec": {
                    "group": "cluster.x-k8s.io", "scope": "Namespaced",
                    "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                    "versions": [{
                        "name": "v1beta2", "served": true, "storage": true, "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
                    }],
                },
            });
            apply(&user, &definition).await;
        }
        apply(&user, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLOUDS}})).await;
        let class = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
            "metadata": {"name": "quick", "namespace": CLOUDS},
            "spec": {
                "variables": [{"name": "machineType"}, {"name": "region"}],
                "workers": {"machineDeployments": [{"class": "worker"}]},
            },
        });
        apply(&user, &class).await;
    }

    pub(crate) fn api(&self, kind: &str, plural: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: "cluster.x-k8s.io".to_owned(),
            version: "v1beta2".to_owned(),
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::namespaced_with(self.hub.client("user"), CLOUDS, &resource)
    }

    pub(crate) async fn clusters(&self) -> Vec<DynamicObject> {
        self.api("Cluster", "clusters").list(&ListParams::default()).await.unwrap().items
    }

    /// The name of the only pool of the only Cluster, and how many nodes it is asked for.
    pub(crate) async fn pool(&self) -> (String, u64) {
        let made = self.clusters().await;
        let pools = made[0].data["spec"]["topology"]["workers"]["machineDeployments"].clone();
        assert_eq!(pools.as_array().unwrap().len(), 1, "{pools}");
        (pools[0]["name"].as_str().unwrap().to_owned(), pools[0]["replicas"].as_u64().unwrap())
    }

    pub(crate) async fn status(&self, name: &str) -> CloudProvisionerStatus {
        let api: Api<CloudProvisioner> = Api::all(self.hub.client("user"));
        api.get(name).await.unwrap().status.unwrap_or_default()
    }

    /// Status, reason and message of a condition.
    pub(crate) async fn condition(&self, name: &str, type_: ConditionType) -> (String, String, String) {
        let status = self.status(name).await;
        let found = conditions::find(&status.conditions, type_).cloned();
        assert!(found.is_some(), "{name} has no condition {type_}: {:?}", status.conditions);
        let found = found.unwrap();
        (found.status, found.reason, found.message)
    }

    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let api: Api<Event> = Api::all(self.hub.client("user"));
        let all = api.list(&ListParams::default()).await.unwrap().items;
        let about = |event: &Event| event.regarding.as_ref().and_then(|about| about.name.clone());
        let own = all.iter().filter(|event| about(event).as_deref() == Some(name));
        own.filter_map(|event| event.reason.clone()).collect()
    }

    pub(crate) async fn set_condition(&self, kind: (&str, &str), name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.api(kind.0, kind.1).patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// The cluster is up, with so many nodes of four CPUs: as Cluster API shows it.
    pub(crate) async fn boot(&self, cluster: &str, pool: &str, nodes: usize) {
        let config = ClusterConfig::named(cluster).nodes(nodes, NodeConfig::new("4", "8Gi"));
        let made = self.world.add_cluster(config);
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "admin",
            "clusters": [{"name": "c", "cluster": {"server": format!("https://{cluster}")}}],
            "users": [{"name": "admin", "user": {}}],
            "contexts": [{"name": "admin", "context": {"cluster": "c", "user": "admin"}}],
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": format!("{cluster}-kubeconfig"), "namespace": CLOUDS},
            "stringData": {"value": kubeconfig.to_string()},
        });
        apply(&self.hub.client("user"), &secret).await;
        let found: Api<Node> = Api::all(made.client("user"));
        pass(5).await;
        for node in found.list(&ListParams::default()).await.unwrap().items {
            let name = node.metadata.name.unwrap();
            self.machine(cluster, pool, &format!("machine-{name}"), Some(&name)).await;
        }
        let available =
            json!({"conditions": [self.condition_of("ControlPlaneAvailable", "True", "Available", "")]});
        self.set_condition(("Cluster", "clusters"), cluster, available).await;
    }

    pub(crate) fn condition_of(&self, type_: &str, status: &str, reason: &str, message: &str) -> Value {
        let time = self.world.clock().time();
        json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": time})
    }

    pub(crate) async fn machine(&self, cluster: &str, pool: &str, name: &str, node: Option<&str>) {
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "namespace": CLOUDS, "labels": {
                "cluster.x-k8s.io/cluster-name": cluster, "topology.cluster.x-k8s.io/deployment-name": pool,
            }},
            "spec": {"clusterName": cluster},
        });
        apply(&self.hub.client("user"), &machine).await;
        if let Some(node) = node {
            let ready = json!({"nodeRef": {"name": node}, "conditions": [self.condition_of("Ready", "True", "Ready", "")]});
            self.set_condition(("Machine", "machines"), name, ready).await;
        }
    }

    /// Adds a node to a cluster that is like its first.
    pub(crate) async fn add_node(&self, cluster: &str, name: &str) {
        let api: Api<Node> = Api::all(self.world.cluster(cluster).unwrap().client("user"));
        let mut node = api.list(&ListParams::default()).await.unwrap().items.remove(0);
        let labels = node.metadata.labels.take();
        node.metadata = ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() };
        api.create(&Default::default(), &node).await.unwrap();
        let patch = Patch::Merge(json!({ "status": node.status }));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn workload(&self, name: &str) -> MultiClusterDeployment {
        let api: Api<MultiClusterDeployment> = Api::namespaced(self.hub.client("user"), NAMESPACE);
        api.get(name).await.unwrap()
    }

    pub(crate) async fn placed(&self, name: &str) -> Vec<(String, i32)> {
        let status = self.workload(name).await.status.unwrap_or_default();
        status.placements.into_iter().map(|placed| (placed.cluster, placed.replicas)).collect()
    }
}

pub(crate) fn provisioner(name: &str, cluster: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner", "metadata": {"name": name},
        "spec": {
            "cloudClusterName": cluster, "cloudProvider": "OpenStack", "region": "rennes", "kubernetesVersion": "v1.36.3",
            "clusterClass": {"name": "quick", "namespace": CLOUDS},
            "machineTypes": [{"name": "small", "cpu": "4", "memory": "8Gi", "pricePerHour": "0.05"}],
            "clusterPricePerHour": "0.01",
        },
    });
    object["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

/// A workload of so many pods of one CPU that goes anywhere.
pub(crate) fn bursting(name: &str, replicas: i32) -> Value {
    let more = json!({"replicasMode": "Total", "enableBursting": true, "locations": ["home"]});
    let mut workload = workload(name, replicas, more);
    workload["spec"]["template"]["spec"]["containers"] = asking("900m");
    workload
}

#[tokio::test(start_paused = true)]
async fn a_hub_without_cluster_api_is_named_and_asked_now_and_then() {
    let stage = Stage::new().await;
    apply(&stage.hub.client("user"), &provisioner("cp1", "cloud1", json!({}))).await;
    pass(20).await;
    let (status, reason, message) = stage.condition("cp1", ConditionType::Ready).await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ClusterApiNotFound"));
    assert!(message.contains("cluster.x-k8s.io/v1beta2") && message.contains("clusterctl init"), "{message}");
    let version = async || {
        let api: Api<CloudProvisioner> = Api::all(stage.hub.client("user"));
        api.get("cp1").await.unwrap().metadata.resource_version
    };
    let before = version().await;
    pass(600).await;
    assert_eq!(version().await, before, "nothing is written again and again");
    stage.serve_cluster_api().await;
    pass(60).await;
    assert_eq!(
        stage.condition("cp1", ConditionType::Ready).await.1,
        "NotNeeded",
        "it is found when it comes"
    );
}

#[tokio::test(start_paused = true)]
async fn pending_work_makes_a_cluster_which_is_peered_used_and_removed_when_unused() {
    let mut stage = Stage::new().await;
    let user = stage.hub.client("user");
    stage.serve_cluster_api().await;
    apply(&user, &provisioner("cp1", "cloud1", json!({}))).await;
    pass(10).await;
    assert_eq!(stage.clusters().await.len(), 0, "nothing waits");
    apply(&user, &bursting("web", 7)).await;
    pass(10).await;
    let made = stage.clusters().await;
    assert_eq!(made.len(), 1);
    let name = made[0].metadata.name.clone().unwrap();
    let topology = &made[0].data["spec"]["topology"];
    assert_eq!(topology["classRef"], json!({"name": "quick", "namespace": CLOUDS}));
    assert_eq!(topology["variables"], json!([{"name": "region", "value": "rennes"}]));
    let pool = &topology["workers"]["machineDeployments"][0];
    assert_eq!(
        (&pool["replicas"], &pool["class"]),
        (&json!(1), &json!("worker")),
        "three pods of 0.9 CPU fit on one node"
    );
    assert_eq!(pool["variables"]["overrides"], json!([{"name": "machineType", "value": "small"}]));
    assert_eq!(stage.status("cp1").await.phase, CloudPhase::Provisioning);
    assert_eq!(stage.status("cp1").await.waiting, ["MultiClusterDeployment/shop/web"]);

    stage.control();
    pass(60).await;
    assert_eq!(stage.clusters().await.len(), 1, "a restart in the middle makes no second cluster");
    stage.boot(&name, pool["name"].as_str().unwrap(), 1).await;
    pass(60).await;
    let member: ForeignCluster = Api::all(user.clone()).get("cloud1").await.unwrap();
    assert!(member.spec.cloud);
    assert_eq!(member.metadata.labels.unwrap()["topology.kubernetes.io/region"], "rennes");
    assert_eq!(stage.placed("web").await, [("cloud1".to_owned(), 3), ("home".to_owned(), 4)]);
    let status = stage.status("cp1").await;
    assert_eq!(
        (status.phase, status.ready_nodes, status.foreign_cluster.as_deref()),
        (CloudPhase::Ready, 1, Some("cloud1"))
    );
    assert_eq!((status.cost_per_hour.to_string(), status.waiting.len()), ("0.06".to_owned(), 0));
    let secret: Secret = Api::namespaced(user.clone(), "portolan").get("cloud1").await.unwrap();
    assert!(
        secret.metadata.annotations.unwrap().contains_key("portolan.dev/service-account"),
        "a credential of its own"
    );

    apply(&user, &bursting("web", 3)).await;
    pass(18 * 60).await;
    assert_eq!(stage.placed("web").await, [("home".to_owned(), 3)]);
    assert_eq!(stage.clusters().await.len(), 1, "it is kept for twenty minutes");
    pass(4 * 60).await;
    assert!(stage.clusters().await.is_empty());
    assert!(Api::<ForeignCluster>::all(user).get_opt("cloud1").await.unwrap().is_none());
    let status = stage.status("cp1").await;
    assert_eq!((status.phase, status.nodes, status.clusters), (CloudPhase::Idle, 0, 1));
    assert!(status.cost_so_far > "0.02".parse().unwrap(), "{}", status.cost_so_far);
    assert_eq!(status.bursts[0].cost, status.cost_so_far);
    let events = stage.events("cp1").await;
    for reason in ["ClusterRequested", "ClusterJoined", "Deprovisioning", "ClusterDeleted"] {
        assert!(events.iter().any(|event| event == reason), "no event {reason}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_fails_is_named_and_tried_with_another_provisioner() {
    let stage = Stage::new().await;
    let user = stage.hub.client("user");
    stage.serve_cluster_api().await;
    apply(&user, &provisioner("cp1", "cloud1", json!({"latencies": [{"to": "home", "rtt": "5ms"}]}))).await;
    apply(&user, &provisioner("cp2", "cloud2", json!({"latencies": [{"to": "home", "rtt": "50ms"}]}))).await;
    pass(10).await;
    apply(&user, &bursting("web", 6)).await;
    pass(10).await;
    let made = stage.clusters().await;
    let name = made[0].metadata.name.clone().unwrap();
    assert!(made.len() == 1 && name.starts_with("cloud1-"), "the nearest comes first: {name}");
    let failed = stage.condition_of("InfrastructureReady", "False", "QuotaExceeded", "8 of 8 cores are used");
    stage.set_condition(("Cluster", "clusters"), &name, json!({"conditions": [failed]})).await;
    pass(60).await;
    assert_eq!(stage.clusters().await.len(), 1, "many failures pass by themselves");
    let (_, _, message) = stage.condition("cp1", ConditionType::Ready).await;
    assert!(message.contains("QuotaExceeded: 8 of 8 cores are used"), "{message}");
    pass(90).await;
    let names: Vec<String> =
        stage.clusters().await.into_iter().filter_map(|each| each.metadata.name).collect();
    assert!(names.len() == 1 && names[0].starts_with("cloud2-"), "{names:?}");
    let (status, reason, message) = stage.condition("cp1", ConditionType::Failed).await;
    assert_eq!((status.as_str(), reason.as_str()), ("True", "ProvisionFailed"));
    assert!(message.contains("QuotaExceeded: 8 of 8 cores are used"), "{message}");
    assert!(stage.events("cp1").await.contains(&"ProvisionFailed".to_owned()));
}

/// A stage whose cloud cluster has joined, with so many nodes that web needs; answers the names of Cluster and pool.
pub(crate) async fn joined(replicas: i32, nodes: usize, more: Value) -> (Stage, String, String) {
    let stage = Stage::new().await;
    let user = stage.hub.client("user");
    stage.serve_cluster_api().await;
    apply(&user, &provisioner("cp1", "cloud1", more)).await;
    apply(&user, &bursting("web", replicas)).await;
    pass(10).await;
    let made = stage.clusters().await;
    let name = made[0].metadata.name.clone().unwrap();
    let (pool, asked) = stage.pool().await;
    assert_eq!(asked, nodes as u64);
    stage.boot(&name, &pool, nodes).await;
    pass(120).await;
    assert_eq!(stage.status("cp1").await.phase, CloudPhase::Ready);
    assert_eq!(stage.placed("web").await, [("cloud1".to_owned(), replicas - 4), ("home".to_owned(), 4)]);
    (stage, name, pool)
}

#[tokio::test(start_paused = true)]
async fn more_work_asks_for_more_nodes_and_opens_its_namespace() {
    let (stage, name, pool) = joined(7, 1, json!({})).await;
    let user = stage.hub.client("user");
    apply(&user, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})).await;
    let mut more = bursting("more", 3);
    more["metadata"]["namespace"] = json!("lab");
    apply(&user, &more).await;
    pass(20).await;
    assert_eq!(
        stage.pool().await.1,
        2,
        "three pods of 0.9 CPU have no room on the node that runs three already"
    );
    assert_eq!(stage.status("cp1").await.phase, CloudPhase::Scaling);
    stage.add_node(&name, "late").await;
    stage.machine(&name, &pool, "machine-late", Some("late")).await;
    pass(60).await;
    let api: Api<MultiClusterDeployment> = Api::namespaced(user, "lab");
    let status = api.get("more").await.unwrap().status.unwrap();
    let placed: Vec<(&str, i32)> =
        status.placements.iter().map(|each| (each.cluster.as_str(), each.replicas)).collect();
    assert_eq!(placed, [("cloud1", 3)], "{:?}", status.pending);
    let status = stage.status("cp1").await;
    assert_eq!(
        (status.phase, status.ready_nodes, status.cost_per_hour.to_string()),
        (CloudPhase::Ready, 2, "0.11".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_little_used_node_is_marked_before_the_number_is_lowered() {
    let (stage, _, _) = joined(11, 2, json!({})).await;
    let user = stage.hub.client("user");
    apply(&user, &bursting("web", 6)).await;
    pass(60).await;
    assert_eq!(stage.placed("web").await, [("cloud1".to_owned(), 2), ("home".to_owned(), 4)]);
    let marked = async || -> Vec<String> {
        let all = stage.api("Machine", "machines").list(&ListParams::default()).await.unwrap().items;
        let is_marked = |machine: &DynamicObject| {
            let annotations = machine.metadata.annotations.as_ref();
            annotations.is_some_and(|all| {
                all.get("cluster.x-k8s.io/delete-machine").is_some_and(|by| by == "portolan")
            })
        };
        all.into_iter().filter(is_marked).filter_map(|machine| machine.metadata.name).collect()
    };
    pass(8 * 60).await;
    assert_eq!((marked().await.len(), stage.pool().await.1), (0, 2), "not before ten minutes");
    pass(3 * 60).await;
    let going = marked().await;
    assert_eq!((going.len(), stage.pool().await.1), (1, 1));
    assert_eq!(stage.status("cp1").await.phase, CloudPhase::Scaling);
    stage.api("Machine", "machines").delete(&going[0], &Default::default()).await.unwrap();
    pass(60).await;
    let status = stage.status("cp1").await;
    assert_eq!((status.phase, status.nodes, status.desired_nodes), (CloudPhase::Ready, 1, 1));
    assert!(stage.events("cp1").await.contains(&"ScaledIn".to_owned()));
    pass(30 * 60).await;
    assert_eq!((stage.pool().await.1, stage.clusters().await.len()), (1, 1), "the last node is in use");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_cannot_be_made_are_named_and_given_up() {
    let (stage, name, pool) = joined(7, 1, json!({})).await;
    let user = stage.hub.client("user");
    apply(&user, &bursting("web", 12)).await;
    pass(10).await;
    assert_eq!(stage.pool().await.1, 2, "four pods more than fit");
    stage.machine(&name, &pool, "new", None).await;
    let failed = stage.condition_of("InfrastructureReady", "False", "QuotaExceeded", "8 of 8 cores are used");
    stage.set_condition(("Machine", "machines"), "new", json!({"conditions": [failed]})).await;
    pass(200).await;
    let status = stage.status("cp1").await;
    let failure = status.last_failure.unwrap();
    assert_eq!(
        (failure.reason.as_str(), failure.message.as_deref()),
        ("QuotaExceeded", Some("8 of 8 cores are used"))
    );
    assert_eq!(stage.pool().await.1, 1, "a node that cannot be made is not waited for");
    assert!(stage.events("cp1").await.contains(&"NodesFailed".to_owned()));
    assert_eq!(
        stage.placed("web").await,
        [("cloud1".to_owned(), 4), ("home".to_owned(), 4)],
        "what fits stays"
    );
}

#[tokio::test(start_paused = true)]
async fn a_provisioner_that_is_deleted_waits_for_workloads_to_leave_its_cluster() {
    let (stage, _, _) = joined(7, 1, json!({})).await;
    let user = stage.hub.client("user");
    let provisioners: Api<CloudProvisioner> = Api::all(user.clone());
    provisioners.delete("cp1", &Default::default()).await.unwrap();
    pass(60).await;
    assert_eq!(stage.clusters().await.len(), 1, "web has no other place for three of its replicas");
    assert!(provisioners.get_opt("cp1").await.unwrap().is_some());
    apply(&user, &bursting("web", 4)).await;
    pass(120).await;
    assert_eq!(stage.placed("web").await, [("home".to_owned(), 4)]);
    assert!(stage.clusters().await.is_empty());
    assert!(provisioners.get_opt("cp1").await.unwrap().is_none());
    assert!(Api::<ForeignCluster>::all(user).get_opt("cloud1").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_class_that_lacks_something_is_refused_with_its_name() {
    let stage = Stage::new().await;
    let user = stage.hub.client("user");
    stage.serve_cluster_api().await;
    apply(&user, &provisioner("cp1", "cloud1", json!({"floatingIP": "203.0.113.7"}))).await;
    apply(&user, &bursting("web", 6)).await;
    pass(40).await;
    assert!(stage.clusters().await.is_empty());
    let (_, reason, message) = stage.condition("cp1", ConditionType::Ready).await;
    assert_eq!(reason, "CloudRequestFailed");
    assert!(message.contains("spec.floatingIP") && message.contains("clouds/quick"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_ours_without_its_provisioner_is_shown_and_left_alone() {
    let stage = Stage::new().await;
    let user = stage.hub.client("user");
    stage.serve_cluster_api().await;
    let stray = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "lost", "namespace": CLOUDS, "labels": {
            "portolan.dev/cloud-provisioner": "gone", "portolan.dev/cloud-cluster-number": "1",
        }},
        "spec": {},
    });
    apply(&user, &stray).await;
    apply(&user, &provisioner("cp1", "cloud1", json!({}))).await;
    pass(20).await;
    assert_eq!(stage.status("cp1").await.orphans, ["clouds/lost"]);
    assert_eq!(stage.clusters().await.len(), 1);
    Api::<CloudProvisioner>::all(user.clone()).delete("cp1", &Default::default()).await.unwrap();
    pass(20).await;
    assert!(
        Api::<CloudProvisioner>::all(user).get_opt("cp1").await.unwrap().is_none(),
        "nothing of its own is left"
    );
}

#[tokio::test(start_paused = true)]
async fn a_provisioner_that_is_refused_does_not_stop_another() {
    let stage = Stage::new().await;
    let user = stage.hub.client("user");
    stage.serve_cluster_api().await;
    // A user may declare it, and the controllers may not put their finalizer on it.
    let first =
        |object: &Value| object["metadata"]["name"] == "cp1" && object["metadata"]["finalizers"].is_array();
    stage.hub.add_policy(DenyingPolicy::new("frozen", &["CloudProvisioner"], "cp1 is frozen").when(first));
    let near = json!({"latencies": [{"to": "home", "rtt": "5ms"}]});
    apply(&user, &provisioner("cp1", "cloud1", near)).await;
    apply(&user, &provisioner("cp2", "cloud2", json!({"latencies": [{"to": "home", "rtt": "50ms"}]}))).await;
    pass(10).await;
    apply(&user, &bursting("web", 6)).await;
    pass(120).await;
    let names: Vec<String> =
        stage.clusters().await.into_iter().filter_map(|each| each.metadata.name).collect();
    assert!(names.len() == 1 && names[0].starts_with("cloud2-"), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn the_cluster_of_a_provisioner_that_cannot_be_read_is_no_orphan() {
    let (mut stage, name, _) = joined(7, 1, json!({})).await;
    apply(&stage.hub.client("user"), &provisioner("cp2", "cloud2", json!({}))).await;
    pass(30).await;
    let lists = RequestFilter::any().party(CONTROLLER).resource("cloudprovisioners.portolan.dev");
    let unreadable = HostileAnswer::edit(|object| {
        if object["metadata"]["name"] == "cp1" {
            object["spec"]["maxNodes"] = json!("many");
        }
    });
    stage.world.hostile("hub", vec![HostileRule::new(lists, unreadable)]);
    stage.control();
    pass(120).await;
    assert_eq!(stage.status("cp2").await.orphans, Vec::<String>::new());
    let names: Vec<String> =
        stage.clusters().await.into_iter().filter_map(|each| each.metadata.name).collect();
    assert_eq!(names, [name], "and it stays");
    assert!(stage.events("cp1").await.contains(&"Invalid".to_owned()), "its user is told");
}

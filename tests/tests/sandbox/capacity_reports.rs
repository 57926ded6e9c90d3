//! Members that summarise their capacity, and a hub that places by that.

use crate::stage::{asking, condition, contend, deployments, pass, ready, replicas, status};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::foreigncluster::ForeignClusterStatus;
use portolan_api::{ClusterReport, ForeignCluster};
use portolan_control::reporting::report_capacity;
use portolan_runtime::{Seed, Term};
use portolan_sandbox::{ClusterConfig, NodeConfig, World, WorldConfig};
use portolan_tests::simulation::{Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, foreign_cluster, open_namespace, workload};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const ZONE: &str = "topology.kubernetes.io/zone";

/// A large member c2 of so many nodes of four CPUs in two zones, of which the hub asks for summaries, and a small one, c3.
async fn fleet(nodes: usize) -> Fleet {
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let world = World::new(WorldConfig { seed: 1, start, ..WorldConfig::default() });
    let node = |zone: &str| NodeConfig::new("4", "16Gi").label(ZONE, zone).label("example.org/disk", "ssd");
    let mut fleet = Fleet::new(world, &[("c3", 1, NodeConfig::new("2", "8Gi"))]).await;
    let mut config = ClusterConfig::named("c2");
    for number in 0..nodes {
        config = config.node(format!("n{number}"), node(if number % 2 == 0 { "a" } else { "b" }));
    }
    let large = fleet.world.add_cluster(config);
    let user = large.client("user");
    apply(&user, &open_namespace()).await;
    apply(&user, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "portolan"}})).await;
    for definition in portolan_api::crds().into_iter().filter(|crd| crd.spec.names.kind == "ClusterReport") {
        apply(&user, &serde_json::to_value(definition).unwrap()).await;
    }
    let mut cluster = foreign_cluster("c2");
    cluster["spec"]["capacity"] = json!({"fromReport": {}});
    apply(&fleet.hub.client("user"), &cluster).await;
    fleet.members.insert(0, large);
    fleet
}

/// The controller of c2, where reporting is switched on.
fn reporting(fleet: &Fleet) -> JoinHandle<()> {
    let (client, clock) = (fleet.members[0].client("portolan-c2"), fleet.world.clock().clone());
    tokio::spawn(report_capacity(client, clock, Seed::new(2), Term::alone("test")))
}

async fn seen(fleet: &Fleet) -> ForeignClusterStatus {
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    api.get("c2").await.unwrap().status.unwrap_or_default()
}

async fn is_ready(fleet: &Fleet) -> bool {
    conditions::is_true(&seen(fleet).await.conditions, ConditionType::Ready)
}

fn reports(fleet: &Fleet) -> Api<ClusterReport> {
    Api::namespaced(fleet.members[0].client("user"), "portolan")
}

async fn report(fleet: &Fleet) -> ClusterReport {
    let mut all = reports(fleet).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn on_c2(name: &str, replicas: i32, cpu: &str) -> Value {
    let mut workload = workload(name, replicas, json!({"locations": ["c2"]}));
    workload["spec"]["template"]["spec"]["containers"] = asking(cpu);
    workload
}

/// How often nodes and pods of c2 were listed or watched.
fn looked(fleet: &Fleet, resource: &str) -> u64 {
    let looked = |verb: &str| ["list", "watch"].contains(&verb);
    let calls = fleet.members[0].calls().into_iter();
    calls.filter(|call| call.resource == resource && looked(&call.verb)).map(|call| call.count).sum()
}

/// How many pods of c2 have a node.
async fn bound(fleet: &Fleet) -> usize {
    let api: Api<Pod> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let pods = api.list(&ListParams::default()).await.unwrap().items;
    pods.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())).count()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_placed_on_by_a_summary_of_kilobytes() {
    let fleet = fleet(1000).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(40).await;
    assert!(!is_ready(&fleet).await, "nobody summarises the cluster yet");
    assert_eq!(looked(&fleet, "nodes"), 0, "the hub looks at no node");
    let _reporting = reporting(&fleet);
    pass(90).await;
    assert!(is_ready(&fleet).await);
    let numbers = seen(&fleet).await;
    assert_eq!(numbers.nodes.map(|nodes| (nodes.total, nodes.ready)), Some((1000, 1000)));
    assert_eq!(numbers.available["cpu"].0, "4000");
    assert!(numbers.capacity_observed_at.is_some());
    let summary = report(&fleet).await.status.unwrap().capacity.unwrap();
    assert!(serde_json::to_vec(&summary).unwrap().len() < 2048, "nodes that are alike are told once");
    // Three of four CPUs of each node: one each.
    let user = fleet.hub.client("user");
    apply(&user, &on_c2("large", 990, "3")).await;
    apply(&user, &on_c2("more", 20, "3")).await;
    pass(60).await;
    assert_eq!(bound(&fleet).await, 1000, "what is reserved is counted at once, and no pod waits");
    assert_eq!(ready(&fleet, "large").await + ready(&fleet, "more").await, 1000);
    let pending: i32 = [status(&fleet, "large").await, status(&fleet, "more").await]
        .into_iter()
        .map(|status| status.pending_replicas)
        .sum();
    assert_eq!(pending, 10);
}

#[tokio::test(start_paused = true)]
async fn replicas_count_once_before_and_after_the_summary_counts_them() {
    let fleet = fleet(10).await;
    let (_controller, _reporting) = (contend(&fleet, Contender::alone()), reporting(&fleet));
    pass(60).await;
    let user = fleet.hub.client("user");
    apply(&user, &on_c2("web", 20, "1")).await;
    pass(3).await;
    apply(&user, &on_c2("api", 30, "1")).await;
    pass(60).await;
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 0, "api").await), (Some(20), Some(20)));
    assert_eq!(bound(&fleet).await, 40);
    // An edit of the template finds its room where the old pods are.
    apply(&user, &on_c2("web", 20, "900m")).await;
    pass(300).await;
    assert_eq!((replicas(&fleet, 0, "web").await, ready(&fleet, "web").await), (Some(20), 20));
    // What others take is told, too.
    apply(&user, &on_c2("web", 0, "900m")).await;
    pass(120).await;
    assert_eq!(replicas(&fleet, 0, "api").await, Some(30));
}

#[tokio::test(start_paused = true)]
async fn a_summary_tells_the_labels_that_are_asked_for_and_no_others() {
    let fleet = fleet(10).await;
    let (_controller, _reporting) = (contend(&fleet, Contender::alone()), reporting(&fleet));
    pass(60).await;
    let user = fleet.hub.client("user");
    let selecting = |name: &str, key: &str, value: &str| {
        let mut workload = on_c2(name, 30, "1");
        workload["spec"]["template"]["spec"]["nodeSelector"] = json!({ key: value });
        workload
    };
    apply(&user, &selecting("zoned", ZONE, "a")).await;
    apply(&user, &selecting("fast", "example.org/disk", "ssd")).await;
    pass(40).await;
    assert_eq!(replicas(&fleet, 0, "zoned").await, Some(20), "five nodes are in the zone");
    assert_eq!(replicas(&fleet, 0, "fast").await.unwrap_or(0), 0);
    let (_, _, why) = condition(&fleet, "fast", ConditionType::Placed).await;
    assert!(why.contains("spec.capacity.fromReport.nodeLabels"), "{why}");
    let clusters: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let told = json!({"spec": {"capacity": {"fromReport": {"nodeLabels": ["example.org/disk"]}}}});
    clusters.patch("c2", &PatchParams::default(), &Patch::Merge(told)).await.unwrap();
    pass(120).await;
    assert_eq!(replicas(&fleet, 0, "fast").await, Some(20));
}

#[tokio::test(start_paused = true)]
async fn an_old_summary_is_no_lack_of_room() {
    let fleet = fleet(10).await;
    let (_controller, reporting) = (contend(&fleet, Contender::alone()), reporting(&fleet));
    pass(60).await;
    let user = fleet.hub.client("user");
    apply(&user, &on_c2("web", 10, "1")).await;
    pass(60).await;
    assert_eq!(replicas(&fleet, 0, "web").await, Some(10));
    reporting.abort();
    let told = seen(&fleet).await;
    pass(600).await;
    assert!(!is_ready(&fleet).await, "nothing new is placed by it");
    let later = seen(&fleet).await;
    assert_eq!(later.nodes, told.nodes);
    let age = fleet.world.clock().now().duration_since(later.capacity_observed_at.unwrap().0);
    assert!(age > SignedDuration::from_mins(8), "it tells how old it is");
    assert_eq!(
        (replicas(&fleet, 0, "web").await, ready(&fleet, "web").await),
        (Some(10), 10),
        "what runs stays"
    );
    apply(&user, &on_c2("late", 1, "1")).await;
    pass(30).await;
    assert_eq!(deployments(&fleet, 0).get_opt("late").await.unwrap().map(|_| ()), None);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_lies_about_its_room_costs_itself_alone() {
    let fleet = fleet(10).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(40).await;
    let name = report(&fleet).await.metadata.name.unwrap();
    let now = fleet.world.clock().now();
    let room = json!({"nodes": 2_000_000_000, "free": {"cpu": "9e15", "memory": "1Ei", "pods": "110"}});
    let sane = json!({"nodes": 3, "free": {"cpu": "4", "memory": "1Gi", "pods": "110"}});
    let capacity = json!({
        "observedAt": now, "podsResourceVersion": "1", "nodes": {"total": -7, "ready": 1},
        "groups": [{"rooms": [room, sane]}],
    });
    let patch = Patch::Merge(json!({"status": {"capacity": capacity}}));
    reports(&fleet).patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
    pass(30).await;
    assert_eq!(seen(&fleet).await.available["cpu"].0, "12", "what no machine has does not count");
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 4, json!({}))).await;
    pass(60).await;
    assert_eq!(ready(&fleet, "web").await, 4, "the rest of the fleet is as well as before");
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_for_no_summary_any_more_makes_none_and_its_nodes_are_watched_again() {
    let fleet = fleet(10).await;
    let (_controller, _reporting) = (contend(&fleet, Contender::alone()), reporting(&fleet));
    pass(60).await;
    assert!(is_ready(&fleet).await && report(&fleet).await.spec.capacity.is_some());
    let clusters: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let patch = Patch::Merge(json!({"spec": {"capacity": null}}));
    clusters.patch("c2", &PatchParams::default(), &patch).await.unwrap();
    pass(90).await;
    assert!(is_ready(&fleet).await);
    assert_eq!(report(&fleet).await.spec.capacity, None);
    assert_eq!(seen(&fleet).await.capacity_observed_at, None);
    let before = report(&fleet).await.metadata.resource_version;
    pass(200).await;
    assert_eq!(report(&fleet).await.metadata.resource_version, before, "nothing is written any more");
}

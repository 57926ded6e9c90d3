//! Which room of members counts.

use crate::stage::{asking, contend, fleet_of, pass, ready, replicas, status};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use portolan_api::ForeignCluster;
use portolan_sandbox::FaultPlan;
use portolan_tests::simulation::{Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

const HASH_LABEL: &str = "portolan.dev/pod-template-hash";

async fn change_cluster(fleet: &Fleet, name: &str, spec: Value) {
    let clusters: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let patch = Patch::Merge(json!({ "spec": spec }));
    clusters.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn pods(fleet: &Fleet, member: usize) -> Vec<Pod> {
    let api: Api<Pod> = Api::namespaced(fleet.members[member].client("user"), NAMESPACE);
    api.list(&ListParams::default()).await.unwrap().items
}

fn of_cpu(name: &str, replicas: i32, cpu: &str) -> Value {
    let mut workload = workload(name, replicas, json!({"locations": ["c2"]}));
    workload["spec"]["template"]["spec"]["containers"] = asking(cpu);
    workload
}

/// How many pods have a node, and how many there are.
async fn bound(fleet: &Fleet) -> (usize, usize) {
    let pods = pods(fleet, 0).await;
    let bound = pods.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()));
    (bound.count(), pods.len())
}

#[tokio::test(start_paused = true)]
async fn pods_say_which_template_made_them_and_another_image_is_no_other_template() {
    let fleet = fleet_of(&[("c2", 1, "4")], FaultPlan::none()).await;
    let _controller = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &of_cpu("web", 2, "1")).await;
    pass(20).await;
    let hashes = async || {
        let pods = pods(&fleet, 0).await;
        let label = |pod: &Pod| pod.metadata.labels.as_ref()?.get(HASH_LABEL).cloned();
        pods.iter().map(label).collect::<Option<Vec<_>>>().unwrap()
    };
    let first = hashes().await;
    assert_eq!(first.len(), 2);
    assert_eq!(first[0], first[1]);
    let mut image = of_cpu("web", 2, "1");
    image["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:2");
    apply(&fleet.hub.client("user"), &image).await;
    pass(60).await;
    assert_eq!(hashes().await, first, "rolled out, and the same room");
    apply(&fleet.hub.client("user"), &of_cpu("web", 2, "500m")).await;
    pass(60).await;
    assert_ne!(hashes().await, first);
    assert_eq!(ready(&fleet, "web").await, 2);
}

#[tokio::test(start_paused = true)]
async fn replicas_wait_in_a_member_that_may_grow_for_the_nodes_that_it_may_get() {
    let fleet = fleet_of(&[("c2", 1, "2")], FaultPlan::none()).await;
    let _controller = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &of_cpu("web", 9, "900m")).await;
    pass(20).await;
    assert_eq!(
        (replicas(&fleet, 0, "web").await, bound(&fleet).await),
        (Some(2), (2, 2)),
        "it does not grow"
    );
    change_cluster(&fleet, "c2", json!({"capacity": {"maxNodes": 3}})).await;
    pass(60).await;
    assert_eq!(
        (replicas(&fleet, 0, "web").await, bound(&fleet).await),
        (Some(6), (2, 6)),
        "two more nodes may come"
    );
    assert_eq!(status(&fleet, "web").await.pending_replicas, 3);
    change_cluster(&fleet, "c2", json!({"capacity": {"maxNodes": null, "countRoom": false}})).await;
    pass(60).await;
    assert_eq!((replicas(&fleet, 0, "web").await, bound(&fleet).await), (Some(9), (2, 9)));
    assert_eq!(status(&fleet, "web").await.pending_replicas, 0);
}

#[tokio::test(start_paused = true)]
async fn a_virtual_node_is_no_room() {
    let fleet = fleet_of(&[("c2", 2, "2")], FaultPlan::none()).await;
    let nodes: Api<Node> = Api::all(fleet.members[0].client("user"));
    let first = nodes.list(&ListParams::default()).await.unwrap().items.remove(0);
    let patch = Patch::Merge(json!({
        "metadata": {"labels": {"type": "virtual-kubelet"}},
        "spec": {"taints": [{"key": "virtual-kubelet.io/provider", "effect": "NoSchedule"}]},
    }));
    nodes.patch(&first.metadata.name.unwrap(), &PatchParams::default(), &patch).await.unwrap();
    let _controller = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &of_cpu("web", 4, "900m")).await;
    pass(20).await;
    let status = status(&fleet, "web").await;
    assert_eq!((status.replicas, status.pending_replicas), (2, 2));
    let message = status.pending[0].message.clone().unwrap();
    assert!(message.contains("1 of 2 nodes: virtual"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn replicas_of_a_node_that_falls_silent_go_where_there_is_room() {
    let fleet = fleet_of(&[("c2", 2, "2"), ("c3", 1, "4")], FaultPlan::none()).await;
    let _controller = contend(&fleet, Contender::alone());
    let mut web = of_cpu("web", 4, "900m");
    web["spec"]["enableBursting"] = json!(true);
    apply(&fleet.hub.client("user"), &web).await;
    pass(60).await;
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await), (Some(4), None));
    fleet.members[0].fail_node("c2-1");
    // The cluster waits five minutes before it gives its pods up.
    pass(600).await;
    assert_eq!(ready(&fleet, "web").await, 4);
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await), (Some(2), Some(2)));
}

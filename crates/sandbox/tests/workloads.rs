//! The rest of a cluster: scheduling, roll-outs, pods that start and end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{available, cluster, deployment, eventually};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use portolan_sandbox::{ClusterConfig, NodeConfig};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available_scales_and_goes() {
    let (world, cluster) = cluster();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    let pods: Api<Pod> = Api::namespaced(cluster.client("test"), "default");
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap();
    eventually("three pods", async || available(&deployments, "web", 3).await).await;
    let found = pods.list(&ListParams::default()).await.unwrap();
    let mut nodes: Vec<_> =
        found.items.iter().map(|pod| pod.spec.clone().unwrap().node_name.unwrap()).collect();
    nodes.sort();
    assert_eq!(nodes, ["c1-1", "c1-2", "c1-3"], "spread by free room");
    let ready = deployments.get("web").await.unwrap();
    let conditions = ready.status.unwrap().conditions.unwrap();
    assert!(conditions.iter().any(|c| c.type_ == "Available" && c.status == "True"));
    assert!(conditions.iter().any(|c| c.reason.as_deref() == Some("NewReplicaSetAvailable")));

    deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 1}})))
        .await
        .unwrap();
    eventually("one pod", async || pods.list(&ListParams::default()).await.unwrap().items.len() == 1).await;
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    eventually("nothing is left", async || {
        cluster.count("", "pods") == 0 && cluster.count("apps", "replicasets") == 0
    })
    .await;
    assert_eq!(world.check(), []);
}

#[tokio::test(start_paused = true)]
async fn a_new_template_rolls_without_a_gap() {
    let (_world, cluster) = cluster();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    deployments.create(&PostParams::default(), &deployment("web", 4)).await.unwrap();
    eventually("four pods", async || available(&deployments, "web", 4).await).await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(image)).await.unwrap();
    let mut least = 4;
    eventually("four new pods", async || {
        let status = deployments.get("web").await.unwrap().status.unwrap();
        least = least.min(status.available_replicas.unwrap_or(0));
        available(&deployments, "web", 4).await && status.observed_generation == Some(2)
    })
    .await;
    assert!(least >= 3, "25% may be away, {} were", 4 - least);
    let sets: Api<ReplicaSet> = Api::namespaced(cluster.client("test"), "default");
    let sets = sets.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(sets.len(), 2);
    let revisions: Vec<_> =
        sets.iter().map(|set| set.annotations()["deployment.kubernetes.io/revision"].clone()).collect();
    assert!(revisions.contains(&"1".to_owned()) && revisions.contains(&"2".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_waits_with_a_reason() {
    let (world, cluster) = cluster();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    let pods: Api<Pod> = Api::namespaced(cluster.client("test"), "default");
    let nodes: Api<Node> = Api::all(cluster.client("test"));
    nodes
        .patch("c1-1", &PatchParams::default(), &Patch::Merge(json!({"spec": {"unschedulable": true}})))
        .await
        .unwrap();
    deployments.create(&PostParams::default(), &deployment("web", 9)).await.unwrap();
    let pending = ListParams::default().fields("spec.nodeName=");
    eventually("eight run", async || {
        deployments.get("web").await.unwrap().status.unwrap_or_default().available_replicas == Some(8)
    })
    .await;
    let waiting = pods.list(&pending).await.unwrap().items;
    assert_eq!(waiting.len(), 1);
    let condition = waiting[0].status.clone().unwrap().conditions.unwrap()[0].clone();
    assert_eq!(condition.reason.as_deref(), Some("Unschedulable"));
    let message = condition.message.unwrap();
    assert!(
        message.starts_with("0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."),
        "{message}"
    );
    nodes
        .patch("c1-1", &PatchParams::default(), &Patch::Merge(json!({"spec": {"unschedulable": null}})))
        .await
        .unwrap();
    eventually("room is used", async || available(&deployments, "web", 9).await).await;
    assert_eq!(world.check(), []);
}

#[tokio::test(start_paused = true)]
async fn pods_take_their_time() {
    let (_world, cluster) = cluster();
    let pods: Api<Pod> = Api::namespaced(cluster.client("test"), "default");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "annotations": {"sandbox.portolan.dev/start-up": "20s", "sandbox.portolan.dev/run-time": "60s", "sandbox.portolan.dev/exit-code": "3"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]},
    }))
    .unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let phase = async || pods.get("p").await.unwrap().status.unwrap().phase.unwrap();
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert_eq!(phase().await, "Pending");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(phase().await, "Running");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(phase().await, "Failed");
    let code = pods.get("p").await.unwrap().status.unwrap().container_statuses.unwrap()[0]
        .state
        .clone()
        .unwrap()
        .terminated
        .unwrap()
        .exit_code;
    assert_eq!(code, 3);
}

#[tokio::test(start_paused = true)]
async fn pods_spread_and_keep_apart_over_zones() {
    let world = common::world(1);
    let zone = |name: &str| NodeConfig::new("8", "16Gi").label("zone", name);
    let cluster = world.add_cluster(ClusterConfig::named("c").nodes(3, zone("a")).nodes(1, zone("b")));
    let client = cluster.client("test");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let with = |name: &str, replicas: i32, spec: serde_json::Value| -> Deployment {
        let mut wanted = serde_json::to_value(deployment(name, replicas)).unwrap();
        for (key, value) in spec.as_object().unwrap() {
            wanted["spec"]["template"]["spec"][key] = value.clone();
        }
        serde_json::from_value(wanted).unwrap()
    };
    let select = |name: &str| json!({"matchLabels": {"app": name}});
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": select("even")}]});
    deployments.create(&PostParams::default(), &with("even", 4, spread)).await.unwrap();
    eventually("four run", async || available(&deployments, "even", 4).await).await;
    let found = pods.list(&ListParams::default().labels("app=even")).await.unwrap().items;
    let in_b =
        found.iter().filter(|pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some("c-4")).count();
    assert_eq!(in_b, 2, "as many in the zone of one node as in the zone of three");

    let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": select("apart")}]}}});
    deployments.create(&PostParams::default(), &with("apart", 3, apart)).await.unwrap();
    eventually("one in each zone", async || {
        deployments.get("apart").await.unwrap().status.unwrap_or_default().available_replicas == Some(2)
    })
    .await;
    let waiting =
        pods.list(&ListParams::default().labels("app=apart").fields("spec.nodeName=")).await.unwrap().items;
    let message = waiting[0].status.clone().unwrap().conditions.unwrap()[0].message.clone().unwrap();
    assert!(
        message.starts_with("0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules."),
        "{message}"
    );
    assert_eq!(world.check(), []);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_gets_stuck_says_so_and_readiness_takes_its_time() {
    let (_world, cluster) = cluster();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    let mut wanted = deployment("web", 1);
    let spec = wanted.spec.as_mut().unwrap();
    spec.min_ready_seconds = Some(30);
    spec.progress_deadline_seconds = Some(60);
    deployments.create(&PostParams::default(), &wanted).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let status = deployments.get("web").await.unwrap().status.unwrap();
    assert_eq!(
        (status.ready_replicas, status.available_replicas),
        (Some(1), None),
        "ready is not yet available"
    );
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(available(&deployments, "web", 1).await);
    let huge = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "99"}}}]}}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(huge)).await.unwrap();
    let reason = async || {
        let conditions = deployments.get("web").await.unwrap().status.unwrap().conditions.unwrap();
        conditions.iter().find(|c| c.type_ == "Progressing").unwrap().reason.clone().unwrap()
    };
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(reason().await, "ReplicaSetUpdated");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(reason().await, "ProgressDeadlineExceeded");
    assert_eq!(
        deployments.get("web").await.unwrap().status.unwrap().available_replicas,
        Some(1),
        "the old one serves on"
    );
}

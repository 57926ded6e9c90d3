//! What pods use, what they say, and where requests go.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{available, deployment, eventually, world};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, LogParams, PostParams};
use kube::{Api, Client, ResourceExt};
use portolan_sandbox::{Cluster, ClusterConfig, NodeConfig, Source, World};
use serde_json::{Value, json};

async fn get(client: &Client, path: &str) -> Value {
    client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap()
}

async fn web(world: &World, name: &str, replicas: i32) -> Cluster {
    let cluster = world.add_cluster(ClusterConfig::named(name).nodes(2, NodeConfig::new("8", "16Gi")));
    let services: Api<Service> = Api::namespaced(cluster.client("test"), "default");
    let service = json!({
        "metadata": {"name": "web", "annotations": {"io.cilium/global-service": "true"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    let mut wanted = deployment("web", replicas);
    let template = wanted.spec.as_mut().unwrap().template.metadata.as_mut().unwrap();
    template.annotations =
        Some([("sandbox.portolan.dev/cpu-per-request".to_owned(), "10m".to_owned())].into());
    deployments.create(&PostParams::default(), &wanted).await.unwrap();
    eventually("it runs", async || available(&deployments, "web", replicas).await).await;
    cluster
}

#[tokio::test(start_paused = true)]
async fn use_is_told_and_grows_with_traffic() {
    let world = world(1);
    let cluster = web(&world, "rome", 2).await;
    let client = cluster.client("test");
    let cpu = async || {
        let list =
            get(&client, "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods?labelSelector=app%3Dweb")
                .await;
        let items = list["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|pod| pod["containers"][0]["usage"]["cpu"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(cpu().await, ["100m", "100m"], "idle pods use a tenth of what they ask for");
    let source = Source {
        cluster: "rome".into(),
        namespace: "default".into(),
        service: "web".into(),
        requests_per_1000s: 40_000,
    };
    world.send_traffic("users", source);
    assert_eq!(cpu().await, ["300m", "300m"], "forty requests a second, shared by two, at 10m each");
    let nodes = get(&client, "/apis/metrics.k8s.io/v1beta1/nodes").await;
    let total: i64 = nodes["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["usage"]["cpu"].as_str().unwrap().trim_end_matches('m').parse::<i64>().unwrap())
        .sum();
    assert_eq!(total, 600);
    world.stop_traffic("users");
    assert_eq!(cpu().await, ["100m", "100m"]);
}

#[tokio::test(start_paused = true)]
async fn a_global_service_is_reached_everywhere() {
    let world = world(1);
    web(&world, "rome", 1).await;
    web(&world, "paris", 3).await;
    world.set_round_trip("rome", "paris", Duration::from_millis(30));
    let source = Source {
        cluster: "rome".into(),
        namespace: "default".into(),
        service: "web".into(),
        requests_per_1000s: 8_000,
    };
    world.send_traffic("romans", source.clone());
    let mut flows = world.traffic();
    flows.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    let seen: Vec<_> = flows
        .iter()
        .map(|flow| (flow.cluster.as_deref().unwrap(), flow.requests_per_1000s, flow.round_trip.as_millis()))
        .collect();
    assert_eq!(seen, [("paris", 6_000, 30), ("rome", 2_000, 0)]);
    world.send_traffic("lost", Source { service: "none".into(), ..source });
    assert!(
        world.traffic().iter().any(|flow| flow.source == "lost" && flow.cluster.is_none()),
        "errors are counted"
    );
}

#[tokio::test(start_paused = true)]
async fn distance_takes_time() {
    let world = world(1);
    let cluster = web(&world, "rome", 1).await;
    world.set_round_trip("hub", "rome", Duration::from_millis(80));
    let pods: Api<Pod> = Api::namespaced(cluster.client("hub"), "default");
    let before = world.clock().now();
    let found = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(world.clock().now().duration_since(before).as_millis(), 80);
    let logs = pods.logs(&found.items[0].name_any(), &LogParams::default()).await.unwrap();
    assert!(logs.contains("web started from image web:1 (simulated)"), "{logs}");
}

//! What pods use, what they say, and where requests go.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{available, deployment, eventually, world};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, LogParams, PostParams};
use kube::{Api, Client, ResourceExt};
use portolan_sandbox::{Cluster, ClusterConfig, NodeConfig, Profile, Source, World};
use serde_json::{Value, json};

async fn get(client: &Client, path: &str) -> Value {
    client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap()
}

async fn web(world: &World, name: &str, replicas: i32) -> Cluster {
    let cluster = world.add_cluster(ClusterConfig::named(name).nodes(2, NodeConfig::new("8", "16Gi")));
    serve_web(&cluster, replicas).await;
    cluster
}

async fn serve_web(cluster: &Cluster, replicas: i32) {
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

fn profile(rules: &serde_json::Value) -> Profile {
    serde_json::from_value(json!({ "rules": rules })).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_profile_decides_how_pods_start_and_what_they_use() {
    let world = world(1);
    let rules = json!([
        {"image": "big:*", "behaviour": {"imagePull": "30s", "startUp": "5s", "readiness": "3s"}},
        {"labels": {"app": "worker"}, "behaviour": {
            "runTime": "10s", "exitCodes": [3], "cpu": "0s=100m,10s=300m", "memory": "64Mi",
            "network": "1k", "networkPerRequest": "2k",
        }},
    ]);
    let config = ClusterConfig::named("rome").nodes(1, NodeConfig::new("4", "16Gi")).profile(profile(&rules));
    let cluster = world.add_cluster(config);
    let pods: Api<Pod> = Api::namespaced(cluster.client("test"), "default");
    let pod = |name: &str, image: &str, app: &str| -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": app}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]},
        }))
        .unwrap()
    };
    let state = async |name: &str| {
        let status = pods.get(name).await.unwrap().status.unwrap();
        let ready =
            status.conditions.iter().flatten().any(|each| each.type_ == "Ready" && each.status == "True");
        (status.phase.unwrap(), ready)
    };
    pods.create(&PostParams::default(), &pod("first", "big:1", "web")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(34)).await;
    assert_eq!(state("first").await, ("Pending".to_owned(), false), "the image is fetched");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(state("first").await, ("Running".to_owned(), false), "it is not ready yet");
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(state("first").await, ("Running".to_owned(), true));
    pods.create(&PostParams::default(), &pod("second", "big:1", "web")).await.unwrap();
    // Until a whole second: that is how exactly a pod's start is told.
    tokio::time::sleep(Duration::from_millis(6500)).await;
    assert_eq!(state("second").await.0, "Running", "the image is there already");

    pods.create(&PostParams::default(), &pod("worker", "x:1", "worker")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let used = cluster.pod_usage("default", "worker").unwrap();
    assert_eq!((used.cpu_millis, used.memory_bytes, used.network_bytes_per_second), (200, 64 << 20, 1000));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(state("worker").await.0, "Failed", "it ends as the profile says");
    assert_eq!(cluster.pod_usage("default", "worker"), None);
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_requests_is_recorded() {
    let world = world(1);
    let rules = json!([{"behaviour": {"serviceTime": "10ms", "requestsPerSecond": 100}}]);
    for name in ["rome", "oslo"] {
        let config = ClusterConfig::named(name).nodes(1, NodeConfig::new("4", "16Gi"));
        let cluster = world.add_cluster(config.profile(profile(&rules)));
        if name == "rome" {
            serve_web(&cluster, 1).await;
        }
    }
    world.set_round_trip("rome", "oslo", Duration::from_millis(60));
    let from = |cluster: &str, requests_per_1000s: u64| Source {
        cluster: cluster.into(),
        namespace: "default".into(),
        service: "web".into(),
        requests_per_1000s,
    };
    // Oslo has no such service of its own; Rome's is global.
    world.send_traffic("near", from("rome", 10_000));
    world.send_traffic("far", from("oslo", 40_000));
    tokio::time::sleep(Duration::from_secs(100)).await;
    let served = world.served_traffic();
    let of = |cluster: &str| served.iter().find(|each| each.cluster == cluster).unwrap();
    assert_eq!((of("rome").requests, of("rome").errors), (1000, 0));
    assert_eq!((of("oslo").requests, of("oslo").errors), (4000, 0));
    let near = of("rome").latency.percentile(50).as_secs_f64();
    let far = of("oslo").latency.percentile(50).as_secs_f64();
    // Half of what it can do: twice as long as alone; the median of such times is 0.69 of their mean.
    assert!((0.012..0.016).contains(&near), "{near}");
    assert!((0.070..0.080).contains(&far), "{far}");
    assert!(of("oslo").latency.percentile(99) > of("oslo").latency.percentile(90));

    world.forget_traffic();
    world.send_traffic("far", from("oslo", 190_000));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let served = world.served_traffic();
    let lost: u64 = served.iter().map(|each| each.errors).sum();
    assert_eq!(lost, 1000, "of 2000 requests, 1000 are too many");
    world.stop_traffic("far");
    world.stop_traffic("near");
    world.forget_traffic();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.served_traffic().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nodes_renew_leases_only_when_asked_to() {
    let world = world(1);
    let quiet = world.add_cluster(ClusterConfig::named("quiet").nodes(1, NodeConfig::new("4", "16Gi")));
    let config = ClusterConfig::named("beating").nodes(1, NodeConfig::new("4", "16Gi"));
    let beating = world.add_cluster(config.heartbeats(true));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let leases: Api<Lease> = Api::namespaced(beating.client("test"), "kube-node-lease");
    let renewed = async || leases.get("beating-1").await.unwrap().spec.unwrap().renew_time.unwrap();
    let first = renewed().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(renewed().await > first);
    beating.fail_node("beating-1");
    let last = renewed().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(renewed().await, last, "a silent node renews nothing");
    assert_eq!(quiet.count("coordination.k8s.io", "leases"), 0);
}

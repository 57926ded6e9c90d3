//! What all tests of the sandbox share.
#![allow(dead_code, reason = "every test binary uses another part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use portolan_sandbox::{Cluster, ClusterConfig, NodeConfig, World, WorldConfig};
use serde_json::json;

pub(crate) fn world(seed: u64) -> World {
    World::new(WorldConfig { seed, start: "2026-01-01T00:00:00Z".parse().unwrap(), ..WorldConfig::default() })
}

pub(crate) fn cluster() -> (World, Cluster) {
    let world = world(7);
    let cluster = world.add_cluster(ClusterConfig::named("c1").nodes(3, NodeConfig::new("4", "16Gi")));
    (world, cluster)
}

pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"key": value}})).unwrap()
}

pub(crate) fn deployment(name: &str, replicas: i32) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
            },
        },
    }))
    .unwrap()
}

/// Polls until `condition` holds, on virtual time.
pub(crate) async fn eventually<F: AsyncFnMut() -> bool>(what: &str, mut condition: F) {
    for _ in 0..600 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not within a minute: {what}");
}

pub(crate) async fn available(deployments: &Api<Deployment>, name: &str, replicas: i32) -> bool {
    let status = deployments.get(name).await.unwrap().status.unwrap_or_default();
    status.available_replicas.unwrap_or(0) == replicas
        && status.updated_replicas.unwrap_or(0) == replicas
        && status.replicas.unwrap_or(0) == replicas
}

pub(crate) fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("no answer of the API server: {other}"),
    }
}

pub(crate) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => panic!("no answer of the API server: {other}"),
    }
}

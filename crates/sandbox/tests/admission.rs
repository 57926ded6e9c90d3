//! Admission: LimitRanges, quota, RuntimeClasses, hooks and policies.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{available, cluster, code, deployment, eventually, message};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Pod, ResourceQuota};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use portolan_sandbox::{DenyingPolicy, MutatingHook};
use serde_json::{Value, json};

fn pod(name: &str, resources: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "app:1", "resources": resources}]},
    }))
    .unwrap()
}

async fn limit(client: &Client, limit: Value) {
    let range: LimitRange =
        serde_json::from_value(json!({"metadata": {"name": "range"}, "spec": {"limits": [limit]}})).unwrap();
    let api: Api<LimitRange> = Api::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &range).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_limit_range_gives_defaults_and_bounds() {
    let (_world, cluster) = cluster();
    let client = cluster.client("user");
    limit(
        &client,
        json!({"type": "Container", "default": {"cpu": "300m"}, "min": {"cpu": "50m"}, "max": {"cpu": "1"}}),
    )
    .await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let made = pods.create(&PostParams::default(), &pod("silent", json!({}))).await.unwrap();
    let note = made.metadata.annotations.as_ref().unwrap()["kubernetes.io/limit-ranger"].clone();
    assert_eq!(note, "LimitRanger plugin set: cpu request for container main; cpu limit for container main");
    let resources = made.spec.unwrap().containers[0].resources.clone().unwrap();
    assert_eq!(resources.requests.unwrap()["cpu"].0, "300m");
    assert_eq!(resources.limits.unwrap()["cpu"].0, "300m");
    let small = pod("small", json!({"requests": {"cpu": "10m"}}));
    let refused = pods.create(&PostParams::default(), &small).await.unwrap_err();
    assert_eq!(code(&refused), 403);
    assert_eq!(
        message(&refused),
        "pods \"small\" is forbidden: minimum cpu usage per Container is 50m, but request is 10m"
    );
    let large = pod("large", json!({"limits": {"cpu": "2"}}));
    let refused = pods.create(&PostParams::default(), &large).await.unwrap_err();
    assert!(message(&refused).contains("maximum cpu usage per Container is 1, but limit is 2"));
}

#[tokio::test(start_paused = true)]
async fn a_quota_bounds_what_runs_and_says_what_is_used() {
    let (_world, cluster) = cluster();
    let client = cluster.client("user");
    let quota: ResourceQuota = serde_json::from_value(json!({
        "metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "2", "pods": "10", "count/deployments.apps": "1"}},
    }))
    .unwrap();
    let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), "default");
    quotas.create(&PostParams::default(), &quota).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap();
    let refused = deployments.create(&PostParams::default(), &deployment("other", 1)).await.unwrap_err();
    assert_eq!(
        message(&refused),
        "deployments.apps \"other\" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, used: \
         count/deployments.apps=1, limited: count/deployments.apps=1"
    );
    eventually("two of three run, and it is said why", async || {
        let status = deployments.get("web").await.unwrap().status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let failure = conditions.iter().find(|each| each.type_ == "ReplicaFailure");
        status.ready_replicas == Some(2)
            && failure.is_some_and(|failure| {
                failure.message.as_deref().unwrap_or_default().contains(
                "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2, limited: requests.cpu=2",
            )
            })
    })
    .await;
    let used = quotas.get("q").await.unwrap().status.unwrap().used.unwrap();
    assert_eq!((used["requests.cpu"].0.as_str(), used["pods"].0.as_str()), ("2", "2"));
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let refused = pods.create(&PostParams::default(), &pod("silent", json!({}))).await.unwrap_err();
    assert_eq!(message(&refused), "pods \"silent\" is forbidden: failed quota: q: must specify requests.cpu");
    quotas.delete("q", &Default::default()).await.unwrap();
    eventually("the third runs", async || available(&deployments, "web", 3).await).await;
    let conditions = deployments.get("web").await.unwrap().status.unwrap().conditions.unwrap();
    assert!(conditions.iter().all(|each| each.type_ != "ReplicaFailure"));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_class_tells_the_overhead() {
    let (_world, cluster) = cluster();
    let client = cluster.client("user");
    let class: RuntimeClass = serde_json::from_value(
        json!({"metadata": {"name": "vm"}, "handler": "vm", "overhead": {"podFixed": {"cpu": "250m"}}}),
    )
    .unwrap();
    let classes: Api<RuntimeClass> = Api::all(client.clone());
    classes.create(&PostParams::default(), &class).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let mut inside = pod("inside", json!({}));
    inside.spec.as_mut().unwrap().runtime_class_name = Some("vm".to_owned());
    let made = pods.create(&PostParams::default(), &inside).await.unwrap();
    assert_eq!(made.spec.unwrap().overhead.unwrap()["cpu"].0, "250m");
    inside.metadata.name = Some("nowhere".to_owned());
    inside.spec.as_mut().unwrap().runtime_class_name = Some("none".to_owned());
    let refused = pods.create(&PostParams::default(), &inside).await.unwrap_err();
    assert!(message(&refused).ends_with("pod rejected: RuntimeClass \"none\" not found"));
}

#[tokio::test(start_paused = true)]
async fn hooks_change_and_policies_deny() {
    let (_world, cluster) = cluster();
    let client = cluster.client("user");
    let proxy = json!({"name": "proxy", "image": "proxy:1", "resources": {"requests": {"cpu": "100m"}}});
    cluster.add_hook(MutatingHook::inject_container("mesh", proxy).in_namespaces("mesh", "on"));
    cluster.add_hook(MutatingHook::inject_env("zone", "ZONE", "a"));
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let plain = pods.create(&PostParams::default(), &pod("plain", json!({}))).await.unwrap().spec.unwrap();
    assert_eq!(plain.containers.len(), 1, "the namespace has no such label");
    assert_eq!(plain.containers[0].env.as_ref().unwrap()[0].name, "ZONE");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": {"mesh": "on"}}}));
    namespaces.patch("default", &PatchParams::default(), &label).await.unwrap();
    let meshed = pods.create(&PostParams::default(), &pod("meshed", json!({}))).await.unwrap().spec.unwrap();
    assert_eq!(meshed.containers[1].name, "proxy");
    assert_eq!(meshed.containers[1].termination_message_path.as_deref(), Some("/dev/termination-log"));
    cluster.add_policy(
        DenyingPolicy::new("few", &["Deployment"], "at most two")
            .when(|object| object["spec"]["replicas"].as_i64().unwrap_or(0) > 2),
    );
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    let refused = deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap_err();
    assert_eq!(code(&refused), 422);
    assert!(message(&refused).ends_with("'few' with binding 'few' denied request: at most two"));
    deployments.create(&PostParams::default(), &deployment("web", 2)).await.unwrap();
    let grow = Patch::Merge(json!({"spec": {"replicas": 5}}));
    assert!(deployments.patch("web", &PatchParams::default(), &grow).await.is_err());
    cluster.remove_admission("few");
    deployments.patch("web", &PatchParams::default(), &grow).await.unwrap();
}

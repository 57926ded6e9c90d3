//! Server-side apply and the other patches.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{cluster, code, config_map, deployment, message};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::params::PostParams as Post;
use kube::{Api, ResourceExt};
use portolan_sandbox::Cluster;
use serde_json::{Value, json};

fn maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client("test"), "default")
}

fn map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})
}

async fn apply(maps: &Api<ConfigMap>, manager: &str, data: &Value) -> Result<ConfigMap, kube::Error> {
    maps.patch("m", &PatchParams::apply(manager), &Patch::Apply(map(data))).await
}

fn data(map: &ConfigMap) -> Value {
    json!(map.data)
}

#[tokio::test(start_paused = true)]
async fn applied_fields_are_owned_shared_and_removed() {
    let (_world, cluster) = cluster();
    let maps = maps(&cluster);
    apply(&maps, "one", &json!({"a": "1", "b": "1"})).await.unwrap();
    let both = apply(&maps, "two", &json!({"b": "1", "c": "2"})).await.unwrap();
    assert_eq!(data(&both), json!({"a": "1", "b": "1", "c": "2"}));

    let error = apply(&maps, "two", &json!({"a": "2", "b": "1", "c": "2"})).await.unwrap_err();
    assert_eq!(code(&error), 409);
    assert_eq!(message(&error), "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    let kube::Error::Api(status) = error else { panic!() };
    let causes = status.details.clone().unwrap().causes;
    assert_eq!(causes[0].field, ".data.a");

    let fewer = apply(&maps, "one", &json!({"a": "1"})).await.unwrap();
    assert_eq!(data(&fewer), json!({"a": "1", "b": "1", "c": "2"}), "what another owns stays");
    let fewer = apply(&maps, "two", &json!({"c": "2"})).await.unwrap();
    assert_eq!(data(&fewer), json!({"a": "1", "c": "2"}), "what nobody owns any more goes");

    let force = PatchParams::apply("two").force();
    let taken = maps.patch("m", &force, &Patch::Apply(map(&json!({"a": "2", "c": "2"})))).await.unwrap();
    assert_eq!(data(&taken), json!({"a": "2", "c": "2"}));
    let managers: Vec<_> = taken.managed_fields().iter().map(|m| m.manager.clone().unwrap()).collect();
    assert_eq!(managers, ["two"], "a manager without fields is forgotten");
}

#[tokio::test(start_paused = true)]
async fn repeating_an_apply_writes_nothing() {
    let (_world, cluster) = cluster();
    let maps = maps(&cluster);
    let once = apply(&maps, "one", &json!({"a": "1"})).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let twice = apply(&maps, "one", &json!({"a": "1"})).await.unwrap();
    assert_eq!(once.resource_version(), twice.resource_version());
}

#[tokio::test(start_paused = true)]
async fn updates_own_what_they_change() {
    let (_world, cluster) = cluster();
    let maps = maps(&cluster);
    maps.create(
        &Post { field_manager: Some("creator".into()), ..PostParams::default() },
        &config_map("m", "1"),
    )
    .await
    .unwrap();
    let error = apply(&maps, "one", &json!({"key": "2"})).await.unwrap_err();
    assert_eq!(
        message(&error),
        "Apply failed with 1 conflict: conflict with \"creator\" using v1: .data.key"
    );
    let shared = apply(&maps, "one", &json!({"key": "1"})).await.unwrap();
    assert_eq!(shared.managed_fields().len(), 2, "the same value is no conflict");
    let edit = PatchParams { field_manager: Some("editor".into()), ..PatchParams::default() };
    let edited = maps.patch("m", &edit, &Patch::Merge(json!({"data": {"key": "3"}}))).await.unwrap();
    let owners: Vec<_> = edited
        .managed_fields()
        .iter()
        .filter(|entry| json!(entry.fields_v1).pointer("/f:data/f:key").is_some())
        .map(|entry| entry.manager.clone().unwrap())
        .collect();
    assert_eq!(owners, ["editor"]);
}

#[tokio::test(start_paused = true)]
async fn lists_merge_by_their_keys() {
    let (_world, cluster) = cluster();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    let config = |containers: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
            },
        })
    };
    let user = PatchParams::apply("user");
    let web = json!({"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]});
    deployments.patch("web", &user, &Patch::Apply(config(json!([web])))).await.unwrap();
    let side = PatchParams::apply("injector");
    let only = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}},
    });
    let both = deployments.patch("web", &side, &Patch::Apply(only)).await.unwrap();
    let names = |deployment: &Deployment| -> Vec<String> {
        let spec = deployment.spec.clone().unwrap().template.spec.unwrap();
        spec.containers.iter().map(|container| container.name.clone()).collect()
    };
    assert_eq!(names(&both), ["web", "side"]);
    let again = deployments.patch("web", &user, &Patch::Apply(config(json!([web])))).await.unwrap();
    assert_eq!(names(&again), ["web", "side"], "another's item stays");
    let empty = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    let without = deployments.patch("web", &side, &Patch::Apply(empty)).await.unwrap();
    assert_eq!(names(&without), ["web"], "an item goes with its owner, defaults and all");
    let spec = without.spec.unwrap();
    assert_eq!(
        spec.template.spec.unwrap().containers[0].ports.as_ref().unwrap()[0].protocol.as_deref(),
        Some("TCP")
    );
    let twice = config(json!([web, web]));
    let error = deployments.patch("web", &user, &Patch::Apply(twice)).await.unwrap_err();
    assert!(message(&error).contains("duplicate entries for key"), "{}", message(&error));
}

#[tokio::test(start_paused = true)]
async fn status_is_applied_apart() {
    let (_world, cluster) = cluster();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    let mut paused = deployment("web", 1);
    paused.spec.as_mut().unwrap().paused = Some(true);
    deployments.create(&PostParams::default(), &paused).await.unwrap();
    let status = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "status": {"conditions": [{"type": "Custom", "status": "True"}]},
    });
    let after = deployments
        .patch_status("web", &PatchParams::apply("reporter").force(), &Patch::Apply(status))
        .await
        .unwrap();
    let entry = after
        .managed_fields()
        .iter()
        .find(|entry| entry.manager.as_deref() == Some("reporter"))
        .cloned()
        .unwrap();
    assert_eq!(entry.subresource.as_deref(), Some("status"));
    assert!(json!(entry.fields_v1).pointer("/f:status").is_some());
}

#[tokio::test(start_paused = true)]
async fn the_other_patches() {
    let (_world, cluster) = cluster();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    deployments.create(&PostParams::default(), &deployment("web", 0)).await.unwrap();
    let strategic = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}, {"name": "b", "image": "b:1"}]}}}});
    let after =
        deployments.patch("web", &PatchParams::default(), &Patch::Strategic(strategic)).await.unwrap();
    let containers = after.spec.unwrap().template.spec.unwrap().containers;
    assert_eq!(containers.len(), 2);
    assert_eq!(containers[0].image.as_deref(), Some("web:2"));
    assert!(containers[0].resources.is_some(), "what the patch does not name stays");
    let steps: json_patch::Patch = serde_json::from_value(json!([
        {"op": "test", "path": "/spec/replicas", "value": 0},
        {"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "b:2"},
    ]))
    .unwrap();
    let after = deployments.patch("web", &PatchParams::default(), &Patch::Json::<()>(steps)).await.unwrap();
    assert_eq!(after.spec.unwrap().template.spec.unwrap().containers[1].image.as_deref(), Some("b:2"));
    let failing: json_patch::Patch =
        serde_json::from_value(json!([{"op": "test", "path": "/spec/replicas", "value": 5}])).unwrap();
    let error =
        deployments.patch("web", &PatchParams::default(), &Patch::Json::<()>(failing)).await.unwrap_err();
    assert_eq!(code(&error), 422);
    let stale = json!({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 3}});
    assert_eq!(
        code(&deployments.patch("web", &PatchParams::default(), &Patch::Merge(stale)).await.unwrap_err()),
        409
    );
}

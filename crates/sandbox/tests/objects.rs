//! Create, read, update, delete; conflicts, finalizers, owners, namespaces.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{cluster, code, config_map, deployment, eventually, message};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service};
use kube::api::{
    DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::{Api, ResourceExt};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn an_object_lives_and_dies() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert!(made.uid().is_some());
    assert_eq!(made.creation_timestamp().unwrap().0, "2026-01-01T00:00:00Z".parse().unwrap());
    let error = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap_err();
    assert_eq!((code(&error), message(&error).as_str()), (409, "configmaps \"a\" already exists"));

    let mut changed = made.clone();
    changed.data.as_mut().unwrap().insert("key".into(), "2".into());
    let updated = maps.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(updated.resource_version(), made.resource_version());
    let error = maps.replace("a", &PostParams::default(), &changed).await.unwrap_err();
    assert_eq!(code(&error), 409);
    assert_eq!(
        message(&error),
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to \
         the latest version and try again"
    );
    let same = maps.replace("a", &PostParams::default(), &updated).await.unwrap();
    assert_eq!(same.resource_version(), updated.resource_version(), "a void update writes nothing");

    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let error = maps.get("a").await.unwrap_err();
    assert_eq!((code(&error), message(&error).as_str()), (404, "configmaps \"a\" not found"));
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_and_checked() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    let generated = ConfigMap {
        metadata: ObjectMeta { generate_name: Some("x-".into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let one = maps.create(&PostParams::default(), &generated).await.unwrap();
    let two = maps.create(&PostParams::default(), &generated).await.unwrap();
    assert_eq!(one.name_any().len(), 7);
    assert_ne!(one.name_any(), two.name_any());
    let error = maps.create(&PostParams::default(), &config_map("Bad_Name", "")).await.unwrap_err();
    assert_eq!(code(&error), 422);
    assert!(
        message(&error)
            .starts_with("ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\"")
    );
    let error = Api::<ConfigMap>::namespaced(cluster.client("test"), "nowhere")
        .create(&PostParams::default(), &config_map("a", ""))
        .await
        .unwrap_err();
    assert_eq!((code(&error), message(&error).as_str()), (404, "namespaces \"nowhere\" not found"));
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_moment() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    for number in 0..10 {
        maps.create(&PostParams::default(), &config_map(&format!("m{number}"), "x")).await.unwrap();
    }
    let select = ListParams::default().fields("metadata.name!=kube-root-ca.crt");
    let first = maps.list(&select.clone().limit(4)).await.unwrap();
    assert_eq!(first.items.len(), 4);
    maps.delete("m5", &DeleteParams::default()).await.unwrap();
    maps.create(&PostParams::default(), &config_map("m55", "x")).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let rest = maps.list(&select.clone().limit(100).continue_token(&token)).await.unwrap();
    let names: Vec<String> = rest.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["m4", "m5", "m6", "m7", "m8", "m9"], "later changes do not show");
    cluster.compact();
    let error = maps.list(&select.limit(100).continue_token(&token)).await.unwrap_err();
    assert_eq!(code(&error), 410);
}

#[tokio::test(start_paused = true)]
async fn selectors_select() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    for (name, tier) in [("a", "front"), ("b", "back")] {
        let mut map = config_map(name, "x");
        map.labels_mut().insert("tier".into(), tier.into());
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let found = maps.list(&ListParams::default().labels("tier in (front,middle)")).await.unwrap();
    assert_eq!(found.items.len(), 1);
    let error = maps.list(&ListParams::default().fields("data.key=x")).await.unwrap_err();
    assert_eq!((code(&error), message(&error).as_str()), (400, "field label not supported: data.key"));
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_and_let_go() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    let mut map = config_map("held", "x");
    map.finalizers_mut().push("example.com/hold".into());
    let made = maps.create(&PostParams::default(), &map).await.unwrap();
    let wrong = DeleteParams {
        preconditions: Some(Preconditions { uid: Some("other".into()), resource_version: None }),
        ..DeleteParams::default()
    };
    assert_eq!(code(&maps.delete("held", &wrong).await.unwrap_err()), 409);
    maps.delete("held", &DeleteParams::default()).await.unwrap();
    let marked = maps.get("held").await.unwrap();
    assert!(marked.metadata.deletion_timestamp.is_some());
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    let error = maps.patch("held", &PatchParams::default(), &Patch::Merge(&more)).await.unwrap_err();
    assert!(message(&error).contains("no new finalizers can be added if the object is being deleted"));
    maps.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await
        .unwrap();
    assert_eq!(code(&maps.get("held").await.unwrap_err()), 404);
    assert_ne!(maps.create(&PostParams::default(), &map).await.unwrap().uid(), made.uid());
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_owner() {
    let (_world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "default");
    let owner = maps.create(&PostParams::default(), &config_map("owner", "x")).await.unwrap();
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(), "blockOwnerDeletion": true}]);
    let child = |name: &str| -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": reference}})).unwrap()
    };
    maps.create(&PostParams::default(), &child("kept")).await.unwrap();
    let orphaned =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    maps.delete("owner", &orphaned).await.unwrap();
    eventually("the owner goes", async || maps.get_opt("owner").await.unwrap().is_none()).await;
    assert!(maps.get("kept").await.unwrap().owner_references().is_empty());

    maps.create(&PostParams::default(), &child("stray")).await.unwrap();
    eventually("an absent owner's dependent goes", async || maps.get_opt("stray").await.unwrap().is_none())
        .await;

    let owner = maps.create(&PostParams::default(), &config_map("owner", "x")).await.unwrap();
    let mut held = child("held");
    held.owner_references_mut()[0].uid = owner.uid().unwrap();
    held.finalizers_mut().push("example.com/hold".into());
    maps.create(&PostParams::default(), &held).await.unwrap();
    maps.delete("owner", &DeleteParams::foreground()).await.unwrap();
    eventually("the dependent is deleted first", async || {
        maps.get("held").await.unwrap().metadata.deletion_timestamp.is_some()
    })
    .await;
    assert!(maps.get_opt("owner").await.unwrap().is_some());
    maps.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await
        .unwrap();
    eventually("then the owner", async || maps.get_opt("owner").await.unwrap().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_furnished_and_emptied() {
    let (_world, cluster) = cluster();
    let spaces: Api<Namespace> = Api::all(cluster.client("test"));
    let space: Namespace = serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
    let made = spaces.create(&PostParams::default(), &space).await.unwrap();
    assert_eq!(made.labels()["kubernetes.io/metadata.name"], "team");
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("test"), "team");
    eventually("it is furnished", async || maps.get_opt("kube-root-ca.crt").await.unwrap().is_some()).await;
    let mut held = config_map("held", "x");
    held.finalizers_mut().push("example.com/hold".into());
    maps.create(&PostParams::default(), &held).await.unwrap();
    spaces.delete("team", &DeleteParams::default()).await.unwrap();
    let error = maps.create(&PostParams::default(), &config_map("late", "x")).await.unwrap_err();
    assert_eq!(code(&error), 403);
    assert_eq!(
        message(&error),
        "configmaps \"late\" is forbidden: unable to create new content in namespace team because it is being terminated"
    );
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(spaces.get("team").await.unwrap().status.unwrap().phase.as_deref(), Some("Terminating"));
    maps.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await
        .unwrap();
    eventually("it goes when it is empty", async || spaces.get_opt("team").await.unwrap().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_written_apart() {
    let (_world, cluster) = cluster();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    let mut with_status = deployment("web", 0);
    with_status.status = Some(serde_json::from_value(json!({"replicas": 9})).unwrap());
    let made = deployments.create(&PostParams::default(), &with_status).await.unwrap();
    assert!(made.status.unwrap_or_default().replicas.is_none());
    assert_eq!(made.metadata.generation, Some(1));
    let patch = json!({"spec": {"replicas": 7}, "status": {"replicas": 5}});
    let after =
        deployments.patch_status("web", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!((after.spec.unwrap().replicas, after.metadata.generation), (Some(0), Some(1)));
    let labels = json!({"metadata": {"labels": {"a": "b"}}, "status": {"replicas": 4}});
    let after = deployments.patch("web", &PatchParams::default(), &Patch::Merge(&labels)).await.unwrap();
    assert_eq!(after.metadata.generation, Some(1), "labels are no new generation");
    assert_ne!(after.status.unwrap_or_default().replicas, Some(4));
    let scaled = deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 2}})))
        .await
        .unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(2));
    assert_eq!(deployments.get("web").await.unwrap().metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn dry_runs_and_bad_objects_change_nothing() {
    let (_world, cluster) = cluster();
    let before = cluster.revision();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client("test"), "default");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let answer = deployments.create(&dry, &deployment("web", 1)).await.unwrap();
    assert!(answer.uid().is_some());
    let mut bad = deployment("web", 1);
    bad.spec.as_mut().unwrap().selector.match_labels.as_mut().unwrap().insert("app".into(), "other".into());
    let error = deployments.create(&PostParams::default(), &bad).await.unwrap_err();
    assert_eq!(code(&error), 422);
    assert!(message(&error).contains("`selector` does not match template `labels`"), "{}", message(&error));
    let request = http::Request::post("/apis/apps/v1/namespaces/default/deployments")
        .header("content-type", "application/json")
        .body(br#"{"metadata":{"name":"x"},"spec":{"replicas":"two"}}"#.to_vec())
        .unwrap();
    let error = cluster.client("test").request::<Deployment>(request).await.unwrap_err();
    assert_eq!(
        message(&error),
        "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct \
         field DeploymentSpec.spec.replicas of type int32"
    );
    assert_eq!(cluster.count("apps", "deployments"), 0);
    assert!(cluster.revision() >= before);
}

#[tokio::test(start_paused = true)]
async fn the_server_fills_in_what_it_alone_knows() {
    let (_world, cluster) = cluster();
    let services: Api<Service> = Api::namespaced(cluster.client("test"), "default");
    let service: Service =
        serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}))
            .unwrap();
    let spec = services.create(&PostParams::default(), &service).await.unwrap().spec.unwrap();
    assert_eq!(spec.cluster_ip.as_deref(), Some("10.96.0.2"));
    assert_eq!(spec.ports.unwrap()[0].protocol.as_deref(), Some("TCP"));
    let secrets: Api<Secret> = Api::namespaced(cluster.client("test"), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}})).unwrap();
    let made = secrets.create(&PostParams::default(), &secret).await.unwrap();
    assert_eq!(made.data.unwrap()["k"].0, b"v");
    let pods: Api<Pod> = Api::namespaced(cluster.client("test"), "default");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}))
    .unwrap();
    let made = pods.create(&PostParams::default(), &pod).await.unwrap();
    assert_eq!(made.spec.unwrap().containers[0].image_pull_policy.as_deref(), Some("Always"));
    assert_eq!(made.status.unwrap().qos_class.as_deref(), Some("BestEffort"));
}

#[tokio::test(start_paused = true)]
async fn what_is_called_is_counted() {
    let (world, cluster) = cluster();
    let client = cluster.client("me");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    maps.list(&ListParams::default()).await.unwrap();
    maps.list(&ListParams::default()).await.unwrap();
    for path in
        ["/apis/nonsense.io/v1/things/x", "/version", "/apis/apps/v1/namespaces/default/deployments/x/scale"]
    {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let _ = client.request_text(request).await;
    }
    let count = |called: &[portolan_sandbox::Called], verb: &str, resource: &str| {
        let found = called.iter().find(|each| each.verb == verb && each.resource == resource);
        found.map(|each| (each.count, each.unserved))
    };
    let called = world.calls();
    assert_eq!(called, cluster.calls());
    assert_eq!(count(&called, "create", "configmaps"), Some((1, 0)));
    assert_eq!(count(&called, "list", "configmaps"), Some((2, 0)));
    assert_eq!(count(&called, "get", "things.nonsense.io"), Some((1, 1)), "asked for, and not there");
    assert_eq!(
        count(&called, "get", "deployments.apps/scale"),
        Some((1, 0)),
        "there, though this one is not"
    );
    assert_eq!(count(&called, "get", "/version"), Some((1, 0)));
    assert_eq!(count(&called, "list", "secrets"), None);
}

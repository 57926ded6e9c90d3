//! ConfigMaps and Secrets follow the workloads that refer to them.

use crate::stage::{condition, contend, events, fleet, pass, patch, replicas, start, status, workloads};
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt};
use portolan_api::conditions::{self, ConditionType};
use portolan_sandbox::FaultPlan;
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

fn config(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"key": value},
    })
}

fn secret(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": {"password": "geheim"},
    })
}

/// A workload that takes its environment from a ConfigMap and mounts a Secret.
fn needing(name: &str, locations: &[&str]) -> Value {
    let mut object = workload(name, 1, json!({ "locations": locations }));
    let spec = &mut object["spec"]["template"]["spec"];
    spec["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
    spec["volumes"] = json!([
        {"name": "s", "projected": {"sources": [{"secret": {"name": "login"}}]}},
        {"name": "o", "configMap": {"name": "extras", "optional": true}},
    ]);
    object
}

async fn carried(fleet: &Fleet, member: usize, name: &str) -> Option<ConfigMap> {
    let api: Api<ConfigMap> = Api::namespaced(fleet.members[member].client("user"), NAMESPACE);
    api.get_opt(name).await.unwrap()
}

async fn carried_secret(fleet: &Fleet, member: usize, name: &str) -> Option<Secret> {
    let api: Api<Secret> = Api::namespaced(fleet.members[member].client("user"), NAMESPACE);
    api.get_opt(name).await.unwrap()
}

fn value(config: Option<ConfigMap>) -> Option<String> {
    config?.data?.get("key").cloned()
}

#[tokio::test(start_paused = true)]
async fn what_a_template_refers_to_follows_it_stays_current_and_goes_with_the_last_that_needs_it() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    for object in [config("settings", "one"), config("unrelated", "x"), secret("login"), secret("private")] {
        apply(&user, &object).await;
    }
    apply(&user, &needing("web", &["c2"])).await;
    apply(&user, &needing("api", &["c2"])).await;
    pass(20).await;
    assert_eq!(value(carried(&fleet, 0, "settings").await).as_deref(), Some("one"));
    let login = carried_secret(&fleet, 0, "login").await.unwrap();
    assert_eq!(login.data.as_ref().unwrap()["password"].0, b"geheim");
    assert!(carried_secret(&fleet, 0, "private").await.is_none(), "only what is referred to travels");
    assert!(carried(&fleet, 0, "unrelated").await.is_none());
    assert!(carried(&fleet, 1, "settings").await.is_none(), "only where it is needed");
    assert!(!format!("{:?}", login.metadata).contains("geheim"));
    assert!(!login.annotations().values().any(|text| text.contains("Z2VoZWlt")));
    let (ready, _, message) = condition(&fleet, "web", ConditionType::DependenciesReady).await;
    assert_eq!(ready, "True");
    assert!(message.contains("optional: ConfigMap extras"), "{message}");
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");

    apply(&user, &config("settings", "two")).await;
    pass(5).await;
    assert_eq!(value(carried(&fleet, 0, "settings").await).as_deref(), Some("two"), "it is kept current");
    let member: Api<ConfigMap> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    member.delete("settings", &Default::default()).await.unwrap();
    pass(5).await;
    assert_eq!(value(carried(&fleet, 0, "settings").await).as_deref(), Some("two"), "it is put back");

    // One moves away: the other still needs it. Then that one goes, too.
    patch(&fleet, "web", json!({"locations": ["c3"]})).await;
    pass(30).await;
    assert_eq!(value(carried(&fleet, 1, "settings").await).as_deref(), Some("two"));
    assert!(carried(&fleet, 0, "settings").await.is_some(), "the other workload needs it");
    workloads(&fleet).delete("api", &Default::default()).await.unwrap();
    pass(30).await;
    assert!(carried(&fleet, 0, "settings").await.is_none(), "nobody needs it there any more");
    assert!(carried_secret(&fleet, 0, "login").await.is_none());
    // And a template that refers to it no more lets it go, after the rollout.
    let plain = json!({"template": {"spec": {"volumes": null}}});
    patch(&fleet, "web", plain).await;
    pass(30).await;
    assert!(carried_secret(&fleet, 1, "login").await.is_none());
    assert!(carried(&fleet, 1, "settings").await.is_some());
    let log = fleet.world.log().lines();
    assert!(!log.iter().any(|line| line.contains("geheim")), "no secret in any log");
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_told_and_follows_when_it_is_made() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &secret("login")).await;
    apply(&user, &needing("web", &["c2"])).await;
    pass(20).await;
    let (ready, reason, message) = condition(&fleet, "web", ConditionType::DependenciesReady).await;
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "DependencyNotFound"));
    assert!(message.contains("ConfigMap settings") && !message.contains("extras"), "{message}");
    assert!(events(&fleet, "web").await.contains(&"DependencyNotFound".to_owned()));
    assert!(carried_secret(&fleet, 0, "login").await.is_some(), "what is there follows");
    assert_eq!(
        replicas(&fleet, 0, "web").await,
        Some(1),
        "as in Kubernetes, the pods wait, not the Deployment"
    );
    apply(&user, &config("settings", "one")).await;
    apply(&user, &config("extras", "two")).await;
    pass(5).await;
    assert_eq!(value(carried(&fleet, 0, "settings").await).as_deref(), Some("one"));
    assert_eq!(value(carried(&fleet, 0, "extras").await).as_deref(), Some("two"));
    assert_eq!(condition(&fleet, "web", ConditionType::DependenciesReady).await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_strangers_object_is_not_taken_over() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "ours")).await;
    apply(&user, &secret("login")).await;
    apply(&fleet.members[0].client("user"), &config("settings", "theirs")).await;
    apply(&user, &needing("web", &["c2"])).await;
    pass(20).await;
    let placed = status(&fleet, "web").await.placements.remove(0);
    assert_eq!(placed.reason.as_deref(), Some("NameTaken"));
    assert!(placed.message.unwrap().contains("ConfigMap shop/settings exists there already"));
    assert_eq!(value(carried(&fleet, 0, "settings").await).as_deref(), Some("theirs"));
    assert_eq!(replicas(&fleet, 0, "web").await, None, "it would run with settings that are not its own");
    let member: Api<ConfigMap> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    member.delete("settings", &Default::default()).await.unwrap();
    pass(60).await;
    assert_eq!(value(carried(&fleet, 0, "settings").await).as_deref(), Some("ours"));
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn deleted_while_a_member_is_away_nothing_is_left_there() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "one")).await;
    apply(&user, &secret("login")).await;
    apply(&user, &needing("web", &["c2", "c3"])).await;
    pass(20).await;
    fleet.world.partition(CONTROLLER, "c3");
    pass(20).await;
    workloads(&fleet).delete("web", &Default::default()).await.unwrap();
    pass(20).await;
    assert!(carried(&fleet, 0, "settings").await.is_none());
    fleet.world.heal(CONTROLLER, "c3");
    pass(90).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none());
    assert!(
        carried(&fleet, 1, "settings").await.is_none() && carried_secret(&fleet, 1, "login").await.is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn no_longer_referred_to_while_a_member_is_away_nothing_is_left_there() {
    let fleet = fleet(FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "one")).await;
    apply(&user, &secret("login")).await;
    apply(&user, &needing("web", &["c2", "c3"])).await;
    pass(20).await;
    fleet.world.partition(CONTROLLER, "c3");
    pass(20).await;
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(60).await;
    // Whoever comes next knows only what the API says.
    controller.abort();
    let _controller = contend(&fleet, Contender::alone());
    pass(60).await;
    fleet.world.heal(CONTROLLER, "c3");
    pass(90).await;
    for member in 0..2 {
        assert!(carried(&fleet, member, "settings").await.is_none(), "member {member}");
        assert!(carried_secret(&fleet, member, "login").await.is_none(), "member {member}");
    }
    let status = status(&fleet, "web").await;
    assert!(conditions::find(&status.conditions, ConditionType::DependenciesReady).is_none(), "{status:?}");
    assert_eq!(status.placements.len(), 1, "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn what_arrives_after_its_workload_is_gone_is_let_go() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "one")).await;
    apply(&user, &secret("login")).await;
    apply(&user, &needing("web", &["c2"])).await;
    apply(&user, &needing("other", &["c3"])).await;
    pass(20).await;
    let mut late = carried(&fleet, 0, "settings").await.unwrap();
    workloads(&fleet).delete("web", &Default::default()).await.unwrap();
    pass(30).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none());
    assert!(carried(&fleet, 0, "settings").await.is_none());
    // The same request once more, held up on its way.
    late.metadata.resource_version = None;
    late.metadata.uid = None;
    let member: Api<ConfigMap> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    member.create(&Default::default(), &late).await.unwrap();
    pass(5).await;
    assert!(carried(&fleet, 0, "settings").await.is_none(), "nobody is there who needs it");
    assert!(carried(&fleet, 1, "settings").await.is_some(), "the other workload needs it there");
}

/// How often ConfigMaps and Secrets were asked for in a member, in any way.
fn asked(fleet: &Fleet, member: usize) -> u64 {
    let calls = fleet.members[member].calls().into_iter();
    calls
        .filter(|called| matches!(called.resource.as_str(), "secrets" | "configmaps"))
        .map(|called| called.count)
        .sum()
}

/// How often they were written there.
fn written(fleet: &Fleet, member: usize) -> u64 {
    let calls = fleet.members[member].calls().into_iter();
    calls
        .filter(|called| matches!(called.resource.as_str(), "secrets" | "configmaps"))
        .filter(|called| matches!(called.verb.as_str(), "patch" | "create" | "update" | "delete"))
        .map(|called| called.count)
        .sum()
}

#[tokio::test(start_paused = true)]
async fn a_member_that_has_not_opened_the_namespace_holds_up_no_deletion_and_is_not_asked() {
    let fleet = fleet(FaultPlan::none()).await;
    let mut closed = portolan_tests::open_namespace();
    closed["metadata"]["labels"]["portolan.dev/placement"] = json!("closed");
    apply(&fleet.members[1].client("user"), &closed).await;
    let contender = Contender::alone();
    for resource in ["secrets", "configmaps"] {
        contender.to_members.refuse("c3", Method::GET, resource, 403, "no right to list");
    }
    let before = asked(&fleet, 1);
    let _controller = contend(&fleet, contender);
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "one")).await;
    apply(&user, &secret("login")).await;
    apply(&user, &needing("web", &["c2"])).await;
    pass(30).await;
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");
    workloads(&fleet).delete("web", &Default::default()).await.unwrap();
    pass(30).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none(), "it is deleted");
    assert!(carried_secret(&fleet, 0, "login").await.is_none());
    let requests = fleet.world.log().lines();
    let asked_there = requests.iter().filter(|line| line.contains("c3") && line.contains("secrets")).count();
    assert_eq!((asked(&fleet, 1), asked_there), (before, 0), "a closed namespace is not asked");
}

#[tokio::test(start_paused = true)]
async fn a_member_without_the_right_to_list_secrets_holds_up_no_deletion() {
    let fleet = fleet(FaultPlan::none()).await;
    let contender = Contender::alone();
    let gate = contender.to_members.clone();
    let _controller = contend(&fleet, contender);
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "one")).await;
    apply(&user, &secret("login")).await;
    for resource in ["secrets", "configmaps"] {
        gate.refuse("c3", Method::GET, resource, 403, "no right to list");
    }
    apply(&user, &needing("web", &["c2", "c3"])).await;
    pass(30).await;
    let placed = status(&fleet, "web").await.placements.remove(1);
    assert_eq!(placed.reason.as_deref(), Some("DependenciesUnknown"));
    assert!(placed.message.unwrap().contains("no right to list"), "the member's own words");
    workloads(&fleet).delete("web", &Default::default()).await.unwrap();
    pass(30).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none(), "it is deleted");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_in_a_member_is_set_back() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "one")).await;
    apply(&user, &secret("login")).await;
    apply(&user, &needing("web", &["c2"])).await;
    pass(20).await;
    let params = kube::api::PatchParams::default();
    let secrets: Api<Secret> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let changed = kube::api::Patch::Merge(json!({"stringData": {"password": "anders"}}));
    secrets.patch("login", &params, &changed).await.unwrap();
    let configs: Api<ConfigMap> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let changed = kube::api::Patch::Merge(json!({"data": {"key": "other"}}));
    configs.patch("settings", &params, &changed).await.unwrap();
    pass(5).await;
    let login = carried_secret(&fleet, 0, "login").await.unwrap();
    assert_eq!(login.data.as_ref().unwrap()["password"].0, b"geheim");
    assert_eq!(value(carried(&fleet, 0, "settings").await).as_deref(), Some("one"));
    let (before, quiet) = (written(&fleet, 0), 60);
    pass(quiet).await;
    assert_eq!(written(&fleet, 0), before, "then nothing more is written");
}

#[tokio::test(start_paused = true)]
async fn a_credential_never_leaves_the_hub() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "one")).await;
    let mut credential = secret("login");
    credential["metadata"]["labels"] = json!({"portolan.dev/foreign-cluster": "c3"});
    apply(&user, &credential).await;
    apply(&user, &needing("web", &["c2"])).await;
    pass(20).await;
    let placed = status(&fleet, "web").await.placements.remove(0);
    assert_eq!(placed.reason.as_deref(), Some("NotPropagated"));
    assert!(placed.message.unwrap().contains("Secret shop/login never leaves the hub"));
    assert!(carried_secret(&fleet, 0, "login").await.is_none());
    assert_eq!(replicas(&fleet, 0, "web").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_many_workloads_is_written_few_times_and_goes_with_the_last() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &secret("login")).await;
    let names: Vec<String> = (0..60).map(|index| format!("w{index:02}")).collect();
    for name in &names {
        let mut object = workload(name, 0, json!({"locations": ["c2"]}));
        object["spec"]["replicas"] = json!(1);
        object["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({});
        object["spec"]["template"]["spec"]["imagePullSecrets"] = json!([{"name": "login"}]);
        apply(&user, &object).await;
    }
    pass(90).await;
    for name in &names {
        assert_eq!(status(&fleet, name).await.ready_summary.as_deref(), Some("1/1"), "{name}");
    }
    let login = carried_secret(&fleet, 0, "login").await.unwrap();
    assert_eq!(login.annotations()["portolan.dev/needed-by"], "*", "they are not named one by one");
    assert!(written(&fleet, 0) < 80, "{}", written(&fleet, 0));
    let before = written(&fleet, 0);
    for name in &names[1..] {
        workloads(&fleet).delete(name, &Default::default()).await.unwrap();
    }
    pass(120).await;
    assert!(carried_secret(&fleet, 0, "login").await.is_some(), "one still needs it");
    assert!(written(&fleet, 0) - before < 3, "nothing is written for those that go");
    workloads(&fleet).delete(&names[0], &Default::default()).await.unwrap();
    pass(120).await;
    assert!(carried_secret(&fleet, 0, "login").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn names_of_nobody_on_a_carried_object_are_let_go_in_one_request() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "one")).await;
    apply(&user, &secret("login")).await;
    apply(&user, &needing("web", &["c2"])).await;
    pass(20).await;
    let own =
        carried_secret(&fleet, 0, "login").await.unwrap().annotations()["portolan.dev/needed-by"].clone();
    let secrets: Api<Secret> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    for count in [20, 3000] {
        let forged: Vec<String> = (0..count).map(|index| format!("u{index}")).chain([own.clone()]).collect();
        let forged = json!({"metadata": {"annotations": {"portolan.dev/needed-by": forged.join(",")}}});
        let before = written(&fleet, 0);
        let params = kube::api::PatchParams::default();
        secrets.patch("login", &params, &kube::api::Patch::Merge(forged)).await.unwrap();
        pass(30).await;
        assert!(written(&fleet, 0) - before <= 4, "{count}: {}", written(&fleet, 0) - before);
        assert!(carried_secret(&fleet, 0, "login").await.is_some());
    }
}

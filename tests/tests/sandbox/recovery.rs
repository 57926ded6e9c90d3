//! The hub is lost and comes back: older than the members, or with its objects made anew. No pod is restarted or doubled.

use crate::stage::{
    condition, contend, deployments, events, fleet_of, pass, patch, replicas, status, workloads,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use portolan_sandbox::FaultPlan;
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, job, service, workload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Debug;
use tokio::task::JoinHandle;

const WORKLOAD_ID: &str = "portolan.dev/workload-id";

async fn start() -> (Fleet, JoinHandle<()>) {
    let members = [("c2", 1, "2"), ("c3", 1, "4"), ("c4", 1, "3")];
    let fleet = fleet_of(&members, FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    (fleet, controller)
}

/// The controllers end, and others begin that remember nothing.
async fn stop(controller: JoinHandle<()>) {
    controller.abort();
    pass(2).await;
}

/// The uids of all pods in all members, finished ones too.
async fn pods(fleet: &Fleet) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for member in &fleet.members {
        let api: Api<Pod> = Api::namespaced(member.client("user"), NAMESPACE);
        let pods = api.list(&Default::default()).await.unwrap().items;
        all.extend(pods.iter().map(|pod| format!("{}/{}", member.name(), pod.uid().unwrap())));
    }
    all
}

fn hub<K>(fleet: &Fleet) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(fleet.hub.client("user"), NAMESPACE)
}

/// Takes an object out of the hub without anybody noticing, as a restore does.
async fn lose<K>(fleet: &Fleet, name: &str) -> K
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let api = hub::<K>(fleet);
    let lost = api.get(name).await.unwrap();
    let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch(name, &PatchParams::default(), &bare).await.unwrap();
    api.delete(name, &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt(name).await.unwrap().is_none());
    lost
}

/// Makes an object anew, as a backup tool does: its spec, labels and annotations, another uid, no status.
async fn make_anew<K>(fleet: &Fleet, lost: &K) -> K
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let mut value = serde_json::to_value(lost).unwrap();
    value["metadata"] = json!({
        "name": lost.name_any(), "namespace": NAMESPACE,
        "labels": lost.meta().labels, "annotations": lost.meta().annotations,
    });
    value.as_object_mut().unwrap().remove("status");
    let anew = hub::<K>(fleet).create(&PostParams::default(), &serde_json::from_value(value).unwrap()).await;
    let anew = anew.unwrap();
    assert_ne!(anew.uid(), lost.uid());
    anew
}

async fn cluster_condition(fleet: &Fleet, name: &str, type_: ConditionType) -> Option<(String, String)> {
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let status = api.get(name).await.unwrap().status.unwrap_or_default();
    conditions::find(&status.conditions, type_).map(|found| (found.status.clone(), found.message.clone()))
}

async fn ready(fleet: &Fleet, name: &str) -> (Option<String>, Option<String>) {
    let status = status(fleet, name).await;
    (status.locations_summary, status.ready_summary)
}

fn told(places: &str, ready: &str) -> (Option<String>, Option<String>) {
    (Some(places.to_owned()), Some(ready.to_owned()))
}

/// A workload that may be anywhere: what holds it in its place is only what the hub knows.
fn anywhere(name: &str, replicas: i32) -> Value {
    workload(name, replicas, json!({"placementPolicy": "worst-fit"}))
}

#[tokio::test(start_paused = true)]
async fn what_the_backup_does_not_know_is_kept_and_reported_and_taken_over_when_it_is_back() {
    let (fleet, controller) = start().await;
    let user = fleet.hub.client("user");
    let mut referring = workload("web", 2, json!({"locations": ["c2"]}));
    referring["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef": {"name": "settings"}}]);
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": NAMESPACE}, "data": {"a": "b"}});
    apply(&user, &settings).await;
    apply(&user, &referring).await;
    apply(&user, &service("web", json!({"app": "web"}))).await;
    apply(&user, &job("sum", 2, 2, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let before = pods(&fleet).await;
    assert_eq!(before.len(), 4);
    stop(controller).await;
    let web: MultiClusterDeployment = lose(&fleet, "web").await;
    let of_web: MultiClusterService = lose(&fleet, "web").await;
    let sum: MultiClusterJob = lose(&fleet, "sum").await;
    let _controller = contend(&fleet, Contender::alone());
    pass(300).await;
    assert_eq!(pods(&fleet).await, before, "nothing was deleted");
    let carried: Api<ConfigMap> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    assert!(carried.get_opt("settings").await.unwrap().is_some(), "nor what it needs");
    let services: Api<Service> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    assert!(services.get_opt("web").await.unwrap().is_some());
    let (holds, message) = cluster_condition(&fleet, "c2", ConditionType::Orphaned).await.unwrap();
    assert_eq!(holds, "True");
    for orphan in ["3 objects", "Deployment shop/web", "Service shop/web", "Job shop/sum"] {
        assert!(message.contains(orphan), "{orphan}: {message}");
    }
    assert_eq!(cluster_condition(&fleet, "c3", ConditionType::Orphaned).await, None);

    make_anew(&fleet, &web).await;
    make_anew(&fleet, &of_web).await;
    make_anew(&fleet, &sum).await;
    pass(60).await;
    assert_eq!(pods(&fleet).await, before, "the same pods serve");
    assert_eq!(ready(&fleet, "web").await, told("c2=2", "2/2"));
    let done = hub::<MultiClusterJob>(&fleet).get("sum").await.unwrap().status.unwrap();
    assert_eq!(
        (done.succeeded, done.locations_summary.as_deref()),
        (2, Some("c2=2")),
        "finished work counts"
    );
    assert_eq!(cluster_condition(&fleet, "c2", ConditionType::Orphaned).await.unwrap().0, "False");
    let copy = services.get("web").await.unwrap();
    let uid = hub::<MultiClusterService>(&fleet).get("web").await.unwrap().uid();
    assert_eq!(copy.labels().get("portolan.dev/workload").cloned(), uid, "the Service is its own again");
    assert!(events(&fleet, "web").await.contains(&"Adopted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_users_delete_is_still_deleted_everywhere() {
    let (fleet, controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    stop(controller).await;
    workloads(&fleet).delete("web", &DeleteParams::default()).await.unwrap();
    let _controller = contend(&fleet, Contender::alone());
    pass(30).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none());
    assert_eq!(replicas(&fleet, 0, "web").await, None);
    assert_eq!(cluster_condition(&fleet, "c2", ConditionType::Orphaned).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_older_than_the_members_moves_nothing() {
    let (fleet, controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &anywhere("web", 2)).await;
    pass(20).await;
    let (places, _) = ready(&fleet, "web").await;
    assert_eq!(places.as_deref(), Some("c3=2"), "the largest one");
    // The backup is of a time when the workload was in c2.
    stop(controller).await;
    let before = pods(&fleet).await;
    let mut object = workloads(&fleet).get("web").await.unwrap();
    let placements = &mut object.status.as_mut().unwrap().placements;
    placements[0].cluster = "c2".to_owned();
    workloads(&fleet).replace_status("web", &PostParams::default(), &object).await.unwrap();
    let _controller = contend(&fleet, Contender::alone());
    pass(60).await;
    assert_eq!(ready(&fleet, "web").await, told("c3=2", "2/2"));
    assert_eq!(pods(&fleet).await, before);
    assert_eq!(replicas(&fleet, 0, "web").await, None, "nothing was doubled in c2");
}

#[tokio::test(start_paused = true)]
async fn objects_made_anew_with_other_uids_and_no_status_take_their_pods_over() {
    let (fleet, controller) = start().await;
    let user = fleet.hub.client("user");
    let names = ["a", "b", "c", "d"];
    for name in names {
        apply(&user, &anywhere(name, 3)).await;
        pass(5).await;
    }
    apply(&user, &job("sum", 6, 1, json!({"locations": ["c2", "c3"]}))).await;
    pass(25).await;
    let before = pods(&fleet).await;
    let mut placed = Vec::new();
    for name in names {
        placed.push(ready(&fleet, name).await);
    }
    stop(controller).await;
    let mut old = Vec::new();
    for name in names {
        let lost: MultiClusterDeployment = lose(&fleet, name).await;
        old.push(lost.uid().unwrap());
        make_anew(&fleet, &lost).await;
    }
    let lost: MultiClusterJob = lose(&fleet, "sum").await;
    make_anew(&fleet, &lost).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(12).await;
    for ((name, placed), old) in names.iter().zip(&placed).zip(&old) {
        assert_eq!(ready(&fleet, name).await, *placed, "{name}");
        let object = workloads(&fleet).get(name).await.unwrap();
        assert_eq!(object.annotations().get(WORKLOAD_ID), Some(old), "{name}");
    }
    assert!(pods(&fleet).await.is_superset(&before), "every pod is still there");
    pass(80).await;
    let after = pods(&fleet).await;
    let done = hub::<MultiClusterJob>(&fleet).get("sum").await.unwrap().status.unwrap();
    assert_eq!(done.succeeded, 12, "six in each location");
    assert_eq!(after.len(), 12 + 12, "each completion was brought once: {done:?}");
    assert!(after.is_superset(&before));
}

#[tokio::test(start_paused = true)]
async fn while_a_member_cannot_be_asked_what_is_recovered_is_not_placed_anywhere_else() {
    let (fleet, controller) = start().await;
    apply(
        &fleet.hub.client("user"),
        &workload("web", 1, json!({"numberOfLocations": 2, "placementPolicy": "worst-fit"})),
    )
    .await;
    pass(20).await;
    assert_eq!(ready(&fleet, "web").await, told("c3=1,c4=1", "2/2"));
    let before = pods(&fleet).await;
    stop(controller).await;
    let lost: MultiClusterDeployment = lose(&fleet, "web").await;
    fleet.world.partition(CONTROLLER, "c4");
    make_anew(&fleet, &lost).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(120).await;
    assert_eq!(pods(&fleet).await, before, "nothing is doubled in c2");
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Placed).await;
    assert!(reason == "AwaitingMembers" && message.contains("c4 cannot be asked"), "{reason}: {message}");
    fleet.world.heal(CONTROLLER, "c4");
    pass(60).await;
    assert_eq!(ready(&fleet, "web").await, told("c3=1,c4=1", "2/2"));
    assert_eq!(pods(&fleet).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_copied_identity_is_taken_from_the_copy_and_breaks_nothing() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let before = pods(&fleet).await;
    let uid = workloads(&fleet).get("web").await.unwrap().uid().unwrap();
    for (name, identity) in [("twin", uid.as_str()), ("odd", "no, identity"), ("free", "of-nobody")] {
        let mut twin = workload(name, 1, json!({"locations": ["c3"]}));
        twin["metadata"]["annotations"] = json!({ WORKLOAD_ID: identity });
        apply(&user, &twin).await;
    }
    pass(30).await;
    for name in ["twin", "odd"] {
        let object = workloads(&fleet).get(name).await.unwrap();
        assert_eq!(object.annotations().get(WORKLOAD_ID), None, "{name}");
        let copy = deployments(&fleet, 1).get(name).await.unwrap();
        assert_eq!(copy.labels().get("portolan.dev/workload").cloned(), object.uid());
        assert_eq!(ready(&fleet, name).await, told("c3=1", "1/1"));
        assert!(events(&fleet, name).await.contains(&"IdentityTaken".to_owned()), "{name}");
    }
    let copy = deployments(&fleet, 1).get("free").await.unwrap();
    assert_eq!(copy.labels()["portolan.dev/workload"], "of-nobody");
    assert_eq!(ready(&fleet, "web").await, told("c2=2", "2/2"));
    assert!(pods(&fleet).await.is_superset(&before));
    // An annotation on what runs already is set back: its pods know it by another name.
    let patch = Patch::Merge(json!({"metadata": {"annotations": { WORKLOAD_ID: "another" }}}));
    workloads(&fleet).patch("web", &PatchParams::default(), &patch).await.unwrap();
    pass(30).await;
    assert!(pods(&fleet).await.is_superset(&before), "no pod was restarted");
    assert_eq!(ready(&fleet, "web").await, told("c2=2", "2/2"));
    let api: Api<Deployment> = deployments(&fleet, 0);
    assert_eq!(api.get("web").await.unwrap().labels()["portolan.dev/workload"], uid);
    let api: Api<Job> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    assert!(api.list(&Default::default()).await.unwrap().items.is_empty());
}

/// The copy of a workload in a member as another hub placed it.
async fn give_to_another_hub(fleet: &Fleet, member: usize, name: &str) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"portolan.dev/hub": "old-hub"}}}));
    deployments(fleet, member).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// An administrator lets workloads take over Deployments in all members.
async fn allow(fleet: &Fleet, whose: &str) {
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"portolan.dev/allow-adoption": whose}}}));
    for cluster in api.list(&Default::default()).await.unwrap() {
        api.patch(&cluster.name_any(), &PatchParams::default(), &patch).await.unwrap();
    }
}

async fn mark(fleet: &Fleet, name: &str, adopt: Value) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"portolan.dev/adopt": adopt}}}));
    workloads(fleet).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_another_hub_placed_is_taken_over_with_its_pods_once_its_id_is_said() {
    let (fleet, controller) = start().await;
    apply(&fleet.hub.client("user"), &anywhere("web", 2)).await;
    pass(20).await;
    assert_eq!(ready(&fleet, "web").await, told("c3=2", "2/2"));
    let before = pods(&fleet).await;
    stop(controller).await;
    let mut lost: MultiClusterDeployment = lose(&fleet, "web").await;
    give_to_another_hub(&fleet, 1, "web").await;
    // Whoever takes this for a new workload would put it into c4, where most is free now.
    apply(&fleet.members[1].client("user"), &plain("filler", 1, "2500m")).await;
    lost.annotations_mut().insert("portolan.dev/adopt".to_owned(), "hub/another".to_owned());
    make_anew(&fleet, &lost).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(60).await;
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert_eq!(reason, "NotAdopted", "{message}");
    assert!(message.contains("c3: Deployment shop/web belongs to the hub old-hub"), "{message}");
    assert!(message.contains("portolan adopt deployment web -n shop --from-hub old-hub"), "{message}");

    mark(&fleet, "web", json!("hub/old-hub")).await;
    pass(60).await;
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert!(
        reason == "NotAdopted" && message.contains("portolan.dev/allow-adoption=hub/old-hub"),
        "{message}"
    );
    allow(&fleet, "unmanaged, hub/old-hub").await;
    fleet.world.partition(CONTROLLER, "c4");
    pass(60).await;
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert!(reason == "AwaitingMembers" && message.contains("c4 cannot be asked"), "{reason}: {message}");
    fleet.world.heal(CONTROLLER, "c4");
    pass(60).await;
    assert_eq!(ready(&fleet, "web").await, told("c3=2", "2/2"));
    assert!(pods(&fleet).await.is_superset(&before), "no pod was restarted");
    for member in [0, 2] {
        assert_eq!(replicas(&fleet, member, "web").await, None, "nothing was doubled");
    }
    let object = workloads(&fleet).get("web").await.unwrap();
    assert_eq!(object.annotations().get("portolan.dev/adopt"), None, "the mark is done");
    assert_eq!(object.annotations().get(WORKLOAD_ID), lost.uid().as_ref());
    assert!(events(&fleet, "web").await.contains(&"Adopted".to_owned()));
}

/// A Deployment that a user made in a member.
fn plain(name: &str, replicas: i32, cpu: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                    {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}},
                ]},
            },
        },
    })
}

/// The MultiClusterDeployment of a Deployment that a user made in c2.
fn of_plain(name: &str, replicas: i32, cpu: &str) -> Value {
    let mut object = workload(name, replicas, json!({"locations": ["c2"]}));
    object["spec"]["template"] = plain(name, replicas, cpu)["spec"]["template"].clone();
    object["metadata"]["annotations"] = json!({"portolan.dev/adopt": "unmanaged"});
    object
}

#[tokio::test(start_paused = true)]
async fn a_deployment_of_no_hub_is_taken_over_without_a_restart_and_counted_once() {
    let (fleet, _controller) = start().await;
    allow(&fleet, "unmanaged").await;
    let user = fleet.hub.client("user");
    // Two of 800m fill the smallest member but for 400m: counted twice, they would not fit there.
    apply(&fleet.members[0].client("user"), &plain("web", 2, "800m")).await;
    pass(20).await;
    let before = pods(&fleet).await;
    assert_eq!(before.len(), 2);
    apply(&user, &of_plain("web", 2, "800m")).await;
    pass(30).await;
    assert_eq!(ready(&fleet, "web").await, told("c2=2", "2/2"));
    assert_eq!(pods(&fleet).await, before, "the same pods, and no others");
    let copy = deployments(&fleet, 0).get("web").await.unwrap();
    let uid = workloads(&fleet).get("web").await.unwrap().uid().unwrap();
    assert_eq!(copy.labels()["portolan.dev/workload"], uid);
    let labels = copy.spec.unwrap().template.metadata.unwrap().labels.unwrap();
    assert_eq!(labels, [("app".to_owned(), "web".to_owned())].into(), "the template is as its user wrote it");
    // Room is neither given twice nor lost: 400m are free, not more and not less.
    let small = |name: &str, cpu: &str| {
        let mut object = workload(name, 1, json!({"locations": ["c2"]}));
        object["spec"]["template"]["spec"]["containers"] = crate::stage::asking(cpu);
        object
    };
    apply(&user, &small("fits", "300m")).await;
    apply(&user, &small("does-not", "300m")).await;
    pass(30).await;
    assert_eq!(ready(&fleet, "fits").await.0.as_deref(), Some("c2=1"));
    assert_eq!(ready(&fleet, "does-not").await.0, None);
    // A leader that remembers nothing counts in the same way.
    fleet.world.crash(CONTROLLER);
    pass(60).await;
    assert_eq!(ready(&fleet, "web").await, told("c2=2", "2/2"));
    assert!(pods(&fleet).await.is_superset(&before));

    // A user's own change of the template is rolled out, and from then on the pods are ours.
    workloads(&fleet).delete("fits", &DeleteParams::default()).await.unwrap();
    workloads(&fleet).delete("does-not", &DeleteParams::default()).await.unwrap();
    crate::stage::patch(
        &fleet,
        "web",
        json!({"template": {"spec": {"containers": crate::stage::asking("150m")}}}),
    )
    .await;
    pass(120).await;
    assert_eq!(ready(&fleet, "web").await.1.as_deref(), Some("2/2"));
    assert!(pods(&fleet).await.is_disjoint(&before));
}

#[tokio::test(start_paused = true)]
async fn an_adoption_that_would_roll_out_or_finds_nothing_is_refused_with_the_reason() {
    let (fleet, _controller) = start().await;
    allow(&fleet, "unmanaged").await;
    let user = fleet.hub.client("user");
    apply(&fleet.members[0].client("user"), &plain("web", 1, "100m")).await;
    pass(10).await;
    let before = pods(&fleet).await;
    apply(&user, &of_plain("web", 1, "200m")).await;
    apply(&user, &of_plain("nothing", 1, "200m")).await;
    let mut odd = of_plain("odd", 1, "100m");
    odd["metadata"]["annotations"] = json!({"portolan.dev/adopt": "all"});
    apply(&user, &odd).await;
    pass(30).await;
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert_eq!(reason, "NotAdopted");
    assert!(message.contains("a rollout would follow") && message.contains("cpu"), "{message}");
    let (_, reason, message) = condition(&fleet, "nothing", ConditionType::Ready).await;
    assert!(
        reason == "NotAdopted" && message.contains("no member has a Deployment shop/nothing"),
        "{message}"
    );
    assert_eq!(condition(&fleet, "odd", ConditionType::Ready).await.1, "InvalidAdoption");
    assert_eq!(pods(&fleet).await, before, "nothing was touched, and nothing placed");
    // Mended, it goes on.
    crate::stage::patch(
        &fleet,
        "web",
        json!({"template": {"spec": {"containers": crate::stage::asking("100m")}}}),
    )
    .await;
    mark(&fleet, "odd", Value::Null).await;
    pass(60).await;
    assert_eq!(ready(&fleet, "web").await, told("c2=1", "1/1"));
    assert!(pods(&fleet).await.is_superset(&before));
    assert_eq!(ready(&fleet, "odd").await.1.as_deref(), Some("1/1"), "without a mark it is a new one");
}

#[tokio::test(start_paused = true)]
async fn a_namesake_in_another_cluster_that_nobody_manages_stays() {
    let (fleet, _controller) = start().await;
    allow(&fleet, "unmanaged").await;
    for member in [0, 1] {
        apply(&fleet.members[member].client("user"), &plain("web", 1, "100m")).await;
    }
    pass(10).await;
    let before = pods(&fleet).await;
    apply(&fleet.hub.client("user"), &of_plain("web", 1, "100m")).await;
    pass(120).await;
    assert_eq!(ready(&fleet, "web").await, told("c2=1", "1/1"));
    assert_eq!(pods(&fleet).await, before, "the one in c3 is nobody's business");
    let mut nowhere = of_plain("api", 1, "100m");
    nowhere["spec"]["locations"] = json!([]);
    nowhere["spec"]["placementPolicy"] = json!("worst-fit");
    apply(&fleet.hub.client("user"), &nowhere).await;
    pass(20).await;
    let (_, reason, message) = condition(&fleet, "api", ConditionType::Ready).await;
    assert!(reason == "NotAdopted" && message.contains("spec.locations"), "{reason}: {message}");
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_hold_of_an_orphan_by_writing_its_identity() {
    let (fleet, controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let before = pods(&fleet).await;
    stop(controller).await;
    let lost: MultiClusterDeployment = lose(&fleet, "web").await;
    let _controller = contend(&fleet, Contender::alone());
    pass(20).await;
    let mut evil = workload("evil", 1, json!({"locations": ["c3"]}));
    evil["metadata"]["annotations"] = json!({ WORKLOAD_ID: lost.uid() });
    apply(&user, &evil).await;
    pass(20).await;
    let kept = workloads(&fleet).get("evil").await.unwrap();
    assert_eq!(kept.annotations().get(WORKLOAD_ID), None, "copies of that identity belong to another object");
    workloads(&fleet).delete("evil", &DeleteParams::default()).await.unwrap();
    pass(20).await;
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "1"}}}));
    deployments(&fleet, 0).patch("web", &PatchParams::default(), &touch).await.unwrap();
    pass(60).await;
    assert!(pods(&fleet).await.is_superset(&before), "the orphan stays");
    make_anew(&fleet, &lost).await;
    pass(60).await;
    assert_eq!(ready(&fleet, "web").await, told("c2=2", "2/2"));
    assert_eq!(pods(&fleet).await, before, "and its own object takes it over");
}

#[tokio::test(start_paused = true)]
async fn a_service_stays_while_nothing_is_decided_about_the_workload_that_it_follows() {
    let (fleet, controller) = start().await;
    let user = fleet.hub.client("user");
    let placement = json!({"numberOfLocations": 2, "placementPolicy": "worst-fit"});
    apply(&user, &workload("web", 1, placement)).await;
    apply(&user, &service("web", json!({"app": "web"}))).await;
    pass(20).await;
    let services: Api<Service> = Api::namespaced(fleet.members[1].client("user"), NAMESPACE);
    let before = services.get("web").await.unwrap().uid();
    stop(controller).await;
    let web: MultiClusterDeployment = lose(&fleet, "web").await;
    let front: MultiClusterService = lose(&fleet, "web").await;
    fleet.world.partition(CONTROLLER, "c4");
    make_anew(&fleet, &web).await;
    make_anew(&fleet, &front).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(120).await;
    assert_eq!(condition(&fleet, "web", ConditionType::Placed).await.1, "AwaitingMembers");
    assert_eq!(services.get("web").await.unwrap().uid(), before, "its clients are still served");
    fleet.world.heal(CONTROLLER, "c4");
    pass(60).await;
    assert_eq!(services.get("web").await.unwrap().uid(), before);
}

#[tokio::test(start_paused = true)]
async fn a_mark_on_a_workload_that_is_placed_is_removed_and_holds_up_nothing() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    mark(&fleet, "web", json!("unmanaged")).await;
    pass(10).await;
    let web = workloads(&fleet).get("web").await.unwrap();
    assert_eq!(web.annotations().get("portolan.dev/adopt"), None);
    patch(&fleet, "web", json!({"replicas": 2})).await;
    pass(20).await;
    assert_eq!(ready(&fleet, "web").await, told("c2=2", "2/2"));
}

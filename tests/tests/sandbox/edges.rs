//! What users and tenants of a member do to copies, and what a copy that is not as it was costs.

use crate::stage::{condition, contend, deployments, fleet, fleet_of, pass, patch, start, status, workloads};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{DeleteParams, Patch, PatchParams, PropagationPolicy};
use kube::{Api, ResourceExt};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, MultiClusterService};
use portolan_sandbox::{
    DenyingPolicy, FaultAnswer, FaultPlan, HostileAnswer, HostileRule, PartialFault, RequestFilter,
};
use portolan_tests::simulation::{Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

async fn change(fleet: &Fleet, member: usize, name: &str, change: Value) {
    let change = Patch::Merge(change);
    deployments(fleet, member).patch(name, &PatchParams::default(), &change).await.unwrap();
}

/// The names of the clusters that have a copy.
async fn holders(fleet: &Fleet, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (index, member) in fleet.members.iter().enumerate() {
        if deployments(fleet, index).get_opt(name).await.unwrap().is_some() {
            found.push(member.name().to_owned());
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_lost_both_labels_at_once_is_still_ours() {
    let (fleet, _controller) = start().await;
    let anywhere = json!({"placementPolicy": "worst-fit", "numberOfLocations": 1});
    apply(&fleet.hub.client("user"), &workload("web", 1, anywhere)).await;
    pass(20).await;
    let before = holders(&fleet, "web").await;
    let member = fleet.members.iter().position(|member| member.name() == before[0]).unwrap();
    let uid = deployments(&fleet, member).get("web").await.unwrap().uid();
    let labels = json!({"portolan.dev/workload": null, "portolan.dev/hub": null});
    change(&fleet, member, "web", json!({"metadata": {"labels": labels}})).await;
    pass(60).await;
    assert_eq!(holders(&fleet, "web").await, before, "it runs once");
    let copy = deployments(&fleet, member).get("web").await.unwrap();
    assert_eq!(copy.uid(), uid);
    assert!(copy.labels().contains_key("portolan.dev/hub"), "{:?}", copy.labels());
    workloads(&fleet).delete("web", &DeleteParams::default()).await.unwrap();
    pass(30).await;
    assert_eq!(holders(&fleet, "web").await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_was_deleted_from_a_closed_namespace_does_not_come_back() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let mut closed = json!({"apiVersion": "v1", "kind": "Namespace"});
    closed["metadata"] = json!({"name": NAMESPACE, "labels": {"portolan.dev/placement": "no"}});
    apply(&fleet.members[0].client("user"), &closed).await;
    pass(20).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("1/1"), "what is there stays");
    deployments(&fleet, 0).delete("web", &DeleteParams::default()).await.unwrap();
    pass(60).await;
    assert_eq!(holders(&fleet, "web").await, Vec::<String>::new(), "the member decides");
    let told = status(&fleet, "web").await;
    assert_eq!((told.pending_replicas, told.pending[0].reason.as_str()), (1, "NamespaceClosed"));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_others_that_holds_up_a_deletion_is_reported() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    change(&fleet, 0, "web", json!({"metadata": {"finalizers": ["example.com/backup"]}})).await;
    workloads(&fleet).delete("web", &DeleteParams::default()).await.unwrap();
    pass(120).await;
    let (status, reason, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DeletionFailed"), "{message}");
    assert!(message.contains("c2: it was deleted and still exists: see its finalizers"), "{message}");
    change(&fleet, 0, "web", json!({"metadata": {"finalizers": null}})).await;
    pass(30).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn pods_that_a_member_does_not_admit_are_reported_with_its_words() {
    let (fleet, _controller) = start().await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": NAMESPACE},
        "spec": {"hard": {"pods": "0"}},
    });
    apply(&fleet.members[0].client("user"), &quota).await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(60).await;
    let told = status(&fleet, "web").await;
    let placement = &told.placements[0];
    assert_eq!(placement.reason.as_deref(), Some("PodsNotCreated"), "{told:?}");
    assert!(placement.message.as_ref().unwrap().contains("exceeded quota: none"), "{placement:?}");
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert!(reason == "PodsNotCreated" && message.contains("c2"), "{reason}: {message}");
    let client = fleet.members[0].client("user");
    let quotas: Api<k8s_openapi::api::core::v1::ResourceQuota> = Api::namespaced(client, NAMESPACE);
    quotas.delete("none", &DeleteParams::default()).await.unwrap();
    pass(120).await;
    let told = status(&fleet, "web").await;
    assert_eq!((told.ready_summary.as_deref(), &told.placements[0].reason), (Some("2/2"), &None));
}

#[tokio::test(start_paused = true)]
async fn labels_that_a_tenant_copied_do_not_take_a_workload_its_identity() {
    let (fleet, controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    controller.abort();
    // The hub is restored: the object has another uid, and the old one as its identity.
    let lost = workloads(&fleet).get("web").await.unwrap();
    let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    workloads(&fleet).patch("web", &PatchParams::default(), &bare).await.unwrap();
    workloads(&fleet).delete("web", &DeleteParams::default()).await.unwrap();
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(40).await;
    let copy = deployments(&fleet, 0).get("web").await.unwrap();
    let theirs = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "b", "namespace": "tenant", "labels": copy.labels(),
            "annotations": {"portolan.dev/owner": "tenant/b"},
        },
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "b"}}, "template": {
            "metadata": {"labels": {"app": "b"}},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        }},
    });
    let tenant = fleet.members[1].client("tenant");
    apply(&tenant, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}})).await;
    apply(&tenant, &theirs).await;
    pass(60).await;
    let version = workloads(&fleet).get("web").await.unwrap().resource_version();
    pass(60).await;
    let after = workloads(&fleet).get("web").await.unwrap();
    assert_eq!(after.resource_version(), version, "nobody writes it over and over");
    assert_eq!(after.annotations().get("portolan.dev/workload-id"), lost.uid().as_ref());
    patch(&fleet, "web", json!({"replicas": 2})).await;
    pass(30).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"));
    let their: Api<Deployment> = Api::namespaced(fleet.members[1].client("tenant"), "tenant");
    assert!(their.get_opt("b").await.unwrap().is_some(), "what is the tenant's stays");
}

#[tokio::test(start_paused = true)]
async fn a_foreigncluster_that_cannot_be_read_has_not_left() {
    let fleet = fleet(FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    let anywhere = json!({"placementPolicy": "worst-fit", "numberOfLocations": 1});
    apply(&fleet.hub.client("user"), &workload("web", 1, anywhere)).await;
    pass(20).await;
    let before = holders(&fleet, "web").await;
    controller.abort();
    pass(2).await;
    // Another version of Portolan wrote it.
    let lists =
        RequestFilter::any().cluster("hub").party("controller").resource("foreignclusters.portolan.dev");
    let name = before[0].clone();
    let unreadable = HostileAnswer::edit(move |object| {
        if object["metadata"]["name"] == name.as_str() {
            object["spec"]["type"] = json!("Future");
        }
    });
    fleet.world.hostile("hub", vec![HostileRule::new(lists, unreadable)]);
    let _controller = contend(&fleet, Contender::alone());
    pass(120).await;
    assert_eq!(holders(&fleet, "web").await, before, "it runs where it ran, and nowhere else");
    let told = status(&fleet, "web").await;
    assert_eq!(told.locations, before, "{told:?}");
    fleet.world.hostile("hub", Vec::new());
    pass(400).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("1/1"));
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_cannot_be_read_is_neither_created_again_nor_forgotten() {
    let (fleet, _controller) = start().await;
    let anywhere = json!({"placementPolicy": "worst-fit", "numberOfLocations": 1});
    apply(&fleet.hub.client("user"), &workload("web", 1, anywhere)).await;
    pass(20).await;
    let before = holders(&fleet, "web").await;
    let reads = RequestFilter::any().cluster(&before[0]).party("controller").resource("deployments.apps");
    let unreadable = HostileAnswer::edit(|object| object["spec"]["replicas"] = json!("many"));
    fleet.world.hostile(&before[0], vec![HostileRule::new(reads, unreadable)]);
    fleet.world.end_watches("controller", &before[0]);
    pass(300).await;
    assert_eq!(holders(&fleet, "web").await, before);
    let told = status(&fleet, "web").await;
    assert_eq!(told.locations, before);
    workloads(&fleet).delete("web", &DeleteParams::default()).await.unwrap();
    pass(60).await;
    let is_gone = workloads(&fleet).get_opt("web").await.unwrap().is_none();
    assert!(!is_gone || holders(&fleet, "web").await.is_empty(), "its copy is not orphaned");
    fleet.world.hostile(&before[0], Vec::new());
    fleet.world.end_watches("controller", &before[0]);
    pass(400).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none());
    assert_eq!(holders(&fleet, "web").await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn three_members_that_deny_a_workload_do_not_keep_it_from_the_others() {
    let members = [("a", 1, "8"), ("b", 1, "8"), ("c", 1, "8"), ("d", 1, "2"), ("e", 1, "2")];
    let fleet = fleet_of(&members, FaultPlan::none()).await;
    for member in &fleet.members[..3] {
        member.add_policy(DenyingPolicy::new("others", &["Deployment"], "this cluster is for others"));
    }
    let _controller = contend(&fleet, Contender::alone());
    let two = json!({"placementPolicy": "worst-fit", "numberOfLocations": 2});
    apply(&fleet.hub.client("user"), &workload("web", 1, two)).await;
    pass(120).await;
    assert_eq!(holders(&fleet, "web").await, ["d", "e"]);
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_orphans_leaves_every_copy_running() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    for name in ["kubectl", "annotated"] {
        apply(&user, &workload(name, 1, json!({"locations": ["c2", "c3"]}))).await;
    }
    pass(20).await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    workloads(&fleet).delete("kubectl", &orphan).await.unwrap();
    let leave = Patch::Merge(json!({"metadata": {"annotations": {"portolan.dev/on-delete": "orphan"}}}));
    workloads(&fleet).patch("annotated", &PatchParams::default(), &leave).await.unwrap();
    workloads(&fleet).delete("annotated", &DeleteParams::default()).await.unwrap();
    pass(60).await;
    for name in ["kubectl", "annotated"] {
        assert!(workloads(&fleet).get_opt(name).await.unwrap().is_none(), "{name} is gone");
        assert_eq!(holders(&fleet, name).await, ["c2", "c3"], "{name} runs on");
    }
    // Created again, it takes its copies over.
    let uid = deployments(&fleet, 0).get("kubectl").await.unwrap().uid();
    apply(&user, &workload("kubectl", 1, json!({"locations": ["c2", "c3"]}))).await;
    pass(60).await;
    assert_eq!(status(&fleet, "kubectl").await.ready_summary.as_deref(), Some("2/2"));
    assert_eq!(deployments(&fleet, 0).get("kubectl").await.unwrap().uid(), uid);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_was_written_without_labels_and_annotations_is_still_ours() {
    let (fleet, _controller) = start().await;
    let anywhere = json!({"placementPolicy": "worst-fit", "numberOfLocations": 1});
    apply(&fleet.hub.client("user"), &workload("web", 2, anywhere)).await;
    pass(20).await;
    let before = holders(&fleet, "web").await;
    let member = fleet.members.iter().position(|member| member.name() == before[0]).unwrap();
    let uid = deployments(&fleet, member).get("web").await.unwrap().uid();
    let mut bare = deployments(&fleet, member).get("web").await.unwrap();
    (bare.metadata.labels, bare.metadata.annotations, bare.metadata.managed_fields) = (None, None, None);
    deployments(&fleet, member).replace("web", &Default::default(), &bare).await.unwrap();
    pass(60).await;
    assert_eq!(holders(&fleet, "web").await, before, "it runs once");
    assert_eq!(deployments(&fleet, member).get("web").await.unwrap().uid(), uid);
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"));
}

#[tokio::test(start_paused = true)]
async fn a_selector_with_a_mistake_does_not_take_a_service_away() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    let service = |app: &str| {
        json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterService",
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {"selector": {"app": app}, "ports": [{"port": 80}]},
        })
    };
    apply(&user, &service("web")).await;
    pass(30).await;
    let services: Api<Service> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let before = services.get("web").await.unwrap();
    apply(&user, &service("wbe")).await;
    pass(60).await;
    let kept = services.get("web").await.unwrap();
    assert_eq!((kept.uid(), &kept.spec), (before.uid(), &before.spec), "it serves as before");
    let api: Api<MultiClusterService> = Api::namespaced(user.clone(), NAMESPACE);
    let told = api.get("web").await.unwrap().status.unwrap();
    let ready = conditions::find(&told.conditions, ConditionType::Ready).unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "NoMatchingWorkload"));
    apply(&user, &service("web")).await;
    pass(30).await;
    assert_eq!(services.get("web").await.unwrap().uid(), before.uid());
    apply(&user, &service("wbe")).await;
    pass(30).await;
    workloads(&fleet).delete("web", &DeleteParams::default()).await.unwrap();
    pass(60).await;
    assert!(services.get_opt("web").await.unwrap().is_none(), "it goes with the pods that it served");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_refuses_the_credential_runs_on_and_nothing_of_it_is_replaced() {
    let (fleet, _controller) = start().await;
    let wish = json!({
        "placementPolicy": "worst-fit", "numberOfLocations": 1, "onUnreachable": "ReplaceAfter", "replaceAfter": "1m",
    });
    apply(&fleet.hub.client("user"), &workload("web", 1, wish)).await;
    pass(20).await;
    let before = holders(&fleet, "web").await;
    let all = RequestFilter::any().party("controller").cluster(&before[0]);
    fleet.world.add_fault(PartialFault::new("revoked", all, FaultAnswer::Status(401)));
    fleet.world.end_watches("controller", &before[0]);
    pass(600).await;
    assert_eq!(holders(&fleet, "web").await, before, "it runs once");
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let told = api.get(&before[0]).await.unwrap().status.unwrap();
    let reachable = conditions::find(&told.conditions, ConditionType::Reachable).unwrap();
    assert_eq!((reachable.status.as_str(), reachable.reason.as_str()), ("Unknown", "CredentialRefused"));
    assert!(reachable.message.contains("portolan peer"), "{}", reachable.message);
    fleet.world.end_fault("revoked");
    pass(60).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("1/1"));
}

#[tokio::test(start_paused = true)]
async fn a_mistyped_strategy_is_refused_by_the_hub() {
    let (fleet, _controller) = start().await;
    let mut mistyped = workload("web", 1, json!({"locations": ["c2"]}));
    mistyped["spec"]["strategy"] = json!({"type": "RollingUpdates"});
    let mistyped = serde_json::from_value(mistyped).unwrap();
    let refused = workloads(&fleet).create(&Default::default(), &mistyped).await.unwrap_err().to_string();
    assert!(refused.contains("spec.strategy.type") && refused.contains("RollingUpdate"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_asks_for_nothing_says_so() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 0, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let (status, _, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert_eq!((status.as_str(), message.as_str()), ("True", "no replicas are asked for"));
}

#[tokio::test(start_paused = true)]
async fn a_placed_workload_can_be_changed_to_recreate() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    patch(&fleet, "web", json!({"strategy": {"type": "Recreate"}})).await;
    pass(20).await;
    let copy = deployments(&fleet, 0).get("web").await.unwrap().spec.unwrap();
    let strategy = copy.strategy.unwrap();
    assert_eq!((strategy.type_.as_deref(), strategy.rolling_update), (Some("Recreate"), None));
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"));
    patch(&fleet, "web", json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}}))
        .await;
    pass(20).await;
    let strategy = deployments(&fleet, 0).get("web").await.unwrap().spec.unwrap().strategy.unwrap();
    assert_eq!(strategy.type_.as_deref(), Some("RollingUpdate"), "and back");
}

//! MultiClusterServices on the sandbox, on virtual time.

use super::stage::{pass, patch, start};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::{MultiClusterService, MultiClusterServiceStatus};
use portolan_tests::simulation::{Fleet, apply};
use portolan_tests::{NAMESPACE, service, workload};
use serde_json::{Value, json};
use std::time::Duration;

fn services(fleet: &Fleet) -> Api<MultiClusterService> {
    Api::namespaced(fleet.hub.client("user"), NAMESPACE)
}

async fn status(fleet: &Fleet, name: &str) -> MultiClusterServiceStatus {
    services(fleet).get(name).await.unwrap().status.unwrap_or_default()
}

fn condition<'a>(status: &'a MultiClusterServiceStatus, type_: &str) -> (&'a str, &'a str, &'a str) {
    let found = status.conditions.iter().find(|each| each.type_ == type_).unwrap();
    (&found.status, &found.reason, &found.message)
}

fn in_member(fleet: &Fleet, member: usize) -> Api<Service> {
    Api::namespaced(fleet.members[member].client("user"), NAMESPACE)
}

async fn copy(fleet: &Fleet, member: usize, name: &str) -> Option<Service> {
    in_member(fleet, member).get_opt(name).await.unwrap()
}

async fn change(api: &Api<Service>, name: &str, patch: Value) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_service_is_where_the_pods_are_with_ports_annotations_and_endpoints() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let mut web = service("web", json!({"app": "web"}));
    web["metadata"]["annotations"] = json!({
        "io.cilium/global-service": "true",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    });
    apply(&user, &web).await;
    pass(5).await;
    let alone = status(&fleet, "web").await;
    assert_eq!(condition(&alone, "Placed").1, "NoMatchingWorkload");
    assert_eq!(copy(&fleet, 0, "web").await, None, "no pods, no Service");

    apply(&user, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    apply(&user, &workload("other", 1, json!({"locations": ["c3"]}))).await;
    pass(20).await;
    let placed = status(&fleet, "web").await;
    assert_eq!(placed.follows, ["web"]);
    assert_eq!(placed.locations_summary.as_deref(), Some("c2=2"));
    assert_eq!(placed.ports_summary.as_deref(), Some("80/TCP"));
    assert_eq!((placed.ready_endpoints, placed.clusters[0].cluster_ips.len()), (2, 1));
    assert_eq!(placed.conditions[0].type_, "Ready");
    assert_eq!(condition(&placed, "Ready").0, "True", "{placed:?}");
    assert_eq!(copy(&fleet, 1, "web").await, None);
    let made = copy(&fleet, 0, "web").await.unwrap();
    let annotations = made.metadata.annotations.unwrap();
    assert_eq!(annotations["io.cilium/global-service"], "true");
    assert!(!annotations.contains_key("kubectl.kubernetes.io/last-applied-configuration"));
    let address = made.spec.unwrap().cluster_ip;

    // An update goes everywhere, and the member keeps what it assigned.
    web["spec"]["ports"] =
        json!([{"name": "web", "port": 80, "targetPort": 8080}, {"name": "more", "port": 81}]);
    web["metadata"]["annotations"] = json!({"example.org/other": "1"});
    apply(&user, &web).await;
    patch(&fleet, "web", json!({"locations": ["c2", "c3"]})).await;
    pass(20).await;
    for member in 0..2 {
        let made = copy(&fleet, member, "web").await.unwrap();
        let annotations = made.metadata.annotations.unwrap();
        assert!(!annotations.contains_key("io.cilium/global-service"), "it was taken back in the hub");
        assert_eq!(annotations["example.org/other"], "1");
        let spec = made.spec.unwrap();
        assert_eq!(spec.ports.unwrap().iter().map(|port| port.port).collect::<Vec<_>>(), [80, 81]);
        assert!(member == 1 || spec.cluster_ip == address);
    }
    assert_eq!(status(&fleet, "web").await.locations_summary.as_deref(), Some("c2=2,c3=2"));
}

#[tokio::test(start_paused = true)]
async fn it_follows_a_move_and_leaves_no_moment_without_a_ready_endpoint() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    apply(&user, &service("web", json!({"app": "web"}))).await;
    pass(20).await;
    patch(&fleet, "web", json!({"locations": ["c3"]})).await;
    let mut gone = false;
    for _ in 0..400 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let ready = status(&fleet, "web").await.ready_endpoints;
        assert!(ready > 0, "no endpoint was ready during the move");
        let here = copy(&fleet, 0, "web").await.is_some();
        let deployment: Api<k8s_openapi::api::apps::v1::Deployment> =
            Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
        let pods_here = deployment.get_opt("web").await.unwrap().is_some();
        assert!(here || !pods_here, "the Service went before the pods");
        gone |= !here;
    }
    assert!(gone, "the Service stayed where no pods are");
    assert_eq!(status(&fleet, "web").await.locations_summary.as_deref(), Some("c3=2"));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_in_a_member_is_set_back_and_what_is_not_ours_is_left_alone() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let theirs = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"selector": {"app": "theirs"}, "ports": [{"port": 99}]},
    });
    apply(&fleet.members[1].client("user"), &theirs).await;
    apply(&user, &workload("web", 1, json!({"locations": ["c2", "c3"]}))).await;
    apply(&user, &service("web", json!({"app": "web"}))).await;
    pass(20).await;
    let refused = status(&fleet, "web").await;
    assert_eq!(refused.clusters[1].reason.as_deref(), Some("NameTaken"));
    assert_eq!(condition(&refused, "Ready").1, "Failed");
    let kept = copy(&fleet, 1, "web").await.unwrap().spec.unwrap();
    assert_eq!(kept.selector.unwrap()["app"], "theirs");
    in_member(&fleet, 1).delete("web", &Default::default()).await.unwrap();
    pass(60).await;
    assert_eq!(condition(&status(&fleet, "web").await, "Ready").0, "True", "it is tried again");

    let api = in_member(&fleet, 0);
    change(&api, "web", json!({"spec": {"selector": {"app": "drifted"}}})).await;
    pass(10).await;
    let mended = copy(&fleet, 0, "web").await.unwrap().spec.unwrap();
    assert_eq!(mended.selector.unwrap()["app"], "web");
    api.delete("web", &Default::default()).await.unwrap();
    pass(10).await;
    assert!(copy(&fleet, 0, "web").await.is_some(), "what is deleted there comes back");
}

#[tokio::test(start_paused = true)]
async fn a_silent_member_keeps_its_numbers_and_holds_up_the_deletion_until_it_returns() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["c2", "c3"]}))).await;
    apply(&user, &service("web", json!({"app": "web"}))).await;
    pass(20).await;
    fleet.world.partition("controller", "c3");
    pass(20).await;
    let silent = status(&fleet, "web").await;
    assert_eq!(condition(&silent, "Ready").0, "Unknown");
    assert_eq!(condition(&silent, "Unreachable").0, "True");
    assert_eq!(condition(&silent, "Placed").0, "True");
    assert_eq!(silent.locations_summary.as_deref(), Some("c2=2,c3=2"), "the last numbers known");
    services(&fleet).delete("web", &Default::default()).await.unwrap();
    pass(20).await;
    assert_eq!(copy(&fleet, 0, "web").await, None);
    assert_eq!(condition(&status(&fleet, "web").await, "Ready").1, "AwaitingMember");
    fleet.world.heal("controller", "c3");
    pass(60).await;
    assert!(services(&fleet).get_opt("web").await.unwrap().is_none());
    assert_eq!(copy(&fleet, 1, "web").await, None, "no orphan");
}

#[tokio::test(start_paused = true)]
async fn it_goes_with_the_workload_and_comes_back_with_it() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    apply(&user, &service("web", json!({"app": "web"}))).await;
    pass(20).await;
    assert!(copy(&fleet, 0, "web").await.is_some());
    let api: Api<portolan_api::MultiClusterDeployment> = Api::namespaced(user.clone(), NAMESPACE);
    api.delete("web", &Default::default()).await.unwrap();
    pass(20).await;
    assert_eq!(copy(&fleet, 0, "web").await, None);
    assert!(status(&fleet, "web").await.clusters.is_empty());
    apply(&user, &workload("web", 1, json!({"locations": ["c3"]}))).await;
    pass(20).await;
    assert_eq!(status(&fleet, "web").await.locations_summary.as_deref(), Some("c3=1"));
}

#[tokio::test(start_paused = true)]
async fn an_address_that_cannot_be_changed_is_told_with_what_helps_and_the_service_made_anew_when_it_is_deleted()
 {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    apply(&user, &service("web", json!({"app": "web"}))).await;
    pass(10).await;
    let address = copy(&fleet, 0, "web").await.unwrap().spec.unwrap().cluster_ip.unwrap();
    for (wanted, has, asked) in
        [(json!("None"), address.as_str(), "None"), (json!(null), "None", "an address")]
    {
        let patch = Patch::Merge(json!({"spec": {"clusterIP": wanted}}));
        services(&fleet).patch("web", &PatchParams::default(), &patch).await.unwrap();
        pass(5).await;
        let told = status(&fleet, "web").await;
        assert_eq!(told.clusters[0].reason.as_deref(), Some("Immutable"), "{told:?}");
        let message = told.clusters[0].message.clone().unwrap();
        assert!(message.contains(&format!("it is {has} there, and {asked}")), "{message}");
        assert!(message.contains("Delete the Service there"), "{message}");
        assert_eq!(condition(&told, "Ready").0, "False");
        in_member(&fleet, 0).delete("web", &Default::default()).await.unwrap();
        pass(5).await;
        let made = copy(&fleet, 0, "web").await.unwrap().spec.unwrap().cluster_ip;
        assert_eq!(made.as_deref() == Some("None"), asked == "None");
        assert_eq!(condition(&status(&fleet, "web").await, "Ready").0, "True");
    }
}

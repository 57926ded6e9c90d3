//! The walking skeleton on the sandbox: the same controller as on the lab, on virtual time.

use crate::stage::{asking, pass, patch, replicas, start, status};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use portolan_api::MultiClusterDeployment;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::placement::PlacementCause;
use portolan_tests::simulation::apply;
use portolan_tests::{NAMESPACE, foreign_cluster, open_namespace, workload};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn affinity_places_in_all_named_clusters_and_reports_back() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2", "c3"]}))).await;
    pass(20).await;
    let status = status(&fleet, "web").await;
    assert_eq!(status.locations_summary.as_deref(), Some("c2=2,c3=2"));
    assert_eq!(status.ready_summary.as_deref(), Some("4/4"));
    assert!(conditions::is_true(&status.conditions, ConditionType::Available), "{status:?}");
    assert!(conditions::is_true(&status.conditions, ConditionType::Progressing), "{status:?}");
    assert_eq!((status.ready_replicas, status.scale_replicas), (4, 2));
    assert_eq!(status.conditions[0].type_, "Ready");
    assert_eq!(status.conditions[0].status, "True", "{}", status.conditions[0].message);
    assert_eq!(status.selector.as_deref(), Some("app=web"));
}

#[tokio::test(start_paused = true)]
async fn worst_fit_takes_the_roomiest_and_counts_what_others_hold() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let mut first = workload("first", 2, json!({"placementPolicy": "worst-fit"}));
    first["spec"]["template"]["spec"]["containers"] = asking("1");
    let mut second = first.clone();
    second["metadata"]["name"] = json!("second");
    apply(&user, &first).await;
    apply(&user, &second).await;
    pass(20).await;
    assert_eq!(status(&fleet, "first").await.locations_summary.as_deref(), Some("c3=2"));
    let second = status(&fleet, "second").await;
    assert_eq!(second.locations_summary.as_deref(), Some("c2=2"), "two of three CPUs of c3 are taken");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_waits_with_reasons_until_there_is_room() {
    let (fleet, _controller) = start().await;
    let mut large = workload("large", 3, json!({"locations": ["c2"]}));
    large["spec"]["template"]["spec"]["containers"] = asking("900m");
    apply(&fleet.hub.client("user"), &large).await;
    pass(20).await;
    let waiting = status(&fleet, "large").await;
    assert_eq!((waiting.replicas, waiting.pending_replicas), (2, 1));
    assert_eq!(waiting.pending[0].reason, "NoRoom");
    patch(&fleet, "large", json!({"replicas": 2})).await;
    pass(20).await;
    assert_eq!(status(&fleet, "large").await.ready_summary.as_deref(), Some("2/2"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_member_keeps_its_replicas_and_a_closed_namespace_gets_none() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["c2", "c3"]}))).await;
    pass(20).await;
    fleet.world.partition("controller", "c3");
    pass(20).await;
    let silent = status(&fleet, "web").await;
    assert_eq!(silent.conditions[0].status, "Unknown");
    assert_eq!(silent.locations_summary.as_deref(), Some("c2=2,c3=2"), "silence is not absence");
    assert_eq!(replicas(&fleet, 1, "web").await, Some(2));
    patch(&fleet, "web", json!({"replicas": 3})).await;
    pass(20).await;
    let grown = status(&fleet, "web").await;
    assert_eq!(grown.locations_summary.as_deref(), Some("c2=3,c3=2"));
    assert_eq!(grown.pending[0].reason, "Unreachable");
    fleet.world.heal("controller", "c3");
    pass(40).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("6/6"));

    let mut closed = json!({"apiVersion": "v1", "kind": "Namespace"});
    closed["metadata"] = json!({"name": NAMESPACE, "labels": {"portolan.dev/placement": "no"}});
    apply(&fleet.members[0].client("user"), &closed).await;
    apply(&user, &workload("late", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let refused = status(&fleet, "late").await;
    assert_eq!(refused.pending[0].reason, "NamespaceClosed");
    assert_eq!(replicas(&fleet, 0, "web").await, Some(3), "what is there stays");
}

#[tokio::test(start_paused = true)]
async fn a_location_that_opens_takes_its_share_of_a_total() {
    let (fleet, _controller) = start().await;
    let member = fleet.members[0].client("user");
    let mut closed = open_namespace();
    closed["metadata"]["labels"]["portolan.dev/placement"] = json!("no");
    apply(&member, &closed).await;
    pass(5).await;
    let total = |places: Value| {
        let mut wish = places;
        wish["replicasMode"] = json!("Total");
        wish
    };
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 2, total(json!({"locations": ["c2", "c3"]})))).await;
    let by_policy = json!({"placementPolicy": "worst-fit", "numberOfLocations": 2});
    apply(&user, &workload("any", 2, total(by_policy))).await;
    pass(20).await;
    for name in ["web", "any"] {
        let status = status(&fleet, name).await;
        assert_eq!((status.locations_summary.as_deref(), status.ready_replicas), (Some("c3=2"), 2));
    }
    apply(&member, &open_namespace()).await;
    pass(20).await;
    for name in ["web", "any"] {
        let status = status(&fleet, name).await;
        assert_eq!((status.locations_summary.as_deref(), status.ready_replicas), (Some("c2=1,c3=1"), 2));
    }
}

#[tokio::test(start_paused = true)]
async fn relabelling_clusters_moves_what_selects_them_once_another_one_takes_it() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let label = async |name: &str, tier: &str| {
        let mut cluster = foreign_cluster(name);
        cluster["metadata"]["labels"] = json!({"tier": tier});
        apply(&fleet.hub.client("user"), &cluster).await;
    };
    label("c2", "edge").await;
    let selecting =
        json!({"placementPolicy": "worst-fit", "clusterSelector": {"matchLabels": {"tier": "edge"}}});
    apply(&user, &workload("web", 2, selecting)).await;
    pass(20).await;
    assert_eq!(status(&fleet, "web").await.locations_summary.as_deref(), Some("c2=2"));
    label("c2", "core").await;
    pass(20).await;
    let staying = status(&fleet, "web").await;
    assert_eq!(
        staying.placements[0].cause,
        Some(PlacementCause::NoAlternative),
        "no other cluster is selected"
    );
    assert_eq!((staying.ready_replicas, replicas(&fleet, 0, "web").await), (2, Some(2)), "nothing is lost");
    label("c3", "edge").await;
    pass(40).await;
    let moved = status(&fleet, "web").await;
    assert_eq!((moved.locations_summary.as_deref(), moved.ready_replicas), (Some("c3=2"), 2));
    assert_eq!(replicas(&fleet, 0, "web").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_goes_to_the_nearest_and_at_last_asks_for_a_cloud() {
    let (fleet, _controller) = start().await;
    let mut near = foreign_cluster("c3");
    near["spec"]["latencies"] = json!([{"to": "c2", "rtt": "2ms"}]);
    apply(&fleet.hub.client("user"), &near).await;
    let mut large = workload("large", 4, json!({"locations": ["c2"], "enableSubstitution": true}));
    large["spec"]["template"]["spec"]["containers"] = asking("900m");
    apply(&fleet.hub.client("user"), &large).await;
    pass(20).await;
    let placed = status(&fleet, "large").await;
    assert_eq!(placed.locations_summary.as_deref(), Some("c2=2,c3=2"));
    assert_eq!(placed.placements[1].substitute_for.as_deref(), Some("c2"));
    assert_eq!(placed.ready_replicas, 4);
    assert!(!conditions::is_true(&placed.conditions, ConditionType::ToCloud), "{placed:?}");
    patch(&fleet, "large", json!({"replicas": 6})).await;
    pass(20).await;
    let short = status(&fleet, "large").await;
    assert_eq!((short.replicas, short.pending_replicas), (5, 1));
    assert!(conditions::is_true(&short.conditions, ConditionType::ToCloud), "{short:?}");
    patch(&fleet, "large", json!({"replicas": 2})).await;
    pass(30).await;
    let back = status(&fleet, "large").await;
    assert_eq!(back.locations_summary.as_deref(), Some("c2=2"), "what fits at home is at home");
    assert_eq!(replicas(&fleet, 1, "large").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_move_surges_first() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    patch(&fleet, "web", json!({"locations": ["c3"]})).await;
    let mut moved = false;
    for _ in 0..400 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut ready = 0;
        for member in &fleet.members {
            let api: Api<Deployment> = Api::namespaced(member.client("user"), NAMESPACE);
            let copy = api.get_opt("web").await.unwrap();
            ready += copy.and_then(|copy| copy.status?.ready_replicas).unwrap_or(0);
        }
        assert!(ready >= 2, "only {ready} replicas were ready during the move");
        moved |= replicas(&fleet, 0, "web").await.is_none();
    }
    assert!(moved, "the old copy was never removed");
    assert_eq!(status(&fleet, "web").await.locations_summary.as_deref(), Some("c3=2"));
}

#[tokio::test(start_paused = true)]
async fn deletion_waits_for_a_member_that_is_away() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2", "c3"]}))).await;
    pass(20).await;
    fleet.world.partition("controller", "c3");
    pass(20).await;
    let api: Api<MultiClusterDeployment> = Api::namespaced(fleet.hub.client("user"), NAMESPACE);
    api.delete("web", &Default::default()).await.unwrap();
    pass(20).await;
    assert_eq!(replicas(&fleet, 0, "web").await, None);
    let held_up = status(&fleet, "web").await;
    assert_eq!(held_up.conditions[0].reason, "AwaitingMember");
    fleet.world.heal("controller", "c3");
    pass(60).await;
    assert!(api.get_opt("web").await.unwrap().is_none());
    assert_eq!(replicas(&fleet, 1, "web").await, None, "no orphan");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_is_not_taken_over() {
    let (fleet, _controller) = start().await;
    let theirs = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "theirs"}},
            "template": {"metadata": {"labels": {"app": "theirs"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    apply(&fleet.members[0].client("user"), &theirs).await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let refused = status(&fleet, "web").await;
    assert_eq!(refused.placements[0].reason.as_deref(), Some("NameTaken"));
    assert_eq!(replicas(&fleet, 0, "web").await, Some(1));
    let api: Api<Deployment> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    api.delete("web", &Default::default()).await.unwrap();
    pass(60).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"), "it is tried again");
}

//! What others got wrong must not be wrong here: one test for each numbered mistake.
//!
//! `mistake_NN` are those of the prototype of mck8s, `complaint_NN` those that users of other orchestrators tell of most
//! often. Not here, since they are of other capabilities: mistake 9 (services that do not follow) is of
//! MultiClusterService; the autoscaler's part of mistake 11 and complaint 10 (an autoscaler against the federation) are
//! of MultiClusterHorizontalPodAutoscaler; mistake 12 (pull-back with an outage) is of MultiClusterRescheduler;
//! cluster-admin rights of mistake 13 are of peering; complaint 4 (clusters made on demand) is of CloudProvisioner.

use crate::stage::{
    asking, condition, contend, deployments, fleet_of, pass, patch, ready, replicas, start, status, workloads,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::ConditionType;
use portolan_sandbox::{FaultPlan, FaultRates};
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, foreign_cluster, workload};
use serde_json::{Value, json};
use std::time::Duration;

/// A fleet of members with so many nodes of so many CPUs, and the controller at work.
async fn working(members: &[(&str, usize, &str)]) -> Fleet {
    let fleet = fleet_of(members, FaultPlan::none()).await;
    drop(contend(&fleet, Contender::alone()));
    fleet
}

fn with(mut object: Value, containers: Value) -> Value {
    object["spec"]["template"]["spec"]["containers"] = containers;
    object
}

fn sized(name: &str, replicas: i32, cpu: &str, more: Value) -> Value {
    with(workload(name, replicas, more), asking(cpu))
}

async fn places(fleet: &Fleet, name: &str) -> (String, i32) {
    let status = status(fleet, name).await;
    (status.locations_summary.unwrap_or_default(), status.pending_replicas)
}

async fn pods_without_node(fleet: &Fleet) -> usize {
    let mut count = 0;
    for member in &fleet.members {
        let api: Api<Pod> = Api::namespaced(member.client("user"), NAMESPACE);
        let pods = api.list(&Default::default()).await.unwrap().items;
        count += pods.iter().filter(|pod| pod.spec.as_ref().unwrap().node_name.is_none()).count();
    }
    count
}

#[tokio::test(start_paused = true)]
async fn mistake_01_a_cloud_is_what_is_declared_one_and_has_no_room_that_is_not_there() {
    let fleet = working(&[("cloudy", 1, "3"), ("plain", 1, "2")]).await;
    let user = fleet.hub.client("user");
    apply(&user, &sized("first", 1, "900m", json!({"placementPolicy": "worst-fit"}))).await;
    pass(20).await;
    assert_eq!(places(&fleet, "first").await.0, "cloudy=1", "its name makes no cloud of it");
    let mut cloud = foreign_cluster("plain");
    cloud["spec"]["cloud"] = json!(true);
    apply(&user, &cloud).await;
    apply(&user, &sized("many", 9, "900m", json!({"locations": ["cloudy"], "enableBursting": true}))).await;
    pass(20).await;
    assert_eq!(places(&fleet, "many").await, ("cloudy=2,plain=2".to_owned(), 5), "a cloud has limits, too");
}

#[tokio::test(start_paused = true)]
async fn mistake_02_every_node_and_every_container_counts_and_cordons_and_taints_hold() {
    let fleet = working(&[("a", 4, "2")]).await;
    let nodes: Api<Node> = Api::all(fleet.members[0].client("user"));
    let cordon = json!({"spec": {"unschedulable": true}});
    let taint = json!({"spec": {"taints": [{"key": "only", "value": "x", "effect": "NoSchedule"}]}});
    for (node, change) in [("a-1", cordon), ("a-2", taint)] {
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }
    let mut object = workload("web", 9, json!({"locations": ["a"]}));
    let ask =
        |name: &str, cpu: &str| json!({"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}});
    object["spec"]["template"]["spec"]["containers"] = json!([ask("one", "300m"), ask("two", "300m")]);
    object["spec"]["template"]["spec"]["initContainers"] = json!([ask("init", "900m")]);
    apply(&fleet.hub.client("user"), &object).await;
    pass(20).await;
    // Two nodes are left, of two CPUs each; a pod needs the 900m of its init container.
    assert_eq!(places(&fleet, "web").await, ("a=4".to_owned(), 5));
    assert_eq!(ready(&fleet, "web").await, 4);
}

#[tokio::test(start_paused = true)]
async fn mistake_03_quantities_are_read_as_kubernetes_reads_them() {
    let fleet = working(&[("a", 1, "4")]).await;
    let user = fleet.hub.client("user");
    let asks = |requests: Value| json!([{"name": "main", "image": "i", "resources": {"requests": requests}}]);
    for (name, requests, fits) in [
        ("half", json!({"cpu": "0.5"}), 8),
        ("whole", json!({"cpu": "1"}), 4),
        ("number", json!({"cpu": 2}), 2),
        ("large", json!({"memory": "1Gi"}), 8),
        ("decimal", json!({"memory": "4e9"}), 2),
    ] {
        apply(&user, &with(workload(name, 20, json!({"locations": ["a"]})), asks(requests))).await;
        pass(20).await;
        assert_eq!(places(&fleet, name).await, (format!("a={fits}"), 20 - fits), "{name}");
        workloads(&fleet).delete(name, &Default::default()).await.unwrap();
        pass(40).await;
    }
}

#[tokio::test(start_paused = true)]
async fn mistake_04_templates_travel_as_they_were_written() {
    let (fleet, _controller) = start().await;
    let text = "name: web\nreplicas: 1 # \"quoted\" 'and' {{ .Values.x }} ${HOME} \\ \u{1F6A2}";
    let container = json!([{"name": "main", "image": "web", "args": [text, "web", "replicas"]}]);
    apply(&fleet.hub.client("user"), &with(workload("web", 2, json!({"locations": ["c2"]})), container))
        .await;
    pass(20).await;
    let spec = deployments(&fleet, 0).get("web").await.unwrap().spec.unwrap();
    let container = spec.template.spec.unwrap().containers.remove(0);
    assert_eq!(container.args.unwrap(), [text, "web", "replicas"]);
    assert_eq!((spec.replicas, container.image.as_deref()), (Some(2), Some("web")));
}

#[tokio::test(start_paused = true)]
async fn mistake_05_errors_are_told_and_silence_is_not_absence() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["c2"], "enableSubstitution": true}))).await;
    let mut odd = workload("odd", 1, json!({"locations": ["c3"]}));
    odd["spec"]["template"]["spec"]["containers"][0]["image"] = json!("");
    apply(&user, &odd).await;
    pass(20).await;
    assert_eq!(condition(&fleet, "odd", ConditionType::Ready).await.0, "False");
    fleet.world.partition(CONTROLLER, "c2");
    pass(60).await;
    assert_eq!(places(&fleet, "web").await, ("c2=2".to_owned(), 0), "no substitute: it is silent, not full");
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "Unknown");
}

#[tokio::test(start_paused = true)]
async fn mistake_06_workloads_that_come_at_once_never_count_the_same_room() {
    let fleet = working(&[("a", 1, "2"), ("b", 1, "2")]).await;
    let user = fleet.hub.client("user");
    for name in ["one", "two", "three", "four", "five"] {
        apply(&user, &sized(name, 1, "900m", json!({"placementPolicy": "worst-fit"}))).await;
    }
    pass(30).await;
    let mut placed = 0;
    for name in ["one", "two", "three", "four", "five"] {
        placed += status(&fleet, name).await.ready_replicas;
    }
    assert_eq!((placed, pods_without_node(&fleet).await), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn mistake_07_two_full_clusters_never_pick_the_same_substitute() {
    let fleet = working(&[("a", 1, "1"), ("b", 1, "1"), ("c", 1, "3")]).await;
    let wish = json!({"locations": ["a", "b"], "enableSubstitution": true});
    apply(&fleet.hub.client("user"), &sized("web", 3, "900m", wish)).await;
    pass(20).await;
    // One fits in each location; of the four others three find room in c, once.
    assert_eq!(places(&fleet, "web").await, ("a=1,b=1,c=3".to_owned(), 1));
    assert_eq!((ready(&fleet, "web").await, pods_without_node(&fleet).await), (5, 0));
    let substitute = status(&fleet, "web").await.placements.pop().unwrap();
    assert_eq!(substitute.substitute_for.as_deref(), Some("a,b"));
}

#[tokio::test(start_paused = true)]
async fn mistake_08_shrinking_and_updating_at_once_reach_the_clusters_that_are_kept() {
    let fleet = working(&[("a", 1, "4"), ("b", 1, "4"), ("c", 1, "4")]).await;
    apply(&fleet.hub.client("user"), &workload("web", 3, json!({"locations": ["c", "a", "b"]}))).await;
    pass(20).await;
    let image = json!([{"name": "main", "image": "app:2"}]);
    let change = json!({"locations": ["c", "b"], "replicas": 1, "template": {"spec": {"containers": image}}});
    patch(&fleet, "web", change).await;
    pass(40).await;
    assert_eq!(places(&fleet, "web").await, ("b=1,c=1".to_owned(), 0));
    assert_eq!(replicas(&fleet, 0, "web").await, None);
    for placed in status(&fleet, "web").await.placements {
        assert_eq!(placed.images, ["app:2"], "{}", placed.cluster);
    }
}

#[tokio::test(start_paused = true)]
async fn mistake_10_a_deletion_that_meets_errors_leaves_no_orphan() {
    let rates = FaultRates::evenly(300);
    let fleet = fleet_of(&[("a", 1, "4"), ("b", 1, "4")], FaultPlan::none().party(CONTROLLER, rates)).await;
    drop(contend(&fleet, Contender::alone()));
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["a", "b"]}))).await;
    pass(120).await;
    workloads(&fleet).delete("web", &Default::default()).await.unwrap();
    pass(300).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none());
    for member in 0..2 {
        assert_eq!(replicas(&fleet, member, "web").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn mistake_11_fewer_replicas_than_clusters_are_divided_without_loss_and_the_spec_is_the_users() {
    let fleet = working(&[("a", 1, "1"), ("b", 1, "4"), ("c", 1, "4")]).await;
    let wish = json!({"placementPolicy": "worst-fit", "numberOfLocations": 3, "replicasMode": "Total"});
    apply(&fleet.hub.client("user"), &sized("web", 2, "100m", wish)).await;
    pass(20).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"));
    patch(&fleet, "web", json!({"replicas": 7})).await;
    pass(20).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("7/7"));
    let spec = workloads(&fleet).get("web").await.unwrap().spec;
    assert!(spec.placement.locations.is_empty(), "a policy stays a policy");
}

#[test]
fn mistake_13_every_kind_has_a_schema_that_refuses_what_is_not_meant() {
    for crd in portolan_api::crds() {
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            let spec = &schema.properties.as_ref().unwrap()["spec"];
            assert_ne!(spec.x_kubernetes_preserve_unknown_fields, Some(true), "{:?}", crd.metadata.name);
            assert!(!spec.properties.as_ref().unwrap().is_empty(), "{:?}", crd.metadata.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn mistake_14_a_decision_lists_nothing() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("warm", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let lists = || {
        let is_list = |line: &&String| {
            line.contains("controller #")
                && line.contains(" GET ")
                && !line.contains("watch=")
                && !line.contains("/version")
        };
        fleet.world.log().lines().iter().filter(is_list).cloned().collect::<Vec<_>>()
    };
    let before = lists().len();
    for number in 0..5 {
        let wish = json!({"placementPolicy": "worst-fit", "numberOfLocations": 2});
        apply(&user, &workload(&format!("web{number}"), 1, wish)).await;
    }
    pass(20).await;
    let after = lists();
    // Whether a copy's name is free is asked once for each copy; nodes and pods are never listed.
    assert!(after.len() - before <= 10, "{:#?}", &after[before..]);
    assert!(!after[before..].iter().any(|line| line.contains("/pods") || line.contains("/nodes")));
}

#[tokio::test(start_paused = true)]
async fn complaint_01_replicas_come_home_when_there_is_room_again() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &sized("filler", 2, "900m", json!({"locations": ["c2"]}))).await;
    pass(20).await;
    apply(&user, &sized("web", 2, "900m", json!({"locations": ["c2"], "enableSubstitution": true}))).await;
    pass(20).await;
    assert_eq!(places(&fleet, "web").await.0, "c3=2");
    workloads(&fleet).delete("filler", &Default::default()).await.unwrap();
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(ready(&fleet, "web").await >= 2, "home without a dip");
    }
    assert_eq!(places(&fleet, "web").await.0, "c2=2");
    assert_eq!(replicas(&fleet, 1, "web").await, None);
}

#[tokio::test(start_paused = true)]
async fn complaint_02_a_herd_of_workloads_spreads_over_the_room_there_is() {
    let fleet = working(&[("a", 2, "2"), ("b", 2, "2"), ("c", 2, "2")]).await;
    let user = fleet.hub.client("user");
    for number in 0..12 {
        apply(&user, &sized(&format!("app{number:02}"), 1, "900m", json!({"placementPolicy": "worst-fit"})))
            .await;
    }
    pass(40).await;
    for number in 0..12 {
        let name = format!("app{number:02}");
        assert_eq!(status(&fleet, &name).await.ready_summary.as_deref(), Some("1/1"), "{name}");
    }
    assert_eq!(pods_without_node(&fleet).await, 0);
}

#[tokio::test(start_paused = true)]
async fn complaint_03_what_fits_is_delivered() {
    let fleet = working(&[("a", 1, "10")]).await;
    apply(&fleet.hub.client("user"), &sized("web", 100, "105m", json!({"locations": ["a"]}))).await;
    pass(60).await;
    assert_eq!(places(&fleet, "web").await, ("a=95".to_owned(), 5), "95 of 100 fit");
    assert_eq!(ready(&fleet, "web").await, 95);
}

#[tokio::test(start_paused = true)]
async fn complaint_05_nothing_is_deleted_because_a_cluster_was_away() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2", "c3"]}))).await;
    pass(20).await;
    let before = deployments(&fleet, 0).get("web").await.unwrap();
    fleet.world.partition(CONTROLLER, "c2");
    pass(3600).await;
    fleet.world.crash(CONTROLLER);
    pass(30).await;
    fleet.world.heal(CONTROLLER, "c2");
    pass(60).await;
    let after = deployments(&fleet, 0).get("web").await.unwrap();
    assert_eq!(
        (after.metadata.uid, after.metadata.generation),
        (before.metadata.uid, before.metadata.generation)
    );
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("4/4"));
}

#[tokio::test(start_paused = true)]
async fn complaint_06_ready_replicas_never_dip_in_a_move() {
    let fleet = working(&[("a", 2, "4"), ("b", 2, "4"), ("c", 2, "4")]).await;
    let wish = json!({"locations": ["a", "b"], "replicasMode": "Total"});
    apply(&fleet.hub.client("user"), &workload("web", 6, wish)).await;
    pass(20).await;
    assert_eq!(places(&fleet, "web").await.0, "a=3,b=3");
    // A whole copy moves, and another one shrinks while a third grows.
    for change in [
        json!({"locations": ["b", "c"]}),
        json!({"weights": [{"cluster": "b", "weight": 5}, {"cluster": "c", "weight": 1}]}),
    ] {
        patch(&fleet, "web", change).await;
        for _ in 0..300 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let ready = ready(&fleet, "web").await;
            assert!(ready >= 6, "only {ready} of 6 were ready");
        }
    }
    assert_eq!(places(&fleet, "web").await.0, "b=5,c=1");
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("6/6"));
}

#[tokio::test(start_paused = true)]
async fn complaint_07_editing_a_policy_moves_nothing_that_may_stay() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let uid = deployments(&fleet, 0).get("web").await.unwrap().metadata.uid;
    patch(&fleet, "web", json!({"locations": null, "placementPolicy": "worst-fit"})).await;
    pass(20).await;
    assert_eq!(places(&fleet, "web").await.0, "c2=1", "c3 has more room, but it runs well where it is");
    patch(&fleet, "web", json!({"clusterSelector": {"matchLabels": {"no": "such"}}})).await;
    pass(20).await;
    assert_eq!(
        deployments(&fleet, 0).get("web").await.unwrap().metadata.uid,
        uid,
        "a slip takes nothing down"
    );
}

#[tokio::test(start_paused = true)]
async fn complaint_08_one_workload_costs_few_writes_and_no_objects_beside_its_copies() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("warm", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let writes = || {
        let is_write = |line: &&String| {
            line.contains("controller #") && !line.contains(" GET ") && !line.contains("/leases/")
        };
        fleet.world.log().lines().iter().filter(is_write).cloned().collect::<Vec<_>>()
    };
    let before = writes().len();
    apply(&user, &workload("web", 2, json!({"locations": ["c2", "c3"]}))).await;
    pass(20).await;
    let after = writes();
    assert!(after.len() - before <= 15, "{:#?}", &after[before..]);
}

#[tokio::test(start_paused = true)]
async fn complaint_09_what_waits_says_for_what_and_where() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &sized("web", 1, "5", json!({"locations": ["c2", "c3"]}))).await;
    pass(20).await;
    let (_, _, message) = condition(&fleet, "web", ConditionType::Placed).await;
    for part in [
        "c2: ",
        "c3: ",
        "a replica needs cpu 5",
        "the freest of 1 nodes has 2",
        "the freest of 1 nodes has 3",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

//! What a CloudProvisioner does about what it does not know, cannot read, or what is not its own any more.

use crate::provision::{Stage, bursting, joined, provisioner};
use crate::stage::pass;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::ConditionType;
use portolan_api::{CloudProvisioner, ForeignCluster};
use portolan_sandbox::{HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, apply};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_cluster_that_lost_a_label_is_left_alone_and_no_second_one_is_bought() {
    let (stage, name, _) = joined(7, 1, json!({})).await;
    let user = stage.hub.client("user");
    let uid = Api::<CloudProvisioner>::all(user.clone()).get("cp1").await.unwrap().metadata.uid;
    let label = async |label: &str, value: Option<&str>| {
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: value}}}));
        stage.api("Cluster", "clusters").patch(&name, &PatchParams::default(), &patch).await.unwrap();
    };
    let lost = [
        ("portolan.dev/cloud-provisioner", uid.as_deref()),
        ("portolan.dev/cloud-cluster-number", Some("1")),
    ];
    for (lost, value) in lost {
        label(lost, None).await;
        pass(10 * 60).await;
        let there: Vec<_> =
            stage.clusters().await.into_iter().filter_map(|each| each.metadata.name).collect();
        assert_eq!(there, [name.as_str()], "without {lost}");
        assert_eq!(stage.placed("web").await, [("cloud1".to_owned(), 3), ("home".to_owned(), 4)]);
        let member = Api::<ForeignCluster>::all(user.clone()).get("cloud1").await.unwrap();
        assert!(member.metadata.deletion_timestamp.is_none() && member.spec.taints.is_empty());
        let (status, reason, message) = stage.condition("cp1", ConditionType::Ready).await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "CloudClusterNotOwned"), "{message}");
        label(lost, value).await;
        pass(60).await;
        assert_eq!(stage.condition("cp1", ConditionType::Ready).await.0, "True", "with {lost} again");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lowered_while_machines_cannot_be_listed() {
    let (stage, name, pool) = joined(7, 1, json!({})).await;
    apply(&stage.hub.client("user"), &bursting("web", 12)).await;
    pass(20).await;
    assert_eq!(stage.pool().await.1, 2);
    let machines = RequestFilter::any().party(CONTROLLER).resource("machines.cluster.x-k8s.io");
    let refused = HostileAnswer::refusal(500, "the conversion webhook does not answer");
    stage.world.hostile("hub", vec![HostileRule::new(machines, refused)]);
    // Long enough for the watch that was open to end.
    pass(10 * 60).await;
    stage.add_node(&name, "late").await;
    stage.machine(&name, &pool, "machine-late", Some("late")).await;
    pass(30 * 60).await;
    assert_eq!(stage.pool().await.1, 2, "Cluster API would delete a node that nobody has marked");
    let (status, reason, message) = stage.condition("cp1", ConditionType::Ready).await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "CacheNotSynced"), "{message}");
    assert!(message.contains("Machines") && message.contains("conversion webhook"), "{message}");
    stage.world.hostile("hub", Vec::new());
    pass(5 * 60).await;
    let status = stage.status("cp1").await;
    assert_eq!((status.ready_nodes, status.desired_nodes), (2, 2), "{:?}", status.conditions);
    assert_eq!(stage.placed("web").await, [("cloud1".to_owned(), 8), ("home".to_owned(), 4)]);
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_is_called_off_takes_its_taint_back() {
    let (stage, _, _) = joined(7, 1, json!({"decommissionAfter": "60s"})).await;
    let user = stage.hub.client("user");
    let deletions =
        RequestFilter::any().party(CONTROLLER).verb("delete").resource("foreignclusters.portolan.dev");
    let refused = HostileAnswer::refusal(503, "try again");
    stage.world.hostile("hub", vec![HostileRule::new(deletions, refused)]);
    apply(&user, &bursting("web", 4)).await;
    pass(150).await;
    let taints = async || Api::<ForeignCluster>::all(user.clone()).get("cloud1").await.unwrap().spec.taints;
    assert_eq!(taints().await.len(), 1, "workloads are to leave");
    apply(&user, &bursting("web", 7)).await;
    pass(60).await;
    assert!(stage.events("cp1").await.contains(&"DeprovisioningCalledOff".to_owned()));
    assert_eq!(taints().await, []);
    assert_eq!(stage.placed("web").await, [("cloud1".to_owned(), 3), ("home".to_owned(), 4)]);
}

/// The names of the Clusters.
async fn names(stage: &Stage) -> Vec<String> {
    stage.clusters().await.into_iter().filter_map(|each| each.metadata.name).collect()
}

fn at_a_distance(rtt: &str) -> Value {
    json!({"latencies": [{"to": "home", "rtt": rtt}]})
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_answers_slowly_keeps_no_other_provisioner_waiting() {
    let stage = Stage::new().await;
    let user = stage.hub.client("user");
    stage.serve_cluster_api().await;
    let mut near = at_a_distance("5ms");
    near["maxNodes"] = json!(1);
    apply(&user, &provisioner("cp1", "cloud1", near)).await;
    apply(&user, &provisioner("cp2", "cloud2", at_a_distance("50ms"))).await;
    apply(&user, &bursting("web", 7)).await;
    pass(10).await;
    let (name, (pool, _)) = (names(&stage).await.remove(0), stage.pool().await);
    stage.boot(&name, &pool, 1).await;
    let slow = HostileAnswer::Late(Duration::from_secs(9));
    stage.world.hostile(&name, vec![HostileRule::new(RequestFilter::any(), slow)]);
    pass(12).await;
    apply(&user, &bursting("web", 11)).await;
    pass(10).await;
    assert_eq!(names(&stage).await.len(), 2, "the second cloud is asked while the first one is spoken to");
    pass(10 * 60).await;
    let joined: ForeignCluster = Api::all(user).get("cloud1").await.unwrap();
    assert!(joined.metadata.deletion_timestamp.is_none(), "it joins all the same");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_cluster_that_cannot_be_read_keeps_no_cluster_from_joining() {
    let stage = Stage::new().await;
    let user = stage.hub.client("user");
    let lists = RequestFilter::any().party(CONTROLLER).resource("foreignclusters.portolan.dev");
    let unreadable = HostileAnswer::edit(|object| {
        if object["metadata"]["name"] == "broken" {
            object["spec"]["latencies"] = json!("many");
        }
    });
    stage.world.hostile("hub", vec![HostileRule::new(lists, unreadable)]);
    let broken = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "broken"},
        "spec": {"clusterIdentity": {"clusterID": "b", "clusterName": "broken"}},
    });
    apply(&user, &broken).await;
    stage.serve_cluster_api().await;
    apply(&user, &provisioner("cp1", "cloud1", json!({}))).await;
    apply(&user, &bursting("web", 7)).await;
    pass(10).await;
    let (name, (pool, _)) = (names(&stage).await.remove(0), stage.pool().await);
    stage.boot(&name, &pool, 1).await;
    pass(120).await;
    assert_eq!(stage.placed("web").await, [("cloud1".to_owned(), 3), ("home".to_owned(), 4)]);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_cannot_be_read_is_left_alone_and_stops_no_other_provisioner() {
    let (mut stage, name, _) = joined(7, 1, json!({})).await;
    let user = stage.hub.client("user");
    let lists = RequestFilter::any().party(CONTROLLER).resource("clusters.cluster.x-k8s.io");
    let own = name.clone();
    let unreadable = HostileAnswer::edit(move |object| {
        if object["metadata"]["name"] == own.as_str() {
            object["spec"]["topology"] = json!("many");
        }
    });
    stage.world.hostile("hub", vec![HostileRule::new(lists, unreadable)]);
    stage.control();
    pass(60).await;
    let (status, reason, message) = stage.condition("cp1", ConditionType::Ready).await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "CloudRequestFailed"), "{message}");
    assert!(message.contains(&name), "{message}");
    apply(&user, &provisioner("cp2", "cloud2", json!({}))).await;
    apply(&user, &bursting("web", 12)).await;
    pass(60).await;
    let all = names(&stage).await;
    assert!(all.len() == 2 && all.contains(&name), "{all:?}");
    assert!(all.iter().any(|each| each.starts_with("cloud2-")), "{all:?}");
    assert!(Api::<ForeignCluster>::all(user).get("cloud1").await.unwrap().spec.taints.is_empty());
}

#[tokio::test(start_paused = true)]
async fn cluster_api_that_was_removed_under_a_cluster_is_named() {
    let (stage, name, _) = joined(7, 1, json!({})).await;
    let gone = |resource: &str| {
        let requests = RequestFilter::any().party(CONTROLLER).resource(resource);
        let answer = HostileAnswer::body(404, "404 page not found");
        HostileRule::new(requests, answer)
    };
    let rules = ["clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io"].map(gone);
    stage.world.hostile("hub", rules.to_vec());
    // Long enough for the watches that were open to end.
    pass(10 * 60).await;
    let (status, reason, message) = stage.condition("cp1", ConditionType::Ready).await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ClusterApiNotFound"), "{message}");
    assert!(message.contains("any more"), "{message}");
    stage.world.hostile("hub", Vec::new());
    pass(5 * 60).await;
    assert_eq!(stage.condition("cp1", ConditionType::Ready).await.0, "True");
    assert_eq!(names(&stage).await, [name]);
}

#[tokio::test(start_paused = true)]
async fn a_provisioner_that_has_made_nothing_can_be_deleted_whatever_its_spec_says() {
    let mut stage = Stage::new().await;
    let user = stage.hub.client("user");
    stage.serve_cluster_api().await;
    apply(&user, &provisioner("cp1", "cloud1", json!({"paused": true}))).await;
    apply(&user, &provisioner("cp2", "cloud2", json!({}))).await;
    pass(20).await;
    let lists = RequestFilter::any().party(CONTROLLER).resource("cloudprovisioners.portolan.dev");
    let strange = HostileAnswer::edit(|object| {
        if object["metadata"]["name"] == "cp2" {
            object["spec"]["machineTypes"][0]["cpu"] = json!("many");
        }
    });
    stage.world.hostile("hub", vec![HostileRule::new(lists, strange)]);
    stage.control();
    pass(60).await;
    let (_, reason, message) = stage.condition("cp2", ConditionType::Ready).await;
    assert_eq!(reason, "InvalidSpec", "{message}");
    let provisioners: Api<CloudProvisioner> = Api::all(user);
    for name in ["cp1", "cp2"] {
        provisioners.delete(name, &Default::default()).await.unwrap();
        pass(30).await;
        assert!(provisioners.get_opt(name).await.unwrap().is_none(), "{name}");
    }
}

//! What a CloudProvisioner does about what it does not know, or what is not its own any more.

use crate::provision::{bursting, joined};
use crate::stage::pass;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::ConditionType;
use portolan_api::{CloudProvisioner, ForeignCluster};
use portolan_sandbox::{HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, apply};
use serde_json::json;

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
        assert_eq!(there, [name.clone()], "without {lost}");
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

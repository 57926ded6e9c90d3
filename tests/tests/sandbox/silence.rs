//! A member falls silent for long, and comes back.

use crate::credentials::Stage;
use crate::stage::{
    condition, contend, events, fleet, pass, patch, ready, replicas, start, status, workloads,
};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use portolan_api::conditions::ConditionType;
use portolan_api::multiclusterjob::MultiClusterJobStatus;
use portolan_api::placement::{PlacementCause, PlacementState};
use portolan_api::{ForeignCluster, MultiClusterJob};
use portolan_sandbox::{ClusterConfig, FaultPlan, NodeConfig};
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, job, workload};
use serde_json::{Value, json};
use std::time::Duration;

fn replaced_after(time: &str) -> Value {
    json!({"locations": ["c2"], "onUnreachable": "ReplaceAfter", "replaceAfter": time})
}

async fn summary(fleet: &Fleet) -> (Option<String>, Option<String>) {
    let status = status(fleet, "web").await;
    (status.locations_summary, status.ready_summary)
}

fn told(places: &str, ready: &str) -> (Option<String>, Option<String>) {
    (Some(places.to_owned()), Some(ready.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn after_the_time_given_its_replicas_are_placed_elsewhere_and_on_return_the_surplus_goes() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, replaced_after("2m"))).await;
    pass(20).await;
    fleet.world.partition(CONTROLLER, "c2");
    pass(100).await;
    assert_eq!(summary(&fleet).await, told("c2=2", "2/2"), "not yet");
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "Unknown");
    pass(60).await;
    assert_eq!(summary(&fleet).await, told("c3=2", "2/2"), "four run, two count");
    let after = status(&fleet, "web").await;
    assert_eq!(after.placements[0].state, PlacementState::Unknown, "the copy stays on record");
    assert_eq!((after.placements[0].replicas, after.ready_replicas), (0, 2));
    assert_eq!(after.placements[1].cause, Some(PlacementCause::Replacement));
    assert_eq!(after.placements[1].substitute_for.as_deref(), Some("c2"));
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");
    let (unreachable, reason, _) = condition(&fleet, "web", ConditionType::Unreachable).await;
    assert_eq!((unreachable.as_str(), reason.as_str()), ("True", "Replaced"));
    assert!(events(&fleet, "web").await.contains(&"Replaced".to_owned()));
    assert_eq!(replicas(&fleet, 0, "web").await, Some(2), "nobody touched what runs in the silent cluster");

    // While it was away the template has changed: the copy there is not what is asked for.
    patch(&fleet, "web", json!({"template": {"metadata": {"labels": {"version": "two"}}}})).await;
    pass(20).await;
    fleet.world.heal(CONTROLLER, "c2");
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let status = status(&fleet, "web").await;
        assert!(status.ready_replicas <= 2, "over-counted: {:?}", status.ready_summary);
        assert!(ready(&fleet, "web").await >= 2, "the surplus went before the rest was healthy");
    }
    assert_eq!(summary(&fleet).await, told("c2=2", "2/2"), "home again");
    assert_eq!(replicas(&fleet, 1, "web").await, None, "the surplus is gone");
    assert_eq!(condition(&fleet, "web", ConditionType::Unreachable).await.0, "False");
}

#[tokio::test(start_paused = true)]
async fn keep_never_moves_anything() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    fleet.world.partition(CONTROLLER, "c2");
    pass(24 * 3600).await;
    assert_eq!(summary(&fleet).await, told("c2=2", "2/2"));
    assert_eq!(replicas(&fleet, 1, "web").await, None);
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Unreachable).await;
    assert_eq!((reason.as_str(), message.contains("kept on record")), ("Unreachable", true));
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_does_not_start_the_time_anew() {
    let fleet = fleet(FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &workload("web", 2, replaced_after("5m"))).await;
    pass(20).await;
    fleet.world.partition(CONTROLLER, "c2");
    pass(200).await;
    controller.abort();
    pass(60).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(50).await;
    assert_eq!(
        summary(&fleet).await.0.as_deref(),
        Some("c2=2"),
        "the new leader has known of it for less than a minute"
    );
    pass(30).await;
    assert_eq!(summary(&fleet).await.0.as_deref(), Some("c3=2"), "340 seconds have passed");
    // Once more, in the middle of the replacement: it stands.
    fleet.world.crash(CONTROLLER);
    pass(60).await;
    assert_eq!(summary(&fleet).await, told("c3=2", "2/2"));
    patch(&fleet, "web", json!({"onUnreachable": "Keep", "replaceAfter": null})).await;
    pass(20).await;
    assert_eq!(summary(&fleet).await, told("c3=2", "2/2"), "what serves is not taken away");
}

#[tokio::test(start_paused = true)]
async fn a_time_that_was_told_by_a_wrong_clock_replaces_nothing() {
    let fleet = fleet(FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &workload("web", 2, replaced_after("5m"))).await;
    pass(20).await;
    fleet.world.partition(CONTROLLER, "c2");
    pass(60).await;
    controller.abort();
    let clusters: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let mut cluster = clusters.get("c2").await.unwrap();
    for condition in &mut cluster.status.as_mut().unwrap().conditions {
        condition.last_transition_time.0 = jiff::Timestamp::UNIX_EPOCH;
    }
    clusters.replace_status("c2", &PostParams::default(), &cluster).await.unwrap();
    let _controller = contend(&fleet, Contender::alone());
    pass(120).await;
    assert_eq!(
        summary(&fleet).await.0.as_deref(),
        Some("c2=2"),
        "not 56 years have passed, but three minutes"
    );
    pass(200).await;
    assert_eq!(summary(&fleet).await.0.as_deref(), Some("c3=2"));
}

#[tokio::test(start_paused = true)]
async fn deleted_while_it_is_away_it_leaves_no_orphan_after_replacement() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, replaced_after("1m"))).await;
    pass(20).await;
    fleet.world.partition(CONTROLLER, "c2");
    pass(100).await;
    workloads(&fleet).delete("web", &Default::default()).await.unwrap();
    pass(30).await;
    assert_eq!(replicas(&fleet, 1, "web").await, None);
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_some(), "it waits for the copy on record");
    fleet.world.heal(CONTROLLER, "c2");
    pass(60).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none());
    assert_eq!(replicas(&fleet, 0, "web").await, None, "no orphan");
}

/// Takes the kubeconfig out of the Secret of a cluster; answers how it is put back.
async fn break_secret(stage: &Stage, name: &str) -> Value {
    let data = stage.secrets().get(name).await.unwrap().data;
    let broken = Patch::Merge(json!({"data": {"kubeconfig": null}}));
    stage.secrets().patch(name, &PatchParams::default(), &broken).await.unwrap();
    json!({ "data": data })
}

async fn mend_secret(stage: &Stage, name: &str, data: Value) {
    stage.secrets().patch(name, &PatchParams::default(), &Patch::Merge(data)).await.unwrap();
}

async fn sum(stage: &Stage) -> MultiClusterJobStatus {
    let jobs: Api<MultiClusterJob> = Api::namespaced(stage.hub.client("user"), NAMESPACE);
    jobs.get("sum").await.unwrap().status.unwrap_or_default()
}

async fn jobs_in(stage: &Stage, cluster: &str) -> usize {
    let jobs: Api<Job> = Api::namespaced(stage.world.cluster(cluster).unwrap().client("user"), NAMESPACE);
    jobs.list(&Default::default()).await.unwrap().items.len()
}

fn in_paris(time: &str) -> Value {
    json!({"locations": ["paris"], "onUnreachable": "ReplaceAfter", "replaceAfter": time})
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_secret_is_broken_is_not_silent_and_keeps_its_job() {
    let stage = Stage::new(86_400).await;
    pass(20).await;
    apply(&stage.hub.client("user"), &job("sum", 20, 1, in_paris("1m"))).await;
    pass(15).await;
    assert_eq!(sum(&stage).await.locations_summary.as_deref(), Some("paris=20"));
    let secret = break_secret(&stage, "paris").await;
    pass(120).await;
    assert_eq!(stage.condition("paris", ConditionType::Reachable).await.reason, "ConnectionFailed");
    assert_eq!(sum(&stage).await.locations_summary.as_deref(), Some("paris=20"), "it runs there");
    assert_eq!(jobs_in(&stage, "rome").await, 0, "nothing runs twice");
    mend_secret(&stage, "paris", secret).await;
    pass(120).await;
    assert_eq!((sum(&stage).await.succeeded, jobs_in(&stage, "rome").await), (20, 0));
}

#[tokio::test(start_paused = true)]
async fn the_time_without_a_connection_is_no_time_of_silence() {
    let stage = Stage::new(86_400).await;
    pass(20).await;
    apply(&stage.hub.client("user"), &job("sum", 200, 1, in_paris("2m"))).await;
    pass(15).await;
    for again in 0..2 {
        let secret = break_secret(&stage, "paris").await;
        pass(300).await;
        stage.world.partition(CONTROLLER, "paris");
        mend_secret(&stage, "paris", secret).await;
        pass(90).await;
        assert_eq!(stage.condition("paris", ConditionType::Reachable).await.reason, "Unreachable");
        assert_eq!(jobs_in(&stage, "rome").await, 0, "it was silent for no longer than a minute and a half");
        if again == 0 {
            stage.world.heal(CONTROLLER, "paris");
            pass(30).await;
        }
    }
    pass(60).await;
    assert_eq!(jobs_in(&stage, "rome").await, 1, "now its time is over");
}

#[tokio::test(start_paused = true)]
async fn members_whose_connection_is_lost_count_when_silence_is_doubted() {
    let stage = Stage::new(86_400).await;
    stage.world.add_cluster(ClusterConfig::named("oslo").nodes(1, NodeConfig::new("4", "8Gi")));
    stage.join("oslo", 86_400).await;
    pass(20).await;
    apply(&stage.hub.client("user"), &job("sum", 200, 1, in_paris("1m"))).await;
    pass(15).await;
    let secret = break_secret(&stage, "rome").await;
    stage.world.partition(CONTROLLER, "paris");
    pass(180).await;
    assert_eq!(jobs_in(&stage, "oslo").await, 0, "two of three do not answer");
    let doubted = stage.condition("paris", ConditionType::SilenceDoubted).await;
    assert!(doubted.status == "True" && doubted.message.contains("2 of 3 members"), "{doubted:?}");
    mend_secret(&stage, "rome", secret).await;
    pass(120).await;
    assert_eq!(jobs_in(&stage, "paris").await, 1);
    assert_eq!(jobs_in(&stage, "oslo").await + jobs_in(&stage, "rome").await, 1, "paris is alone now");
}

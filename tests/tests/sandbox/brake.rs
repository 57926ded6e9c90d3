//! Many members fall silent at once: the hub suspects itself, and nothing is replaced.

use crate::stage::{condition, contend, events, fleet_of, pass, replicas, status};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, MultiClusterJob};
use portolan_sandbox::FaultPlan;
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, job, workload};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const MEMBERS: [(&str, usize, &str); 4] = [("c2", 1, "2"), ("c3", 1, "2"), ("c4", 1, "2"), ("c5", 1, "2")];

async fn start() -> (Fleet, JoinHandle<()>) {
    let fleet = fleet_of(&MEMBERS, FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    (fleet, controller)
}

fn replaced_after(cluster: &str, time: &str) -> Value {
    json!({"locations": [cluster], "onUnreachable": "ReplaceAfter", "replaceAfter": time})
}

fn cut_off(fleet: &Fleet, members: &[&str]) {
    members.iter().for_each(|member| fleet.world.partition(CONTROLLER, member));
}

fn heal(fleet: &Fleet, members: &[&str]) {
    members.iter().for_each(|member| fleet.world.heal(CONTROLLER, member));
}

async fn places(fleet: &Fleet, name: &str) -> String {
    status(fleet, name).await.locations_summary.unwrap_or_default()
}

fn clusters(fleet: &Fleet) -> Api<ForeignCluster> {
    Api::all(fleet.hub.client("user"))
}

/// Status and message of the condition SilenceDoubted of a ForeignCluster, if it has one.
async fn doubted(fleet: &Fleet, name: &str) -> Option<(String, String)> {
    let status = clusters(fleet).get(name).await.unwrap().status.unwrap_or_default();
    let found = conditions::find(&status.conditions, ConditionType::SilenceDoubted)?;
    Some((found.status.clone(), found.message.clone()))
}

async fn annotate(fleet: &Fleet, name: &str, annotations: Value) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    clusters(fleet).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn when_most_members_fall_silent_at_once_nothing_is_replaced_and_it_is_said_loudly() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 2, replaced_after("c2", "1m"))).await;
    apply(&user, &workload("kept", 1, json!({"locations": ["c3"]}))).await;
    pass(20).await;
    cut_off(&fleet, &["c2", "c3", "c4"]);
    pass(600).await;
    assert_eq!(places(&fleet, "web").await, "c2=2", "nothing is doubled");
    assert_eq!(replicas(&fleet, 3, "web").await, None, "not in the only cluster that answers");
    let (holds, reason, message) = condition(&fleet, "web", ConditionType::Unreachable).await;
    assert_eq!((holds.as_str(), reason.as_str()), ("True", "SilenceDoubted"));
    assert!(message.contains("3 of 4 members are silent at once (c2, c3, c4)"), "{message}");
    assert!(message.contains("portolan.dev/confirmed-lost=true"), "{message}");
    assert!(events(&fleet, "web").await.contains(&"SilenceDoubted".to_owned()));
    assert_eq!(
        condition(&fleet, "kept", ConditionType::Unreachable).await.1,
        "Unreachable",
        "it never moves anyway"
    );
    let told = doubted(&fleet, "c2").await.unwrap();
    assert!(told.0 == "True" && told.1.contains("3 of 4"), "{told:?}");
    assert_eq!(doubted(&fleet, "c5").await, None, "it answers");
    let all: Api<Event> = Api::all(fleet.hub.client("user"));
    let about = |event: &Event| event.regarding.as_ref().and_then(|about| about.name.clone());
    let all = all.list(&Default::default()).await.unwrap().items;
    assert!(
        all.iter().any(|event| event.reason.as_deref() == Some("SilenceDoubted")
            && about(event).as_deref() == Some("c4"))
    );

    heal(&fleet, &["c2", "c3", "c4"]);
    pass(60).await;
    assert_eq!((places(&fleet, "web").await, replicas(&fleet, 0, "web").await), ("c2=2".to_owned(), Some(2)));
    assert_eq!(condition(&fleet, "web", ConditionType::Unreachable).await.0, "False");
    assert_eq!(doubted(&fleet, "c2").await.unwrap().0, "False");
}

#[tokio::test(start_paused = true)]
async fn the_last_ones_to_come_back_from_a_long_cut_have_their_time_again() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, replaced_after("c2", "2m"))).await;
    pass(20).await;
    cut_off(&fleet, &["c2", "c3", "c4", "c5"]);
    pass(1800).await;
    heal(&fleet, &["c3", "c4", "c5"]);
    pass(90).await;
    assert_eq!(places(&fleet, "web").await, "c2=2", "its half hour of silence was the hub's own");
    pass(90).await;
    assert_ne!(places(&fleet, "web").await, "c2=2", "now it is alone, and its time is over");
    let (_, reason, _) = condition(&fleet, "web", ConditionType::Unreachable).await;
    assert_eq!(reason, "Replaced");
}

#[tokio::test(start_paused = true)]
async fn one_after_the_other_is_replaced_and_stays_replaced_when_the_hub_begins_to_doubt() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 1, replaced_after("c2", "1m"))).await;
    apply(&user, &workload("api", 1, replaced_after("c3", "1m"))).await;
    pass(20).await;
    cut_off(&fleet, &["c2"]);
    pass(100).await;
    let moved = places(&fleet, "web").await;
    assert!(!moved.contains("c2"), "one silent member is believed: {moved}");
    cut_off(&fleet, &["c3", "c4", "c5"]);
    pass(300).await;
    assert_eq!(places(&fleet, "web").await, moved, "what was replaced stays replaced");
    assert_eq!(places(&fleet, "api").await, "c3=1", "what was not is not");
}

#[tokio::test(start_paused = true)]
async fn a_loss_that_a_user_confirms_is_believed_and_the_others_are_not() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 2, replaced_after("c2", "1m"))).await;
    apply(&user, &workload("api", 1, replaced_after("c3", "1m"))).await;
    pass(20).await;
    cut_off(&fleet, &["c2", "c3", "c4"]);
    pass(200).await;
    annotate(&fleet, "c2", json!({"portolan.dev/confirmed-lost": "yes"})).await;
    pass(30).await;
    assert_eq!(places(&fleet, "web").await, "c2=2", "only the value true confirms");
    annotate(&fleet, "c2", json!({"portolan.dev/confirmed-lost": "true"})).await;
    pass(30).await;
    assert_eq!(places(&fleet, "web").await, "c5=2");
    assert_eq!(places(&fleet, "api").await, "c3=1", "2 of 3 are still silent at once");
}

#[tokio::test(start_paused = true)]
async fn the_completions_of_a_job_are_not_given_away_either() {
    let (fleet, controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &job("sum", 8, 1, replaced_after("c3", "1m"))).await;
    pass(25).await;
    cut_off(&fleet, &["c2", "c3", "c4"]);
    pass(120).await;
    // Nor by a leader that has never heard of the silent members.
    controller.abort();
    pass(10).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(300).await;
    let jobs: Api<MultiClusterJob> = Api::namespaced(fleet.hub.client("user"), NAMESPACE);
    let told = jobs.get("sum").await.unwrap().status.unwrap();
    assert_eq!(told.locations_summary.as_deref(), Some("c3=8"));
    let unreachable = conditions::find(&told.conditions, ConditionType::Unreachable).unwrap();
    assert_eq!(unreachable.reason, "SilenceDoubted");
    assert!(events(&fleet, "sum").await.contains(&"SilenceDoubted".to_owned()));
    annotate(&fleet, "c3", json!({"portolan.dev/confirmed-lost": "true"})).await;
    pass(30).await;
    let told = jobs.get("sum").await.unwrap().status.unwrap();
    let lost = told.placements.iter().find(|each| each.cluster == "c3").unwrap();
    assert_eq!(lost.reason.as_deref(), Some("Replaced"));
}

//! Work that went to a cloud cluster or a substitute for want of room comes home, without a dip.

use crate::plan::{explain, plan, steps};
use crate::stage::{asking, contend, deployments, events, fleet_of, pass, patch, ready, replicas, status};
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::multiclusterrescheduler::MovePhase;
use portolan_api::{MultiClusterRescheduler, MultiClusterReschedulerStatus};
use portolan_sandbox::FaultPlan;
use portolan_tests::simulation::{Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, foreign_cluster, job, workload};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The places of the members in the fleet.
const HOME: usize = 0;
const AWAY: usize = 1;

/// A home of eight CPUs, and a larger cluster that takes what it has no room for. All of the home is taken.
async fn full_home(cloud: bool) -> (Fleet, JoinHandle<()>) {
    let fleet = fleet_of(&[("home", 1, "8"), ("away", 1, "16")], FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    let user = fleet.hub.client("user");
    let mut away = foreign_cluster("away");
    away["spec"]["cloud"] = json!(cloud);
    apply(&user, &away).await;
    apply(&user, &sized("tenant", 8, json!({"locations": ["home"]}))).await;
    pass(20).await;
    assert_eq!(status(&fleet, "tenant").await.ready_summary.as_deref(), Some("8/8"));
    (fleet, controller)
}

/// A workload of large pods: eight of them fill the home.
fn sized(name: &str, replicas: i32, more: Value) -> Value {
    let mut object = workload(name, replicas, more);
    object["spec"]["template"]["spec"]["containers"] = asking("900m");
    object
}

/// A workload that prefers the home and may go elsewhere, and is where there is room.
async fn displaced(fleet: &Fleet, name: &str, replicas: i32) {
    let wish = json!({"locations": ["home"], "enableSubstitution": true, "enableBursting": true});
    apply(&fleet.hub.client("user"), &sized(name, replicas, wish)).await;
    pass(20).await;
    let placed = status(fleet, name).await;
    assert_eq!(placed.locations_summary, Some(format!("away={replicas}")));
    assert_eq!(placed.ready_replicas, replicas);
}

/// The tenant leaves so many replicas, which makes room at home.
async fn tenant(fleet: &Fleet, replicas: i32) {
    patch(fleet, "tenant", json!({"replicas": replicas})).await;
}

fn reschedulers(fleet: &Fleet) -> Api<MultiClusterRescheduler> {
    Api::all(fleet.hub.client("user"))
}

async fn rescheduler(fleet: &Fleet, spec: Value) {
    let object = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterRescheduler",
        "metadata": {"name": "back"}, "spec": spec,
    });
    apply(&fleet.hub.client("user"), &object).await;
}

async fn change(fleet: &Fleet, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    reschedulers(fleet).patch("back", &PatchParams::default(), &patch).await.unwrap();
}

async fn told(fleet: &Fleet) -> MultiClusterReschedulerStatus {
    reschedulers(fleet).get("back").await.unwrap().status.unwrap_or_default()
}

/// The reason of each workload that stays.
async fn staying(fleet: &Fleet) -> Vec<String> {
    told(fleet).await.staying.into_iter().map(|each| format!("{}: {}", each.name, each.reason)).collect()
}

async fn places(fleet: &Fleet, name: &str) -> String {
    status(fleet, name).await.locations_summary.unwrap_or_default()
}

/// Lets time pass; so many replicas of the workload are ready at every moment.
async fn pass_without_dip(fleet: &Fleet, name: &str, least: i32, seconds: u64) {
    for second in 0..seconds {
        pass(1).await;
        let ready = ready(fleet, name).await;
        assert!(ready >= least, "{ready} of {least} replicas of {name} are ready after {second} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_comes_home_from_the_cloud_without_a_dip() {
    let (fleet, _controller) = full_home(true).await;
    rescheduler(&fleet, json!({"minimumStay": "120s"})).await;
    displaced(&fleet, "web", 3).await;
    assert_eq!(staying(&fleet).await, ["web: MinimumStay"]);
    pass(140).await;
    assert_eq!(staying(&fleet).await, ["web: NoRoom"]);
    tenant(&fleet, 4).await;
    pass(10).await;
    assert_eq!(staying(&fleet).await, ["web: RoomNotStable"], "room is noticed at once");
    assert_eq!(places(&fleet, "web").await, "away=3", "and not used at once");
    pass_without_dip(&fleet, "web", 3, 60).await;
    assert_eq!(places(&fleet, "web").await, "home=3");
    assert_eq!((replicas(&fleet, HOME, "web").await, replicas(&fleet, AWAY, "web").await), (Some(3), None));
    let told = told(&fleet).await;
    assert_eq!((told.moved, told.moving, told.staying.len()), (1, 0, 0));
    let done = &told.moves[0];
    assert_eq!((done.phase, done.replicas), (MovePhase::Done, 3));
    assert_eq!((done.from.as_str(), done.to.as_str()), ("away", "home"));
    assert!(conditions::is_true(&told.conditions, ConditionType::Ready), "{told:?}");
    let events = events(&fleet, "web").await;
    assert!(["MoveStarted", "MoveDone"].iter().all(|each| events.iter().any(|it| it == each)), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_rescheduler_it_comes_home_at_once_and_with_one_when_that_is_deleted() {
    let (fleet, _controller) = full_home(false).await;
    displaced(&fleet, "free", 2).await;
    rescheduler(&fleet, json!({"workloadSelector": {"matchLabels": {"tier": "back"}}})).await;
    let mut object = sized("held", 2, json!({"locations": ["home"], "enableSubstitution": true}));
    object["metadata"]["labels"] = json!({"tier": "back"});
    apply(&fleet.hub.client("user"), &object).await;
    pass(20).await;
    assert_eq!(places(&fleet, "held").await, "away=2");
    tenant(&fleet, 3).await;
    pass(30).await;
    assert_eq!(places(&fleet, "free").await, "home=2", "no rescheduler selects it");
    assert_eq!(places(&fleet, "held").await, "away=2");
    assert_eq!(staying(&fleet).await, ["held: MinimumStay"], "others are not looked at");
    reschedulers(&fleet).delete("back", &Default::default()).await.unwrap();
    pass_without_dip(&fleet, "held", 2, 30).await;
    assert_eq!(places(&fleet, "held").await, "home=2");
}

#[tokio::test(start_paused = true)]
async fn a_disruption_budget_holds_replicas_or_lets_them_go_one_by_one() {
    let (fleet, _controller) = full_home(true).await;
    rescheduler(&fleet, json!({"minimumStay": "10s", "roomStableFor": "5s"})).await;
    displaced(&fleet, "web", 3).await;
    let budget = |field: &str, pods: i32| {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, field: pods},
        })
    };
    let member = fleet.members[AWAY].client("user");
    apply(&member, &budget("minAvailable", 3)).await;
    pass(5).await;
    tenant(&fleet, 2).await;
    pass(120).await;
    assert_eq!(staying(&fleet).await, ["web: DisruptionBudget"]);
    let message = told(&fleet).await.staying[0].message.clone().unwrap();
    assert_eq!(message, "PodDisruptionBudget web in cluster away allows no disruption");
    assert_eq!(places(&fleet, "web").await, "away=3");

    let budgets: Api<PodDisruptionBudget> = Api::namespaced(member.clone(), NAMESPACE);
    budgets.delete("web", &Default::default()).await.unwrap();
    apply(&member, &budget("maxUnavailable", 1)).await;
    let mut passed_through = Vec::new();
    for _ in 0..200 {
        pass_without_dip(&fleet, "web", 3, 1).await;
        let places = places(&fleet, "web").await;
        if passed_through.last() != Some(&places) {
            passed_through.push(places);
        }
    }
    assert_eq!(passed_through, ["away=3", "away=2,home=1", "away=1,home=2", "home=3"]);
    assert_eq!(told(&fleet).await.moved, 3);
    let done = events(&fleet, "web").await.into_iter().filter(|reason| reason == "MoveDone");
    assert_eq!(done.count(), 3, "every move is told");
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_closes_in_the_middle_of_a_move_keeps_the_replicas() {
    let (fleet, _controller) = full_home(true).await;
    rescheduler(&fleet, json!({"minimumStay": "10s", "roomStableFor": "5s"})).await;
    displaced(&fleet, "web", 3).await;
    let budget = |available: i32| {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": available},
        })
    };
    let (home, away) = (fleet.members[HOME].client("user"), fleet.members[AWAY].client("user"));
    apply(&away, &budget(0)).await;
    // There is room, and no pod is created in it.
    let mut quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "2"}}});
    quota["metadata"] = json!({"name": "full", "namespace": NAMESPACE});
    apply(&home, &quota).await;
    tenant(&fleet, 2).await;
    pass(60).await;
    assert_eq!((told(&fleet).await.moving, places(&fleet, "web").await.as_str()), (1, "home=3"));
    apply(&away, &budget(3)).await;
    pass(5).await;
    let quotas: Api<ResourceQuota> = Api::namespaced(home, NAMESPACE);
    quotas.delete("full", &Default::default()).await.unwrap();
    pass(90).await;
    assert_eq!(ready(&fleet, "web").await, 6, "the replicas at home are ready, and those in the cloud run");
    let held = told(&fleet).await.moves[0].clone();
    assert_eq!(held.phase, MovePhase::Surging);
    let message = held.message.unwrap();
    assert!(message.ends_with("PodDisruptionBudget web in cluster away allows no disruption"), "{message}");
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(away, NAMESPACE);
    budgets.delete("web", &Default::default()).await.unwrap();
    pass_without_dip(&fleet, "web", 3, 60).await;
    assert_eq!((replicas(&fleet, HOME, "web").await, replicas(&fleet, AWAY, "web").await), (Some(3), None));
    assert_eq!(told(&fleet).await.moves[0].phase, MovePhase::Done);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_workloads_move_at_the_same_time() {
    let (fleet, _controller) = full_home(true).await;
    rescheduler(&fleet, json!({"minimumStay": "10s", "roomStableFor": "5s"})).await;
    for name in ["a", "b", "c"] {
        displaced(&fleet, name, 2).await;
    }
    tenant(&fleet, 0).await;
    let (mut most, mut waited) = (0, false);
    for _ in 0..240 {
        pass(1).await;
        let told = told(&fleet).await;
        most = most.max(told.moving);
        waited |= told.staying.iter().any(|each| each.reason == "MaxConcurrentMoves");
    }
    assert_eq!((most, waited), (1, true));
    assert_eq!(told(&fleet).await.moved, 3);
    for name in ["a", "b", "c"] {
        assert_eq!(places(&fleet, name).await, "home=2");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_what_would_move_and_a_pause_begins_nothing() {
    let (fleet, _controller) = full_home(true).await;
    rescheduler(&fleet, json!({"minimumStay": "10s", "dryRun": true})).await;
    displaced(&fleet, "web", 3).await;
    tenant(&fleet, 2).await;
    pass(120).await;
    assert_eq!(staying(&fleet).await, ["web: DryRun"]);
    let message = told(&fleet).await.staying[0].message.clone().unwrap();
    assert_eq!(message, "3 replicas would move to home; spec.dryRun is true");
    change(&fleet, json!({"dryRun": false, "paused": true})).await;
    pass(60).await;
    assert_eq!(staying(&fleet).await, ["web: ReschedulerPaused"]);
    assert_eq!((places(&fleet, "web").await.as_str(), told(&fleet).await.moves.len()), ("away=3", 0));
    change(&fleet, json!({"paused": false})).await;
    pass_without_dip(&fleet, "web", 3, 60).await;
    assert_eq!(places(&fleet, "web").await, "home=3");
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_goes_on_with_the_move_on_record() {
    let (fleet, mut controller) = full_home(true).await;
    rescheduler(&fleet, json!({"minimumStay": "10s", "roomStableFor": "5s"})).await;
    displaced(&fleet, "web", 3).await;
    tenant(&fleet, 2).await;
    let mut started = None;
    for _ in 0..600 {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        started = told(&fleet).await.moves.first().and_then(|each| each.started_at.clone());
        if started.is_some() {
            break;
        }
    }
    assert!(started.is_some(), "a move begins: {:?}", staying(&fleet).await);
    for _ in 0..5 {
        controller.abort();
        pass_without_dip(&fleet, "web", 3, 2).await;
        controller = contend(&fleet, Contender::alone());
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    }
    pass_without_dip(&fleet, "web", 3, 60).await;
    let told = told(&fleet).await;
    assert_eq!((told.moved, told.moving), (1, 0), "{told:?}");
    assert_eq!(
        told.moves.iter().map(|each| &each.started_at).collect::<Vec<_>>(),
        [&started],
        "the same move"
    );
    assert_eq!(places(&fleet, "web").await, "home=3");
}

#[tokio::test(start_paused = true)]
async fn room_that_comes_and_goes_moves_nothing_back_and_forth() {
    let (fleet, _controller) = full_home(true).await;
    rescheduler(&fleet, json!({"minimumStay": "60s", "roomStableFor": "60s"})).await;
    displaced(&fleet, "web", 3).await;
    pass(60).await;
    for _ in 0..6 {
        tenant(&fleet, 4).await;
        pass(40).await;
        tenant(&fleet, 8).await;
        pass(40).await;
    }
    assert_eq!((told(&fleet).await.moves.len(), places(&fleet, "web").await.as_str()), (0, "away=3"));
    tenant(&fleet, 4).await;
    pass_without_dip(&fleet, "web", 3, 120).await;
    assert_eq!(places(&fleet, "web").await, "home=3");
    tenant(&fleet, 8).await;
    pass(1800).await;
    let told = told(&fleet).await;
    assert_eq!((told.moved, told.moves.len()), (1, 1), "{told:?}");
    assert_eq!(places(&fleet, "web").await, "home=3", "what is at home stays there");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_become_ready_at_home_is_given_back() {
    let (fleet, _controller) = full_home(true).await;
    rescheduler(&fleet, json!({"minimumStay": "60s", "roomStableFor": "5s", "moveTimeout": "60s"})).await;
    displaced(&fleet, "web", 3).await;
    // There is room, and no pod is created in it.
    let mut quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "2"}}});
    quota["metadata"] = json!({"name": "full", "namespace": NAMESPACE});
    apply(&fleet.members[HOME].client("user"), &quota).await;
    tenant(&fleet, 2).await;
    pass_without_dip(&fleet, "web", 3, 60).await;
    assert_eq!((told(&fleet).await.moving, places(&fleet, "web").await.as_str()), (1, "home=3"), "reserved");
    pass_without_dip(&fleet, "web", 3, 60).await;
    assert_eq!(
        (staying(&fleet).await, places(&fleet, "web").await),
        (vec!["web: MoveFailed".to_owned()], "away=3".to_owned())
    );
    let told = told(&fleet).await;
    assert_eq!((told.moved, told.moves[0].phase), (0, MovePhase::Failed), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn jobs_in_the_cloud_are_named_and_not_moved() {
    let (fleet, _controller) = full_home(true).await;
    rescheduler(&fleet, json!({"interval": "5s", "minimumStay": "10s", "roomStableFor": "5s"})).await;
    // Its pods run for ten seconds, one after the other.
    apply(&fleet.hub.client("user"), &job("batch", 12, 1, json!({"locations": ["away"]}))).await;
    tenant(&fleet, 0).await;
    pass(60).await;
    assert_eq!(staying(&fleet).await, ["batch: JobRunsToEnd"]);
    assert_eq!(told(&fleet).await.staying[0].kind, "MultiClusterJob");
    pass(120).await;
    assert_eq!(staying(&fleet).await, Vec::<String>::new(), "it is over");
    assert!(told(&fleet).await.moves.is_empty());
}

#[tokio::test(start_paused = true)]
async fn plans_and_explanations_leave_the_replicas_where_the_rescheduler_does() {
    let (fleet, _controller) = full_home(true).await;
    rescheduler(&fleet, json!({})).await;
    displaced(&fleet, "web", 3).await;
    tenant(&fleet, 2).await;
    pass(10).await;
    let explained = explain(&fleet, "web").await;
    assert_eq!(steps(&explained)["away"], (3, 3));
    let waits = "Replicas that stand in stay where they are until MultiClusterRescheduler back moves them";
    assert!(explained.summary.iter().any(|line| line.starts_with(waits)), "{:?}", explained.summary);
    let manifest =
        sized("web", 4, json!({"locations": ["home"], "enableSubstitution": true, "enableBursting": true}));
    let planned = plan(&fleet, &manifest).await;
    let expected = [("away", (3, 3)), ("home", (0, 1))].into();
    assert_eq!(steps(&planned), expected);
    apply(&fleet.hub.client("user"), &manifest).await;
    pass(20).await;
    assert_eq!(places(&fleet, "web").await, "away=3,home=1", "what was planned comes true");
    assert!(deployments(&fleet, HOME).get_opt("web").await.unwrap().is_some());
}

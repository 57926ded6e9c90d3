//! Two leaders at once: what an old one still sends must not count.

use crate::stage::{
    asking, condition, contend, deployments, events, fleet, pass, patch, replicas, status, workloads,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use portolan_api::MultiClusterDeploymentStatus;
use portolan_api::conditions::ConditionType;
use portolan_api::placement::Reservation;
use portolan_sandbox::{CrashPoint, FaultAnswer, FaultPlan, PartialFault, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, LEASE, STANDBY, apply};
use portolan_tests::workload;
use serde_json::{Value, json};

const EPOCH: &str = "portolan.dev/epoch";

/// The controller leads, the standby waits.
async fn two() -> (Fleet, Contender) {
    let fleet = fleet(FaultPlan::none()).await;
    let first = Contender::named(CONTROLLER);
    drop(contend(&fleet, first.clone()));
    pass(5).await;
    drop(contend(&fleet, Contender::named(STANDBY)));
    (fleet, first)
}

async fn reservation(fleet: &Fleet, name: &str) -> Reservation {
    status(fleet, name).await.reservation.unwrap_or_default()
}

async fn lease(fleet: &Fleet) -> Lease {
    let api: Api<Lease> = Api::namespaced(fleet.hub.client("user"), LEASE.0);
    api.get(LEASE.1).await.unwrap()
}

fn large(name: &str, more: Value) -> Value {
    let mut object = workload(name, 2, more);
    object["spec"]["template"]["spec"]["containers"] = asking("900m");
    object
}

/// How often a party was told that what it based a write on is outdated.
fn conflicts(fleet: &Fleet, party: &str, method: &str) -> usize {
    let lines = fleet.world.log().lines();
    lines
        .iter()
        .filter(|line| line.contains(party) && line.contains(method) && line.contains("-> 409"))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_is_replaced_and_does_not_come_back_uninvited() {
    let (fleet, _) = two().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(10).await;
    assert_eq!(reservation(&fleet, "web").await.holder, CONTROLLER);
    assert_eq!(reservation(&fleet, "web").await.epoch, 1);
    fleet.world.partition(CONTROLLER, "hub");
    pass(30).await;
    let taken = reservation(&fleet, "web").await;
    assert_eq!((taken.holder.as_str(), taken.epoch), (STANDBY, 2));
    let copy = deployments(&fleet, 0).get("web").await.unwrap();
    assert_eq!(copy.annotations().get(EPOCH).map(String::as_str), Some("2"), "copies carry the new epoch");
    patch(&fleet, "web", json!({"replicas": 1})).await;
    pass(10).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("1/1"));
    fleet.world.heal(CONTROLLER, "hub");
    pass(60).await;
    assert_eq!(reservation(&fleet, "web").await.holder, STANDBY, "nobody changes a leader without need");
    assert_eq!(lease(&fleet).await.spec.unwrap().lease_transitions, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_an_old_leader_sent_before_it_was_replaced_loses() {
    let (fleet, first) = two().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("idle", 1, json!({"locations": ["c3"]}))).await;
    pass(10).await;
    first.to_hub.close();
    // The old leader decides that "moved" goes to c2; the decision stays on its way while the user thinks better of it.
    apply(&user, &large("moved", json!({"locations": ["c2"]}))).await;
    pass(5).await;
    assert!(first.to_hub.held() > 0, "the old leader has sent its decision");
    patch(&fleet, "moved", json!({"locations": ["c3"]})).await;
    apply(&user, &large("other", json!({"locations": ["c2"]}))).await;
    pass(40).await;
    let summary = async |name| status(&fleet, name).await.locations_summary.unwrap_or_default();
    assert_eq!((summary("moved").await, summary("other").await), ("c3=2".to_owned(), "c2=2".to_owned()));
    assert_eq!(reservation(&fleet, "moved").await.holder, STANDBY);
    let before = conflicts(&fleet, CONTROLLER, "PUT");
    first.to_hub.open();
    pass(30).await;
    assert_eq!((summary("moved").await, summary("other").await), ("c3=2".to_owned(), "c2=2".to_owned()));
    assert_eq!(reservation(&fleet, "moved").await.epoch, 2);
    assert!(conflicts(&fleet, CONTROLLER, "PUT") > before, "the late decision was refused");
    assert_eq!(replicas(&fleet, 0, "moved").await, None, "the room was given once");
}

#[tokio::test(start_paused = true)]
async fn a_late_deletion_does_not_take_what_the_new_leader_keeps() {
    let (fleet, first) = two().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(10).await;
    let uid = deployments(&fleet, 0).get("web").await.unwrap().metadata.uid;
    patch(&fleet, "web", json!({"locations": ["c3"]})).await;
    // The copy in c3 is applied, then the old one is to be deleted: that request is held up.
    while replicas(&fleet, 1, "web").await.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    first.to_members.close();
    while first.to_members.held() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    fleet.world.partition(CONTROLLER, "hub");
    patch(&fleet, "web", json!({"locations": ["c2"]})).await;
    pass(40).await;
    assert_eq!(reservation(&fleet, "web").await.holder, STANDBY);
    first.to_members.open();
    pass(5).await;
    let copy = deployments(&fleet, 0).get("web").await.unwrap();
    assert_eq!(copy.metadata.uid, uid, "it was not deleted and made anew");
    assert!(conflicts(&fleet, CONTROLLER, "DELETE") > 0, "the late deletion was refused");
    assert_eq!(replicas(&fleet, 1, "web").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_late_apply_is_set_right_or_taken_away() {
    let (fleet, first) = two().await;
    let user = fleet.hub.client("user");
    pass(5).await;
    first.to_members.close();
    apply(&user, &workload("kept", 3, json!({"locations": ["c2"]}))).await;
    apply(&user, &workload("gone", 2, json!({"locations": ["c3"]}))).await;
    pass(5).await;
    assert!(first.to_members.held() >= 2, "both copies are on their way");
    fleet.world.partition(CONTROLLER, "hub");
    patch(&fleet, "kept", json!({"replicas": 1})).await;
    workloads(&fleet).delete("gone", &Default::default()).await.unwrap();
    pass(40).await;
    assert!(workloads(&fleet).get_opt("gone").await.unwrap().is_none());
    assert_eq!(replicas(&fleet, 0, "kept").await, Some(1));
    first.to_members.open();
    pass(20).await;
    assert_eq!(replicas(&fleet, 0, "kept").await, Some(1), "the new leader's number stands");
    assert_eq!(replicas(&fleet, 1, "gone").await, None, "no orphan");
    let (ready, _, message) = condition(&fleet, "kept", ConditionType::Ready).await;
    assert_eq!((ready.as_str(), message.as_str()), ("True", "1 of 1 replicas are ready"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_counts_on_where_it_was() {
    let (fleet, _) = two().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(10).await;
    fleet.world.partition(CONTROLLER, "hub");
    pass(30).await;
    fleet.world.heal(CONTROLLER, "hub");
    let before = reservation(&fleet, "web").await.epoch;
    let api: Api<Lease> = Api::namespaced(fleet.hub.client("user"), LEASE.0);
    api.delete(LEASE.1, &Default::default()).await.unwrap();
    pass(60).await;
    patch(&fleet, "web", json!({"replicas": 2})).await;
    pass(20).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"), "nothing is stuck");
    assert!(reservation(&fleet, "web").await.epoch > before);
}

/// The leader crashes around each of its requests in turn: between the decision and its effect, among others.
#[test]
fn killed_around_any_request_it_goes_on_from_what_was_reserved() {
    for (request, point) in (1..=40).zip([CrashPoint::Before, CrashPoint::After].into_iter().cycle()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(killed_around(request, point));
    }
}

async fn killed_around(request: u64, point: CrashPoint) {
    let fleet = fleet(FaultPlan::none().crash(CONTROLLER, request, point)).await;
    drop(contend(&fleet, Contender::named(CONTROLLER)));
    let user = fleet.hub.client("user");
    apply(&user, &large("one", json!({"locations": ["c2", "c3"]}))).await;
    apply(&user, &large("two", json!({"locations": ["c2"], "enableSubstitution": true}))).await;
    let placed = |status: &MultiClusterDeploymentStatus| -> i32 {
        status.placements.iter().map(|placed| placed.replicas).sum()
    };
    let mut reserved = 0;
    for _ in 0..25 {
        pass(1).await;
        let all = fleet.workloads().await;
        let sum = all.iter().filter_map(|each| each.status.as_ref()).map(placed).sum();
        assert!(sum >= reserved, "{request} {point:?}: a reservation of {reserved} became {sum}");
        reserved = sum;
    }
    let (one, two) = (status(&fleet, "one").await, status(&fleet, "two").await);
    let asked = |status: &MultiClusterDeploymentStatus| status.ready_replicas + status.pending_replicas;
    assert_eq!((asked(&one), asked(&two)), (4, 2), "{request} {point:?}: {one:?} {two:?}");
    assert!(one.ready_replicas + two.ready_replicas >= 4, "{request} {point:?}: room is left unused");
    for (member, most) in [(0, 2), (1, 3)] {
        let copies = deployments(&fleet, member).list(&Default::default()).await.unwrap().items;
        let held: i32 = copies.into_iter().filter_map(|copy| copy.spec?.replicas).sum();
        assert!(held <= most, "{request} {point:?}: {held} of {most}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_the_hub_finds_invalid_holds_up_no_other() {
    let (fleet, _) = two().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("large", 3, json!({"locations": ["c3"]}))).await;
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(10).await;
    // A definition that does not know what this leader writes of the one: no status of it passes.
    let name = "multiclusterdeployments.portolan.dev";
    let definition = portolan_api::crds().into_iter().find(|crd| crd.name_any() == name).unwrap();
    let mut crd = definition.clone();
    let schema = crd.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    let told = schema.properties.as_mut().unwrap().get_mut("status").unwrap();
    let rule = "self.replicas < 3 || !has(self.reservation) || self.reservation.epoch < 2".to_owned();
    let rule = ValidationRule { rule, ..ValidationRule::default() };
    told.x_kubernetes_validations.get_or_insert_default().push(rule);
    apply(&user, &serde_json::to_value(crd).unwrap()).await;
    fleet.world.partition(CONTROLLER, "hub");
    pass(40).await;
    patch(&fleet, "web", json!({"replicas": 2})).await;
    pass(10).await;
    let taken = reservation(&fleet, "web").await;
    assert_eq!((taken.holder.as_str(), taken.epoch), (STANDBY, 2));
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"));
    assert_eq!(reservation(&fleet, "large").await.epoch, 1, "its status cannot be written");
    assert!(events(&fleet, "large").await.contains(&"StatusRefused".to_owned()));
    assert_eq!(replicas(&fleet, 1, "large").await, Some(3), "what is placed stays");
    apply(&user, &serde_json::to_value(definition).unwrap()).await;
    patch(&fleet, "large", json!({"replicas": 2})).await;
    pass(60).await;
    assert_eq!(reservation(&fleet, "large").await.epoch, 2, "mended, it is claimed and decided");
    assert_eq!(status(&fleet, "large").await.ready_summary.as_deref(), Some("2/2"));
}

async fn annotate(fleet: &Fleet, member: usize, name: &str, epoch: i64) {
    let patch = json!({"metadata": {"annotations": {EPOCH: epoch.to_string()}}});
    let params = PatchParams::default();
    deployments(fleet, member).patch(name, &params, &Patch::Merge(patch)).await.unwrap();
}

async fn epoch_there(fleet: &Fleet, member: usize, name: &str) -> Option<String> {
    deployments(fleet, member).get(name).await.unwrap().annotations().get(EPOCH).cloned()
}

/// Holder, number and version of the term that the Lease names.
async fn leader(fleet: &Fleet) -> (String, i32) {
    let spec = lease(fleet).await.spec.unwrap();
    (spec.holder_identity.unwrap(), spec.lease_transitions.unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_epoch_on_a_copy_does_not_depose_the_leader() {
    let (fleet, _) = two().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(10).await;
    assert_eq!(leader(&fleet).await, (CONTROLLER.to_owned(), 1));
    for epoch in [2, 1_000_000, i64::from(i32::MAX), i64::from(i32::MAX) + 1, i64::MAX, -1] {
        annotate(&fleet, 0, "web", epoch).await;
        pass(5).await;
        assert_eq!(leader(&fleet).await, (CONTROLLER.to_owned(), 1), "{epoch}");
        assert_eq!(epoch_there(&fleet, 0, "web").await.as_deref(), Some("1"), "{epoch} is set back");
    }
    // As often as one likes: others are served as before.
    apply(&fleet.hub.client("user"), &workload("other", 1, json!({"locations": ["c3"]}))).await;
    for epoch in 10..60 {
        annotate(&fleet, 0, "web", epoch).await;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert_eq!(status(&fleet, "other").await.ready_summary.as_deref(), Some("1/1"));
    assert_eq!(leader(&fleet).await, (CONTROLLER.to_owned(), 1));
    // The fence between leaders still stands: the next one has a greater epoch, and makes all its own.
    annotate(&fleet, 0, "web", i64::MAX).await;
    fleet.world.partition(CONTROLLER, "hub");
    pass(40).await;
    assert_eq!(leader(&fleet).await, (STANDBY.to_owned(), 2));
    assert_eq!(reservation(&fleet, "web").await.epoch, 2);
    assert_eq!(epoch_there(&fleet, 0, "web").await.as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn an_epoch_in_a_status_does_not_depose_the_leader() {
    let (fleet, _) = two().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(10).await;
    for epoch in [777_777, i64::MAX] {
        let forged = json!({"status": {"reservation": {"epoch": epoch, "holder": "me"}}});
        let (api, params) = (workloads(&fleet), PatchParams::default());
        api.patch_status("web", &params, &Patch::Merge(forged)).await.unwrap();
        patch(&fleet, "web", json!({"replicas": if epoch == i64::MAX { 2 } else { 3 }})).await;
        pass(10).await;
        let taken = reservation(&fleet, "web").await;
        assert_eq!((taken.epoch, taken.holder.as_str()), (1, CONTROLLER), "{epoch} is written over");
        assert_eq!(leader(&fleet).await, (CONTROLLER.to_owned(), 1));
    }
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"), "and it is served");
}

#[tokio::test(start_paused = true)]
async fn a_hub_whose_lease_lost_its_count_goes_on_from_any_epoch() {
    let (fleet, _) = two().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    apply(&user, &workload("api", 1, json!({"locations": ["c3"]}))).await;
    pass(10).await;
    fleet.world.crash(CONTROLLER);
    fleet.world.crash(STANDBY);
    // As a backup of yesterday leaves it: the objects and their copies know terms that the Lease does not.
    for name in ["web", "api"] {
        let forged = json!({"status": {"reservation": {"epoch": 40, "holder": "somebody"}}});
        let params = PatchParams::default();
        workloads(&fleet).patch_status(name, &params, &Patch::Merge(forged)).await.unwrap();
    }
    annotate(&fleet, 0, "web", 41).await;
    let api: Api<Lease> = Api::namespaced(user.clone(), LEASE.0);
    api.delete(LEASE.1, &Default::default()).await.unwrap();
    pass(40).await;
    let (holder, epoch) = leader(&fleet).await;
    for name in ["web", "api"] {
        let claimed = reservation(&fleet, name).await;
        assert_eq!((claimed.holder, claimed.epoch), (holder.clone(), i64::from(epoch)), "{name}");
    }
    assert_eq!(epoch_there(&fleet, 0, "web").await, Some(epoch.to_string()));
    patch(&fleet, "web", json!({"replicas": 2})).await;
    pass(10).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"), "nothing is stuck");
}

/// A leader has placed two workloads.
async fn broken_and_web() -> Fleet {
    let fleet = fleet(FaultPlan::none()).await;
    drop(contend(&fleet, Contender::named(CONTROLLER)));
    let user = fleet.hub.client("user");
    for name in ["broken", "web"] {
        apply(&user, &workload(name, 1, json!({"locations": ["c2"]}))).await;
    }
    pass(10).await;
    fleet
}

/// The leader is cut off; its successor serves the one workload, and the other keeps what it had.
async fn only_the_broken_one_waits(fleet: &Fleet) {
    fleet.world.partition(CONTROLLER, "hub");
    pass(30).await;
    patch(fleet, "web", json!({"replicas": 2})).await;
    pass(180).await;
    assert_eq!(reservation(fleet, "web").await.holder, STANDBY);
    assert_eq!(status(fleet, "web").await.ready_summary.as_deref(), Some("2/2"), "the other is served");
    assert_eq!(replicas(fleet, 0, "broken").await, Some(1), "and what it had goes on");
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_status_cannot_be_written_holds_up_no_other() {
    let fleet = broken_and_web().await;
    let second = Contender::named(STANDBY);
    second.to_hub.refuse("hub", http::Method::PUT, "broken/status", 500, "etcd: request is too large");
    drop(contend(&fleet, second));
    only_the_broken_one_waits(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_status_write_is_never_answered_holds_up_no_other() {
    let fleet = broken_and_web().await;
    // A webhook of one tenant hangs.
    let writes = RequestFilter::any().party(STANDBY).cluster("hub").verb("update").name("broken");
    fleet.world.add_fault(PartialFault::new("hangs", writes, FaultAnswer::Hang));
    drop(contend(&fleet, Contender::named(STANDBY)));
    only_the_broken_one_waits(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn the_copies_of_a_paused_workload_are_claimed_too() {
    claimed_after(json!({"paused": true})).await;
}

#[tokio::test(start_paused = true)]
async fn the_copies_of_a_workload_about_which_nothing_can_be_decided_are_claimed_too() {
    let container = json!({"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "much"}}});
    claimed_after(json!({"template": {"spec": {"containers": [container]}}})).await;
}

/// The copies of a workload are claimed by a new leader although an edit leaves it nothing to do there.
async fn claimed_after(edit: Value) {
    let (fleet, first) = two().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(10).await;
    patch(&fleet, "web", edit).await;
    pass(5).await;
    let before = epoch_there(&fleet, 0, "web").await;
    drop(first);
    fleet.world.partition(CONTROLLER, "hub");
    pass(60).await;
    assert_eq!(reservation(&fleet, "web").await.holder, STANDBY);
    assert_ne!(epoch_there(&fleet, 0, "web").await, before, "what the first one saw of it is outdated");
}

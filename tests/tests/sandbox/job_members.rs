//! Jobs in members that are away, refuse or fail.

use super::jobs::{condition, in_member, jobs, status, stranger, there};
use super::stage::{contend, events, fleet, pass, start};
use kube::api::{DeleteParams, Patch, PatchParams};
use portolan_api::placement::PlacementState;
use portolan_sandbox::FaultPlan;
use portolan_tests::job;
use portolan_tests::simulation::{Contender, apply};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn deletion_waits_for_a_member_that_is_away_and_leaves_a_stranger_alone() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&fleet.members[0].client("user"), &stranger("taken")).await;
    apply(&user, &job("taken", 1, 1, json!({"locations": ["c2"]}))).await;
    apply(&user, &job("sum", 9, 1, json!({"locations": ["c2", "c3"]}))).await;
    pass(20).await;
    let taken = status(&fleet, "taken").await;
    assert_eq!(taken.placements[0].reason.as_deref(), Some("NameTaken"));
    fleet.world.partition("controller", "c3");
    pass(20).await;
    jobs(&fleet).delete("sum", &DeleteParams::default()).await.unwrap();
    jobs(&fleet).delete("taken", &DeleteParams::default()).await.unwrap();
    pass(20).await;
    assert_eq!(there(&fleet, 0, "sum").await, None);
    assert!(there(&fleet, 0, "taken").await.is_some());
    assert_eq!(condition(&status(&fleet, "sum").await, "Ready").1, "AwaitingMember");
    fleet.world.heal("controller", "c3");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(jobs(&fleet).get_opt("sum").await.unwrap().is_none());
    assert_eq!(there(&fleet, 1, "sum").await, None, "no orphan");
}

#[tokio::test(start_paused = true)]
async fn numbers_that_somebody_writes_on_a_job_are_set_back_and_count_for_nothing() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &job("sum", 6, 1, json!({"locations": ["c2"]}))).await;
    pass(15).await;
    for (attempt, finished) in [("4294967295", "4"), ("7", "5"), ("1", "9999999999")] {
        let forged = json!({"metadata": {"annotations": {
            "portolan.dev/attempt": attempt, "portolan.dev/finished-before": finished,
        }}});
        in_member(&fleet, 0).patch("sum", &PatchParams::default(), &Patch::Merge(forged)).await.unwrap();
        let version = async || jobs(&fleet).get("sum").await.unwrap().metadata.resource_version;
        pass(1).await;
        let annotations = there(&fleet, 0, "sum").await.unwrap().metadata.annotations.unwrap();
        assert_eq!(annotations["portolan.dev/attempt"], "0", "{attempt} is set back");
        assert_eq!(annotations["portolan.dev/finished-before"], "0", "{finished} is set back");
        let before = version().await;
        pass(1).await;
        assert_eq!(version().await, before, "and the status is not written again and again");
    }
    pass(70).await;
    let done = status(&fleet, "sum").await;
    assert_eq!((done.succeeded, done.placements[0].attempt, done.failed), (6, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn one_member_that_deletes_nothing_keeps_no_job_in_another() {
    let fleet = fleet(FaultPlan::none()).await;
    let contender = Contender::alone();
    let gate = contender.to_members.clone();
    let _controller = contend(&fleet, contender);
    apply(&fleet.hub.client("user"), &job("sum", 9, 1, json!({"locations": ["c2", "c3"]}))).await;
    pass(10).await;
    let words = format!("no: {}\u{1b}[2J\nforged", "x".repeat(1 << 20));
    gate.refuse("c2", http::Method::DELETE, "jobs", 500, &words);
    jobs(&fleet).delete("sum", &DeleteParams::default()).await.unwrap();
    pass(20).await;
    assert_eq!(there(&fleet, 1, "sum").await, None, "it goes where it can");
    let (held, reason, message) = condition(&status(&fleet, "sum").await, "Ready");
    assert_eq!((held.as_str(), reason.as_str()), ("False", "DeletionFailed"));
    assert!(message.contains("c2: ") && message.len() < 1000, "{} bytes", message.len());
    assert!(!message.contains('\u{1b}') && !message.contains('\n'), "{message}");
    gate.accept();
    pass(60).await;
    assert!(jobs(&fleet).get_opt("sum").await.unwrap().is_none());
    assert_eq!(there(&fleet, 0, "sum").await, None);
}

#[tokio::test(start_paused = true)]
async fn one_member_that_fails_is_told_and_the_others_get_their_jobs() {
    let fleet = fleet(FaultPlan::none()).await;
    let contender = Contender::alone();
    let gate = contender.to_members.clone();
    gate.refuse("c2", http::Method::PATCH, "jobs", 500, "the webhook is down");
    let _controller = contend(&fleet, contender);
    apply(&fleet.hub.client("user"), &job("sum", 1, 1, json!({"locations": ["c2", "c3"]}))).await;
    pass(30).await;
    let half = status(&fleet, "sum").await;
    assert_eq!(half.succeeded, 1);
    assert_eq!(half.placements[0].reason.as_deref(), Some("MemberError"), "{half:?}");
    assert!(half.placements[0].message.as_deref().unwrap().contains("the webhook is down"));
    gate.accept();
    pass(90).await;
    assert_eq!(condition(&status(&fleet, "sum").await, "Complete").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_lost_its_label_goes_on_and_gets_it_back() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &job("sum", 3, 1, json!({"locations": ["c2"]}))).await;
    pass(5).await;
    let uid = there(&fleet, 0, "sum").await.unwrap().metadata.uid;
    for label in ["portolan.dev/workload", "portolan.dev/hub"] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: null}}}));
        in_member(&fleet, 0).patch("sum", &PatchParams::default(), &patch).await.unwrap();
        pass(5).await;
        let job = there(&fleet, 0, "sum").await.unwrap();
        assert_eq!(job.metadata.uid, uid, "running work is not killed for {label}");
        assert!(job.metadata.labels.unwrap().contains_key(label), "{label} is back");
    }
    pass(40).await;
    assert_eq!(condition(&status(&fleet, "sum").await, "Complete").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_lost_its_labels_after_a_completion_goes_on_too_also_a_numbered_one() {
    let (fleet, _controller) = start().await;
    for (name, mode) in [("sum", "NonIndexed"), ("numbered", "Indexed")] {
        let more = json!({"locations": ["c2"], "completionMode": mode});
        apply(&fleet.hub.client("user"), &job(name, 5, 1, more)).await;
        pass(15).await;
        assert_eq!(status(&fleet, name).await.succeeded, 1);
        let uid = there(&fleet, 0, name).await.unwrap().metadata.uid;
        for lost in [
            json!({"portolan.dev/hub": null}),
            json!({"portolan.dev/hub": null, "portolan.dev/workload": null}),
        ] {
            let patch = Patch::Merge(json!({"metadata": {"labels": lost}}));
            in_member(&fleet, 0).patch(name, &PatchParams::default(), &patch).await.unwrap();
            pass(5).await;
            let job = there(&fleet, 0, name).await.unwrap();
            assert_eq!(job.metadata.uid, uid, "running work is not killed for {lost}");
            assert_eq!(job.spec.unwrap().suspend, Some(false));
            let labels = job.metadata.labels.unwrap();
            assert!(
                ["portolan.dev/hub", "portolan.dev/workload"].iter().all(|label| labels.contains_key(*label))
            );
        }
        pass(40).await;
        let done = status(&fleet, name).await;
        assert_eq!(condition(&done, "Complete").0, "True", "{name}: {done:?}");
        assert_eq!((done.succeeded, done.failed, done.placements[0].attempt), (5, 0, 0));
        assert_eq!(there(&fleet, 0, name).await.unwrap().metadata.uid, uid);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_job_that_its_cluster_refuses_is_told() {
    let fleet = fleet(FaultPlan::none()).await;
    let contender = Contender::alone();
    let gate = contender.to_members.clone();
    let _controller = contend(&fleet, contender);
    apply(&fleet.hub.client("user"), &job("sum", 40, 1, json!({"locations": ["c2"]}))).await;
    pass(15).await;
    gate.refuse("c2", http::Method::PATCH, "jobs", 422, "the policy of this cluster forbids it");
    for (change, reason) in [(json!({"parallelism": 2}), "Running"), (json!({"suspend": true}), "Suspended")]
    {
        let patch = Patch::Merge(json!({ "spec": change }));
        jobs(&fleet).patch("sum", &PatchParams::default(), &patch).await.unwrap();
        pass(5).await;
        let told = status(&fleet, "sum").await;
        assert_eq!(told.placements[0].reason.as_deref(), Some("Refused"), "{change}: {told:?}");
        assert!(told.placements[0].message.as_deref().unwrap().contains("forbids it"));
        let (ready, why, message) = condition(&told, "Ready");
        assert_eq!((ready.as_str(), why.as_str()), ("False", "Failed"), "{change}");
        assert!(message.contains("c2: ") && message.contains("forbids it"), "{message}");
        gate.accept();
        pass(70).await;
        let told = status(&fleet, "sum").await;
        assert_eq!(condition(&told, "Ready").1, reason, "{change}: {told:?}");
        assert_eq!(told.placements[0].reason, None);
        gate.refuse("c2", http::Method::PATCH, "jobs", 422, "the policy of this cluster forbids it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_template_does_not_fit_the_schema_is_refused_and_told() {
    let (fleet, _controller) = start().await;
    let mut odd = job("sum", 1, 1, json!({"locations": ["c2"]}));
    odd["spec"]["template"]["spec"]["fieldOfTomorrow"] = json!(true);
    apply(&fleet.hub.client("user"), &odd).await;
    pass(20).await;
    let told = status(&fleet, "sum").await;
    assert_eq!(told.placements[0].reason.as_deref(), Some("Refused"), "{told:?}");
    assert_eq!(told.placements[0].state, PlacementState::Failed);
    let (ready, why, message) = condition(&told, "Ready");
    assert_eq!((ready.as_str(), why.as_str()), ("False", "Failed"), "{message}");
    assert!(message.contains("fieldOfTomorrow: field not declared in schema"), "{message}");
    assert!(events(&fleet, "sum").await.contains(&"Refused".to_owned()));
}

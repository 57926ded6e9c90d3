//! MultiClusterJobs on the sandbox, on virtual time. A pod of a job runs for ten seconds.

use super::stage::{asking, contend, events, fleet, pass, start};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use portolan_api::multiclusterjob::{JobRelease, MultiClusterJobStatus};
use portolan_api::{MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use portolan_runtime::REQUEST_LIMIT;
use portolan_sandbox::FaultPlan;
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, STANDBY, apply};
use portolan_tests::{NAMESPACE, job, open_namespace, service, workload};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn jobs(fleet: &Fleet) -> Api<MultiClusterJob> {
    Api::namespaced(fleet.hub.client("user"), NAMESPACE)
}

pub(super) fn in_member(fleet: &Fleet, member: usize) -> Api<Job> {
    Api::namespaced(fleet.members[member].client("user"), NAMESPACE)
}

pub(super) async fn status(fleet: &Fleet, name: &str) -> MultiClusterJobStatus {
    jobs(fleet).get(name).await.unwrap().status.unwrap_or_default()
}

pub(super) async fn there(fleet: &Fleet, member: usize, name: &str) -> Option<Job> {
    in_member(fleet, member).get_opt(name).await.unwrap()
}

async fn patch(fleet: &Fleet, name: &str, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    jobs(fleet).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

pub(super) fn condition(status: &MultiClusterJobStatus, type_: &str) -> (String, String, String) {
    let found = status.conditions.iter().find(|each| each.type_ == type_);
    let found = found.cloned().unwrap_or_else(|| unreachable!("no condition {type_}: {status:?}"));
    (found.status, found.reason, found.message)
}

/// The pods that have finished successfully in all members, by uid.
async fn finished(fleet: &Fleet, seen: &mut BTreeSet<String>) {
    for member in &fleet.members {
        let pods: Api<Pod> = Api::namespaced(member.client("user"), NAMESPACE);
        for pod in pods.list(&ListParams::default()).await.unwrap().items {
            if pod.status.and_then(|status| status.phase).as_deref() == Some("Succeeded") {
                seen.insert(pod.metadata.uid.unwrap());
            }
        }
    }
}

/// Lets time pass, looking every second which pods have finished.
async fn watch(fleet: &Fleet, seconds: u64, seen: &mut BTreeSet<String>) {
    for _ in 0..seconds {
        pass(1).await;
        finished(fleet, seen).await;
    }
}

async fn fail(fleet: &Fleet, member: usize, name: &str) {
    let failed =
        json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"});
    let patch = Patch::Merge(json!({"status": {"conditions": [failed]}}));
    in_member(fleet, member).patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

fn config(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"key": value},
    })
}

/// A job whose pods take their environment from a ConfigMap.
fn needing(name: &str, config: &str, more: Value) -> Value {
    let mut object = job(name, 4, 1, more);
    object["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef": {"name": config}}]);
    object
}

async fn carried(fleet: &Fleet, member: usize, name: &str) -> Option<String> {
    let api: Api<ConfigMap> = Api::namespaced(fleet.members[member].client("user"), NAMESPACE);
    api.get_opt(name).await.unwrap()?.data?.get("key").cloned()
}

/// A Job of somebody else.
pub(super) fn stranger(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    })
}

/// Lets no new pod onto the nodes of a member, or lets them on again.
async fn cordon(fleet: &Fleet, member: usize, cordoned: bool) {
    let nodes: Api<Node> = Api::all(fleet.members[member].client("user"));
    for node in nodes.list(&ListParams::default()).await.unwrap().items {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": cordoned}}));
        nodes.patch(&node.metadata.name.unwrap(), &PatchParams::default(), &patch).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_total_is_divided_exactly_and_every_completion_runs_once() {
    let (fleet, _controller) = start().await;
    let total = json!({"locations": ["c2", "c3"], "countMode": "Total"});
    apply(&fleet.hub.client("user"), &job("sum", 7, 3, total)).await;
    pass(5).await;
    let begun = status(&fleet, "sum").await;
    assert_eq!(begun.locations_summary.as_deref(), Some("c2=5,c3=2"));
    let asked = |job: Job| job.spec.map(|spec| (spec.completions.unwrap(), spec.parallelism.unwrap()));
    assert_eq!(there(&fleet, 0, "sum").await.and_then(asked), Some((5, 2)));
    assert_eq!(there(&fleet, 1, "sum").await.and_then(asked), Some((2, 1)));
    assert_eq!(condition(&begun, "Placed").0, "True");
    assert_eq!(condition(&begun, "Complete").0, "False");
    let running = condition(&begun, "Ready");
    assert_eq!((running.0.as_str(), running.1.as_str()), ("True", "Running"), "a job that runs is well");
    assert_eq!(condition(&begun, "Suspended").0, "False");
    let mut seen = BTreeSet::new();
    watch(&fleet, 80, &mut seen).await;
    let done = status(&fleet, "sum").await;
    assert_eq!((done.succeeded, done.active, done.failed), (7, 0, 0));
    assert_eq!(done.completions_summary.as_deref(), Some("7/7"));
    assert_eq!(condition(&done, "Complete").0, "True");
    assert_eq!(condition(&done, "Ready").0, "True");
    assert!(done.start_time.is_some() && done.completion_time > done.start_time);
    assert_eq!(seen.len(), 7, "no more pods than completions");
}

#[tokio::test(start_paused = true)]
async fn finished_work_is_not_run_again_when_its_job_or_the_controller_is_gone() {
    let (fleet, controller) = start().await;
    apply(&fleet.hub.client("user"), &job("sum", 6, 2, json!({"locations": ["c2"]}))).await;
    let mut seen = BTreeSet::new();
    watch(&fleet, 25, &mut seen).await;
    let before = status(&fleet, "sum").await.succeeded;
    assert!((2..6).contains(&before), "{before}");
    in_member(&fleet, 0).delete("sum", &DeleteParams::background()).await.unwrap();
    pass(5).await;
    let again = there(&fleet, 0, "sum").await.unwrap();
    assert_eq!(again.spec.unwrap().completions, Some(6 - before), "only what is open");
    assert_eq!(again.metadata.annotations.unwrap()["portolan.dev/attempt"], "1");
    assert_eq!(status(&fleet, "sum").await.succeeded, before, "what is finished stays finished");
    controller.abort();
    watch(&fleet, 40, &mut seen).await;
    let _controller = contend(&fleet, Contender::alone());
    watch(&fleet, 10, &mut seen).await;
    let done = status(&fleet, "sum").await;
    assert_eq!((done.succeeded, condition(&done, "Complete").0.as_str()), (6, "True"));
    assert_eq!(seen.len(), 6);
    // Nothing is made anew once all is done, whoever deletes what.
    in_member(&fleet, 0).delete("sum", &DeleteParams::background()).await.unwrap();
    pass(30).await;
    assert_eq!(there(&fleet, 0, "sum").await, None);
    assert_eq!(status(&fleet, "sum").await.succeeded, 6);
}

#[tokio::test(start_paused = true)]
async fn work_is_not_begun_elsewhere_when_nobody_answered_whether_it_was_begun() {
    let fleet = fleet(FaultPlan::none()).await;
    let contender = Contender::alone();
    let _controller = contend(&fleet, contender.clone());
    pass(5).await;
    contender.to_members.close();
    let one = json!({"placementPolicy": "worst-fit", "numberOfLocations": 1});
    apply(&fleet.hub.client("user"), &job("sum", 3, 1, one)).await;
    pass(5).await;
    assert_eq!(status(&fleet, "sum").await.locations_summary.as_deref(), Some("c3=3"));
    assert_eq!(contender.to_members.held(), 1, "the Job is on its way");
    let mut closed = open_namespace();
    closed["metadata"]["labels"]["portolan.dev/placement"] = json!("closed");
    apply(&fleet.members[1].client("user"), &closed).await;
    pass(REQUEST_LIMIT.as_secs()).await;
    let place = status(&fleet, "sum").await.locations_summary;
    assert_eq!(place.as_deref(), Some("c3=3"), "it may have been made there");
    contender.to_members.open();
    let mut seen = BTreeSet::new();
    watch(&fleet, 80, &mut seen).await;
    let done = status(&fleet, "sum").await;
    assert_eq!((done.succeeded, condition(&done, "Complete").0.as_str()), (3, "True"), "{done:?}");
    assert_eq!(seen.len(), 3, "no more pods than completions");
}

#[tokio::test(start_paused = true)]
async fn a_silent_cluster_keeps_its_part_and_is_counted_when_it_returns() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &job("sum", 3, 1, json!({"locations": ["c2", "c3"]}))).await;
    pass(15).await;
    fleet.world.partition("controller", "c3");
    let mut seen = BTreeSet::new();
    watch(&fleet, 60, &mut seen).await;
    let silent = status(&fleet, "sum").await;
    assert_eq!(silent.locations_summary.as_deref(), Some("c2=3,c3=3"), "nobody else gets its completions");
    assert_eq!(condition(&silent, "Ready").0, "Unknown");
    assert!((3..6).contains(&silent.succeeded), "{}", silent.succeeded);
    fleet.world.heal("controller", "c3");
    watch(&fleet, 40, &mut seen).await;
    let done = status(&fleet, "sum").await;
    assert_eq!((done.succeeded, condition(&done, "Complete").0.as_str()), (6, "True"));
    assert_eq!(seen.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_silent_for_too_long_is_replaced_and_never_counted_twice() {
    let (fleet, _controller) = start().await;
    let replaced = json!({"locations": ["c3"], "onUnreachable": "ReplaceAfter", "replaceAfter": "60s"});
    apply(&fleet.hub.client("user"), &job("sum", 8, 1, replaced)).await;
    pass(25).await;
    fleet.world.partition("controller", "c3");
    pass(120).await;
    let moved = status(&fleet, "sum").await;
    let (here, gone) = (&moved.placements[0], &moved.placements[1]);
    assert_eq!((here.cluster.as_str(), here.completions + gone.completions), ("c2", 8));
    assert_eq!(gone.reason.as_deref(), Some("Replaced"));
    assert!(gone.message.as_deref().unwrap().contains("may run twice"), "at least once is said");
    fleet.world.heal("controller", "c3");
    pass(120).await;
    let done = status(&fleet, "sum").await;
    assert_eq!((done.succeeded, condition(&done, "Complete").0.as_str()), (8, "True"), "{done:?}");
    assert_eq!(there(&fleet, 1, "sum").await, None, "what is superseded is taken away");
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_fails_the_whole_or_is_retried_elsewhere() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &job("strict", 4, 1, json!({"locations": ["c2", "c3"]}))).await;
    let retried = json!({"locations": ["c2"], "onFailure": "RetryElsewhere", "retryLimit": 1});
    apply(&user, &job("kind", 4, 1, retried)).await;
    pass(25).await;
    fail(&fleet, 0, "strict").await;
    fail(&fleet, 0, "kind").await;
    pass(20).await;
    let strict = status(&fleet, "strict").await;
    assert_eq!(condition(&strict, "Failed").1, "JobFailed");
    assert!(condition(&strict, "Failed").2.contains("BackoffLimitExceeded"));
    let other = there(&fleet, 1, "strict").await.unwrap();
    assert_eq!(other.spec.unwrap().suspend, Some(true), "the rest is stopped");
    let kind = status(&fleet, "kind").await;
    assert_eq!(kind.retries, 1);
    assert_eq!(kind.placements[0].released, Some(JobRelease::Failed));
    assert_eq!(kind.placements[0].completions + kind.placements[1].completions, 4);
    pass(60).await;
    let kind = status(&fleet, "kind").await;
    assert_eq!((kind.succeeded, condition(&kind, "Complete").0.as_str()), (4, "True"));
}

#[tokio::test(start_paused = true)]
async fn suspended_work_stops_and_goes_on_where_it_was_with_another_template() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &job("sum", 4, 1, json!({"locations": ["c2"]}))).await;
    pass(25).await;
    patch(&fleet, "sum", json!({"suspend": true})).await;
    pass(10).await;
    let held = status(&fleet, "sum").await;
    assert_eq!((held.active, condition(&held, "Ready").1.as_str()), (0, "Suspended"));
    assert_eq!(condition(&held, "Suspended").0, "True");
    assert!((1..4).contains(&held.succeeded), "{}", held.succeeded);
    pass(60).await;
    assert_eq!(status(&fleet, "sum").await.succeeded, held.succeeded, "no pod runs");
    let image = json!([{"name": "main", "image": "other:2", "resources": {"requests": {"cpu": "10m"}}}]);
    patch(
        &fleet,
        "sum",
        json!({"suspend": false, "parallelism": 2, "template": {"spec": {"containers": image}}}),
    )
    .await;
    pass(10).await;
    let resumed = there(&fleet, 0, "sum").await.unwrap().spec.unwrap();
    assert_eq!(resumed.completions, Some(4 - held.succeeded));
    assert_eq!(resumed.template.spec.unwrap().containers[0].image.as_deref(), Some("other:2"));
    pass(40).await;
    let done = status(&fleet, "sum").await;
    assert_eq!((done.succeeded, condition(&done, "Complete").0.as_str()), (4, "True"));
}

#[tokio::test(start_paused = true)]
async fn numbered_work_that_was_suspended_goes_on_with_the_template_that_it_began_with() {
    let (fleet, _controller) = start().await;
    let numbered = json!({"locations": ["c2"], "completionMode": "Indexed"});
    apply(&fleet.hub.client("user"), &job("sum", 4, 1, numbered)).await;
    pass(15).await;
    patch(&fleet, "sum", json!({"suspend": true})).await;
    pass(10).await;
    assert_eq!(status(&fleet, "sum").await.succeeded, 1);
    let image = json!([{"name": "main", "image": "other:2", "resources": {"requests": {"cpu": "10m"}}}]);
    let change = json!({"suspend": false, "parallelism": 2, "template": {"spec": {"containers": image}}});
    patch(&fleet, "sum", change).await;
    pass(10).await;
    let resumed = there(&fleet, 0, "sum").await.unwrap().spec.unwrap();
    assert_eq!((resumed.suspend, resumed.parallelism), (Some(false), Some(2)));
    assert_ne!(resumed.template.spec.unwrap().containers[0].image.as_deref(), Some("other:2"));
    pass(40).await;
    let done = status(&fleet, "sum").await;
    assert_eq!((done.succeeded, condition(&done, "Complete").0.as_str()), (4, "True"), "{done:?}");
    assert_eq!(done.placements[0].attempt, 0);
}

#[tokio::test(start_paused = true)]
async fn times_are_kept_over_a_restart_the_deadline_and_the_time_to_live() {
    let (fleet, controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &job("late", 9, 1, json!({"locations": ["c2"], "activeDeadlineSeconds": 35}))).await;
    apply(&user, &job("brief", 1, 1, json!({"locations": ["c3"], "ttlSecondsAfterFinished": 60}))).await;
    pass(20).await;
    assert_eq!(condition(&status(&fleet, "brief").await, "Complete").0, "True");
    controller.abort();
    pass(10).await;
    let _controller = contend(&fleet, Contender::alone());
    pass(15).await;
    let late = status(&fleet, "late").await;
    assert_eq!(condition(&late, "Failed").1, "DeadlineExceeded");
    assert_eq!((late.active, late.succeeded < 9), (0, true));
    assert!(jobs(&fleet).get_opt("brief").await.unwrap().is_some());
    pass(40).await;
    assert!(jobs(&fleet).get_opt("brief").await.unwrap().is_none(), "its time to live is over");
    assert_eq!(there(&fleet, 1, "brief").await, None, "with its Jobs");
}

#[tokio::test(start_paused = true)]
async fn jobs_and_deployments_never_count_the_same_room_twice() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let mut sum = job("sum", 6, 4, json!({"locations": ["c2"]}));
    sum["spec"]["template"]["spec"]["containers"] = asking("600m");
    let mut web = workload("web", 4, json!({"locations": ["c2"]}));
    web["spec"]["template"]["spec"]["containers"] = asking("600m");
    apply(&user, &sum).await;
    apply(&user, &web).await;
    let pods: Api<Pod> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    for _ in 0..60 {
        pass(1).await;
        for pod in pods.list(&ListParams::default()).await.unwrap().items {
            let waits = pod.status.and_then(|status| status.conditions).into_iter().flatten();
            let stuck = waits.into_iter().any(|each| each.type_ == "PodScheduled" && each.status == "False");
            assert!(!stuck, "{:?} has no room", pod.metadata.name);
        }
    }
    let done = status(&fleet, "sum").await;
    assert_eq!(condition(&done, "Complete").0, "True", "{done:?}");
    let api: Api<MultiClusterDeployment> = Api::namespaced(user, NAMESPACE);
    let web = api.get("web").await.unwrap().status.unwrap();
    assert_eq!((web.ready_replicas, web.pending_replicas), (3, 1), "the room that the job has left is used");
}

#[tokio::test(start_paused = true)]
async fn pending_work_says_why_and_starts_when_there_is_room() {
    let (fleet, _controller) = start().await;
    let mut large = job("large", 2, 1, json!({"locations": ["c2"]}));
    large["spec"]["template"]["spec"]["containers"] = asking("3");
    apply(&fleet.hub.client("user"), &large).await;
    pass(10).await;
    let waiting = status(&fleet, "large").await;
    assert_eq!((waiting.pending_completions, waiting.pending[0].reason.as_str()), (2, "NoRoom"));
    assert_eq!(condition(&waiting, "Placed").1, "Pending");
    patch(&fleet, "large", json!({"locations": ["c3"]})).await;
    pass(40).await;
    let done = status(&fleet, "large").await;
    assert_eq!(condition(&done, "Complete").0, "True", "{done:?}");
}

#[tokio::test(start_paused = true)]
async fn work_starts_when_a_namespace_opens() {
    let (fleet, _controller) = start().await;
    let mut closed = open_namespace();
    closed["metadata"]["labels"]["portolan.dev/placement"] = json!("closed");
    apply(&fleet.members[0].client("user"), &closed).await;
    apply(&fleet.hub.client("user"), &job("sum", 2, 2, json!({"locations": ["c2", "c3"]}))).await;
    pass(30).await;
    let waiting = status(&fleet, "sum").await;
    assert_eq!((waiting.succeeded, waiting.pending_completions), (2, 2));
    assert_eq!(waiting.pending[0].reason, "NamespaceClosed");
    apply(&fleet.members[0].client("user"), &open_namespace()).await;
    pass(1).await;
    assert_eq!(status(&fleet, "sum").await.pending_completions, 0, "within a second");
    pass(15).await;
    assert_eq!(condition(&status(&fleet, "sum").await, "Complete").0, "True");
}

#[tokio::test(start_paused = true)]
async fn work_whose_pods_find_no_node_goes_to_another_cluster() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &job("bound", 4, 2, json!({"locations": ["c2"]}))).await;
    apply(&user, &job("free", 6, 2, json!({"locations": ["c2"], "enableSubstitution": true}))).await;
    let mut seen = BTreeSet::new();
    watch(&fleet, 5, &mut seen).await;
    cordon(&fleet, 0, true).await;
    watch(&fleet, 60, &mut seen).await;
    let bound = status(&fleet, "bound").await;
    assert_eq!((bound.locations_summary.as_deref(), bound.succeeded), (Some("c2=4"), 2));
    assert_eq!(bound.placements[0].reason.as_deref(), Some("NoRoom"), "{bound:?}");
    assert_eq!(condition(&bound, "Ready").1, "Waiting");
    let free = status(&fleet, "free").await;
    assert_eq!(free.locations_summary.as_deref(), Some("c2=2,c3=4"), "{free:?}");
    assert_eq!((free.succeeded, condition(&free, "Complete").0.as_str()), (6, "True"));
    assert_eq!((free.placements[0].released, free.retries), (Some(JobRelease::NoRoom), 0));
    assert!(
        free.placements[0]
            .message
            .as_deref()
            .unwrap()
            .contains("1 of 1 nodes: cordoned; what was open was given"),
        "{free:?}"
    );
    assert_eq!(there(&fleet, 0, "free").await, None, "what is superseded is taken away");
    cordon(&fleet, 0, false).await;
    watch(&fleet, 30, &mut seen).await;
    assert_eq!(condition(&status(&fleet, "bound").await, "Complete").0, "True");
    assert!(seen.len() <= 10, "no completion ran twice: {}", seen.len());
}

#[tokio::test(start_paused = true)]
async fn what_one_cluster_refuses_runs_in_another_where_the_policy_allows() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    for name in ["free", "bound", "total"] {
        apply(&fleet.members[0].client("user"), &stranger(name)).await;
    }
    apply(&user, &job("bound", 2, 2, json!({"locations": ["c2"]}))).await;
    apply(&user, &job("free", 2, 2, json!({"locations": ["c2"], "enableSubstitution": true}))).await;
    apply(&user, &job("total", 5, 5, json!({"locations": ["c2", "c3"], "countMode": "Total"}))).await;
    pass(40).await;
    let bound = status(&fleet, "bound").await;
    assert_eq!((bound.succeeded, bound.placements[0].reason.as_deref()), (0, Some("NameTaken")));
    assert_eq!(condition(&bound, "Ready").1, "Failed");
    for (name, completions) in [("free", 2), ("total", 5)] {
        let done = status(&fleet, name).await;
        assert_eq!(
            (done.succeeded, condition(&done, "Complete").0.as_str()),
            (completions, "True"),
            "{done:?}"
        );
        let refused = &done.placements[0];
        assert_eq!((refused.cluster.as_str(), refused.completions), ("c2", 0));
        assert_eq!(
            (refused.released, refused.reason.as_deref()),
            (Some(JobRelease::Refused), Some("NameTaken"))
        );
        assert!(refused.message.as_deref().unwrap().contains("rename one of the two"), "{refused:?}");
        assert!(there(&fleet, 0, name).await.is_some(), "a stranger's Job stays");
        assert!(events(&fleet, name).await.contains(&"Rescheduled".to_owned()));
    }
    in_member(&fleet, 0).delete("bound", &DeleteParams::background()).await.unwrap();
    pass(80).await;
    assert_eq!(condition(&status(&fleet, "bound").await, "Complete").0, "True", "it is tried again");
}

#[tokio::test(start_paused = true)]
async fn what_all_clusters_refuse_is_tried_less_and_less_until_something_changes() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    for member in &fleet.members {
        apply(&member.client("user"), &stranger("free")).await;
    }
    let attempts = async || {
        let placements = status(&fleet, "free").await.placements;
        placements.iter().map(|placed| placed.attempt).sum::<i32>()
    };
    let told = async || events(&fleet, "free").await.iter().filter(|each| *each == "Rescheduled").count();
    apply(&user, &job("free", 2, 2, json!({"locations": ["c2"], "enableSubstitution": true}))).await;
    pass(200).await;
    let (soon, events_soon) = (attempts().await, told().await);
    assert!(soon >= 3, "it is tried again and again at first: {soon}");
    pass(7200).await;
    let later = attempts().await;
    // Each of the two is tried every ten minutes at last.
    assert!((8..=40).contains(&(later - soon)), "{soon} attempts at first, {later} after two hours");
    assert_eq!((told().await, events_soon), (2, 2), "each cluster's reason is told once");
    let reasons = status(&fleet, "free").await;
    assert!(
        reasons.placements.iter().any(|placed| placed.reason.as_deref() == Some("NameTaken")),
        "{reasons:?}"
    );

    patch(&fleet, "free", json!({"parallelism": 1})).await;
    pass(5).await;
    assert!(attempts().await > later, "a change of the job is tried at once");
    pass(7200).await;
    in_member(&fleet, 1).delete("free", &DeleteParams::background()).await.unwrap();
    pass(1).await;
    assert!(there(&fleet, 1, "free").await.is_none(), "nothing tells of it: it is not tried at once");
    let spaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(fleet.members[1].client("user"));
    for label in [json!(null), json!(portolan_control::names::OPT_IN)] {
        let patch =
            Patch::Merge(json!({"metadata": {"labels": {portolan_control::names::OPT_IN_LABEL: label}}}));
        spaces.patch(NAMESPACE, &PatchParams::default(), &patch).await.unwrap();
        pass(2).await;
    }
    pass(40).await;
    assert_eq!(
        condition(&status(&fleet, "free").await, "Complete").0,
        "True",
        "the namespace was opened anew"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_job_refers_to_follows_it_stays_current_and_goes_with_it() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &config("settings", "one")).await;
    apply(&fleet.members[0].client("user"), &config("theirs", "another")).await;
    apply(&user, &config("theirs", "ours")).await;
    apply(&user, &needing("sum", "settings", json!({"locations": ["c2"]}))).await;
    apply(&user, &needing("late", "absent", json!({"locations": ["c3"]}))).await;
    apply(&user, &needing("free", "theirs", json!({"locations": ["c2"], "enableSubstitution": true}))).await;
    pass(5).await;
    let there = |member: usize, name: &'static str| carried(&fleet, member, name);
    assert_eq!(there(0, "settings").await.as_deref(), Some("one"));
    assert_eq!(there(1, "settings").await, None, "only where it is needed");
    assert_eq!(condition(&status(&fleet, "sum").await, "DependenciesReady").0, "True");
    let late = condition(&status(&fleet, "late").await, "DependenciesReady");
    assert_eq!((late.0.as_str(), late.1.as_str()), ("False", "DependencyNotFound"));
    assert!(late.2.contains("lacks ConfigMap absent"), "{}", late.2);
    let free = status(&fleet, "free").await;
    assert_eq!(free.locations, ["c3"], "where its ConfigMap can be: {free:?}");
    assert_eq!(free.placements[0].reason.as_deref(), Some("NameTaken"));
    assert_eq!(
        (there(0, "theirs").await.as_deref(), there(1, "theirs").await.as_deref()),
        (Some("another"), Some("ours"))
    );
    apply(&user, &config("settings", "two")).await;
    apply(&user, &config("absent", "three")).await;
    pass(2).await;
    assert_eq!(there(0, "settings").await.as_deref(), Some("two"), "it is kept current");
    assert_eq!(there(1, "absent").await.as_deref(), Some("three"), "it comes when it is made");
    assert_eq!(condition(&status(&fleet, "late").await, "DependenciesReady").0, "True");
    jobs(&fleet).delete("sum", &DeleteParams::default()).await.unwrap();
    pass(20).await;
    assert!(jobs(&fleet).get_opt("sum").await.unwrap().is_none());
    assert_eq!(there(0, "settings").await, None, "it goes with the last that needs it");
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_makes_jobs_and_services_its_own_before_it_decides() {
    let fleet = fleet(FaultPlan::none()).await;
    drop(contend(&fleet, Contender::named(CONTROLLER)));
    pass(5).await;
    drop(contend(&fleet, Contender::named(STANDBY)));
    let user = fleet.hub.client("user");
    apply(&user, &job("sum", 1, 1, json!({"locations": ["c2"]}))).await;
    apply(&user, &service("web", json!({"app": "web"}))).await;
    pass(30).await;
    let done = status(&fleet, "sum").await;
    assert_eq!((done.succeeded, done.reservation.map(|by| by.epoch)), (1, Some(1)));
    fleet.world.partition(CONTROLLER, "hub");
    pass(60).await;
    // Nothing has happened to them that would have to be decided.
    let claimed = status(&fleet, "sum").await.reservation.unwrap();
    assert_eq!((claimed.epoch, claimed.holder.as_str()), (2, STANDBY));
    let services: Api<MultiClusterService> = Api::namespaced(user, NAMESPACE);
    let claimed = services.get("web").await.unwrap().status.unwrap().reservation.unwrap();
    assert_eq!((claimed.epoch, claimed.holder.as_str()), (2, STANDBY));
}

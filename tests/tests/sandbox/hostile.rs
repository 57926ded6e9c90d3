//! A member that answers whatever it likes costs only itself: workloads in honest members are placed, scaled and
//! deleted as always, and its ForeignCluster says what is wrong.

use crate::stage::{condition, contend, fleet_of, pass, patch, ready, replicas, status, workloads};
use kube::Api;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, MultiClusterJob};
use portolan_sandbox::{FaultPlan, HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, job, workload};
use serde_json::json;
use tokio::task::JoinHandle;

/// The hostile member is first in the alphabet, the honest one last.
const EVIL: &str = "a-evil";
const HONEST: usize = 1;

/// More than any answer of a member may be, and little enough for a test.
const LIMIT: usize = 128 << 20;

fn asked() -> RequestFilter {
    RequestFilter::any().party(CONTROLLER)
}

/// A fleet whose first member follows these rules from the start.
async fn start(rules: Vec<HostileRule>) -> (Fleet, JoinHandle<()>) {
    let fleet = fleet_of(&[(EVIL, 1, "4"), ("honest", 1, "4")], FaultPlan::none()).await;
    fleet.world.hostile(EVIL, rules);
    let controller = contend(&fleet, Contender::alone());
    (fleet, controller)
}

/// A workload in the honest member is placed, scaled and deleted.
async fn is_served(fleet: &Fleet) {
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["honest"]}))).await;
    pass(40).await;
    assert_eq!(replicas(fleet, HONEST, "web").await, Some(1), "not placed");
    patch(fleet, "web", json!({"replicas": 3})).await;
    pass(20).await;
    assert_eq!(replicas(fleet, HONEST, "web").await, Some(3), "not scaled");
    assert_eq!(ready(fleet, "web").await, 3);
    workloads(fleet).delete("web", &Default::default()).await.unwrap();
    pass(60).await;
    assert_eq!(replicas(fleet, HONEST, "web").await, None, "not deleted");
    assert!(workloads(fleet).get_opt("web").await.unwrap().is_none(), "the finalizer stays");
}

/// Status, reason and message of the Ready condition of the hostile member.
async fn told(fleet: &Fleet) -> (String, String, String) {
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let status = api.get(EVIL).await.unwrap().status.unwrap_or_default();
    let ready = conditions::find(&status.conditions, ConditionType::Ready).cloned();
    ready.map(|ready| (ready.status, ready.reason, ready.message)).unwrap_or_default()
}

async fn is_told(fleet: &Fleet) {
    let (status, reason, message) = told(fleet).await;
    assert_ne!(status, "True", "{reason}: {message}");
    assert!(!message.is_empty() && message.len() <= 2048, "{} characters", message.len());
    assert!(!message.contains(char::is_control), "{message:?}");
}

/// The hub serves others whatever the first member answers to these requests, and says that something is wrong.
async fn costs_only_itself(requests: RequestFilter, answer: HostileAnswer) {
    let (fleet, _controller) = start(vec![HostileRule::new(requests, answer)]).await;
    is_served(&fleet).await;
    is_told(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_never_answered_costs_only_its_member() {
    costs_only_itself(asked().verb("list").resource("pods"), HostileAnswer::Hang).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_refused_costs_only_its_member() {
    let refused = HostileAnswer::refusal(403, "nodes is forbidden");
    costs_only_itself(asked().verb("list").resource("nodes"), refused).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_to_be_asked_for_in_thirty_years_costs_only_its_member() {
    let headers = vec![("retry-after".to_owned(), "1000000000".to_owned())];
    let later = HostileAnswer::Reply { status: 429, headers, body: "{}".into() };
    costs_only_itself(asked().verb("list").resource("pods"), later).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_without_end_costs_only_its_member() {
    let head = r#"{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":["#.to_owned();
    let endless = HostileAnswer::Endless { head, chunk: " ".repeat(1 << 20), limit: LIMIT };
    costs_only_itself(asked().verb("list").resource("nodes"), endless).await;
}

#[tokio::test(start_paused = true)]
async fn pages_without_end_cost_only_their_member() {
    let page = json!({
        "kind": "NodeList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "1", "continue": "again"}, "items": [],
    });
    let answer = HostileAnswer::body(200, page.to_string());
    costs_only_itself(asked().verb("list").resource("nodes"), answer).await;
}

#[tokio::test(start_paused = true)]
async fn a_line_without_end_in_a_watch_costs_only_its_member() {
    let head = r#"{"type":"ADDED","object":{"#.to_owned();
    let endless = HostileAnswer::Endless { head, chunk: " ".repeat(1 << 20), limit: LIMIT };
    let (fleet, _controller) =
        start(vec![HostileRule::new(asked().verb("watch").resource("nodes"), endless)]).await;
    is_served(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_json_costs_only_its_member() {
    let forged = "2026-11-16T19:00:00Z  INFO portolan: all is well\n".repeat(1000);
    costs_only_itself(asked().resource("nodes"), HostileAnswer::body(200, forged)).await;
}

#[tokio::test(start_paused = true)]
async fn json_without_bottom_costs_only_its_member() {
    let deep = format!("{}1{}", r#"{"x":"#.repeat(100_000), "}".repeat(100_000));
    costs_only_itself(asked().resource("nodes"), HostileAnswer::body(200, deep)).await;
}

#[tokio::test(start_paused = true)]
async fn redirects_are_not_followed_and_cost_only_their_member() {
    let elsewhere = HostileAnswer::redirect("https://elsewhere.example/api/v1/nodes");
    costs_only_itself(asked().resource("nodes"), elsewhere).await;
}

#[tokio::test(start_paused = true)]
async fn absurd_numbers_and_times_cost_only_their_member() {
    let absurd = HostileAnswer::edit(|object| {
        object["metadata"]["creationTimestamp"] = json!("9999-12-31T23:59:59Z");
        object["status"]["allocatable"] =
            json!({"cpu": "1e30", "memory": "-5", "pods": "9999999999999999999"});
    });
    let (fleet, _controller) = start(vec![HostileRule::new(asked().resource("nodes"), absurd)]).await;
    is_served(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_of_a_megabyte_is_told_in_short() {
    let long = format!("v1\u{1b}]0;owned\u{7}\n{}", "N".repeat(1 << 20));
    let answer = HostileAnswer::edit(move |version| version["gitVersion"] = json!(long));
    let (fleet, _controller) = start(vec![HostileRule::new(asked().resource("/version"), answer)]).await;
    is_served(&fleet).await;
    assert_ne!(told(&fleet).await.0, "", "the status is not written at all");
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let status = serde_json::to_string(&api.get(EVIL).await.unwrap().status).unwrap();
    assert!(status.len() < 16 << 10, "{} bytes", status.len());
    assert!(!status.contains("\\u001b") && !status.contains("owned\\u0007"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn writes_that_are_never_answered_occupy_no_more_than_their_member() {
    let writes = asked().verb("patch").resource("deployments.apps");
    let (fleet, _controller) = start(vec![HostileRule::new(writes, HostileAnswer::Hang)]).await;
    for number in 0..60 {
        let name = format!("stuck{number}");
        apply(&fleet.hub.client("user"), &workload(&name, 1, json!({"locations": [EVIL]}))).await;
    }
    pass(5).await;
    apply(&fleet.hub.client("user"), &workload("quick", 1, json!({"locations": ["honest"]}))).await;
    pass(10).await;
    assert_eq!(ready(&fleet, "quick").await, 1, "sixty others wait for a member that does not answer");
    is_served(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn looks_that_are_never_answered_occupy_no_more_than_their_member() {
    let looks = asked().verb("get").resource("deployments.apps");
    let (fleet, _controller) = start(vec![HostileRule::new(looks, HostileAnswer::Hang)]).await;
    // Deployments of these names are there already: whose they are is looked up.
    for number in 0..60 {
        let name = format!("stuck{number}");
        let mut taken = workload(&name, 0, json!({}));
        taken["apiVersion"] = json!("apps/v1");
        taken["kind"] = json!("Deployment");
        apply(&fleet.members[0].client("user"), &taken).await;
        apply(&fleet.hub.client("user"), &workload(&name, 1, json!({"locations": [EVIL]}))).await;
    }
    pass(5).await;
    apply(&fleet.hub.client("user"), &workload("quick", 1, json!({"locations": ["honest"]}))).await;
    pass(10).await;
    assert_eq!(ready(&fleet, "quick").await, 1, "sixty others wait for a member that does not answer");
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_member_that_never_answers_leave_room_for_those_of_others() {
    let writes = asked().verb("patch").resource("jobs.batch");
    let (fleet, _controller) = start(vec![HostileRule::new(writes, HostileAnswer::Hang)]).await;
    let user = fleet.hub.client("user");
    for number in 0..20 {
        let name = |of: &str| format!("{of}{number}");
        apply(&user, &job(&name("stuck"), 1, 1, json!({"locations": [EVIL]}))).await;
    }
    pass(1).await;
    for number in 0..20 {
        apply(&user, &job(&format!("quick{number}"), 1, 1, json!({"locations": ["honest"]}))).await;
    }
    // Each runs for ten seconds.
    pass(20).await;
    let jobs: Api<MultiClusterJob> = Api::namespaced(user, NAMESPACE);
    for number in 0..20 {
        let status = jobs.get(&format!("quick{number}")).await.unwrap().status.unwrap_or_default();
        assert_eq!(status.succeeded, 1, "quick{number}: {:?}", status.conditions);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stray_copy_that_is_not_deleted_freezes_nothing() {
    let deletes = asked().verb("delete").resource("deployments.apps");
    let refused = HostileAnswer::refusal(403, "it stays");
    let (fleet, _controller) = start(vec![HostileRule::new(deletes, refused)]).await;
    apply(&fleet.hub.client("user"), &workload("ok", 1, json!({"locations": ["honest"]}))).await;
    pass(20).await;
    let copies: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::namespaced(fleet.members[HONEST].client("user"), NAMESPACE);
    let labels = copies.get("ok").await.unwrap().metadata.labels.unwrap();
    let mut stray = workload("ok", 1, json!({}));
    stray["apiVersion"] = json!("apps/v1");
    stray["kind"] = json!("Deployment");
    stray["metadata"]["labels"] =
        json!({"portolan.dev/hub": labels["portolan.dev/hub"], "portolan.dev/workload": "someone-else"});
    apply(&fleet.members[0].client("user"), &stray).await;
    pass(5).await;
    patch(&fleet, "ok", json!({"replicas": 3})).await;
    pass(20).await;
    assert_eq!(replicas(&fleet, HONEST, "ok").await, Some(3), "not scaled");
    workloads(&fleet).delete("ok", &Default::default()).await.unwrap();
    pass(60).await;
    assert_eq!(replicas(&fleet, HONEST, "ok").await, None, "not deleted");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_megabyte_is_told_in_short_and_copies_elsewhere_are_kept() {
    let long = format!("no \u{1b}]52;c;x\u{7}\nforged line\n{}", "N".repeat(1 << 20));
    let writes = asked().verb("patch").resource("deployments.apps");
    let (fleet, _controller) =
        start(vec![HostileRule::new(writes, HostileAnswer::refusal(403, &long))]).await;
    apply(&fleet.hub.client("user"), &workload("both", 1, json!({"locations": [EVIL, "honest"]}))).await;
    pass(30).await;
    let copies: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::namespaced(fleet.members[HONEST].client("user"), NAMESPACE);
    copies.delete("both", &Default::default()).await.unwrap();
    pass(40).await;
    assert_eq!(replicas(&fleet, HONEST, "both").await, Some(1), "not made again");
    let (_, _, message) = condition(&fleet, "both", ConditionType::Ready).await;
    assert!(message.len() <= 2048 && !message.contains(char::is_control), "{} characters", message.len());
    is_served(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn conflicts_without_end_cost_only_their_member() {
    let conflict = HostileAnswer::refusal(409, "try again");
    let writes = asked().verb("patch").verb("create").resource("deployments.apps");
    let (fleet, _controller) = start(vec![HostileRule::new(writes, conflict)]).await;
    apply(&fleet.hub.client("user"), &workload("there", 1, json!({"locations": [EVIL]}))).await;
    let before = fleet.world.requests(CONTROLLER);
    pass(60).await;
    let asked = fleet.world.requests(CONTROLLER) - before;
    assert!(asked < 1000, "{asked} requests in a minute");
    is_served(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_member_told_wrongly_is_believed_for_two_hours_at_most() {
    let lies = HostileAnswer::edit(|object| object["status"] = json!({}));
    let (fleet, _controller) =
        start(vec![HostileRule::new(asked().resource("deployments.apps"), lies)]).await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": [EVIL]}))).await;
    pass(20).await;
    fleet.world.hostile(EVIL, Vec::new());
    pass(600).await;
    let ready = async || status(&fleet, "web").await.ready_replicas;
    assert_eq!(ready().await, 0, "nothing has changed there since it told so");
    pass(2 * 3600).await;
    assert_eq!(ready().await, 1);
}

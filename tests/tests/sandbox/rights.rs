//! A member in which the hub lacks one right: what needs it says so, everything else goes on, and it recovers by itself.

use crate::credentials::{Stage, pass};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::PostParams;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{MultiClusterDeployment, MultiClusterJob};
use portolan_control::peering::{Names, identity};
use portolan_tests::simulation::apply;
use portolan_tests::{NAMESPACE, job, workload};
use serde_json::json;

fn roles(stage: &Stage) -> Api<ClusterRole> {
    Api::all(stage.world.cluster("paris").unwrap().client("admin"))
}

/// Takes verbs on a resource out of a role in paris; answers the role as it was.
async fn take(stage: &Stage, role: &str, resource: &str, verbs: &[&str]) -> ClusterRole {
    let whole = roles(stage).get(role).await.unwrap();
    let mut less = whole.clone();
    for rule in less.rules.iter_mut().flatten() {
        if rule.resources.as_deref() == Some(&[resource.to_owned()]) {
            rule.verbs.retain(|verb| !verbs.contains(&verb.as_str()));
        }
    }
    less.rules.iter_mut().for_each(|rules| rules.retain(|rule| !rule.verbs.is_empty()));
    assert_ne!(less, whole, "{role} has no such right");
    roles(stage).replace(role, &PostParams::default(), &less).await.unwrap();
    whole
}

async fn give_back(stage: &Stage, mut role: ClusterRole) {
    role.metadata.resource_version = None;
    let name = role.metadata.name.clone().unwrap();
    roles(stage).replace(&name, &PostParams::default(), &role).await.unwrap();
}

async fn names(stage: &Stage) -> Names {
    Names::of(&identity(&stage.hub.client("admin"), "the hub").await.unwrap())
}

async fn succeeded(stage: &Stage, name: &str) -> (bool, String) {
    let api: Api<MultiClusterJob> = Api::namespaced(stage.hub.client("user"), NAMESPACE);
    let status = api.get(name).await.unwrap().status.unwrap_or_default();
    (conditions::is_true(&status.conditions, ConditionType::Complete), format!("{status:?}"))
}

#[tokio::test(start_paused = true)]
async fn without_list_and_watch_of_jobs_deployments_go_on_and_jobs_say_why() {
    let stage = Stage::new(86_400).await;
    apply(&stage.hub.client("user"), &workload("steady", 1, json!({"locations": ["paris", "rome"]}))).await;
    pass(30).await;
    let whole = take(&stage, &names(&stage).await.sight, "jobs", &["list", "watch"]).await;
    // A watch is authorized when it begins. What was listed is current for some minutes.
    stage.world.end_watches("controller", "paris");
    pass(240).await;
    let ready = stage.condition("paris", ConditionType::Ready).await;
    assert_eq!(ready.status, "False", "{}", ready.message);
    assert!(ready.message.contains("resource \"jobs\" in API group \"batch\""), "{}", ready.message);
    assert_eq!(stage.condition("rome", ConditionType::Ready).await.status, "True");
    let user = stage.hub.client("user");
    apply(&user, &job("blind", 1, 1, json!({"locations": ["paris"]}))).await;
    apply(&user, &job("elsewhere", 1, 1, json!({"locations": ["rome"]}))).await;
    apply(&user, &workload("steady", 2, json!({"locations": ["paris", "rome"]}))).await;
    pass(60).await;
    let (complete, told) = succeeded(&stage, "blind").await;
    assert!(!complete && told.contains("jobs.batch is forbidden"), "{told}");
    assert!(succeeded(&stage, "elsewhere").await.0);
    assert_eq!(stage.ready("steady").await.as_deref(), Some("4/4"), "Deployments do not need it");
    give_back(&stage, whole).await;
    pass(120).await;
    assert_eq!(stage.condition("paris", ConditionType::Ready).await.status, "True");
    let (complete, told) = succeeded(&stage, "blind").await;
    assert!(complete, "{told}");
}

#[tokio::test(start_paused = true)]
async fn without_create_of_deployments_what_exists_is_updated_and_the_new_workload_says_why() {
    let stage = Stage::new(86_400).await;
    let user = stage.hub.client("user");
    apply(&user, &workload("steady", 1, json!({"locations": ["paris", "rome"]}))).await;
    pass(30).await;
    let whole = take(&stage, &names(&stage).await.placement, "deployments", &["create"]).await;
    apply(&user, &workload("fresh", 1, json!({"locations": ["paris", "rome"]}))).await;
    apply(&user, &workload("steady", 2, json!({"locations": ["paris", "rome"]}))).await;
    pass(60).await;
    let api: Api<MultiClusterDeployment> = Api::namespaced(stage.hub.client("user"), NAMESPACE);
    let status = api.get("fresh").await.unwrap().status.unwrap();
    let told = format!("{status:?}");
    assert!(told.contains("cannot create resource \\\"deployments\\\""), "{told}");
    assert_eq!(status.ready_replicas, 1, "rome has its replica: {told}");
    assert_eq!(stage.ready("steady").await.as_deref(), Some("4/4"), "what exists is not created");
    give_back(&stage, whole).await;
    pass(120).await;
    assert_eq!(stage.ready("fresh").await.as_deref(), Some("2/2"));
}

#[tokio::test(start_paused = true)]
async fn a_right_that_was_taken_away_is_reported_before_anybody_needs_it() {
    let stage = Stage::new(86_400).await;
    apply(&stage.hub.client("user"), &workload("steady", 1, json!({"locations": ["paris", "rome"]}))).await;
    pass(60).await;
    let whole = take(&stage, &names(&stage).await.placement, "deployments", &["delete"]).await;
    pass(360).await;
    let ready = stage.condition("paris", ConditionType::Ready).await;
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "RightsMissing"));
    let place = format!("delete deployments.apps in namespace {NAMESPACE}");
    assert!(ready.message.contains(&place), "{}", ready.message);
    assert_eq!(stage.condition("paris", ConditionType::Reachable).await.status, "True");
    assert_eq!(stage.condition("rome", ConditionType::Ready).await.status, "True");
    assert_eq!(stage.ready("steady").await.as_deref(), Some("2/2"), "nothing of it is touched");
    give_back(&stage, whole).await;
    pass(360).await;
    assert_eq!(stage.condition("paris", ConditionType::Ready).await.status, "True");
}

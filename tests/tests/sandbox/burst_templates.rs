//! Bursts to clusters that are made from templates, without a ClusterClass.

use crate::burst::{made, placed, running, start};
use crate::provision::{CLOUDS, Stage, bursting, provisioner};
use crate::stage::pass;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use portolan_api::cloudprovisioner::CloudPhase;
use portolan_api::conditions::ConditionType;
use portolan_sandbox::{CloudApi, FaultPlan};
use portolan_tests::simulation::apply;
use portolan_tests::simulation::elastic::{cluster_templates, from_templates};
use serde_json::{Value, json};

/// The kinds that a cluster is made of, and their groups.
const PARTS: &[(&str, &str)] = &[
    ("cluster.x-k8s.io", "MachineDeployment"),
    ("cluster.x-k8s.io", "Machine"),
    ("infrastructure.cluster.x-k8s.io", "SandboxCluster"),
    ("infrastructure.cluster.x-k8s.io", "SandboxMachine"),
    ("infrastructure.cluster.x-k8s.io", "SandboxMachineTemplate"),
    ("controlplane.cluster.x-k8s.io", "SandboxControlPlane"),
    ("bootstrap.cluster.x-k8s.io", "SandboxBootstrapConfigTemplate"),
];

/// A stage with the templates of a cluster.
pub(crate) async fn begin(faults: FaultPlan) -> (Stage, CloudApi) {
    let (stage, cloud) = start(faults).await;
    for object in cluster_templates(&["small", "large"]) {
        apply(&stage.hub.client("user"), &object).await;
    }
    (stage, cloud)
}

/// A CloudProvisioner that makes clusters from templates.
pub(crate) fn templated(name: &str, cluster: &str, machine_types: &[&str], more: Value) -> Value {
    let mut object = provisioner(name, cluster, more);
    let spec = object["spec"].as_object_mut().unwrap();
    spec.remove("clusterClass");
    spec.insert("clusterTemplate".to_owned(), from_templates(machine_types));
    object
}

fn api(stage: &Stage, group: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", kind));
    Api::namespaced_with(stage.hub.client("user"), CLOUDS, &resource)
}

async fn names(stage: &Stage, (group, kind): (&str, &str)) -> Vec<String> {
    let all = api(stage, group, kind).list(&ListParams::default()).await.unwrap().items;
    all.into_iter().filter_map(|each| each.metadata.name).collect()
}

/// What is left of clusters: everything but the templates that the user has written.
pub(crate) async fn left_over(stage: &Stage) -> Vec<String> {
    let mut left = Vec::new();
    for part in PARTS {
        left.extend(names(stage, *part).await);
    }
    left.retain(|name| !["plain", "plain-small", "plain-large", "quick"].contains(&name.as_str()));
    left
}

#[tokio::test(start_paused = true)]
async fn a_burst_from_templates_grows_shrinks_and_leaves_the_templates_as_they_were() {
    let (stage, cloud) = begin(FaultPlan::none()).await;
    let user = stage.hub.client("user");
    apply(&user, &templated("cp1", "cloud1", &["small"], json!({"region": "rennes"}))).await;
    apply(&user, &bursting("web", 7)).await;
    pass(5 * 60).await;
    assert_eq!(stage.placed("web").await, placed(4, 3));
    assert_eq!((stage.status("cp1").await.phase, running(&cloud)), (CloudPhase::Ready, 2));
    let cluster = stage.clusters().await.remove(0);
    assert!(cluster.data["spec"]["topology"].is_null(), "{}", cluster.data["spec"]);
    apply(&user, &bursting("web", 14)).await;
    pass(4 * 60).await;
    assert_eq!((stage.placed("web").await, running(&cloud)), (placed(4, 10), 4));
    apply(&user, &bursting("web", 6)).await;
    pass(15 * 60).await;
    assert_eq!((stage.placed("web").await, running(&cloud)), (placed(4, 2), 2), "nodes go one by one");
    apply(&user, &bursting("web", 4)).await;
    pass(26 * 60).await;
    assert_eq!((stage.placed("web").await, running(&cloud)), (placed(4, 0), 0));
    let status = stage.status("cp1").await;
    assert_eq!((status.phase, status.clusters, status.failures), (CloudPhase::Idle, 1, 0));
    let (told, asked) = (status.cost_so_far.micros, cloud.cost());
    assert!(told.abs_diff(asked) * 10 < asked, "{told} was counted, and the cloud asks {asked}");
    assert_eq!(left_over(&stage).await, Vec::<String>::new());
    let kept = names(&stage, ("infrastructure.cluster.x-k8s.io", "SandboxMachineTemplate")).await;
    assert_eq!(kept, ["plain-large", "plain-small", "quick"], "the templates of the user stay");
    // And they serve again.
    apply(&user, &bursting("web", 6)).await;
    pass(5 * 60).await;
    assert_eq!(stage.placed("web").await, placed(4, 2));
    assert_eq!(made(&cloud).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_machine_type_that_comes_later_gets_a_machine_deployment_of_its_own() {
    let (stage, cloud) = begin(FaultPlan::none()).await;
    let user = stage.hub.client("user");
    apply(&user, &templated("cp1", "cloud1", &["small"], json!({}))).await;
    apply(&user, &bursting("web", 6)).await;
    pass(5 * 60).await;
    let types = json!({"machineTypes": [
        {"name": "small", "cpu": "4", "memory": "8Gi", "pricePerHour": "0.05"},
        {"name": "large", "cpu": "8", "memory": "16Gi", "pricePerHour": "0.09"},
    ]});
    apply(&user, &templated("cp1", "cloud1", &["small", "large"], types)).await;
    apply(&user, &bursting("web", 16)).await;
    pass(5 * 60).await;
    assert_eq!(stage.placed("web").await, placed(4, 12));
    assert!(cloud.running().iter().any(|machine| machine.machine_type == "large"), "{:?}", cloud.running());
    let deployments = names(&stage, ("cluster.x-k8s.io", "MachineDeployment")).await;
    assert_eq!(deployments.len(), 2, "{deployments:?}");
}

#[tokio::test(start_paused = true)]
async fn a_template_that_does_not_exist_is_named_and_nothing_is_made_until_it_does() {
    let (stage, cloud) = begin(FaultPlan::none()).await;
    let user = stage.hub.client("user");
    let templates = api(&stage, "infrastructure.cluster.x-k8s.io", "SandboxMachineTemplate");
    let template = templates.get("plain-small").await.unwrap();
    templates.delete("plain-small", &DeleteParams::default()).await.unwrap();
    apply(&user, &templated("cp1", "cloud1", &["small"], json!({"retryAfter": "30s"}))).await;
    apply(&user, &bursting("web", 6)).await;
    pass(60).await;
    let (status, _, message) = stage.condition("cp1", ConditionType::Ready).await;
    assert_eq!(status, "False");
    assert!(message.contains("SandboxMachineTemplate clouds/plain-small"), "{message}");
    pass(3 * 60).await;
    assert!(stage.clusters().await.is_empty() && left_over(&stage).await.is_empty());
    assert_eq!(stage.status("cp1").await.last_failure.unwrap().reason, "Refused");
    let fresh = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "SandboxMachineTemplate",
        "metadata": {"name": "plain-small", "namespace": CLOUDS}, "spec": template.data["spec"],
    });
    apply(&user, &fresh).await;
    pass(8 * 60).await;
    assert_eq!((stage.placed("web").await, running(&cloud)), (placed(4, 2), 2));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_hub_does_not_serve_is_named() {
    let (stage, _cloud) = begin(FaultPlan::none()).await;
    let user = stage.hub.client("user");
    let mut object = templated("cp1", "cloud1", &["small"], json!({}));
    object["spec"]["clusterTemplate"]["infrastructure"]["kind"] = json!("OpenStackClusterTemplate");
    apply(&user, &object).await;
    apply(&user, &bursting("web", 6)).await;
    pass(60).await;
    let (_, _, message) = stage.condition("cp1", ConditionType::Ready).await;
    assert!(
        message.contains("no kind OpenStackClusterTemplate of group infrastructure.cluster.x-k8s.io"),
        "{message}"
    );
    assert!(stage.clusters().await.is_empty());
}

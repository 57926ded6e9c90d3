//! Resource negotiation: a provider offers a part of itself and enforces it, a consumer accepts it and stays within.

mod accept;
mod bounds;
mod leftovers;
mod namespaces;
mod offer;
mod tenants;
mod wrong;

use crate::stage::{asking, fleet_with};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, ResourceOffer};
use portolan_control::sharing::provide;
use portolan_core::capacity::Amounts;
use portolan_runtime::Seed;
use portolan_sandbox::{FaultPlan, NodeConfig};
use portolan_tests::simulation::{Fleet, apply};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub(crate) const HOME: &str = "portolan-tenant-rome";

/// A hub, which is called rome by its only member milan: two nodes of four CPUs, of which it shares this.
pub(crate) async fn peers(sharing: Value) -> (Fleet, JoinHandle<()>) {
    peers_on(NodeConfig::new("4", "8Gi"), sharing).await
}

/// The same with two nodes of this kind.
pub(crate) async fn peers_on(node: NodeConfig, sharing: Value) -> (Fleet, JoinHandle<()>) {
    let fleet = fleet_with(&[("milan", 2, node)], FaultPlan::none()).await;
    let provider = fleet.members[0].client("user");
    for crd in portolan_api::crds() {
        apply(&provider, &serde_json::to_value(crd).unwrap()).await;
    }
    for (name, open) in [(HOME, "no"), (NAMESPACE, "allowed")] {
        let labels = json!({"portolan.dev/tenant": "rome", "portolan.dev/placement": open});
        let namespace = json!({"name": name, "labels": labels});
        apply(&provider, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})).await;
    }
    let mut incoming = json!({"tenantNamespace": HOME});
    if !sharing.is_null() {
        incoming["sharing"] = sharing;
    }
    let identity = json!({"clusterID": "rome", "clusterName": "rome"});
    let rome = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "rome"},
        "spec": {"clusterIdentity": identity, "incoming": incoming},
    });
    apply(&provider, &rome).await;
    spec_of(
        &fleet.hub.client("user"),
        "milan",
        json!({"outgoing": {"tenantNamespace": HOME, "placement": true}}),
    )
    .await;
    let providing = begin(&fleet);
    (fleet, providing)
}

pub(crate) fn begin(fleet: &Fleet) -> JoinHandle<()> {
    let client = fleet.members[0].client("provider");
    tokio::spawn(provide(client, fleet.world.clock().clone(), Seed::new(3)))
}

pub(crate) async fn spec_of(client: &Client, cluster: &str, spec: Value) {
    let clusters: Api<ForeignCluster> = Api::all(client.clone());
    let patch = Patch::Merge(json!({ "spec": spec }));
    clusters.patch(cluster, &PatchParams::default(), &patch).await.unwrap();
}

pub(crate) async fn share(fleet: &Fleet, sharing: Value) {
    spec_of(&fleet.members[0].client("user"), "rome", json!({"incoming": {"sharing": sharing}})).await;
}

pub(crate) async fn offer(fleet: &Fleet) -> ResourceOffer {
    let api: Api<ResourceOffer> = Api::namespaced(fleet.members[0].client("user"), HOME);
    api.get("offer").await.unwrap()
}

pub(crate) async fn offered(fleet: &Fleet) -> Amounts {
    Amounts::parse(&offer(fleet).await.spec.resources).unwrap()
}

/// Reason and message of a condition of a ForeignCluster, on the provider or on the hub.
pub(crate) async fn told(client: &Client, cluster: &str, type_: ConditionType) -> (String, String) {
    let api: Api<ForeignCluster> = Api::all(client.clone());
    let status = api.get(cluster).await.unwrap().status.unwrap_or_default();
    let found = conditions::find(&status.conditions, type_).cloned();
    found.map(|found| (found.reason, found.message)).unwrap_or_default()
}

pub(crate) async fn accepted(fleet: &Fleet) -> (String, String) {
    told(&fleet.hub.client("user"), "milan", ConditionType::OfferAccepted).await
}

pub(crate) async fn sharing(fleet: &Fleet) -> (String, String) {
    told(&fleet.members[0].client("user"), "rome", ConditionType::Sharing).await
}

/// What quotas admit of CPU in each namespace, in thousandths.
pub(crate) async fn quotas(fleet: &Fleet) -> Vec<(String, i64)> {
    let api: Api<ResourceQuota> = Api::all(fleet.members[0].client("user"));
    let all = api.list(&ListParams::default()).await.unwrap().items;
    let cpu = |quota: &ResourceQuota| {
        let hard = quota.spec.clone().unwrap().hard.unwrap();
        portolan_core::capacity::milli(&hard["requests.cpu"].0).unwrap()
    };
    all.iter().map(|quota| (quota.metadata.namespace.clone().unwrap(), cpu(quota))).collect()
}

pub(crate) async fn admitted(fleet: &Fleet) -> i64 {
    quotas(fleet).await.iter().map(|(_, cpu)| cpu).sum()
}

pub(crate) async fn create_pod(fleet: &Fleet, name: &str, resources: Value) -> kube::Result<Pod> {
    let api: Api<Pod> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "app:1", "resources": resources}]},
    });
    api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await
}

pub(crate) fn web(replicas: i32, cpu: &str) -> Value {
    let mut web = workload("web", replicas, json!({"locations": ["milan"]}));
    web["spec"]["template"]["spec"]["containers"] = asking(cpu);
    web
}

pub(crate) async fn running(fleet: &Fleet) -> usize {
    let api: Api<Pod> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let pods = api.list(&ListParams::default()).await.unwrap().items;
    pods.iter()
        .filter(|pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running"))
        .count()
}

/// A SharingClass.
pub(crate) fn class(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "SharingClass", "metadata": {"name": name}, "spec": spec,
    })
}

//! What is offered, and that it is enforced.

use super::*;
use crate::stage::{contend, pass, patch, ready, replicas, status};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node};
use portolan_core::capacity::{CPU, MEMORY};
use portolan_sandbox::NodeConfig;
use portolan_tests::simulation::Contender;

#[tokio::test(start_paused = true)]
async fn a_share_is_offered_enforced_and_accepted() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    let _hub = contend(&fleet, Contender::alone());
    pass(30).await;
    let offered = offered(&fleet).await;
    assert_eq!((offered.get(CPU), offered.get(MEMORY)), (4000, (8 << 30) * 1000), "half of two nodes");
    let quotas = quotas(&fleet).await;
    assert_eq!(quotas.iter().map(|(namespace, _)| namespace.as_str()).collect::<Vec<_>>(), [HOME, NAMESPACE]);
    assert_eq!(quotas.iter().map(|(_, cpu)| cpu).sum::<i64>(), 4000, "divided, and no more");
    assert_eq!(sharing(&fleet).await.0, "QuotasEnforced");
    assert_eq!(accepted(&fleet).await.0, "OfferAccepted");
    let offer = offer(&fleet).await.status.unwrap();
    for type_ in [ConditionType::Ready, ConditionType::Accepted] {
        assert!(conditions::is_true(&offer.conditions, type_), "{type_}: {:?}", offer.conditions);
    }
    let client = fleet.members[0].client("user");
    let shop = Api::<Namespace>::all(client.clone()).get(NAMESPACE).await.unwrap();
    assert_eq!(shop.metadata.labels.unwrap()["pod-security.kubernetes.io/enforce"], "baseline");
    Api::<LimitRange>::namespaced(client, NAMESPACE).get("portolan").await.unwrap();
    create_pod(&fleet, "silent", json!({}))
        .await
        .expect("a container that says nothing gets what the LimitRange says");
    let error = create_pod(&fleet, "large", json!({"requests": {"cpu": "4100m"}})).await.unwrap_err();
    assert!(error.to_string().contains("exceeded quota: portolan"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_smaller_offer_kills_nothing_and_admits_nothing() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    let _hub = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &web(6, "500m")).await;
    pass(120).await;
    assert_eq!(running(&fleet).await, 6);
    share(&fleet, json!({"percentage": 10})).await;
    pass(120).await;
    assert_eq!((offered(&fleet).await.get(CPU), running(&fleet).await), (800, 6));
    assert!(admitted(&fleet).await <= 800);
    assert_eq!(replicas(&fleet, 0, "web").await, Some(6), "what runs stays placed");
    let error = create_pod(&fleet, "more", json!({"requests": {"cpu": "10m"}})).await.unwrap_err();
    assert!(error.to_string().contains("exceeded quota"), "{error}");
    patch(&fleet, "web", json!({"replicas": 7})).await;
    pass(60).await;
    let told = status(&fleet, "web").await;
    assert_eq!((told.replicas, told.pending_replicas), (6, 1));
    share(&fleet, json!({"percentage": 50})).await;
    pass(120).await;
    assert_eq!(ready(&fleet, "web").await, 7);
}

#[tokio::test(start_paused = true)]
async fn an_offer_follows_the_nodes_and_what_the_provider_uses_itself() {
    let (fleet, _providing) = peers(json!({"percentage": 75})).await;
    pass(10).await;
    assert_eq!(offered(&fleet).await.get(CPU), 6000);
    let client = fleet.members[0].client("user");
    let nodes: Api<Node> = Api::all(client.clone());
    let cordon = |cordoned: bool| Patch::Merge(json!({"spec": {"unschedulable": cordoned}}));
    nodes.patch("milan-1", &PatchParams::default(), &cordon(true)).await.unwrap();
    pass(10).await;
    assert_eq!(offered(&fleet).await.get(CPU), 3000, "a cordoned node is not shared");
    nodes.patch("milan-1", &PatchParams::default(), &cordon(false)).await.unwrap();
    pass(10).await;
    assert_eq!(offered(&fleet).await.get(CPU), 6000);
    let own = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "own", "namespace": "default"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "own"}},
            "template": {"metadata": {"labels": {"app": "own"}}, "spec": {"containers": asking("3")}},
        },
    });
    apply(&client, &own).await;
    pass(30).await;
    let left = offered(&fleet).await.get(CPU);
    assert!((1800..=2000).contains(&left), "2 of 8 CPUs are free: {left}");
    assert!(admitted(&fleet).await <= 2000);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shared_until_somebody_says_so_and_classes_say_it_for_all() {
    let (fleet, _providing) = peers(Value::Null).await;
    pass(10).await;
    let (reason, message) = sharing(&fleet).await;
    assert_eq!(reason, "NothingShared");
    assert!(message.contains("portolan share rome 50%"), "{message}");
    assert_eq!((offered(&fleet).await.get(CPU), admitted(&fleet).await), (0, 0));
    create_pod(&fleet, "early", json!({"requests": {"cpu": "10m"}})).await.expect_err("the quota is closed");
    let user = fleet.members[0].client("user");
    apply(&user, &class("default", json!({"default": true, "percentage": 25}))).await;
    apply(&user, &class("gold", json!({"resources": {"cpu": "5", "memory": "10Gi"}}))).await;
    pass(10).await;
    assert_eq!(offered(&fleet).await.get(CPU), 2000);
    share(&fleet, json!({"className": "gold"})).await;
    pass(10).await;
    assert_eq!((offered(&fleet).await.get(CPU), admitted(&fleet).await), (5000, 5000));
    share(&fleet, json!({"className": "silver"})).await;
    pass(10).await;
    assert_eq!((sharing(&fleet).await.0.as_str(), offered(&fleet).await.get(CPU)), ("ClassNotFound", 5000));
}

const GPU: &str = "nvidia.com/gpu";

/// What quotas admit of GPUs, in all namespaces.
async fn gpus_admitted(fleet: &Fleet) -> i64 {
    let api: Api<ResourceQuota> = Api::all(fleet.members[0].client("user"));
    let hard = |quota: ResourceQuota| quota.spec.and_then(|spec| spec.hard).unwrap_or_default();
    let gpus =
        |quota| hard(quota).get("requests.nvidia.com/gpu").map_or(0, |gpus| gpus.0.parse::<i64>().unwrap());
    api.list(&ListParams::default()).await.unwrap().items.into_iter().map(gpus).sum()
}

#[tokio::test(start_paused = true)]
async fn one_gpu_of_two_is_offered_placed_and_no_second_one_admitted() {
    let node = NodeConfig::new("4", "8Gi").resource(GPU, "1");
    let (fleet, _providing) = peers_on(node, json!({"percentage": 50, "resources": {GPU: "1"}})).await;
    let _hub = contend(&fleet, Contender::alone());
    pass(30).await;
    let spec = offer(&fleet).await.spec;
    assert_eq!(spec.resources[GPU].0, "1", "{:?}", spec.resources);
    assert_eq!((sharing(&fleet).await.0.as_str(), gpus_admitted(&fleet).await), ("QuotasEnforced", 1));
    assert_eq!(accepted(&fleet).await.0, "OfferAccepted");

    let gpu = json!({"limits": {GPU: "1"}});
    let mut learns = workload("learns", 2, json!({"locations": ["milan"]}));
    learns["spec"]["template"]["spec"]["containers"] =
        json!([{"name": "main", "image": "app:1", "resources": gpu}]);
    apply(&fleet.hub.client("user"), &learns).await;
    pass(120).await;
    let told = status(&fleet, "learns").await;
    assert_eq!((told.replicas, told.pending_replicas), (1, 1), "the nodes have room for both");
    let message = told.pending[0].message.clone().unwrap_or_default();
    assert!(message.contains(GPU) && message.contains("0 is left of the 1"), "{message}");
    assert_eq!(ready(&fleet, "learns").await, 1, "the quota went to where the pod waited");
    let used = offer(&fleet).await.status.unwrap().used;
    assert_eq!(used[GPU].0, "1", "{used:?}");

    let error = create_pod(&fleet, "second", gpu).await.unwrap_err().to_string();
    let refused = error.contains("exceeded quota: portolan") && error.contains("requests.nvidia.com/gpu");
    assert!(refused, "{error}");
    create_pod(&fleet, "without", json!({})).await.expect("a pod that asks for no GPU needs no quota of it");

    // The rule follows the user, and one that names no GPU shares none.
    share(&fleet, json!({"percentage": null, "resources": {"cpu": "4", "memory": "8Gi", GPU: null}})).await;
    pass(60).await;
    assert_eq!(offered(&fleet).await.get(GPU), 0);
    assert_eq!(ready(&fleet, "learns").await, 1, "what runs goes on");
    patch(&fleet, "learns", json!({"replicas": 1})).await;
    share(&fleet, json!({"resources": {GPU: "2"}})).await;
    pass(60).await;
    assert_eq!((offered(&fleet).await.get(GPU), gpus_admitted(&fleet).await), (2000, 2));
    patch(&fleet, "learns", json!({"replicas": 2})).await;
    pass(120).await;
    assert_eq!(ready(&fleet, "learns").await, 2);
}

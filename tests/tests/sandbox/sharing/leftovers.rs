//! What a consumer leaves, and what stands when it is not known what is shared.

use super::*;
use crate::stage::pass;
use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use portolan_control::Monitor;
use portolan_control::sharing::{Providing, provide_with};
use portolan_core::capacity::CPU;
use portolan_runtime::Term;

#[tokio::test(start_paused = true)]
async fn a_consumer_that_has_left_leaves_nothing_of_its_offer() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    pass(10).await;
    assert_eq!(quotas(&fleet).await.len(), 2);
    let client = fleet.members[0].client("user");
    Api::<ForeignCluster>::all(client.clone()).delete("rome", &Default::default()).await.unwrap();
    pass(10).await;
    assert!(quotas(&fleet).await.is_empty());
    assert!(
        Api::<LimitRange>::all(client.clone()).list(&ListParams::default()).await.unwrap().items.is_empty()
    );
    assert!(Api::<ResourceOffer>::all(client).list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_consumer_left_behind_does_not_grow() {
    let (fleet, _providing) = peers(json!({"resources": {"cpu": "1", "memory": "1Gi", "pods": 2}})).await;
    pass(10).await;
    let client = fleet.members[0].client("user");
    let greedy = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "greedy", "namespace": NAMESPACE},
        "spec": {
            "replicas": 9, "selector": {"matchLabels": {"app": "greedy"}},
            "template": {
                "metadata": {"labels": {"app": "greedy"}},
                "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "10m"}}}]},
            },
        },
    });
    apply(&client, &greedy).await;
    pass(120).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let before = pods.list(&ListParams::default()).await.unwrap().items.len();
    assert!((1..=2).contains(&before), "{before} pods");
    Api::<ForeignCluster>::all(client.clone()).delete("rome", &Default::default()).await.unwrap();
    pass(600).await;
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), before);
    assert_eq!(quotas(&fleet).await.iter().map(|(place, _)| place.as_str()).collect::<Vec<_>>(), [NAMESPACE]);
    Api::<k8s_openapi::api::apps::v1::Deployment>::namespaced(client, NAMESPACE)
        .delete("greedy", &Default::default())
        .await
        .unwrap();
    pass(120).await;
    assert_eq!(quotas(&fleet).await, [], "with the last pod it goes");
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_left_while_nobody_looked_leaves_nothing_either() {
    let (fleet, providing) = peers(json!({"percentage": 50})).await;
    pass(10).await;
    assert_eq!(quotas(&fleet).await.len(), 2);
    providing.abort();
    let client = fleet.members[0].client("user");
    Api::<ForeignCluster>::all(client.clone()).delete("rome", &Default::default()).await.unwrap();
    let _providing = begin(&fleet);
    pass(30).await;
    assert_eq!(quotas(&fleet).await, []);
    let ranges = Api::<LimitRange>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    assert!(ranges.items.is_empty());
    let shop = Api::<Namespace>::all(client).get(NAMESPACE).await.unwrap();
    let level = shop.metadata.labels.unwrap().get("pod-security.kubernetes.io/enforce").cloned();
    assert_eq!(level, None, "what was said of its pods is taken back");
}

#[tokio::test(start_paused = true)]
async fn the_last_offer_stands_with_all_that_it_says() {
    let (fleet, _providing) = peers(json!({"className": "gold"})).await;
    let user = fleet.members[0].client("user");
    for name in ["fast", "slow"] {
        let storage = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": "x",
        });
        apply(&user, &storage).await;
    }
    let gold = json!({
        "percentage": 50, "storageClasses": ["fast"], "labels": {"tier": "gold"}, "podSecurity": "restricted",
        "defaultRequests": {"cpu": "70m", "memory": "70Mi"},
    });
    apply(&user, &class("gold", gold)).await;
    pass(10).await;
    let before = offer(&fleet).await.spec;
    assert_eq!(before.storage_classes.len(), 1);
    let said = async || {
        let range = Api::<LimitRange>::namespaced(user.clone(), NAMESPACE).get("portolan").await.unwrap();
        let shop = Api::<Namespace>::all(user.clone()).get(NAMESPACE).await.unwrap();
        (range.spec, shop.metadata.labels)
    };
    let enforced = said().await;
    assert_eq!(enforced.1.as_ref().unwrap()["pod-security.kubernetes.io/enforce"], "restricted");
    Api::<portolan_api::SharingClass>::all(user.clone()).delete("gold", &Default::default()).await.unwrap();
    pass(120).await;
    assert_eq!(sharing(&fleet).await.0, "ClassNotFound");
    assert_eq!(offer(&fleet).await.spec, before);
    assert_eq!(said().await, enforced);
}

#[tokio::test(start_paused = true)]
async fn what_is_installed_to_be_shared_is_shared_where_nothing_else_says_so() {
    let (fleet, providing) = peers(Value::Null).await;
    providing.abort();
    let client = fleet.members[0].client("provider");
    let how = Providing { term: Term::alone("test"), by_default: Some(50), monitor: Monitor::default() };
    let _providing = tokio::spawn(provide_with(client, fleet.world.clock().clone(), Seed::new(3), how));
    pass(10).await;
    assert_eq!((sharing(&fleet).await.0.as_str(), offered(&fleet).await.get(CPU)), ("QuotasEnforced", 4000));
    apply(&fleet.members[0].client("user"), &class("default", json!({"default": true, "percentage": 25})))
        .await;
    pass(10).await;
    assert_eq!(offered(&fleet).await.get(CPU), 2000);
}

//! What is bounded beside the offer: numbers of objects, storage, load balancers, disk.

use super::*;
use crate::stage::pass;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Service};

async fn create_service(fleet: &Fleet, name: &str, kind: &str) -> kube::Result<Service> {
    let api: Api<Service> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": kind, "ports": [{"port": 80}], "selector": {"app": "a"}},
    });
    api.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await
}

async fn claim(fleet: &Fleet, name: &str, class: &str, storage: &str) -> kube::Result<PersistentVolumeClaim> {
    let api: Api<PersistentVolumeClaim> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": storage}},
        },
    });
    api.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await
}

fn exceeds<T: std::fmt::Debug>(result: kube::Result<T>, word: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains("exceeded quota: portolan") && error.contains(word), "{error}");
}

#[tokio::test(start_paused = true)]
async fn load_balancers_storage_and_numbers_of_objects_are_bounded() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    let client = fleet.members[0].client("user");
    for name in ["fast", "slow"] {
        apply(&client, &json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": "example.com/p",
        })).await;
    }
    pass(30).await;
    create_service(&fleet, "inside", "ClusterIP").await.unwrap();
    exceeds(create_service(&fleet, "balanced", "LoadBalancer").await, "services.loadbalancers");
    exceeds(create_service(&fleet, "outside", "NodePort").await, "services.nodeports");
    claim(&fleet, "small", "slow", "1Gi").await.unwrap();
    exceeds(claim(&fleet, "large", "slow", "100Gi").await, "requests.storage");
    let quota = Api::<ResourceQuota>::namespaced(client.clone(), NAMESPACE).get("portolan").await.unwrap();
    let hard = quota.spec.unwrap().hard.unwrap();
    for word in ["configmaps", "secrets", "services", "deployments.apps", "replicasets.apps", "jobs.batch"] {
        assert!(hard.contains_key(&format!("count/{word}")), "{word}: {hard:?}");
    }
    let told = offer(&fleet).await.status.unwrap().used;
    assert!(!told.contains_key("storage"), "storage is no part of an offer: {told:?}");

    // A class opens some of it, and its storage classes are more than words.
    let class = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "SharingClass", "metadata": {"name": "gold"},
        "spec": {
            "percentage": 50, "storageClasses": ["fast"], "priorityClasses": ["batch", "night"],
            "quota": {"services.loadbalancers": "1", "services.nodeports": "1", "count/services": "2"},
        },
    });
    apply(&client, &class).await;
    share(&fleet, json!({"className": "gold", "percentage": null})).await;
    pass(30).await;
    assert_eq!(sharing(&fleet).await.0, "QuotasEnforced");
    exceeds(claim(&fleet, "other", "slow", "1Gi").await, "slow.storageclass.storage.k8s.io/requests.storage");
    claim(&fleet, "mine", "fast", "1Gi").await.unwrap();
    create_service(&fleet, "balanced", "LoadBalancer").await.unwrap();
    exceeds(create_service(&fleet, "third", "ClusterIP").await, "count/services");
    let annotations = async || {
        let shop = Api::<Namespace>::all(client.clone()).get(NAMESPACE).await.unwrap();
        let read = |name: &str| shop.metadata.annotations.as_ref().and_then(|all| all.get(name).cloned());
        (read("portolan.dev/tenant-priority-classes"), read("portolan.dev/tenant-storage-classes"))
    };
    assert_eq!(annotations().await, (Some("batch,night".to_owned()), Some("fast".to_owned())));

    // All of it ends with the tenancy.
    spec_of(&client, "rome", json!({"incoming": null})).await;
    pass(30).await;
    assert_eq!(annotations().await, (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_says_nothing_has_a_limit_on_its_disk_and_none_on_its_memory() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    pass(30).await;
    let pod = create_pod(&fleet, "silent", json!({})).await.unwrap();
    let resources = pod.spec.unwrap().containers[0].resources.clone().unwrap();
    let (requests, limits) = (resources.requests.unwrap(), resources.limits.unwrap());
    assert_eq!(
        limits.into_iter().map(|(name, limit)| (name, limit.0)).collect::<Vec<_>>(),
        [("ephemeral-storage".to_owned(), "10Gi".to_owned())]
    );
    assert_eq!(requests["ephemeral-storage"].0, "0", "its limit is not what it requests");
    create_pod(&fleet, "large", json!({"requests": {"memory": "1Gi"}}))
        .await
        .expect("a limit of memory would be less");
    let writes = |fleet: &Fleet| -> u64 {
        let calls = fleet.members[0].calls();
        let written = calls.iter().filter(|call| {
            call.verb == "patch" && ["limitranges", "resourcequotas"].contains(&call.resource.as_str())
        });
        written.map(|call| call.count).sum()
    };
    let before = writes(&fleet);
    pass(300).await;
    assert_eq!(writes(&fleet), before, "what is as it should be is not written");
}

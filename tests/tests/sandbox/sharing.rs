//! Resource negotiation: a provider offers a part of itself and enforces it, a consumer accepts it and stays within.

use crate::stage::{asking, contend, fleet_of, pass, patch, ready, replicas, status};
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota, Service,
};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, ResourceOffer};
use portolan_control::sharing::provide;
use portolan_core::capacity::{Amounts, CPU, MEMORY};
use portolan_runtime::Seed;
use portolan_sandbox::FaultPlan;
use portolan_tests::simulation::{Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const HOME: &str = "portolan-tenant-rome";

/// A hub, which is called rome by its only member milan: two nodes of four CPUs, of which it shares this.
async fn peers(sharing: Value) -> (Fleet, JoinHandle<()>) {
    let fleet = fleet_of(&[("milan", 2, "4")], FaultPlan::none()).await;
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

fn begin(fleet: &Fleet) -> JoinHandle<()> {
    let client = fleet.members[0].client("provider");
    tokio::spawn(provide(client, fleet.world.clock().clone(), Seed::new(3)))
}

async fn spec_of(client: &Client, cluster: &str, spec: Value) {
    let clusters: Api<ForeignCluster> = Api::all(client.clone());
    let patch = Patch::Merge(json!({ "spec": spec }));
    clusters.patch(cluster, &PatchParams::default(), &patch).await.unwrap();
}

async fn share(fleet: &Fleet, sharing: Value) {
    spec_of(&fleet.members[0].client("user"), "rome", json!({"incoming": {"sharing": sharing}})).await;
}

async fn offer(fleet: &Fleet) -> ResourceOffer {
    let api: Api<ResourceOffer> = Api::namespaced(fleet.members[0].client("user"), HOME);
    api.get("offer").await.unwrap()
}

async fn offered(fleet: &Fleet) -> Amounts {
    Amounts::parse(&offer(fleet).await.spec.resources).unwrap()
}

/// Reason and message of a condition of a ForeignCluster, on the provider or on the hub.
async fn told(client: &Client, cluster: &str, type_: ConditionType) -> (String, String) {
    let api: Api<ForeignCluster> = Api::all(client.clone());
    let status = api.get(cluster).await.unwrap().status.unwrap_or_default();
    let found = conditions::find(&status.conditions, type_).cloned();
    found.map(|found| (found.reason, found.message)).unwrap_or_default()
}

async fn accepted(fleet: &Fleet) -> (String, String) {
    told(&fleet.hub.client("user"), "milan", ConditionType::OfferAccepted).await
}

async fn sharing(fleet: &Fleet) -> (String, String) {
    told(&fleet.members[0].client("user"), "rome", ConditionType::Sharing).await
}

/// What quotas admit of CPU in each namespace, in thousandths.
async fn quotas(fleet: &Fleet) -> Vec<(String, i64)> {
    let api: Api<ResourceQuota> = Api::all(fleet.members[0].client("user"));
    let all = api.list(&ListParams::default()).await.unwrap().items;
    let cpu = |quota: &ResourceQuota| {
        let hard = quota.spec.clone().unwrap().hard.unwrap();
        portolan_core::capacity::milli(&hard["requests.cpu"].0).unwrap()
    };
    all.iter().map(|quota| (quota.metadata.namespace.clone().unwrap(), cpu(quota))).collect()
}

async fn admitted(fleet: &Fleet) -> i64 {
    quotas(fleet).await.iter().map(|(_, cpu)| cpu).sum()
}

async fn create_pod(fleet: &Fleet, name: &str, resources: Value) -> kube::Result<Pod> {
    let api: Api<Pod> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "app:1", "resources": resources}]},
    });
    api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await
}

fn web(replicas: i32, cpu: &str) -> Value {
    let mut web = workload("web", replicas, json!({"locations": ["milan"]}));
    web["spec"]["template"]["spec"]["containers"] = asking(cpu);
    web
}

async fn running(fleet: &Fleet) -> usize {
    let api: Api<Pod> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    let pods = api.list(&ListParams::default()).await.unwrap().items;
    pods.iter()
        .filter(|pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running"))
        .count()
}

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
    let class = |name: &str, spec: Value| json!({"apiVersion": "portolan.dev/v1alpha1", "kind": "SharingClass", "metadata": {"name": name}, "spec": spec});
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

//! Sharing with tenants by invitation, who have the rights of their certificates and no others.

use super::{class, told};
use crate::credentials::pass;
use crate::tenancy::{Stage, code};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, ResourceQuota, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::foreigncluster::OfferAcceptance;
use portolan_api::{ForeignCluster, ResourceOffer};
use portolan_control::tenancy::{Inviting, TenancyError, invite};
use portolan_sandbox::ClusterConfig;
use portolan_tests::simulation::apply;
use portolan_tests::{NAMESPACE, open_namespace, workload};
use serde_json::{Value, json};

const HOME: &str = "portolan-tenant-rome";

async fn peered() -> Stage {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    stage
}

async fn incoming(stage: &Stage, incoming: Value) {
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    let patch = Patch::Merge(json!({"spec": {"incoming": incoming}}));
    clusters.patch("rome", &PatchParams::default(), &patch).await.unwrap();
}

/// What becomes of a ConfigMap that the tenant creates: nothing, or the code of the refusal.
async fn create(stage: &Stage, namespace: &str) -> Option<u16> {
    let api: Api<ConfigMap> = Api::namespaced(stage.as_tenant().await, namespace);
    let object = serde_json::from_value(json!({"metadata": {"generateName": "x-"}})).unwrap();
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => None,
        other => Some(code(other)),
    }
}

async fn bounded(stage: &Stage, namespace: &str) -> bool {
    let api: Api<ResourceQuota> = Api::namespaced(stage.provider.client("user"), namespace);
    api.get_opt("portolan").await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_tenant_reads_its_offer_and_accepts_it_by_its_own_rights() {
    let stage = peered().await;
    let consumer = stage.consumer.client("user");
    assert_eq!(told(&consumer, "paris", ConditionType::OfferAccepted).await.0, "OfferAccepted");
    let offers: Api<ResourceOffer> = Api::namespaced(stage.provider.client("user"), HOME);
    let told = offers.get("offer").await.unwrap().status.unwrap().conditions;
    assert!(conditions::is_true(&told, ConditionType::Accepted), "{told:?}");
    let own: Api<ResourceOffer> = Api::namespaced(stage.as_tenant().await, HOME);
    let more = Patch::Merge(json!({"spec": {"resources": {"cpu": "1000"}}}));
    assert_eq!(code(own.patch("offer", &PatchParams::default(), &more).await), 403);
    let others: Api<ResourceOffer> = Api::all(stage.as_tenant().await);
    assert_eq!(code(others.list(&ListParams::default()).await), 403);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_shares_is_not_used() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|inviting| inviting.sharing = None).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    let user = stage.consumer.client("user");
    apply(&user, &open_namespace()).await;
    apply(&user, &workload("web", 1, json!({"locations": ["paris"]}))).await;
    pass(30).await;
    let placed = async || {
        let api: Api<portolan_api::MultiClusterDeployment> = Api::namespaced(user.clone(), NAMESPACE);
        let status = api.get("web").await.unwrap().status.unwrap_or_default();
        (status.ready_replicas, status.pending_replicas)
    };
    assert_eq!(placed().await, (0, 1));
    let class = class("default", json!({"default": true, "percentage": 50}));
    apply(&stage.provider.client("user"), &class).await;
    pass(60).await;
    assert_eq!(placed().await, (1, 0));
}

#[tokio::test(start_paused = true)]
async fn rights_follow_the_namespaces_that_are_open_and_quotas_outlive_them() {
    let stage = peered().await;
    let admin = stage.provider.client("user");
    apply(&admin, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})).await;
    assert_eq!((create(&stage, NAMESPACE).await, create(&stage, "lab").await), (None, Some(403)));
    incoming(&stage, json!({"namespaces": [NAMESPACE, "lab"]})).await;
    pass(20).await;
    assert_eq!((create(&stage, "lab").await, bounded(&stage, "lab").await), (None, true));
    incoming(&stage, json!({"namespaces": ["lab"]})).await;
    for _ in 0..60 {
        pass(1).await;
        let is_open = create(&stage, NAMESPACE).await.is_none();
        assert!(!is_open || bounded(&stage, NAMESPACE).await, "a right without a bound");
    }
    assert_eq!((create(&stage, NAMESPACE).await, bounded(&stage, NAMESPACE).await), (Some(403), false));
    assert_eq!(create(&stage, "lab").await, None);
    incoming(&stage, json!({"namespaces": []})).await;
    pass(20).await;
    let wide: Api<ClusterRoleBinding> = Api::all(admin);
    let wide = wide.list(&ListParams::default().labels("portolan.dev/tenant=rome")).await.unwrap().items;
    let names: Vec<String> = wide.into_iter().filter_map(|each| each.metadata.name).collect();
    assert_eq!(names, ["portolan-tenant-rome-renewal"]);
}

#[tokio::test(start_paused = true)]
async fn rights_and_namespaces_that_somebody_deletes_are_made_again() {
    let stage = peered().await;
    let admin = stage.provider.client("user");
    let none = DeleteParams::default();
    let bindings: Api<RoleBinding> = Api::namespaced(admin.clone(), NAMESPACE);
    bindings.delete("portolan-tenant-rome", &none).await.unwrap();
    assert_eq!(create(&stage, NAMESPACE).await, Some(403));
    Api::<Namespace>::all(admin).delete(HOME, &none).await.unwrap();
    pass(130).await;
    assert_eq!(create(&stage, NAMESPACE).await, None);
    let offers: Api<ResourceOffer> = Api::namespaced(stage.as_tenant().await, HOME);
    offers.get("offer").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_opened_to_one_tenant() {
    let mut stage = Stage::new().await;
    let (first, second) = (stage.invite(|_| ()).await, stage.invite(|_| ()).await);
    stage.redeem(&first).await.unwrap();
    let oslo = stage.world.add_cluster(ClusterConfig::named("oslo"));
    let refused = stage.redeem_in(&oslo, "oslo", 3600, &second).await.unwrap_err();
    assert!(matches!(refused, TenancyError::Refused { .. }), "{refused}");
    assert!(refused.to_string().contains("belongs to tenant rome"), "{refused}");
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    assert!(clusters.get_opt("oslo").await.unwrap().is_none());

    // And nobody else is invited to it any more, nor to one of a hub.
    let admin = stage.provider.client("admin");
    let now = stage.world.clock().now();
    let mut inviting = Inviting { consumer: Some("oslo".to_owned()), ..stage.inviting() };
    let refused = Box::pin(invite(&admin, &inviting, now)).await.unwrap_err();
    assert!(
        matches!(&refused, TenancyError::NamespaceTaken { holder, .. } if holder == "tenant rome"),
        "{refused}"
    );
    apply(&admin, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})).await;
    let labels = json!({"portolan.dev/hub": "other"});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "hub", "namespace": "lab", "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "hub"},
    });
    apply(&admin, &binding).await;
    inviting.namespaces = vec!["lab".to_owned()];
    let refused = Box::pin(invite(&admin, &inviting, now)).await.unwrap_err();
    assert!(refused.to_string().contains("the hub with identity other"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_the_class_says_of_pods_holds_also_in_namespaces_that_an_invitation_made() {
    let mut stage = Stage::new().await;
    let admin = stage.provider.client("user");
    let spec = json!({"default": true, "percentage": 50, "podSecurity": "restricted"});
    apply(&admin, &class("default", spec)).await;
    let line = stage.invite(|inviting| inviting.sharing = None).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    for name in [HOME, NAMESPACE] {
        let found = Api::<Namespace>::all(admin.clone()).get(name).await.unwrap();
        let labels = found.metadata.labels.unwrap();
        assert_eq!(labels["pod-security.kubernetes.io/enforce"], "restricted", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_accepts_offers_stays_as_the_user_said() {
    let mut stage = peered().await;
    let hub = stage.consumer.client("user");
    let clusters: Api<ForeignCluster> = Api::all(hub.clone());
    let manual = Patch::Merge(json!({"spec": {"outgoing": {"acceptance": "Manual"}}}));
    clusters.patch("paris", &PatchParams::default(), &manual).await.unwrap();
    let provider: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    provider.delete("rome", &DeleteParams::default()).await.unwrap();
    pass(30).await;
    let line = stage.invite(|_| ()).await;
    stage.redeem_in(&stage.consumer, "anew", 3600, &line).await.unwrap();
    let outgoing = clusters.get("paris").await.unwrap().spec.outgoing.unwrap();
    assert_eq!(outgoing.acceptance, OfferAcceptance::Manual);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_sees_nothing_of_others() {
    let stage = peered().await;
    let tenant = stage.as_tenant().await;
    for namespace in ["kube-system", "portolan", "default"] {
        let pods: Api<Pod> = Api::namespaced(tenant.clone(), namespace);
        assert_eq!(code(pods.list(&ListParams::default()).await), 403, "{namespace}");
    }
    let all: Api<Pod> = Api::all(tenant.clone());
    assert_eq!(code(all.list(&ListParams::default()).await), 403);
    let secrets: Api<Secret> = Api::namespaced(tenant, HOME);
    assert_eq!(code(secrets.list(&ListParams::default()).await), 403);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_sees_the_cluster_where_the_provider_says_so() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|inviting| inviting.sees_cluster = true).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    let tenant = stage.as_tenant().await;
    Api::<Pod>::all(tenant.clone()).list(&ListParams::default()).await.unwrap();
    let nodes = Api::<Node>::all(tenant).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(nodes.len(), 1);
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    incoming(&stage, json!({"seesCluster": null})).await;
    pass(10).await;
    assert_eq!(code(Api::<Node>::all(stage.as_tenant().await).list(&ListParams::default()).await), 403);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_places_in_a_namespace_that_was_opened_later() {
    let stage = peered().await;
    let open = |name: &str| {
        let labels = json!({"portolan.dev/placement": "allowed"});
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    };
    apply(&stage.provider.client("user"), &open("lab")).await;
    let user = stage.consumer.client("user");
    apply(&user, &open("lab")).await;
    let mut web = workload("web", 2, json!({"locations": ["paris"]}));
    web["metadata"]["namespace"] = json!("lab");
    apply(&user, &web).await;
    pass(30).await;
    let copies: Api<Deployment> = Api::namespaced(stage.provider.client("user"), "lab");
    assert!(copies.get_opt("web").await.unwrap().is_none());
    incoming(&stage, json!({"namespaces": [NAMESPACE, "lab"]})).await;
    pass(90).await;
    assert_eq!(copies.get("web").await.unwrap().status.unwrap().ready_replicas, Some(2));
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
}

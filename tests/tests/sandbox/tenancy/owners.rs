//! What was there before and is not ours is neither taken over nor deleted, and what others use stays as it is.

use super::*;
use k8s_openapi::api::core::v1::ConfigMap;
use portolan_control::peering::{Sides, identity, join, leave_hub, leave_member};

async fn config_map(stage: &Stage, namespace: &str) -> bool {
    let api: Api<ConfigMap> = Api::namespaced(stage.provider.client("user"), namespace);
    api.get_opt("ledger").await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_somebody_else_is_no_tenants() {
    let mut stage = Stage::new().await;
    let user = stage.provider.client("user");
    let home = "portolan-tenant-rome";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}});
    apply(&user, &namespace).await;
    let kept =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ledger", "namespace": home}});
    apply(&user, &kept).await;
    let line = stage.invite(|_| ()).await;
    let refused = stage.redeem(&line).await.unwrap_err();
    assert!(refused.to_string().contains("Namespace portolan-tenant-rome exists"), "{refused}");
    assert!(refused.to_string().contains("--name"), "{refused}");
    pass(120).await;
    assert!(config_map(&stage, home).await);
    let found = Api::<Namespace>::all(user.clone()).get(home).await.unwrap();
    assert!(!found.metadata.labels.unwrap().contains_key("portolan.dev/tenant"));
    assert_eq!(stage.left().await, Vec::<String>::new());
    // By another name it has a namespace of its own.
    let line = stage.invite(|inviting| inviting.consumer = Some("roma".to_owned())).await;
    stage.redeem(&line).await.unwrap();
    Api::<ForeignCluster>::all(user).delete("roma", &DeleteParams::default()).await.unwrap();
    pass(60).await;
    assert_eq!(stage.left().await, Vec::<String>::new());
    assert!(config_map(&stage, home).await);
}

#[tokio::test(start_paused = true)]
async fn a_binding_of_somebody_else_is_no_tenants() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    let user = stage.provider.client("user");
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "portolan-tenant-rome", "namespace": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    apply(&user, &binding).await;
    let refused = stage.redeem(&line).await.unwrap_err();
    assert!(refused.to_string().contains("RoleBinding shop/portolan-tenant-rome exists"), "{refused}");
    pass(120).await;
    assert_eq!(stage.left().await, Vec::<String>::new(), "what was made until then is gone");
    let found = Api::<RoleBinding>::namespaced(user, NAMESPACE).get("portolan-tenant-rome").await.unwrap();
    assert_eq!(found.subjects.unwrap()[0].name, "jane");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_an_earlier_tenant_has_left_is_not_given_to_the_next_one() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(10).await;
    let user = stage.provider.client("user");
    let home: Api<ResourceQuota> = Api::namespaced(user.clone(), "portolan-tenant-rome");
    // Somebody removes the ForeignCluster by force while no controller runs, and something runs in the namespace.
    stage.controllers.shutdown().await;
    let _ = home.delete("portolan", &DeleteParams::default()).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "runs", "namespace": "portolan-tenant-rome"},
        "spec": {"containers": [{"name": "main", "image": "x"}]},
    });
    apply(&user, &pod).await;
    let clusters: Api<ForeignCluster> = Api::all(user.clone());
    clusters.delete("rome", &DeleteParams::default()).await.unwrap();
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    clusters.patch("rome", &PatchParams::default(), &release).await.unwrap();
    stage.control();
    let milan = stage.world.add_cluster(ClusterConfig::named("milan"));
    let line = stage.invite(|inviting| inviting.consumer = Some("rome".to_owned())).await;
    let refused = stage.redeem_in(&milan, "milan", 3600, &line).await.unwrap_err();
    assert!(refused.to_string().contains("earlier tenant"), "{refused}");
    let namespaces: Api<Namespace> = Api::all(user);
    namespaces.get("portolan-tenant-rome").await.unwrap();
    namespaces.delete("portolan-tenant-rome", &DeleteParams::default()).await.unwrap();
    let line = stage.invite(|inviting| inviting.consumer = Some("rome".to_owned())).await;
    stage.redeem_in(&milan, "milan", 3600, &line).await.unwrap();
    assert!(stage.user_of("rome").await.is_some_and(|user| user.ends_with(&line.invitation)));
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_somebody_else_is_no_credential() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    let user = stage.consumer.client("user");
    apply(&user, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "portolan"}})).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "paris", "namespace": "portolan"},
        "stringData": {"password": "correct horse"},
    });
    apply(&user, &secret).await;
    let refused = stage.redeem(&line).await.unwrap_err();
    assert!(matches!(refused, TenancyError::Peer(PeerError::NotOurs { .. })), "{refused}");
    assert!(refused.to_string().contains("Secret portolan/paris") && refused.to_string().contains("--name"));
    assert_eq!(stage.phase(&line).await, InvitationPhase::Pending, "nothing was asked for");
    leave_hub(&user, "paris").await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(user, "portolan");
    assert!(secrets.get("paris").await.unwrap().data.unwrap().contains_key("password"));
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_leaves_closes_no_namespace_that_a_tenant_uses() {
    let mut stage = Stage::new().await;
    let milan = stage.world.add_cluster(ClusterConfig::named("milan"));
    let address = Address { server: "https://paris".to_owned(), ..Address::default() };
    let admin = stage.provider.client("admin");
    let sides = Sides { hub: milan.client("admin"), member: admin.clone(), address };
    let peer = Peer {
        name: "paris".to_owned(),
        namespaces: vec![NAMESPACE.to_owned()],
        token_lifetime: 3600,
        ..Peer::default()
    };
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    join(&sides, &peer, stage.world.clock().now(), &|_| ()).await.unwrap();
    pass(20).await;
    let id = identity(&milan.client("admin"), "the hub").await.unwrap();
    let came = leave_member(&admin, &id).await.unwrap();
    assert!(came.stays.iter().any(|stays| stays.starts_with("Namespace shop")), "{came:?}");
    let namespaces: Api<Namespace> = Api::all(admin);
    let labels = namespaces.get(NAMESPACE).await.unwrap().metadata.labels.unwrap();
    assert_eq!(labels.get("portolan.dev/placement").map(String::as_str), Some("allowed"));
    apply(&stage.consumer.client("user"), &open_namespace()).await;
    apply(&stage.consumer.client("user"), &workload("web", 1, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    let copies: Api<Deployment> = Api::namespaced(stage.provider.client("user"), NAMESPACE);
    assert_eq!(copies.get("web").await.unwrap().status.unwrap().ready_replicas, Some(1));
}

//! Roles that really refuse, tokens, reviews.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{cluster, code, config_map, eventually, message};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview};
use k8s_openapi::api::authorization::v1::{
    SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectRulesReviewStatus,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use portolan_sandbox::{Cluster, User};
use serde_json::{Value, json};

async fn make<K>(api: Api<K>, object: Value)
where
    K: kube::Resource + serde::Serialize + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

async fn let_jane_read(cluster: &Cluster) {
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]);
    make::<Role>(
        Api::namespaced(cluster.client("admin"), "default"),
        json!({"metadata": {"name": "reader"}, "rules": rules}),
    )
    .await;
    let binding = json!({
        "metadata": {"name": "jane"},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
    });
    make::<RoleBinding>(Api::namespaced(cluster.client("admin"), "default"), binding).await;
}

#[tokio::test(start_paused = true)]
async fn only_what_a_role_allows() {
    let (_world, cluster) = cluster();
    let jane = cluster.client_as("jane", User::named("jane"));
    let maps: Api<ConfigMap> = Api::namespaced(jane.clone(), "default");
    let error = maps.list(&ListParams::default()).await.unwrap_err();
    assert_eq!(code(&error), 403);
    assert_eq!(
        message(&error),
        "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    let_jane_read(&cluster).await;
    assert!(maps.list(&ListParams::default()).await.is_ok());
    assert_eq!(code(&maps.create(&PostParams::default(), &config_map("x", "")).await.unwrap_err()), 403);
    let everywhere: Api<ConfigMap> = Api::all(jane.clone());
    let error = everywhere.list(&ListParams::default()).await.unwrap_err();
    assert!(message(&error).ends_with("in API group \"\" at the cluster scope"), "{}", message(&error));
    let pods: Api<Pod> = Api::namespaced(jane.clone(), "default");
    assert_eq!(code(&pods.get("x").await.unwrap_err()), 403);
    assert!(jane.list_core_api_versions().await.is_ok(), "discovery is for everybody who is somebody");
}

#[tokio::test(start_paused = true)]
async fn nobody_gives_away_what_they_do_not_have() {
    let (_world, cluster) = cluster();
    let_jane_read(&cluster).await;
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "patch"]}]);
    make::<Role>(
        Api::namespaced(cluster.client("admin"), "default"),
        json!({"metadata": {"name": "granter"}, "rules": rules}),
    )
    .await;
    let binding = json!({
        "metadata": {"name": "jane-grants"}, "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "granter"},
    });
    make::<RoleBinding>(Api::namespaced(cluster.client("admin"), "default"), binding).await;
    let roles: Api<Role> = Api::namespaced(cluster.client_as("jane", User::named("jane")), "default");
    let role = |verbs: &[&str]| -> Role {
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
        serde_json::from_value(json!({"metadata": {"name": "mine"}, "rules": rules})).unwrap()
    };
    let error = roles.create(&PostParams::default(), &role(&["get", "delete"])).await.unwrap_err();
    assert!(
        message(&error).contains("is attempting to grant RBAC permissions not currently held"),
        "{}",
        message(&error)
    );
    roles.create(&PostParams::default(), &role(&["get"])).await.unwrap();
    let roles: Api<ClusterRole> = Api::all(cluster.client("admin"));
    assert!(roles.get("cluster-admin").await.is_ok());
    // But for roles that they may bind by name.
    let group = "rbac.authorization.k8s.io";
    let rules = json!([
        {"apiGroups": [group], "resources": ["rolebindings"], "verbs": ["create"]},
        {"apiGroups": [group], "resources": ["clusterroles"], "resourceNames": ["edit"], "verbs": ["bind"]},
    ]);
    let of_jane = json!([{"kind": "User", "name": "jane"}]);
    let binder = json!({"metadata": {"name": "binder"}, "rules": rules});
    make::<Role>(Api::namespaced(cluster.client("admin"), "default"), binder).await;
    let binding = |name: &str, kind: &str, role: &str| {
        json!({
            "metadata": {"name": name}, "subjects": of_jane, "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        })
    };
    let jane_binds = binding("jane-binds", "Role", "binder");
    make::<RoleBinding>(Api::namespaced(cluster.client("admin"), "default"), jane_binds).await;
    let bindings: Api<RoleBinding> =
        Api::namespaced(cluster.client_as("jane", User::named("jane")), "default");
    let bind = async |role: &str| {
        let object = serde_json::from_value(binding(role, "ClusterRole", role)).unwrap();
        bindings.create(&PostParams::default(), &object).await
    };
    bind("edit").await.unwrap();
    assert_eq!(code(&bind("admin").await.unwrap_err()), 403);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_bound_to_a_secret_goes_with_it() {
    let (_world, cluster) = cluster();
    let (accounts, secrets): (Api<ServiceAccount>, Api<Secret>) = (
        Api::namespaced(cluster.client("admin"), "default"),
        Api::namespaced(cluster.client("admin"), "default"),
    );
    eventually("the account is there", async || accounts.get_opt("default").await.unwrap().is_some()).await;
    let secret = serde_json::from_value(json!({"metadata": {"name": "bound"}})).unwrap();
    let made = secrets.create(&PostParams::default(), &secret).await.unwrap();
    let ask = async |kind: &str, name: &str, uid: &str| {
        let bound = json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid});
        let request: TokenRequest = serde_json::from_value(
            json!({"metadata": {}, "spec": {"audiences": [], "boundObjectRef": bound}}),
        )
        .unwrap();
        accounts.create_token_request("default", &PostParams::default(), &request).await
    };
    assert_eq!(code(&ask("Secret", "missing", "").await.unwrap_err()), 404);
    assert_eq!(code(&ask("Secret", "bound", "another").await.unwrap_err()), 409);
    assert_eq!(code(&ask("ConfigMap", "bound", "").await.unwrap_err()), 400);
    let uid = made.metadata.uid.unwrap();
    let token = ask("Secret", "bound", &uid).await.unwrap().status.unwrap().token.unwrap();
    let call = async || {
        let request = http::Request::get("/api/v1/namespaces/default/pods")
            .header("authorization", format!("Bearer {token}"))
            .body(Vec::new())
            .unwrap();
        code(&cluster.client("admin").request::<Value>(request).await.unwrap_err())
    };
    assert_eq!(call().await, 403, "it is known, and may do nothing");
    secrets.delete("bound", &DeleteParams::default()).await.unwrap();
    assert_eq!(call().await, 401, "it is not known any more");
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    assert_eq!(call().await, 401, "nor by another Secret of the same name");
}

#[tokio::test(start_paused = true)]
async fn tokens_of_service_accounts() {
    let (_world, cluster) = cluster();
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client("admin"), "default");
    eventually("the account is there", async || accounts.get_opt("default").await.unwrap().is_some()).await;
    let request: TokenRequest = serde_json::from_value(
        json!({"metadata": {}, "spec": {"audiences": ["x"], "expirationSeconds": 600}}),
    )
    .unwrap();
    let token = accounts
        .create_token_request("default", &PostParams::default(), &request)
        .await
        .unwrap()
        .status
        .unwrap()
        .token
        .unwrap();
    let review = async |token: &str| {
        let reviews: Api<TokenReview> = Api::all(cluster.client("admin"));
        let review = serde_json::from_value(json!({"metadata": {}, "spec": {"token": token}})).unwrap();
        reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap()
    };
    let status = review(&token).await;
    assert_eq!(status.authenticated, Some(true));
    assert_eq!(status.user.unwrap().username.as_deref(), Some("system:serviceaccount:default:default"));
    assert_ne!(review(&format!("{token}x")).await.authenticated, Some(true));
    tokio::time::sleep(Duration::from_secs(601)).await;
    assert_ne!(review(&token).await.authenticated, Some(true), "it is over");
    let request = http::Request::get("/api/v1/pods")
        .header("authorization", format!("Bearer {token}"))
        .body(Vec::new())
        .unwrap();
    assert_eq!(code(&cluster.client("admin").request::<Value>(request).await.unwrap_err()), 401);
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered() {
    let (_world, cluster) = cluster();
    let_jane_read(&cluster).await;
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client_as("jane", User::named("jane")));
    let ask = async |verb: &str, resource: &str| {
        let spec =
            json!({"resourceAttributes": {"verb": verb, "resource": resource, "namespace": "default"}});
        let review = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
    };
    assert!(ask("get", "configmaps").await);
    assert!(!ask("delete", "configmaps").await);
    assert!(!ask("get", "secrets").await);
}

#[tokio::test(start_paused = true)]
async fn rules_are_those_of_the_namespace_and_of_everybody() {
    let (_world, cluster) = cluster();
    let_jane_read(&cluster).await;
    let reviews: Api<SelfSubjectRulesReview> = Api::all(cluster.client_as("jane", User::named("jane")));
    let ask = async |namespace: &str| {
        let review = json!({"metadata": {}, "spec": {"namespace": namespace}});
        reviews.create(&PostParams::default(), &serde_json::from_value(review).unwrap()).await
    };
    let reads = |status: &SubjectRulesReviewStatus| {
        let rules = status.resource_rules.iter();
        rules.flat_map(|rule| rule.resources.iter().flatten()).any(|resource| resource == "configmaps")
    };
    let here = ask("default").await.unwrap().status.unwrap();
    assert!(reads(&here) && !here.incomplete);
    let paths = here.non_resource_rules.iter().flat_map(|rule| rule.non_resource_urls.iter().flatten());
    assert!(paths.into_iter().any(|path| path == "/readyz"));
    assert!(!reads(&ask("kube-system").await.unwrap().status.unwrap()), "the role is of another namespace");
    let error = ask("").await.unwrap_err();
    assert_eq!((code(&error), message(&error).as_str()), (400, "no namespace on request"));
    // A right that is taken away is gone at once.
    let bindings: Api<RoleBinding> = Api::namespaced(cluster.client("admin"), "default");
    bindings.delete("jane", &Default::default()).await.unwrap();
    assert!(!reads(&ask("default").await.unwrap().status.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn whoever_is_known_may_ask_whether_the_server_is_ready() {
    let (_world, cluster) = cluster();
    let jane = cluster.client_as("jane", User::named("jane"));
    let ready = http::Request::get("/readyz").body(Vec::new()).unwrap();
    assert_eq!(jane.request_text(ready).await.unwrap(), "ok");
}

#[tokio::test(start_paused = true)]
async fn applying_what_is_not_there_takes_the_right_to_create_it() {
    let (_world, cluster) = cluster();
    let_jane_read(&cluster).await;
    let roles: Api<Role> = Api::namespaced(cluster.client("admin"), "default");
    let grant = async |verbs: &[&str]| {
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
        roles
            .patch("reader", &PatchParams::default(), &Patch::Merge(json!({ "rules": rules })))
            .await
            .unwrap();
    };
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client_as("jane", User::named("jane")), "default");
    let apply = async |value: &str| {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"k": value}});
        maps.patch("x", &PatchParams::apply("jane"), &Patch::Apply(object)).await
    };
    grant(&["patch"]).await;
    let error = apply("a").await.unwrap_err();
    assert_eq!(
        message(&error),
        "configmaps \"x\" is forbidden: User \"jane\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    grant(&["patch", "create"]).await;
    apply("a").await.unwrap();
    grant(&["patch"]).await;
    apply("b").await.unwrap();
}

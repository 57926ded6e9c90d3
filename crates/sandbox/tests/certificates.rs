//! Requests for certificates, who may approve them, what is signed, and whom it makes of a client.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{cluster, code, eventually, message, world};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use portolan_sandbox::{ClientCertificate, Cluster, ClusterConfig, User};
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use serde_json::{Value, json};

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING: &str = "kubernetes.io/kubelet-serving";

struct Asked {
    key: KeyPair,
    pem: String,
}

fn ask(name: &str, group: &str, names: &[SanType]) -> Asked {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if !group.is_empty() {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.subject_alt_names = names.to_vec();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    Asked { key, pem }
}

fn request(name: &str, signer: &str, pem: &str, usages: &[&str]) -> CertificateSigningRequest {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "request": k8s_openapi::ByteString(pem.as_bytes().to_vec()),
            "signerName": signer,
            "usages": usages,
            "username": "somebody-else",
            "groups": ["system:masters"],
        },
    }))
    .unwrap()
}

async fn allow(cluster: &Cluster, user: &str, rules: Value) {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": user}, "rules": rules});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": user},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
    });
    for (path, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let request = http::Request::post(format!("/apis/rbac.authorization.k8s.io/v1/{path}"))
            .body(object.to_string().into_bytes())
            .unwrap();
        cluster.client("admin").request::<Value>(request).await.unwrap();
    }
}

async fn approve(
    requests: &Api<CertificateSigningRequest>,
    name: &str,
    kind: &str,
) -> kube::Result<CertificateSigningRequest> {
    let mut found = requests.get(name).await?;
    let condition = json!({"type": kind, "status": "True", "reason": "Tested", "message": "by the test"});
    let status = found.status.get_or_insert_default();
    status.conditions.get_or_insert_default().push(serde_json::from_value(condition).unwrap());
    let path = format!("/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/approval");
    let request = http::Request::put(path).body(serde_json::to_vec(&found).unwrap()).unwrap();
    requests.clone().into_client().request(request).await
}

fn condition(found: &CertificateSigningRequest, kind: &str) -> Option<String> {
    let conditions = found.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|found| found.type_ == kind).map(|found| found.message.clone().unwrap_or_default())
}

async fn signed(requests: &Api<CertificateSigningRequest>, name: &str) -> String {
    let certificate =
        async || Some(String::from_utf8(requests.get(name).await.unwrap().status?.certificate?.0).unwrap());
    eventually("it is signed", async || certificate().await.is_some()).await;
    certificate().await.unwrap()
}

async fn failure(cluster: &Cluster, name: &str, signer: &str, asked: &Asked, usages: &[&str]) -> String {
    let requests: Api<CertificateSigningRequest> = Api::all(cluster.client("admin"));
    requests.create(&PostParams::default(), &request(name, signer, &asked.pem, usages)).await.unwrap();
    approve(&requests, name, "Approved").await.unwrap();
    eventually("it has failed", async || condition(&requests.get(name).await.unwrap(), "Failed").is_some())
        .await;
    let found = requests.get(name).await.unwrap();
    assert!(found.status.as_ref().unwrap().certificate.is_none(), "what failed is not signed");
    condition(&found, "Failed").unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_approved_request_becomes_a_certificate_that_says_who_its_owner_is() {
    let (_world, cluster) = cluster();
    let requests: Api<CertificateSigningRequest> = Api::all(cluster.client_as("ann", User::named("ann")));
    let asked = ask("jane", "team", &[]);
    let wanted = request("jane", CLIENT, &asked.pem, &["client auth", "digital signature"]);
    let refused = requests.create(&PostParams::default(), &wanted).await.unwrap_err();
    assert_eq!(code(&refused), 403, "nobody asks without a role");
    let own = json!([
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create", "get"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests/approval"], "verbs": ["update"]},
    ]);
    allow(&cluster, "ann", own).await;
    let made = requests.create(&PostParams::default(), &wanted).await.unwrap();
    assert_eq!(made.spec.username.as_deref(), Some("ann"), "whoever it says it is from");
    assert_eq!(made.spec.groups, Some(vec!["system:authenticated".to_owned()]));

    let refused = approve(&requests, "jane", "Approved").await.unwrap_err();
    assert_eq!(
        message(&refused),
        format!(
            "certificatesigningrequests.certificates.k8s.io \"jane\" is forbidden: user not permitted to approve requests with signerName \"{CLIENT}\""
        )
    );
    let rules = json!([
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["get"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests/approval"], "verbs": ["update"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": ["kubernetes.io/*"], "verbs": ["approve"]},
    ]);
    allow(&cluster, "approver", rules).await;
    let approver: Api<CertificateSigningRequest> =
        Api::all(cluster.client_as("approver", User::named("approver")));
    approve(&approver, "jane", "Approved").await.unwrap();
    let certificate = signed(&approver, "jane").await;

    let shown = ClientCertificate { certificate, key: asked.key.serialize_pem() };
    let jane = cluster.client_with("jane", &shown).unwrap();
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .body(who.to_string().into_bytes())
        .unwrap();
    let told: Value = jane.request(who).await.unwrap();
    assert_eq!(told["status"]["userInfo"]["username"], "jane");
    assert_eq!(told["status"]["userInfo"]["groups"], json!(["team", "system:authenticated"]));
    let maps: Api<ConfigMap> = Api::default_namespaced(jane);
    assert_eq!(code(&maps.list(&ListParams::default()).await.unwrap_err()), 403);
    allow(&cluster, "jane", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]))
        .await;
    maps.list(&ListParams::default()).await.unwrap();

    let other = ClientCertificate { key: KeyPair::generate().unwrap().serialize_pem(), ..shown };
    assert!(cluster.client_with("thief", &other).is_err(), "a certificate is nothing without its key");
    tokio::time::sleep(Duration::from_secs(366 * 24 * 3600)).await;
    assert_eq!(code(&maps.list(&ListParams::default()).await.unwrap_err()), 401, "it is over");
}

#[tokio::test(start_paused = true)]
async fn certificates_of_other_clusters_say_nothing() {
    let world = world(3);
    let [here, there] = ["here", "there"].map(|name| world.add_cluster(ClusterConfig::named(name)));
    let shown = here.certificate("root", &["system:masters", "team"], Duration::from_secs(600)).unwrap();
    let list = async |cluster: &Cluster| {
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client_with("root", &shown).unwrap());
        maps.list(&ListParams::default()).await
    };
    list(&here).await.unwrap();
    assert_eq!(code(&list(&there).await.unwrap_err()), 401);
    let again = common::world(3).add_cluster(ClusterConfig::named("here"));
    let same = again.certificate("root", &["system:masters", "team"], Duration::from_secs(600)).unwrap();
    assert_eq!(same.certificate, shown.certificate, "the same seed, the same keys");
}

#[tokio::test(start_paused = true)]
async fn signers_have_rules() {
    let (_world, cluster) = cluster();
    let person = ask("jane", "team", &[]);
    let node = ask("system:node:n1", "system:nodes", &[]);
    let dns = || SanType::DnsName("n1.example".try_into().unwrap());
    let server = ask("system:node:n1", "system:nodes", &[dns(), SanType::IpAddress([10, 0, 0, 1].into())]);
    let client = ["client auth", "digital signature"];
    let fails = async |name: &str, signer: &str, asked: &Asked, usages: &[&str]| {
        failure(&cluster, name, signer, asked, usages).await
    };
    assert_eq!(
        fails("a", CLIENT, &person, &["client auth", "server auth"]).await,
        "invalid usage for client certificate: server auth"
    );
    assert_eq!(
        fails("b", CLIENT, &person, &["digital signature"]).await,
        "missing required usage for client certificate: client auth"
    );
    assert_eq!(fails("c", KUBELET, &person, &client).await, "subject organization is not system:nodes");
    assert_eq!(fails("d", KUBELET, &server, &client).await, "DNS subjectAltNames are not allowed");
    assert_eq!(
        fails("e", KUBELET, &ask("n1", "system:nodes", &[]), &client).await,
        "subject common name does not begin with system:node:"
    );
    assert_eq!(
        fails("f", SERVING, &node, &["server auth", "digital signature"]).await,
        "DNS or IP subjectAltName is required"
    );
    assert_eq!(
        fails("g", SERVING, &server, &client).await,
        "usages did not match [digital signature key encipherment server auth]"
    );

    let requests: Api<CertificateSigningRequest> = Api::all(cluster.client("admin"));
    for (name, signer, asked, usages) in [
        ("node", KUBELET, &node, client),
        ("serving", SERVING, &server, ["server auth", "digital signature"]),
    ] {
        let wanted = request(name, signer, &asked.pem, &usages);
        requests.create(&PostParams::default(), &wanted).await.unwrap();
        if signer == SERVING {
            approve(&requests, name, "Approved").await.unwrap();
        }
        let certificate = signed(&requests, name).await;
        let shown = ClientCertificate { certificate, key: asked.key.serialize_pem() };
        let told: kube::Result<Value> = cluster
            .client_with("node", &shown)
            .unwrap()
            .request(http::Request::get("/api/v1/nodes").body(Vec::new()).unwrap())
            .await;
        let expected = if signer == SERVING { 401 } else { 403 };
        assert_eq!(code(&told.unwrap_err()), expected, "{name}: what is for servers makes no client");
    }
    let found = requests.get("node").await.unwrap();
    assert!(condition(&found, "Approved").unwrap().starts_with("Auto approving kubelet client certificate"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_signed_is_not_taken() {
    let (_world, cluster) = cluster();
    let requests: Api<CertificateSigningRequest> = Api::all(cluster.client("admin"));
    let asked = ask("jane", "", &[]);
    let refused = async |wanted: CertificateSigningRequest| {
        message(&requests.create(&PostParams::default(), &wanted).await.unwrap_err())
    };
    let usages = ["client auth"];
    let told = refused(request("a", CLIENT, "nonsense", &usages)).await;
    assert!(told.ends_with("PEM block type must be CERTIFICATE REQUEST"), "{told}");
    let broken = asked.pem.replace("\n-----END", "AAAA\n-----END");
    assert!(refused(request("a", CLIENT, &broken, &usages)).await.contains("spec.request: Invalid value"));
    let told = refused(request("a", "nonsense", &asked.pem, &usages)).await;
    assert!(told.contains("must be a fully qualified domain and path of the form 'example.com/signer-name'"));
    assert!(refused(request("a", CLIENT, &asked.pem, &[])).await.contains("spec.usages: Required value"));
    assert!(
        refused(request("a", CLIENT, &asked.pem, &["breathing"])).await.contains("supported values: \"any\"")
    );
    let mut short = request("a", CLIENT, &asked.pem, &usages);
    short.spec.expiration_seconds = Some(599);
    assert!(refused(short).await.contains("may not specify a duration less than 600 seconds (10 minutes)"));
    let master = ask("jane", "system:masters", &[]);
    let told = refused(request("a", CLIENT, &master.pem, &usages)).await;
    assert!(
        told.ends_with(&format!("use of {CLIENT} signer with system:masters group is not allowed")),
        "{told}"
    );

    let mut made = request("ok", CLIENT, &asked.pem, &usages);
    made.spec.expiration_seconds = Some(600);
    requests.create(&PostParams::default(), &made).await.unwrap();
    let change = json!({"spec": {"signerName": "example.com/other"}});
    let after = requests.patch("ok", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    assert_eq!(after.spec.signer_name, CLIENT, "what is asked for does not change");
    approve(&requests, "ok", "Denied").await.unwrap();
    let told = message(&approve(&requests, "ok", "Approved").await.unwrap_err());
    assert!(told.contains("Approved and Denied conditions are mutually exclusive"), "{told}");
    let status = json!({"status": {"conditions": []}});
    let told =
        requests.patch_approval("ok", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap_err();
    assert!(message(&told).contains("updates may not remove a condition of type \"Denied\""));
}

#[tokio::test(start_paused = true)]
async fn who_may_act_as_somebody_else() {
    let (_world, cluster) = cluster();
    let call = async |user: User, headers: &[(&str, &str)]| {
        let mut request = http::Request::get("/api/v1/namespaces/default/configmaps");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let outcome = cluster.client_as("x", user).request::<Value>(request.body(Vec::new()).unwrap()).await;
        outcome.map(|_| ()).map_err(|error| (code(&error), message(&error)))
    };
    let (admin, ann) = (User::admin, || User::named("ann"));
    let told = call(admin(), &[("impersonate-user", "bob")]).await.unwrap_err();
    assert!(told.1.contains("User \"bob\" cannot list resource \"configmaps\""), "{told:?}");
    call(admin(), &[("impersonate-user", "bob"), ("impersonate-group", "system:masters")]).await.unwrap();
    assert_eq!(call(admin(), &[("impersonate-group", "x")]).await.unwrap_err().0, 400);
    let told = call(ann(), &[("impersonate-user", "bob")]).await.unwrap_err();
    assert!(told.1.contains("User \"ann\" cannot impersonate-on:user-info:list"), "{told:?}");

    allow(&cluster, "bob", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]))
        .await;
    let rules = json!([{"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"]}]);
    allow(&cluster, "ann", rules).await;
    call(ann(), &[("impersonate-user", "bob")]).await.unwrap();
    assert_eq!(call(ann(), &[]).await.unwrap_err().0, 403, "ann herself may not");
    assert_eq!(call(ann(), &[("impersonate-user", "carl")]).await.unwrap_err().0, 403);
    let both = [("impersonate-user", "bob"), ("impersonate-group", "system:masters")];
    assert_eq!(
        call(ann(), &both).await.unwrap_err().0,
        403,
        "nobody adds groups to a user without a rule for it"
    );
    let narrow = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate:user-info"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["impersonate-on:user-info:list"]},
    ]);
    allow(&cluster, "narrow", narrow).await;
    call(User::named("narrow"), &[("impersonate-user", "bob")]).await.unwrap();
}

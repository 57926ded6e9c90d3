//! Requests for certificates, and acting as somebody else.
//!
//! No signer of Kubernetes runs on the real side here: what is signed is signed by the script.

use super::super::step::{Scenario, Step, apply, delete, get, merge_patch, post, put};
use super::{map, maps};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// For `/O=team/O=other/CN=jane`.
const REQUEST: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIGtMGECAQAwLjENMAsGA1UECgwEdGVhbTEOMAwGA1UECgwFb3RoZXIxDTALBgNV
BAMMBGphbmUwKjAFBgMrZXADIQB3ysESwHb8ppX6w/C+GbNKNAxBuWR2JxWPlvXr
icv+jKAAMAUGAytlcANBAKNhYvc2qJ7zSGpbxLQwpJzl8kXXtab05HR5t0UYO6YT
1WMriZ/RV27ZeJTVLB5oi+OTGg2Ora9b/vicbXobOAE=
-----END CERTIFICATE REQUEST-----
";

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![refused(), life(), impersonation()]
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_vec())
}

fn request(name: &str, signer: &str, pem: &str, usages: &[&str]) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {"request": bytes(pem), "signerName": signer, "usages": usages},
    })
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Script", "message": "says the script"})
}

fn refused() -> Scenario {
    let with = |field: &str, value: Value| {
        let mut object = request("refused", "example.com/own", REQUEST, &["client auth"]);
        object["spec"][field] = value;
        object
    };
    Scenario::new(
        "csr-refused",
        vec![
            post("no PEM", PATH, &with("request", json!(bytes("nonsense")))),
            post("not base64", PATH, &with("request", json!("%%%"))).only(|body| body["code"].clone()),
            post("no usages", PATH, &with("usages", json!([]))),
            post("unknown usage", PATH, &with("usages", json!(["client auth", "breathing"]))),
            post("usage twice", PATH, &with("usages", json!(["client auth", "client auth"]))),
            post("no signer", PATH, &with("signerName", json!(""))),
            post("signer without a path", PATH, &with("signerName", json!("example.com"))),
            post("signer without a domain", PATH, &with("signerName", json!("example/own"))),
            post("signer with bad letters", PATH, &with("signerName", json!("example.com/Own"))),
            post("legacy signer", PATH, &with("signerName", json!("kubernetes.io/legacy-unknown"))),
            post("too short", PATH, &with("expirationSeconds", json!(599))),
            post("dry run", format!("{PATH}?dryRun=All"), &with("expirationSeconds", json!(600)))
                .only(|body| json!([body["spec"]["expirationSeconds"], body["status"]])),
        ],
    )
}

fn life() -> Scenario {
    let own = format!("{PATH}/csr-life");
    let approval = format!("{own}/approval");
    let status = format!("{own}/status");
    let conditions = |list: Value| json!({"status": {"conditions": list}});
    let without_who = |body: &Value| {
        let mut body = body.clone();
        if let Some(spec) = body["spec"].as_object_mut() {
            spec.retain(|name, _| !matches!(name.as_str(), "username" | "groups" | "extra" | "uid"));
        }
        body
    };
    let call = |step: Step| step.only(without_who);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let cells = |body: &Value| {
        let mut cells = body["rows"][0]["cells"].clone();
        cells[3] = json!("<somebody>");
        json!([{"cells": cells}])
    };
    Scenario::new(
        "csr-life",
        vec![
            call(post("create", PATH, &request("csr-life", "example.com/own", REQUEST, &["client auth"]))),
            get("as a table", own.clone()).accepts(table).only(cells),
            call(merge_patch(
                "spec stays",
                own.clone(),
                &json!({"spec": {"signerName": "example.com/other"}}),
            )),
            call(merge_patch(
                "status stays",
                own.clone(),
                &conditions(json!([condition("Approved", "True")])),
            )),
            merge_patch(
                "approved through status",
                status.clone(),
                &conditions(json!([condition("Approved", "True")])),
            ),
            merge_patch(
                "not quite approved",
                approval.clone(),
                &conditions(json!([condition("Approved", "False")])),
            ),
            merge_patch("without a type", approval.clone(), &conditions(json!([{"status": "True"}]))),
            merge_patch(
                "approved and denied",
                approval.clone(),
                &conditions(json!([condition("Approved", "True"), condition("Denied", "True")])),
            ),
            call(merge_patch(
                "approve",
                approval.clone(),
                &conditions(json!([condition("Approved", "True")])),
            )),
            merge_patch("approval withdrawn", approval.clone(), &conditions(json!([]))),
            merge_patch(
                "certificate through approval",
                approval.clone(),
                &json!({"status": {"certificate": bytes("anything")}}),
            )
            .only(|body| body["status"]["certificate"].clone()),
            merge_patch(
                "not a certificate",
                status.clone(),
                &json!({"status": {"certificate": bytes("anything")}}),
            ),
            call(merge_patch(
                "another condition",
                status.clone(),
                &conditions(json!([condition("Approved", "True"), condition("Own", "Unknown")])),
            )),
            get("approved, as a table", own.clone()).accepts(table).only(cells),
            call(get("by signer", format!("{PATH}?fieldSelector=spec.signerName%3Dexample.com%2Fown")))
                .only(|body| json!([body["kind"], body["items"][0]["metadata"]["name"]])),
            call(get("the approval", approval)),
            call(put("update by the whole object", own.clone(), &{
                let mut object = request("csr-life", "example.com/other", REQUEST, &["server auth"]);
                object["metadata"]["labels"] = json!({"a": "b"});
                object
            })),
            call(apply(
                "apply a label",
                format!("{own}?fieldManager=me"),
                &json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
                    "metadata": {"name": "csr-life", "labels": {"c": "d"}}}),
            )),
            delete("delete", own),
            call(post("for the API server", PATH, &request("csr-client", CLIENT, REQUEST, &["client auth"]))),
            merge_patch(
                "denied",
                format!("{PATH}/csr-client/approval"),
                &conditions(json!([condition("Denied", "True")])),
            )
            .only(|body| body["status"].clone()),
            delete("delete what was denied", format!("{PATH}/csr-client")),
        ],
    )
}

fn impersonation() -> Scenario {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = |name: &'static str| post(name, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &review);
    let user = "Impersonate-User";
    let group = "Impersonate-Group";
    let role = "/apis/rbac.authorization.k8s.io/v1";
    Scenario::new(
        "impersonation",
        vec![
            who("a user").with(user, "ann"),
            who("with groups").with(user, "ann").with(group, "team").with(group, "other"),
            who("a node").with(user, "system:node:n1"),
            who("with all")
                .with(user, "ann")
                .with("Impersonate-Uid", "7")
                .with("Impersonate-Extra-Scopes", "view"),
            who("an account").with(user, "system:serviceaccount:some:default"),
            who("nobody").with(user, "system:anonymous"),
            get("as somebody without rights", maps("")).with(user, "ann"),
            get("as a group", maps("?fieldSelector=metadata.name%3Dmissing"))
                .with(user, "ann")
                .with(group, "system:masters"),
            get("a group alone", maps("")).with(group, "team").only(|body| body["code"].clone()),
            post("somebody's map", maps(""), &map("a", json!({}))).with(user, "ann"),
            post(
                "role",
                format!("{role}/namespaces/{{ns}}/roles"),
                &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "maps"},
                    "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]}),
            ),
            post(
                "binding",
                format!("{role}/namespaces/{{ns}}/rolebindings"),
                &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "maps"},
                    "subjects": [{"kind": "Group", "name": "makers", "apiGroup": "rbac.authorization.k8s.io"}],
                    "roleRef": {"kind": "Role", "name": "maps", "apiGroup": "rbac.authorization.k8s.io"}}),
            ),
            post("until it counts", maps("?dryRun=All"), &map("a", json!({})))
                .with(user, "ann")
                .with(group, "makers")
                .until(|code, _| code == 201),
            post("made as somebody", maps(""), &map("a", json!({}))).with(user, "ann").with(group, "makers"),
            get("read as somebody", maps("/a")).with(user, "ann").with(group, "makers"),
        ],
    )
}

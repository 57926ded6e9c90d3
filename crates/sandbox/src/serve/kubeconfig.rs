//! Kubeconfigs for served clusters.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};

use super::Served;
use crate::pki::ClientCertificate;

/// One kubeconfig with a context for every cluster; the first is the current one.
pub fn kubeconfig<'a>(clusters: impl IntoIterator<Item = &'a Served>) -> Value {
    let clusters: Vec<&Served> = clusters.into_iter().collect();
    let cluster = |served: &&Served| {
        let authority = BASE64.encode(&served.authority);
        json!({"name": served.cluster, "cluster": {"server": served.url(), "certificate-authority-data": authority}})
    };
    let user = |served: &&Served| json!({"name": format!("{}-admin", served.cluster), "user": {"token": served.token}});
    let context = |served: &&Served| {
        let admin = format!("{}-admin", served.cluster);
        json!({"name": served.cluster, "context": {"cluster": served.cluster, "user": admin}})
    };
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": clusters.first().map_or("", |served| served.cluster.as_str()),
        "clusters": clusters.iter().map(cluster).collect::<Vec<_>>(),
        "users": clusters.iter().map(user).collect::<Vec<_>>(),
        "contexts": clusters.iter().map(context).collect::<Vec<_>>(),
    })
}

/// A kubeconfig for one cluster, whose only user shows a certificate.
#[must_use]
pub fn kubeconfig_with(served: &Served, user: &str, shown: &ClientCertificate) -> Value {
    let mut out = kubeconfig([served]);
    out["users"] = json!([{"name": user, "user": {
        "client-certificate-data": BASE64.encode(&shown.certificate),
        "client-key-data": BASE64.encode(&shown.key),
    }}]);
    out["contexts"][0]["context"]["user"] = json!(user);
    out
}

//! What peering makes in the member and in the hub: pure.

use super::applied::own_namespace;
use super::peer::NAMESPACE;
use super::role::{Scope, rules};
use super::{Address, Peer, TokenFacts};
use crate::names::{ALLOW_INSECURE_ANNOTATION, HUB_LABEL, OPT_IN, OPT_IN_LABEL, POD_SECURITY_LABEL};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use portolan_api::foreigncluster::PrometheusQuery;
use serde_json::{Value, json};

/// The key of the kubeconfig in the Secret.
pub(crate) const SECRET_KEY: &str = "kubeconfig";

/// On the Secret in the hub: the URL of the member's API server that the user gave.
pub(super) const SERVER_ANNOTATION: &str = "portolan.dev/remote-server";

/// What pods may ask of their nodes in namespaces that peering makes, unless the user says something else.
const POD_SECURITY: &str = "baseline";

/// On the Secret in the hub: the ForeignCluster that it belongs to.
pub(super) const CLUSTER_LABEL: &str = crate::names::CLUSTER_LABEL;

const RBAC: &str = "rbac.authorization.k8s.io";

/// What the objects of one hub are called in a member, so that several hubs share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    hub: String,
    /// The service account, the Role on it, and the hub's ClusterReport.
    pub account: String,
    /// The ClusterRole and binding for the whole member.
    pub sight: String,
    /// The ClusterRole for open namespaces, and its binding in each of them.
    pub placement: String,
    /// The Role on the member's Prometheus, and its binding.
    pub traffic: String,
}

impl Names {
    /// The names for the hub of this identity.
    #[must_use]
    pub fn of(hub: &str) -> Self {
        let short: String = hub.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        Self {
            hub: hub.to_owned(),
            account: format!("hub-{short}"),
            sight: format!("portolan-hub-{short}"),
            placement: format!("portolan-hub-{short}-placement"),
            traffic: format!("portolan-hub-{short}-traffic"),
        }
    }

    /// The identity of the hub.
    pub(super) fn hub(&self) -> &str {
        &self.hub
    }

    /// Which objects in a member are this hub's.
    pub(super) fn selector(&self) -> String {
        format!("{HUB_LABEL}={}", self.hub)
    }
}

/// What is made in the member, in this order. Objects that bind a namespace come with the namespace itself, opened.
#[must_use]
pub fn in_member(names: &Names, peer: &Peer) -> Vec<Value> {
    let labels = json!({ HUB_LABEL: names.hub });
    let role = |kind: &str, name: &str, scope: Scope, named: &str| {
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": { "name": name, "labels": labels },
            "rules": rules(scope, named),
        })
    };
    let binding = |kind: &str, name: &str, to: &str, to_kind: &str| {
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": { "name": name, "labels": labels },
            "roleRef": { "apiGroup": RBAC, "kind": to_kind, "name": to },
            "subjects": [{ "kind": "ServiceAccount", "namespace": NAMESPACE, "name": names.account }],
        })
    };
    let within = |mut object: Value, namespace: &str| {
        object["metadata"]["namespace"] = json!(namespace);
        object
    };
    let (account, sight, placement) = (&names.account, &names.sight, &names.placement);
    let mut own = role("Role", account, Scope::OwnAccount, account);
    let of_account = rules(Scope::OwnAccount, account).into_iter();
    own["rules"] = of_account.chain(rules(Scope::OwnReport, account)).collect();
    let mut objects = vec![
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": NAMESPACE, "labels": { POD_SECURITY_LABEL: POD_SECURITY } },
        }),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": account, "namespace": NAMESPACE, "labels": labels },
            "automountServiceAccountToken": false,
        }),
        role("ClusterRole", sight, Scope::Cluster, ""),
        role("ClusterRole", placement, Scope::OpenNamespaces, ""),
        within(own, NAMESPACE),
        binding("ClusterRoleBinding", sight, sight, "ClusterRole"),
        within(binding("RoleBinding", account, account, "Role"), NAMESPACE),
    ];
    if let Some(PrometheusQuery { namespace, service, port, .. }) = &peer.prometheus {
        let traffic = &names.traffic;
        let proxied = format!("{service}:{port}");
        objects.push(within(role("Role", traffic, Scope::Traffic, &proxied), namespace));
        objects.push(within(binding("RoleBinding", traffic, traffic, "Role"), namespace));
    }
    if peer.everywhere {
        objects.push(binding("ClusterRoleBinding", placement, placement, "ClusterRole"));
    }
    for namespace in &peer.namespaces {
        objects.push(open_namespace(namespace, peer));
        objects.push(within(binding("RoleBinding", placement, placement, "ClusterRole"), namespace));
    }
    objects
}

/// The Role on the hub's own account without the right to the hub's report; nothing if the object is not that Role.
pub(super) fn without_report(names: &Names, object: &Value) -> Option<Value> {
    let is_own = object["kind"] == "Role" && object["metadata"]["name"] == names.account.as_str();
    is_own.then(|| {
        let mut role = object.clone();
        role["rules"] = json!(rules(Scope::OwnAccount, &names.account));
        role
    })
}

/// A namespace, open to placement. What it says about pods holds only if it is made: one that is there is its owner's.
pub(super) fn open_namespace(name: &str, peer: &Peer) -> Value {
    let level = peer.pod_security.as_deref().unwrap_or(POD_SECURITY);
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": name, "labels": { OPT_IN_LABEL: OPT_IN, POD_SECURITY_LABEL: level } },
    })
}

/// The Secret and its namespace in the hub.
#[must_use]
pub fn in_hub(name: &str, kubeconfig: &str, token: &TokenFacts, address: &Address) -> Vec<Value> {
    vec![own_namespace(), in_hub_with(name, kubeconfig, token.annotations(), address)]
}

/// The Secret with these annotations about the credential.
pub(crate) fn in_hub_with(name: &str, kubeconfig: &str, mut annotations: Value, address: &Address) -> Value {
    if address.is_insecure() {
        annotations[ALLOW_INSECURE_ANNOTATION] = json!("true");
    }
    if address.given {
        annotations[SERVER_ANNOTATION] = json!(address.server);
    }
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": { CLUSTER_LABEL: name }, "annotations": annotations,
        },
        "data": { SECRET_KEY: BASE64_STANDARD.encode(kubeconfig) },
    })
}

/// The ForeignCluster of a new member, whose identity is `id`.
#[must_use]
pub fn foreign_cluster(peer: &Peer, id: &str) -> Value {
    let mut spec = json!({
        "type": if peer.local { "Local" } else { "Remote" },
        "clusterIdentity": { "clusterID": id, "clusterName": peer.name },
    });
    if !peer.local {
        let secret = json!({ "namespace": NAMESPACE, "name": peer.name, "key": SECRET_KEY });
        spec["credentials"] = json!({ "secretRef": secret });
    }
    if peer.cloud {
        spec["cloud"] = json!(true);
    }
    if !peer.latencies.is_empty() {
        spec["latencies"] = json!(peer.latencies);
    }
    if let Some(prometheus) = &peer.prometheus {
        spec["traffic"] = json!({ "prometheus": prometheus });
    }
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster",
        "metadata": { "name": peer.name, "labels": peer.labels }, "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placing_is_bound_in_open_namespaces_only() {
        let names = Names::of("3fa2bc91-1111-2222-3333-444455556666");
        assert_eq!(names.account, "hub-3fa2bc91");
        let binds = |objects: &[Value], kind: &str| -> Vec<String> {
            let placing = |object: &&Value| {
                object["kind"] == kind && object["roleRef"]["name"] == names.placement.as_str()
            };
            let place =
                |object: &Value| object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            objects.iter().filter(placing).map(place).collect()
        };
        let peer = Peer { namespaces: vec!["shop".into(), "lab".into()], ..Peer::default() };
        let named = in_member(&names, &peer);
        assert_eq!(binds(&named, "RoleBinding"), ["shop", "lab"]);
        assert!(binds(&named, "ClusterRoleBinding").is_empty());
        let everywhere = in_member(&names, &Peer { everywhere: true, ..Peer::default() });
        assert_eq!(binds(&everywhere, "ClusterRoleBinding").len(), 1);
        let levels = |peer: &Peer| -> Vec<Value> {
            let all = in_member(&names, peer).into_iter().filter(|object| object["kind"] == "Namespace");
            all.map(|object| object["metadata"]["labels"][POD_SECURITY_LABEL].clone()).collect()
        };
        assert_eq!(levels(&peer), ["baseline", "baseline", "baseline"]);
        let privileged = Peer { pod_security: Some("privileged".into()), ..peer.clone() };
        assert_eq!(levels(&privileged), ["baseline", "privileged", "privileged"]);
        let roles: Vec<_> = named.iter().filter(|object| object.get("rules").is_some()).collect();
        assert!(roles.iter().all(|role| !role["rules"].as_array().unwrap().is_empty()));
    }

    #[test]
    fn only_the_role_on_the_own_account_has_the_right_to_a_report_and_it_does_without() {
        let names = Names::of("3fa2bc91-1111-2222-3333-444455556666");
        let all = in_member(&names, &Peer { namespaces: vec!["shop".into()], ..Peer::default() });
        let reports = |object: &Value| object["rules"].to_string().contains("clusterreports");
        let with: Vec<&Value> = all.iter().filter(|object| reports(object)).collect();
        let without: Vec<Value> = all.iter().filter_map(|object| without_report(&names, object)).collect();
        assert_eq!((with.len(), without.len()), (1, 1));
        assert_eq!(with[0]["metadata"], without[0]["metadata"]);
        assert!(!reports(&without[0]) && without[0]["rules"].to_string().contains("serviceaccounts/token"));
    }
}

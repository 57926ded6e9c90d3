//! What the controller of a provider may do for its offers, verb by verb.

use crate::peering::NAMESPACE;
use serde_json::{Value, json};

const ROLE: &str = "portolan-sharing";

/// The account of the controller.
const CONTROLLER: &str = "portolan-controller";

/// Some verbs on one resource: group, resource, verbs, reason.
type Row = (&'static str, &'static str, &'static [&'static str], &'static str);

const ROWS: &[Row] = &[
    ("portolan.dev", "sharingclasses", &["list", "watch"], "what is shared with whom"),
    ("portolan.dev", "sharingclasses/status", &["patch"], "for how many clusters each holds"),
    ("portolan.dev", "resourceoffers", &["list", "watch", "create", "patch", "delete"], "the offers"),
    ("portolan.dev", "resourceoffers/status", &["patch"], "how they are used"),
    ("", "nodes", &["list", "watch"], "what there is to share"),
    ("", "pods", &["list", "watch"], "what is free"),
    ("", "namespaces", &["list", "watch", "patch"], "the namespaces of tenants, and what their pods may do"),
    ("", "resourcequotas", &["list", "watch", "create", "patch", "delete"], "to enforce offers"),
    (
        "",
        "limitranges",
        &["list", "watch", "create", "patch", "delete"],
        "what containers request that say nothing",
    ),
    (
        "rbac.authorization.k8s.io",
        "rolebindings",
        &["list"],
        "whether a tenant still has rights: what bounds it goes after them",
    ),
    ("apps", "replicasets", &["list", "watch"], "which pods wait for quota"),
    ("batch", "jobs", &["list", "watch"], "which pods wait for quota"),
    ("storage.k8s.io", "storageclasses", &["list", "watch"], "the storage classes of offers"),
];

/// What is applied to a provider, so that its controller can make and enforce offers.
#[must_use]
pub fn sharing_roles() -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let rule = |(group, resource, verbs, _): &Row| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    vec![
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": ROLE},
            "rules": ROWS.iter().map(rule).collect::<Vec<_>>(),
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": ROLE},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": NAMESPACE}],
        }),
    ]
}

/// The rights as rows of the table in the documentation.
#[must_use]
pub(crate) fn rights_rows() -> String {
    let row = |(group, resource, verbs, why): &Row| {
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        format!("| everywhere | `{resource}{group}` | {} | {why} |\n", verbs.join(", "))
    };
    ROWS.iter().map(row).collect()
}

//! The roles that every cluster has.

use serde_json::{Value, json};

use crate::api::{Api, Writer};
use crate::error::ApiError;

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// Makes the first roles and bindings.
pub(crate) fn bootstrap_roles(api: &mut Api) -> Result<(), ApiError> {
    let writer = Writer::named("kube-apiserver");
    let everything = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    let discovery = json!([{
        "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"],
        "verbs": ["get"],
    }]);
    let public = json!([{"nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"], "verbs": ["get"]}]);
    let basic = json!([
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], "verbs": ["create"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ]);
    let bound = [
        ("cluster-admin", everything, vec!["system:masters"]),
        ("system:discovery", discovery, vec!["system:authenticated"]),
        ("system:basic-user", basic, vec!["system:authenticated"]),
        ("system:public-info-viewer", public, vec!["system:authenticated", "system:unauthenticated"]),
    ];
    let roles = api.row("rbac.authorization.k8s.io", "clusterroles")?;
    let bindings = api.row("rbac.authorization.k8s.io", "clusterrolebindings")?;
    for (name, rules, groups) in bound {
        api.create(&roles, "", json!({"metadata": {"name": name}, "rules": rules}), &writer)?;
        let subjects: Vec<Value> = groups
            .iter()
            .map(|group| json!({"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}))
            .collect();
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
        api.create(
            &bindings,
            "",
            json!({"metadata": {"name": name}, "subjects": subjects, "roleRef": role}),
            &writer,
        )?;
    }
    for (name, rules) in user_roles() {
        api.create(&roles, "", json!({"metadata": {"name": name}, "rules": rules}), &writer)?;
    }
    Ok(())
}

/// `view`, `edit` and `admin`, to be bound in namespaces.
fn user_roles() -> [(&'static str, Value); 3] {
    let core = [
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "persistentvolumeclaims",
        "pods",
        "pods/log",
        "pods/status",
        "resourcequotas",
        "serviceaccounts",
        "services",
        "services/status",
    ];
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let workloads = ["apps", "batch", "autoscaling", "policy", "networking.k8s.io", "discovery.k8s.io"];
    let view = vec![rule(&[""], &core, READ), rule(&workloads, &["*"], READ)];
    let mut edit = view.clone();
    edit.push(rule(&[""], &core, WRITE));
    edit.push(rule(&[""], &["secrets"], &[READ, WRITE].concat()));
    edit.push(rule(&[""], &["pods/eviction", "serviceaccounts/token"], &["create"]));
    edit.push(rule(&workloads, &["*"], WRITE));
    edit.push(rule(&["coordination.k8s.io"], &["leases"], &[READ, WRITE].concat()));
    let mut admin = edit.clone();
    admin.push(rule(&["rbac.authorization.k8s.io"], &["roles", "rolebindings"], &[READ, WRITE].concat()));
    admin.push(rule(&["authorization.k8s.io"], &["localsubjectaccessreviews"], &["create"]));
    [("view", json!(view)), ("edit", json!(edit)), ("admin", json!(admin))]
}

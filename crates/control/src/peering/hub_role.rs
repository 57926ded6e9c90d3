//! What the controller may do in its hub, verb by verb, and the roles of those who use it.
//!
//! The lab runs the controller with nothing but these rights, and compares them with the API server's audit log: one that is
//! missing fails there, and one that is not used.

use super::access::{Need, allowed_by};
use super::peer::NAMESPACE;
use super::role::{Scope, rules};
use crate::provision::CLUSTER_API_GROUP;
use crate::sharing;
use crate::tenancy::{PROVIDER, provider_rights_table, provider_roles, tenant_policy};
use portolan_api::{PROGRAM_VERSION, VERSION_LABEL};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The account of the controller, its roles and their bindings.
pub const CONTROLLER: &str = "portolan-controller";

/// A ClusterRole that nothing binds: what the controller needs beside the others where the hub is a member of its own fleet.
const AS_MEMBER: &str = "portolan-hub-as-member";

/// A Role that nothing binds: what the controller needs beside the others where it measures how far other members are.
const MEASUREMENT: &str = "portolan-measurement";

/// A Role and a ClusterRole that nothing binds: what the controller needs beside the others where it reports the capacity.
const CAPACITY_REPORT: &str = "portolan-capacity-report";

const DEVELOPER: &str = "portolan-developer";
const FLEET_VIEWER: &str = "portolan-fleet-viewer";

/// Objects that users declare: they are watched, marked, and checked for plans by a dry run of what would be written.
const DECLARED: &[&str] = &["get", "list", "watch", "create", "update", "patch"];
/// A status that is replaced as a whole.
const STATUS: &[&str] = &["update"];
const WATCH: &[&str] = &["list", "watch"];
/// What developers do with the objects that they declare.
const USED: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
/// Objects of which single ones are read beside.
const READ: &[&str] = &["get", "list", "watch"];

/// Some verbs on one resource, and what for: group, resource, verbs, reason.
type Row = (&'static str, &'static str, &'static [&'static str], &'static str);

/// What the controller does in the whole hub.
const EVERYWHERE: &[Row] = &[
    ("portolan.dev", "multiclusterdeployments", DECLARED, "workloads that users declare"),
    ("portolan.dev", "multiclusterdeployments/status", STATUS, "what became of them"),
    ("portolan.dev", "multiclusterjobs", DECLARED, "jobs that users declare"),
    (
        "portolan.dev",
        "multiclusterjobs",
        &["delete"],
        "jobs that have been over for as long as their users said",
    ),
    ("portolan.dev", "multiclusterjobs/status", STATUS, "what became of them"),
    ("portolan.dev", "multiclusterservices", DECLARED, "services that users declare"),
    ("portolan.dev", "multiclusterservices/status", STATUS, "what became of them"),
    (
        "portolan.dev",
        "multiclusterdeployments/scale",
        &["update"],
        "their replicas, if they have an autoscaler",
    ),
    ("portolan.dev", "multiclusterhorizontalpodautoscalers", WATCH, "autoscalers that users declare"),
    ("portolan.dev", "multiclusterhorizontalpodautoscalers/status", STATUS, "what they found and did"),
    ("portolan.dev", "multiclusterreschedulers", WATCH, "what brings work home, and when"),
    (
        "portolan.dev",
        "multiclusterreschedulers/status",
        STATUS,
        "what was brought home, and why the rest stays",
    ),
    (
        "portolan.dev",
        "placementreviews",
        &["list", "watch", "delete"],
        "plans that users ask for, and old ones",
    ),
    ("portolan.dev", "placementreviews/status", STATUS, "the answers"),
    ("portolan.dev", "cloudprovisioners", &["list", "watch", "patch"], "clouds, and their finalizer"),
    ("portolan.dev", "cloudprovisioners/status", STATUS, "what was made there"),
    (
        "portolan.dev",
        "foreignclusters",
        &["get", "list", "watch", "create", "patch", "delete"],
        "members and their finalizer; cloud clusters join and leave",
    ),
    ("portolan.dev", "foreignclusters/status", &["update", "patch"], "what is known of members and tenants"),
    (CLUSTER_API_GROUP, "clusterclasses", &["get"], "what cloud clusters are made from"),
    (
        CLUSTER_API_GROUP,
        "clusters",
        &["get", "list", "watch", "create", "patch", "delete"],
        "cloud clusters of CloudProvisioners",
    ),
    (
        CLUSTER_API_GROUP,
        "machinedeployments",
        &["get", "list", "watch", "create", "patch"],
        "their nodes, where they are made from templates",
    ),
    (CLUSTER_API_GROUP, "machines", &["list", "watch", "patch"], "their nodes, and which of them go first"),
    ("", "namespaces", &["get"], "who the hub is: the uid of kube-system"),
    ("", "configmaps", READ, "ConfigMaps that workloads refer to"),
    ("", "secrets", READ, "Secrets that workloads refer to; lists and watches ask for their names only"),
    ("events.k8s.io", "events", &["create"], "what happens to workloads and members"),
];

/// What it does in its own namespace.
const AT_HOME: &[Row] = &[
    (
        "",
        "secrets",
        &["create", "patch", "delete"],
        "credentials of members: those of cloud clusters, new tokens, and the end of a peering",
    ),
    (
        "coordination.k8s.io",
        "leases",
        &["get", "create", "update", "patch"],
        "one controller leads, and says its version",
    ),
    (
        "multicluster.x-k8s.io",
        "clusterprofiles",
        &["create", "patch", "delete"],
        "members as other tools know them; some clusters want the right to delete of whoever gives an object an owner",
    ),
    ("multicluster.x-k8s.io", "clusterprofiles/status", &["patch"], "what is known of members"),
];

/// What it does in its own namespace where it measures.
const MEASURING: &[Row] = &[
    (
        "portolan.dev",
        "clusterreports",
        &["list", "watch"],
        "the other members that hubs ask this cluster to measure",
    ),
    ("portolan.dev", "clusterreports/status", &["patch"], "the round-trip times that were measured"),
];

/// What it does in its own namespace where it reports the capacity of the cluster.
const REPORTING: &[Row] = &[
    ("portolan.dev", "clusterreports", &["list", "watch"], "which hubs ask for a summary"),
    ("portolan.dev", "clusterreports/status", &["patch"], "the summaries"),
];

/// What it looks at for that.
const SUMMARISED: &[Row] = &[
    ("", "nodes", &["list", "watch"], "what nodes have for pods"),
    ("", "pods", &["list", "watch"], "what pods take of them"),
];

/// What is applied to a hub so that its controller, its users and its tenants have their rights, and no others.
#[must_use]
pub fn hub_roles() -> Vec<Value> {
    let tenancy = tenant_policy().into_iter().chain(provider_roles());
    let as_member = rules(Scope::Cluster, "").into_iter().chain(rules(Scope::OpenNamespaces, ""));
    let own = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": CONTROLLER, "namespace": NAMESPACE}}),
        role("ClusterRole", CONTROLLER, rows(EVERYWHERE)),
        binding("ClusterRole", CONTROLLER),
        role("Role", CONTROLLER, rows(AT_HOME)),
        binding("Role", CONTROLLER),
        binding("ClusterRole", PROVIDER),
        role("ClusterRole", AS_MEMBER, as_member.collect()),
        role("Role", MEASUREMENT, rows(MEASURING)),
        role("Role", CAPACITY_REPORT, rows(REPORTING)),
        role("ClusterRole", CAPACITY_REPORT, rows(SUMMARISED)),
        role("ClusterRole", DEVELOPER, developer()),
        role("ClusterRole", FLEET_VIEWER, fleet_viewer()),
    ];
    own.into_iter().chain(tenancy).chain(sharing::sharing_roles()).map(of_this_version).collect()
}

/// An object with the version that it is of; a namespace is of none.
pub(crate) fn of_this_version(mut object: Value) -> Value {
    if object["kind"] != "Namespace" {
        object["metadata"]["labels"][VERSION_LABEL] = json!(PROGRAM_VERSION);
    }
    object
}

/// The rights of the account of the controller, verb by verb: all that its roles allow.
#[must_use]
pub fn hub_needs() -> Vec<Need> {
    let all = hub_roles();
    let bound = all.iter().filter(|object| object["roleRef"].is_object());
    let allowed = bound.flat_map(|binding| {
        let to = &binding["roleRef"];
        let is_it = |each: &&Value| each["kind"] == to["kind"] && each["metadata"]["name"] == to["name"];
        let place = binding["metadata"]["namespace"].as_str();
        all.iter().find(is_it).map(|role| allowed_by(role, place)).unwrap_or_default()
    });
    allowed.collect::<BTreeSet<_>>().into_iter().collect()
}

/// What a hub needs beside [`hub_roles`] to be a member of its own fleet.
#[must_use]
pub fn hub_as_member_binding() -> Value {
    binding("ClusterRole", AS_MEMBER)
}

/// What a cluster needs beside [`hub_roles`] to measure how far other members are.
#[must_use]
pub fn measurement_binding() -> Value {
    binding("Role", MEASUREMENT)
}

/// What a cluster needs beside [`hub_roles`] to report its capacity.
#[must_use]
pub fn capacity_report_bindings() -> [Value; 2] {
    [binding("Role", CAPACITY_REPORT), binding("ClusterRole", CAPACITY_REPORT)]
}

/// The table of the rights of the controller, for the documentation.
#[must_use]
pub fn hub_rights_table() -> String {
    let mut text = String::from("| where | resource | verbs | what for |\n|---|---|---|---|\n");
    for (place, rows) in [("everywhere", EVERYWHERE), ("namespace `portolan`", AT_HOME)] {
        for (group, resource, verbs, why) in rows {
            let group = if group.is_empty() { String::new() } else { format!(".{group}") };
            text.push_str(&format!("| {place} | `{resource}{group}` | {} | {why} |\n", verbs.join(", ")));
        }
    }
    text.push_str(&sharing::rights_rows());
    text.push_str("\nTo serve invitations and tenants (ClusterRole `portolan-provider`):\n\n");
    text.push_str(&provider_rights_table());
    text.push_str("\nTo measure round-trip times (Role `portolan-measurement` in namespace `portolan`):\n\n");
    text.push_str("| resource | verbs | what for |\n|---|---|---|\n");
    for (group, resource, verbs, why) in MEASURING {
        text.push_str(&format!("| `{resource}.{group}` | {} | {why} |\n", verbs.join(", ")));
    }
    text.push_str(
        "\nTo report the capacity of the cluster (Role `portolan-capacity-report` in namespace `portolan`, and for nodes and pods the \
         ClusterRole of the same name):\n\n",
    );
    text.push_str("| resource | verbs | what for |\n|---|---|---|\n");
    for (group, resource, verbs, why) in REPORTING.iter().chain(SUMMARISED) {
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        text.push_str(&format!("| `{resource}{group}` | {} | {why} |\n", verbs.join(", ")));
    }
    text
}

fn rows(rows: &[Row]) -> Vec<Value> {
    let rule = |(group, resource, verbs, _): &Row| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    rows.iter().map(rule).collect()
}

fn developer() -> Vec<Value> {
    let kinds = [
        "multiclusterdeployments",
        "multiclusterhorizontalpodautoscalers",
        "multiclusterjobs",
        "multiclusterservices",
    ];
    vec![
        json!({"apiGroups": ["portolan.dev"], "resources": kinds, "verbs": USED}),
        json!({"apiGroups": ["portolan.dev"], "resources": ["placementreviews"], "verbs": ["create", "get", "delete"]}),
        json!({"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": READ}),
    ]
}

fn fleet_viewer() -> Vec<Value> {
    vec![
        json!({"apiGroups": ["portolan.dev"], "resources": ["foreignclusters", "multiclusterreschedulers"], "verbs": READ}),
        json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "resourceNames": [CONTROLLER], "verbs": ["get"],
        }),
    ]
}

fn role(kind: &str, name: &str, rules: Vec<Value>) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": metadata(kind, name), "rules": rules,
    })
}

fn binding(kind: &str, name: &str) -> Value {
    let (group, bound) = ("rbac.authorization.k8s.io", format!("{kind}Binding"));
    json!({
        "apiVersion": format!("{group}/v1"), "kind": bound, "metadata": metadata(kind, name),
        "roleRef": {"apiGroup": group, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": NAMESPACE}],
    })
}

fn metadata(kind: &str, name: &str) -> Value {
    if kind == "Role" { json!({"name": name, "namespace": NAMESPACE}) } else { json!({"name": name}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_writes_no_secret_and_no_workload_of_others() {
        for (group, resource, verbs, _) in EVERYWHERE {
            assert!(verbs.iter().chain([group, resource]).all(|word| !word.contains('*')), "{resource}");
            let reads = verbs.iter().all(|verb| READ.contains(verb));
            let own = ["portolan.dev", CLUSTER_API_GROUP].contains(group);
            assert!(reads || own || *resource == "events", "{resource}");
        }
    }

    #[test]
    fn what_invitations_and_sharing_take_is_among_the_needs() {
        let texts: BTreeSet<String> = hub_needs().iter().map(Need::text).collect();
        for text in [
            "watch multiclusterdeployments.portolan.dev",
            "create secrets in namespace portolan",
            "update certificatesigningrequests/approval.certificates.k8s.io",
            "approve signers.certificates.k8s.io kubernetes.io/kube-apiserver-client",
            "bind clusterroles.rbac.authorization.k8s.io portolan-tenant",
            "create resourcequotas",
        ] {
            assert!(texts.contains(text), "{text} is not in {texts:#?}");
        }
    }

    #[test]
    fn what_is_only_needed_to_measure_is_not_bound_by_itself() {
        let is_about_reports = |need: &Need| need.resource.starts_with("clusterreports");
        assert!(!hub_needs().iter().any(is_about_reports));
        let all = hub_roles();
        let role = all.iter().find(|role| role["kind"] == "Role" && role["metadata"]["name"] == MEASUREMENT);
        let needs = allowed_by(role.unwrap(), Some(NAMESPACE));
        assert!(needs.len() == 3 && needs.iter().all(is_about_reports), "{needs:?}");
    }

    #[test]
    fn everything_that_is_bound_is_there() {
        let parts =
            [hub_as_member_binding(), measurement_binding()].into_iter().chain(capacity_report_bindings());
        let all: Vec<Value> = hub_roles().into_iter().chain(parts).collect();
        for binding in all.iter().filter(|object| object["roleRef"].is_object()) {
            let role = &binding["roleRef"];
            assert!(
                all.iter()
                    .any(|each| each["kind"] == role["kind"] && each["metadata"]["name"] == role["name"])
            );
        }
    }
}

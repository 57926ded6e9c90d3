//! The roles of tenants, and what the controller of a provider may do, verb by verb.
//!
//! The roles of tenants are fixed: the controller may bind them and cannot make others. So it hands out no right that is not
//! listed here, whatever an invitation says.

use super::policy::TENANT_POLICY;
use crate::peering::{Scope, look_rules, rules};
use portolan_core::tenancy::SIGNER;
use portolan_core::tenancy::names::{LEASE, TENANT_ACCOUNT};
use serde_json::{Value, json};

/// In the namespace of a tenant.
pub(super) const TENANT: &str = "portolan-tenant";
/// In the whole provider, for tenants that are to see it: what a hub looks at.
pub(super) const SIGHT: &str = "portolan-tenant-sight";
/// In the namespaces that are open to a tenant.
pub(super) const PLACEMENT: &str = "portolan-tenant-placement";

/// In the namespace of a tenant that signs in by a token.
pub(super) const TOKEN: &str = "portolan-tenant-token";

/// The ClusterRole of the controller of a provider.
pub(crate) const PROVIDER: &str = "portolan-provider";

const RBAC: &str = "rbac.authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Some verbs on one resource, and what for: group, resource, verbs, reason.
type Row = (&'static str, &'static str, &'static [&'static str], &'static str);

/// What the controller of a provider does beside what every hub does.
const ROWS: &[Row] = &[
    (
        "portolan.dev",
        "invitations",
        &["get", "list", "watch", "delete"],
        "invitations, and those that are over",
    ),
    ("portolan.dev", "invitations/status", &["update"], "what became of them"),
    (
        CERTIFICATES,
        "certificatesigningrequests",
        &["get", "list", "watch", "create", "patch", "delete"],
        "requests of tenants; nobody hands out rights that they do not have",
    ),
    (CERTIFICATES, "certificatesigningrequests/approval", &["update"], "to approve or deny them"),
    ("", "namespaces", &["get", "create", "patch", "delete"], "the namespaces of tenants"),
    (
        RBAC,
        "clusterroles",
        &["list", "create", "patch", "delete"],
        "the right of a tenant to renew its certificate",
    ),
    (RBAC, "clusterrolebindings", &["list", "create", "patch", "delete"], "the rights of tenants"),
    (RBAC, "rolebindings", &["list", "create", "patch", "delete"], "the rights of tenants in namespaces"),
    ("", "resourcequotas", &["get"], "rights of tenants follow the quotas that bound them"),
    (RBAC, "roles", &["delete"], "the rights of invitations that are over"),
    ("", "serviceaccounts", &["delete"], "the accounts of invitations that are over"),
    (
        "coordination.k8s.io",
        "leases",
        &["get", "list", "watch"],
        "whether a consumer has its credential, or leaves",
    ),
];

/// Some verbs on resources of one group, and only on the objects that are named.
type Named =
    (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str], &'static str);

/// What it does with single objects.
const NAMED: &[Named] = &[
    (CERTIFICATES, &["signers"], &[SIGNER], &["approve"], "to have certificates of tenants signed"),
    (
        RBAC,
        &["clusterroles"],
        &[TENANT, SIGHT, PLACEMENT, TOKEN],
        &["bind"],
        "to give these roles to tenants",
    ),
    (
        "",
        &["serviceaccounts"],
        &[TENANT_ACCOUNT],
        &["get", "create", "patch"],
        "the accounts of tenants where nobody signs certificates",
    ),
    ("", &["serviceaccounts/token"], &[TENANT_ACCOUNT], &["create"], "their first tokens"),
    (
        ADMISSION,
        &["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
        &[TENANT_POLICY],
        &["get"],
        "whether these accounts are bounded",
    ),
];

/// What is applied to a provider, so that its controller can make tenants.
#[must_use]
pub fn provider_roles() -> Vec<Value> {
    let rule = |(group, resource, verbs, _): &Row| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let named = |(group, resources, names, verbs, _): &Named| json!({"apiGroups": [group], "resources": resources, "resourceNames": names, "verbs": verbs});
    let own = ROWS.iter().map(rule).chain(NAMED.iter().map(named)).collect();
    let own_token = json!({
        "apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [TENANT_ACCOUNT], "verbs": ["create"],
    });
    let in_tenant = vec![
        json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LEASE],
            "verbs": ["get", "create", "update", "patch"],
        }),
        json!({"apiGroups": ["portolan.dev"], "resources": ["resourceoffers"], "verbs": ["get", "list", "watch"]}),
        json!({"apiGroups": ["portolan.dev"], "resources": ["resourceoffers/status"], "verbs": ["patch"]}),
    ];
    vec![
        role(TENANT, in_tenant),
        role(SIGHT, rules(Scope::Cluster, "")),
        role(PLACEMENT, rules(Scope::OpenNamespaces, "").into_iter().chain(look_rules()).collect()),
        role(TOKEN, vec![own_token]),
        role(PROVIDER, own),
    ]
}

/// The table of the rights of the controller of a provider, for the documentation.
#[must_use]
pub fn provider_rights_table() -> String {
    let mut text = String::from("| resource | verbs | what for |\n|---|---|---|\n");
    for (group, resource, verbs, why) in ROWS {
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        text.push_str(&format!("| `{resource}{group}` | {} | {why} |\n", verbs.join(", ")));
    }
    for (group, resources, names, verbs, why) in NAMED {
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let resources: Vec<String> = resources.iter().map(|each| format!("`{each}{group}`")).collect();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let only = match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => names.concat(),
        };
        let (resources, verbs) = (resources.join(" and "), verbs.join(", "));
        text.push_str(&format!("| {resources}, only {only} | {verbs} | {why} |\n"));
    }
    text
}

fn role(name: &str, rules: Vec<Value>) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_neither_escalates_nor_impersonates_and_binds_the_roles_of_tenants_only() {
        let all = provider_roles();
        let rules = all.iter().flat_map(|role| role["rules"].as_array().unwrap());
        for rule in rules {
            let verbs: Vec<&str> =
                rule["verbs"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert!(
                !verbs.iter().any(|verb| ["*", "escalate", "impersonate", "sign"].contains(verb)),
                "{rule}"
            );
            let named = rule["resourceNames"].as_array().is_some_and(|names| !names.is_empty());
            assert!(named || !verbs.iter().any(|verb| ["bind", "approve"].contains(verb)), "{rule}");
            // Whoever makes tokens of any account has the rights of all of them.
            let resources = rule["resources"].to_string();
            assert!(
                !resources.contains("serviceaccounts/token")
                    || rule["resourceNames"] == json!([TENANT_ACCOUNT])
            );
            let makes_accounts = resources.contains("\"serviceaccounts\"") && verbs != ["delete"];
            assert!(!makes_accounts || rule["resourceNames"] == json!([TENANT_ACCOUNT]), "{rule}");
        }
        let tenant = all.iter().find(|role| role["metadata"]["name"] == TENANT).unwrap();
        assert!(!tenant.to_string().contains("secrets"), "{tenant}");
        assert_eq!(tenant["rules"][0]["resourceNames"], json!(["consumer"]), "{tenant}");
    }
}

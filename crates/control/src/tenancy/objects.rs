//! What an invitation and a tenant are made of: pure.

use super::roles::{PLACEMENT, SIGHT, TENANT};
use crate::names::{INVITATION_LABEL, TENANT_LABEL, TENANT_USER_ANNOTATION};
use crate::peering::NAMESPACE;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use portolan_core::tenancy::names::{self, Tenant};
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The level of Pod Security in the namespaces of tenants.
const POD_SECURITY: &str = "baseline";

/// The account of an invitation and its rights, but for the one to ask for a certificate. They go with the Invitation.
pub(super) fn bootstrap(id: &str, owner: &Value) -> Vec<Value> {
    let name = names::account(id);
    let metadata = json!({
        "name": name, "namespace": NAMESPACE, "labels": { INVITATION_LABEL: id }, "ownerReferences": [owner],
    });
    let account = subject_account(id);
    vec![
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata,
            "automountServiceAccountToken": false,
        }),
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{
                "apiGroups": ["portolan.dev"], "resources": ["invitations"], "resourceNames": [id], "verbs": ["get"],
            }],
        }),
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": name }, "subjects": [account],
        }),
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": { "name": names::request(id), "labels": { INVITATION_LABEL: id } },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": names::request(id) },
            "subjects": [account],
        }),
    ]
}

/// The right of an invitation to ask for one certificate, by the only name that it may have, and to see what becomes of it.
/// Once it was used, nothing but the second is left.
pub(super) fn asking(id: &str, used: bool) -> Value {
    let verbs: &[&str] = if used { &["get"] } else { &["create", "get", "patch"] };
    on_requests(&names::request(id), json!({ INVITATION_LABEL: id }), &names::request(id), verbs)
}

fn on_requests(name: &str, labels: Value, request: &str, verbs: &[&str]) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": name, "labels": labels },
        "rules": [{
            "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
            "resourceNames": [request], "verbs": verbs,
        }],
    })
}

/// The right to look at some namespaces as such, and to tell by one of them which cluster this is.
fn on_namespaces(name: &str, labels: Value, namespaces: &[String]) -> Value {
    let names: Vec<&str> = namespaces.iter().map(String::as_str).chain(["kube-system"]).collect();
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": name, "labels": labels },
        "rules": [{
            "apiGroups": [""], "resources": ["namespaces"], "resourceNames": names, "verbs": ["list", "watch"],
        }],
    })
}

fn subject_account(id: &str) -> Value {
    json!({ "kind": "ServiceAccount", "namespace": NAMESPACE, "name": names::account(id) })
}

/// A tenant: its namespace, and the rights of its user there, in the namespaces that are open to it, and to renew its own
/// certificate. `cluster` is the ForeignCluster that stands for it.
pub(super) fn tenant(
    cluster: &str,
    tenant: &Tenant,
    namespaces: &[String],
    sees_cluster: bool,
) -> Vec<Value> {
    let labels = json!({ TENANT_LABEL: cluster });
    let home = names::tenant_namespace(cluster);
    let user = json!([{ "apiGroup": RBAC, "kind": "User", "name": tenant.user() }]);
    let binding = |name: &str, role: &str, namespace: Option<&str>| {
        let mut metadata = json!({ "name": name, "labels": labels });
        let kind = match namespace {
            Some(namespace) => {
                metadata["namespace"] = json!(namespace);
                "RoleBinding"
            }
            None => "ClusterRoleBinding",
        };
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata,
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role }, "subjects": user,
        })
    };
    let own = format!("portolan-tenant-{cluster}-renewal");
    let mut objects = vec![
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": home,
                "labels": { TENANT_LABEL: cluster, "pod-security.kubernetes.io/enforce": POD_SECURITY },
            },
        }),
        binding(TENANT, TENANT, Some(&home)),
        on_requests(&own, labels.clone(), &tenant.renewal(), &["create", "delete", "get", "patch"]),
        binding(&own, &own, None),
    ];
    if !namespaces.is_empty() {
        let looks = format!("portolan-tenant-{cluster}-namespaces");
        objects.push(on_namespaces(&looks, labels.clone(), namespaces));
        objects.push(binding(&looks, &looks, None));
    }
    if !namespaces.is_empty() && sees_cluster {
        objects.push(binding(&format!("portolan-tenant-{cluster}-sight"), SIGHT, None));
    }
    for namespace in namespaces {
        objects.push(binding(&format!("portolan-tenant-{cluster}"), PLACEMENT, Some(namespace)));
    }
    for object in &mut objects {
        object["metadata"]["annotations"] = json!({ TENANT_USER_ANNOTATION: tenant.user() });
    }
    objects
}

/// Whose an object is that has the name of a part of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The tenant's.
    Its,
    /// That of another tenant, whose ForeignCluster had the same name.
    Earlier,
    /// Portolan has not made it.
    Foreign,
}

/// Whose an object is that has the name of a part of a tenant. What an earlier version made does not name the user.
pub(super) fn whose(meta: &ObjectMeta, cluster: &str, tenant: &Tenant) -> Whose {
    let label = meta.labels.as_ref().and_then(|labels| labels.get(TENANT_LABEL));
    let user = meta.annotations.as_ref().and_then(|all| all.get(TENANT_USER_ANNOTATION));
    match (label, user) {
        (Some(label), _) if label != cluster => Whose::Foreign,
        (Some(_), None) => Whose::Its,
        (Some(_), Some(user)) if *user == tenant.user() => Whose::Its,
        (Some(_), Some(_)) => Whose::Earlier,
        (None, _) => Whose::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who() -> Tenant {
        let cluster = "3fa2bc91-1111-2222-3333-444455556666".to_owned();
        Tenant { cluster, invitation: "abcdefgh23".to_owned() }
    }

    #[test]
    fn a_part_of_a_tenant_is_known_by_its_user_and_not_by_its_name() {
        let other = Tenant { invitation: "zzzzzzzz22".to_owned(), ..who() };
        for object in tenant("rome", &who(), &["shop".to_owned()], true) {
            let meta: ObjectMeta = serde_json::from_value(object["metadata"].clone()).unwrap();
            assert_eq!(whose(&meta, "rome", &who()), Whose::Its, "{object}");
            assert_eq!(whose(&meta, "rome", &other), Whose::Earlier);
            assert_eq!(whose(&meta, "milan", &who()), Whose::Foreign);
            let bare = ObjectMeta { labels: None, ..meta };
            assert_eq!(whose(&bare, "rome", &who()), Whose::Foreign);
        }
    }

    #[test]
    fn a_tenant_without_open_namespaces_has_no_right_outside_its_own() {
        for object in tenant("rome", &who(), &[], true) {
            let own_requests = object["roleRef"]["name"] == "portolan-tenant-rome-renewal";
            let wide = object["kind"] == "ClusterRoleBinding" && !own_requests;
            assert!(!wide, "{object}");
            let namespace = object["metadata"]["namespace"].as_str();
            assert!(namespace.is_none_or(|name| name == "portolan-tenant-rome"), "{object}");
        }
        let open = tenant("rome", &who(), &["shop".to_owned()], false);
        assert!(!open.iter().any(|each| each["roleRef"]["name"] == SIGHT));
        let seeing = tenant("rome", &who(), &["shop".to_owned()], true);
        assert!(seeing.iter().any(|each| each["roleRef"]["name"] == SIGHT));
        let placing: Vec<_> = open.iter().filter(|each| each["roleRef"]["name"] == PLACEMENT).collect();
        assert_eq!(placing.len(), 1);
        assert_eq!(placing[0]["metadata"]["namespace"], "shop");
    }

    #[test]
    fn an_invitation_may_ask_for_one_request_and_once_used_only_look() {
        for (used, verbs) in [(false, json!(["create", "get", "patch"])), (true, json!(["get"]))] {
            let rule = &asking("abcdefgh23", used)["rules"][0];
            assert_eq!(rule["verbs"], verbs);
            assert_eq!(rule["resourceNames"], json!(["portolan-invitation-abcdefgh23"]));
        }
    }
}

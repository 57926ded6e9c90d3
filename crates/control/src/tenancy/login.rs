//! How a tenant signs in: by a certificate or, where nobody signs certificates for clients, by the token of a service account
//! of its own in its namespace.

use super::objects::tenant as by_certificate;
use super::roles::TOKEN;
use crate::names::{TENANT_LABEL, TENANT_USER_ANNOTATION};
use portolan_core::tenancy::names::{TENANT_ACCOUNT, Tenant, tenant_namespace};
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The value of [`crate::names::TENANT_LOGIN_ANNOTATION`] for tenants that have a token.
pub(super) const BY_TOKEN: &str = "token";

/// How a tenant signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Login {
    /// As the user of its certificate.
    Certificate,
    /// As its service account.
    Token,
}

impl Login {
    /// What a consumer fetches.
    pub(super) fn credential(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Token => "token",
        }
    }
}

/// What a tenant is made of. The rights are those of its user or of its service account, never of both; the account itself is
/// made once and never again: deleting it is for good.
pub(super) fn parts(
    cluster: &str,
    tenant: &Tenant,
    login: Login,
    namespaces: &[String],
    sees_cluster: bool,
) -> Vec<Value> {
    let mut objects = by_certificate(cluster, tenant, namespaces, sees_cluster);
    if login == Login::Certificate {
        return objects;
    }
    let home = tenant_namespace(cluster);
    let subjects = json!([{ "kind": "ServiceAccount", "namespace": home, "name": TENANT_ACCOUNT }]);
    // It asks for tokens, and for no certificates.
    objects.retain(|object| !asks_for_certificates(object, cluster));
    for object in objects.iter_mut().filter(|object| object.get("subjects").is_some()) {
        object["subjects"] = subjects.clone();
    }
    objects.push(json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
        "metadata": { "name": TOKEN, "namespace": home, "labels": labels(cluster), "annotations": of(tenant) },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": TOKEN }, "subjects": subjects,
    }));
    objects
}

/// The service account of a tenant.
pub(super) fn account(cluster: &str, tenant: &Tenant) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {
            "name": TENANT_ACCOUNT, "namespace": tenant_namespace(cluster), "labels": labels(cluster),
            "annotations": of(tenant),
        },
        "automountServiceAccountToken": false,
    })
}

fn labels(cluster: &str) -> Value {
    json!({ TENANT_LABEL: cluster })
}

fn of(tenant: &Tenant) -> Value {
    json!({ TENANT_USER_ANNOTATION: tenant.user() })
}

fn asks_for_certificates(object: &Value, cluster: &str) -> bool {
    let own = format!("portolan-tenant-{cluster}-renewal");
    let kind = object["kind"].as_str().unwrap_or_default();
    ["ClusterRole", "ClusterRoleBinding"].contains(&kind) && object["metadata"]["name"] == own.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenancy::objects::{Whose, whose};
    use crate::tenancy::roles::{PLACEMENT, SIGHT, TENANT};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    fn who() -> Tenant {
        let cluster = "3fa2bc91-1111-2222-3333-444455556666".to_owned();
        Tenant { cluster, invitation: "abcdefgh23".to_owned() }
    }

    #[test]
    fn by_token_the_same_roles_are_bound_to_the_account_and_nothing_to_the_user() {
        let open = ["shop".to_owned()];
        let roles = |login| -> Vec<String> {
            let all = parts("rome", &who(), login, &open, true);
            let bound = all.iter().filter_map(|each| each["roleRef"]["name"].as_str());
            bound.filter(|name| !name.contains("renewal") && *name != TOKEN).map(str::to_owned).collect()
        };
        let all = roles(Login::Token);
        assert_eq!(all, roles(Login::Certificate));
        assert!([TENANT, SIGHT, PLACEMENT].iter().all(|role| all.contains(&(*role).to_owned())), "{all:?}");
        for object in parts("rome", &who(), Login::Token, &open, true) {
            let text = json!([object["subjects"], object["rules"]]).to_string();
            assert!(
                !text.contains("portolan:tenant:") && !text.contains("certificatesigningrequests"),
                "{object}"
            );
            if object["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding")) {
                assert_eq!(object["subjects"][0]["namespace"], "portolan-tenant-rome", "{object}");
                assert_eq!(object["subjects"].as_array().unwrap().len(), 1);
            }
        }
    }

    #[test]
    fn the_right_to_ask_for_tokens_is_in_the_namespace_of_the_tenant_only() {
        let all = parts("rome", &who(), Login::Token, &["shop".to_owned()], true);
        let binding: Vec<_> = all.iter().filter(|each| each["roleRef"]["name"] == TOKEN).collect();
        assert_eq!(binding.len(), 1);
        assert_eq!(binding[0]["metadata"]["namespace"], "portolan-tenant-rome");
        for object in [binding[0].clone(), account("rome", &who())] {
            let meta: ObjectMeta = serde_json::from_value(object["metadata"].clone()).unwrap();
            assert_eq!(whose(&meta, "rome", &who()), Whose::Its, "{object}");
        }
    }
}

//! Whether the user may do what peering takes, asked before anything is made.

use super::peer::NAMESPACE;
use super::role::{Scope, rights};
use super::{Peer, PeerError};
use crate::fleet::grants;
use crate::tenancy::provider_roles;
use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use portolan_runtime::call;
use serde_json::Value;

/// Something that must be allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// The verb.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with its subresource if it is one.
    pub resource: String,
    /// The namespace; none for cluster-wide.
    pub namespace: Option<String>,
    /// The one object that it is about; none for all.
    pub name: Option<String>,
}

impl Need {
    pub(super) fn new(verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> Self {
        Self {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: None,
        }
    }

    /// As an API server is asked for it.
    #[must_use]
    pub fn attributes(&self) -> ResourceAttributes {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
            None => (self.resource.clone(), None),
        };
        ResourceAttributes {
            verb: Some(self.verb.clone()),
            group: Some(self.group.clone()),
            resource: Some(resource),
            subresource,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            ..ResourceAttributes::default()
        }
    }

    /// In words, such as `list pods in namespace shop`.
    #[must_use]
    pub fn text(&self) -> String {
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        let name = self.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let place = self.namespace.as_ref().map(|name| format!(" in namespace {name}")).unwrap_or_default();
        format!("{} {}{group}{name}{place}", self.verb, self.resource)
    }
}

/// What a role allows, as needs in the place where it is bound.
pub(super) fn allowed_by(role: &Value, place: Option<&str>) -> Vec<Need> {
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut needs = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let names: Vec<Option<String>> = match texts(&rule["resourceNames"]) {
            all if all.is_empty() => vec![None],
            all => all.into_iter().map(Some).collect(),
        };
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for (verb, name) in
                    texts(&rule["verbs"]).iter().flat_map(|verb| names.iter().map(move |name| (verb, name)))
                {
                    needs.push(Need { name: name.clone(), ..Need::new(verb, &group, &resource, place) });
                }
            }
        }
    }
    needs
}

/// What a tenant may do in its own namespace in a provider and, if it may place workloads, in the whole provider.
#[must_use]
pub fn of_tenant(home: &str, placement: bool) -> Vec<Need> {
    let own = of_role("portolan-tenant", Some(home));
    let sight = placement.then(|| of_role("portolan-tenant-sight", None));
    own.into_iter().chain(sight.into_iter().flatten()).collect()
}

/// What a tenant may do in a namespace that its provider opened to it.
#[must_use]
pub fn of_tenant_in(namespace: &str) -> Vec<Need> {
    of_role("portolan-tenant-placement", Some(namespace))
}

fn of_role(name: &str, place: Option<&str>) -> Vec<Need> {
    let roles = provider_roles();
    let role = roles.iter().find(|role| role["metadata"]["name"] == name);
    role.map(|role| allowed_by(role, place)).unwrap_or_default()
}

/// What the hub does in a whole member, and with its own account there.
#[must_use]
pub fn in_whole_member(account: Option<&str>) -> Vec<Need> {
    let mut needs = Vec::new();
    for right in rights() {
        let (place, name) = match (right.scope, account) {
            (Scope::Cluster, _) => (None, None),
            (Scope::OwnAccount, Some(account)) => (Some(NAMESPACE), Some(account)),
            // Traffic is asked for in few members, and shows in their status.
            // Reports are of use where Portolan runs, and a member is as well without them.
            (Scope::OwnAccount | Scope::OpenNamespaces | Scope::OwnReport | Scope::Traffic, _) => continue,
        };
        needs.extend(right.verbs.iter().map(|verb| Need {
            name: name.map(str::to_owned),
            ..Need::new(verb, right.group, right.resource, place)
        }));
    }
    needs
}

/// What the hub does in a namespace of a member that is open to it.
#[must_use]
pub fn in_open_namespace(namespace: &str) -> Vec<Need> {
    let rights = rights().into_iter().filter(|right| right.scope == Scope::OpenNamespaces);
    let needs = rights.flat_map(|right| {
        right.verbs.iter().map(move |verb| Need::new(verb, right.group, right.resource, Some(namespace)))
    });
    needs.collect()
}

/// Those of the needs in one namespace that the client's user is not allowed, in words. The rules of the namespace are read at
/// once; what they do not tell is asked for one by one.
///
/// # Errors
/// The API server does not answer the question.
pub async fn missing_in(client: &Client, namespace: &str, needs: &[Need]) -> Result<Vec<String>, PeerError> {
    let api: Api<SelfSubjectRulesReview> = Api::all(client.clone());
    let spec = SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) };
    let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
    let what = format!("ask for the rights in namespace {namespace}");
    let rules = call(what, api.create(&PostParams::default(), &review)).await?.status.unwrap_or_default();
    let granted = |need: &&Need| {
        rules.resource_rules.iter().any(|rule| grants(rule, &need.group, &need.resource, &need.verb))
    };
    let untold: Vec<Need> = needs.iter().filter(|need| !granted(need)).cloned().collect();
    if rules.incomplete {
        missing(client, &untold).await
    } else {
        Ok(untold.iter().map(Need::text).collect())
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn kept(group: &str, resource: &str, namespace: Option<&str>) -> impl Iterator<Item = Need> {
    ["create", "patch"].map(|verb| Need::new(verb, group, resource, namespace)).into_iter()
}

/// What making a member takes there.
pub(super) async fn of_member(member: &Client, peer: &Peer) -> Result<Vec<Need>, PeerError> {
    let namespaces = &peer.namespaces;
    let traffic = peer.prometheus.as_ref().map(|prometheus| prometheus.namespace.as_str());
    let own = Some(NAMESPACE);
    let mut needs: Vec<Need> = kept("", "namespaces", None)
        .chain(kept("", "serviceaccounts", own))
        .chain(kept(RBAC, "clusterroles", None))
        .chain(kept(RBAC, "clusterrolebindings", None))
        .chain(kept(RBAC, "roles", own))
        .chain(kept(RBAC, "rolebindings", own))
        .chain([
            Need::new("get", "", "namespaces", None),
            Need::new("create", "", "serviceaccounts/token", own),
        ])
        .collect();
    for namespace in namespaces {
        needs.extend(kept(RBAC, "rolebindings", Some(namespace)));
    }
    if let Some(namespace) = traffic {
        needs.extend(kept(RBAC, "roles", Some(namespace)).chain(kept(RBAC, "rolebindings", Some(namespace))));
    }
    // Nobody may give away rights that they do not have, unless they may escalate.
    if !missing(member, &[Need::new("escalate", RBAC, "clusterroles", None)]).await?.is_empty() {
        for right in rights() {
            let places: Vec<Option<&str>> = match right.scope {
                Scope::Cluster => vec![None],
                Scope::OpenNamespaces if peer.everywhere => vec![None],
                Scope::OpenNamespaces => namespaces.iter().map(|name| Some(name.as_str())).collect(),
                Scope::OwnAccount => vec![own],
                // A hub without this right knows less of the member, and works as well.
                Scope::OwnReport => Vec::new(),
                Scope::Traffic => traffic.map(Some).into_iter().collect(),
            };
            for (place, verb) in
                places.iter().flat_map(|place| right.verbs.iter().map(move |verb| (place, verb)))
            {
                needs.push(Need::new(verb, right.group, right.resource, *place));
            }
        }
    }
    needs.sort();
    needs.dedup();
    Ok(needs)
}

/// What making a member takes in the hub.
#[must_use]
pub fn of_hub() -> Vec<Need> {
    kept("", "namespaces", None)
        .chain([Need::new("get", "", "namespaces", None)])
        .chain(kept("", "secrets", Some(NAMESPACE)))
        .chain([Need::new("get", "", "secrets", Some(NAMESPACE))])
        .chain(kept("portolan.dev", "foreignclusters", None))
        .chain(["get", "list"].map(|verb| Need::new(verb, "portolan.dev", "foreignclusters", None)))
        .collect()
}

/// Those of the needs that the client's user is not allowed, in words.
///
/// # Errors
/// The API server does not answer the question.
pub async fn missing(client: &Client, needs: &[Need]) -> Result<Vec<String>, PeerError> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let ask = async |need: &Need| -> Result<Option<String>, PeerError> {
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(need.attributes()),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let what = format!("ask whether {} is allowed", need.text());
        let answer = call(what, api.create(&PostParams::default(), &review)).await?;
        Ok(answer.status.is_none_or(|status| !status.allowed).then(|| need.text()))
    };
    let answers = try_join_all(needs.iter().map(ask)).await?;
    Ok(answers.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_asked_for_verb_by_verb_and_a_tenant_for_what_it_has() {
        let role = serde_json::json!({"rules": [
            {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list", "watch"]},
            {"apiGroups": ["x"], "resources": ["signers"], "resourceNames": ["a", "b"], "verbs": ["approve"]},
        ]});
        let texts: Vec<String> = allowed_by(&role, Some("shop")).iter().map(Need::text).collect();
        assert_eq!(texts[..2], ["list pods in namespace shop", "watch pods in namespace shop"]);
        assert_eq!(
            texts[4..],
            ["approve signers.x a in namespace shop", "approve signers.x b in namespace shop"]
        );
        let tenant = of_tenant("home", false);
        assert!(!tenant.is_empty() && tenant.iter().all(|need| need.namespace.as_deref() == Some("home")));
        assert!(!of_tenant_in("shop").is_empty());
    }
}

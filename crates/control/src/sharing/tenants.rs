//! Who consumes from this cluster, and which namespaces are whose: pure.

use super::classes::{Problem, Terms, plain};
use super::known::NamespaceFacts;
use super::tenant_namespace;
use portolan_api::sharing::SharingClassSpec;
use portolan_api::{ForeignCluster, Reason, ResourceOffer};
use portolan_core::capacity::Amounts;
use portolan_core::sharing::Rule;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A consumer, with what is shared with it and where.
pub(super) struct Tenant {
    pub(super) name: String,
    pub(super) cluster: Arc<ForeignCluster>,
    /// The namespace of its offer; whether it exists is seen in the others.
    pub(super) home: String,
    /// Its namespaces that exist and are not being deleted.
    pub(super) namespaces: BTreeSet<String>,
    /// The namespaces that its ForeignCluster names and that belong to other tenants, with their owners.
    pub(super) taken: BTreeMap<String, String>,
    pub(super) terms: Result<Terms, Problem>,
    /// What was offered before, if anything.
    pub(super) offer: Option<Arc<ResourceOffer>>,
}

impl Tenant {
    pub(super) fn has_home(&self) -> bool {
        self.namespaces.contains(&self.home)
    }

    /// Whether the peering ends: its rights are removed, and then what bounds them.
    pub(super) fn is_leaving(&self) -> bool {
        self.cluster.metadata.deletion_timestamp.is_some()
    }

    /// What was offered before, if anything.
    pub(super) fn before(&self) -> Option<Amounts> {
        self.offer.as_ref().and_then(|offer| Amounts::parse(&offer.spec.resources).ok())
    }

    /// What is shared. Where that cannot be told, the last offer stands; where nothing is, nothing.
    pub(super) fn rule(&self) -> Rule {
        match &self.terms {
            Ok(terms) => terms.rule.clone(),
            Err(problem) if problem.reason == Reason::NothingShared => nothing(),
            Err(_) => self.before().map_or_else(nothing, |fixed| Rule { percentage: Some(0), fixed }),
        }
    }

    /// Everything else that holds for it; nothing where that cannot be told and the last offer stands.
    pub(super) fn class(&self) -> Option<SharingClassSpec> {
        match &self.terms {
            Ok(terms) => Some(terms.class.clone()),
            Err(problem) if problem.reason == Reason::NothingShared || self.offer.is_none() => Some(plain()),
            Err(_) => None,
        }
    }
}

fn nothing() -> Rule {
    Rule { percentage: Some(0), fixed: Amounts::default() }
}

/// What a ForeignCluster says of namespaces here.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) name: String,
    pub(super) home: String,
    opened: BTreeSet<String>,
}

impl Claim {
    pub(super) fn of(name: &str, cluster: &ForeignCluster) -> Self {
        let incoming = cluster.spec.incoming.clone().unwrap_or_default();
        let home = incoming.tenant_namespace.unwrap_or_else(|| tenant_namespace(name));
        let opened = incoming.namespaces.into_iter().chain([home.clone()]).collect();
        Self { name: name.to_owned(), home, opened }
    }
}

/// The namespaces of each tenant, and those that it asks for and does not get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) own: BTreeMap<String, BTreeSet<String>>,
    pub(super) taken: BTreeMap<String, BTreeMap<String, String>>,
}

/// Divides namespaces over tenants: each belongs to one. `claims` are in the order in which the clusters came, `holders` are
/// the tenants whose quotas are there.
pub(super) fn divide_namespaces<'a>(
    claims: &[Claim],
    namespaces: impl IntoIterator<Item = (&'a str, &'a NamespaceFacts)>,
    holders: &BTreeMap<String, String>,
) -> Shares {
    let mut shares = Shares::default();
    for (namespace, facts) in namespaces.into_iter().filter(|(_, facts)| !facts.terminating) {
        let claimants: Vec<&Claim> = claims.iter().filter(|claim| claim.opened.contains(namespace)).collect();
        // A label that names nobody takes the namespace from nobody.
        let labelled = facts.tenant.as_ref().filter(|name| claims.iter().any(|claim| claim.name == **name));
        let Some(owner) = owner(namespace, labelled, &claimants, holders.get(namespace)) else { continue };
        for claim in claimants.iter().filter(|claim| claim.name != owner) {
            let taken = shares.taken.entry(claim.name.clone()).or_default();
            taken.insert(namespace.to_owned(), owner.clone());
        }
        shares.own.entry(owner).or_default().insert(namespace.to_owned());
    }
    shares
}

/// Whose a namespace is: what its label says goes before what ForeignClusters say, then whose namespace of an offer it is,
/// then who has it already.
fn owner(
    namespace: &str,
    labelled: Option<&String>,
    claimants: &[&Claim],
    holder: Option<&String>,
) -> Option<String> {
    if labelled.is_some() {
        return labelled.cloned();
    }
    let at_home = claimants.iter().find(|claim| claim.home == namespace);
    let holding = || claimants.iter().find(|claim| Some(&claim.name) == holder);
    at_home.or_else(holding).or_else(|| claimants.first()).map(|claim| claim.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(name: &str, namespaces: &[&str]) -> Claim {
        let object = json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": name},
            "spec": {
                "clusterIdentity": {"clusterID": name, "clusterName": name}, "incoming": {"namespaces": namespaces},
            },
        });
        Claim::of(name, &serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_namespace_belongs_to_one_tenant_and_stays_with_it() {
        let claims = [claim("rome", &["shop"]), claim("milan", &["shop", "portolan-tenant-rome", "lab"])];
        let labelled = NamespaceFacts { tenant: Some("rome".to_owned()), ..NamespaceFacts::default() };
        let plain = NamespaceFacts::default();
        let namespaces =
            [("shop", &plain), ("portolan-tenant-rome", &plain), ("lab", &labelled), ("other", &plain)];
        let of = |holder: Option<&str>| {
            let holders = holder.map(|holder| ("shop".to_owned(), holder.to_owned())).into_iter().collect();
            divide_namespaces(&claims, namespaces, &holders)
        };
        let first = of(None);
        let own = |shares: &Shares, name: &str| -> Vec<String> {
            shares.own.get(name).into_iter().flatten().cloned().collect()
        };
        assert_eq!(own(&first, "rome"), ["lab", "portolan-tenant-rome", "shop"]);
        assert_eq!(first.taken["milan"]["shop"], "rome");
        assert_eq!(own(&of(Some("milan")), "milan"), ["shop"], "who has it keeps it");
        assert_eq!(own(&of(Some("gone")), "rome").len(), 3);
        let nobodys = NamespaceFacts { tenant: Some("nobody".to_owned()), ..NamespaceFacts::default() };
        let kept = divide_namespaces(&claims, [("shop", &nobodys)], &BTreeMap::new());
        assert_eq!(own(&kept, "rome"), ["shop"], "what bounds a tenant does not go by a label");
    }
}

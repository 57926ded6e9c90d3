//! Who has the rights of tenants.

use super::{Happened, Live, text};
use portolan_core::tenancy::names::Tenant;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const BINDINGS: [&str; 2] =
    ["rbac.authorization.k8s.io/rolebindings", "rbac.authorization.k8s.io/clusterrolebindings"];
const CLUSTERS: &str = "portolan.dev/foreignclusters";

#[derive(Default)]
pub(super) struct Rights {
    /// The namespaces that were ever opened to a user, by cluster and user.
    opened: BTreeMap<(String, String), BTreeSet<String>>,
}

/// The users of tenants that a binding names.
fn users(binding: &Value) -> Vec<String> {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    let names = subjects.filter(|subject| subject["kind"] == "User").map(|subject| text(&subject["name"]));
    names.filter(|name| Tenant::of_user(name).is_some()).collect()
}

/// Whether a namespace is one of the system, in which no tenant places anything.
fn is_of_system(namespace: &str) -> bool {
    namespace == "portolan" || ["kube-", "portolan-"].iter().any(|system| namespace.starts_with(system))
}

/// All users of tenants that have any right in a cluster.
fn with_rights(live: &Live, cluster: &str) -> BTreeSet<String> {
    BINDINGS.iter().flat_map(|kind| live.all(kind, cluster)).flat_map(|(_, binding)| users(binding)).collect()
}

impl Rights {
    /// A binding is made, changed or deleted.
    pub(super) fn bound(&mut self, what: &Happened<'_>) -> Vec<String> {
        let mut problems = Vec::new();
        if what.gone {
            return problems;
        }
        let (cluster, namespace, name) = what.place;
        let named = users(what.object);
        if named.is_empty() {
            return problems;
        }
        let subjects = what.object["subjects"].as_array().map_or(0, Vec::len);
        if subjects != 1 {
            problems.push(format!("binding {namespace}/{name} of {named:?} has {subjects} subjects"));
        }
        for user in &named {
            let foreign = text(&what.object["metadata"]["labels"]["portolan.dev/tenant"]);
            let role = text(&what.object["roleRef"]["name"]);
            let opened = self.opened.get(&(cluster.clone(), user.clone()));
            let is_open = |namespace: &str| opened.is_some_and(|all| all.contains(namespace));
            let any_open = opened.is_some_and(|all| !all.is_empty());
            let allowed = match (role.as_str(), namespace.as_str()) {
                ("portolan-tenant", namespace) => namespace == format!("portolan-tenant-{foreign}"),
                ("portolan-tenant-placement", namespace) => is_open(namespace) && !is_of_system(namespace),
                (role, "") if role == format!("portolan-tenant-{foreign}-namespaces") => any_open,
                // Nobody is invited to see a whole cluster in these worlds.
                (role, "") => role == format!("portolan-tenant-{foreign}-renewal"),
                _ => false,
            };
            if !allowed {
                problems.push(format!("{user} gets role {role} in namespace {namespace:?} by {name}"));
            }
        }
        problems.extend(two_identities(&with_rights(what.live, cluster)));
        problems
    }

    /// A ForeignCluster is made, changed or deleted.
    pub(super) fn declared(&mut self, what: &Happened<'_>) -> Vec<String> {
        let incoming = &what.object["spec"]["incoming"];
        if what.gone {
            return Vec::new();
        }
        let namespaces: Vec<String> =
            incoming["namespaces"].as_array().into_iter().flatten().map(text).collect();
        let of_system = namespaces.iter().filter(|namespace| is_of_system(namespace));
        let mut problems: Vec<String> = of_system
            .map(|namespace| format!("namespace {namespace} of the system is opened to {}", what.place.2))
            .collect();
        if let Some(user) = incoming["user"].as_str() {
            let key = (what.cluster().to_owned(), user.to_owned());
            self.opened.entry(key).or_default().extend(namespaces);
        }
        let all = what.live.all(CLUSTERS, what.cluster());
        let users = all.filter_map(|(_, each)| each["spec"]["incoming"]["user"].as_str()).map(str::to_owned);
        problems.extend(two_identities(&users.collect()));
        problems
    }
}

/// Users that have rights without a ForeignCluster that gives them. While controllers are down, so it may be for a while.
pub(super) fn orphaned(live: &Live) -> Vec<String> {
    let namespaces = live.0.get("/namespaces").into_iter().flatten();
    let clusters: BTreeSet<&String> = namespaces.map(|((cluster, ..), _)| cluster).collect();
    let mut problems = Vec::new();
    for cluster in clusters {
        let declared: BTreeSet<&str> = live
            .all(CLUSTERS, cluster)
            .filter_map(|(_, each)| each["spec"]["incoming"]["user"].as_str())
            .collect();
        let users = with_rights(live, cluster);
        let orphans = users.iter().filter(|user| !declared.contains(user.as_str()));
        problems.extend(orphans.map(|user| format!("{user} has rights in {cluster}, and no ForeignCluster")));
    }
    problems
}

/// Two users of one cluster.
fn two_identities(users: &BTreeSet<String>) -> Vec<String> {
    let mut by_cluster: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for user in users {
        if let Some(tenant) = Tenant::of_user(user) {
            by_cluster.entry(tenant.cluster).or_default().push(user);
        }
    }
    let several = by_cluster.into_values().filter(|users| users.len() > 1);
    several.map(|users| format!("one consumer has several identities: {users:?}")).collect()
}

//! What a hub may do in a member, verb by verb.
//!
//! Rights follow from what is registered to be watched and kept in members, with a few rows beside; they are given nowhere
//! else. The test on the lab compares them with the API server's audit log and fails if one is missing or unused.

use crate::fleet::KEEP;
use crate::registrations::REGISTRATIONS;
use serde_json::{Value, json};
use std::fmt::Write;

/// Where a right holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In the whole member. Such rights only look.
    Cluster,
    /// In the namespaces that the member opened to the hub.
    OpenNamespaces,
    /// In Portolan's own namespace in the member, on the hub's own service account only.
    OwnAccount,
    /// In Portolan's own namespace in the member, on the hub's own report only.
    OwnReport,
    /// In the namespace of the member's Prometheus, on its Service only, if traffic is asked of it.
    Traffic,
}

/// One row: some verbs on one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// Where it holds.
    pub scope: Scope,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, with its subresource if it is one.
    pub resource: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// What it is for.
    pub why: &'static str,
}

const fn right(
    scope: Scope,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> Right {
    Right { scope, group, resource, verbs, why }
}

use Scope::{Cluster, OpenNamespaces, OwnAccount, OwnReport, Traffic};

/// An object that is watched.
const LOOK: &[&str] = &["list", "watch"];

/// An object that is carried there from the hub.
const PROPAGATE: &[&str] = &["list", "watch", "get", "create", "patch", "delete"];

/// Everything that a hub may do in a member: it watches what is registered, keeps the copies of registered kinds, and does
/// what [`OTHER`] says.
#[must_use]
pub fn rights() -> Vec<Right> {
    let watched = REGISTRATIONS.iter().map(|each| right(Cluster, each.group, each.resource, LOOK, each.why));
    let kept = REGISTRATIONS
        .iter()
        .filter_map(|each| Some(right(OpenNamespaces, each.group, each.resource, KEEP, each.copies?.why)));
    watched.chain(kept).chain(OTHER.iter().copied()).collect()
}

/// What is neither watched in the whole member nor kept there as a copy.
const OTHER: &[Right] = &[
    right(OpenNamespaces, "", "configmaps", PROPAGATE, "ConfigMaps that workloads placed there refer to"),
    right(OpenNamespaces, "", "secrets", PROPAGATE, "Secrets that workloads placed there refer to"),
    right(
        OpenNamespaces,
        "metrics.k8s.io",
        "pods",
        &["list"],
        "the use of workloads that have an autoscaler",
    ),
    right(OwnAccount, "", "serviceaccounts/token", &["create"], "a new token before the old one ends"),
    right(
        OwnReport,
        portolan_api::GROUP,
        "clusterreports",
        &["get", "create", "patch"],
        "the round-trip times to the other members and the summary of capacity, where Portolan runs there and tells them",
    ),
    right(Traffic, "", "services/proxy", &["get"], "the traffic of applications, by a query"),
];

/// The rows of a scope as rules of RBAC; `named` is the one object that those of [`Scope::OwnAccount`], [`Scope::OwnReport`] and
/// [`Scope::Traffic`] are about. All of their requests have its name in the URL: a report is made by applying it, which is
/// authorised as `create` with its name, and not by POST.
#[must_use]
pub fn rules(scope: Scope, named: &str) -> Vec<Value> {
    let rows = rights().into_iter().filter(|right| right.scope == scope);
    rows.map(|right| {
        let mut rule =
            json!({ "apiGroups": [right.group], "resources": [right.resource], "verbs": right.verbs });
        if matches!(scope, Scope::OwnAccount | Scope::OwnReport | Scope::Traffic) {
            rule["resourceNames"] = json!([named]);
        }
        rule
    })
    .collect()
}

/// What a hub looks at in the namespaces of a member of which it sees no more than these: all that it watches there.
pub(crate) fn look_rules() -> Vec<Value> {
    let namespaced = REGISTRATIONS.iter().filter(|each| !["nodes", "namespaces"].contains(&each.resource));
    namespaced
        .map(|each| json!({ "apiGroups": [each.group], "resources": [each.resource], "verbs": LOOK }))
        .collect()
}

/// The page of the documentation that lists the rights.
#[must_use]
pub fn page() -> String {
    let mut text = String::from(
        "# What a hub may do in a member\n\n\
         This page is written by `cargo xtask generate` from the table that `portolan peer` makes the roles of. A test on \
         real clusters holds it against the API server's audit log: no right is missing, none is unused.\n",
    );
    let parts = [
        (
            Cluster,
            "In the whole member",
            "By a ClusterRole and a ClusterRoleBinding. These rights only look.",
        ),
        (
            OpenNamespaces,
            "In namespaces that the member opened",
            "By a ClusterRole, and a RoleBinding in each namespace that was given to `portolan peer --namespace`.",
        ),
        (
            OwnAccount,
            "On the hub's own service account",
            "By a Role in namespace `portolan` that names this one account.",
        ),
        (
            OwnReport,
            "On the hub's own report",
            "By the same Role, which names this one ClusterReport in namespace `portolan`.",
        ),
        (
            Traffic,
            "On the Service of a Prometheus",
            "Only if it was given to `portolan peer --traffic-from-prometheus`: by a Role in its namespace that names this \
             one Service and port.",
        ),
    ];
    for (scope, title, how) in parts {
        let _ = write!(text, "\n## {title}\n\n{how}\n\n| resource | verbs | what for |\n|---|---|---|\n");
        for right in rights().into_iter().filter(|right| right.scope == scope) {
            let group = if right.group.is_empty() { String::new() } else { format!(".{}", right.group) };
            let verbs = right.verbs.join(", ");
            let _ = writeln!(text, "| `{}{group}` | {verbs} | {} |", right.resource, right.why);
        }
    }
    text.push_str(
        "\nThe version of the member's Kubernetes and whether its API server is ready and which rights the hub has are asked for too, which \
         everybody may.          There is no right on `nodes/proxy`, no `*`, no impersonation, and none to write what was not opened. The lists and watches above cover all namespaces: the \
         specs of pods, with the values of their environment variables, are readable also where nothing was opened.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn nothing_is_given_by_star_twice_or_in_the_whole_member_beyond_looking() {
        let mut seen = BTreeSet::new();
        for right in rights() {
            assert!(seen.insert((right.scope, right.group, right.resource)), "{right:?} stands there twice");
            let is_wider = |other: &Right| {
                let same = (other.group, other.resource) == (right.group, right.resource);
                same && other.scope == Scope::Cluster
                    && right.verbs.iter().all(|verb| other.verbs.contains(verb))
            };
            let covered = right.scope != Scope::Cluster && rights().iter().any(is_wider);
            assert!(!covered, "{right:?} is given in the whole member already");
            let words = right.verbs.iter().chain([&right.group, &right.resource]);
            assert!(words.clone().all(|word| !word.contains('*')), "{right:?}");
            assert!(!right.verbs.iter().any(|verb| ["escalate", "bind", "impersonate"].contains(verb)));
            assert!(!right.resource.starts_with("nodes/"), "{right:?}");
            if right.scope == Scope::Cluster {
                assert!(right.verbs.iter().all(|verb| ["get", "list", "watch"].contains(verb)), "{right:?}");
                assert_ne!(right.resource, "secrets", "what is secret is nobody's to list");
            }
        }
    }

    #[test]
    fn of_reports_only_the_own_one_is_made_read_and_changed() {
        let rules = rules(Scope::OwnReport, "hub-1");
        assert!(rules.iter().all(|rule| rule["resourceNames"] == json!(["hub-1"])), "{rules:?}");
        let verbs: Vec<_> = rules.iter().map(|rule| &rule["verbs"]).collect();
        assert_eq!(verbs, [&json!(["get", "create", "patch"])]);
    }

    #[test]
    fn a_token_can_be_had_for_the_own_account_only_and_one_service_be_asked() {
        for (scope, named) in [(Scope::OwnAccount, "hub-1"), (Scope::Traffic, "prometheus:9090")] {
            let rules = rules(scope, named);
            assert!(!rules.is_empty() && rules.iter().all(|rule| rule["resourceNames"] == json!([named])));
        }
    }
}

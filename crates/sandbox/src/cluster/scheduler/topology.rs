//! Spread, and keeping together or apart, over the domains of a topology.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::filter::selected;
use crate::cluster::text;
use crate::cluster::view::View;
use crate::store::{LabelSelector, at};

/// A constraint on how unevenly pods may be spread.
struct Spread {
    key: String,
    /// Pods of the kind in each domain.
    counts: BTreeMap<String, i64>,
    least: i64,
    most_skew: i64,
    /// The pod itself is of the kind.
    counts_itself: bool,
}

/// Domains that a pod must be in, or must not be in.
struct Company {
    key: String,
    domains: BTreeSet<String>,
    wanted: bool,
    /// The pod would be the first of its kind, which is then welcome everywhere.
    first: bool,
}

/// What a pod asks of the domains of its node.
pub(super) struct Topology {
    spreads: Vec<Spread>,
    company: Vec<Company>,
}

impl Topology {
    pub(super) fn of(pod: &Value, view: &View) -> Self {
        let spreads =
            at(pod, "/spec/topologySpreadConstraints").and_then(Value::as_array).into_iter().flatten();
        let spreads = spreads
            .filter(|constraint| text(constraint, "/whenUnsatisfiable") != "ScheduleAnyway")
            .map(|constraint| spread(pod, constraint, view))
            .collect();
        let mut company = Vec::new();
        for (kind, wanted) in [("podAffinity", true), ("podAntiAffinity", false)] {
            let terms = format!("/spec/affinity/{kind}/requiredDuringSchedulingIgnoredDuringExecution");
            for term in at(pod, &terms).and_then(Value::as_array).into_iter().flatten() {
                company.push(company_of(pod, term, view, wanted));
            }
        }
        Self { spreads, company }
    }

    /// Why a node is not in the right place.
    pub(super) fn refusal(&self, node: &Value) -> Option<String> {
        let domain = |key: &str| at(node, "/metadata/labels")?.get(key)?.as_str();
        for spread in &self.spreads {
            let Some(domain) = domain(&spread.key) else {
                let reason = "node(s) didn't match pod topology spread constraints (missing required label)";
                return Some(reason.to_owned());
            };
            let here = spread.counts.get(domain).copied().unwrap_or(0) + i64::from(spread.counts_itself);
            if here - spread.least > spread.most_skew {
                return Some("node(s) didn't match pod topology spread constraints".to_owned());
            }
        }
        for company in &self.company {
            let together = domain(&company.key).is_some_and(|domain| company.domains.contains(domain));
            if company.wanted && !together && !(company.first && domain(&company.key).is_some()) {
                return Some("node(s) didn't match pod affinity rules".to_owned());
            }
            if !company.wanted && together {
                return Some("node(s) didn't match pod anti-affinity rules".to_owned());
            }
        }
        None
    }
}

/// Pods of a kind in each domain of a topology.
fn count(pod: &Value, selector: &LabelSelector, key: &str, view: &View) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for (_, other) in view.pods_in(text(pod, "/metadata/namespace")) {
        if other.over
            || other.deleting
            || other.node.is_empty()
            || !selector.matches_labels(Some(&other.labels))
        {
            continue;
        }
        let node = view.nodes.get(&other.node).map(|node| &node.object);
        let domain = node.and_then(|node| at(node, "/metadata/labels")?.get(key)?.as_str());
        if let Some(domain) = domain {
            *counts.entry(domain.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn spread(pod: &Value, constraint: &Value, view: &View) -> Spread {
    let selector = LabelSelector::from_json(&constraint["labelSelector"]);
    let key = text(constraint, "/topologyKey").to_owned();
    let counts = count(pod, &selector, &key, view);
    // Only domains that the pod could be in at all set the measure.
    let domains: BTreeSet<&str> = view
        .nodes
        .values()
        .filter(|node| selected(pod, &node.object))
        .filter_map(|node| at(&node.object, "/metadata/labels")?.get(&key)?.as_str())
        .collect();
    let least = domains.iter().map(|domain| counts.get(*domain).copied().unwrap_or(0)).min().unwrap_or(0);
    Spread {
        least,
        counts,
        key,
        most_skew: constraint.get("maxSkew").and_then(Value::as_i64).unwrap_or(1),
        counts_itself: selector.matches_labels(at(pod, "/metadata/labels")),
    }
}

fn company_of(pod: &Value, term: &Value, view: &View, wanted: bool) -> Company {
    let selector = LabelSelector::from_json(&term["labelSelector"]);
    let key = text(term, "/topologyKey").to_owned();
    let counts = count(pod, &selector, &key, view);
    let first = counts.is_empty() && selector.matches_labels(at(pod, "/metadata/labels"));
    Company { domains: counts.into_keys().collect(), key, wanted, first }
}

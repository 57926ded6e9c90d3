//! What a node offers, and to whom.

use super::{Amounts, PodShape};
use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};
use std::collections::BTreeMap;

/// What capacity needs to know of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// What it offers to pods.
    pub allocatable: Amounts,
    /// Whether its kubelet reports Ready.
    pub ready: bool,
    /// Whether it is cordoned.
    pub cordoned: bool,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl NodeFacts {
    /// Keeps of a node what capacity needs. An amount we cannot read counts as zero: no room is invented.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        let status = node.status.clone().unwrap_or_default();
        let spec = node.spec.clone().unwrap_or_default();
        let is_ready = |(kind, value): (&str, &str)| kind == "Ready" && value == "True";
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            allocatable: Amounts::parse(&status.allocatable.unwrap_or_default()).unwrap_or_default(),
            ready: status
                .conditions
                .iter()
                .flatten()
                .any(|condition| is_ready((&condition.type_, &condition.status))),
            cordoned: spec.unschedulable.unwrap_or(false),
            taints: spec.taints.unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
        }
    }

    /// Why a pod of this shape is kept off the node whatever room there is; nothing if it is not.
    #[must_use]
    pub fn refuses(&self, shape: &PodShape) -> Option<&'static str> {
        if !self.ready {
            return Some("not ready");
        }
        if self.cordoned {
            return Some("cordoned");
        }
        if !shape.node_selector.iter().all(|(key, value)| self.labels.get(key) == Some(value)) {
            return Some("does not match the node selector");
        }
        if !shape.node_terms.is_empty() && !shape.node_terms.iter().any(|term| self.matches(term)) {
            return Some("does not match the node affinity");
        }
        let repels = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        let tolerated =
            |taint: &Taint| shape.tolerations.iter().any(|toleration| tolerates(toleration, taint));
        if !self.taints.iter().filter(repels).all(tolerated) {
            return Some("has a taint that is not tolerated");
        }
        None
    }

    /// A term matches if all its requirements do; a term without requirements matches nothing.
    fn matches(&self, term: &NodeSelectorTerm) -> bool {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        let field = |key: &str| (key == "metadata.name").then_some(self.name.as_str());
        (!expressions.is_empty() || !fields.is_empty())
            && expressions
                .iter()
                .all(|wanted| meets(wanted, self.labels.get(&wanted.key).map(String::as_str)))
            && fields.iter().all(|wanted| meets(wanted, field(&wanted.key)))
    }
}

fn meets(wanted: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|each| each == value));
    let compare = |holds: fn(&i64, &i64) -> bool| {
        let bound = values.first().and_then(|bound| bound.parse().ok());
        let value = value.and_then(|value| value.parse().ok());
        matches!((value, bound), (Some(value), Some(bound)) if holds(&value, &bound))
    };
    match wanted.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(i64::gt),
        "Lt" => compare(i64::lt),
        _ => false,
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let any = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
    let key = any(&toleration.key) || toleration.key.as_ref() == Some(&taint.key);
    let effect = any(&toleration.effect) || toleration.effect.as_ref() == Some(&taint.effect);
    let value = match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => true,
        // Without a key only Exists tolerates everything.
        "Equal" | "" => {
            !any(&toleration.key)
                && toleration.value.as_deref().unwrap_or("") == taint.value.as_deref().unwrap_or("")
        }
        _ => false,
    };
    key && effect && value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(spec: serde_json::Value, labels: serde_json::Value) -> NodeFacts {
        let object = json!({
            "metadata": {"name": "n1", "labels": labels},
            "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "2"}},
        });
        NodeFacts::of(&serde_json::from_value(object).unwrap())
    }

    fn pod(spec: serde_json::Value) -> PodShape {
        let mut spec = spec;
        spec["containers"] = json!([]);
        PodShape::of_spec(&serde_json::from_value(spec).unwrap()).unwrap()
    }

    #[test]
    fn a_silent_or_cordoned_node_takes_nothing() {
        let mut silent = node(json!({}), json!({}));
        assert_eq!(silent.refuses(&pod(json!({}))), None);
        silent.ready = false;
        assert_eq!(silent.refuses(&pod(json!({}))), Some("not ready"));
        assert_eq!(
            node(json!({"unschedulable": true}), json!({})).refuses(&pod(json!({}))),
            Some("cordoned")
        );
    }

    #[test]
    fn taints_repel_unless_tolerated() {
        let tainted =
            node(json!({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}), json!({}));
        let refused = Some("has a taint that is not tolerated");
        let cases = [
            (json!([]), refused),
            (json!([{"key": "gpu", "operator": "Exists"}]), None),
            (json!([{"key": "gpu", "value": "yes"}]), None),
            (json!([{"key": "gpu", "value": "no"}]), refused),
            (json!([{"operator": "Exists"}]), None),
            (json!([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]), refused),
        ];
        for (tolerations, expected) in cases {
            assert_eq!(tainted.refuses(&pod(json!({"tolerations": tolerations}))), expected, "{tolerations}");
        }
        let preferring = node(json!({"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}), json!({}));
        assert_eq!(preferring.refuses(&pod(json!({}))), None);
    }

    #[test]
    fn selectors_and_affinity_are_held() {
        let labelled = node(json!({}), json!({"zone": "a", "cores": "8"}));
        let affinity = |expression: serde_json::Value| {
            pod(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}}))
        };
        let refused = Some("does not match the node affinity");
        let cases = [
            (json!({"key": "zone", "operator": "In", "values": ["a", "b"]}), None),
            (json!({"key": "zone", "operator": "NotIn", "values": ["a"]}), refused),
            (json!({"key": "cores", "operator": "Gt", "values": ["4"]}), None),
            (json!({"key": "cores", "operator": "Lt", "values": ["4"]}), refused),
            (json!({"key": "disk", "operator": "DoesNotExist"}), None),
            (json!({"key": "disk", "operator": "Exists"}), refused),
        ];
        for (expression, expected) in cases {
            assert_eq!(labelled.refuses(&affinity(expression.clone())), expected, "{expression}");
        }
        let wrong = pod(json!({"nodeSelector": {"zone": "b"}}));
        assert_eq!(labelled.refuses(&wrong), Some("does not match the node selector"));
    }
}

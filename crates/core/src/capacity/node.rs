//! What a node offers, and to whom.

use super::shape::NAME_FIELD;
use super::{Amounts, CPU, MEMORY, PODS, PodShape};
use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// No node has more CPUs, in thousandths.
const MOST_CPU: i64 = 10_000 * 1000;

/// No node has more memory or disk: 1 PiB, in thousandths of a byte.
const MOST_BYTES: i64 = (1 << 50) * 1000;

/// So many kinds of resources are kept of a node: CPU, memory, pods, and the first others by name.
pub(super) const MOST_RESOURCES: usize = 32;

/// Names of resources are no longer than a domain, a slash and a label.
const LONGEST_NAME: usize = 253 + 1 + 63;

/// Labels, and the values they have on virtual nodes if only one counts, that say that a node is virtual.
const VIRTUAL_LABELS: [(&str, Option<&str>); 3] =
    [("type", Some("virtual-kubelet")), ("liqo.io/type", None), ("portolan.dev/virtual-node", None)];

/// Taints that virtual nodes have.
const VIRTUAL_TAINTS: [&str; 2] = ["virtual-node.liqo.io/not-allowed", "virtual-kubelet.io/provider"];

/// How the provider ids of virtual nodes begin.
const VIRTUAL_PROVIDERS: [&str; 2] = ["virtual-kubelet", "liqo"];

/// Why a node is left out of the room of its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// It stands for another cluster, whose room would be counted twice.
    Virtual,
    /// It says that it has what no machine has.
    Implausible,
}

impl LeftOut {
    /// Why, in words.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::Virtual => "virtual, its room is counted where it really is",
            Self::Implausible => {
                "not counted, it claims more than 10,000 CPUs or 1 PiB, or less than nothing"
            }
        }
    }
}

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
    /// Why its room does not count, if it does not.
    pub left_out: Option<LeftOut>,
    /// Which nodes this stands for, if it is not one node.
    pub group: Option<NodeGroup>,
}

/// Nodes of which a summary tells no more than what they have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeGroup {
    /// How many nodes these are.
    pub nodes: u32,
    /// The labels that are told of them. Of others it is not known whether they have them.
    pub told_labels: Arc<BTreeSet<String>>,
}

/// Why a group of nodes does not take a pod that asks for what is not told of them.
const NOT_TOLD: &str = "the summary of the cluster does not tell a label that is asked for, see spec.capacity.fromReport.nodeLabels";

impl NodeFacts {
    /// Keeps of a node what capacity needs. An amount we cannot read counts as zero: no room is invented.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        let (status, spec) = (node.status.as_ref(), node.spec.as_ref());
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let allocatable = status.and_then(|status| status.allocatable.as_ref());
        let mut facts = Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            allocatable: allocatable.and_then(|given| Amounts::parse(given).ok()).unwrap_or_default(),
            ready: conditions.iter().any(|each| each.type_ == "Ready" && each.status == "True"),
            cordoned: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
            taints: spec.and_then(|spec| spec.taints.clone()).unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            left_out: None,
            group: None,
        };
        facts.left_out = if facts.is_virtual(spec.and_then(|spec| spec.provider_id.as_deref())) {
            Some(LeftOut::Virtual)
        } else {
            facts.is_implausible().then_some(LeftOut::Implausible)
        };
        facts.bound_resources();
        facts
    }

    fn is_virtual(&self, provider: Option<&str>) -> bool {
        let labelled = |(key, value): &(&str, Option<&str>)| {
            self.labels.get(*key).is_some_and(|given| value.is_none_or(|value| given == value))
        };
        VIRTUAL_LABELS.iter().any(labelled)
            || self.taints.iter().any(|taint| VIRTUAL_TAINTS.contains(&taint.key.as_str()))
            || provider.is_some_and(|id| VIRTUAL_PROVIDERS.iter().any(|provider| id.starts_with(provider)))
    }

    pub(crate) fn is_implausible(&self) -> bool {
        self.allocatable.iter().any(|(name, milli)| {
            let most = match name {
                CPU => MOST_CPU,
                MEMORY | "ephemeral-storage" => MOST_BYTES,
                _ if name.starts_with("hugepages-") => MOST_BYTES,
                _ => i64::MAX,
            };
            milli < 0 || milli > most
        })
    }

    /// A cluster names its resources as it likes: only so many names are kept, and only what can be one.
    pub(crate) fn bound_resources(&mut self) {
        let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-_./".contains(&letter);
        let mut others = MOST_RESOURCES - 3;
        self.allocatable.retain(|name| {
            if [CPU, MEMORY, PODS].contains(&name) {
                return true;
            }
            let keeps = others > 0 && name.len() <= LONGEST_NAME && name.bytes().all(plain);
            others -= usize::from(keeps);
            keeps
        });
    }

    /// Why a pod of this shape is kept off the node whatever room there is; nothing if it is not.
    #[must_use]
    pub fn refuses(&self, shape: &PodShape) -> Option<&'static str> {
        if let Some(left_out) = self.left_out {
            return Some(left_out.why());
        }
        if !self.ready {
            return Some("not ready");
        }
        if self.cordoned {
            return Some("cordoned");
        }
        if !shape.node_selector.iter().all(|(key, value)| self.labels.get(key) == Some(value)) {
            let told = shape.node_selector.keys().all(|key| self.tells(key));
            return Some(if told { "does not match the node selector" } else { NOT_TOLD });
        }
        if !shape.node_terms.is_empty() && !shape.node_terms.iter().any(|term| self.matches(term)) {
            let told = shape.node_terms.iter().all(|term| self.tells_of(term));
            return Some(if told { "does not match the node affinity" } else { NOT_TOLD });
        }
        let repels = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        let tolerated =
            |taint: &Taint| shape.tolerations.iter().any(|toleration| tolerates(toleration, taint));
        if !self.taints.iter().filter(repels).all(tolerated) {
            return Some("has a taint that is not tolerated");
        }
        None
    }

    /// Whether it is known of a label if the node has it.
    fn tells(&self, label: &str) -> bool {
        self.group.as_ref().is_none_or(|group| group.told_labels.contains(label))
    }

    /// Whether it is known of all that a term asks for.
    fn tells_of(&self, term: &NodeSelectorTerm) -> bool {
        let fields = term.match_fields.as_deref().unwrap_or_default();
        (fields.is_empty() || self.group.is_none())
            && term.match_expressions.iter().flatten().all(|wanted| self.tells(&wanted.key))
    }

    /// A term matches if all its requirements do; a term without requirements matches nothing.
    fn matches(&self, term: &NodeSelectorTerm) -> bool {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        let field = |key: &str| (key == NAME_FIELD).then_some(self.name.as_str());
        // That a label is absent can be asked for, too: what is not told is never met.
        (!expressions.is_empty() || !fields.is_empty())
            && self.tells_of(term)
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

    fn with_allocatable(allocatable: serde_json::Value) -> NodeFacts {
        let object = json!({"metadata": {"name": "n1"}, "status": {
            "conditions": [{"type": "Ready", "status": "True"}], "allocatable": allocatable,
        }});
        NodeFacts::of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn what_no_machine_has_is_not_counted() {
        let refused = |facts: NodeFacts| facts.refuses(&pod(json!({})));
        let cases = [
            (json!({"cpu": "10000", "memory": "1Pi", "pods": "110"}), None),
            (json!({"cpu": "10001"}), Some(LeftOut::Implausible)),
            (json!({"cpu": "1e30"}), Some(LeftOut::Implausible)),
            (json!({"memory": "2Pi"}), Some(LeftOut::Implausible)),
            (json!({"ephemeral-storage": "1Ei"}), Some(LeftOut::Implausible)),
            (json!({"cpu": "4", "memory": "-1"}), Some(LeftOut::Implausible)),
        ];
        for (allocatable, expected) in cases {
            let facts = with_allocatable(allocatable.clone());
            assert_eq!(facts.left_out, expected, "{allocatable}");
            assert_eq!(refused(facts), expected.map(LeftOut::why), "{allocatable}");
        }
    }

    #[test]
    fn virtual_nodes_are_left_out() {
        let taint = |key: &str| json!({"taints": [{"key": key, "effect": "NoExecute"}]});
        let cases = [
            (json!({}), json!({"type": "virtual-kubelet"}), true),
            (json!({}), json!({"type": "kwok"}), false),
            (json!({}), json!({"liqo.io/type": "virtual-node"}), true),
            (json!({}), json!({"portolan.dev/virtual-node": "lille"}), true),
            (taint("virtual-node.liqo.io/not-allowed"), json!({}), true),
            (taint("virtual-kubelet.io/provider"), json!({}), true),
            (taint("gpu"), json!({}), false),
            (json!({"providerID": "virtual-kubelet://vk-1"}), json!({}), true),
            (json!({"providerID": "aws:///eu-west-3a/i-0123"}), json!({}), false),
        ];
        for (spec, labels, left_out) in cases {
            let facts = node(spec.clone(), labels.clone());
            assert_eq!(facts.left_out == Some(LeftOut::Virtual), left_out, "{spec} {labels}");
        }
    }

    #[test]
    fn of_the_resources_that_a_node_invents_only_some_are_kept() {
        let mut offered: BTreeMap<String, String> =
            (0..200).map(|number| (format!("example.org/r{number:03}"), "1".to_owned())).collect();
        offered.insert("\u{1b}[2J".to_owned(), "1".to_owned());
        for name in [CPU, MEMORY, PODS] {
            offered.insert(name.to_owned(), "1".to_owned());
        }
        let facts = with_allocatable(json!(offered));
        assert_eq!(facts.allocatable.iter().count(), MOST_RESOURCES);
        assert!([CPU, MEMORY, PODS].iter().all(|name| facts.allocatable.get(name) == 1000));
        assert!(facts.allocatable.iter().all(|(name, _)| !name.contains('\u{1b}')));
    }
}

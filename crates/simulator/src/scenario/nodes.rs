//! The nodes of a member: alike, or each by itself.

use super::Quantity;
use super::error::Broken;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The most nodes of a member.
const MOST_NODES: usize = 5000;

/// Nodes that are all alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Nodes {
    /// How many.
    pub count: u16,
    /// The CPUs that each has for pods.
    pub cpu: Quantity,
    /// The memory that each has for pods.
    pub memory: Quantity,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// What it has for pods, by resource: cpu and memory, and others such as pods (110 if it is not given) or nvidia.com/gpu.
    pub allocatable: BTreeMap<String, Quantity>,
    /// What the pods on it request together that no object of the scenario runs, by resource. These pods stay on the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<String, Quantity>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<NodeTaint>,
    /// Whether it is cordoned.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unschedulable: bool,
    /// Whether it answers, which it does if this is not given. A node that does not is as one that is lost before the beginning.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub ready: bool,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeTaint {
    /// The key.
    pub key: String,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What it does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// They are not bound to the node.
    NoSchedule,
    /// They are bound to the node only if there is no other.
    PreferNoSchedule,
    /// They are not bound to the node, and leave it.
    NoExecute,
}

impl TaintEffect {
    /// Its name in Kubernetes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A node of a member: its number, the first being 1, or its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NodeRef {
    /// Its number.
    Number(u16),
    /// Its name.
    Name(String),
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "number {number}"),
            Self::Name(name) => write!(f, "{name:?}"),
        }
    }
}

impl JsonSchema for NodeRef {
    fn schema_name() -> Cow<'static, str> {
        "NodeRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A node of a member: its number, the first being 1, or its name.",
            "type": ["integer", "string"],
        })
    }
}

/// Checks the nodes of a member, which are given in one way or the other.
pub(super) fn check(field: &str, alike: Option<&Nodes>, list: &[NodeSpec]) -> Result<(), Broken> {
    match (alike, list) {
        (None, []) => {
            return Err(Broken::new(format!("{field}.nodes"), "it is missing")
                .hint("give nodes, or nodeList; a member without nodes has nodes with count 0"));
        }
        (Some(_), [_, ..]) => {
            return Err(Broken::new(format!("{field}.nodeList"), "nodes is given too")
                .hint("give either nodes, which are all alike, or nodeList"));
        }
        (Some(nodes), []) if usize::from(nodes.count) > MOST_NODES => {
            let count = nodes.count;
            return Err(Broken::new(
                format!("{field}.nodes.count"),
                format!("{count} is more than {MOST_NODES}"),
            ));
        }
        (None, list) if list.len() > MOST_NODES => {
            let message = format!("{} nodes are more than {MOST_NODES}", list.len());
            return Err(Broken::new(format!("{field}.nodeList"), message));
        }
        (Some(_), []) | (None, _) => {}
    }
    let mut seen = BTreeSet::new();
    for (index, node) in list.iter().enumerate() {
        let field = format!("{field}.nodeList[{index}]");
        name(&format!("{field}.name"), &node.name)?;
        if !seen.insert(&node.name) {
            return Err(Broken::new(
                format!("{field}.name"),
                format!("{} is another node already", node.name),
            ));
        }
        amounts(&field, node)?;
    }
    Ok(())
}

fn name(field: &str, name: &str) -> Result<(), Broken> {
    let letter =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    if bytes.len() > 253 || !name.bytes().all(letter) || !ends(bytes.first()) || !ends(bytes.last()) {
        return Err(Broken::new(field, format!("{name:?} cannot be the name of a node"))
            .hint("write at most 253 lower-case letters, digits, dashes and dots"));
    }
    Ok(())
}

fn amounts(field: &str, node: &NodeSpec) -> Result<(), Broken> {
    for resource in ["cpu", "memory"] {
        if !node.allocatable.contains_key(resource) {
            return Err(Broken::new(format!("{field}.allocatable.{resource}"), "it is missing"));
        }
    }
    for (resource, used) in &node.used {
        let whole = node.allocatable.get(resource).map_or(0, |whole| whole.milli);
        let unlimited = resource == "pods" && !node.allocatable.contains_key(resource);
        if used.milli > whole && !unlimited {
            let has = node.allocatable.get(resource).map_or("0", |whole| whole.text.as_str());
            return Err(Broken::new(
                format!("{field}.used.{resource}"),
                format!("{} is more than is allocatable, {has}", used.text),
            ));
        }
    }
    Ok(())
}

const fn yes() -> bool {
    true
}

const fn is_true(value: &bool) -> bool {
    *value
}

const fn is_false(value: &bool) -> bool {
    !*value
}

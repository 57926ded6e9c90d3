//! The scenario file: which clusters there are, and what happens to them.

mod check;
mod cloud;
mod error;
mod fault;
mod nodes;
mod quantity;
mod read;
mod shipped;
mod tasks;
mod trace;
mod traffic;

use portolan_api::duration::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub use cloud::{Boot, Cloud, CloudMachineType, ControlPlane};
pub use error::ScenarioError;
pub use fault::{Event, Fault, Refusal};
pub use nodes::{NodeRef, NodeSpec, NodeTaint, Nodes, TaintEffect};
pub use quantity::Quantity;
pub use read::{Baseline, load, schema};
pub use shipped::{Shipped, shipped};
pub use tasks::{Arrivals, Distribution, Drawn, Generator, Location, Quantile, Task, TaskKind, Tasks, Trace};
pub use traffic::{Load, Point, Traffic, Wave};

/// A simulation as it is written in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// The name, as a DNS label.
    pub name: String,
    /// What it shows, in one line.
    pub title: String,
    /// The number that everything random comes from. `--seed` takes its place.
    #[serde(default = "one")]
    pub seed: u64,
    /// How long it lasts, in simulated time.
    pub duration: Duration,
    /// How often the state is recorded, in simulated time.
    #[serde(default = "fifteen_seconds")]
    pub sample_every: Duration,
    /// The namespace of objects that name none, and of the tasks. It is opened in every cluster.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The management cluster, which runs the controllers and no pods.
    #[serde(default)]
    pub hub: Hub,
    /// The members of the fleet, before anything happens.
    pub clusters: Vec<ClusterSpec>,
    /// Round-trip times between sites. They count in both directions; clusters of one site are at no distance.
    #[serde(default)]
    pub latencies: Vec<Latency>,
    /// The cloud that clusters can be made in, and the CloudProvisioner for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<Cloud>,
    /// Further clouds, each with a CloudProvisioner of its own. Their names differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clouds: Vec<Cloud>,
    /// Objects that are applied or deleted.
    #[serde(default)]
    pub objects: Vec<Step>,
    /// Many small workloads, drawn by a generator or read from a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Tasks>,
    /// Users who send requests.
    #[serde(default)]
    pub traffic: Vec<Traffic>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Named changes of the scenario, for `--compare`.
    #[serde(default)]
    pub variants: BTreeMap<String, Variant>,
}

/// The management cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hub {
    /// Where it is: requests of the controllers to the members take the round-trip time from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

/// A member of the fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterSpec {
    /// The name of its ForeignCluster, as a DNS label.
    pub name: String,
    /// Where it is, for the latencies. If it is not given, it is a site of its own with the name of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Its nodes, if they are all alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// Its nodes one by one, in place of nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_list: Vec<NodeSpec>,
    /// Labels of its ForeignCluster, which cluster selectors match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The namespaces that are open to placement in it. If they are not given, all namespaces of the scenario are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// Further fields of the spec of its ForeignCluster, such as unschedulable, taints, cloud or capacity.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub spec: Map<String, Value>,
}

/// The way between two sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Latency {
    /// The two sites.
    pub between: Between,
    /// The round-trip time.
    pub rtt: Duration,
}

/// Two sites.
pub type Between = (String, String);

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// When, from the beginning.
    #[serde(default)]
    pub at: Duration,
    /// The clusters that it is done in, by name. If none is given, it is the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// The object that is applied, as for `kubectl apply --server-side`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub manifest: Option<Value>,
    /// The object that is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<ObjectRef>,
    /// How many replicas of a MultiClusterDeployment each cluster has from the beginning. The object exists before time is
    /// counted, and its replicas are not placed anew.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placed: BTreeMap<String, u32>,
}

/// An object by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectRef {
    /// The group and version, such as portolan.dev/v1alpha1.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace, if it is not that of the scenario.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// A named change of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variant {
    /// What is different, in one line.
    pub title: String,
    /// The change, as a JSON Patch (RFC 6902) of the scenario.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub patch: Value,
}

impl Scenario {
    /// All clouds.
    pub fn all_clouds(&self) -> impl Iterator<Item = &Cloud> {
        self.cloud.iter().chain(&self.clouds)
    }

    /// Where a cluster is: its site, or the cloud's, or a site with its own name.
    #[must_use]
    pub fn site_of<'a>(&'a self, cluster: &'a str) -> &'a str {
        let member =
            self.clusters.iter().find(|each| each.name == cluster).and_then(|each| each.site.as_deref());
        let cloud =
            self.all_clouds().find(|cloud| cloud.name == cluster).and_then(|cloud| cloud.site.as_deref());
        member.or(cloud).unwrap_or(cluster)
    }

    /// The round-trip time between two sites, if it is given.
    #[must_use]
    pub fn rtt(&self, a: &str, b: &str) -> Option<Duration> {
        let is_it = |each: &&Latency| {
            let (x, y) = (each.between.0.as_str(), each.between.1.as_str());
            (x, y) == (a, b) || (y, x) == (a, b)
        };
        self.latencies.iter().find(is_it).map(|each| each.rtt)
    }

    /// The names of the nodes of a member, in their order.
    #[must_use]
    pub fn nodes_of(&self, cluster: &str) -> Vec<String> {
        let Some(cluster) = self.clusters.iter().find(|each| each.name == cluster) else { return Vec::new() };
        let alike = cluster.nodes.as_ref().map_or(0, |nodes| nodes.count);
        let numbered = (1..=alike).map(|number| format!("{}-{number}", cluster.name));
        numbered.chain(cluster.node_list.iter().map(|node| node.name.clone())).collect()
    }

    /// The name of a node of a member, if there is such a node.
    #[must_use]
    pub fn node_name(&self, cluster: &str, node: &NodeRef) -> Option<String> {
        let names = self.nodes_of(cluster);
        match node {
            NodeRef::Number(number) => names.get(usize::from(*number).checked_sub(1)?).cloned(),
            NodeRef::Name(name) => names.into_iter().find(|each| each == name),
        }
    }

    /// The MultiClusterDeployments that are applied to the hub, by namespace and name, each once.
    #[must_use]
    pub fn workloads(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for manifest in self.objects.iter().filter_map(|step| step.manifest.as_ref()) {
            if manifest["kind"] != "MultiClusterDeployment" {
                continue;
            }
            let name = manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let namespace = manifest["metadata"]["namespace"].as_str().unwrap_or(&self.namespace).to_owned();
            if !found.contains(&(namespace.clone(), name.clone())) {
                found.push((namespace, name));
            }
        }
        found
    }
}

const fn one() -> u64 {
    1
}

const fn fifteen_seconds() -> Duration {
    Duration::from_secs(15)
}

fn default_namespace() -> String {
    "simulation".to_owned()
}

//! CloudProvisioner: clusters and nodes made on demand, and removed when nobody needs them.

mod status;
mod template;

pub use self::status::{
    Burst, CloudCluster, CloudPhase, CloudProvisionerStatus, Deprovisioning, LeftOut, NodePool,
    ProvisionFailure, UnhelpedPods,
};
pub use self::template::{ClusterTemplate, ControlPlaneTemplate, TemplateRef, WorkerTemplate};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    duration::Duration,
    foreigncluster::StaticLatency,
    money::Money,
    placement::Resources,
    quantity::{quantities_schema, quantity_schema},
    schema::{Rule, kind, rule, rules},
    template::PreservedObject,
};

/// What is made in the cloud when the fixed clusters are full.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "CloudProvisioner",
    plural = "cloudprovisioners",
    shortname = "cp",
    shortname = "cpca",
    category = "portolan",
    schema = "manual",
    status = "CloudProvisionerStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cloudClusterName"),
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.cloudProvider"),
    printcolumn(name = "Region", type_ = "string", json_path = ".spec.region", priority = 1),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes"),
    printcolumn(name = "Cost/h", type_ = "string", json_path = ".status.costPerHour"),
    printcolumn(name = "Cost", type_ = "string", json_path = ".status.costSoFar"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct CloudProvisionerSpec {
    /// The name of the cloud cluster, and of the ForeignCluster that it becomes. It cannot be changed.
    #[schemars(length(min = 1, max = 63), extend("x-kubernetes-validations" = [{
        "rule": "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "message": "must be a DNS label: lower-case letters, digits and '-'",
    }]))]
    pub cloud_cluster_name: String,

    /// The cloud, by the name of its Cluster API infrastructure provider, such as OpenStack. It cannot be changed.
    #[schemars(length(min = 1, max = 63))]
    pub cloud_provider: String,

    /// The region of the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub region: Option<String>,

    /// The public address that the control plane of the cloud cluster gets.
    #[serde(default, rename = "floatingIP", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = [{
        "rule": "isIP(self)",
        "message": "must be an IP address, such as 203.0.113.7",
    }]))]
    pub floating_ip: Option<String>,

    /// Not allowed: a spec can be read by everybody who may list this kind. Use credentialsSecretRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub credentials: Option<String>,

    /// The Secret with the cloud's credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<SecretRef>,

    /// The version of Kubernetes of the cloud cluster, such as v1.36.3. If it is not given, it is that of the
    /// management cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-validations" = [{
        "rule": "self.matches('^v[0-9]+[.][0-9]+[.][0-9]+$')",
        "message": "must be a version such as v1.36.3",
    }]))]
    pub kubernetes_version: Option<String>,

    /// The Cluster API class from which the cluster is made. If it is not given, a class of the same name as the
    /// provider in lower case is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_class: Option<ClusterClassRef>,

    /// The templates from which the cluster is made instead of a ClusterClass. A CloudProvisioner that was created with
    /// templates keeps to them, and one without them to a ClusterClass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_template: Option<ClusterTemplate>,

    /// The least number of worker nodes while the cluster exists.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 5000))]
    pub min_nodes: i32,

    /// The largest number of worker nodes.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 5000))]
    pub max_nodes: i32,

    /// The most that the cluster may cost per hour, in the currency of all prices. Every machine type needs a price then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_per_hour: Option<Money>,

    /// What the cluster costs per hour beside its worker nodes, such as its control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_price_per_hour: Option<Money>,

    /// The kinds of machine that nodes may be made of. The cheapest set that holds the pods is taken; without prices,
    /// the smallest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_types: Vec<MachineType>,

    /// What the pods of every node's own services, such as DaemonSets, request together.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub node_overhead: Resources,

    /// Room that is kept free, so that the next replicas need not wait for a node. While it is given, the cluster exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Headroom>,

    /// Which of several CloudProvisioners is used first. If they do not agree, it is nearest-first.
    #[serde(default)]
    pub preference: ProvisionerPreference,

    /// Known round-trip times to other clusters, for nearest-first: they cannot be measured before the cluster exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["to"]))]
    pub latencies: Vec<StaticLatency>,

    /// How long the cluster, or a new node of it, may take until it is ready. After that it is removed, and the workloads
    /// go to the next CloudProvisioner.
    #[serde(default = "twenty_minutes")]
    pub provision_timeout: Duration,

    /// How long nothing is tried after a failure. It is doubled with each failure in a row, up to eight times as long.
    #[serde(default = "five_minutes")]
    pub retry_after: Duration,

    /// How many percent of a node's allocatable CPU and memory must be requested for the node to be kept.
    #[serde(default = "fifty")]
    #[schemars(range(min = 0, max = 100))]
    pub utilization_threshold: i32,

    /// How long a node must be below the threshold before it is removed.
    #[serde(default = "ten_minutes")]
    pub scale_in_after: Duration,

    /// How long the cluster must be without work before it is removed altogether.
    #[serde(default = "twenty_minutes")]
    pub decommission_after: Duration,

    /// While it is true, nothing is made or removed. A CloudProvisioner that is deleted meanwhile stays as long as its cloud
    /// cluster exists, which is removed when this is false again; one that has made nothing goes at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

const fn one() -> i32 {
    1
}

const fn ten() -> i32 {
    10
}

const fn fifty() -> i32 {
    50
}

const fn ten_minutes() -> Duration {
    Duration::from_secs(600)
}

const fn twenty_minutes() -> Duration {
    Duration::from_secs(1200)
}

const fn five_minutes() -> Duration {
    Duration::from_secs(300)
}

const RULES: &[Rule] = &[
    rule(
        "!has(self.credentials)",
        "credentials must not stand in a spec, which everybody who may list CloudProvisioners can read: put them \
         into a Secret and name it in credentialsSecretRef",
    ),
    rule("self.minNodes <= self.maxNodes", "minNodes must not be greater than maxNodes"),
    rule(
        "!has(self.machineTypes) || self.machineTypes.all(t, has(t.pricePerHour)) \
         || !self.machineTypes.exists(t, has(t.pricePerHour))",
        "either every machine type has pricePerHour or none: a price that is missing cannot be compared",
    ),
    rule(
        "!has(self.maxCostPerHour) || (has(self.machineTypes) && self.machineTypes.all(t, has(t.pricePerHour)))",
        "maxCostPerHour needs pricePerHour of every machine type",
    ),
    rule(
        "!has(self.provisionTimeout) || duration(self.provisionTimeout) >= duration('1m')",
        "provisionTimeout must be at least 1m",
    ),
    rule(
        "!has(self.retryAfter) || duration(self.retryAfter) >= duration('1s')",
        "retryAfter must be at least 1s",
    ),
    rule(
        "!has(self.clusterClass) || !has(self.clusterTemplate)",
        "clusterClass and clusterTemplate exclude each other: a cluster is made from one of them",
    ),
    rule(
        "!has(self.clusterTemplate) || !(has(self.floatingIP) || has(self.credentialsSecretRef))",
        "floatingIP and credentialsSecretRef become variables of a ClusterClass: with clusterTemplate, write them into \
         the templates",
    ),
    rule(
        "!has(self.clusterTemplate) || !has(self.machineTypes) || self.machineTypes.all(t, \
         self.clusterTemplate.workers.exists(w, w.machineType == t.name))",
        "each of machineTypes needs an entry of clusterTemplate.workers with its name as machineType",
    ),
    rule(
        "has(self.clusterTemplate) == has(oldSelf.clusterTemplate)",
        "clusterTemplate can be neither added nor removed: make a new CloudProvisioner instead",
    ),
    rule(
        "self.cloudClusterName == oldSelf.cloudClusterName",
        "cloudClusterName is immutable: make a new CloudProvisioner instead",
    ),
    rule(
        "self.cloudProvider == oldSelf.cloudProvider",
        "cloudProvider is immutable: make a new CloudProvisioner instead",
    ),
];

/// A Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// The namespace of the Secret.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A class of clusters of Cluster API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassRef {
    /// The name of the ClusterClass.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The namespace of the ClusterClass, in which the cluster is made too.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The values of the class's variables, by name. They are kept as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<PreservedObject>,
}

/// A kind of machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[MACHINE_TYPE_RULES])))]
pub struct MachineType {
    /// The cloud's name for it, such as m1.large.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The CPUs that are left for pods.
    #[schemars(schema_with = "quantity_schema")]
    pub cpu: Quantity,
    /// The memory that is left for pods.
    #[schemars(schema_with = "quantity_schema")]
    pub memory: Quantity,
    /// Further resources that are left for pods, such as nvidia.com/gpu.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub resources: Resources,
    /// What one machine costs per hour, such as "0.0416".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<Money>,
    /// The largest number of pods.
    #[serde(default = "pods_per_node")]
    #[schemars(range(min = 1, max = 1000))]
    pub pods: i32,
}

const MACHINE_TYPE_RULES: &[Rule] = &[rule(
    "quantity(string(self.cpu)).isGreaterThan(quantity('0')) \
     && quantity(string(self.memory)).isGreaterThan(quantity('0'))",
    "cpu and memory must be greater than 0: no pod fits on such a machine",
)];

const fn pods_per_node() -> i32 {
    110
}

/// Room that is kept free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Headroom {
    /// For how many pods there is room.
    #[schemars(range(min = 1, max = 10000))]
    pub pods: i32,
    /// What each of them requests.
    #[schemars(schema_with = "quantities_schema")]
    pub requests: Resources,
}

/// Which of several provisioners is used first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProvisionerPreference {
    /// The one with the smallest round-trip time to the cluster that lacks room.
    #[default]
    NearestFirst,
    /// The one whose machines for the pending pods cost least.
    CheapestFirst,
}

kind!(
    CloudProvisioner,
    CloudProvisionerSpec,
    CloudProvisionerStatus,
    "A CloudProvisioner makes a cluster in a cloud through Cluster API when workloads fit nowhere else, gives it as \
     many nodes as they need, and removes it when it is no longer needed. It is made once."
);

//! The values that an installation is made from.

use crate::VERSION;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How Portolan is to be in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Values {
    /// What this cluster tells of itself.
    pub cluster: ClusterValues,
    /// Run two controllers, of which one leads, on different nodes where possible, and keep one of them while nodes are
    /// drained.
    pub high_availability: bool,
    /// The container image.
    pub image: ImageValues,
    /// The controller.
    pub controller: ControllerValues,
    /// The custom resource definitions.
    pub crds: CrdValues,
    /// What Prometheus and Grafana need to watch the controller.
    pub monitoring: MonitoringValues,
}

/// What this cluster tells of itself; it is written to the ConfigMap `portolan-cluster`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClusterValues {
    /// The name by which other clusters know it, if they peer by an invitation. `portolan install` makes one from the cloud's name or the identity of the
    /// cluster if none is given.
    pub name: String,
    /// Labels of the cluster, which a hub gives to its ForeignCluster when it peers by a context.
    pub labels: BTreeMap<String, String>,
    /// What it runs on: kind, k3s, kubeadm, eks, gke, aks, openshift or generic.
    pub provider: String,
    /// The URL by which other clusters reach its API server, if it is not that of the kubeconfig.
    #[serde(rename = "apiServerURL")]
    pub api_server_url: String,
    /// The range of addresses of its pods, such as 10.244.0.0/16. It is kept on record for a network between clusters, and
    /// nothing reads it yet.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: String,
    /// The range of addresses of its Services, such as 10.96.0.0/12. It is kept on record, and nothing reads it yet.
    #[serde(rename = "serviceCIDR")]
    pub service_cidr: String,
    /// Private ranges of addresses that are in use beside those of pods and Services. They are kept on record, and nothing
    /// reads them yet.
    pub reserved_subnets: Vec<String>,
    /// How much of its nodes it shares with each consumer, such as 50%, where neither the ForeignCluster of the consumer nor a
    /// default SharingClass says more. Empty shares nothing.
    pub sharing: String,
}

/// The container image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ImageValues {
    /// The image without its tag.
    pub repository: String,
    /// Its tag, which follows the version of Portolan.
    pub tag: String,
    /// Its digest, such as sha256:…; it goes before the tag.
    pub digest: String,
    /// When nodes pull it: IfNotPresent, Always or Never.
    pub pull_policy: String,
    /// The names of Secrets in namespace portolan with the credentials of the registry.
    pub pull_secrets: Vec<String>,
}

/// The controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ControllerValues {
    /// The resources of its container, as in a pod.
    pub resources: Map<String, Value>,
    /// The labels of the nodes that it may run on.
    pub node_selector: BTreeMap<String, String>,
    /// The taints of nodes that it tolerates, as in a pod.
    pub tolerations: Vec<Map<String, Value>>,
    /// Its PriorityClass.
    pub priority_class_name: String,
    /// Labels of its pods, beside those by which they are selected.
    pub pod_labels: BTreeMap<String, String>,
    /// Annotations of its pods.
    pub pod_annotations: BTreeMap<String, String>,
    /// The Prometheus in this cluster that queries of autoscalers are put to, as NAMESPACE/SERVICE:PORT.
    pub prometheus: String,
    /// Let it place workloads in this cluster too, as a member of its own fleet (`portolan peer --local`).
    pub hub_as_member: bool,
    /// Let members measure the round-trip time to each other. In a hub: tell each member that measures the names of the others and
    /// the addresses of their API servers. In a member: connect to the addresses that its hubs name, and report how long each answer
    /// takes.
    pub measure_latency: bool,
    /// Report the capacity of this cluster in a summary of a few kilobytes to those hubs that ask for it, so that they need not watch
    /// its nodes and pods (`capacity.fromReport` of its ForeignCluster). It is meant for members of thousands of nodes.
    pub report_capacity: bool,
    /// More arguments of `portolan controller`.
    pub extra_args: Vec<String>,
}

/// The custom resource definitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CrdValues {
    /// Install them. Without it they must be there already.
    pub install: bool,
    /// Install the definition of ClusterProfile too, which is the Kubernetes project's. Set it to false if something else
    /// installs it.
    pub cluster_profiles: bool,
    /// Install also the kinds that no controller serves yet.
    pub experimental: bool,
}

/// What Prometheus and Grafana need to watch the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MonitoringValues {
    /// Create a Service, a ServiceMonitor and a PrometheusRule, whose kinds the Prometheus Operator must have installed before, and a
    /// ConfigMap with the dashboard.
    pub enabled: bool,
    /// Labels of the ServiceMonitor and the PrometheusRule, such as release: prometheus, by which a Prometheus selects them.
    pub labels: BTreeMap<String, String>,
    /// Labels of the ConfigMap, by which Grafana's sidecar finds the dashboard.
    pub dashboard_labels: BTreeMap<String, String>,
}

impl Default for MonitoringValues {
    fn default() -> Self {
        let found_by = BTreeMap::from([("grafana_dashboard".to_owned(), "1".to_owned())]);
        Self { enabled: false, labels: BTreeMap::new(), dashboard_labels: found_by }
    }
}

impl Default for ImageValues {
    fn default() -> Self {
        Self {
            repository: "ghcr.io/portolan-dev/portolan".to_owned(),
            tag: VERSION.to_owned(),
            digest: String::new(),
            pull_policy: "IfNotPresent".to_owned(),
            pull_secrets: Vec::new(),
        }
    }
}

impl Default for ControllerValues {
    fn default() -> Self {
        let amounts = |pairs: &[(&str, &str)]| -> Value {
            pairs.iter().map(|(name, amount)| ((*name).to_owned(), Value::from(*amount))).collect()
        };
        let resources = [
            ("requests", amounts(&[("cpu", "50m"), ("memory", "64Mi")])),
            ("limits", amounts(&[("memory", "1Gi")])),
        ];
        Self {
            resources: resources.map(|(name, amounts)| (name.to_owned(), amounts)).into_iter().collect(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            priority_class_name: String::new(),
            pod_labels: BTreeMap::new(),
            pod_annotations: BTreeMap::new(),
            prometheus: String::new(),
            hub_as_member: false,
            measure_latency: false,
            report_capacity: false,
            extra_args: Vec::new(),
        }
    }
}

impl Default for CrdValues {
    fn default() -> Self {
        Self { install: true, cluster_profiles: true, experimental: false }
    }
}

/// Lays values over others, as Helm does: maps are merged, and everything else is replaced. A `null` stays until the defaults
/// are beneath it, which it takes away.
#[must_use]
pub fn merge(under: Value, over: &Value) -> Value {
    match (under, over) {
        (Value::Object(mut under), Value::Object(over)) => {
            for (key, value) in over {
                let before = under.remove(key).unwrap_or(Value::Null);
                under.insert(key.clone(), merge(before, value));
            }
            Value::Object(under)
        }
        (_, over) => over.clone(),
    }
}

pub(crate) fn drop_nulls(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}

pub(crate) fn defaults() -> Value {
    serde_json::to_value(Values::default()).unwrap_or_default()
}

/// The JSON Schema of the values.
#[must_use]
pub fn schema() -> Value {
    schemars::schema_for!(Values).to_value()
}

/// All values with their defaults and what they mean, as YAML.
#[must_use]
pub fn values_yaml() -> String {
    let schema = schema();
    let mut text = String::from("# Generated by `cargo xtask generate`. Do not edit.\n");
    fields(&mut text, 0, &defaults(), &schema, &schema);
    text
}

fn fields(text: &mut String, depth: usize, values: &Value, part: &Value, root: &Value) {
    let indent = "  ".repeat(depth);
    for (name, schema) in part["properties"].as_object().into_iter().flatten() {
        let inner = schema["$ref"].as_str().and_then(|to| to.rsplit('/').next()).map(|to| &root["$defs"][to]);
        let described = schema["description"].as_str().or_else(|| inner?["description"].as_str());
        for line in described.unwrap_or_default().lines() {
            text.push_str(&format!("{indent}# {line}\n"));
        }
        match inner {
            Some(inner) => {
                text.push_str(&format!("{indent}{name}:\n"));
                fields(text, depth + 1, &values[name], inner, root);
            }
            None => text.push_str(&format!("{indent}{name}: {}\n", values[name])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use serde_json::json;

    #[test]
    fn a_value_that_is_wrong_is_named_by_its_path() {
        let refused = |overrides: Value| parse(&overrides).unwrap_err();
        let unknown = refused(json!({"controller": {"resorces": {}}}));
        assert_eq!(unknown.path, "controller.resorces");
        assert!(unknown.problem.contains("unknown field") && unknown.problem.contains("`resources`"));
        let mistyped = refused(json!({"highAvailability": "yes"}));
        assert_eq!(mistyped.path, "highAvailability");
        assert!(mistyped.problem.contains("expected a boolean"), "{mistyped}");
        for (overrides, path) in [
            (json!({"cluster": {"sharing": "lots"}}), "cluster.sharing"),
            (json!({"cluster": {"sharing": "101%"}}), "cluster.sharing"),
            (json!({"cluster": {"name": "Paris!"}}), "cluster.name"),
            (json!({"cluster": {"labels": {"a b": "c"}}}), "cluster.labels"),
            (json!({"cluster": {"podCIDR": "10.0.0.0/33"}}), "cluster.podCIDR"),
            (json!({"cluster": {"reservedSubnets": ["10.0.0.0/8", "x"]}}), "cluster.reservedSubnets[1]"),
            (json!({"cluster": {"provider": "abacus"}}), "cluster.provider"),
            (json!({"cluster": {"apiServerURL": "paris:6443"}}), "cluster.apiServerURL"),
            (json!({"image": {"tag": ""}}), "image.tag"),
            (json!({"image": {"pullPolicy": "Sometimes"}}), "image.pullPolicy"),
            (json!({"controller": {"prometheus": "prometheus"}}), "controller.prometheus"),
            (json!({"monitoring": {"labels": {"a b": "c"}}}), "monitoring.labels"),
            (json!({"monitoring": {"dashboardLabels": {"a": "b c"}}}), "monitoring.dashboardLabels"),
            (json!({"controller": {"resources": {"request": {}}}}), "controller.resources.request"),
        ] {
            assert_eq!(refused(overrides.clone()).path, path, "{overrides}");
        }
    }

    #[test]
    fn the_written_defaults_are_the_defaults() {
        let written: Value = serde_saphyr::from_str(&values_yaml()).unwrap();
        assert_eq!(written, defaults());
        assert_eq!(parse(&written).unwrap(), Values::default());
        assert_eq!(parse(&json!({})).unwrap(), Values::default());
    }

    #[test]
    fn every_value_says_what_it_is_for() {
        fn wordless(part: &Value, path: &str, found: &mut Vec<String>) {
            for (name, schema) in part["properties"].as_object().into_iter().flatten() {
                if schema["description"].as_str().is_none_or(str::is_empty) && schema["$ref"].is_null() {
                    found.push(format!("{path}{name}"));
                }
            }
        }
        let schema = schema();
        let mut found = Vec::new();
        wordless(&schema, "", &mut found);
        for (name, part) in schema["$defs"].as_object().unwrap() {
            wordless(part, name, &mut found);
        }
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn null_takes_a_default_away_and_maps_are_merged() {
        let values = parse(&json!({"controller": {"resources": {"limits": null}}})).unwrap();
        let kept: Vec<&String> = values.controller.resources.keys().collect();
        assert_eq!(kept, ["requests"]);
        let recorded = json!({"controller": {"resources": {"limits": {"cpu": "1"}}}});
        let later = merge(recorded, &json!({"controller": {"resources": {"limits": null}}}));
        assert!(!parse(&later).unwrap().controller.resources.contains_key("limits"));
    }
}

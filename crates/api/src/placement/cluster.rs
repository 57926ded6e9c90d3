//! Clusters as a placement sees them: taints, groups, weights, distances.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::one;
use crate::duration::Duration;

/// A taint of a cluster that a workload puts up with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
    "message": "a toleration with operator Exists takes no value",
}, {
    "rule": "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
    "message": "a toleration without key needs operator Exists: it tolerates every taint",
}]))]
pub struct ClusterToleration {
    /// The key of the taint. If it is not given, every taint is tolerated, and the operator must be Exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub key: Option<String>,
    /// How the value is compared.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// The value of the taint, with operator Equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// The effect that is tolerated. If it is not given, all effects are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
}

impl ClusterToleration {
    /// Whether this toleration covers `taint`.
    pub fn tolerates(&self, taint: &ClusterTaint) -> bool {
        let key = self.key.as_ref().is_none_or(|key| *key == taint.key);
        let effect = self.effect.is_none_or(|effect| effect == taint.effect);
        let value = match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => {
                self.value.as_deref().unwrap_or("") == taint.value.as_deref().unwrap_or("")
            }
        };
        key && effect && value
    }
}

/// How a toleration compares the value of a taint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// The values must be equal.
    #[default]
    Equal,
    /// Any value will do.
    Exists,
}

/// A mark on a cluster that keeps workloads away unless they tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaint {
    /// The key of the taint.
    #[schemars(length(min = 1, max = 316))]
    pub key: String,
    /// The value of the taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// What happens to workloads that do not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does to workloads that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// Nothing new is placed on the cluster.
    NoSchedule,
    /// The cluster is chosen only if no other one will do.
    PreferNoSchedule,
    /// Nothing new is placed on the cluster, and what runs there is moved away.
    NoExecute,
}

/// How chosen clusters are spread over groups of clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpread {
    /// The label of ForeignClusters whose values form the groups, such as topology.kubernetes.io/region.
    #[serde(default = "region_label")]
    #[schemars(length(min = 1, max = 316))]
    pub topology_key: String,
    /// By how many chosen clusters two groups may differ at most.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 256))]
    pub max_skew: i32,
    /// The least number of groups in which there must be a chosen cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub min_domains: Option<i32>,
    /// What happens when the spread cannot be had.
    #[serde(default)]
    pub when_unsatisfiable: WhenUnsatisfiable,
}

fn region_label() -> String {
    "topology.kubernetes.io/region".to_owned()
}

/// What happens when a spread cannot be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenUnsatisfiable {
    /// What would break the spread stays pending.
    #[default]
    DoNotSchedule,
    /// The spread is kept as well as it can be.
    ScheduleAnyway,
}

/// The share of one cluster when replicas are divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterWeight {
    /// The name of the cluster.
    #[schemars(length(min = 1, max = 253))]
    pub cluster: String,
    /// Its share in proportion to the other weights. Clusters that are not listed have weight 1.
    #[schemars(range(min = 0, max = 1000))]
    pub weight: i32,
}

/// A bound on the distance between clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaxLatency {
    /// The name of the cluster from which the latency counts.
    #[schemars(length(min = 1, max = 253))]
    pub from: String,
    /// The largest round-trip time, such as 20ms.
    pub rtt: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(value: Option<&str>, effect: TaintEffect) -> ClusterTaint {
        ClusterTaint { key: "dedicated".into(), value: value.map(Into::into), effect }
    }

    #[test]
    fn tolerations_match_as_those_of_pods_do() {
        let equal = ClusterToleration {
            key: Some("dedicated".into()),
            value: Some("edge".into()),
            ..Default::default()
        };
        assert!(equal.tolerates(&taint(Some("edge"), TaintEffect::NoSchedule)));
        assert!(!equal.tolerates(&taint(Some("core"), TaintEffect::NoSchedule)));
        assert!(!equal.tolerates(&taint(None, TaintEffect::NoSchedule)));

        let everything = ClusterToleration { operator: TolerationOperator::Exists, ..Default::default() };
        assert!(everything.tolerates(&taint(Some("edge"), TaintEffect::NoExecute)));
        let one_effect = ClusterToleration { effect: Some(TaintEffect::NoSchedule), ..everything };
        assert!(!one_effect.tolerates(&taint(None, TaintEffect::NoExecute)));
    }
}

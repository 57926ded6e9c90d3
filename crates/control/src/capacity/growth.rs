//! How a cluster may grow, as its ForeignCluster says.

use k8s_openapi::api::core::v1::Taint;
use portolan_api::ForeignCluster;
use portolan_api::foreigncluster::NodeTemplate;
use portolan_api::placement::TaintEffect;
use portolan_core::capacity::{Amounts, Growth, NodeFacts};

/// What the ForeignCluster says of room that its cluster could have.
pub(crate) fn growth(cluster: &ForeignCluster) -> Growth {
    let Some(capacity) = &cluster.spec.capacity else { return Growth::Fixed };
    if !capacity.count_room {
        return Growth::Uncounted;
    }
    match capacity.max_nodes {
        Some(nodes) => Growth::UpTo {
            nodes: u32::try_from(nodes).unwrap_or(0),
            like: capacity.node_template.as_ref().map(|template| Box::new(node(template))),
        },
        None => Growth::Fixed,
    }
}

/// The node that a template makes. An amount that cannot be read counts as zero, as on nodes that exist.
fn node(template: &NodeTemplate) -> NodeFacts {
    let taint = |taint: &portolan_api::placement::ClusterTaint| Taint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: match taint.effect {
            TaintEffect::NoSchedule => "NoSchedule",
            TaintEffect::PreferNoSchedule => "PreferNoSchedule",
            TaintEffect::NoExecute => "NoExecute",
        }
        .to_owned(),
        ..Taint::default()
    };
    NodeFacts {
        allocatable: Amounts::parse(&template.allocatable).unwrap_or_default(),
        ready: true,
        taints: template.taints.iter().map(taint).collect(),
        labels: template.labels.clone(),
        ..NodeFacts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_core::capacity::{CPU, PODS};
    use serde_json::{Value, json};

    fn told(capacity: Value) -> Growth {
        let object = json!({
            "apiVersion": "portolan.dev/v1alpha1",
            "kind": "ForeignCluster",
            "metadata": {"name": "a"},
            "spec": {"clusterIdentity": {"clusterID": "a", "clusterName": "a"}, "capacity": capacity},
        });
        growth(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_foreign_cluster_says_how_it_grows() {
        assert_eq!(told(Value::Null), Growth::Fixed);
        assert_eq!(told(json!({})), Growth::Fixed);
        assert_eq!(told(json!({"countRoom": false})), Growth::Uncounted);
        assert_eq!(told(json!({"maxNodes": 9})), Growth::UpTo { nodes: 9, like: None });
        let template = json!({
            "allocatable": {"cpu": "4", "pods": 110},
            "labels": {"pool": "spot"},
            "taints": [{"key": "spot", "effect": "NoSchedule"}],
        });
        let Growth::UpTo { nodes: 9, like: Some(like) } =
            told(json!({"maxNodes": 9, "nodeTemplate": template}))
        else {
            unreachable!("it grows by its template")
        };
        assert_eq!((like.allocatable.get(CPU), like.allocatable.get(PODS)), (4000, 110_000));
        assert_eq!((like.labels["pool"].as_str(), like.taints[0].effect.as_str()), ("spot", "NoSchedule"));
    }
}

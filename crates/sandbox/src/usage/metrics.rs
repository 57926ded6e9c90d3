//! `metrics.k8s.io`: use as a metrics server tells it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Usage;
use super::metered::metered;
use crate::api::Api;
use crate::store::{ObjectKey, Stored};

/// The window that use is averaged over.
const WINDOW: &str = "15s";

/// Thousandths of requests a second that reach each pod.
pub(crate) type Loads = BTreeMap<ObjectKey, u64>;

/// The use of a pod; none if it does not run.
pub(crate) fn pod_metrics(api: &Api, pod: &Stored, loads: &Loads, now: Timestamp) -> Option<Value> {
    let found = metered(api, pod);
    if !found.runs {
        return None;
    }
    let load = loads.get(&pod.key).copied().unwrap_or(0);
    let labels: Map<String, Value> =
        pod.labels.iter().map(|(key, value)| (key.to_string(), Value::from(&**value))).collect();
    let containers = found.containers.iter();
    let containers: Vec<Value> = containers
        .map(|each| json!({"name": &*each.name, "usage": shown(found.usage_of(each, load, now))}))
        .collect();
    Some(json!({
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {
            "name": &*pod.key.name, "namespace": &*pod.key.namespace, "labels": labels,
            "creationTimestamp": second(now),
        },
        "timestamp": second(now),
        "window": WINDOW,
        "containers": containers,
    }))
}

/// The use of a node: that of its pods.
pub(crate) fn node_metrics(api: &Api, node: &Stored, loads: &Loads, now: Timestamp) -> Value {
    let mut total = Usage::default();
    for pod in api.store.scan("/pods", None, None) {
        let found = metered(api, pod);
        let load = loads.get(&pod.key).copied().unwrap_or(0);
        if let Some(used) = found.usage(load, now).filter(|_| *found.node == *node.key.name) {
            total.cpu += used.cpu;
            total.memory += used.memory;
        }
    }
    json!({
        "kind": "NodeMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {
            "name": &*node.key.name, "labels": node.value().pointer("/metadata/labels"), "creationTimestamp": second(now),
        },
        "timestamp": second(now),
        "window": WINDOW,
        "usage": shown(total),
    })
}

fn shown(usage: Usage) -> Value {
    json!({"cpu": format!("{}m", usage.cpu), "memory": format!("{}Ki", usage.memory / 1000 / 1024)})
}

fn second(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

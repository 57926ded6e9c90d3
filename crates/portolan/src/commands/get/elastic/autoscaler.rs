//! The columns of MultiClusterHorizontalPodAutoscalers.

use super::{Cell, joined, shown};
use serde_json::Value;

pub(super) fn cells(object: &Value) -> Vec<Cell> {
    let (spec, status) = (&object["spec"], &object["status"]);
    // The one that holds now: a schedule may ask for more.
    let least = if status["minReplicas"].is_number() { &status["minReplicas"] } else { &spec["minReplicas"] };
    vec![
        ("TARGET", shown(&spec["scaleTargetRef"]["name"])),
        ("METRICS", shown(&status["metricsSummary"])),
        ("MIN", shown(least)),
        ("MAX", shown(&spec["maxReplicas"])),
        ("REPLICAS", shown(&status["currentReplicas"])),
    ]
}

/// What each cluster contributes.
pub(super) fn wide(object: &Value) -> Vec<Cell> {
    let clusters = object["status"]["clusters"].as_array().into_iter().flatten();
    vec![("CLUSTERS", joined(clusters.map(cluster).collect()))]
}

/// Its replicas, those that its own load needs, and how busy they are. A mark where a message says more.
fn cluster(each: &Value) -> String {
    let number = |field: &str| each[field].as_i64().unwrap_or(0);
    let name = each["cluster"].as_str().unwrap_or_default();
    let busy = each["averageUtilization"].as_i64().map(|percent| format!("@{percent}%")).unwrap_or_default();
    let mark = if each["message"].is_string() { "?" } else { "" };
    format!("{name}:{}/{}{busy}{mark}", number("currentReplicas"), number("desiredReplicas"))
}

//! An autoscaler: its bounds, and what the load of each cluster asks for.

use super::tree::Branch;
use super::{list, number, text};
use serde_json::Value;

/// What it scales, in one line.
pub(super) fn summary(object: &Value) -> String {
    let (spec, status) = (&object["spec"], &object["status"]);
    let mut line = format!("scales {}", text(&spec["scaleTargetRef"], "name").unwrap_or("-"));
    if let Some(current) = status["currentReplicas"].as_i64() {
        line.push_str(&format!(": {current} replicas, {} desired", number(status, "desiredReplicas")));
    }
    line.push_str(&format!(", {} to {} allowed", minimum(spec), number(spec, "maxReplicas")));
    if let Some(metrics) = text(status, "metricsSummary") {
        line.push_str(&format!(", {metrics}"));
    }
    line
}

/// Each cluster, and the schedule that raises the minimum.
pub(super) fn branches(object: &Value) -> Vec<Branch> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let mut branches: Vec<Branch> =
        list(status, "clusters").iter().map(|each| Branch::leaf(cluster(each))).collect();
    let least = status["minReplicas"].as_i64().filter(|least| *least > minimum(spec));
    branches.extend(least.map(|least| Branch::leaf(scheduled(spec, least))));
    branches
}

/// The minimum without schedules.
fn minimum(spec: &Value) -> i64 {
    spec["minReplicas"].as_i64().unwrap_or(1)
}

fn cluster(each: &Value) -> String {
    let mut line = format!(
        "{}  {}/{} replicas",
        text(each, "cluster").unwrap_or_default(),
        number(each, "currentReplicas"),
        number(each, "desiredReplicas")
    );
    if let Some(percent) = each["averageUtilization"].as_i64() {
        line.push_str(&format!(", {percent}% utilization"));
    }
    if let Some(share) = each["share"].as_i64() {
        line.push_str(&format!(", share {share}"));
    }
    if let Some(message) = text(each, "message") {
        line.push_str(&format!(": {message}"));
    }
    line
}

/// The status has the minimum and not the schedule that it is of: it is one of those with that number.
fn scheduled(spec: &Value, least: i64) -> String {
    let holds = list(spec, "schedules").iter().filter(|each| each["minReplicas"].as_i64() == Some(least));
    let names: Vec<&str> = holds.filter_map(|each| text(each, "name")).collect();
    let by =
        if names.is_empty() { "a schedule".to_owned() } else { format!("schedule {}", names.join(" or ")) };
    format!("at least {least} replicas now, by {by}; {} without it", minimum(spec))
}

#[cfg(test)]
mod tests {
    use crate::commands::status::elastic::description;
    use crate::kind::Kind;
    use serde_json::json;

    #[test]
    fn an_autoscaler_is_described_with_its_clusters_and_its_schedule() {
        let mut object = json!({
            "metadata": {
                "name": "web", "namespace": "shop", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "scaleTargetRef": {"kind": "MultiClusterDeployment", "name": "web"},
                "minReplicas": 2, "maxReplicas": 20,
                "schedules": [{"name": "office", "minReplicas": 10}, {"name": "night", "minReplicas": 1}],
            },
            "status": {
                "observedGeneration": 2, "currentReplicas": 6, "desiredReplicas": 10, "minReplicas": 10,
                "metricsSummary": "cpu 63%/75%",
                "clusters": [
                    {"cluster": "paris", "currentReplicas": 3, "desiredReplicas": 5, "averageUtilization": 82},
                    {"cluster": "rome", "currentReplicas": 3, "desiredReplicas": 3, "share": 4, "message": "silent"},
                ],
                "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "all is well"}],
            },
        });
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let text = description(Kind::Autoscaler, &object, now);
        let headline = "multiclusterhorizontalpodautoscaler shop/web  scales web: 6 replicas, 10 desired, 2 to 20 \
                        allowed, cpu 63%/75%, 60m old\n  all is well\n";
        assert!(text.contains('✓') && text.contains(headline), "{text}");
        let tree = "├─ paris  3/5 replicas, 82% utilization\n├─ rome  3/3 replicas, share 4: silent\n\
                    └─ at least 10 replicas now, by schedule office; 2 without it\n";
        assert!(text.contains(tree), "{text}");
        assert!(text.contains("\nConditions\n  Ready True for "), "{text}");

        object["status"]["minReplicas"] = json!(2);
        object["metadata"]["generation"] = json!(3);
        let text = description(Kind::Autoscaler, &object, now);
        assert!(text.contains('✗') && text.contains("its last change is not seen yet"), "{text}");
        assert!(!text.contains("at least"), "{text}");
    }
}

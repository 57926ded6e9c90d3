//! Custom metrics of pods and of other objects, from custom.metrics.k8s.io.

use super::request::{Path, amount, get, listed, measured_at, readable, served, told};
use jiff::{SignedDuration, Timestamp};
use kube::core::GroupVersionKind;
use kube::{Client, discovery};
use portolan_api::autoscaling::{DescribedObject, MetricIdentifier};
use portolan_api::selector;
use portolan_core::autoscale::{Reading, Sample};
use portolan_runtime::call;
use serde::Deserialize;

const GROUP: &str = "custom.metrics.k8s.io";

/// If nothing is said of it: the time over which upstream takes a custom metric to be measured.
const WINDOW: SignedDuration = SignedDuration::from_mins(1);

#[derive(Deserialize)]
struct MetricValueList {
    #[serde(default, deserialize_with = "listed")]
    items: Vec<MetricValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetricValue {
    described_object: Described,
    #[serde(default)]
    timestamp: Option<Timestamp>,
    #[serde(default)]
    window_seconds: Option<i64>,
    value: String,
}

#[derive(Deserialize)]
struct Described {
    #[serde(default)]
    name: String,
}

/// A metric of the pods that a selector selects.
pub(super) async fn of_pods(
    client: &Client,
    namespace: &str,
    pods: &str,
    metric: &MetricIdentifier,
) -> Reading {
    match values(client, &format!("namespaces/{namespace}/pods/*/{}", metric.name), pods, metric).await {
        Ok(values) => Reading::Pods(values.into_iter().collect()),
        Err(error) => Reading::Failed(error),
    }
}

/// A metric of another object in the same namespace, or of the namespace itself.
pub(super) async fn of_object(
    client: &Client,
    namespace: &str,
    object: &DescribedObject,
    metric: &MetricIdentifier,
) -> Reading {
    let path = match path(client, namespace, object).await {
        Ok(path) => format!("{path}/{}", metric.name),
        Err(error) => return Reading::Failed(error),
    };
    match values(client, &path, "", metric).await.map(|values| values.into_iter().next()) {
        Ok(Some((_, sample))) => Reading::Value { value: sample.value, at: sample.at },
        Ok(None) => Reading::Failed(format!("no value is told for {} {}", object.kind, object.name)),
        Err(error) => Reading::Failed(error),
    }
}

async fn values(
    client: &Client,
    path: &str,
    pods: &str,
    metric: &MetricIdentifier,
) -> Result<Vec<(String, Sample)>, String> {
    let api = served(client, GROUP).await?;
    let series = metric.selector.as_ref().map(selector::to_text).unwrap_or_default();
    let path = Path::new(format!("{api}/{path}"));
    let path = path.with("labelSelector", pods).with("metricLabelSelector", &series);
    let list: MetricValueList = get(client, path, &format!("read the metric {}", metric.name)).await?;
    readable(list.items.into_iter().map(sample))
}

fn sample(said: MetricValue) -> Result<(String, Sample), String> {
    let window = said.window_seconds.map_or(WINDOW, SignedDuration::from_secs);
    let (name, value) = (said.described_object.name, amount(&said.value)?);
    let at = measured_at(&name, said.timestamp)?;
    Ok((name, Sample { value, at, window }))
}

/// Where the metrics of an object are found.
async fn path(client: &Client, namespace: &str, object: &DescribedObject) -> Result<String, String> {
    if object.kind == "Namespace" {
        return Ok(format!("namespaces/{namespace}/metrics"));
    }
    let version = object.api_version.as_deref().unwrap_or("v1");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = GroupVersionKind::gvk(group, version, &object.kind);
    let found = call(format!("discover {}", object.kind), discovery::pinned_kind(client, &kind)).await;
    let (resource, _) = found.map_err(|error| told(&error))?;
    let dot = if group.is_empty() { "" } else { "." };
    Ok(format!("namespaces/{namespace}/{}{dot}{group}/{}", resource.plural, object.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_go_leaves_out_is_one_missing_pod_or_an_empty_list() {
        assert!(serde_json::from_value::<MetricValueList>(json!({"items": null})).unwrap().items.is_empty());
        let said = json!({"items": [
            {"describedObject": {"name": "web-1"}, "timestamp": null, "value": "3"},
            {"describedObject": {"name": "web-2"}, "timestamp": "2026-01-01T00:00:30Z", "value": "5"},
        ]});
        let list: MetricValueList = serde_json::from_value(said).unwrap();
        let read = readable(list.items.into_iter().map(sample)).unwrap();
        assert_eq!(
            read.iter().map(|(name, sample)| (name.as_str(), sample.value)).collect::<Vec<_>>(),
            [("web-2", 5000)]
        );
    }
}

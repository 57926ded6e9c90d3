//! Metrics from outside a cluster, from external.metrics.k8s.io.

use super::request::{Path, amount, get, listed, measured_at, served};
use jiff::Timestamp;
use kube::Client;
use portolan_api::autoscaling::MetricIdentifier;
use portolan_api::selector;
use portolan_core::autoscale::Reading;
use serde::Deserialize;

const GROUP: &str = "external.metrics.k8s.io";

#[derive(Deserialize)]
struct ExternalMetricValueList {
    #[serde(default, deserialize_with = "listed")]
    items: Vec<ExternalMetricValue>,
}

#[derive(Deserialize)]
struct ExternalMetricValue {
    #[serde(default)]
    timestamp: Option<Timestamp>,
    value: String,
}

/// A metric as the member tells it: the sum of all its series, as old as the oldest of them.
pub(super) async fn read(client: &Client, namespace: &str, metric: &MetricIdentifier) -> Reading {
    match sum(client, namespace, metric).await {
        Ok(Some((value, at))) => Reading::Value { value, at },
        Ok(None) => Reading::Failed(format!("no series of {} is told", metric.name)),
        Err(error) => Reading::Failed(error),
    }
}

async fn sum(
    client: &Client,
    namespace: &str,
    metric: &MetricIdentifier,
) -> Result<Option<(u64, Timestamp)>, String> {
    let api = served(client, GROUP).await?;
    let series = metric.selector.as_ref().map(selector::to_text).unwrap_or_default();
    let path = Path::new(format!("{api}/namespaces/{namespace}/{}", metric.name));
    let path = path.with("labelSelector", &series);
    let list: ExternalMetricValueList =
        get(client, path, &format!("read the metric {}", metric.name)).await?;
    sum_of(list)
}

/// The sum of some series is not the sum: it would be less than the load.
fn sum_of(list: ExternalMetricValueList) -> Result<Option<(u64, Timestamp)>, String> {
    let mut sum: Option<(u64, Timestamp)> = None;
    for each in list.items {
        let (value, at) = (amount(&each.value)?, measured_at("a series", each.timestamp)?);
        sum = Some(match sum {
            Some((before, oldest)) => (before.saturating_add(value), oldest.min(at)),
            None => (value, at),
        });
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_series_is_an_empty_list_and_one_without_a_time_is_named() {
        let read = |said| sum_of(serde_json::from_value(said).unwrap());
        assert_eq!(read(json!({"items": null})), Ok(None));
        let known = json!({"timestamp": "2026-01-01T00:00:30Z", "value": "5"});
        assert_eq!(read(json!({"items": [known, known]})).unwrap().unwrap().0, 10_000);
        let unknown = json!({"timestamp": null, "value": "5"});
        assert_eq!(read(json!({"items": [known, unknown]})), Err("a series has no timestamp".to_owned()));
    }
}

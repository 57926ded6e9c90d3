//! Metrics from outside a cluster, from external.metrics.k8s.io.

use super::request::{Path, amount, get, served};
use jiff::Timestamp;
use kube::Client;
use portolan_api::autoscaling::MetricIdentifier;
use portolan_api::selector;
use portolan_core::autoscale::Reading;
use serde::Deserialize;

const GROUP: &str = "external.metrics.k8s.io";

#[derive(Deserialize)]
struct ExternalMetricValueList {
    items: Vec<ExternalMetricValue>,
}

#[derive(Deserialize)]
struct ExternalMetricValue {
    timestamp: Timestamp,
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
    let mut sum: Option<(u64, Timestamp)> = None;
    for each in list.items {
        let value = amount(&each.value)?;
        sum = Some(match sum {
            Some((before, oldest)) => (before.saturating_add(value), oldest.min(each.timestamp)),
            None => (value, each.timestamp),
        });
    }
    Ok(sum)
}

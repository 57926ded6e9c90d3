//! The use of resources by pods, from metrics.k8s.io.

use super::request::{Path, amount, get, listed, measured_at, readable};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use portolan_core::autoscale::{Reading, Sample, usage};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The version that every metrics server serves.
const API: &str = "/apis/metrics.k8s.io/v1beta1";

#[derive(Deserialize)]
struct PodMetricsList {
    #[serde(default, deserialize_with = "listed")]
    items: Vec<PodMetrics>,
}

#[derive(Deserialize)]
struct PodMetrics {
    metadata: Named,
    #[serde(default)]
    timestamp: Option<Timestamp>,
    #[serde(default)]
    window: String,
    #[serde(default, deserialize_with = "listed")]
    containers: Vec<ContainerMetrics>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct ContainerMetrics {
    name: String,
    #[serde(default)]
    usage: Option<BTreeMap<String, String>>,
}

/// The use of the pods that a selector selects, read once for all metrics that are about it.
pub(super) struct Use(Result<Vec<PodUse>, String>);

struct PodUse {
    pod: String,
    at: Timestamp,
    window: SignedDuration,
    containers: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Use {
    pub(super) async fn read(client: &Client, namespace: &str, selector: &str) -> Self {
        let path = Path::new(format!("{API}/namespaces/{namespace}/pods")).with("labelSelector", selector);
        let list = get::<PodMetricsList>(client, path, &format!("read the use of pods in {namespace}")).await;
        Self(list.and_then(|list| readable(list.items.into_iter().map(read))))
    }

    /// It could not be read, and why.
    pub(super) fn unknown(error: String) -> Self {
        Self(Err(error))
    }

    /// The use of one resource, by whole pods or by one container of each.
    pub(super) fn of(&self, container: Option<&str>, resource: &str) -> Reading {
        let pods = match &self.0 {
            Ok(pods) => pods,
            Err(error) => return Reading::Failed(error.clone()),
        };
        let sample = |pod: &PodUse| {
            let value = usage(&pod.containers, container, resource)?;
            Some((pod.pod.clone(), Sample { value, at: pod.at, window: pod.window }))
        };
        Reading::Pods(pods.iter().filter_map(sample).collect())
    }
}

fn read(metrics: PodMetrics) -> Result<PodUse, String> {
    let pod = metrics.metadata.name;
    let window = metrics.window.parse();
    let window =
        window.map_err(|_| format!("the window of pod {pod} is no duration: {:?}", metrics.window))?;
    let mut containers = BTreeMap::new();
    for each in metrics.containers {
        let amounts =
            each.usage.unwrap_or_default().into_iter().map(|(name, text)| Ok((name, amount(&text)?)));
        containers.insert(each.name, amounts.collect::<Result<_, String>>()?);
    }
    let at = measured_at(&pod, metrics.timestamp)?;
    Ok(PodUse { pod, at, window, containers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_metrics_server_says_is_read() {
        let said = json!({
            "metadata": {"name": "web-1"}, "timestamp": "2026-01-01T00:00:30Z", "window": "1m15.25s",
            "containers": [{"name": "main", "usage": {"cpu": "137612441n", "memory": "20Mi"}}],
        });
        let read = read(serde_json::from_value(said).unwrap()).unwrap();
        assert_eq!(read.window, SignedDuration::from_millis(75_250));
        let reading = Use(Ok(vec![read])).of(None, "cpu");
        let Reading::Pods(samples) = reading else { panic!("{reading:?}") };
        assert_eq!(samples["web-1"].value, 138, "rounded up to a thousandth");
    }

    #[test]
    fn what_go_leaves_out_is_one_missing_pod_or_an_empty_list() {
        for empty in [json!({"items": null}), json!({"items": []}), json!({})] {
            assert!(serde_json::from_value::<PodMetricsList>(empty).unwrap().items.is_empty());
        }
        let said = json!({"items": [
            {"metadata": {"name": "web-1"}, "timestamp": "2026-01-01T00:00:30Z", "window": "30s",
                "containers": [{"name": "main", "usage": {"cpu": "1"}}]},
            {"metadata": {"name": "web-2"}, "timestamp": null, "window": "30s", "containers": null},
            {"metadata": {"name": "web-3"}, "timestamp": "2026-01-01T00:00:30Z", "window": "30s",
                "containers": [{"name": "main", "usage": null}]},
        ]});
        let list: PodMetricsList = serde_json::from_value(said).unwrap();
        let reading = Use(readable(list.items.into_iter().map(read))).of(None, "cpu");
        let Reading::Pods(samples) = reading else { panic!("{reading:?}") };
        assert_eq!(samples.keys().collect::<Vec<_>>(), ["web-1"]);
    }

    #[test]
    fn an_absurd_number_is_one_missing_pod() {
        let said = |name: &str, cpu: &str| -> PodMetrics {
            let said = json!({
                "metadata": {"name": name}, "timestamp": "2026-01-01T00:00:30Z", "window": "30s",
                "containers": [{"name": "main", "usage": {"cpu": cpu}}],
            });
            serde_json::from_value(said).unwrap()
        };
        for absurd in ["-5m", "many"] {
            let all = [said("web-1", "100m"), said("web-2", absurd)];
            let reading = Use(readable(all.into_iter().map(read))).of(None, "cpu");
            let Reading::Pods(samples) = reading else { panic!("{reading:?}") };
            assert_eq!(samples.keys().collect::<Vec<_>>(), ["web-1"]);
            let alone = Use(readable([said("web-2", absurd)].into_iter().map(read))).of(None, "cpu");
            assert!(matches!(alone, Reading::Failed(_)), "{alone:?}");
        }
    }
}

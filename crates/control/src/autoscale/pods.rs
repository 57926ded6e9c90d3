//! The pods of a workload in a member.

use super::request::{Path, get, listed};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Client;
use portolan_core::autoscale::{PodPhase, PodRequests, PodSnapshot, Readiness};
use portolan_core::capacity::milli;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many pods a list gives at a time.
const PAGE: &str = "500";

/// The pods that a selector selects.
///
/// # Errors
/// What the member says instead.
pub(super) async fn list(
    client: &Client,
    namespace: &str,
    selector: &str,
) -> Result<Vec<PodSnapshot>, String> {
    let what = format!("list pods in {namespace}");
    let mut pods = Vec::new();
    let mut next = String::new();
    loop {
        let path = Path::new(format!("/api/v1/namespaces/{namespace}/pods"));
        let path = path.with("labelSelector", selector).with("limit", PAGE).with("continue", &next);
        let page: Page = get(client, path, &what).await?;
        pods.extend(page.items.into_iter().filter_map(snapshot));
        next = page.metadata.continue_.unwrap_or_default();
        if next.is_empty() {
            return Ok(pods);
        }
    }
}

/// Of pods, only what is needed: they are many, and read often.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default, deserialize_with = "listed")]
    items: Vec<Pod>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(rename = "continue")]
    continue_: Option<String>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: PodMeta,
    spec: Option<PodSpec>,
    status: Option<PodStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMeta {
    name: Option<String>,
    deletion_timestamp: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    resources: Option<Resources>,
    #[serde(default, deserialize_with = "listed")]
    containers: Vec<Container>,
    #[serde(default, deserialize_with = "listed")]
    init_containers: Vec<Container>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: String,
    resources: Option<Resources>,
    restart_policy: Option<String>,
}

#[derive(Deserialize)]
struct Resources {
    requests: Option<BTreeMap<String, Quantity>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    phase: Option<String>,
    start_time: Option<Timestamp>,
    #[serde(default, deserialize_with = "listed")]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    last_transition_time: Option<Timestamp>,
}

fn snapshot(pod: Pod) -> Option<PodSnapshot> {
    let status = pod.status.unwrap_or_default();
    let phase = match status.phase.as_deref() {
        Some("Running") => PodPhase::Running,
        Some("Succeeded" | "Failed") => PodPhase::Finished,
        _ => PodPhase::Pending,
    };
    Some(PodSnapshot {
        name: pod.metadata.name?,
        phase,
        deleted: pod.metadata.deletion_timestamp.is_some(),
        started_at: status.start_time,
        readiness: readiness(&status),
        requests: Arc::new(requests(pod.spec.unwrap_or_default())),
    })
}

fn readiness(status: &PodStatus) -> Option<Readiness> {
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready")?;
    let since = ready.last_transition_time.unwrap_or(Timestamp::UNIX_EPOCH);
    Some(Readiness { ready: ready.status == "True", since })
}

/// What a pod requests: as a whole, and by its containers. Init containers count if they go on running beside the others.
fn requests(spec: PodSpec) -> PodRequests {
    let goes_on = |container: &Container| container.restart_policy.as_deref() == Some("Always");
    let beside = spec.init_containers.into_iter().filter(goes_on);
    let containers = spec.containers.into_iter().chain(beside);
    let containers = containers.map(|container| (container.name, amounts(container.resources)));
    PodRequests { pod: amounts(spec.resources), containers: containers.collect() }
}

/// What cannot be read is left out: then it is told which container has no request.
fn amounts(resources: Option<Resources>) -> BTreeMap<String, u64> {
    let amount = |quantity: Quantity| u64::try_from(milli(&quantity.0).ok()?).ok();
    let all = resources.and_then(|resources| resources.requests).into_iter().flatten();
    all.filter_map(|(name, quantity)| Some((name, amount(quantity)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::Body;
    use serde_json::json;
    use std::sync::Mutex;

    #[tokio::test]
    async fn pods_are_listed_in_their_namespace_alone() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            log.lock().unwrap().push(request.uri().to_string());
            let list = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": []});
            let response = http::Response::new(Body::from(list.to_string().into_bytes()));
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        assert_eq!(list(&Client::new(service, "default"), "shop", "app=web").await, Ok(Vec::new()));
        let asked = asked.lock().unwrap();
        assert!(asked[0].contains("/api/v1/namespaces/shop/pods?"), "{asked:?}");
        assert!(asked[0].contains("labelSelector=app%3Dweb"), "{asked:?}");
    }

    #[test]
    fn what_a_list_does_not_say_is_nothing() {
        let said = json!({"metadata": {"continue": null}, "items": [
            {"metadata": {"name": "web-1"}},
            {"metadata": {"name": "web-2", "deletionTimestamp": null}, "spec": null, "status": null},
            {"metadata": {"name": "web-3"}, "spec": {"containers": null}, "status": {"conditions": null}},
        ]});
        let page: Page = serde_json::from_value(said).unwrap();
        let read: Vec<PodSnapshot> = page.items.into_iter().filter_map(snapshot).collect();
        assert_eq!(read.len(), 3);
        assert!(read.iter().all(|pod| pod.phase == PodPhase::Pending && pod.readiness.is_none()));
    }

    #[test]
    fn a_pod_is_read_with_sidecars_and_its_own_requests() {
        let pod = json!({
            "metadata": {"name": "web-1", "deletionTimestamp": "2026-01-01T00:00:09Z"},
            "spec": {
                "resources": {"requests": {"memory": "1Gi"}},
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}],
                "initContainers": [
                    {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                    {"name": "setup", "resources": {"requests": {"cpu": "4"}}},
                ],
            },
            "status": {
                "phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}],
            },
        });
        let read = snapshot(serde_json::from_value(pod).unwrap()).unwrap();
        assert_eq!((read.name.as_str(), read.phase, read.deleted), ("web-1", PodPhase::Running, true));
        assert!(read.readiness.unwrap().ready);
        assert_eq!(read.requests.pod["memory"], 1_073_741_824_000);
        let named: Vec<(&str, u64)> =
            read.requests.containers.iter().map(|(name, all)| (name.as_str(), all["cpu"])).collect();
        assert_eq!(named, [("main", 500), ("proxy", 100)]);
    }
}

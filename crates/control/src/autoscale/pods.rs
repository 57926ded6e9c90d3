//! The pods of a workload in a member.

use super::request::told;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_core::autoscale::{PodPhase, PodRequests, PodSnapshot, Readiness};
use portolan_core::capacity::milli;
use portolan_runtime::call;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many pods a list gives at a time.
const PAGE: u32 = 500;

/// The pods that a selector selects.
///
/// # Errors
/// What the member says instead.
pub(super) async fn list(
    client: &Client,
    namespace: &str,
    selector: &str,
) -> Result<Vec<PodSnapshot>, String> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut params = ListParams::default().labels(selector).limit(PAGE);
    let mut pods = Vec::new();
    loop {
        let page = call(format!("list pods in {namespace}"), api.list(&params)).await;
        let page = page.map_err(|error| told(&error))?;
        pods.extend(page.items.iter().filter_map(snapshot));
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(pods),
        }
    }
}

fn snapshot(pod: &Pod) -> Option<PodSnapshot> {
    let status = pod.status.as_ref();
    let phase = match status.and_then(|status| status.phase.as_deref()) {
        Some("Running") => PodPhase::Running,
        Some("Succeeded" | "Failed") => PodPhase::Finished,
        _ => PodPhase::Pending,
    };
    Some(PodSnapshot {
        name: pod.metadata.name.clone()?,
        phase,
        deleted: pod.metadata.deletion_timestamp.is_some(),
        started_at: status.and_then(|status| Some(status.start_time.as_ref()?.0)),
        readiness: readiness(pod),
        requests: Arc::new(pod.spec.as_ref().map(requests).unwrap_or_default()),
    })
}

fn readiness(pod: &Pod) -> Option<Readiness> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    let since = ready.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    Some(Readiness { ready: ready.status == "True", since })
}

/// What a pod requests: as a whole, and by its containers. Init containers count if they go on running beside the others.
fn requests(spec: &PodSpec) -> PodRequests {
    let goes_on = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let beside = spec.init_containers.iter().flatten().filter(goes_on);
    let containers = spec.containers.iter().chain(beside).map(|container| {
        let resources = container.resources.as_ref();
        (container.name.clone(), amounts(resources.and_then(|resources| resources.requests.as_ref())))
    });
    PodRequests {
        pod: amounts(spec.resources.as_ref().and_then(|resources| resources.requests.as_ref())),
        containers: containers.collect(),
    }
}

/// What cannot be read is left out: then it is told which container has no request.
fn amounts(requests: Option<&BTreeMap<String, Quantity>>) -> BTreeMap<String, u64> {
    let amount = |quantity: &Quantity| u64::try_from(milli(&quantity.0).ok()?).ok();
    let all = requests.into_iter().flatten();
    all.filter_map(|(name, quantity)| Some((name.clone(), amount(quantity)?))).collect()
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
        let read = snapshot(&serde_json::from_value(pod).unwrap()).unwrap();
        assert_eq!((read.name.as_str(), read.phase, read.deleted), ("web-1", PodPhase::Running, true));
        assert!(read.readiness.unwrap().ready);
        assert_eq!(read.requests.pod["memory"], 1_073_741_824_000);
        let named: Vec<(&str, u64)> =
            read.requests.containers.iter().map(|(name, all)| (name.as_str(), all["cpu"])).collect();
        assert_eq!(named, [("main", 500), ("proxy", 100)]);
    }
}

//! Every member, told to other programs as a ClusterProfile.

use super::peer::NAMESPACE;
use crate::names::FIELD_MANAGER;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_api::clusterprofile::{API_VERSION, CLUSTER_ID, CONTROL_PLANE_HEALTHY, MANAGER_LABEL};
use portolan_api::conditions::{self, ConditionType};
use portolan_runtime::{Action, CallError, Clock, Index, Key, Queue, Seed, call, feed, supervise, work};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The manager that the profiles name.
const MANAGER: &str = "portolan";

/// How soon to look again whether the hub knows ClusterProfiles.
const UNKNOWN_KIND: Duration = Duration::from_secs(60);

/// Numbers change often; one write after this long serves them all.
const SETTLES: Duration = Duration::from_secs(5);

/// Keeps a ClusterProfile for every ForeignCluster, for ever. It goes with its ForeignCluster.
pub async fn publish(hub: Client, clock: Clock, seed: Seed) {
    let queue = Queue::<String>::new(seed.child("profiles"));
    let clusters = Index::<ForeignCluster>::default();
    let mut tasks = JoinSet::new();
    let changed = queue.clone();
    tasks.spawn(feed(
        Api::<ForeignCluster>::all(hub.clone()),
        watcher::Config::default(),
        |cluster| cluster,
        clusters.clone(),
        move |key| changed.add_after(key.name.clone(), SETTLES),
        seed.child("watch"),
    ));
    let publisher = Publisher { hub, clusters, written: Mutex::default() };
    supervise(tasks, work(&queue, 4, &clock, |name| publisher.reconcile(name))).await;
}

struct Publisher {
    hub: Client,
    clusters: Index<ForeignCluster>,
    /// What was last written, so that a look without news writes nothing.
    written: Mutex<BTreeMap<String, Value>>,
}

impl Publisher {
    async fn reconcile(&self, name: String) -> Result<Action, CallError> {
        let Some(cluster) = self.clusters.get(&Key::cluster(&name)) else {
            self.written.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            return Ok(Action::AwaitChange);
        };
        let wanted = profile(&cluster);
        if self.written.lock().unwrap_or_else(PoisonError::into_inner).get(&name).is_some_and(|written| {
            // That a member was seen again is no news by itself.
            without_times(written) == without_times(&wanted)
        }) {
            return Ok(Action::AwaitChange);
        }
        match self.write(&name, &wanted).await {
            Err(error) if error.is_not_found() => {
                tracing::debug!("the hub knows no ClusterProfiles, or has no namespace {NAMESPACE}");
                return Ok(Action::RequeueAfter(UNKNOWN_KIND));
            }
            other => other?,
        }
        self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(name, wanted);
        Ok(Action::AwaitChange)
    }

    async fn write(&self, name: &str, profile: &Value) -> Result<(), CallError> {
        let (group, version) = API_VERSION.split_once('/').unwrap_or_default();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, "ClusterProfile"));
        let api: Api<DynamicObject> = Api::namespaced_with(self.hub.clone(), NAMESPACE, &resource);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let mut object = profile.clone();
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
        let what = format!("apply ClusterProfile {NAMESPACE}/{name}");
        call(what, api.patch(name, &params, &Patch::Apply(&object))).await?;
        object["status"] = profile["status"].clone();
        let what = format!("apply the status of ClusterProfile {NAMESPACE}/{name}");
        call(what, api.patch_status(name, &params, &Patch::Apply(&object))).await?;
        Ok(())
    }
}

/// A profile without the times at which its properties were observed.
fn without_times(profile: &Value) -> Value {
    let mut profile = profile.clone();
    for property in profile["status"]["properties"].as_array_mut().into_iter().flatten() {
        if let Some(property) = property.as_object_mut() {
            property.remove("lastObservedTime");
        }
    }
    profile
}

/// The profile of a member: pure.
fn profile(cluster: &ForeignCluster) -> Value {
    let meta = &cluster.metadata;
    let name = meta.name.clone().unwrap_or_default();
    let status = cluster.status.clone().unwrap_or_default();
    let ready = conditions::find(&status.conditions, ConditionType::Reachable)
        .or_else(|| conditions::find(&status.conditions, ConditionType::Ready));
    let healthy = match ready {
        Some(ready) => json!([{
            "type": CONTROL_PLANE_HEALTHY,
            "status": ready.status,
            "reason": ready.reason,
            "message": ready.message,
            "lastTransitionTime": ready.last_transition_time,
        }]),
        None => json!([]),
    };
    let labels = meta.labels.clone().unwrap_or_default();
    let topology = labels.iter().filter(|(key, _)| key.starts_with("topology.kubernetes.io/"));
    let amounts = |part: &'static str, from: &portolan_api::placement::Resources| {
        let named = |(resource, quantity): (&String, &_)| {
            let quantity: &k8s_openapi::apimachinery::pkg::api::resource::Quantity = quantity;
            (format!("portolan.dev/{part}-{}", resource.replace('/', "-")), quantity.0.clone())
        };
        from.iter().map(named).collect::<Vec<_>>()
    };
    let facts = std::iter::once((CLUSTER_ID.to_owned(), cluster.spec.cluster_identity.cluster_id.clone()))
        .chain(topology.map(|(key, value)| (key.clone(), value.clone())))
        .chain(amounts("capacity", &status.capacity))
        .chain(amounts("available", &status.available));
    let seen: Option<&Time> = status.last_seen.as_ref();
    let property = |(name, value): (String, String)| match seen {
        Some(seen) => json!({ "name": name, "value": value, "lastObservedTime": seen }),
        None => json!({ "name": name, "value": value }),
    };
    let properties: Vec<Value> = facts.filter(|(_, value)| !value.is_empty()).map(property).collect();
    let mut told = json!({ "conditions": healthy, "properties": properties });
    if let Some(version) = &status.kubernetes_version {
        told["version"] = json!({ "kubernetes": version });
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterProfile",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": { MANAGER_LABEL: MANAGER },
            "ownerReferences": [{
                "apiVersion": portolan_api::API_VERSION,
                "kind": "ForeignCluster",
                "name": name,
                "uid": meta.uid.clone().unwrap_or_default(),
            }],
        },
        "spec": {
            "displayName": cluster.spec.cluster_identity.cluster_name,
            "clusterManager": { "name": MANAGER },
        },
        "status": told,
    })
}

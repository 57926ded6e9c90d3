//! Objects as users write them: applied and deleted.

use super::SimulationError;
use crate::scenario::ObjectRef;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use portolan_runtime::chain;
use serde_json::{Value, json};

/// Applies an object, as `kubectl apply --server-side` does.
pub(super) async fn apply(client: &Client, object: &Value) -> Result<(), SimulationError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
    let api = api(client, text("/apiVersion"), kind, namespace);
    let params = PatchParams::apply("user").force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.map(|_| ()).map_err(|error| refused(kind, namespace, name, &error))
}

/// Writes the status of an object, as a controller does.
pub(super) async fn set_status(
    client: &Client,
    object: &Value,
    status: &Value,
) -> Result<(), SimulationError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
    let api = api(client, text("/apiVersion"), kind, namespace);
    let patch = Patch::Merge(json!({"status": status}));
    let written = api.patch_status(name, &PatchParams::default(), &patch).await;
    written.map(|_| ()).map_err(|error| refused(kind, namespace, name, &error))
}

/// Deletes an object. One that does not exist is a mistake of the scenario.
pub(super) async fn delete(
    client: &Client,
    object: &ObjectRef,
    namespace: &str,
) -> Result<(), SimulationError> {
    let namespace =
        if is_namespaced(&object.kind) { object.namespace.as_deref().unwrap_or(namespace) } else { "" };
    let api = api(client, &object.api_version, &object.kind, namespace);
    let deleted = api.delete(&object.name, &DeleteParams::default()).await;
    deleted.map(|_| ()).map_err(|error| refused(&object.kind, namespace, &object.name, &error))
}

/// Writes labels and annotations of an object of the core group; answers whether there is one.
pub(super) async fn mark(
    client: &Client,
    kind: &str,
    namespace: &str,
    name: &str,
    metadata: &Value,
) -> Result<bool, SimulationError> {
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    match api(client, "v1", kind, namespace).patch(name, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(refused(kind, namespace, name, &error)),
    }
}

/// Whether a cluster has a namespace.
pub(super) async fn has_namespace(client: &Client, name: &str) -> Result<bool, SimulationError> {
    let found = api(client, "v1", "Namespace", "").get_opt(name).await;
    found.map(|found| found.is_some()).map_err(|error| refused("Namespace", "", name, &error))
}

/// The kinds that are in no namespace.
const CLUSTER_SCOPED: [&str; 11] = [
    "ClusterProfile",
    "CloudProvisioner",
    "ClusterRole",
    "ClusterRoleBinding",
    "FeatureConfig",
    "ForeignCluster",
    "MultiClusterRescheduler",
    "Namespace",
    "Node",
    "PriorityClass",
    "SharingClass",
];

/// Whether objects of a kind are in a namespace.
pub(super) fn is_namespaced(kind: &str) -> bool {
    !CLUSTER_SCOPED.contains(&kind)
}

fn api(client: &Client, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

fn refused(kind: &str, namespace: &str, name: &str, error: &kube::Error) -> SimulationError {
    let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    SimulationError::Refused { object: format!("{kind} {place}"), reason: chain(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_of_our_kinds_is_that_of_their_definitions() {
        for crd in portolan_api::crds() {
            let kind = crd.spec.names.kind;
            assert_eq!(is_namespaced(&kind), crd.spec.scope == "Namespaced", "{kind}");
        }
    }
}

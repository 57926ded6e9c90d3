//! The pods of Portolan's controller in the hub.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_runtime::{CallError, call};

/// The labels that the pods of the controller have where it is installed in the hub.
const LABELS: &str = "app.kubernetes.io/name=portolan,app.kubernetes.io/component=controller";

/// Those in a namespace; none if the controller runs outside of the hub.
pub(super) async fn pods(hub: &Client, namespace: &str) -> Result<Vec<Pod>, CallError> {
    let api: Api<Pod> = Api::namespaced(hub.clone(), namespace);
    let params = ListParams::default().labels(LABELS);
    Ok(call(format!("list the controller's pods in namespace {namespace}"), api.list(&params)).await?.items)
}

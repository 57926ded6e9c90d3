//! Who a cluster is.

use super::PeerError;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use portolan_runtime::call;

/// The uid of the cluster's kube-system namespace: it lives as long as the cluster does, and no two clusters share it.
///
/// # Errors
/// The cluster does not answer, or does not let us look.
pub async fn identity(client: &Client, called: &str) -> Result<String, PeerError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let what = format!("read namespace kube-system of {called}");
    let found = call(what, namespaces.get_metadata("kube-system")).await?;
    found.metadata.uid.ok_or_else(|| PeerError::NoIdentity { called: called.to_owned() })
}

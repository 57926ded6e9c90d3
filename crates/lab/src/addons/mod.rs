//! What is applied to a fresh cluster through its API: the cluster's DNS.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Client, core::GroupVersionKind};
use std::time::Duration;

use crate::component::dns_address;
use crate::parts::COREDNS_IMAGE;
use crate::state::ClusterState;
use crate::wait::{Seen, until};

const FIELD_MANAGER: &str = "portolan-lab";

/// Applies CoreDNS and its service.
pub(crate) async fn apply_dns(client: &Client, cluster: &ClusterState) -> Result<()> {
    let manifest = include_str!("coredns.yaml")
        .replace("COREDNS_IMAGE", COREDNS_IMAGE)
        .replace("DNS_ADDRESS", &dns_address(cluster)?.to_string());
    apply(client, &manifest).await
}

/// Waits until the cluster's DNS answers.
pub(crate) async fn wait_for_dns(client: &Client, cluster: &ClusterState, limit: Duration) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
    let what = format!("CoreDNS of cluster {} is available", cluster.name);
    until(&what, limit, Duration::from_millis(100), async || {
        let status =
            deployments.get_status("coredns").await.context("cannot read deployment coredns")?.status;
        let available = status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
        Ok(if available > 0 { Seen::Ready(()) } else { Seen::NotYet(format!("status {status:?}")) })
    })
    .await
}

/// Applies every document of a manifest, in its order.
pub(crate) async fn apply(client: &Client, manifest: &str) -> Result<()> {
    let objects: Vec<DynamicObject> =
        serde_saphyr::from_multiple(manifest).context("cannot read the manifest")?;
    for object in objects {
        let types = object.types.clone().context("a document has no apiVersion and kind")?;
        let kind = GroupVersionKind::try_from(&types)?;
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let name = object.metadata.name.clone().with_context(|| format!("a {} has no name", kind.kind))?;
        api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&object))
            .await
            .with_context(|| format!("cannot apply {} {name}", kind.kind))?;
    }
    Ok(())
}

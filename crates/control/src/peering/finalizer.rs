//! The finalizer of ForeignClusters.

use crate::names::{FIELD_MANAGER, MEMBERSHIP_FINALIZER};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_runtime::{CallError, call};
use serde_json::json;

pub(super) fn has_finalizer(cluster: &ForeignCluster) -> bool {
    cluster.metadata.finalizers.iter().flatten().any(|each| each == MEMBERSHIP_FINALIZER)
}

pub(super) fn without_ours(cluster: &ForeignCluster) -> Vec<String> {
    let all = cluster.metadata.finalizers.iter().flatten();
    all.filter(|each| *each != MEMBERSHIP_FINALIZER).cloned().collect()
}

/// Lets a ForeignCluster that was deleted go at once, whatever is in its member.
pub(super) async fn release(hub: &Client, name: &str) -> Result<(), CallError> {
    let api: Api<ForeignCluster> = Api::all(hub.clone());
    loop {
        let found = call(format!("read ForeignCluster {name}"), api.get_opt(name)).await?;
        let Some(cluster) = found.filter(has_finalizer) else { return Ok(()) };
        if cluster.metadata.deletion_timestamp.is_none() {
            return Ok(());
        }
        match set_finalizers(hub, &cluster, &without_ours(&cluster)).await {
            Err(error) if error.is_conflict() => {}
            other => return other,
        }
    }
}

pub(super) async fn set_finalizers(
    hub: &Client,
    cluster: &ForeignCluster,
    finalizers: &[String],
) -> Result<(), CallError> {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let api: Api<ForeignCluster> = Api::all(hub.clone());
    let version = &cluster.metadata.resource_version;
    let patch = json!({ "metadata": { "resourceVersion": version, "finalizers": finalizers } });
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("set finalizers of ForeignCluster {name}");
    match call(what, api.patch(&name, &params, &Patch::Merge(patch))).await {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}

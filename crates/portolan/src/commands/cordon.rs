//! `portolan cordon` and `portolan uncordon`

use crate::cli::CordonArgs;
use crate::connection;
use crate::failure::Failure;
use crate::kind::Kind;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_control::names::{FIELD_MANAGER, LEAVING_TAINT};
use portolan_runtime::{call, chain};
use serde_json::json;

pub(super) fn run(args: &CordonArgs, cordoned: bool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(mark(args, cordoned)))
}

async fn mark(args: &CordonArgs, cordoned: bool) -> Result<(), Failure> {
    let (hub, _) = connection::answering(&args.cluster).await?;
    // All names are looked up before the first one is changed.
    let mut clusters = Vec::new();
    for name in &args.names {
        let object = Kind::Cluster.get(&hub, None, name).await?;
        let cluster: ForeignCluster = serde_json::from_value(object).map_err(Failure::other)?;
        clusters.push((name, cluster));
    }
    for (name, cluster) in clusters {
        let said = one(&hub, name, &cluster, cordoned).await?;
        crate::output::data(&format!("foreigncluster.portolan.dev/{name} {said}\n"))?;
    }
    Ok(())
}

/// Sets one member; says what came of it.
async fn one(
    hub: &Client,
    name: &str,
    cluster: &ForeignCluster,
    cordoned: bool,
) -> Result<&'static str, Failure> {
    let leaves = !cordoned && cluster.spec.taints.iter().any(|taint| taint.key == LEAVING_TAINT);
    if cluster.spec.unschedulable == cordoned && !leaves {
        return Ok(if cordoned { "already cordoned" } else { "already uncordoned" });
    }
    let mut spec = json!({"unschedulable": cordoned});
    if leaves {
        // A drain that was given up leaves its taint behind.
        let taints: Vec<_> = cluster.spec.taints.iter().filter(|taint| taint.key != LEAVING_TAINT).collect();
        spec["taints"] = json!(taints);
    }
    // The version: another change of the taints in between is not overwritten.
    let version = &cluster.metadata.resource_version;
    let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version}, "spec": spec}));
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let api: Api<ForeignCluster> = Api::all(hub.clone());
    let patched = call(format!("change ForeignCluster {name}"), api.patch(name, &params, &patch)).await;
    patched.map_err(|error| Failure::other(chain(&error)))?;
    Ok(if cordoned { "cordoned" } else { "uncordoned" })
}

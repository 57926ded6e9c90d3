//! `portolan accept-offer`

use crate::cli::AcceptOfferArgs;
use crate::connection;
use crate::failure::Failure;
use crate::kind::Kind;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::ForeignCluster;
use portolan_control::names::FIELD_MANAGER;
use portolan_runtime::call;
use serde_json::json;

pub(super) fn run(args: &AcceptOfferArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(accept(args)))
}

async fn accept(args: &AcceptOfferArgs) -> Result<(), Failure> {
    let (hub, _) = connection::answering(&args.cluster).await?;
    // All names are looked up before the first one is changed.
    let mut offers = Vec::new();
    for name in &args.names {
        let object = Kind::Cluster.get(&hub, None, name).await?;
        let cluster: ForeignCluster = serde_json::from_value(object).map_err(Failure::other)?;
        offers.push((name, offer(name, &cluster)?));
    }
    let api: Api<ForeignCluster> = Api::all(hub.clone());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    for (name, offer) in offers {
        let patch = Patch::Merge(json!({"spec": {"outgoing": {"acceptedOffer": offer}}}));
        let what = format!("change ForeignCluster {name}");
        call(what, api.patch(name, &params, &patch)).await.map_err(|error| Failure::call(&error))?;
        crate::output::data(&format!("foreigncluster.portolan.dev/{name} offer accepted\n"))?;
    }
    Ok(())
}

/// The uid of the offer that the cluster has made.
fn offer(name: &str, cluster: &ForeignCluster) -> Result<String, Failure> {
    if cluster.spec.outgoing.is_none() {
        return Err(Failure::other(format!("cluster {name} is no provider of this one: it makes no offers"))
            .hint("`portolan peer LINE` with the line of an invitation makes this cluster its tenant"));
    }
    let outgoing = cluster.status.as_ref().and_then(|status| status.outgoing.as_ref());
    outgoing.and_then(|outgoing| outgoing.offer.clone()).ok_or_else(|| {
        Failure::other(format!("cluster {name} has made no offer yet"))
            .hint("on the provider, `portolan share CLUSTER 50%` offers half of it")
    })
}

//! The cluster that the workloads are declared in.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use portolan_runtime::{Backoff, Seed, call};

/// The hub: a client, and who it is.
#[derive(Clone)]
pub struct Hub {
    /// A client for it.
    pub client: Client,
    /// Its identity: the uid of its kube-system namespace, which lives as long as the cluster does.
    pub id: String,
}

impl Hub {
    /// Asks the cluster who it is, until it answers.
    pub async fn identify(client: Client, seed: Seed) -> Self {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let mut backoff = Backoff::new(seed.child("identify"));
        loop {
            match call("read namespace kube-system of the hub", namespaces.get("kube-system")).await {
                Ok(Namespace { metadata, .. }) if metadata.uid.is_some() => {
                    return Self { client, id: metadata.uid.unwrap_or_default() };
                }
                Ok(_) => tracing::warn!("namespace kube-system of the hub has no uid"),
                Err(error) => {
                    tracing::warn!(error = %portolan_runtime::chain(&error), "the hub does not say who it is")
                }
            }
            tokio::time::sleep(backoff.failed()).await;
        }
    }
}

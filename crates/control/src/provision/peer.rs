//! A cloud cluster joins the fleet: by the same least privilege as every member, granted with the kubeconfig that Cluster API
//! made for it.

use super::Provision;
use super::observe::{Observed, kubeconfig_secret};
use super::order_error::OrderError;
use crate::names::{FIELD_MANAGER, LEAVING_TAINT, ON_DELETE_ANNOTATION, ORPHAN, PROVISIONER_LABEL};
use crate::peering::{Address, Names, Peer, Sides, admit, grant};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::config::Kubeconfig;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_api::placement::{ClusterTaint, TaintEffect};
use portolan_core::provision::Failure;
use portolan_runtime::call;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The key of the kubeconfig in the Secret of Cluster API.
const KUBECONFIG_KEY: &str = "value";

/// For how many seconds a token of the member is asked for: as `portolan peer` does, seven days.
const TOKEN_LIFETIME: i64 = 7 * 24 * 3600;

/// The label of ForeignClusters that says where they are.
const REGION_LABEL: &str = "topology.kubernetes.io/region";

impl Provision {
    /// Makes a cluster of Cluster API a member, with these namespaces open to the hub.
    pub(super) async fn peer(
        &self,
        observed: &Observed,
        cluster: &str,
        namespaces: &BTreeSet<String>,
    ) -> Result<(), OrderError> {
        let (member, address) = self.as_admin(observed, cluster).await?;
        let sides = Sides { hub: self.context.hub.client.clone(), member, address };
        let term = &self.context.term;
        admit(term, &sides, &peer(observed, namespaces), self.context.clock.now(), &|_| ()).await?;
        Ok(())
    }

    /// Opens further namespaces of a member to the hub.
    pub(super) async fn open(
        &self,
        observed: &Observed,
        cluster: &str,
        namespaces: &BTreeSet<String>,
    ) -> Result<(), OrderError> {
        let (member, _) = self.as_admin(observed, cluster).await?;
        let names = Names::of(&self.context.hub.id);
        grant(&self.context.term, &member, &names, &peer(observed, namespaces)).await?;
        Ok(())
    }

    /// Deletes the ForeignCluster. It is tainted first, so that workloads leave; it stays until they have, unless what is on
    /// record there is to be abandoned.
    pub(super) async fn unpeer(
        &self,
        observed: &Observed,
        member: &str,
        abandon: bool,
    ) -> Result<(), OrderError> {
        let Some(cluster) = self.foreign_cluster(&observed.settings) else { return Ok(()) };
        let api: Api<ForeignCluster> = Api::all(self.context.hub.client.clone());
        let mut taints = cluster.spec.taints.clone();
        let tainted = taints.iter().any(is_leaving);
        let annotations = cluster.metadata.annotations.as_ref();
        let orphans =
            annotations.and_then(|all| all.get(ON_DELETE_ANNOTATION)).is_some_and(|on| on == ORPHAN);
        if !tainted || (abandon && !orphans) {
            let (key, effect) = (LEAVING_TAINT.to_owned(), TaintEffect::NoExecute);
            taints.extend((!tainted).then_some(ClusterTaint { key, value: None, effect }));
            let abandoned = abandon.then(|| json!({ ON_DELETE_ANNOTATION: ORPHAN })).unwrap_or(json!({}));
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let patch = Patch::Merge(json!({
                "metadata": { "uid": cluster.metadata.uid, "annotations": abandoned },
                "spec": { "taints": taints },
            }));
            let what = format!("taint ForeignCluster {member}");
            match self.context.term.call(what, api.patch(member, &params, &patch)).await {
                Err(error) if error.is_not_found() => return Ok(()),
                other => other?,
            };
        }
        let same = Preconditions { uid: cluster.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
        match self
            .context
            .term
            .call(format!("delete ForeignCluster {member}"), api.delete(member, &params))
            .await
        {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            other => Ok(other.map(|_| ())?),
        }
    }

    /// Takes back the taint of a removal that was called off.
    pub(super) async fn keep_peered(&self, observed: &Observed, member: &str) -> Result<(), OrderError> {
        let Some(cluster) = self.foreign_cluster(&observed.settings) else { return Ok(()) };
        let api: Api<ForeignCluster> = Api::all(self.context.hub.client.clone());
        let taints: Vec<_> = cluster.spec.taints.iter().filter(|taint| !is_leaving(taint)).collect();
        let meta = &cluster.metadata;
        let patch = Patch::Merge(json!({
            "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
            "spec": { "taints": taints },
        }));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let what = format!("remove the taint {LEAVING_TAINT} of ForeignCluster {member}");
        match self.context.term.call(what, api.patch(member, &params, &patch)).await {
            // Somebody else has changed it: the next round looks again.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            other => Ok(other.map(|_| ())?),
        }
    }

    /// A client of the cluster with the rights that Cluster API has there, and how the cluster is reached.
    async fn as_admin(&self, observed: &Observed, cluster: &str) -> Result<(Client, Address), OrderError> {
        let namespace = observed.namespace_of(cluster);
        let name = kubeconfig_secret(cluster);
        let target = target(cluster, &namespace, &name)?;
        let client = self.connect.connect_apart(&target).await?;
        let secrets: Api<Secret> = Api::namespaced(self.context.hub.client.clone(), &namespace);
        let secret = call(format!("read Secret {namespace}/{name}"), secrets.get(&name)).await?;
        let address = address(&secret).ok_or_else(|| {
            let message =
                format!("the kubeconfig in Secret {namespace}/{name} names no API server in its context");
            OrderError::Refused(Failure { reason: "InvalidKubeconfig".to_owned(), message })
        })?;
        Ok((client, address))
    }
}

/// Whether a taint has workloads leave a cluster that is to be removed.
pub(super) fn is_leaving(taint: &ClusterTaint) -> bool {
    taint.key == LEAVING_TAINT
}

/// The new member. Its labels are what cluster selectors of workloads match.
fn peer(observed: &Observed, namespaces: &BTreeSet<String>) -> Peer {
    let spec = &observed.object.spec;
    let mut labels = BTreeMap::from([(PROVISIONER_LABEL.to_owned(), observed.settings.uid.clone())]);
    labels.extend(spec.region.clone().map(|region| (REGION_LABEL.to_owned(), region)));
    Peer {
        name: observed.settings.cluster_name.clone(),
        labels,
        cloud: true,
        latencies: spec.latencies.clone(),
        namespaces: namespaces.iter().cloned().collect(),
        token_lifetime: TOKEN_LIFETIME,
        ..Peer::default()
    }
}

/// What leads to the kubeconfig of Cluster API. It is no member, and is written nowhere.
fn target(cluster: &str, namespace: &str, secret: &str) -> Result<ForeignCluster, OrderError> {
    let object = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": { "name": cluster },
        "spec": {
            "clusterIdentity": { "clusterID": cluster, "clusterName": cluster },
            "credentials": { "secretRef": { "namespace": namespace, "name": secret, "key": KUBECONFIG_KEY } },
        },
    });
    serde_json::from_value(object).map_err(|source| {
        OrderError::Peer(crate::peering::PeerError::Encode { what: "the way to the cloud cluster", source })
    })
}

/// How the cluster of the current context of a kubeconfig is reached.
fn address(secret: &Secret) -> Option<Address> {
    let bytes = secret.data.as_ref()?.get(KUBECONFIG_KEY)?;
    let kubeconfig = Kubeconfig::from_yaml(std::str::from_utf8(&bytes.0).ok()?).ok()?;
    let current = kubeconfig.current_context.as_ref();
    let context = kubeconfig.contexts.iter().find(|each| Some(&each.name) == current)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.into_iter().find(|each| each.name == context.cluster)?.cluster?;
    Some(Address {
        server: cluster.server?,
        authority: cluster.certificate_authority_data,
        tls_server_name: cluster.tls_server_name,
        proxy: cluster.proxy_url,
        insecure: cluster.insecure_skip_tls_verify.unwrap_or(false),
        given: false,
    })
}

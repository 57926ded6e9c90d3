//! What a cluster runs for itself, in a namespace that is opened to a consumer now and then.

use super::stage::Stage;
use crate::simulation::apply;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::json;

/// Its namespace.
pub(super) const OWN_WORK: &str = "own-work";

const REPLICAS: usize = 2;

/// Creates it, before anybody peers.
pub(super) async fn create(admin: &Client) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN_WORK}});
    apply(admin, &namespace).await;
    let labels = json!({"app": OWN_WORK});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": OWN_WORK, "namespace": OWN_WORK},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                // They request nothing: what is offered to consumers does not depend on them.
                "spec": {"containers": [{"name": "main", "image": "portolan.test/busybox:1"}]},
            },
        },
    });
    apply(admin, &deployment).await;
}

impl Stage {
    /// The pods that run there, as `portolan invite` counts them before it opens a namespace.
    pub(super) async fn own_pods(&self, client: Client) -> kube::Result<usize> {
        let pods: Api<Pod> = Api::namespaced(client, OWN_WORK);
        let params = ListParams::default().fields("status.phase!=Succeeded,status.phase!=Failed").limit(500);
        Ok(pods.list_metadata(&params).await?.items.len())
    }

    /// Whoever peers, what the cluster runs itself goes on running.
    pub(super) async fn own_work_lost(&self, site: usize) -> Option<String> {
        let found = self.own_pods(self.admin(site)).await;
        let is_whole = matches!(&found, Ok(pods) if *pods == REPLICAS);
        (!is_whole).then(|| {
            format!("of the {REPLICAS} pods that {} runs itself there are {found:?}", self.name(site))
        })
    }

    /// Ends it. As long as pods run in a namespace that was a tenant's, its quota stays.
    pub(super) async fn end_own_work(&self, site: usize) {
        let deployments: Api<Deployment> = Api::namespaced(self.admin(site), OWN_WORK);
        let _ = deployments.delete(OWN_WORK, &Default::default()).await;
    }
}

//! What is watched in the hub: CloudProvisioners, and once Cluster API is served its Clusters, MachineDeployments and Machines.

use super::cluster_api::{
    CLUSTER_NAME_LABEL, Cluster, DeploymentFacts, Machine, MachineDeployment, MachineFacts, Served, clusters,
    discover, machine_deployments, machines,
};
use super::{Provision, SETTLES};
use crate::driver::RESYNC_PERIOD;
use crate::names::PROVISIONER_LABEL;
use kube::Api;
use kube::runtime::watcher;
use portolan_api::CloudProvisioner;
use portolan_runtime::{Change, Key, chain, feed, follow_with};
use std::sync::Arc;
use std::time::Duration;

/// How soon the hub is asked again whether it serves Cluster API.
const ASKED_AGAIN: Duration = Duration::from_secs(30);

impl Provision {
    /// Keeps the CloudProvisioners known, for ever.
    pub(super) fn watch_provisioners(&self) -> impl Future<Output = ()> + Send + use<> {
        let (index, queue, appeared) =
            (self.provisioners.clone(), self.queue.clone(), Arc::clone(&self.appeared));
        let health = index.health().clone();
        let take = move |change: Change<CloudProvisioner>| {
            let is_listed = matches!(change, Change::Listed(_));
            for changed in index.replace(change) {
                let asks = |object: &Arc<CloudProvisioner>| {
                    (object.metadata.generation, object.metadata.deletion_timestamp.clone())
                };
                // What we wrote ourselves is looked at without haste.
                let own = changed.before.as_ref().map(asks) == changed.after.as_ref().map(asks);
                queue.add_after((), if own { SETTLES } else { Duration::ZERO });
            }
            if is_listed && index.health().count_unreadable() > 0 {
                queue.add(());
            }
            if !index.is_empty() {
                appeared.notify_one();
            }
        };
        let lean = |mut object: CloudProvisioner| {
            object.metadata.managed_fields = None;
            object
        };
        let api = Api::<CloudProvisioner>::all(self.context.hub.client.clone());
        let seed = self.context.seed.child("provision").child("provisioners");
        follow_with(api, watcher::Config::default(), lean, take, seed, health)
    }

    /// Waits until the hub serves Cluster API, and then keeps its objects known, for ever.
    pub(super) async fn watch_cluster_api(self: Arc<Self>) {
        let hub = &self.context.hub.client;
        loop {
            match discover(hub).await {
                Ok(served) => {
                    let is_served = served == Served::Yes;
                    self.state().served = served;
                    self.queue.add(());
                    if is_served {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "it is not known whether there is Cluster API")
                }
            }
            // Without CloudProvisioners only clusters that some have left behind are looked for.
            if self.provisioners.is_empty() {
                _ = tokio::time::timeout(RESYNC_PERIOD, self.appeared.notified()).await;
            } else {
                tokio::time::sleep(ASKED_AGAIN).await;
            }
        }
        let seed = self.context.seed.child("provision");
        let queue = self.queue.clone();
        let own = watcher::Config::default().labels(PROVISIONER_LABEL);
        let lean = |mut cluster: Cluster| {
            cluster.metadata.managed_fields = None;
            cluster
        };
        let api = Api::<Cluster>::all_with(hub.clone(), &clusters());
        let changed = move |_: &Key| queue.add_after((), SETTLES);
        let following =
            feed(api, own.clone(), lean, self.clusters.clone(), changed.clone(), seed.child("clusters"));
        let api = Api::<MachineDeployment>::all_with(hub.clone(), &machine_deployments());
        let facts = |deployment: MachineDeployment| DeploymentFacts::of(&deployment);
        let (index, told) = (self.deployments.clone(), changed.clone());
        let deployments = feed(api, own, facts, index, told, seed.child("deployments"));
        let of_clusters = watcher::Config::default().labels(CLUSTER_NAME_LABEL);
        let api = Api::<Machine>::all_with(hub.clone(), &machines());
        let facts = |machine: Machine| MachineFacts::of(&machine);
        let machines = feed(api, of_clusters, facts, self.machines.clone(), changed, seed.child("machines"));
        tokio::join!(following, deployments, machines);
    }
}

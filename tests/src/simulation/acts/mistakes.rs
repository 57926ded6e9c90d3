//! What administrators of the hub write into ForeignClusters by mistake.

use super::Story;
use crate::simulation::tally::Drawn;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::ForeignCluster;
use rand::RngExt;
use serde_json::{Value, json};

/// When somebody says that a member was last heard.
const LONG_AGO: &str = "2001-01-01T00:00:00Z";

impl Story {
    /// A ForeignCluster is changed into one that is not as its cluster is, or cannot be.
    pub(super) async fn mistake_cluster(&mut self, name: &str) {
        let (drawn, spec) = match self.rng.random_range(0..8) {
            0 if !self.tally.has(Drawn::HugeReplicas) => {
                (Drawn::ClusterUncounted, json!({"capacity": {"countRoom": false}}))
            }
            1 => {
                let template = json!({"allocatable": {"cpu": "64", "memory": "1Ti", "pods": "110"}});
                (Drawn::ClusterGrows, json!({"capacity": {"maxNodes": 9, "nodeTemplate": template}}))
            }
            2 => {
                let latencies = json!([{"to": name, "rtt": "1ms"}, {"to": "nobody", "rtt": "5ms"}]);
                (Drawn::ClusterLatencyMistaken, json!({ "latencies": latencies }))
            }
            3 => (Drawn::ClusterInCloud, json!({"cloud": true})),
            4 => {
                let prometheus =
                    json!({"namespace": "nowhere", "service": "none", "port": 9090, "query": "up("});
                (Drawn::ClusterTrafficMistaken, json!({"traffic": {"prometheus": prometheus}}))
            }
            5 => {
                let secret = json!({"namespace": "portolan", "name": "nowhere"});
                (Drawn::ClusterSecretMistaken, json!({"credentials": {"secretRef": secret}}))
            }
            6 => return self.write_status(name).await,
            _ => return self.refused(name).await,
        };
        if self.patch_cluster(name, json!({ "spec": spec })).await {
            self.count(drawn);
        }
    }

    /// Somebody who does not believe in a member writes what the hub knows of it.
    async fn write_status(&mut self, name: &str) {
        let condition = |type_: &str| {
            json!({
                "type": type_, "status": "Unknown", "reason": "Rumour", "message": "it is gone, they say",
                "lastTransitionTime": LONG_AGO,
            })
        };
        let conditions = json!([condition("Ready"), condition("Reachable")]);
        let status = json!({"status": {"conditions": conditions, "lastSeen": LONG_AGO}});
        let api: Api<ForeignCluster> = Api::all(self.fleet.hub.client("user"));
        let written = api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await;
        if written.is_ok() {
            self.count(Drawn::ClusterStatusWritten);
        }
    }

    async fn refused(&mut self, name: &str) {
        let api: Api<ForeignCluster> = Api::all(self.fleet.hub.client("user"));
        if api.get_opt(name).await.ok().flatten().is_none() {
            return;
        }
        self.count(Drawn::ClusterEditRefused);
        let wrong: [Value; 4] = [
            json!({"taints": [{"key": "drawn", "effect": "Never"}]}),
            json!({"latencies": [{"to": "m1", "rtt": "fast"}]}),
            json!({"unschedulable": "yes"}),
            json!({"capacity": {"maxNodes": -1}}),
        ];
        let spec = &wrong[self.rng.random_range(0..wrong.len())];
        assert!(!self.patch_cluster(name, json!({ "spec": spec })).await, "the hub takes {spec}");
    }
}

//! What administrators of the hub do with its members.

use super::Story;
use crate::simulation::tally::Drawn;
use crate::simulation::try_apply;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::ForeignCluster;
use rand::RngExt;
use serde_json::{Value, json};
use std::time::Duration;

impl Story {
    pub(super) async fn edit_cluster(&mut self, member: usize) {
        let name = self.fleet.members[member].name().to_owned();
        let taint = |effect: &str| json!({"spec": {"taints": [{"key": "drawn", "effect": effect}]}});
        let (drawn, patch) = match self.rng.random_range(0..14) {
            0 => (
                Drawn::ClusterTainted,
                taint(["NoSchedule", "PreferNoSchedule"][self.rng.random_range(0..2)]),
            ),
            1 => (Drawn::ClusterEvicted, taint("NoExecute")),
            2 => (Drawn::ClusterCordoned, json!({"spec": {"unschedulable": self.rng.random_bool(0.6)}})),
            3 => (Drawn::ClusterTainted, json!({"spec": {"taints": null}})),
            4 => {
                let value = format!("z{}", self.rng.random_range(0..3));
                (Drawn::ClusterLabelled, json!({"metadata": {"labels": {"zone": value}}}))
            }
            5..=6 => {
                let others: Vec<_> = self.names().into_iter().filter(|other| *other != name).collect();
                let rtt = format!("{}ms", self.rng.random_range(1..=60));
                (Drawn::ClusterLatency, json!({"spec": {"latencies": [{"to": others[0], "rtt": rtt}]}}))
            }
            7 => return self.delete_cluster(&name).await,
            _ => return self.mistake_cluster(&name).await,
        };
        if self.patch_cluster(&name, patch).await {
            self.count(drawn);
        }
    }

    pub(super) async fn patch_cluster(&self, name: &str, patch: Value) -> bool {
        let api: Api<ForeignCluster> = Api::all(self.fleet.hub.client("user"));
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.is_ok()
    }

    async fn delete_cluster(&mut self, name: &str) {
        let api: Api<ForeignCluster> = Api::all(self.fleet.hub.client("user"));
        if api.delete(name, &Default::default()).await.is_ok() {
            self.count(Drawn::ClusterDeleted);
            self.observer.excuse_all(name);
            tokio::time::sleep(Duration::from_secs(self.rng.random_range(0..20))).await;
            self.restore(name).await;
        }
    }

    /// Makes a member known as it is meant to be; one that goes is made anew when it is gone, if that is soon.
    async fn restore(&self, name: &str) {
        let Some(declared) = self.declared.get(name) else { return };
        let api: Api<ForeignCluster> = Api::all(self.fleet.hub.client("user"));
        for _ in 0..60 {
            let found = api.get_opt(name).await.ok().flatten();
            if found.is_none_or(|found| found.metadata.deletion_timestamp.is_none()) {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // What was patched beside what is declared goes.
        let patched = ["taints", "unschedulable", "latencies", "capacity", "cloud", "traffic"];
        let spec: Value = patched.into_iter().map(|field| (field.to_owned(), Value::Null)).collect();
        self.patch_cluster(name, json!({ "spec": spec })).await;
        let _ = try_apply(&self.fleet.hub.client("user"), declared).await;
    }

    /// All members are known as they are meant to be.
    pub(super) async fn restore_clusters(&mut self) {
        for name in self.names() {
            self.restore(&name).await;
        }
    }
}

//! Probing the clusters that were made.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use http::Method;
use serde_json::Value;

use super::access::Access;
use super::json::{list, text};
use super::run::{Controllers, Key, PARTY};

/// How long a probe may take.
const LIMIT: Duration = Duration::from_secs(5);

impl Controllers {
    /// Looks at the nodes of all clusters; answers whether something has changed.
    pub(super) async fn probe(&mut self) -> bool {
        let found = join_all(self.workloads.keys().map(|key| self.nodes(key))).await;
        let now = self.now();
        let mut changed = false;
        for (workload, nodes) in self.workloads.values_mut().zip(found) {
            let before = workload.clone();
            workload.connected = nodes.is_some();
            if let Some(nodes) = nodes {
                workload.last_success = Some(now);
                workload.nodes = nodes;
            }
            workload.was_down = workload.is_down(now);
            changed |= before.nodes != workload.nodes
                || (before.connected, before.was_down) != (workload.connected, workload.was_down);
        }
        changed
    }

    /// The nodes of a cluster, if it answers.
    async fn nodes(&self, key: &Key) -> Option<BTreeMap<String, Value>> {
        let access = self.workload(&key.1)?;
        let asked = access.send(Method::GET, "/api/v1/nodes", None);
        let answer = tokio::time::timeout(LIMIT, asked).await.ok()?.ok()?;
        let nodes = list(&answer, "/items").iter();
        Some(nodes.map(|node| (text(node, "/spec/providerID").to_owned(), node.clone())).collect())
    }

    /// A cluster as its administrator reaches it.
    pub(super) fn workload(&self, name: &str) -> Option<Access> {
        Some(Access { client: self.world.cluster(name)?.client(PARTY), namespace: None })
    }
}

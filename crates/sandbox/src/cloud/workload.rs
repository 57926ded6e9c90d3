//! What Cluster API sees of the clusters that it has made.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::access::Access;
use super::conditions::{Verdict, no, yes};
use super::json::{list, text};
use super::run::{Controllers, Key, PARTY};

/// How long a probe may take.
const LIMIT: Duration = Duration::from_secs(5);
/// A connection that was lost for longer than this is down.
const GRACE: SignedDuration = SignedDuration::from_secs(50);

/// A cluster that was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Workload {
    /// Its nodes by providerID, as they were seen last.
    pub(super) nodes: BTreeMap<String, Value>,
    last_success: Option<Timestamp>,
    /// Whether the last probe succeeded.
    pub(super) connected: bool,
    /// Whether the connection counted as lost after the last probe.
    was_down: bool,
}

impl Workload {
    /// Whether the connection counts as lost.
    pub(super) fn is_down(&self, now: Timestamp) -> bool {
        self.last_success.is_none_or(|last| now.duration_since(last) > GRACE)
    }

    /// What the Cluster says about the connection.
    pub(super) fn verdict(&self, now: Timestamp) -> Verdict {
        match self.last_success {
            Some(_) if !self.is_down(now) => yes("ProbeSucceeded"),
            Some(last) => no(
                "ProbeFailed",
                format!("Remote connection probe failed, probe last succeeded at {last:.0}"),
            ),
            None => no("ProbeFailed", "Remote connection not established yet"),
        }
    }
}

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

//! What Cluster API sees of the clusters that it has made.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::conditions::{Verdict, no, yes};

/// A connection that was lost for longer than this is down.
const GRACE: SignedDuration = SignedDuration::from_secs(50);

/// A cluster that was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Workload {
    /// Its nodes by providerID, as they were seen last.
    pub(super) nodes: BTreeMap<String, Value>,
    pub(super) last_success: Option<Timestamp>,
    /// Whether the last probe succeeded.
    pub(super) connected: bool,
    /// Whether the connection counted as lost after the last probe.
    pub(super) was_down: bool,
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

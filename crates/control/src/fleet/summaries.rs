//! Room by the summaries of a member, in place of its nodes and pods.
//!
//! A hub that watches a cluster of thousands of nodes holds each of its nodes and pods. Where a ForeignCluster says
//! `capacity.fromReport`, it asks the member for a summary of a few kilobytes, and watches the pods of its own workloads alone.
//!
//! Of a member that does not renew its summary any more, what is known stands and grows old, as with a watch that tells nothing:
//! nothing new is placed there, and nothing that runs there is moved for lack of room.

use super::MemberEvent;
use super::watched::EventSink;
use crate::capacity::ClusterFeed;
use jiff::Timestamp;
use portolan_api::clusterreport::{CapacityRequest, ReportedCapacity};
use portolan_core::report::read;
use portolan_runtime::WatchHealth;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A member renews its summary every minute: one that it did not for this long is outdated.
const RENEWED_WITHIN: Duration = Duration::from_secs(150);

/// What help there is for a member that does not summarise.
const HELP: &str = "`portolan install --report-capacity` in the cluster has its controller summarise it";

/// What is done with the summaries of a member.
pub(super) struct Summaries {
    pub(super) request: CapacityRequest,
    pub(super) room: Arc<ClusterFeed>,
    /// How it stands with what nodes have: a summary tells that.
    health: WatchHealth,
    sink: EventSink,
    last: Option<(ReportedCapacity, Instant)>,
}

impl Summaries {
    pub(super) fn new(
        request: CapacityRequest,
        room: Arc<ClusterFeed>,
        health: WatchHealth,
        sink: EventSink,
    ) -> Self {
        Self { request, room, health, sink, last: None }
    }

    /// Takes what the member has in its report.
    pub(super) fn take(&mut self, capacity: Option<&ReportedCapacity>, now: Timestamp) {
        let Some(capacity) = capacity else { return self.fail("it does not summarise its capacity") };
        if let Some((last, at)) = &self.last
            && last == capacity
        {
            return if at.elapsed() < RENEWED_WITHIN {
                self.health.listed();
            } else {
                self.fail(&format!(
                    "its summary of capacity has not been renewed for {} s",
                    RENEWED_WITHIN.as_secs()
                ));
            };
        }
        match read(capacity, now) {
            Ok(room) => {
                self.room.summary(room);
                self.last = Some((capacity.clone(), Instant::now()));
                self.health.listed();
                (self.sink)(MemberEvent::Capacity);
            }
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// There is no summary.
    pub(super) fn fail(&self, why: &str) {
        let problem = format!("its capacity is not known: {why}; {HELP}");
        if self.health.fail(&problem, false, false) {
            tracing::debug!(problem, "a member does not tell its capacity");
        }
    }
}

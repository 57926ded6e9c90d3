//! How many decisions were made, and what came of them.

use portolan_api::placement::PendingPlacement;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many decisions about objects of one kind were made, by what came of them.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    scheduled: AtomicU64,
    unschedulable: AtomicU64,
    error: AtomicU64,
}

impl Decisions {
    /// Counts a decision; `pending` if it left something without a cluster.
    pub(crate) fn made(&self, pending: bool) {
        let count = if pending { &self.unschedulable } else { &self.scheduled };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that nothing could be decided.
    pub(crate) fn impossible(&self) {
        self.error.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 3] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("scheduled", read(&self.scheduled)),
            ("unschedulable", read(&self.unschedulable)),
            ("error", read(&self.error)),
        ]
    }
}

/// What an object has no cluster for, and what clusters say of it.
pub(crate) enum Pending<'a> {
    /// Replicas.
    Replicas(i32, &'a [PendingPlacement]),
    /// Completions.
    Completions(i32, &'a [PendingPlacement]),
}

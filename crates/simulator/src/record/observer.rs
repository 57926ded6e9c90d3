//! Follows every change in a world.

use super::state::State;
use jiff::Timestamp;
use portolan_sandbox::{LogEntry, World};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Follows every change in a world, as it happens.
#[derive(Clone, Default)]
pub(crate) struct Observer(Arc<Mutex<State>>);

impl Observer {
    /// Follows a world from now on.
    pub(crate) fn follow(&self, world: &World) {
        let observer = self.clone();
        world.log().listen(Some(Box::new(move |entry| match entry {
            LogEntry::Change(change) => observer.state().take(change),
            LogEntry::Begins { .. } | LogEntry::Ends { .. } => {}
        })));
    }

    /// Time is counted from now on.
    pub(super) fn begin(&self, now: Timestamp) {
        self.state().start = Some(now);
    }

    /// The clusters with nodes, or with anything else that was seen, but for the hub.
    pub(crate) fn clusters(&self) -> Vec<String> {
        self.state().clusters.keys().cloned().collect()
    }

    /// What is known now.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

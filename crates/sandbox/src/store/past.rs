//! What has happened to the objects of a table, as far back as is remembered.
//!
//! It has a lock of its own: who watches holds nobody up who writes, and is not held up by long work.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::Event;

/// A bounded ring of events.
#[derive(Debug, Default)]
pub(crate) struct Past {
    ring: Mutex<Ring>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The greatest revision whose event is no longer remembered.
    dropped: u64,
}

/// The revision asked for is no longer known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    pub(crate) oldest: u64,
}

impl Past {
    /// Events after `revision`, oldest first, at most so many.
    pub(crate) fn since(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Event>>, Expired> {
        let ring = self.ring();
        if revision < ring.dropped {
            return Err(Expired { oldest: ring.dropped });
        }
        let start = ring.events.partition_point(|event| event.revision <= revision);
        Ok(ring.events.range(start..).take(limit).cloned().collect())
    }

    /// Rings when there is more.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    pub(super) fn add(&self, event: Arc<Event>, size: usize) {
        let mut ring = self.ring();
        ring.events.push_back(event);
        while ring.events.len() > size {
            if let Some(old) = ring.events.pop_front() {
                ring.dropped = old.revision;
            }
        }
        drop(ring);
        self.changed.notify_waiters();
    }

    /// Forgets all events: whoever watches from an older revision must list again.
    pub(super) fn forget(&self) {
        let mut ring = self.ring();
        if let Some(last) = ring.events.back() {
            ring.dropped = last.revision;
        }
        ring.events.clear();
        drop(ring);
        self.changed.notify_waiters();
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

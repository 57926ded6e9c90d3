//! The ordered record of all that happens in a world, with a running hash.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::store::{Event, EventKind};

/// How many lines are kept to be read; the hash covers all.
const KEPT_LINES: usize = 200_000;

/// The event log of a world: every request, its outcome, and every change of a store, in order.
#[derive(Clone)]
pub struct EventLog(Arc<Mutex<Inner>>, Arc<Mutex<Option<Listener>>>);

/// Is told what happens, while it happens. It must not call the world.
pub type Listener = Box<dyn FnMut(&LogEntry<'_>) + Send>;

/// What a listener is told.
pub enum LogEntry<'a> {
    /// A request of a party is carried out: what changes in this cluster until its end is its doing.
    Begins {
        /// Where.
        cluster: &'a str,
        /// Whose.
        party: &'a str,
    },
    /// It is over.
    Ends {
        /// Where.
        cluster: &'a str,
    },
    /// An object has changed.
    Change(Change<'a>),
}

/// A change of an object.
pub struct Change<'a> {
    /// When.
    pub now: Timestamp,
    /// Where.
    pub cluster: &'a str,
    /// Group and resource (`apps/deployments`, `/pods`).
    pub table: &'a str,
    event: &'a Event,
}

impl Change<'_> {
    /// The object as it is now; of a deleted one, as it was last.
    #[must_use]
    pub fn object(&self) -> Arc<serde_json::Value> {
        self.event.object.value()
    }

    /// Whether it is gone.
    #[must_use]
    pub fn is_deletion(&self) -> bool {
        matches!(self.event.kind, EventKind::Deleted)
    }
}

struct Inner {
    hasher: Sha256,
    lines: VecDeque<String>,
    count: u64,
}

impl EventLog {
    pub(crate) fn new() -> Self {
        let inner = Inner { hasher: Sha256::new(), lines: VecDeque::new(), count: 0 };
        Self(Arc::new(Mutex::new(inner)), Arc::default())
    }

    /// Tells a listener all that happens from now on, in place of the one before.
    pub fn listen(&self, listener: Option<Listener>) {
        *self.1.lock().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    pub(crate) fn tell(&self, entry: &LogEntry<'_>) {
        if let Some(listener) = self.1.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            listener(entry);
        }
    }

    /// The SHA-256 of everything recorded so far, in hex. Equal hashes mean equal histories.
    #[must_use]
    pub fn hash(&self) -> String {
        use std::fmt::Write;
        let digest = self.inner().hasher.clone().finalize();
        digest.iter().fold(String::with_capacity(64), |mut out, byte| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{byte:02x}");
            out
        })
    }

    /// How many lines have been recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.inner().count
    }

    /// The last lines (at most 200,000), oldest first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.inner().lines.iter().cloned().collect()
    }

    /// Adds a line of the harness' own, so that what it does is part of the history.
    pub fn note(&self, now: Timestamp, text: &str) {
        self.record(now, "-", text, &[]);
    }

    pub(crate) fn change(&self, now: Timestamp, cluster: &str, table: &str, event: &Event) {
        let what = match event.kind {
            EventKind::Added => "added",
            EventKind::Modified => "modified",
            EventKind::Deleted => "deleted",
        };
        let text =
            format!("{what} {} {} @{}", table.trim_start_matches('/'), event.object.key, event.revision);
        self.record(now, cluster, &text, &event.object.bytes);
        self.tell(&LogEntry::Change(Change { now, cluster, table, event }));
    }

    /// Adds a line; `payload` goes into the hash only.
    pub(crate) fn record(&self, now: Timestamp, cluster: &str, text: &str, payload: &[u8]) {
        let line = format!("{now} {cluster} {text}");
        let mut inner = self.inner();
        inner.hasher.update(line.as_bytes());
        inner.hasher.update(payload);
        inner.hasher.update(b"\n");
        inner.count += 1;
        if inner.lines.len() == KEPT_LINES {
            inner.lines.pop_front();
        }
        inner.lines.push_back(line);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

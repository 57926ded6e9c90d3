//! What this process remembers of what it did in members; all of it can be found out again.

use super::drift::Compared;
use super::dry_run::{Accepted, Tried};
use portolan_api::Reason;
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What was applied, and the generation that made.
    pub(super) applied: Places<Applied>,
    /// What could not be applied.
    pub(super) failures: Places<Failure>,
    /// What was deleted.
    pub(super) deleted: Places<Deleted>,
    /// What was compared with what was placed.
    pub(super) compared: Places<Compared>,
    /// By workload: whether its template was accepted.
    pub(super) tried: Mutex<BTreeMap<Key, Tried>>,
    /// What was accepted for any workload.
    pub(super) accepted: Accepted,
    /// By workload: since when its status does not tell how far its copies have come.
    pub(super) untold: Mutex<BTreeMap<Key, Instant>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) digest: String,
    pub(super) generation: i64,
    pub(super) at: Instant,
}

/// A copy that was deleted: its uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deleted {
    pub(super) uid: String,
    pub(super) at: Instant,
}

/// What was to be applied in a member could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The digest of a copy with one replica: whatever else is to be applied is tried at once.
    pub(super) template: String,
    pub(super) kind: FailureKind,
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) at: Instant,
    /// For how long it is not tried again.
    pub(super) holds: Duration,
    /// How often in a row.
    pub(super) times: u32,
    /// Whether the cluster was closed since.
    pub(super) while_closed: bool,
}

/// Who stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The member refuses it, and will again: other clusters may take it.
    RefusedByMember,
    /// Something is wrong in the hub, which is the same for all members.
    NotInOrder,
    /// The member did not answer, or answered with a failure of its own: the next try may succeed.
    MemberError,
}

impl Failure {
    /// How much longer it is not tried again.
    pub(super) fn left(&self) -> Duration {
        self.holds.saturating_sub(self.at.elapsed())
    }

    /// Whether other clusters are tried before this one.
    pub(super) fn keeps_away(&self) -> bool {
        match self.kind {
            FailureKind::RefusedByMember => !self.left().is_zero(),
            FailureKind::NotInOrder => false,
            FailureKind::MemberError => self.is_told() && self.at.elapsed() < ERRORS_KEEP_AWAY,
        }
    }

    /// Whether users are to know of it: a single request that failed is none of their business.
    pub(super) fn is_told(&self) -> bool {
        self.kind != FailureKind::MemberError || self.times >= ERRORS_TOLD
    }
}

/// A member that failed so often is tried again after this long, if another one takes the workload.
const ERRORS_KEEP_AWAY: Duration = Duration::from_secs(120);

/// So many failed tries in a row are told in the status.
const ERRORS_TOLD: u32 = 3;

impl Memory {
    /// Forgets everything about a workload.
    pub(super) fn forget(&self, key: &Key) {
        self.applied.forget(key);
        self.failures.forget(key);
        self.deleted.forget(key);
        self.compared.forget(key);
        lock(&self.tried).remove(key);
        lock(&self.untold).remove(key);
    }
}

/// Something by workload and cluster.
#[derive(Debug)]
pub(super) struct Places<T>(Mutex<BTreeMap<Key, BTreeMap<String, T>>>);

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Places<T> {
    pub(super) fn get(&self, key: &Key, cluster: &str) -> Option<T> {
        lock(&self.0).get(key).and_then(|places| places.get(cluster)).cloned()
    }

    pub(super) fn set(&self, key: &Key, cluster: &str, what: T) {
        lock(&self.0).entry(key.clone()).or_default().insert(cluster.to_owned(), what);
    }

    pub(super) fn remove(&self, key: &Key, cluster: &str) {
        let mut all = lock(&self.0);
        if let Some(places) = all.get_mut(key) {
            places.remove(cluster);
            if places.is_empty() {
                all.remove(key);
            }
        }
    }

    /// All of a workload, by cluster.
    pub(super) fn of(&self, key: &Key) -> BTreeMap<String, T> {
        lock(&self.0).get(key).cloned().unwrap_or_default()
    }

    fn forget(&self, key: &Key) {
        lock(&self.0).remove(key);
    }
}

/// Locks a part of the memory.
pub(super) fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A session, as its connections see it.

use super::expected::{ExpectedSession, ReceivedPart, SessionLimits};
use super::file::{self, FileError};
use super::refusal::Refusal;
use super::ticket::{SessionKey, Ticket};
use portolan_node::Name;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// What the connections of a session share.
pub(super) struct SessionState {
    pub(super) peer: String,
    pub(super) key: SessionKey,
    pub(super) ticket: Ticket,
    pub(super) folder: PathBuf,
    pub(super) limits: SessionLimits,
    pub(super) deadline: Instant,
    pub(super) slots: BTreeMap<Name, Slot>,
    parts: Mutex<BTreeMap<Name, PartState>>,
    closed: AtomicBool,
    pub(super) changed: Notify,
}

/// Which connection writes a part.
#[derive(Default)]
pub(super) struct Slot {
    /// Who has it writes the part.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    /// Another connection has come for the part.
    pub(super) newer: Notify,
}

/// How far a part has come.
pub(super) struct PartState {
    pub(super) bytes: u64,
    pub(super) whole: Option<ReceivedPart>,
}

impl SessionState {
    /// A session that goes on with what is in its folder. It blocks.
    pub(super) fn new(expected: ExpectedSession) -> Result<Self, FileError> {
        let ExpectedSession { peer, key, ticket, parts, folder, limits, deadline } = expected;
        let mut states = BTreeMap::new();
        for name in &parts {
            let bytes = file::bytes_on_disk(&folder, name)?;
            states.insert(name.clone(), PartState { bytes, whole: None });
        }
        let slots = parts.into_iter().map(|name| (name, Slot::default())).collect();
        let (parts, closed, changed) = (Mutex::new(states), AtomicBool::new(false), Notify::new());
        Ok(Self { peer, key, ticket, folder, limits, deadline, slots, parts, closed, changed })
    }

    pub(super) fn slot(&self, part: &Name) -> Result<&Slot, Refusal> {
        self.slots.get(part).ok_or(Refusal::UnknownPart)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether no connection is taken any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed() || Instant::now() >= self.deadline
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Waits until the session is closed.
    pub(super) async fn closed(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_closed() {
                return;
            }
            changed.await;
        }
    }

    /// Counts a part with so many bytes, if they are allowed.
    pub(super) fn reserve(&self, part: &Name, bytes: u64) -> Result<(), Refusal> {
        let SessionLimits { part_bytes, session_bytes, .. } = self.limits;
        if bytes > part_bytes {
            return Err(Refusal::PartTooLarge { limit: part_bytes });
        }
        let mut parts = self.lock();
        let others = parts.iter().filter(|(name, _)| *name != part).map(|(_, part)| part.bytes);
        if others.fold(bytes, u64::saturating_add) > session_bytes {
            return Err(Refusal::SessionTooLarge { limit: session_bytes });
        }
        if let Some(state) = parts.get_mut(part) {
            state.bytes = bytes;
        }
        Ok(())
    }

    /// Counts a part as gone.
    pub(super) fn release(&self, part: &Name) {
        if let Some(state) = self.lock().get_mut(part) {
            state.bytes = 0;
        }
    }

    /// Counts a part as whole.
    pub(super) fn record_whole(&self, part: &ReceivedPart) {
        if let Some(state) = self.lock().get_mut(&part.name) {
            state.whole = Some(part.clone());
        }
        self.changed.notify_waiters();
    }

    pub(super) fn all_whole(&self) -> Option<Vec<ReceivedPart>> {
        self.lock().values().map(|part| part.whole.clone()).collect()
    }

    pub(super) fn missing(&self) -> Vec<String> {
        let parts = self.lock();
        parts.iter().filter(|(_, part)| part.whole.is_none()).map(|(name, _)| name.to_string()).collect()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, PartState>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

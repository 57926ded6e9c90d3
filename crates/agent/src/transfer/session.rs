//! What a receiver has been told to receive.

use super::error::SessionError;
use super::file::{self, FileError};
use super::frame::Sha256Sum;
use super::session_state::SessionState;
use super::ticket::{SessionKey, Ticket};
use portolan_node::Name;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// The most bytes between two acknowledgements.
pub(super) const MOST_SYNC_BYTES: u64 = 1 << 30;

/// A session that a receiver is to admit.
#[derive(Clone, Debug)]
pub struct ExpectedSession {
    /// The peer that it comes from, by the name that the receiver was told.
    pub peer: String,
    /// What it is called.
    pub key: SessionKey,
    /// What the sender shows.
    pub ticket: Ticket,
    /// Its parts: containers and volumes.
    pub parts: Vec<Name>,
    /// Where the parts are written: a folder that exists, that only this agent may write to, and that is of this session only.
    pub folder: PathBuf,
    /// How much may arrive.
    pub limits: SessionLimits,
    /// Until when.
    pub deadline: Instant,
}

/// How much a session may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// How many bytes one part may have.
    pub part_bytes: u64,
    /// How many bytes all parts may have together.
    pub session_bytes: u64,
    /// After how many bytes they are brought to disk and acknowledged.
    pub sync_bytes: u64,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { part_bytes: 8 << 30, session_bytes: 16 << 30, sync_bytes: 32 << 20 }
    }
}

/// A part that has arrived whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedPart {
    /// Which one.
    pub name: Name,
    /// Its file.
    pub path: PathBuf,
    /// How many bytes it has.
    pub bytes: u64,
    /// Its SHA-256 sum, in hexadecimal digits.
    pub sha256: String,
}

/// An admitted session. It is closed when this is dropped; its files stay, so that another session of the same folder goes on
/// with them.
pub struct Session(pub(super) Arc<SessionState>);

impl Session {
    /// Waits until all parts are whole.
    ///
    /// # Errors
    /// The session is closed before, or its deadline passes.
    pub async fn whole(&self) -> Result<Vec<ReceivedPart>, SessionError> {
        let state = &self.0;
        let all = async {
            loop {
                let changed = state.changed.notified();
                if let Some(all) = state.all_whole() {
                    return Ok(all);
                }
                if state.is_closed() {
                    return Err(SessionError::Closed { session: state.key.clone() });
                }
                changed.await;
            }
        };
        match timeout_at(state.deadline, all).await {
            Ok(outcome) => outcome,
            Err(_) => Err(SessionError::Deadline {
                session: state.key.clone(),
                missing: state.missing().join(", "),
            }),
        }
    }

    /// How many bytes of each part were received.
    #[must_use]
    pub fn bytes(&self) -> BTreeMap<Name, u64> {
        self.0.lock().iter().map(|(name, part)| (name.clone(), part.bytes)).collect()
    }

    /// Refuses everything from now on, and ends the connections of the session.
    pub fn close(&self) {
        self.0.close();
    }

    /// Closes the session and removes its files, whole or not.
    ///
    /// # Errors
    /// They cannot be removed.
    pub async fn discard(&self) -> Result<(), SessionError> {
        self.close();
        let mut turns = Vec::new();
        for slot in self.0.slots.values() {
            turns.push(Arc::clone(&slot.turn).lock_owned().await);
        }
        let state = Arc::clone(&self.0);
        let removed = tokio::task::spawn_blocking(move || {
            let removed: Result<(), FileError> =
                state.slots.keys().try_for_each(|name| file::remove(&state.folder, name));
            drop(turns);
            removed
        });
        removed.await.map_err(|_| SessionError::Stopping { session: self.0.key.clone() })??;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A sum in hexadecimal digits.
pub(super) fn hex(sum: &Sha256Sum) -> String {
    sum.iter().fold(String::with_capacity(64), |mut text, byte| {
        // A string takes whatever is written.
        write!(text, "{byte:02x}").ok();
        text
    })
}

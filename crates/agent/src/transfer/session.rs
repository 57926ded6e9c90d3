//! What a receiver has been told to receive.

use super::error::SessionError;
use super::expected::ReceivedPart;
use super::file::{self, FileError};
use super::frame::Sha256Sum;
use super::session_state::SessionState;
use portolan_node::Name;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use tokio::time::timeout_at;

/// The most bytes between two acknowledgements.
pub(super) const MOST_SYNC_BYTES: u64 = 1 << 30;

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

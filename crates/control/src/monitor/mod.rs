//! The controllers seen from outside: whether they are ready.
//!
//! A process has one [`Monitor`] for as long as it lives. Each term of a leader shows its controllers to it, and takes
//! them away when it ends.

mod readiness;

pub use readiness::Check;

use crate::driver::EpochFence;
use crate::hub_kinds::HubKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What can be seen of the controllers of a process; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Monitor(Arc<Mutex<Option<Running>>>);

/// The controllers of a term.
pub(crate) struct Running {
    pub(crate) kinds: Vec<HubKind>,
    pub(crate) fence: EpochFence,
}

/// Controllers are shown for as long as this is kept.
pub(crate) struct Shown(Monitor);

impl Monitor {
    /// What must hold before the controllers of a leader are ready; nothing while no controllers run.
    #[must_use]
    pub fn checks(&self) -> Option<Vec<Check>> {
        self.running().as_ref().map(readiness::checks)
    }

    pub(crate) fn show(&self, running: Running) -> Shown {
        *self.running() = Some(running);
        Shown(self.clone())
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        *self.0.running() = None;
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

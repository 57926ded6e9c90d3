//! How a candidate stands in its election, for those who ask from outside.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a lease holds after it was last renewed.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);

/// How a candidate stands in its election; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Standing(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    answered: Option<Instant>,
    leads: bool,
    terms: u64,
}

impl Standing {
    /// Whether the hub has answered a request for the Lease within the time that a Lease holds.
    #[must_use]
    pub fn takes_part(&self) -> bool {
        self.lock().answered.is_some_and(|at| at.elapsed() < LEASE_DURATION)
    }

    /// Whether the candidate leads.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.lock().leads
    }

    /// How often the candidate was elected.
    #[must_use]
    pub fn terms(&self) -> u64 {
        self.lock().terms
    }

    pub(crate) fn answered(&self) {
        self.lock().answered = Some(Instant::now());
    }

    pub(crate) fn elected(&self) {
        let mut state = self.lock();
        state.leads = true;
        state.terms += 1;
    }

    pub(crate) fn lost(&self) {
        self.lock().leads = false;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

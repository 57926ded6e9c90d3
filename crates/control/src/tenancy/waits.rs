//! For how long something is waited for.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Since when something is waited for, by the time that has passed here: the clock of another machine, which had led before,
/// does not count. A new leader waits anew.
#[derive(Default)]
pub(super) struct Waits(Mutex<BTreeMap<(String, &'static str), Instant>>);

impl Waits {
    /// For how long an invitation has been waiting for this, and begins to count.
    pub(super) fn so_far(&self, invitation: &str, what: &'static str) -> Duration {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waits.entry((invitation.to_owned(), what)).or_insert_with(Instant::now).elapsed()
    }

    /// It does not wait for this any more.
    pub(super) fn end(&self, invitation: &str, what: &'static str) {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waits.remove(&(invitation.to_owned(), what));
    }

    /// It waits for nothing any more.
    pub(super) fn forget(&self, invitation: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(id, _), _| id != invitation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn counts_from_the_first_question_until_it_is_over() {
        let (waits, second) = (Waits::default(), Duration::from_secs(1));
        assert_eq!(waits.so_far("a", "signer"), Duration::ZERO);
        tokio::time::sleep(second).await;
        assert_eq!((waits.so_far("a", "signer"), waits.so_far("a", "rights")), (second, Duration::ZERO));
        waits.end("a", "signer");
        assert_eq!(waits.so_far("a", "signer"), Duration::ZERO);
        tokio::time::sleep(second).await;
        waits.forget("a");
        assert_eq!(waits.so_far("a", "rights"), Duration::ZERO);
    }
}

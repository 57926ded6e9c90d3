//! What a member is asked to do at the same time: a member that does not answer costs only itself.
//!
//! All controllers share a few workers. Without a limit, a member that takes requests and never answers would hold all
//! of them, and the other members would wait. So each member has a few places; whoever finds none within a moment comes
//! back later. After some requests in a row without an answer, one at a time finds out whether the member answers again.

use portolan_runtime::{CallError, Term, call};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How many requests a member is sent at the same time: a quarter of the workers of each controller that asks members, so
/// that one member that does not answer leaves the others most of them.
const PLACES: usize = 6;

/// How long to wait for a place.
const WAIT: Duration = Duration::from_millis(250);

/// After so many more requests without an answer than with one the member is asked one at a time.
const UNANSWERED_AT_MOST: u32 = 3;

/// How long a member that does not answer is left alone, at first and at most.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_AT_MOST: Duration = Duration::from_secs(60);

/// The places of one member.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many more requests had no answer than had one, from when that was last none.
    unanswered: u32,
    /// When the member is asked again.
    again: Option<Instant>,
    /// Whether somebody is finding out whether it answers again.
    tried: bool,
}

impl Default for Gate {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(PLACES)), state: Mutex::default() }
    }
}

impl Gate {
    /// Makes a request that changes something in the member, in a leader's name.
    ///
    /// # Errors
    /// The member has too much to do or does not answer, the term has ended, or what was tried did not work.
    pub(crate) async fn call<T>(
        &self,
        term: &Term,
        what: String,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, CallError> {
        self.pass(what, |what| term.call(what, request)).await
    }

    /// Makes a request that changes nothing.
    ///
    /// # Errors
    /// The member has too much to do or does not answer, or what was tried did not work.
    pub(crate) async fn ask<T>(
        &self,
        what: String,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, CallError> {
        self.pass(what, |what| call(what, request)).await
    }

    /// Until when the member is left alone, or asked by one at a time only; nothing if it answers.
    pub(crate) fn pauses(&self) -> Option<Instant> {
        let state = self.state();
        (state.unanswered >= UNANSWERED_AT_MOST).then(|| state.again.unwrap_or_else(Instant::now))
    }

    async fn pass<T, F>(&self, what: String, request: impl FnOnce(String) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let Some(place) = self.enter().await else { return Err(CallError::Busy { what }) };
        let answer = request(what).await;
        self.leave(matches!(answer, Err(CallError::Silent { .. })));
        drop(place);
        answer
    }

    async fn enter(&self) -> Option<Place<'_>> {
        if !self.may_try() {
            return None;
        }
        let place = tokio::time::timeout(WAIT, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.ok().and_then(Result::ok);
        if place.is_none() {
            self.state().tried = false;
        }
        Some(Place { gate: self, _permit: place? })
    }

    /// Whether the member may be asked now.
    fn may_try(&self) -> bool {
        let mut state = self.state();
        if state.unanswered < UNANSWERED_AT_MOST {
            return true;
        }
        if state.tried || state.again.is_some_and(|again| Instant::now() < again) {
            return false;
        }
        state.tried = true;
        true
    }

    fn leave(&self, unanswered: bool) {
        let mut state = self.state();
        if !unanswered {
            // One answer among many silences is no reason to send as much as before: a member that answers again is
            // trusted with the next requests, and one silence more ends that.
            state.unanswered = state.unanswered.min(UNANSWERED_AT_MOST).saturating_sub(1);
            state.again = None;
            return;
        }
        state.unanswered = state.unanswered.saturating_add(1);
        let doubled = state.unanswered.saturating_sub(UNANSWERED_AT_MOST).min(8);
        let pause = PAUSE.saturating_mul(1 << doubled).min(PAUSE_AT_MOST);
        state.again = Some(Instant::now() + pause);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is given back when the request has ended, or was given up.
struct Place<'a> {
    gate: &'a Gate,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.gate.state().tried = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::{join_all, pending};

    async fn hang(gate: &Gate) -> bool {
        matches!(
            gate.ask("x".to_owned(), pending::<Result<(), kube::Error>>()).await,
            Err(CallError::Busy { .. })
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_that_does_not_answer_holds_few_and_is_then_asked_one_at_a_time() {
        let gate = Gate::default();
        let busy = join_all((0..60).map(|_| hang(&gate))).await;
        assert_eq!(busy.iter().filter(|busy| !**busy).count(), PLACES, "the others come back later");
        assert!(hang(&gate).await, "it is left alone for a while");
        tokio::time::sleep(PAUSE_AT_MOST).await;
        let busy = join_all((0..10).map(|_| hang(&gate))).await;
        assert_eq!(busy.iter().filter(|busy| !**busy).count(), 1);
        tokio::time::sleep(PAUSE_AT_MOST).await;
        assert!(gate.ask("x".to_owned(), async { Ok(()) }).await.is_ok());
        let answers = join_all((0..60).map(|_| gate.ask("x".to_owned(), async { Ok(()) }))).await;
        assert!(answers.iter().all(Result::is_ok), "it answers again");
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_among_many_silences_is_no_reason_to_ask_as_before() {
        let gate = Gate::default();
        let mut held = 0;
        for _ in 0..4 {
            // One request is answered, the others are not.
            _ = gate.ask("x".to_owned(), async { Ok(()) }).await;
            let busy = join_all((0..2).map(|_| hang(&gate))).await;
            held += busy.iter().filter(|busy| !**busy).count();
        }
        assert!(hang(&gate).await, "{held} requests had no answer, and it is asked on");
        let first = gate.ask("x".to_owned(), async { Ok(()) }).await;
        assert!(first.is_err_and(|error| error.is_busy()), "it is left alone for a while");
    }
}

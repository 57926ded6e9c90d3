//! A leader's term: the right to write, with a number and an end.

use crate::{CallError, call};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The term of a leader, handed to everything that works in its name.
///
/// Its epoch is greater than that of every term before it. Writes go through [`Term::call`], which refuses them as soon
/// as somebody else may have been elected.
#[derive(Clone, Debug)]
pub struct Term(Arc<State>);

#[derive(Debug)]
struct State {
    holder: String,
    epoch: i64,
    /// None without an election: such a term does not end.
    ends: Option<Mutex<Instant>>,
    outranked_by: AtomicI64,
    outranked: Notify,
    over: watch::Sender<bool>,
}

impl Term {
    /// The term of a process that nobody competes with; it has no epoch and does not end.
    #[must_use]
    pub fn alone(holder: &str) -> Self {
        Self::new(holder, 0, None)
    }

    /// A term that ends at this time unless it is extended.
    pub(crate) fn until(holder: &str, epoch: i64, ends: Instant) -> Self {
        Self::new(holder, epoch, Some(Mutex::new(ends)))
    }

    fn new(holder: &str, epoch: i64, ends: Option<Mutex<Instant>>) -> Self {
        Self(Arc::new(State {
            holder: holder.to_owned(),
            epoch,
            ends,
            outranked_by: AtomicI64::new(0),
            outranked: Notify::new(),
            over: watch::Sender::new(false),
        }))
    }

    /// Who leads.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.0.holder
    }

    /// The number of the term, at least 1; nothing without an election.
    #[must_use]
    pub fn epoch(&self) -> Option<i64> {
        self.0.ends.as_ref().map(|_| self.0.epoch)
    }

    /// Whether nobody else can have been elected yet.
    #[must_use]
    pub fn holds(&self) -> bool {
        let within = |ends: &Mutex<Instant>| Instant::now() < *lock(ends);
        self.0.ends.as_ref().is_none_or(within) && self.outranked_by().is_none() && !*self.0.over.borrow()
    }

    /// Says that an object carries a greater epoch than this term's: the term ends at once.
    ///
    /// Either somebody else was elected and this process has not heard of it, or the lease was deleted and counts
    /// anew; the election finds out which, and the next term is greater than both.
    pub fn outranked(&self, epoch: i64) {
        self.0.outranked_by.fetch_max(epoch, Ordering::SeqCst);
        self.0.outranked.notify_one();
    }

    /// Makes a request that changes something, unless the term has ended.
    ///
    /// # Errors
    /// The term has ended, or what was tried did not work.
    pub async fn call<T>(
        &self,
        what: impl Into<String>,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, CallError> {
        let what = what.into();
        if !self.holds() {
            return Err(CallError::NotLeading { what, holder: self.0.holder.clone(), epoch: self.0.epoch });
        }
        call(what, request).await
    }

    /// Ends the term: nothing is sent in its name from now on.
    pub(crate) fn end(&self) {
        self.0.over.send_replace(true);
    }

    /// Waits until the term was ended by those who keep it; then all work in its name is to stop.
    pub async fn until_over(&self) {
        let mut over = self.0.over.subscribe();
        // The sender lives as long as this does.
        let _ = over.wait_for(|over| *over).await;
    }

    pub(crate) fn ends(&self) -> Option<Instant> {
        self.0.ends.as_ref().map(|ends| *lock(ends))
    }

    pub(crate) fn extend(&self, until: Instant) {
        if let Some(ends) = &self.0.ends {
            *lock(ends) = until;
        }
    }

    pub(crate) fn outranked_by(&self) -> Option<i64> {
        Some(self.0.outranked_by.load(Ordering::SeqCst)).filter(|epoch| *epoch > 0)
    }

    pub(crate) async fn until_outranked(&self) {
        self.0.outranked.notified().await;
    }
}

fn lock(ends: &Mutex<Instant>) -> std::sync::MutexGuard<'_, Instant> {
    ends.lock().unwrap_or_else(PoisonError::into_inner)
}

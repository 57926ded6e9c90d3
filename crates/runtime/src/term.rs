//! A leader's term: the right to write, with a number and an end.

use crate::call::REQUEST_LIMIT;
use crate::{CallError, call};
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// How many requests for the lease were begun.
    begun: AtomicU64,
    /// The last of them that found the lease in the name of this term.
    confirmed: watch::Sender<u64>,
    doubted: Notify,
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
            begun: AtomicU64::new(0),
            confirmed: watch::Sender::new(0),
            doubted: Notify::new(),
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
        self.0.ends.as_ref().is_none_or(within) && !*self.0.over.borrow()
    }

    /// Asks the lease whether it still names this term: yes only if a request that began after this call says so.
    ///
    /// What an object says of a later leader is no proof that there is one: whoever may change the object can write it.
    /// The lease is asked at once, but not for every such object: requests are shared and spaced. If the lease names
    /// another leader, the term ends.
    pub async fn confirm(&self) -> bool {
        if self.0.ends.is_none() {
            return true;
        }
        let mut confirmed = self.0.confirmed.subscribe();
        let begun = self.0.begun.load(Ordering::SeqCst);
        self.0.doubted.notify_one();
        let later = tokio::time::timeout(REQUEST_LIMIT, confirmed.wait_for(|request| *request > begun)).await;
        later.is_ok_and(|answer| answer.is_ok()) && self.holds()
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

    /// Counts a request for the lease that begins now.
    pub(crate) fn begin(&self) -> u64 {
        self.0.begun.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Says that a request found the lease in the name of this term.
    pub(crate) fn confirmed(&self, request: u64) {
        self.0.confirmed.send_replace(request);
    }

    pub(crate) async fn until_doubted(&self) {
        self.0.doubted.notified().await;
    }
}

fn lock(ends: &Mutex<Instant>) -> std::sync::MutexGuard<'_, Instant> {
    ends.lock().unwrap_or_else(PoisonError::into_inner)
}

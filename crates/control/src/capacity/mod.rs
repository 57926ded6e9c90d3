//! One ledger of the room in all clusters and of what all workloads hold there.
//!
//! Every controller that places anything decides over the same [`Ledger`], so that no two decisions count the same room:
//!
//! 1. **It is told** what nodes and pods a member has by the member's watches ([`Ledger::open`]), and what each workload
//!    holds by the watch of its kind: [`Book::take`] turns every change of the kind into reservations. A kind that holds room
//!    is announced by [`Ledger::expect`] before anything runs; nothing may be decided before all kinds have been listed
//!    once ([`Book::is_complete`]).
//! 2. **Deciding and holding is one step**: [`Ledger::transact`] gives the [`Book`] to one decider at a time. In it,
//!    [`Book::view`] tells the room of a cluster for one workload (its own reservation is not in its way) and
//!    [`Book::assume`] takes the decision for granted until the write of it comes back by the watch. There is no way to
//!    wait in between.
//! 3. **When the write fails**, [`Book::retract`] goes back to what the API says.
//! 4. **Room that appears** wakes those who wait for it: [`tell_of_room`].
//! 5. **What would be**: [`Book::fork`] gives a book of one's own, to hold and give up in without anybody noticing.
//!
//! A reservation stands by the uid of its workload. Replicas that have a node take their room there; those that have none yet
//! are estimated per shape of node (see [`portolan_core::capacity::ClusterIndex`]).

mod board;
mod book;
mod clusters;
mod feed;
mod growth;
mod reservations;
mod waiting;
mod woken;

pub use book::Book;
pub use feed::{ClusterFeed, Listed};
pub(crate) use growth::growth;
pub use reservations::{Owner, Reservation, Waits};
pub use woken::tell_of_room;

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The shared ledger; clones are the same ledger.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    book: Arc<Mutex<Book>>,
    /// Somebody may have to be woken.
    stirred: Arc<Notify>,
}

impl Ledger {
    /// Does something with the book that no other decider can come between.
    pub fn transact<T>(&self, with: impl FnOnce(&mut Book) -> T) -> T {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let result = with(&mut book);
        if book.waiting.is_stirred() {
            self.stirred.notify_one();
        }
        result
    }

    /// Announces a kind of workloads that holds room: nothing is decided before its reservations are known.
    pub fn expect(&self, kind: &'static str) {
        self.transact(|book| book.expect(kind));
    }
}

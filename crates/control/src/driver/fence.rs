//! A new leader makes all objects its own before it decides anything about any of them.
//!
//! Of all kinds: what an old leader may still place of one kind takes room from another. See the driver for the
//! whole argument.

use crate::fleet::is_epoch;
use portolan_api::Reason;
use portolan_api::placement::Reservation;
use portolan_runtime::{Action, CallError, Change, Clock, EventType, Key, Recorder, Term, chain};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// An object whose status the hub fails to write for this long holds up no other: no request of an older leader is on its
/// way for so long.
const CLAIMED_WITHIN: Duration = Duration::from_secs(60);

/// How soon to look again while objects are still being claimed.
const CLAIMING: Duration = Duration::from_millis(250);

/// What is still to be claimed in a term; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct EpochFence {
    term: Term,
    /// By kind; nothing is known before its objects have been listed.
    kinds: Arc<Mutex<BTreeMap<&'static str, Option<Open>>>>,
}

#[derive(Debug, Default)]
struct Open {
    /// The objects that still carry another leader's epoch.
    unclaimed: BTreeSet<Key>,
    /// Whether some of them carry a greater one, and the Lease was not asked yet.
    doubtful: bool,
    /// Those among them whose status the hub does not take. It refuses it whoever writes it, so that an older leader
    /// cannot decide about them either; or it has failed for so long that what an older leader sent has long arrived
    /// and is counted. The others need not wait for them.
    refused: BTreeSet<Key>,
    /// Since when the hub answers with an error to a claim, by object.
    failing: BTreeMap<Key, Instant>,
}

/// What is to be done about an object before anything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: all are claimed.
    Decide,
    /// It is to be looked at again.
    Wait(Action),
    /// It is to be claimed: its status is to be written with this leader's [`reservation`], whatever else it says.
    Claim,
}

impl EpochFence {
    pub(crate) fn new(term: &Term) -> Self {
        Self { term: term.clone(), kinds: Arc::default() }
    }

    /// Announces a kind: nothing is decided before all its objects are claimed.
    pub(crate) fn expect(&self, kind: &'static str) {
        self.kinds().insert(kind, None);
    }

    /// Takes the first list of a kind. What is made later no older leader has read.
    pub(crate) fn take<T>(&self, kind: &'static str, change: &Change<T>, recorded: impl Fn(&T) -> Claimant) {
        let (Some(ours), Change::Listed(all)) = (self.ours(), change) else { return };
        if let Some(open @ None) = self.kinds().get_mut(kind) {
            let mut taken = Open::default();
            for (key, object) in all {
                let recorded = recorded(object);
                taken.doubtful |= recorded.epoch > ours.epoch;
                if recorded != ours {
                    taken.unclaimed.insert(key.clone());
                }
            }
            *open = Some(taken);
        }
    }

    /// What is to be done about an object that this leader decided about last, by its status, if it is still there.
    ///
    /// A status that names a later leader is a reason to ask the Lease; if it names nobody else, the object is claimed
    /// like any other.
    pub(crate) async fn step(&self, kind: &'static str, key: &Key, recorded: Option<Claimant>) -> Step {
        let Some(ours) = self.ours() else { return Step::Decide };
        let later = recorded.as_ref().is_some_and(|recorded| recorded.epoch > ours.epoch);
        if (later && !self.was_listed(kind, key)) || self.is_doubtful(kind) {
            if !self.term.confirm().await {
                return Step::Wait(Action::RequeueAfter(CLAIMING));
            }
            self.settle(kind);
        }
        let mut kinds = self.kinds();
        if let Some(Some(open)) = kinds.get_mut(kind) {
            if recorded.is_none_or(|recorded| recorded == ours) {
                open.unclaimed.remove(key);
                open.refused.remove(key);
                open.failing.remove(key);
            }
            if open.unclaimed.contains(key) {
                return Step::Claim;
            }
        }
        if is_closed(&kinds) { Step::Decide } else { Step::Wait(Action::RequeueAfter(CLAIMING)) }
    }

    /// Whether decisions may be taken: no object is still to be claimed.
    pub(crate) fn is_closed(&self) -> bool {
        self.ours().is_none() || is_closed(&self.kinds())
    }

    /// This leader, as statuses name it; nobody without an election.
    fn ours(&self) -> Option<Claimant> {
        Some(Claimant { epoch: self.term.epoch()?, holder: self.term.holder().to_owned() })
    }

    /// Whether an object is still to be claimed since the first list.
    fn was_listed(&self, kind: &'static str, key: &Key) -> bool {
        let kinds = self.kinds();
        kinds.get(kind).and_then(Option::as_ref).is_some_and(|open| open.unclaimed.contains(key))
    }

    /// Whether the first list named later leaders, and the Lease was not asked yet. It is asked once for all of them.
    fn is_doubtful(&self, kind: &'static str) -> bool {
        self.kinds().get(kind).and_then(Option::as_ref).is_some_and(|open| open.doubtful)
    }

    fn settle(&self, kind: &'static str) {
        if let Some(Some(open)) = self.kinds().get_mut(kind) {
            open.doubtful = false;
        }
    }

    /// What follows when a claim was written, or could not be. A written one comes back through the watch.
    ///
    /// The others do not wait any longer for an object that cannot be claimed; it is tried again on its own.
    pub(crate) async fn written<K>(
        &self,
        kind: &'static str,
        object: &K,
        recorder: &Recorder,
        written: Result<(), CallError>,
    ) -> Result<Action, CallError>
    where
        K: kube::Resource<DynamicType = ()>,
    {
        let error = match written {
            Ok(()) => return Ok(Action::RequeueAfter(CLAIMING)),
            Err(error) => error,
        };
        // A hub that knows of another version says nothing about the object. One that does not answer at all ends the term
        // before long: if the term goes on, it is this object that gets no answer.
        if !error.is_conflict() {
            let key = Key::of(object);
            // The hub finds the object itself invalid or too large, or forbids it, whoever writes it.
            let refused = matches!(error.code(), Some(400 | 403 | 413 | 422));
            let give_up = |open: &mut Open| {
                let since = *open.failing.entry(key.clone()).or_insert_with(Instant::now);
                (refused || since.elapsed() >= CLAIMED_WITHIN) && open.refused.insert(key.clone())
            };
            let news = self.kinds().get_mut(kind).and_then(Option::as_mut).is_some_and(give_up);
            if news {
                let why = chain(&error);
                tracing::error!(kind, object = %key, why, "the hub does not take its status: nothing is decided about it until it is mended");
                let note =
                    format!("nothing is decided about it, since the hub does not take its status: {why}");
                recorder.record(object, EventType::Warning, Reason::StatusRefused, &note).await;
            }
        }
        Err(error)
    }

    fn kinds(&self) -> MutexGuard<'_, BTreeMap<&'static str, Option<Open>>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether no object of any kind is still to be claimed.
fn is_closed(kinds: &BTreeMap<&'static str, Option<Open>>) -> bool {
    let done = |open: &Open| open.unclaimed.len() == open.refused.len();
    kinds.values().all(|open| open.as_ref().is_some_and(done))
}

/// Who stands for what a status says: this leader, since it last changed hands or places.
pub(crate) fn reservation(
    term: &Term,
    clock: &Clock,
    last: Option<&Reservation>,
    moved: bool,
) -> Reservation {
    let epoch = term.epoch().or_else(|| last.map(|last| last.epoch)).unwrap_or_default();
    let holder = term.holder();
    match last.filter(|last| !moved && last.epoch == epoch && last.holder == holder) {
        Some(last) => last.clone(),
        None => Reservation { epoch, holder: holder.to_owned(), time: Some(clock.time()) },
    }
}

/// Who decided about an object last, as its status says: a leader and the number of its term, 0 if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claimant {
    pub(crate) epoch: i64,
    pub(crate) holder: String,
}

/// Reads who decided about an object last. An epoch that no Lease can hold is not read: no leader wrote it.
pub(crate) fn claimant(reservation: Option<&Reservation>) -> Claimant {
    let readable = reservation.filter(|reservation| is_epoch(&reservation.epoch));
    readable.map_or_else(Claimant::default, |reservation| Claimant {
        epoch: reservation.epoch,
        holder: reservation.holder.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_runtime::Term;

    fn by(epoch: i64) -> Claimant {
        claimant(Some(&Reservation { epoch, holder: "other".to_owned(), time: None }))
    }

    #[tokio::test]
    async fn nothing_waits_without_an_election() {
        let (fence, key) = (EpochFence::new(&Term::alone("me")), Key::new("d", "a"));
        fence.expect("Kind");
        assert_eq!(fence.step("Kind", &key, Some(by(0))).await, Step::Decide);
        fence.take("Kind", &Change::Listed([(key.clone(), 3)].into()), |epoch| by(*epoch));
        assert_eq!(fence.step("Kind", &key, Some(by(3))).await, Step::Decide);
    }

    #[test]
    fn an_epoch_that_no_lease_can_hold_is_not_read() {
        assert_eq!(by(i64::from(i32::MAX)).epoch, i64::from(i32::MAX));
        for nobodys in [i64::from(i32::MAX) + 1, i64::MAX, -1] {
            assert_eq!(by(nobodys), Claimant::default(), "{nobodys}");
        }
    }
}

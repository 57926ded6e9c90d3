//! A new leader makes all objects its own before it decides anything about any of them.
//!
//! Of all kinds: what an old leader may still place of one kind takes room from another. See placement for the whole
//! argument.

use portolan_api::placement::Reservation;
use portolan_runtime::{CallError, Change, Clock, Key, Next, Recorder, Term, Weight, chain};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How soon to look again while objects are still being claimed.
const CLAIMING: Duration = Duration::from_millis(250);

/// What is still to be claimed in a term; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    term: Term,
    /// By kind; nothing is known before its objects have been listed.
    kinds: Arc<Mutex<BTreeMap<&'static str, Option<Open>>>>,
}

#[derive(Debug, Default)]
struct Open {
    /// The objects that still carry an older epoch.
    unclaimed: BTreeSet<Key>,
    /// Those among them whose status the hub refuses whoever writes it. Nobody can decide about them, an older leader
    /// neither: the others need not wait for them.
    refused: BTreeSet<Key>,
}

/// What is to be done about an object before anything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: all are claimed.
    Decide,
    /// It is to be looked at again.
    Wait(Next),
    /// It is to be claimed: its status is to be written with this leader's [`reservation`], whatever else it says.
    Claim,
}

impl Claims {
    pub(crate) fn new(term: &Term) -> Self {
        Self { term: term.clone(), kinds: Arc::default() }
    }

    /// Announces a kind: nothing is decided before all its objects are claimed.
    pub(crate) fn expect(&self, kind: &'static str) {
        self.kinds().insert(kind, None);
    }

    /// Takes the first list of a kind. What is made later no older leader has read.
    pub(crate) fn take<T>(&self, kind: &'static str, change: &Change<T>, recorded: impl Fn(&T) -> i64) {
        let (Some(epoch), Change::Listed(all)) = (self.term.epoch(), change) else { return };
        if let Some(open @ None) = self.kinds().get_mut(kind) {
            let older = all.iter().filter(|(_, object)| recorded(object) < epoch);
            let unclaimed = older.map(|(key, _)| key.clone()).collect();
            *open = Some(Open { unclaimed, refused: BTreeSet::new() });
        }
    }

    /// What is to be done about an object with this epoch on record, if it is still there.
    pub(crate) fn step(&self, kind: &'static str, key: &Key, recorded: Option<i64>) -> Step {
        let Some(epoch) = self.term.epoch() else { return Step::Decide };
        if let Some(newer) = recorded.filter(|recorded| *recorded > epoch) {
            self.term.outranked(newer);
            return Step::Wait(Next::Done);
        }
        let mut kinds = self.kinds();
        if let Some(Some(open)) = kinds.get_mut(kind) {
            if recorded.is_none_or(|recorded| recorded == epoch) {
                open.unclaimed.remove(key);
                open.refused.remove(key);
            }
            if open.unclaimed.contains(key) {
                return Step::Claim;
            }
        }
        let done = |open: &Open| open.unclaimed.len() == open.refused.len();
        match kinds.values().all(|open| open.as_ref().is_some_and(done)) {
            true => Step::Decide,
            false => Step::Wait(Next::After(CLAIMING)),
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
    ) -> Result<Next, CallError>
    where
        K: kube::Resource<DynamicType = ()>,
    {
        let error = match written {
            Ok(()) => return Ok(Next::After(CLAIMING)),
            Err(error) => error,
        };
        // The hub finds the object itself invalid, whoever writes it.
        if matches!(error.code(), Some(400 | 422)) {
            let key = Key::of(object);
            let open =
                |open: &mut Option<Open>| open.as_mut().is_some_and(|open| open.refused.insert(key.clone()));
            let news = self.kinds().get_mut(kind).is_some_and(open);
            if news {
                let why = chain(&error);
                tracing::error!(kind, object = %key, why, "the hub refuses its status: nothing is decided about it until it is mended");
                let note = format!("nothing is decided about it, since the hub refuses its status: {why}");
                recorder.record(object, Weight::Warning, "StatusRefused", &note).await;
            }
        }
        Err(error)
    }

    fn kinds(&self) -> MutexGuard<'_, BTreeMap<&'static str, Option<Open>>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// The epoch of the leader that decided about an object last, 0 if none did.
pub(crate) fn epoch(reservation: Option<&Reservation>) -> i64 {
    reservation.map_or(0, |reservation| reservation.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_runtime::Term;

    fn listed(objects: &[(&str, i64)]) -> Change<i64> {
        Change::Listed(objects.iter().map(|(name, epoch)| (Key::new("d", name), *epoch)).collect())
    }

    #[test]
    fn nothing_waits_without_an_election() {
        let claims = Claims::new(&Term::alone("me"));
        claims.expect("Kind");
        assert_eq!(claims.step("Kind", &Key::new("d", "a"), Some(0)), Step::Decide);
        claims.take("Kind", &listed(&[("a", 3)]), |epoch| *epoch);
        assert_eq!(claims.step("Kind", &Key::new("d", "a"), Some(3)), Step::Decide);
    }
}

//! What this process remembers of what it did in members; all of it can be found out again.

use crate::fleet::{CopyMeta, Member};
use portolan_api::Reason;
use portolan_runtime::{Key, foreign_text};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What a member refused is tried again after this long: somebody may have mended it there. Refused again, it is left
/// alone for twice as long as before.
pub(crate) const REFUSAL_HOLDS: Duration = Duration::from_secs(30);

/// The longest time for which something that is refused again and again is left alone.
const REFUSAL_HOLDS_AT_MOST: Duration = Duration::from_secs(300);

/// A copy that still exists so long after it was deleted is held by something.
const DELETED_WITHIN: Duration = Duration::from_secs(60);

/// What was applied or deleted comes back through the watch within this time; until then it is not done again.
pub(crate) const CACHE_LAG_GRACE: Duration = Duration::from_secs(2);

/// A watch that is slow shows what was done within this time; until then nobody may say that it was not. After that, what
/// it shows counts: the member may have been restored to an earlier state.
const CACHE_LAG_LIMIT: Duration = Duration::from_secs(60);

/// The longest time after a dry run promised what was refused then all the same. What is decided goes there and back
/// each time, so that it must become rare.
const BROKEN_PROMISE_HOLDS_AT_MOST: Duration = Duration::from_secs(3600);

/// A member that failed so often is tried again after this long, if another one takes the workload. If it fails again, it is
/// left alone for twice as long as before.
const ERRORS_KEEP_AWAY: Duration = Duration::from_secs(120);

/// The longest time for which a member that fails again and again is left alone, if another one takes the workload.
const ERRORS_KEEP_AWAY_AT_MOST: Duration = Duration::from_secs(480);

/// So many failed tries in a row are reported in the status.
const ERRORS_REPORTED: u32 = 3;

/// How soon a request that failed is tried again, at first and at most.
const RETRY_AFTER: Duration = Duration::from_millis(500);
const RETRY_AT_MOST: Duration = Duration::from_secs(30);

/// By object of the hub and cluster.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many rounds were begun, of any object.
    rounds: u64,
    objects: BTreeMap<Key, Remembered>,
    /// How many pieces of work are under way, by object and cluster, through whichever connection.
    running: BTreeMap<(Key, String), u32>,
}

#[derive(Debug, Default)]
struct Remembered {
    round: u64,
    places: BTreeMap<String, Place>,
}

/// What was done about one object in one cluster.
#[derive(Debug, Default)]
struct Place {
    applied: Option<Applied>,
    /// The uid of the copy that was applied, once the watch has shown it.
    uid: Option<String>,
    /// When the member last said that there is no copy, if none was applied or shown since.
    absent: Option<Instant>,
    deleted: Option<Deleted>,
    failure: Option<Failure>,
    put_off: Option<PutOff>,
    /// What users were told last.
    reported: Option<String>,
}

/// A decision about an object: work that rests on an earlier one and has not begun is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round(u64);

/// What was applied, and what that made of the copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) digest: String,
    pub(crate) version: String,
    /// Nothing for kinds that do not count their changes.
    pub(crate) generation: i64,
    pub(crate) at: Option<Instant>,
    /// Whether the watch has shown that there is a copy.
    pub(crate) shown: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Deleted {
    uid: String,
    at: Instant,
    /// When it was deleted for the first time.
    first: Instant,
}

/// What a member refused to do about a copy, other than to take it.
#[derive(Clone, Debug)]
struct PutOff {
    what: String,
    at: Instant,
    /// How often in a row.
    times: u32,
}

/// What was to be done in a member could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The digest of what was to be applied, without numbers of replicas: anything else is tried at once.
    pub(crate) template: String,
    pub(crate) kind: FailureKind,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    at: Instant,
    /// For how long it is not tried again.
    holds: Duration,
    /// For how long other clusters are tried before this one.
    away: Duration,
    /// Whether the member said since, in a dry run, that it would do it now.
    promised: bool,
    /// How often in a row.
    times: u32,
    /// Whether the cluster was closed since.
    pub(crate) while_closed: bool,
}

/// Who stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The member refuses it, and will again: other clusters may take it.
    RefusedByMember,
    /// Something is wrong in the hub, which is the same for all members.
    InvalidInHub,
    /// The member did not answer, or answered with a failure of its own: the next try may succeed.
    MemberError,
}

impl Failure {
    /// How much longer it is not tried again.
    pub(crate) fn left(&self) -> Duration {
        self.holds.saturating_sub(self.at.elapsed())
    }

    /// Whether it still holds for this connection to the member: a later one is tried at once.
    pub(crate) fn holds_in(&self, member: &Member) -> bool {
        self.at >= member.since && !self.left().is_zero()
    }

    /// Whether other clusters are tried before this one.
    pub(crate) fn keeps_away(&self) -> bool {
        !self.promised && !self.away_left().is_zero()
    }

    /// Whether other clusters were tried before this one until some time ago, and nobody knows whether it would do it now.
    pub(crate) fn is_doubtful(&self) -> bool {
        !self.promised && !self.away.is_zero() && self.away_left().is_zero()
    }

    fn away_left(&self) -> Duration {
        self.away.saturating_sub(self.at.elapsed())
    }

    /// Whether users are to know of it: a single request that failed is none of their business.
    pub(crate) fn is_reported(&self) -> bool {
        !self.promised && (self.kind != FailureKind::MemberError || self.times >= ERRORS_REPORTED)
    }

    /// For how long it holds if it is refused again.
    fn holds_next(&self) -> Duration {
        let at_most = if self.promised { BROKEN_PROMISE_HOLDS_AT_MOST } else { REFUSAL_HOLDS_AT_MOST };
        (self.holds * 2).min(at_most).max(self.holds)
    }

    /// For how long other clusters are tried before this one if it has failed so often in a row.
    fn away_next(&self, times: u32) -> Duration {
        if times < ERRORS_REPORTED {
            Duration::ZERO
        } else if self.away_left().is_zero() {
            (self.away * 2).clamp(ERRORS_KEEP_AWAY, ERRORS_KEEP_AWAY_AT_MOST)
        } else {
            self.away
        }
    }

    /// When to try again what failed.
    pub(super) fn retry_after(&self) -> Duration {
        retry_after(self.times)
    }
}

/// When to try again what failed so often in a row.
fn retry_after(times: u32) -> Duration {
    let doubled = times.saturating_sub(1).min(10);
    RETRY_AFTER.saturating_mul(1 << doubled).min(RETRY_AT_MOST)
}

impl Memory {
    /// Begins a decision about an object.
    pub(crate) fn begin(&self, key: &Key) -> Round {
        let mut state = self.state();
        state.rounds += 1;
        let round = state.rounds;
        state.objects.entry(key.clone()).or_default().round = round;
        Round(round)
    }

    /// Whether no later decision about the object was begun.
    pub(crate) fn is_current(&self, key: &Key, round: Round) -> bool {
        self.state().objects.get(key).is_some_and(|object| object.round == round.0)
    }

    /// Counts work about an object that has begun in a cluster.
    pub(super) fn start(&self, key: &Key, cluster: &str) {
        *self.state().running.entry((key.clone(), cluster.to_owned())).or_default() += 1;
    }

    /// Counts work about an object that has ended, or was given up.
    pub(super) fn end(&self, key: &Key, cluster: &str) {
        let (mut state, place) = (self.state(), (key.clone(), cluster.to_owned()));
        if let Some(count) = state.running.get_mut(&place) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                state.running.remove(&place);
            }
        }
    }

    /// Whether work about an object is under way in a cluster.
    pub(super) fn is_running(&self, key: &Key, cluster: &str) -> bool {
        self.state().running.contains_key(&(key.clone(), cluster.to_owned()))
    }

    /// Whether what an index shows of a copy is older than what was done: a later state of it was made, or it was deleted.
    /// Another copy than the one that was applied is not, nor is one that the watch still shows after much time.
    pub(crate) fn is_outdated(&self, key: &Key, cluster: &str, seen: &CopyMeta) -> bool {
        self.is_being_deleted(key, cluster, &seen.uid) || self.is_behind(key, cluster, seen)
    }

    /// Whether a later state than this one was applied, which the watch will show.
    fn is_behind(&self, key: &Key, cluster: &str, seen: &CopyMeta) -> bool {
        let mut state = self.state();
        let place = state.objects.get_mut(key).and_then(|object| object.places.get_mut(cluster));
        let Some((applied, uid)) = place.and_then(|place| Some((place.applied.as_ref()?, &mut place.uid)))
        else {
            return false;
        };
        let is_older = applied.generation > seen.generation;
        let is_another = uid.as_ref().is_some_and(|uid| *uid != seen.uid);
        let is_due = applied.at.is_some_and(|at| at.elapsed() < CACHE_LAG_LIMIT);
        let behind = is_older && !is_another && is_due;
        if !behind && uid.as_ref() != Some(&seen.uid) {
            *uid = Some(seen.uid.clone());
        }
        behind
    }

    /// What was applied last in a cluster.
    pub(crate) fn applied(&self, key: &Key, cluster: &str) -> Option<Applied> {
        self.read(key, cluster, |place| place.applied.clone())
    }

    /// Whether the version that was seen is what came of applying exactly this.
    pub(crate) fn made(&self, key: &Key, cluster: &str, digest: &str, version: &str) -> bool {
        self.applied(key, cluster)
            .is_some_and(|applied| applied.digest == digest && applied.version == version)
    }

    /// Whether a copy was created in a member that the watch does not show yet; `shows` tells whether it does now.
    pub(crate) fn is_awaited(&self, member: &Member, key: &Key, shows: bool) -> bool {
        self.awaits(&member.name, member.since, key, shows)
    }

    fn awaits(&self, cluster: &str, connected: Instant, key: &Key, shows: bool) -> bool {
        let mut state = self.state();
        let Some(place) = state.objects.get_mut(key).and_then(|object| object.places.get_mut(cluster)) else {
            return false;
        };
        place.absent = place.absent.filter(|_| !shows);
        let Some(applied) = &mut place.applied else { return false };
        applied.shown |= shows;
        // A later connection has begun with all that exists.
        let since = applied.at.filter(|at| *at >= connected);
        !applied.shown && since.is_some_and(|at| at.elapsed() < CACHE_LAG_LIMIT)
    }

    /// Remembers what came of applying a copy.
    pub(super) fn set_applied(&self, key: &Key, cluster: &str, applied: Applied) {
        self.write(key, cluster, |place| {
            if !applied.shown {
                // It was created: nobody has seen it yet.
                place.uid = None;
            }
            place.applied = Some(applied);
            place.absent = None;
            place.failure = None;
        });
    }

    /// A copy may exist that the watch does not show yet: nobody answered whether it was created, or it existed before.
    /// It is not known what it is like, so that it is applied again.
    pub(super) fn may_have_created(&self, key: &Key, cluster: &str) {
        let applied = Applied { at: Some(Instant::now()), ..Applied::default() };
        self.write(key, cluster, |place| (place.applied, place.absent) = (Some(applied), None));
    }

    /// Remembers that a member was asked for the copy by its name, and has none.
    pub(crate) fn set_absent(&self, key: &Key, cluster: &str) {
        self.write(key, cluster, |place| place.absent = Some(Instant::now()));
    }

    /// Whether a member has said through this connection that it has no copy, and none came since.
    pub(crate) fn is_absent(&self, member: &Member, key: &Key) -> bool {
        self.was_absent(&member.name, member.since, key)
    }

    fn was_absent(&self, cluster: &str, connected: Instant, key: &Key) -> bool {
        self.read(key, cluster, |place| place.absent).is_some_and(|at| at >= connected)
    }

    /// Whether the copy of this uid was deleted a moment ago.
    pub(super) fn is_being_deleted(&self, key: &Key, cluster: &str, uid: &str) -> bool {
        let deleted = self.read(key, cluster, |place| place.deleted.clone());
        deleted.is_some_and(|deleted| deleted.uid == uid && deleted.at.elapsed() < CACHE_LAG_GRACE)
    }

    /// Remembers that the copy of this uid was deleted.
    pub(super) fn set_deleted(&self, key: &Key, cluster: &str, uid: &str) {
        self.write(key, cluster, |place| {
            place.applied = None;
            let first = place.deleted.as_ref().filter(|before| before.uid == uid).map(|before| before.first);
            let at = Instant::now();
            place.deleted = Some(Deleted { uid: uid.to_owned(), at, first: first.unwrap_or(at) });
        });
    }

    /// Whether the copy of this uid was deleted long ago and still exists.
    pub(super) fn is_deletion_stuck(&self, key: &Key, cluster: &str, uid: &str) -> bool {
        let deleted = self.read(key, cluster, |place| place.deleted.clone());
        deleted.is_some_and(|deleted| deleted.uid == uid && deleted.first.elapsed() >= DELETED_WITHIN)
    }

    /// What could not be done last in a cluster.
    pub(crate) fn failure(&self, key: &Key, cluster: &str) -> Option<Failure> {
        self.read(key, cluster, |place| place.failure.clone())
    }

    /// What could not be done last, by cluster.
    pub(crate) fn failures(&self, key: &Key) -> BTreeMap<String, Failure> {
        let state = self.state();
        let places = state.objects.get(key).into_iter().flat_map(|object| &object.places);
        places.filter_map(|(cluster, place)| Some((cluster.clone(), place.failure.clone()?))).collect()
    }

    /// Remembers that a member refuses what is to be applied, or that it cannot be given; it is not tried again for a
    /// while.
    pub(crate) fn refuse(
        &self,
        key: &Key,
        cluster: &str,
        template: &str,
        kind: FailureKind,
        (reason, message): (Reason, String),
    ) {
        let message = foreign_text(&message);
        tracing::warn!(cluster, object = %key, %reason, message, "a member refuses a copy");
        self.write(key, cluster, |place| {
            let before = place.failure.take();
            let again = before.filter(|before| before.kind == kind && before.template == template);
            let holds = again.map_or(REFUSAL_HOLDS, |before| before.holds_next());
            let is_of_member = kind == FailureKind::RefusedByMember;
            place.failure = Some(Failure {
                template: template.to_owned(),
                kind,
                reason,
                message,
                at: Instant::now(),
                holds,
                away: if is_of_member { holds } else { Duration::ZERO },
                promised: false,
                times: 1,
                while_closed: false,
            });
        });
    }

    /// Remembers that a member could not be asked, or failed. A refusal of the same that still holds says more, and stays.
    pub(crate) fn fail(&self, key: &Key, cluster: &str, template: &str, why: &str) -> Duration {
        let (kind, reason) = (FailureKind::MemberError, Reason::MemberError);
        self.write(key, cluster, |place| {
            let before = place.failure.take();
            let holds = |before: &&Failure| before.template == template && !before.left().is_zero();
            if let Some(before) = before.as_ref().filter(holds) {
                let wait = before.left();
                place.failure = Some(before.clone());
                return wait;
            }
            let again = before.filter(|before| before.kind == kind && before.template == template);
            let times = again.as_ref().map_or(1, |before| before.times.saturating_add(1));
            let failure = Failure {
                template: template.to_owned(),
                kind,
                reason,
                message: foreign_text(why),
                at: Instant::now(),
                holds: Duration::ZERO,
                away: again.map_or(Duration::ZERO, |before| before.away_next(times)),
                promised: false,
                times,
                while_closed: false,
            };
            let wait = failure.retry_after();
            place.failure = Some(failure);
            wait
        })
    }

    /// Remembers that a member could not say whether it would do now what it did not do before: it is asked again after
    /// this long.
    pub(super) fn postpone(&self, key: &Key, cluster: &str) -> Duration {
        self.write(key, cluster, |place| {
            let Some(failure) = &mut place.failure else { return RETRY_AT_MOST };
            if failure.kind == FailureKind::MemberError {
                failure.away = failure.away_next(failure.times);
            }
            failure.at = Instant::now();
            failure.away
        })
    }

    /// Remembers that a member would do now what it did not do before. How often it did not is not forgotten until it has.
    pub(super) fn set_promised(&self, key: &Key, cluster: &str) {
        self.write(key, cluster, |place| {
            if let Some(failure) = &mut place.failure {
                failure.promised = true;
            }
        });
    }

    /// How much longer a member is not asked to do what it refused through this connection.
    pub(super) fn put_off(&self, member: &Member, key: &Key, what: &str) -> Option<Duration> {
        let before = self.read(key, &member.name, |place| place.put_off.clone())?;
        let left = retry_after(before.times).saturating_sub(before.at.elapsed());
        (before.what == what && before.at >= member.since && !left.is_zero()).then_some(left)
    }

    /// Remembers that a member refused to do something about a copy.
    pub(super) fn set_failed(&self, key: &Key, cluster: &str, what: &str) {
        self.write(key, cluster, |place| {
            let again = place.put_off.take().filter(|before| before.what == what);
            let times = again.map_or(1, |before| before.times.saturating_add(1));
            place.put_off = Some(PutOff { what: what.to_owned(), at: Instant::now(), times });
        });
    }

    /// Remembers that a member did what it was asked to.
    pub(super) fn set_done(&self, key: &Key, cluster: &str) {
        self.write(key, cluster, |place| place.put_off = None);
    }

    /// Forgets that a member could not be asked, or failed.
    pub(super) fn answered(&self, key: &Key, cluster: &str) {
        self.write(key, cluster, |place| {
            place.failure.take_if(|failure| failure.kind == FailureKind::MemberError && !failure.promised);
        });
    }

    /// Remembers that a cluster was closed since it refused.
    pub(crate) fn set_closed(&self, key: &Key, cluster: &str) {
        self.write(key, cluster, |place| {
            if let Some(failure) = &mut place.failure {
                failure.while_closed = true;
            }
        });
    }

    /// Forgets what one member refused of an object.
    pub(crate) fn forgive_in(&self, key: &Key, cluster: &str) {
        self.write(key, cluster, |place| place.failure = None);
    }

    /// Forgets what members refused of an object.
    pub(crate) fn forgive(&self, key: &Key) {
        for place in self.state().objects.get_mut(key).into_iter().flat_map(|each| each.places.values_mut()) {
            place.failure = None;
            place.reported = None;
        }
    }

    /// When the first of the members that refused an object, or failed too often, is tried again.
    pub(crate) fn refusals_end(&self, key: &Key) -> Option<Duration> {
        let failures = self.failures(key).into_values();
        // One that has ended was tried again, or its cluster is not to hold anything.
        failures.map(|failure| failure.left().max(failure.away_left())).filter(|left| !left.is_zero()).min()
    }

    /// Whether users were not told this last of the object in the cluster; from now on they were.
    pub(crate) fn is_news(&self, key: &Key, cluster: &str, note: &str) -> bool {
        self.write(key, cluster, |place| {
            place.reported.replace(note.to_owned()).is_none_or(|before| before != note)
        })
    }

    /// Forgets everything about an object.
    pub(crate) fn forget(&self, key: &Key) {
        self.state().objects.remove(key);
    }

    fn read<T>(&self, key: &Key, cluster: &str, read: impl FnOnce(&Place) -> Option<T>) -> Option<T> {
        self.state().objects.get(key)?.places.get(cluster).and_then(read)
    }

    fn write<T>(&self, key: &Key, cluster: &str, write: impl FnOnce(&mut Place) -> T) -> T {
        let mut state = self.state();
        let places = &mut state.objects.entry(key.clone()).or_default().places;
        match places.get_mut(cluster) {
            Some(place) => write(place),
            None => write(places.entry(cluster.to_owned()).or_default()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

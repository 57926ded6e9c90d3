//! What a process remembers of the copies that it made in members.

use crate::copy::{self, Kind, Put};
use crate::fleet::{Fleet, JobFacts, Mark, Member, ServiceFacts};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Service;
use portolan_runtime::{CallError, Index, Key, Next, Term, chain, foreign_text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What a member refused is tried again after this long: somebody may have mended it there. Refused for the same reason
/// again, it is left alone for twice as long as before.
pub(crate) const REFUSAL_HOLDS: Duration = Duration::from_secs(30);

/// The longest time for which something that is refused again and again is left alone.
const REFUSAL_HOLDS_AT_MOST: Duration = Duration::from_secs(600);

/// What we applied comes back through the watch within this time; until then we do not apply it again.
pub(crate) const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// A watch that is slow shows what we made within this time; until then nobody may say that it is not there.
const SEEN_AT_LAST: Duration = Duration::from_secs(60);

/// What a member could not do is tried again after this long.
pub(crate) const FAILING_AGAIN: Duration = Duration::from_secs(5);

/// The reason that is told of a member that could not be given what was decided.
pub(crate) const FAILING: &str = "NotApplied";

/// How often to look whether a member that holds up a deletion is back; its return is told anyway.
const AWAITING_RETURN: Duration = Duration::from_secs(30);

/// How often to look whether copies are gone; that they are is told anyway.
pub(crate) const AWAITING_DELETION: Duration = Duration::from_secs(5);

/// A kind of which members hold copies that have the name of what they belong to.
pub(crate) trait Copied: Kind {
    /// What is kept of a copy.
    type Facts;

    /// The copies in a member.
    fn of(member: &Member) -> &Index<Self::Facts>;

    /// Whose a copy is.
    fn mark(facts: &Self::Facts) -> &Mark;
}

impl Copied for Service {
    type Facts = ServiceFacts;

    fn of(member: &Member) -> &Index<ServiceFacts> {
        &member.services
    }

    fn mark(facts: &ServiceFacts) -> &Mark {
        &facts.mark
    }
}

impl Copied for Job {
    type Facts = JobFacts;

    fn of(member: &Member) -> &Index<JobFacts> {
        &member.jobs
    }

    fn mark(facts: &JobFacts) -> &Mark {
        &facts.mark
    }
}

/// Where copies of what is being deleted still are.
#[derive(Default)]
pub(crate) struct Remaining {
    /// How many members still had one.
    pub(crate) left: usize,
    /// The members that may have one and cannot be asked.
    pub(crate) away: Vec<String>,
    /// The members that do not let theirs be deleted, and why.
    pub(crate) failing: BTreeMap<String, String>,
    /// The members that have none.
    pub(crate) clear: Vec<Arc<Member>>,
}

impl Remaining {
    /// Counts what could not be done in a member: it is told, and tried again. Only the end of the term is an error of all.
    pub(crate) fn fail(&mut self, member: &Member, error: CallError) -> Result<(), CallError> {
        self.left += 1;
        self.failing.insert(member.name.clone(), trouble(member, error)?);
        Ok(())
    }

    /// Whether users are to be told what holds the deletion up.
    pub(crate) fn is_held_up(&self) -> bool {
        !self.failing.is_empty() || (self.left == 0 && !self.away.is_empty())
    }

    /// When to look again; nothing if no copy is left anywhere.
    pub(crate) fn next(&self) -> Option<Next> {
        if !self.failing.is_empty() {
            return Some(Next::After(AWAITING_RETURN));
        }
        match (self.left, self.away.is_empty()) {
            (0, true) => None,
            (0, false) => Some(Next::After(AWAITING_RETURN)),
            _ => Some(Next::After(AWAITING_DELETION)),
        }
    }
}

/// An object to be applied in a member, and its digest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Desired {
    pub(crate) object: Value,
    pub(crate) digest: String,
}

/// What came of making one member hold a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It holds the copy as decided, or is getting it.
    AsDecided,
    /// It was given the copy a moment ago, and the watch does not show it yet.
    NotSeenYet,
    /// It refused the copy just now.
    Refused,
}

/// What a process remembers of what it did in members; all of it can be found out again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    applied: Mutex<BTreeMap<(String, Key), Applied>>,
    failures: Mutex<BTreeMap<(String, Key), Failure>>,
    /// What could not be done last in a member, by its own words.
    troubles: Mutex<BTreeMap<(String, Key), String>>,
    /// What users were told last of an object in a cluster.
    told: Mutex<BTreeMap<(String, Key), String>>,
}

#[derive(Debug)]
struct Applied {
    digest: String,
    version: String,
    at: Instant,
    /// Whether the watch has shown that there is a copy.
    shown: bool,
}

/// A member refused what was to be applied, and will again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    digest: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    at: Instant,
    /// For how long it is not tried again.
    holds: Duration,
}

impl Failure {
    /// How long it still holds for this connection to the member; a later one is tried anew.
    fn left(&self, member: &Member) -> Option<Duration> {
        let left = self.holds.saturating_sub(self.at.elapsed());
        (self.at >= member.since && !left.is_zero()).then_some(left)
    }
}

impl Memory {
    /// The refusal of exactly this, if there was one.
    pub(crate) fn failure(&self, cluster: &str, key: &Key, digest: &str) -> Option<Failure> {
        let failures = lock(&self.failures);
        failures.get(&(cluster.to_owned(), key.clone())).filter(|each| each.digest == digest).cloned()
    }

    /// What a member refused of an object not long ago, whatever it was, and how long that still holds.
    pub(crate) fn refusal(&self, member: &Member, key: &Key) -> Option<(Failure, Duration)> {
        let failures = lock(&self.failures);
        let failure = failures.get(&(member.name.clone(), key.clone()))?;
        failure.left(member).map(|left| (failure.clone(), left))
    }

    /// Forgets what members refused of an object.
    pub(crate) fn forgive(&self, key: &Key) {
        lock(&self.failures).retain(|(_, each), _| each != key);
        lock(&self.told).retain(|(_, each), _| each != key);
    }

    /// Forgets what one member refused of an object.
    pub(crate) fn forgive_there(&self, cluster: &str, key: &Key) {
        lock(&self.failures).remove(&(cluster.to_owned(), key.clone()));
    }

    /// Whether users were not told this last of the object in the cluster; from now on they were.
    pub(crate) fn is_news(&self, cluster: &str, key: &Key, note: &str) -> bool {
        let before = lock(&self.told).insert((cluster.to_owned(), key.clone()), note.to_owned());
        before.as_deref() != Some(note)
    }

    /// Whether the version that was seen is what came of applying exactly this.
    pub(crate) fn made(&self, cluster: &str, key: &Key, digest: &str, version: &str) -> bool {
        let applied = lock(&self.applied);
        let applied = applied.get(&(cluster.to_owned(), key.clone()));
        applied.is_some_and(|each| each.digest == digest && each.version == version)
    }

    /// Whether a copy was made in a member, and the watch does not show it yet; it is told whether the watch does.
    pub(crate) fn is_awaited(&self, member: &Member, key: &Key, shows: bool) -> bool {
        self.awaits(&member.name, member.since, key, shows)
    }

    fn awaits(&self, cluster: &str, connected: Instant, key: &Key, shows: bool) -> bool {
        let mut applied = lock(&self.applied);
        let Some(applied) = applied.get_mut(&(cluster.to_owned(), key.clone())) else { return false };
        applied.shown |= shows;
        // A later connection has begun with all that is there.
        !applied.shown && applied.at >= connected && applied.at.elapsed() < SEEN_AT_LAST
    }

    /// Forgets everything about an object.
    pub(crate) fn forget(&self, key: &Key) {
        lock(&self.applied).retain(|(_, each), _| each != key);
        lock(&self.troubles).retain(|(_, each), _| each != key);
        self.forgive(key);
    }

    /// Keeps what came of one member to that member: what it could not do is remembered for the status, and the others go
    /// on. Only the end of the term is an error of all.
    pub(crate) fn kept<T>(
        &self,
        member: &Member,
        key: &Key,
        result: Result<T, CallError>,
    ) -> Result<Option<T>, CallError> {
        let place = (member.name.clone(), key.clone());
        match result {
            Ok(done) => {
                lock(&self.troubles).remove(&place);
                Ok(Some(done))
            }
            Err(error) => {
                let why = trouble(member, error)?;
                lock(&self.troubles).insert(place, why);
                Ok(None)
            }
        }
    }

    /// What could not be done last for an object, by cluster.
    pub(crate) fn troubles(&self, key: &Key) -> BTreeMap<String, String> {
        let troubles = lock(&self.troubles);
        let own = troubles.iter().filter(|((_, each), _)| each == key);
        own.map(|((cluster, _), why)| (cluster.clone(), why.clone())).collect()
    }

    /// Applies a copy in place of the one that was seen, unless that was done a moment ago or refused not long ago.
    pub(crate) async fn apply<K: Kind>(
        &self,
        term: &Term,
        member: &Member,
        key: &Key,
        seen: Option<&Mark>,
        desired: &Desired,
    ) -> Result<Outcome, CallError> {
        let place = (member.name.clone(), key.clone());
        let holds_off =
            |failure: &Failure| failure.digest == desired.digest && failure.left(member).is_some();
        if lock(&self.failures).get(&place).is_some_and(holds_off) {
            return Ok(Outcome::AsDecided);
        }
        let on_its_way =
            |applied: &Applied| applied.digest == desired.digest && applied.at.elapsed() < SEEN_WITHIN;
        if lock(&self.applied).get(&place).is_some_and(on_its_way) {
            return Ok(Outcome::NotSeenYet);
        }
        if is_superseded(term, member, key, seen).await {
            return Ok(Outcome::NotSeenYet);
        }
        let put = copy::put::<K>(term, member, &desired.object, seen.map(Mark::sight)).await;
        let not_answered = put.as_ref().is_err_and(|error| error.code().is_none());
        if seen.is_none() && (not_answered || matches!(put, Ok(Put::Outdated))) {
            self.may_have_made(place.clone());
        }
        match put? {
            Put::Applied(applied) => {
                let version = applied.meta().resource_version.clone().unwrap_or_default();
                lock(&self.failures).remove(&place);
                let (digest, at, shown) = (desired.digest.clone(), Instant::now(), seen.is_some());
                lock(&self.applied).insert(place, Applied { digest, version, at, shown });
                Ok(Outcome::AsDecided)
            }
            Put::Outdated => Ok(Outcome::NotSeenYet),
            Put::Taken(message) => Ok(self.refused(place, desired, "NameTaken", message)),
            Put::Refused(message) => Ok(self.refused(place, desired, "Refused", message)),
        }
    }

    /// There may be a copy that the watch does not show yet: nobody answered whether it was made, or it was there before.
    /// It is not known what it is like, so that it is applied again.
    fn may_have_made(&self, place: (String, Key)) {
        let (digest, version) = (String::new(), String::new());
        lock(&self.applied).insert(place, Applied { digest, version, at: Instant::now(), shown: false });
    }

    /// Deletes a copy that still is as it was seen.
    pub(crate) async fn delete<K: Kind>(
        &self,
        term: &Term,
        member: &Member,
        key: &Key,
        seen: &Mark,
    ) -> Result<(), CallError> {
        if is_superseded(term, member, key, Some(seen)).await {
            return Ok(());
        }
        lock(&self.applied).remove(&(member.name.clone(), key.clone()));
        copy::take_away::<K>(term, member, key, seen.sight()).await
    }

    /// Deletes all copies of what is being deleted, with this uid; answers what is left of them. A member that is away
    /// and has one, by what was seen or by the record, holds the deletion up until it returns: no copy is orphaned.
    pub(crate) async fn withdraw<K: Copied>(
        &self,
        term: &Term,
        fleet: &Fleet,
        key: &Key,
        uid: &str,
        on_record: impl Fn(&str) -> bool,
    ) -> Result<Remaining, CallError> {
        let mut remaining = Remaining::default();
        for (name, _) in fleet.clusters.all() {
            let member = fleet.member(&name.name);
            let copy = member.as_ref().and_then(|member| K::of(member).get(key));
            let copy = copy.filter(|copy| K::mark(copy).is_of(uid));
            let asked = member.filter(|member| member.reach.answers() && K::of(member).synced());
            match (asked, copy) {
                (Some(member), Some(copy)) => {
                    match self.delete::<K>(term, &member, key, K::mark(&copy)).await {
                        Ok(()) => remaining.left += 1,
                        Err(error) => remaining.fail(&member, error)?,
                    }
                }
                (Some(member), None) => remaining.clear.push(member),
                (None, copy) => {
                    let held = copy.is_some() || on_record(&name.name);
                    remaining.away.extend(held.then_some(name.name));
                }
            }
        }
        Ok(remaining)
    }

    /// Deletes copies of this name that belong to nothing in the hub any more; answers when to look again. A member that
    /// does not let go of one holds up nothing else.
    pub(crate) async fn sweep<K: Copied>(
        &self,
        term: &Term,
        fleet: &Fleet,
        key: &Key,
        uid: Option<&str>,
    ) -> Result<Next, CallError> {
        if uid.is_none() {
            self.forget(key);
        }
        let mut next = Next::Done;
        for (name, _) in fleet.clusters.all() {
            let member = fleet.member(&name.name).filter(|member| member.reach.answers());
            let Some(member) = member else { continue };
            let stray = K::of(&member).get(key);
            let may_go = |mark: &Mark| mark.is_stray(uid) && fleet.may_sweep(&member, &K::kind(&()), mark);
            if let Some(stray) = stray.filter(|copy| may_go(K::mark(copy))) {
                let deleted = self.delete::<K>(term, &member, key, K::mark(&stray)).await;
                if let Err(error) = deleted {
                    let why = trouble(&member, error)?;
                    let (cluster, kind) = (&member.name, K::kind(&()));
                    tracing::warn!(cluster, %kind, object = %key, why, "a copy of nothing in the hub stays");
                    next = Next::After(AWAITING_RETURN);
                }
            }
        }
        Ok(next)
    }

    /// A member cannot be given what is to be applied; it is not tried again for a while.
    pub(crate) fn refuse(
        &self,
        member: &Member,
        key: &Key,
        desired: &Desired,
        reason: &'static str,
        message: String,
    ) -> Outcome {
        self.refused((member.name.clone(), key.clone()), desired, reason, message)
    }

    fn refused(
        &self,
        place: (String, Key),
        desired: &Desired,
        reason: &'static str,
        message: String,
    ) -> Outcome {
        tracing::warn!(cluster = place.0, object = %place.1, reason, message, "a member refuses a copy");
        let (digest, at) = (desired.digest.clone(), Instant::now());
        let mut failures = lock(&self.failures);
        let again = failures.get(&place).filter(|before| before.reason == reason);
        let holds = again.map_or(REFUSAL_HOLDS, |before| (before.holds * 2).min(REFUSAL_HOLDS_AT_MOST));
        failures.insert(place, Failure { digest, reason, message, at, holds });
        Outcome::Refused
    }
}

/// What a member could not do, in short; the end of the term is no fault of a member.
fn trouble(member: &Member, error: CallError) -> Result<String, CallError> {
    if matches!(error, CallError::NotLeading { .. }) {
        return Err(error);
    }
    let why = foreign_text(&chain(&error));
    tracing::warn!(cluster = member.name, why, "a member cannot be given what was decided");
    Ok(why)
}

/// The earlier of two times to look again.
pub(crate) fn earlier(one: Next, other: Next) -> Next {
    match (one, other) {
        (Next::After(one), Next::After(other)) => Next::After(one.min(other)),
        (Next::Done, next) | (next, Next::Done) => next,
    }
}

/// Whether a later leader may have been at a copy already: then it is left alone, and looked at again.
///
/// A greater epoch on a copy is a reason to ask the hub's Lease, no more: whoever may change the copy can write it. If the
/// Lease still names this leader, the copy is applied or deleted as if its epoch were not there; the version that was
/// seen goes along as always.
pub(crate) async fn is_superseded(term: &Term, member: &Member, key: &Key, seen: Option<&Mark>) -> bool {
    let (Some(theirs), Some(ours)) = (seen.and_then(|seen| seen.epoch), term.epoch()) else { return false };
    if theirs <= ours {
        return false;
    }
    let leads = term.confirm().await;
    if leads {
        let cluster = &member.name;
        tracing::warn!(cluster, object = %key, theirs, ours, "a copy has the epoch of no leader: it is set back");
    }
    !leads
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_made_is_awaited_until_it_is_shown_or_much_time_has_passed() {
        let (memory, key, connected) = (Memory::default(), Key::cluster("job"), Instant::now());
        let made = || memory.may_have_made(("m1".to_owned(), key.clone()));
        let awaits = |shows| memory.awaits("m1", connected, &key, shows);
        assert!(!awaits(false), "nothing was made");
        made();
        assert!(awaits(false) && !awaits(true), "the watch shows it");
        assert!(!awaits(false), "it was there, and is gone");
        made();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(
            !memory.awaits("m1", Instant::now(), &key, false),
            "what a later connection has not listed is gone"
        );
        assert!(awaits(false));
        tokio::time::sleep(SEEN_AT_LAST).await;
        assert!(!awaits(false));
    }
}

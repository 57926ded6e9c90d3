//! The links between parties and clusters: alive, cut, or lossy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portolan_runtime::{Clock, Seed};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::fault::{self, CrashPoint, Fault, FaultPlan};
use super::hostile::{HostileAnswer, HostileRule};
use super::log::EventLog;
use super::partial::{FaultAnswer, PartialFault};
use super::requests::Asked;

/// How long a silent connection is waited for.
pub(super) const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Stands for all parties.
pub(super) const EVERYBODY: &str = "everybody";
/// How long a delayed chunk of a watch is held up at most.
const LONGEST_DELAY_MS: u32 = 10_000;

#[derive(Default)]
struct Party {
    incarnation: u64,
    crashed: bool,
    requests: u64,
}

struct State {
    parties: BTreeMap<String, Party>,
    cuts: BTreeSet<(String, String)>,
    random: BTreeMap<(String, String), ChaCha8Rng>,
    faults_stopped: bool,
    /// By name.
    partial: BTreeMap<String, PartialFault>,
    /// By cluster.
    hostile: BTreeMap<String, Vec<HostileRule>>,
    /// How often the watches of a party in a cluster were ended.
    watches_ended: BTreeMap<(String, String), u64>,
    /// From and to, both ways.
    round_trips: BTreeMap<(String, String), Duration>,
}

/// All links of a world.
pub(super) struct Links {
    plan: FaultPlan,
    clock: Clock,
    seed: Seed,
    log: EventLog,
    latency: (Duration, Duration),
    started: Instant,
    state: Mutex<State>,
    changed: Notify,
}

/// The link is down for good or for too long.
#[derive(Debug, thiserror::Error)]
#[error("{party} cannot reach cluster {cluster}: no answer within {CONNECTION_TIMEOUT:?}")]
pub(super) struct Unreachable {
    party: String,
    cluster: String,
}

impl Links {
    pub(super) fn new(
        plan: FaultPlan,
        clock: Clock,
        seed: Seed,
        log: EventLog,
        latency: (Duration, Duration),
    ) -> Self {
        let partial = plan.partial.iter().map(|fault| (fault.name.clone(), fault.clone())).collect();
        Self {
            plan,
            clock,
            seed,
            log,
            latency,
            started: Instant::now(),
            state: Mutex::new(State {
                parties: BTreeMap::new(),
                cuts: BTreeSet::new(),
                random: BTreeMap::new(),
                faults_stopped: false,
                partial,
                hostile: BTreeMap::new(),
                watches_ended: BTreeMap::new(),
                round_trips: BTreeMap::new(),
            }),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, cluster: &str, text: &str) {
        self.log.record(self.clock.now(), cluster, text, &[]);
    }

    pub(super) fn cut(&self, party: &str, cluster: &str) {
        self.note(cluster, &format!("cut off from {party}"));
        self.state().cuts.insert((party.to_owned(), cluster.to_owned()));
        self.changed.notify_waiters();
    }

    pub(super) fn join(&self, party: &str, cluster: &str) {
        self.note(cluster, &format!("joined with {party}"));
        self.state().cuts.remove(&(party.to_owned(), cluster.to_owned()));
        self.changed.notify_waiters();
    }

    pub(super) fn crash(&self, party: &str, why: &str) {
        self.note("-", &format!("{party} crashes {why}"));
        self.state().parties.entry(party.to_owned()).or_default().crashed = true;
        self.changed.notify_waiters();
    }

    pub(super) fn restart(&self, party: &str) {
        self.note("-", &format!("{party} restarts"));
        let mut state = self.state();
        let entry = state.parties.entry(party.to_owned()).or_default();
        entry.incarnation += 1;
        entry.crashed = false;
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn set_round_trip(&self, a: &str, b: &str, time: Duration) {
        let mut state = self.state();
        for (from, to) in [(a, b), (b, a)] {
            state.round_trips.insert((from.to_owned(), to.to_owned()), time);
        }
    }

    pub(super) fn requests(&self, party: &str) -> u64 {
        self.state().parties.get(party).map_or(0, |party| party.requests)
    }

    pub(super) fn incarnation(&self, party: &str) -> u64 {
        self.state().parties.get(party).map_or(0, |party| party.incarnation)
    }

    pub(super) fn stop_faults(&self) {
        let mut state = self.state();
        state.faults_stopped = true;
        state.partial.clear();
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn add_fault(&self, fault: PartialFault) {
        self.note("-", &format!("fault {} begins: {:?} {:?}", fault.name, fault.requests, fault.answer));
        self.state().partial.insert(fault.name.clone(), fault);
    }

    pub(super) fn end_fault(&self, name: &str) {
        self.note("-", &format!("fault {name} ends"));
        self.state().partial.remove(name);
        self.changed.notify_waiters();
    }

    pub(super) fn set_hostile(&self, cluster: &str, rules: Vec<HostileRule>) {
        self.note(cluster, &format!("follows {} hostile rules", rules.len()));
        self.state().hostile.insert(cluster.to_owned(), rules);
    }

    /// The fault that a request meets, by its name.
    pub(super) fn partial_fault(&self, asked: &Asked<'_>) -> Option<(String, FaultAnswer)> {
        let state = self.state();
        let age = self.started.elapsed();
        let met = state.partial.values().find(|fault| fault.holds(age) && fault.requests.matches(asked))?;
        Some((met.name.clone(), met.answer))
    }

    /// Waits until a fault is over.
    pub(super) async fn fault_over(&self, name: &str) {
        let until = self.state().partial.get(name).and_then(|fault| fault.until);
        let ended = self.wait(|state| !state.partial.contains_key(name));
        match until {
            Some(until) => {
                // Over by itself, or ended before.
                let _ = tokio::time::timeout_at(self.started + until, ended).await;
            }
            None => ended.await,
        }
    }

    pub(super) fn hostile_answer(&self, asked: &Asked<'_>) -> Option<HostileAnswer> {
        let state = self.state();
        let rules = state.hostile.get(asked.cluster)?;
        rules.iter().find(|rule| rule.requests.matches(asked)).map(|rule| rule.answer.clone())
    }

    pub(super) fn end_watches(&self, party: &str, cluster: &str) {
        self.note(cluster, &format!("ends the watches of {party}"));
        *self.state().watches_ended.entry((party.to_owned(), cluster.to_owned())).or_default() += 1;
        self.changed.notify_waiters();
    }

    /// Ends all watches in a cluster that is no more, and forgets who was cut off from it.
    pub(super) fn remove_cluster(&self, cluster: &str) {
        self.note(cluster, "is removed");
        let mut state = self.state();
        *state.watches_ended.entry((EVERYBODY.to_owned(), cluster.to_owned())).or_default() += 1;
        state.cuts.retain(|(_, cut)| cut != cluster);
        state.hostile.remove(cluster);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until the watches that are open now are ended.
    pub(super) fn watches_end(
        self: &Arc<Self>,
        party: &str,
        cluster: &str,
    ) -> impl Future<Output = ()> + use<> {
        let aims = [party, EVERYBODY].map(|aim| (aim.to_owned(), cluster.to_owned()));
        let ended = move |state: &State| aims.clone().map(|aim| state.watches_ended.get(&aim).copied());
        let links = self.clone();
        let before = ended(&links.state());
        async move { links.wait(|state| ended(state) != before).await }
    }

    /// Waits until `condition` holds, looking again whenever a link changes.
    async fn wait(&self, condition: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if condition(&self.state()) {
                return;
            }
            changed.await;
        }
    }

    pub(super) async fn crashed(&self, party: &str) {
        self.wait(|state| state.parties.get(party).is_some_and(|party| party.crashed)).await;
    }

    fn dead(state: &State, party: &str, incarnation: u64) -> bool {
        state.parties.get(party).is_some_and(|found| found.crashed || found.incarnation != incarnation)
    }

    /// Goes on when the party lives and the link is up; never, if the party is dead.
    pub(super) async fn pass(&self, party: &str, incarnation: u64, cluster: &str) -> Result<(), Unreachable> {
        if Self::dead(&self.state(), party, incarnation) {
            std::future::pending::<()>().await;
        }
        let link = (party.to_owned(), cluster.to_owned());
        let everybody = (EVERYBODY.to_owned(), cluster.to_owned());
        let is_up = |state: &State| !state.cuts.contains(&link) && !state.cuts.contains(&everybody);
        if is_up(&self.state()) {
            return Ok(());
        }
        let up = self.wait(is_up);
        if tokio::time::timeout(CONNECTION_TIMEOUT, up).await.is_err() {
            return Err(Unreachable { party: link.0, cluster: link.1 });
        }
        if Self::dead(&self.state(), party, incarnation) {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    /// Counts a request and tells its number and on which side of it the party crashes.
    pub(super) fn count(&self, party: &str) -> (u64, Option<CrashPoint>) {
        let mut state = self.state();
        let entry = state.parties.entry(party.to_owned()).or_default();
        entry.requests += 1;
        let number = entry.requests;
        let crash = self.plan.crashes.iter().find(|crash| crash.party == party && crash.request == number);
        (number, crash.map(|crash| crash.point))
    }

    fn faulty(&self, state: &State) -> bool {
        !state.faults_stopped && self.plan.until.is_none_or(|until| self.started.elapsed() < until)
    }

    /// The random stream of one party's link to one cluster, whatever else happens in the world.
    fn random<'a>(&self, state: &'a mut State, party: &str, cluster: &str) -> &'a mut ChaCha8Rng {
        let seed = self.seed.child(party).child(cluster);
        state.random.entry((party.to_owned(), cluster.to_owned())).or_insert_with(|| seed.rng())
    }

    pub(super) fn draw(&self, party: &str, cluster: &str, write: bool) -> Option<Fault> {
        let mut state = self.state();
        if self.plan.rates.is_empty() || !self.faulty(&state) {
            return None;
        }
        let rates = self.plan.rates_of(party);
        fault::draw(rates, write, self.random(&mut state, party, cluster))
    }

    /// Whether a watch breaks off here.
    pub(super) fn drops_watch(&self, party: &str, cluster: &str) -> bool {
        let mut state = self.state();
        if self.plan.rates.is_empty() || !self.faulty(&state) {
            return false;
        }
        let rate = self.plan.rates_of(party).watch_drop;
        self.random(&mut state, party, cluster).next_u32() % 1000 < rate
    }

    /// How long a chunk of a watch is held up.
    pub(super) fn watch_delay(&self, party: &str, cluster: &str) -> Duration {
        let mut state = self.state();
        let rate = self.plan.rates_of(party).watch_delay;
        if rate == 0 || !self.faulty(&state) {
            return Duration::ZERO;
        }
        let random = self.random(&mut state, party, cluster);
        let (drawn, time) = (random.next_u32() % 1000, random.next_u32() % LONGEST_DELAY_MS);
        if drawn < rate { Duration::from_millis(u64::from(time)) } else { Duration::ZERO }
    }

    /// The time of one way.
    pub(super) async fn travel(&self, party: &str, cluster: &str) {
        let measured = self.state().round_trips.get(&(party.to_owned(), cluster.to_owned())).copied();
        let (least, most) = measured.map_or(self.latency, |time| (time, time));
        if most.is_zero() {
            return;
        }
        let spread = u64::try_from(most.saturating_sub(least).as_micros()).unwrap_or(u64::MAX);
        let drawn = match spread {
            0 => 0,
            spread => self.random(&mut self.state(), party, cluster).next_u64() % (spread + 1),
        };
        tokio::time::sleep((least + Duration::from_micros(drawn)) / 2).await;
    }
}

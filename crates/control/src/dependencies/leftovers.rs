//! What was carried for workloads that are gone.

use super::carry::release_gone;
use super::{DependencyKind, Reference};
use crate::capacity::Owner;
use crate::fleet::{Fleet, Touched};
use portolan_runtime::{CallError, Clock, Key, Next, Queue, Seed, Term, chain, foreign_text, work};
use std::collections::BTreeSet;
use std::time::Duration;

/// How soon to look again while not all workloads are listed.
const SOON: Duration = Duration::from_secs(2);

/// How soon to try again what a member did not let be done.
const LATER: Duration = Duration::from_secs(10);

/// How often to look whether the workloads that something was carried for are still there.
const NOW_AND_THEN: Duration = Duration::from_secs(60);

const WORKERS: usize = 2;

/// Lets go what was carried into members for workloads that are not in the hub any more.
pub(crate) struct Leftovers {
    fleet: Fleet,
    term: Term,
    clock: Clock,
    queue: Queue<(Key, DependencyKind)>,
    is_used: Box<IsUsed>,
}

/// Whether a workload of the hub needs a ConfigMap or Secret of a namespace in a cluster.
type IsUsed = dyn Fn(&str, &str, &Reference) -> bool + Send + Sync;

impl Leftovers {
    /// For the workloads of the hub; `is_used` tells whether any of them needs something in a cluster.
    pub(crate) fn new(
        fleet: &Fleet,
        clock: &Clock,
        seed: Seed,
        term: &Term,
        is_used: impl Fn(&str, &str, &Reference) -> bool + Send + Sync + 'static,
    ) -> Self {
        let (fleet, term, clock) = (fleet.clone(), term.clone(), clock.clone());
        Self { fleet, term, clock, queue: Queue::new(seed), is_used: Box::new(is_used) }
    }

    /// What to tell of changes in members; it wakes the workloads that a carried object is marked with.
    pub(crate) fn notice(
        &self,
        wake: impl Fn(&Owner) + Send + Sync + 'static,
    ) -> impl Fn(&str, &Touched) + Send + Sync + 'static {
        let (fleet, queue) = (self.fleet.clone(), self.queue.clone());
        move |cluster, what| {
            let Touched::Dependency(namespace, Reference { kind, name }) = what else { return };
            let key = Key::new(namespace, name);
            let member = fleet.member(cluster);
            let there = member.and_then(|member| member.carried.watched(namespace));
            if let Some(facts) = there.and_then(|there| there.of(*kind).get(&key)) {
                let owners: BTreeSet<Owner> = fleet.ledger.transact(|book| {
                    facts.needed_by.named().filter_map(|uid| book.owner(uid).cloned()).collect()
                });
                owners.iter().for_each(&wake);
                queue.add((key, *kind));
            }
        }
    }

    /// Looks after them for ever.
    pub(crate) async fn run(self) {
        work(&self.queue, WORKERS, &self.clock, |(key, kind)| self.look(key, kind)).await;
    }

    async fn look(&self, key: Key, kind: DependencyKind) -> Result<Next, CallError> {
        if !self.fleet.ledger.transact(|book| book.is_complete()) {
            return Ok(Next::After(SOON));
        }
        let is_there = |uid: &str| self.fleet.ledger.transact(|book| book.is_there(uid));
        let reference = Reference { kind, name: key.name.clone() };
        let (mut any, mut next) = (false, NOW_AND_THEN);
        for (cluster, _) in self.fleet.clusters.all() {
            let Some(member) = self.fleet.member(&cluster.name) else { continue };
            let there = member.carried.watched(&key.namespace);
            any |= there.is_some_and(|there| there.of(kind).get(&key).is_some());
            if member.reach.answers() {
                let is_used = || (self.is_used)(&cluster.name, &key.namespace, &reference);
                match release_gone(&self.term, &member, &key, kind, is_there, is_used).await {
                    Err(error @ CallError::NotLeading { .. }) => return Err(error),
                    // One member that does not let go holds up no other.
                    Err(error) => {
                        let why = foreign_text(&chain(&error));
                        tracing::warn!(cluster = cluster.name, object = %key, why, "a leftover stays");
                        next = LATER;
                    }
                    Ok(()) => {}
                }
            }
        }
        Ok(if any { Next::After(next) } else { Next::Done })
    }
}

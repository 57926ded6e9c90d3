//! What was propagated for workloads that are gone.

use super::propagate::release_gone;
use super::{DependencyKind, Reference};
use crate::capacity::Owner;
use crate::fleet::{Fleet, MemberEvent};
use portolan_runtime::{Action, CallError, Clock, Key, Queue, Seed, Term, chain, foreign_text, work};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How soon to look again while not all workloads are listed.
const SOON: Duration = Duration::from_secs(2);

/// How soon to try again what a member did not let be done.
const LATER: Duration = Duration::from_secs(10);

/// How often to look whether the workloads that something was propagated for are still there.
const NOW_AND_THEN: Duration = Duration::from_secs(60);

const WORKERS: usize = 2;

/// Releases what was propagated to members for workloads that are not in the hub any more; clones are the same.
#[derive(Clone)]
pub(crate) struct DependencyGc {
    fleet: Fleet,
    term: Term,
    clock: Clock,
    queue: Queue<(Key, DependencyKind)>,
    is_used: Arc<IsUsed>,
    wake: Arc<dyn Fn(&Owner) + Send + Sync>,
}

/// Whether a workload of the hub needs a ConfigMap or Secret of a namespace in a cluster.
type IsUsed = dyn Fn(&str, &str, &Reference) -> bool + Send + Sync;

impl DependencyGc {
    /// For the workloads of the hub; `is_used` tells whether any of them needs something in a cluster, `wake` has one
    /// looked at again.
    pub(crate) fn new(
        fleet: &Fleet,
        clock: &Clock,
        seed: Seed,
        term: &Term,
        is_used: impl Fn(&str, &str, &Reference) -> bool + Send + Sync + 'static,
        wake: impl Fn(&Owner) + Send + Sync + 'static,
    ) -> Self {
        let (fleet, term, clock) = (fleet.clone(), term.clone(), clock.clone());
        let queue = fleet.queues.show("Dependencies", Queue::new(seed));
        Self { fleet, term, clock, queue, is_used: Arc::new(is_used), wake: Arc::new(wake) }
    }

    /// Something has changed in a member: wakes the workloads that a propagated object is marked with.
    pub(crate) fn member_changed(&self, cluster: &str, event: &MemberEvent) {
        let MemberEvent::Dependency(namespace, Reference { kind, name }) = event else { return };
        let key = Key::new(namespace, name);
        let member = self.fleet.member(cluster);
        let there = member.and_then(|member| member.propagated.watched(namespace));
        if let Some(facts) = there.and_then(|there| there.of(*kind).get(&key)) {
            let owners: BTreeSet<Owner> = self.fleet.ledger.transact(|book| {
                facts.needed_by.named().filter_map(|uid| book.owner(uid).cloned()).collect()
            });
            owners.iter().for_each(|owner| (self.wake)(owner));
            self.queue.add((key, *kind));
        }
    }

    /// Looks after them for ever.
    pub(crate) async fn run(self) {
        work(&self.queue, WORKERS, &self.clock, |(key, kind)| self.look(key, kind)).await;
    }

    async fn look(&self, key: Key, kind: DependencyKind) -> Result<Action, CallError> {
        if !self.fleet.ledger.transact(|book| book.is_complete()) {
            return Ok(Action::RequeueAfter(SOON));
        }
        let is_there = |uid: &str| self.fleet.ledger.transact(|book| book.is_there(uid));
        let reference = Reference { kind, name: key.name.clone() };
        let (mut any, mut next) = (false, NOW_AND_THEN);
        for (cluster, _) in self.fleet.clusters.all() {
            let Some(member) = self.fleet.member(&cluster.name) else { continue };
            let there = member.propagated.watched(&key.namespace);
            any |= there.is_some_and(|there| there.of(kind).get(&key).is_some());
            if member.health.is_reachable() {
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
        Ok(if any { Action::RequeueAfter(next) } else { Action::AwaitChange })
    }
}

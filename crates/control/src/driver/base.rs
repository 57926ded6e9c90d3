//! What every controller has: the objects of its kind, a queue of those to be looked at, and their copies.

use super::fence::{Claimant, claimant, reservation};
use super::{Context, Decisions, Declared, replace_status};
use crate::copies::{Copied, Copies, Outcome, Remaining, Round};
use crate::dependencies::{Propagation, References, is_left};
use crate::fleet::Member;
use kube::Resource;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::placement::Reservation;
use portolan_runtime::{CallError, Index, Key, Queue, Recorder};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// The objects of one kind, and what is done about them.
pub(crate) struct Base<D: Declared, K> {
    pub(crate) context: Context,
    pub(crate) objects: Index<D>,
    pub(crate) queue: Queue<Key>,
    pub(crate) copies: Arc<Copies<K>>,
    pub(crate) recorder: Recorder,
    pub(crate) decisions: Decisions,
    listeners: Arc<Mutex<Vec<Listener>>>,
}

/// What is called with the key of an object that has changed.
type Listener = Box<dyn Fn(&Key) + Send>;

/// Whether a status that says nothing new is written all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// Only if it says anything new.
    IfChanged,
    /// In any case: it must be sure that nobody else has written one since.
    Always,
}

impl<D: Declared, K: Copied> Base<D, K> {
    /// Nothing of any kind is decided before the objects of this one are known and fenced.
    pub(crate) fn new(context: &Context, controller: &'static str) -> Self {
        context.fence.expect(D::KIND);
        if D::HOLDS_ROOM {
            context.fleet.ledger.expect(D::KIND);
        }
        let queue = Queue::new(context.seed.child(D::KIND).child("queue"));
        let queue = context.fleet.queues.show(D::KIND, queue);
        Self {
            context: context.clone(),
            objects: Index::default(),
            copies: Copies::new(D::KIND, &context.fleet, &context.term, &queue),
            queue,
            recorder: Recorder::new(context.hub.client.clone(), context.clock.clone(), controller),
            decisions: Decisions::default(),
            listeners: Arc::default(),
        }
    }

    /// Calls this whenever an object of the kind has changed.
    pub(crate) fn on_change(&self, listener: impl Fn(&Key) + Send + 'static) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    /// Tells those who listen that an object has changed.
    pub(super) fn changed(&self) -> impl Fn(&Key) + Send + 'static {
        let listeners = Arc::clone(&self.listeners);
        move |key| {
            let listeners = listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.iter().for_each(|listener| listener(key));
        }
    }

    /// Writes the status by compare-and-swap on the version that it was decided on, in this leader's name.
    ///
    /// Answers the object as it is then; most often that is as it was. Nothing means that the object has changed meanwhile:
    /// the change brings us back.
    pub(crate) async fn write_status<'a>(
        &self,
        declared: &'a D,
        mut status: D::Status,
        write: Write,
    ) -> Result<Option<Cow<'a, D::Object>>, CallError> {
        let by = self.reservation(declared, &status);
        D::set_decided_by(&mut status, by);
        let same = declared.status() == Some(&status);
        if same && write == Write::IfChanged {
            self.retract(declared);
            return Ok(Some(Cow::Borrowed(declared.object())));
        }
        let Context { term, hub, .. } = &self.context;
        match replace_status(term, &hub.client, declared.object(), &status).await {
            Ok(written) => {
                // A write that changes nothing does not come back through the watch.
                if same || written.is_none() {
                    self.retract(declared);
                }
                Ok(written.map(Cow::Owned))
            }
            Err(error) => {
                // The write may have taken effect although the answer was lost: until the index tells, the room counts.
                if error.code().is_some() {
                    self.retract(declared);
                }
                Err(error)
            }
        }
    }

    /// Gives up the room that a decision holds which is not written.
    pub(crate) fn retract(&self, declared: &D) {
        if D::HOLDS_ROOM {
            self.context.fleet.ledger.transact(|book| book.retract(declared.uid()));
        }
    }

    /// Sets a condition in the status, and nothing else.
    pub(crate) async fn report(&self, declared: &D, finding: Finding) -> Result<(), CallError> {
        let mut status = declared.status().cloned().unwrap_or_else(|| declared.first_status());
        let generation = declared.object().meta().generation;
        let now = self.context.clock.time().0;
        if conditions::set(D::conditions(&mut status), finding, generation, now) {
            self.write_status(declared, status, Write::IfChanged).await?;
        }
        Ok(())
    }

    /// Reports that nothing is decided about an object, and why.
    pub(crate) async fn report_undecided(
        &self,
        declared: &D,
        reason: Reason,
        message: &str,
    ) -> Result<(), CallError> {
        let mut status = declared.status().cloned().unwrap_or_else(|| declared.first_status());
        let (generation, now) = (declared.object().meta().generation, self.context.clock.time().0);
        D::set_observed_generation(&mut status, generation);
        for type_ in [ConditionType::Ready, ConditionType::Placed] {
            let finding = Finding::new(type_, false, reason, message);
            conditions::set(D::conditions(&mut status), finding, generation, now);
        }
        self.write_status(declared, status, Write::IfChanged).await?;
        Ok(())
    }

    /// The leader that decided about an object last.
    pub(super) fn claimant(declared: &D) -> Claimant {
        claimant(declared.status().and_then(D::decided_by))
    }

    /// Who stands for what a status says: this leader, since the object last changed hands or places.
    fn reservation(&self, declared: &D, new: &D::Status) -> Reservation {
        let old = declared.status();
        let moved = old.map(D::places) != Some(D::places(new));
        reservation(&self.context.term, &self.context.clock, old.and_then(D::decided_by), moved)
    }

    /// The ConfigMaps and Secrets of an object in a member.
    pub(crate) fn propagation(&self, key: &Key, declared: &D, member: &Arc<Member>) -> Propagation {
        let Context { term, hub, sources, .. } = &self.context;
        Propagation {
            term: term.clone(),
            hub: hub.clone(),
            sources: sources.clone(),
            member: Arc::clone(member),
            key: key.clone(),
            uid: declared.uid().to_owned(),
            references: declared.references().cloned().unwrap_or_default(),
            recorded: declared.has_dependencies() && declared.is_in(&member.name),
        }
    }

    /// Has all ConfigMaps and Secrets released that the object needed in a member; answers whether any may be left. Where
    /// none are expected, those that are known are released all the same.
    pub(crate) fn release(&self, round: Round, key: &Key, declared: &D, member: &Arc<Member>) -> bool {
        let recorded = declared.has_dependencies() && declared.is_in(&member.name);
        if !is_left(member, &key.namespace, declared.uid(), &References::new(), recorded) {
            return false;
        }
        let propagation = self.propagation(key, declared, member);
        let work = move || async move { propagation.release_all(Outcome::AsDecided).await };
        self.copies.submit(round, member, key, "", work);
        true
    }

    /// Has everything deleted that members hold of an object; answers what is left.
    pub(super) fn delete_everywhere(&self, round: Round, key: &Key, declared: &D) -> Remaining {
        let on_record = |cluster: &str| declared.is_in(cluster);
        let mut remaining = self.copies.delete_all(round, key, declared.uid(), on_record);
        for member in std::mem::take(&mut remaining.clear) {
            if self.release(round, key, declared, &member) {
                remaining.count(&member, self.copies.memory.failure(key, &member.name));
            }
        }
        remaining
    }
}

/// What is reported of a deletion that members hold up: those that cannot be reached, and those that refuse.
pub(super) fn held_up(remaining: &Remaining, copy: &str) -> Finding {
    const REPORTED_AT_MOST: usize = 8;
    let Remaining { away, failing, .. } = remaining;
    if failing.is_empty() {
        let message = format!(
            "deletion waits for {}, which cannot be reached: its {copy} is deleted when it returns, or with its \
             ForeignCluster",
            away.join(", ")
        );
        return Finding::new(ConditionType::Ready, false, Reason::AwaitingMember, message);
    }
    let reported = failing.iter().take(REPORTED_AT_MOST).map(|(cluster, why)| format!("{cluster}: {why}"));
    let reported = reported.collect::<Vec<_>>().join("; ");
    let more = failing.len().saturating_sub(REPORTED_AT_MOST) + away.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let message = format!("deletion waits for clusters that do not delete their {copy}: {reported}{more}");
    Finding::new(ConditionType::Ready, false, Reason::DeletionFailed, message)
}

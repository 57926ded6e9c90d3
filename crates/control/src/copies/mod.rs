//! Copies of the hub's objects in members: one machinery for every kind.
//!
//! A controller decides what each member is to hold. [`Copies`] hands that to the actuators of the members, remembers
//! what came of it, and has the object looked at again when there is a reason to.

mod annotations;
mod apply;
mod memory;
mod object;
mod ownership;
mod removal;

pub(crate) use annotations::propagated_annotations;
pub(crate) use apply::{Desired, is_superseded};
pub(crate) use memory::{CACHE_LAG_GRACE, Failure, FailureKind, Memory, REFUSAL_HOLDS, Round};
pub use object::Kind;
pub use object::ObjectVersion;
pub(crate) use object::{
    ApplyMode, ApplyResult, apply_if_unchanged, delete_if_unchanged, refusal_message, restore_ownership,
};
pub(crate) use ownership::{Ownership, digest, insert, insert_template_hash};
pub(crate) use removal::{AWAITING_DELETION, Remaining};

use crate::capacity::Owner;
use crate::fleet::{
    About, CopyKind, CopyMeta, CopyTest, Fleet, Indexes, Member, MemberEvent, Needs, Registration, Subject,
    Watched, resource,
};
use crate::names::HUB_LABEL;
use portolan_runtime::{CallError, Key, Queue, Term, chain, foreign_text};
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// A member that has too much to do is asked again after this long.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// A kind of which members hold copies that have the name of the object they belong to.
pub(crate) trait Copied: Kind + Watched + Sync {
    /// The name of the kind.
    const NAME: &'static str;

    /// The kind in the hub.
    const OWNER: &'static str;

    /// Whether pods belong to the copies.
    const RUNS_PODS: bool;

    /// What must be known of a member before anything is decided about its copies.
    const NEEDS: Needs;

    /// What must be known of a member before its copies are deleted: which copies it has.
    const ITSELF: Needs = Needs(&[resource::<Self>()]);

    /// Whose a copy is.
    fn copy_meta(facts: &Self::Facts) -> &CopyMeta;
}

/// The registration of a kind of copies: what they are watched for, and what a hub does with them.
pub(crate) const fn registration<K: Copied>(watched: &'static str, kept: &'static str) -> Registration {
    Registration::index::<K>(watched).of_copies(CopyKind {
        name: K::NAME,
        owner: K::OWNER,
        runs_pods: K::RUNS_PODS,
        needs: K::NEEDS,
        why: kept,
        list: list::<K>,
        namespaces: namespaces::<K>,
    })
}

/// The copies in a member that pass a test.
fn list<K: Copied>(indexes: &Indexes, test: &CopyTest<'_>) -> Option<Vec<(Key, CopyMeta)>> {
    indexes.get::<K>().filter_map_if_synced(|key, copy| {
        let meta = K::copy_meta(copy);
        test(key, meta).then(|| (key.clone(), meta.clone()))
    })
}

fn namespaces<K: Copied>(indexes: &Indexes) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    indexes.get::<K>().for_each(|key, _| {
        if !all.contains(&key.namespace) {
            all.insert(key.namespace.clone());
        }
    });
    all
}

/// The labels of the copies of a hub.
pub(crate) fn selector(hub: &str) -> String {
    format!("{HUB_LABEL}={hub}")
}

/// A change of a copy concerns the object that it belongs to. A copy has the name of its owner, unless it says otherwise.
pub(crate) fn copy_event<K: Copied>(key: &Key, facts: &K::Facts) -> MemberEvent {
    let owner = K::copy_meta(facts).owner.clone().unwrap_or_else(|| key.clone());
    MemberEvent::Copy(Owner { kind: K::OWNER, key: owner })
}

/// What came of work in one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The member holds the copy as decided, or is getting it.
    AsDecided,
    /// The member was given the copy a moment ago, and the watch does not show it yet.
    NotSeenYet,
    /// The member refused the copy just now.
    Refused,
    /// Something was found out that is to be reported.
    LookAgain,
    /// The member did not do it a moment ago: it is asked again after this long.
    PutOff(Duration),
}

/// The copies of one kind in all members.
pub(crate) struct Copies<K> {
    /// The kind in the hub.
    kind: &'static str,
    fleet: Fleet,
    term: Term,
    queue: Queue<Key>,
    pub(crate) memory: Memory,
    _copies: PhantomData<fn() -> K>,
}

impl<K: Copied> Copies<K> {
    /// The copies of a kind of the hub, whose objects are looked at again through this queue.
    pub(crate) fn new(kind: &'static str, fleet: &Fleet, term: &Term, queue: &Queue<Key>) -> Arc<Self> {
        Arc::new(Self {
            kind,
            fleet: fleet.clone(),
            term: term.clone(),
            queue: queue.clone(),
            memory: Memory::default(),
            _copies: PhantomData,
        })
    }

    /// Hands work about an object to the actuator of a member. It is void if a later decision about the object has begun
    /// before it does. `template` is what it tries to apply, without numbers of replicas; nothing if it applies nothing.
    pub(crate) fn submit<F>(
        self: &Arc<Self>,
        round: Round,
        member: &Arc<Member>,
        key: &Key,
        template: &str,
        work: impl FnOnce() -> F + Send + 'static,
    ) where
        F: Future<Output = Result<Outcome, CallError>> + Send + 'static,
    {
        self.submit_about(About::Copy, round, member, key, template, work);
    }

    fn submit_about<F>(
        self: &Arc<Self>,
        about: About,
        round: Round,
        member: &Arc<Member>,
        key: &Key,
        template: &str,
        work: impl FnOnce() -> F + Send + 'static,
    ) where
        F: Future<Output = Result<Outcome, CallError>> + Send + 'static,
    {
        let (copies, cluster, key) = (Arc::clone(self), member.name.clone(), key.clone());
        let (template, subject): (String, Subject) = (template.to_owned(), (self.kind, about, key.clone()));
        let (queue, again) = (self.queue.clone(), key.clone());
        let work = move || async move {
            // Whoever decides from now on sees that it is under way; whoever began to decide before has made it void.
            let _running = Running::new(&copies, &key, &cluster);
            if copies.memory.is_current(&key, round) {
                let was_reported = copies.is_failure_reported(&key, &cluster);
                let result = work().await;
                copies.finish(&key, &cluster, &template, result);
                if was_reported && !copies.is_failure_reported(&key, &cluster) {
                    // Work that changes nothing in the member brings no news that would have it reported.
                    copies.queue.add(key.clone());
                }
            }
        };
        member.actuator.submit(subject, work, move || queue.add(again));
    }

    /// Whether work about an object is under way in a member: what it holds may change any moment.
    pub(crate) fn is_changing(&self, member: &Member, key: &Key) -> bool {
        self.memory.is_running(key, &member.name)
    }

    fn is_failure_reported(&self, key: &Key, cluster: &str) -> bool {
        self.memory.failure(key, cluster).is_some_and(|failure| failure.is_reported())
    }

    /// Remembers what came of work, and has the object looked at again if there is a reason to. The change of a copy
    /// comes back through the watch of the member.
    fn finish(&self, key: &Key, cluster: &str, template: &str, result: Result<Outcome, CallError>) {
        let wait = match result {
            Ok(Outcome::PutOff(wait)) => wait,
            Ok(outcome) => {
                self.memory.answered(key, cluster);
                match outcome {
                    Outcome::AsDecided => return,
                    Outcome::NotSeenYet => CACHE_LAG_GRACE,
                    Outcome::Refused | Outcome::LookAgain | Outcome::PutOff(_) => Duration::ZERO,
                }
            }
            // If the term is over, nobody looks again.
            Err(CallError::NotLeading { .. }) => BUSY_FOR,
            Err(error) if error.is_busy() => BUSY_FOR,
            Err(error) => {
                let why = foreign_text(&chain(&error));
                tracing::warn!(cluster, object = %key, why, "a member cannot be given what was decided");
                self.memory.fail(key, cluster, template, &why)
            }
        };
        self.queue.add_after(key.clone(), wait);
    }
}

/// Work that is under way, for as long as this is kept.
struct Running<'a, K: Copied> {
    copies: &'a Copies<K>,
    key: &'a Key,
    cluster: &'a str,
}

impl<'a, K: Copied> Running<'a, K> {
    fn new(copies: &'a Copies<K>, key: &'a Key, cluster: &'a str) -> Self {
        copies.memory.start(key, cluster);
        Self { copies, key, cluster }
    }
}

impl<K: Copied> Drop for Running<'_, K> {
    fn drop(&mut self) {
        self.copies.memory.end(self.key, self.cluster);
    }
}

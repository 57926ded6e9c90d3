//! Deleting copies: those of an object that is being deleted, and those of no object.

use super::{Copied, Copies, Failure, Round};
use crate::fleet::{About, CopyMeta, Member};
use portolan_runtime::{Action, Key};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often to look whether a member that holds up a deletion is back; its return is reported anyway.
const AWAITING_RETURN: Duration = Duration::from_secs(30);

/// How often to look whether copies are gone; their deletion is reported anyway.
pub(crate) const AWAITING_DELETION: Duration = Duration::from_secs(5);

/// Where copies of an object that is being deleted still are.
#[derive(Default)]
pub(crate) struct Remaining {
    /// How many members still have one, or something else of the object.
    pub(crate) left: usize,
    /// The members that may have one and cannot be asked.
    pub(crate) away: Vec<String>,
    /// The members that do not delete theirs, and why.
    pub(crate) failing: BTreeMap<String, String>,
    /// The members that have none.
    pub(crate) clear: Vec<Arc<Member>>,
}

impl Remaining {
    /// Whether users are to know what holds the deletion up.
    pub(crate) fn is_held_up(&self) -> bool {
        !self.failing.is_empty() || (self.left == 0 && !self.away.is_empty())
    }

    /// When to look again; nothing if no copy is left anywhere.
    pub(crate) fn next(&self) -> Option<Action> {
        match (self.left, self.away.is_empty()) {
            (0, true) => None,
            (0, false) => Some(Action::RequeueAfter(AWAITING_RETURN)),
            _ => Some(Action::RequeueAfter(AWAITING_DELETION)),
        }
    }

    /// Counts a member that still has something of the object, and why it does not delete it if it does not.
    pub(crate) fn count(&mut self, member: &Member, failure: Option<Failure>) {
        self.left += 1;
        // What was refused when something was applied is no reason not to delete it.
        if let Some(failure) = failure.filter(|failure| failure.template.is_empty()) {
            self.failing.insert(member.name.clone(), failure.message);
        }
    }
}

impl<K: Copied> Copies<K> {
    /// Has all copies of an object with this uid deleted; answers what is left of them. A member that cannot be asked and
    /// has one, by what was seen or by the record, holds the deletion up until it returns: no copy is orphaned.
    pub(crate) fn delete_all(
        self: &Arc<Self>,
        round: Round,
        key: &Key,
        uid: &str,
        on_record: impl Fn(&str) -> bool,
    ) -> Remaining {
        let mut remaining = Remaining::default();
        for (name, _) in self.fleet.clusters.all() {
            let reached = self.fleet.reachability_of::<K>(&name.name, None, K::ITSELF, key);
            let copy = reached.member.as_ref().and_then(|member| member.index::<K>().get(key));
            let copy = copy.filter(|copy| K::copy_meta(copy).is_of(uid));
            match (reached.member.filter(|_| reached.is_known), copy) {
                (Some(member), Some(copy)) => {
                    self.memory.is_awaited(&member, key, true);
                    self.submit_delete(About::Copy, round, &member, key, K::copy_meta(&copy).clone());
                    remaining.count(&member, self.memory.failure(key, &member.name));
                    if self.memory.is_deletion_stuck(key, &member.name, &K::copy_meta(&copy).uid) {
                        let why = "it was deleted and still exists: see its finalizers".to_owned();
                        remaining.failing.entry(member.name.clone()).or_insert(why);
                    }
                }
                // What is under way may still create one.
                (Some(member), None)
                    if self.is_changing(&member, key) || self.memory.is_awaited(&member, key, false) =>
                {
                    remaining.left += 1;
                }
                (Some(member), None) => remaining.clear.push(member),
                (None, copy) => {
                    let held = copy.is_some() || on_record(&name.name);
                    remaining.away.extend(held.then_some(name.name));
                }
            }
        }
        remaining
    }

    /// Has copies of this name deleted that belong to no object of the hub any more, such as those of a namesake that was
    /// deleted and created again while a late request was still on its way; answers when to look again. A member that
    /// does not delete one holds up nothing else.
    pub(crate) fn sweep(self: &Arc<Self>, round: Round, key: &Key, uid: Option<&str>) -> Action {
        let mut next = Action::AwaitChange;
        for (name, _) in self.fleet.clusters.all() {
            let member = self.fleet.member(&name.name).filter(|member| member.health.is_reachable());
            let Some(member) = member else { continue };
            let stray = member.index::<K>().get(key);
            // A copy whose object the hub has lost stays.
            let may_go = |meta: &CopyMeta| meta.is_stray(uid) && self.fleet.may_sweep(&member, K::NAME, meta);
            if let Some(stray) = stray.filter(|copy| may_go(K::copy_meta(copy))) {
                self.submit_delete(About::Stray, round, &member, key, K::copy_meta(&stray).clone());
                next = Action::RequeueAfter(AWAITING_DELETION);
            }
        }
        next
    }

    fn submit_delete(
        self: &Arc<Self>,
        about: About,
        round: Round,
        member: &Arc<Member>,
        key: &Key,
        seen: CopyMeta,
    ) {
        let (copies, there, name) = (Arc::clone(self), Arc::clone(member), key.clone());
        let work = move || async move { copies.delete(&there, &name, &seen).await };
        self.submit_about(about, round, member, key, "", work);
    }
}

//! One driver for every kind that users declare in the hub.
//!
//! The driver watches the objects of a kind, fences them for the leader's term, keeps their finalizer, has copies deleted
//! that belong to nothing, writes status by compare-and-swap, and reports what holds up a deletion. A controller
//! ([`Controller`]) decides about one object of its kind, and hands what is to be done to the members' actuators.
//!
//! # Two leaders at once
//!
//! A lease elects one leader, but a leader that stood still or was cut off may come back and go on where it was, with
//! a successor at work. It does no harm, because:
//!
//! 1. **What it still sends rests on what it read before its successor was elected.** Every write goes through
//!    [`Term::call`], which looks at the end of the term just before; see `portolan_runtime`'s lease.
//! 2. **Its decisions lose.** The successor first *claims* every object of every kind: it writes its own epoch into
//!    `status.reservation` by compare-and-swap, and decides nothing before all are claimed. A decision of the old leader
//!    that arrives later was taken on a version that is gone, and is refused with 409. One that arrived earlier makes
//!    the claim fail and be repeated: then the successor has read it, and counts its room. Objects created after the
//!    election the old leader has never read, by (1).
//! 3. **Its applies and deletions lose, or are undone.** A change of a copy that exists carries the version that was
//!    seen. The successor writes its epoch on every copy that it keeps, so whatever the old leader saw is outdated.
//!    A copy that the old leader creates where there was none carries the older epoch and its digest: the successor sees
//!    it through its watch, and sets it right or deletes it.
//! 4. **Only the Lease says who leads.** An epoch in a status or on a copy that is greater than one's own is a reason to
//!    ask the Lease ([`Term::confirm`]), and to leave the object alone until it has answered. If the Lease names another
//!    leader, the term ends. If it still names this one, nobody was elected after it: by (1) no leader has that epoch
//!    and may still write. Somebody else wrote the number, or the Lease has lost its count, because it was deleted or
//!    the hub was restored from a backup. The object is then written over with the version that was seen, so what an
//!    older leader saw of it is outdated as in (2) and (3). For this (2) does not compare epochs: an object is claimed
//!    unless its status names this very leader and this very term. So (2) and (3) need no epoch that only grows; that
//!    terms of one holder have different epochs is enough, and a Lease that was deleted goes on from what its candidates
//!    saw of it. An epoch that no Lease can hold is not read at all.

mod base;
mod context;
mod decisions;
mod fence;
mod hub_object;
mod identify;
mod periods;
mod preview;
mod reconcile;
mod run;
mod unreadable;
mod watch;

pub(crate) use base::{Base, Write};
pub(crate) use context::Context;
pub(crate) use decisions::{Decisions, Pending};
pub(crate) use fence::EpochFence;
pub(crate) use hub_object::{replace_status, replace_status_by, set_finalizer_by};
pub(crate) use identify::taken_over;
pub(crate) use periods::{CHANGED_MEANWHILE, RESYNC_PERIOD, SYNC_POLL_INTERVAL, earlier};
pub(crate) use preview::{PreparedCopy, Problem, Reserved, open_to_trial, reserved};
pub(crate) use run::{AnyController, Controllers, Driver};
pub(crate) use unreadable::is_unreadable;
pub(crate) use watch::{Delay, watch};

use crate::capacity::{self, Waits};
use crate::copies::{Copied, Kind, Round};
use crate::dependencies::References;
use crate::fleet::MemberEvent;
use crate::recovery::Identity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use portolan_api::placement::Reservation;
#[cfg(doc)]
use portolan_runtime::Term;
use portolan_runtime::{Action, CallError, Key};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object of the hub as its controller keeps it: what was declared, and what is read of it once.
pub(crate) trait Declared: Send + Sync + Sized + 'static {
    /// The custom resource.
    type Object: Kind + Send + Sync + 'static;
    /// Its status.
    type Status: Clone + Default + PartialEq + Serialize + Send + Sync + 'static;
    /// The name of the kind.
    const KIND: &'static str;
    /// Whether objects of the kind hold room in members.
    const HOLDS_ROOM: bool;

    /// Reads an object.
    fn of(object: Self::Object) -> Self;

    /// The object as it was read.
    fn object(&self) -> &Self::Object;

    /// Its status, if it has one.
    fn status(&self) -> Option<&Self::Status>;

    /// Writes down which generation of the object a status reflects.
    fn set_observed_generation(status: &mut Self::Status, generation: Option<i64>);

    /// The conditions in a status.
    fn conditions(status: &mut Self::Status) -> &mut Vec<Condition>;

    /// Who decided what a status says.
    fn decided_by(status: &Self::Status) -> Option<&Reservation>;

    /// Names who decided what a status says.
    fn set_decided_by(status: &mut Self::Status, by: Reservation);

    /// Where a status says that copies are, and how much of the object is there.
    fn places(status: &Self::Status) -> Vec<(String, i32, i32)>;

    /// The status of an object about which nothing was decided yet.
    fn first_status(&self) -> Self::Status {
        Self::Status::default()
    }

    /// The room that the object holds by its status; only asked if objects of the kind hold any.
    fn reserved(&self) -> capacity::Reservation {
        let (uid, reserved) = (self.uid().to_owned(), BTreeMap::new());
        capacity::Reservation { uid, version: None, shape: None, reserved, waits: Waits::nowhere() }
    }

    /// The ConfigMaps and Secrets that the object refers to.
    fn references(&self) -> Option<&References> {
        None
    }

    /// What has no cluster by its status; nothing for kinds of which no part can be without one.
    fn pending(&self) -> Option<Pending<'_>> {
        None
    }

    /// Whether ConfigMaps or Secrets were propagated for the object, or are to be.
    fn has_dependencies(&self) -> bool {
        false
    }

    /// Who the object is to its copies and pods; nothing for kinds that are known by their uid alone.
    fn identity(&self) -> Option<&Identity> {
        None
    }

    /// The identity of the object: its uid, unless an annotation says otherwise.
    fn uid(&self) -> &str {
        match self.identity() {
            Some(identity) => identity.get(),
            None => self.object().meta().uid.as_deref().unwrap_or_default(),
        }
    }

    /// Whether the object is in a cluster, by its status.
    fn is_in(&self, cluster: &str) -> bool {
        self.status().is_some_and(|status| Self::places(status).iter().any(|(name, ..)| name == cluster))
    }
}

/// What decides about the objects of one kind.
pub(crate) trait Controller: Send + Sync + Sized + 'static {
    /// The objects that it decides about.
    type Declared: Declared;
    /// What members hold of them.
    type Copy: Copied;

    /// What every controller has.
    fn base(&self) -> &Base<Self::Declared, Self::Copy>;

    /// Decides about one object that is not being deleted, writes that down, and hands the rest to the actuators of the
    /// members.
    fn reconcile(
        self: &Arc<Self>,
        key: &Key,
        declared: &Arc<Self::Declared>,
        round: Round,
    ) -> impl Future<Output = Result<Action, CallError>> + Send;

    /// Asks for an object to be looked at whose copy in a cluster has changed.
    fn copy_changed(&self, _cluster: &str, key: &Key) {
        self.base().queue.add(key.clone());
    }

    /// Asks for the objects to be looked at that any other change in a member concerns.
    fn member_changed(&self, cluster: &str, event: &MemberEvent);

    /// How long a change of an object may wait, given what the object was before.
    fn delay(&self, _before: &Self::Declared, _now: &Self::Declared) -> Delay {
        Delay::NONE
    }

    /// Does what must be done before the first decision about an object; answers when to look again if nothing may be
    /// decided yet.
    fn prepare(
        self: &Arc<Self>,
        _key: &Key,
        _declared: &Arc<Self::Declared>,
    ) -> impl Future<Output = Result<Option<Action>, CallError>> + Send {
        async { Ok(None) }
    }

    /// Forgets an object that does not exist any more.
    fn forget(&self, _key: &Key) {}
}

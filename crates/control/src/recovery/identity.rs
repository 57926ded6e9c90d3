//! Who a workload is: the name by which its copies and pods in members know it.
//!
//! It is the uid of the object in the hub, unless the annotation `portolan.dev/workload-id` says another one. The pods
//! carry it in their template, so that a change of it would start them anew: an object that a backup tool made anew keeps
//! the pods of its predecessor only if it keeps its identity.
//!
//! No two objects have one identity, of whatever kinds they are: the ledger knows workloads by it. An annotation does not
//! count if it is no identity at all, if it is the uid of another object, or if another object has it already. Who was
//! listed at the same time is put in order: first who has a record of placements, then who is older. The annotation is
//! removed from the object that does not get it, before anything is decided about it: so it cannot come by the identity
//! later, with copies of its own.

use crate::capacity::Owner;
use crate::copies::Kind;
use crate::names::{FIELD_MANAGER, ON_DELETE_ANNOTATION, ORPHAN, WORKLOAD_ID_ANNOTATION};
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use portolan_runtime::{CallError, Change, Key, Term};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest identity: it is the value of a label.
const LONGEST: usize = 63;

/// The identity of one object of the hub.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    uid: String,
    /// What its annotation says, if that is another one.
    claimed: Option<String>,
    /// Whether the annotation does not count.
    denied: AtomicBool,
    /// Whether it was checked against the members.
    checked: AtomicBool,
}

impl Identity {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        let uid = meta.uid.clone().unwrap_or_default();
        let annotation = meta.annotations.as_ref().and_then(|all| all.get(WORKLOAD_ID_ANNOTATION));
        let claimed = annotation.filter(|claimed| **claimed != uid).cloned();
        let denied = AtomicBool::new(claimed.as_deref().is_some_and(|claimed| !is_identity(claimed)));
        Self { uid, claimed, denied, checked: AtomicBool::new(false) }
    }

    /// The identity that counts.
    pub(crate) fn get(&self) -> &str {
        match &self.claimed {
            Some(claimed) if !self.denied.load(Ordering::Acquire) => claimed,
            _ => &self.uid,
        }
    }

    /// What its annotation says, if that does not count.
    pub(crate) fn denied(&self) -> Option<&str> {
        self.claimed.as_deref().filter(|_| self.denied.load(Ordering::Acquire))
    }

    fn claims(&self) -> Option<&str> {
        self.claimed.as_deref().filter(|claimed| is_identity(claimed))
    }

    /// What its annotation says, if that counts and was not checked against the members yet.
    pub(crate) fn unchecked(&self) -> Option<&str> {
        let claimed = self.claims().filter(|_| !self.denied.load(Ordering::Acquire));
        claimed.filter(|_| !self.checked.swap(true, Ordering::AcqRel))
    }

    /// Members hold copies of this identity that belong to another object: the annotation does not count.
    pub(crate) fn deny(&self) {
        self.set_denied(true);
    }

    fn set_denied(&self, denied: bool) {
        self.denied.store(denied, Ordering::Release);
    }
}

/// Whether a text can be the identity of a workload: uids are such texts.
pub(crate) fn is_identity(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= LONGEST
        && text.chars().all(inner)
        && outer(text.chars().next())
        && outer(text.chars().next_back())
}

/// The identities of all objects of the hub; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identities(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Who has which identity, by uid or by annotation.
    owners: BTreeMap<String, Owner>,
    /// The same by owner.
    identities: BTreeMap<Owner, Vec<String>>,
    /// The kinds whose objects were listed.
    listed: BTreeSet<&'static str>,
    /// The identities of objects that were seen being deleted, and whose they were. What they left in members may go.
    ended: BTreeMap<String, Owner>,
    /// The uids of objects that are being deleted and leave their copies running.
    orphaning: BTreeSet<String>,
    /// All identities that objects were seen with.
    seen: BTreeSet<String>,
}

/// What became of an object of the hub, as far as this process knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It is there.
    Present,
    /// This object had it and was deleted.
    Ended(Owner),
    /// It was there and is gone, without having been deleted: the hub was restored, or another identity was given to it.
    Vanished,
    /// It was gone before this process began.
    NeverSeen,
}

/// An object of the hub, as far as its identity is concerned.
pub(crate) struct Bearer<'a> {
    /// Nothing for objects that are known by their uid alone.
    pub(crate) identity: Option<&'a Identity>,
    pub(crate) meta: &'a ObjectMeta,
    /// Whether its status has a record of placements.
    pub(crate) recorded: bool,
}

impl Identities {
    /// Takes a change of a kind before anybody else does, and decides whose annotations count.
    pub(crate) fn take<T>(
        &self,
        kind: &'static str,
        change: &Change<T>,
        bearer: impl for<'a> Fn(&'a T) -> Bearer<'a>,
    ) {
        let mut state = self.state();
        match change {
            Change::Gone(key) => state.forget(&Owner::new(kind, key)),
            Change::Set(key, object) => {
                state.forget(&Owner::new(kind, key));
                let bearer = bearer(object);
                state.bear(Owner::new(kind, key), &bearer);
                state.grant(Owner::new(kind, key), &bearer);
            }
            Change::Listed(all) => {
                state.list(kind);
                let mut bearers: Vec<_> = all.iter().map(|(key, object)| (key, bearer(object))).collect();
                bearers.iter().for_each(|(key, bearer)| state.bear(Owner::new(kind, key), bearer));
                let age = |meta: &ObjectMeta| meta.creation_timestamp.as_ref().map(|time| time.0);
                bearers.sort_by_key(|(key, bearer)| (!bearer.recorded, age(bearer.meta), (*key).clone()));
                bearers.iter().for_each(|(key, bearer)| state.grant(Owner::new(kind, key), bearer));
            }
        }
    }

    /// Decides whether the annotation of an object that is only looked at would count.
    pub(crate) fn resolve(&self, owner: &Owner, identity: &Identity) {
        let Some(claimed) = identity.claims() else { return };
        let free = self.state().owners.get(claimed).is_none_or(|has| has == owner);
        identity.set_denied(!free);
    }

    /// Who has this identity, if anybody of the hub has.
    pub(crate) fn owner(&self, identity: &str) -> Option<Owner> {
        self.state().owners.get(identity).cloned()
    }

    /// Whether an object of the hub has this identity.
    pub(crate) fn is_there(&self, identity: &str) -> bool {
        self.state().owners.contains_key(identity)
    }

    /// Whether the objects of these kinds were listed.
    pub(crate) fn has_listed(&self, kinds: &[&str]) -> bool {
        let state = self.state();
        kinds.iter().all(|kind| state.listed.contains(kind))
    }

    /// Whether the object of this uid is being deleted and leaves its copies running.
    pub(crate) fn is_orphaning(&self, uid: &str) -> bool {
        self.state().orphaning.contains(uid)
    }

    /// Whether an object was deleted that is such an owner.
    pub(crate) fn has_ended(&self, is_it: impl Fn(&Owner) -> bool) -> bool {
        self.state().ended.values().any(is_it)
    }

    /// What this process knows of the object of this identity.
    pub(crate) fn life(&self, identity: &str) -> Life {
        let state = self.state();
        if state.owners.contains_key(identity) {
            Life::Present
        } else if let Some(owner) = state.ended.get(identity) {
            Life::Ended(owner.clone())
        } else if state.seen.contains(identity) {
            Life::Vanished
        } else {
            Life::NeverSeen
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget(&mut self, owner: &Owner) {
        for identity in self.identities.remove(owner).unwrap_or_default() {
            if self.owners.get(&identity) == Some(owner) {
                self.owners.remove(&identity);
            }
        }
    }

    /// Begins anew with a kind.
    fn list(&mut self, kind: &'static str) {
        let of_kind = self.identities.keys().filter(|owner| owner.kind == kind);
        let known: Vec<Owner> = of_kind.cloned().collect();
        known.iter().for_each(|owner| self.forget(owner));
        self.listed.insert(kind);
    }

    fn own(&mut self, owner: Owner, identity: &str) {
        self.identities.entry(owner.clone()).or_default().push(identity.to_owned());
        self.owners.insert(identity.to_owned(), owner);
        self.seen.insert(identity.to_owned());
    }

    /// Every object has its uid, whoever claimed it before.
    fn bear(&mut self, owner: Owner, bearer: &Bearer<'_>) {
        let uid = bearer.meta.uid.clone().unwrap_or_default();
        if bearer.meta.deletion_timestamp.is_some()
            && (leaves_copies(bearer.meta) || self.orphaning.contains(&uid))
        {
            // The finalizer that says so is removed by others, at any moment.
            self.orphaning.insert(uid.clone());
        } else if bearer.meta.deletion_timestamp.is_some() {
            // What it claims and has not got is not its own to end.
            let has = |claimed: &&str| self.owners.get(*claimed).is_none_or(|has| *has == owner);
            let claimed = bearer.identity.and_then(Identity::claims).filter(has).map(str::to_owned);
            self.ended.extend([uid.clone()].into_iter().chain(claimed).map(|each| (each, owner.clone())));
        } else {
            self.ended.remove(&uid);
        }
        self.own(owner, &uid);
    }

    /// Gives an object the identity of its annotation, unless somebody has it.
    fn grant(&mut self, owner: Owner, bearer: &Bearer<'_>) {
        let Some((identity, claimed)) = bearer.identity.and_then(|each| Some((each, each.claims()?))) else {
            return;
        };
        let free = self.owners.get(claimed).is_none_or(|has| *has == owner);
        identity.set_denied(!free);
        if free {
            if bearer.meta.deletion_timestamp.is_none() {
                self.ended.remove(claimed);
            }
            self.own(owner, claimed);
        }
    }
}

/// Whether the deletion of an object leaves its copies running: its annotation says so, or it was deleted with
/// `kubectl delete --cascade=orphan`.
fn leaves_copies(meta: &ObjectMeta) -> bool {
    let annotation = meta.annotations.as_ref().and_then(|all| all.get(ON_DELETE_ANNOTATION));
    annotation.is_some_and(|value| value == ORPHAN)
        || meta.finalizers.iter().flatten().any(|each| each == ORPHAN)
}

/// Writes annotations of an object in the hub, by compare-and-swap; null removes one.
///
/// # Errors
/// The hub cannot be asked, or the object has changed meanwhile: look again.
pub(crate) async fn annotate<K: Kind>(
    term: &Term,
    hub: &Client,
    object: &K,
    annotations: Value,
) -> Result<(), CallError> {
    let key = Key::of(object);
    let api: Api<K> = Api::namespaced(hub.clone(), &key.namespace);
    let version = &object.meta().resource_version;
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": annotations}});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("annotate {} {key}", K::kind(&()));
    term.call(what, api.patch(&key.name, &params, &Patch::Merge(patch))).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    struct Object {
        identity: Identity,
        meta: ObjectMeta,
        recorded: bool,
    }

    fn object(uid: &str, claims: Option<&str>, born: i64) -> Object {
        let annotations = claims.map(|id| [(WORKLOAD_ID_ANNOTATION.to_owned(), id.to_owned())].into());
        let born = Some(Time(Timestamp::from_second(born).unwrap()));
        let meta = ObjectMeta {
            uid: Some(uid.to_owned()),
            annotations,
            creation_timestamp: born,
            ..ObjectMeta::default()
        };
        Object { identity: Identity::of(&meta), meta, recorded: false }
    }

    fn bearer(object: &Object) -> Bearer<'_> {
        Bearer { identity: Some(&object.identity), meta: &object.meta, recorded: object.recorded }
    }

    fn listed(all: Vec<(&str, Object)>) -> Change<Object> {
        Change::Listed(all.into_iter().map(|(name, object)| (Key::new("shop", name), object)).collect())
    }

    /// The identities by name.
    fn got(change: &Change<Object>) -> Vec<&str> {
        match change {
            Change::Listed(all) => all.values().map(|object| object.identity.get()).collect(),
            Change::Set(_, object) => vec![object.identity.get()],
            Change::Gone(_) => Vec::new(),
        }
    }

    #[test]
    fn without_an_annotation_it_is_the_uid_and_a_bad_annotation_does_not_count() {
        assert_eq!(object("u1", None, 1).identity.get(), "u1");
        assert_eq!(object("u1", Some("old"), 1).identity.get(), "old");
        for bad in ["", "-a", "a-", "a b", "a,b", "*", &"x".repeat(64)] {
            let object = object("u1", Some(bad), 1);
            assert_eq!((object.identity.get(), object.identity.denied()), ("u1", Some(bad)));
        }
    }

    #[test]
    fn of_two_with_one_annotation_the_one_on_record_keeps_it_and_then_the_older_one() {
        let both = listed(vec![("a", object("u1", Some("old"), 2)), ("b", object("u2", Some("old"), 1))]);
        Identities::default().take("Kind", &both, bearer);
        assert_eq!(got(&both), ["u1", "old"], "b is older");
        let recorded = Object { recorded: true, ..object("u1", Some("old"), 2) };
        let both = listed(vec![("a", recorded), ("b", object("u2", Some("old"), 1))]);
        Identities::default().take("Kind", &both, bearer);
        assert_eq!(got(&both), ["old", "u2"]);
    }

    #[test]
    fn the_uid_of_another_object_is_never_given_away_nor_between_kinds() {
        let both = listed(vec![("a", object("u1", Some("u2"), 1)), ("b", object("u2", None, 2))]);
        let identities = Identities::default();
        identities.take("Kind", &both, bearer);
        assert_eq!(got(&both), ["u1", "u2"]);
        let other = Change::Set(Key::new("shop", "a"), object("u3", Some("u1"), 0));
        identities.take("Other", &other, bearer);
        assert_eq!(got(&other), ["u3"], "whatever its kind");
    }

    #[test]
    fn an_identity_that_was_restored_after_its_object_was_deleted_may_be_lost_again() {
        let identities = Identities::default();
        let key = || Key::new("shop", "a");
        let mut deleted = object("u1", Some("old"), 1);
        deleted.meta.deletion_timestamp = Some(Time(Timestamp::from_second(9).unwrap()));
        identities.take("Kind", &Change::Set(key(), deleted), bearer);
        identities.take("Kind", &Change::<Object>::Gone(key()), bearer);
        assert!(matches!(identities.life("old"), Life::Ended(_)));
        assert!(identities.has_ended(|owner| owner.key == key()));
        identities.take("Kind", &Change::Set(key(), object("u2", Some("old"), 2)), bearer);
        identities.take("Kind", &Change::<Object>::Gone(key()), bearer);
        assert!(matches!(identities.life("old"), Life::Vanished), "nobody deleted it this time");
    }

    #[test]
    fn who_has_it_keeps_it_and_gives_it_back_when_gone() {
        let identities = Identities::default();
        let set = |name: &str, object| Change::Set(Key::new("shop", name), object);
        let first = set("a", object("u1", Some("old"), 5));
        identities.take("Kind", &first, bearer);
        let second = set("b", object("u2", Some("old"), 1));
        identities.take("Kind", &second, bearer);
        assert_eq!((got(&first), got(&second)), (vec!["old"], vec!["u2"]));
        assert_eq!(identities.owner("old").unwrap().key, Key::new("shop", "a"));
        identities.take("Kind", &Change::<Object>::Gone(Key::new("shop", "a")), bearer);
        assert_eq!(identities.owner("old"), None);
        let third = set("b", object("u2", Some("old"), 1));
        identities.take("Kind", &third, bearer);
        assert_eq!(got(&third), ["old"]);
    }

    #[test]
    fn only_what_was_seen_being_deleted_has_ended() {
        let identities = Identities::default();
        let mut leaving = object("u1", Some("old"), 1);
        leaving.meta.deletion_timestamp = leaving.meta.creation_timestamp.clone();
        identities.take("Kind", &listed(vec![("a", leaving), ("b", object("u2", None, 1))]), bearer);
        identities.take("Kind", &listed(vec![]), bearer);
        let ended = Life::Ended(Owner::new("Kind", &Key::new("shop", "a")));
        assert_eq!([identities.life("u1"), identities.life("old")], [ended.clone(), ended]);
        assert_eq!(identities.life("u2"), Life::Vanished, "without a deletion: the hub was restored");
        assert_eq!(identities.life("u3"), Life::NeverSeen);
    }

    #[test]
    fn a_plan_with_the_annotation_of_another_object_has_its_own_identity() {
        let identities = Identities::default();
        let first = Change::Set(Key::new("shop", "a"), object("u1", Some("old"), 1));
        identities.take("Kind", &first, bearer);
        let planned = object("", Some("old"), 2);
        identities.resolve(&Owner::new("Kind", &Key::new("shop", "evil")), &planned.identity);
        assert_eq!(planned.identity.get(), "");
        let itself = object("u1", Some("old"), 1);
        identities.resolve(&Owner::new("Kind", &Key::new("shop", "a")), &itself.identity);
        assert_eq!(itself.identity.get(), "old");
        assert_eq!(identities.owner("old").unwrap().key, Key::new("shop", "a"), "nothing is taken");
    }

    #[test]
    fn an_identity_that_was_claimed_and_not_had_does_not_end_with_its_claimant() {
        let identities = Identities::default();
        identities.take("Kind", &Change::Set(Key::new("shop", "a"), object("u1", Some("old"), 1)), bearer);
        let mut evil = object("u2", Some("old"), 2);
        evil.meta.deletion_timestamp = evil.meta.creation_timestamp.clone();
        identities.take("Kind", &Change::Set(Key::new("shop", "evil"), evil), bearer);
        identities.take("Kind", &Change::<Object>::Gone(Key::new("shop", "evil")), bearer);
        identities.take("Kind", &Change::<Object>::Gone(Key::new("shop", "a")), bearer);
        assert_eq!(identities.life("old"), Life::Vanished);
        assert!(matches!(identities.life("u2"), Life::Ended(_)));
    }
}

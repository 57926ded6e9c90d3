//! What a leader finds in members that the hub does not know of: the hub was lost, and restored from a backup or made anew.
//!
//! A copy whose object is not in the hub is deleted only if this leader saw the object being deleted, or if this leader
//! never saw the object and the copy came after the member was first listed: then a request of an older leader was late. Any other one is an
//! **orphan**. The backup that the hub was restored from may be older than it; so it stays as it is, it is told in the
//! condition `Orphaned` of the ForeignCluster, and only users delete it.
//!
//! A copy that names an object which is in the hub with another uid belongs to that object: a backup tool, or GitOps, made
//! it anew. The object takes it over, with its pods:
//!
//! - a MultiClusterDeployment or MultiClusterJob takes the identity of its copies, by annotation, before anything is
//!   decided about it, if no copy has its present one. A Job that is taken over says what it has finished, and the plan
//!   counts that: finished work is not run again, and running work goes on.
//! - a MultiClusterService puts its own label on the copy: no pod carries that.
//!
//! Copies where the record has none make the record older than the members: then what runs counts as placed, and nothing
//! is decided while a member that is not on record cannot be asked, since it may hold a copy too.

mod identity;

pub(crate) use identity::{Bearer, Identities, Identity, annotate, is_identity};

use crate::capacity::Owner;
use crate::fleet::{CopyKind, CopyMeta, Fleet, Member, Needs, is_confirmed_lost};
use identity::Life;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::{ForeignCluster, Reason};
use portolan_runtime::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How soon to ask again for members that a decision waits for; their return does not wake everybody.
pub(crate) const AWAITING_MEMBERS: Duration = Duration::from_secs(5);

/// Whether copies of a kind belong to objects of the kind of this owner.
fn may_own(member: &Member, owner: &Owner, kind: &str) -> bool {
    member.copy_kinds().any(|copies| copies.name == kind && copies.owner == owner.kind)
}

/// How many orphans a condition names.
const NAMED_AT_MOST: usize = 16;

/// The copies that were in members when this leader first listed them, by cluster and kind; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct InitialCopies(Arc<Mutex<BTreeMap<String, Kinds>>>);

/// The uids of copies, by kind.
type Kinds = BTreeMap<&'static str, BTreeSet<String>>;

impl InitialCopies {
    /// Takes what a member holds when it was first listed. It is told of every change in a member, so that it is the first
    /// list that is taken.
    pub(crate) fn notice(&self, fleet: &Fleet, cluster: &str) {
        let Some(member) = fleet.member(cluster) else {
            if fleet.clusters.get(&Key::cluster(cluster)).is_none() {
                self.lock().remove(cluster);
            }
            return;
        };
        let mut all = self.lock();
        let kinds = all.entry(cluster.to_owned()).or_default();
        for kind in member.copy_kinds() {
            if !kinds.contains_key(kind.name)
                && let Some(copies) = member.copies(kind)
            {
                kinds.insert(kind.name, copies.into_iter().map(|(_, meta)| meta.uid).collect());
            }
        }
    }

    /// Counts a copy among those that were there, since it was taken over.
    pub(crate) fn add(&self, cluster: &str, kind: &'static str, uid: &str) {
        if let Some(uids) = self.lock().get_mut(cluster).and_then(|kinds| kinds.get_mut(kind)) {
            uids.insert(uid.to_owned());
        }
    }

    /// Whether a copy was there when the member was first listed.
    fn was_there(&self, cluster: &str, kind: &str, uid: &str) -> bool {
        self.lock().get(cluster).and_then(|kinds| kinds.get(kind)).is_none_or(|uids| uids.contains(uid))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kinds>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of looking for copies of an object that the hub does not know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// There are none, or they are on record.
    Nothing,
    /// Members are still becoming known.
    NotYet,
    /// The copies in these clusters are the object's, by this identity.
    TakeOver { identity: String, clusters: Vec<String> },
    /// The copies are of several identities, none of them in more clusters than another: the clusters by identity.
    Ambiguous(BTreeMap<String, Vec<String>>),
    /// The record is older than the members, and these cannot be asked.
    Awaiting(Vec<String>),
}

impl Fleet {
    /// Whether a copy that belongs to no object of the hub may be deleted.
    pub(crate) fn may_sweep(&self, member: &Member, kind: &str, meta: &CopyMeta) -> bool {
        let was_there = || self.initial_copies.was_there(&member.name, kind, &meta.uid);
        let Some(identity) = meta.workload.as_deref() else {
            // Somebody removed its label. Its owner may be gone because the hub has lost it.
            let ended =
                |owner: &Owner| meta.owner.as_ref() == Some(&owner.key) && may_own(member, owner, kind);
            return !was_there() && self.identities.has_ended(ended);
        };
        match self.identities.life(identity) {
            Life::Present | Life::Vanished => false,
            // Only what belonged to the very object that was deleted goes with it.
            Life::Ended(owner) => meta.owner.as_ref() == Some(&owner.key) && may_own(member, &owner, kind),
            Life::NeverSeen => !was_there(),
        }
    }

    /// Whether a copy of this name is what an object of the hub had before it was made anew.
    pub(crate) fn is_former(&self, member: &Member, kind: &str, key: &Key, meta: &CopyMeta) -> bool {
        let its_own = |owner: Owner| owner.key == *key && may_own(member, &owner, kind);
        let free = |identity: &String| self.identities.owner(identity).is_none_or(its_own);
        meta.owner.as_ref() == Some(key)
            && meta.workload.as_ref().is_some_and(|identity| is_identity(identity) && free(identity))
            && !self.may_sweep(member, kind, meta)
    }

    /// Whether a copy was there before this leader, in a cluster that the record does not name.
    pub(crate) fn is_unrecorded(
        &self,
        member: &Member,
        kind: &str,
        meta: &CopyMeta,
        on_record: bool,
    ) -> bool {
        !on_record && self.initial_copies.was_there(&member.name, kind, &meta.uid)
    }

    /// Looks in all members for copies of an object that the record does not know of.
    pub(crate) fn recovery(
        &self,
        kind: &str,
        needs: Needs,
        key: &Key,
        identity: &str,
        on_record: impl Fn(&str) -> bool,
        meta: impl Fn(&Member) -> Option<CopyMeta>,
    ) -> Recovery {
        let (mut own, mut unseen, mut unrecorded, mut joining) = (false, false, false, false);
        let mut silent = Vec::new();
        let (mut away, mut former) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
        for (name, cluster) in self.clusters.all() {
            let (name, recorded) = (name.name.clone(), on_record(&name.name));
            let member = self.member(&name);
            let answers = member.as_ref().is_some_and(|member| member.is_known(needs));
            if !answers {
                joining |= member.is_none() && !self.is_unconnected(&name);
                unseen |= recorded;
                if recorded {
                    silent.push(name.clone());
                }
                if !recorded && !is_given_up(&cluster) {
                    away.push(name.clone());
                }
            }
            let Some(member) = member else { continue };
            let Some(meta) = meta(&member) else { continue };
            if meta.is_of(identity) {
                own = true;
                unrecorded |= self.is_unrecorded(&member, kind, &meta, recorded);
            } else if let Some(theirs) = &meta.workload
                && self.is_former(&member, kind, key, &meta)
            {
                former.entry(theirs.clone()).or_default().push(name);
            }
        }
        let takes_over = !own && !former.is_empty();
        if takes_over && unseen {
            // Whether the copies on record in silent clusters are of the present identity is not known.
            return if self.is_starting() { Recovery::NotYet } else { Recovery::Awaiting(silent) };
        }
        if !takes_over && !unrecorded {
            return Recovery::Nothing;
        }
        if self.is_starting() && (joining || !away.is_empty()) {
            return Recovery::NotYet;
        }
        if takes_over {
            let most = former.values().map(Vec::len).max().unwrap_or_default();
            let mut first = former.iter().filter(|(_, clusters)| clusters.len() == most);
            return match (first.next(), first.next()) {
                (Some((identity, clusters)), None) => {
                    Recovery::TakeOver { identity: identity.clone(), clusters: clusters.clone() }
                }
                // One of them may be a lie: users decide.
                _ => Recovery::Ambiguous(former),
            };
        }
        if away.is_empty() { Recovery::Nothing } else { Recovery::Awaiting(away) }
    }
}

/// Whether a namespace of a member has a copy of such an identity that runs pods: what was carried there for it is needed.
pub(crate) fn has_copy(member: &Member, namespace: &str, is_its: impl Fn(&str) -> bool) -> bool {
    let here = |key: &Key, meta: &CopyMeta| key.namespace == namespace && meta.workload.is_some();
    let kinds = member.copy_kinds().filter(|kind| kind.runs_pods);
    let copies = kinds.flat_map(|kind| member.copies_that(kind, &here)).flatten();
    copies.filter_map(|(_, meta)| meta.workload).any(|identity| is_its(&identity))
}

/// What is told of copies in a member that belong to no object of the hub; nothing if there are none and never were.
pub(crate) fn finding(fleet: &Fleet, member: &Member, cluster: &ForeignCluster) -> Option<Finding> {
    let told = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let recorded = conditions::find(told, ConditionType::Orphaned).is_some();
    let owners: Vec<&str> = member.copy_kinds().map(|kind| kind.owner).collect();
    let is_known = member.copy_kinds().all(|kind| member.is_known(kind.needs));
    if !fleet.identities.has_listed(&owners) || !is_known {
        return None;
    }
    // Most copies have their object, and this is asked often: the others alone are looked at any closer.
    let is_unowned = |_: &Key, meta: &CopyMeta| {
        meta.workload.as_deref().is_some_and(|identity| !fleet.identities.is_there(identity))
    };
    let unowned = |kind: CopyKind| Some((kind.name, member.copies_that(kind, &is_unowned)?));
    let unowned: Vec<(&str, Vec<(Key, CopyMeta)>)> = member.copy_kinds().filter_map(unowned).collect();
    let identities =
        || unowned.iter().flat_map(|(_, copies)| copies).filter_map(|(_, meta)| meta.workload.as_ref());
    let unreadable: BTreeSet<&String> = match identities().next() {
        Some(_) => fleet.ledger.transact(|book| identities().filter(|each| book.is_there(each)).collect()),
        None => BTreeSet::new(),
    };
    let (mut named, mut count) = (Vec::new(), 0usize);
    for (kind, copies) in &unowned {
        for (key, meta) in copies {
            let is_read = meta.workload.as_ref().is_some_and(|identity| !unreadable.contains(identity));
            if is_read && !fleet.may_sweep(member, kind, meta) {
                count += 1;
                if named.len() < NAMED_AT_MOST {
                    named.push(format!("{kind} {key}"));
                }
            }
        }
    }
    if count == 0 {
        let none = || {
            Finding::new(
                ConditionType::Orphaned,
                false,
                Reason::NoOrphans,
                "every copy has its object in the hub",
            )
        };
        return recorded.then(none);
    }
    let more = match count - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (objects, have) = if count == 1 { ("object was", "has") } else { ("objects were", "have") };
    let message = format!(
        "{count} {objects} placed by this hub and {have} no object in it: {}{more}. What runs stays as it is. Create the \
         object again and it takes over what runs, or delete that in the member; see `portolan adopt --list`",
        named.join(", ")
    );
    Some(Finding::new(ConditionType::Orphaned, true, Reason::ObjectsNotFound, message))
}

/// Whether nobody waits for a cluster: it leaves the fleet, or a user has confirmed that it is lost.
pub(crate) fn is_given_up(cluster: &ForeignCluster) -> bool {
    is_confirmed_lost(cluster) || cluster.metadata.deletion_timestamp.is_some()
}

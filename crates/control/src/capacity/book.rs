//! The book itself: clusters, reservations, and how the ones follow from the others.

use super::clusters::Clusters;
use super::reservations::{Assumed, Entry, Owner, Reservation};
use super::waiting::Waiting;
use portolan_core::capacity::{Amounts, ClusterIndex, ClusterSummary, Growth, Quota, Shape, Shortage, View};
use portolan_runtime::{Change, Key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Room and reservations of the whole fleet.
#[derive(Debug, Default)]
pub struct Book {
    pub(super) clusters: Clusters,
    reservations: Arc<BTreeMap<String, Arc<Entry>>>,
    uids: Arc<BTreeMap<Owner, String>>,
    /// How clusters may grow that were told to.
    growths: BTreeMap<String, Growth>,
    /// What may be used of clusters at most, where more than their nodes is a bound.
    quotas: BTreeMap<String, Quota>,
    awaited: BTreeSet<&'static str>,
    /// By kind, the uids of workloads that are there and cannot be read.
    unreadable: BTreeMap<&'static str, BTreeSet<String>>,
    pub(super) waiting: Waiting,
    pub(super) epoch: u64,
}

impl Book {
    /// Whether the reservations of all kinds are known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Takes a change of a kind of workloads. Whoever keeps an index of the kind lets the ledger know first.
    pub fn take<T>(
        &mut self,
        kind: &'static str,
        change: &Change<T>,
        reservation: impl Fn(&T) -> Reservation,
    ) {
        match change {
            Change::Set(key, object) => self.record(Owner { kind, key: key.clone() }, reservation(object)),
            Change::Gone(key) => self.gone(&Owner { kind, key: key.clone() }),
            Change::Listed(all) => {
                let of_kind = self.uids.keys().filter(|owner| owner.kind == kind);
                let gone: Vec<_> = of_kind.filter(|owner| !all.contains_key(&owner.key)).cloned().collect();
                gone.iter().for_each(|owner| self.gone(owner));
                for (key, object) in all {
                    self.record(Owner { kind, key: key.clone() }, reservation(object));
                }
                self.awaited.remove(kind);
            }
        }
    }

    /// A book for a what-if: it begins with what this one says, and reservations that are made or given up in it stay in
    /// it. It costs little: a cluster is copied when something has to be counted for one of the two books, and then
    /// without its nodes and pods. No watch writes to it, and it wakes nobody.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            clusters: self.clusters.fork(),
            reservations: Arc::clone(&self.reservations),
            uids: Arc::clone(&self.uids),
            growths: self.growths.clone(),
            quotas: self.quotas.clone(),
            awaited: self.awaited.clone(),
            unreadable: self.unreadable.clone(),
            waiting: Waiting::default(),
            epoch: self.epoch,
        }
    }

    /// Takes how a cluster may grow.
    pub fn set_growth(&mut self, cluster: &str, growth: Growth) {
        if self.clusters.change(cluster, |index| index.set_growth(growth.clone())) == Some(true) {
            self.waiting.freed(cluster);
        }
        if growth == Growth::Fixed {
            self.growths.remove(cluster);
        } else {
            self.growths.insert(cluster.to_owned(), growth);
        }
    }

    /// How a cluster may grow.
    #[must_use]
    pub fn growth(&self, cluster: &str) -> Growth {
        self.growths.get(cluster).cloned().unwrap_or_default()
    }

    /// Takes what may be used of a cluster at most.
    pub fn set_quota(&mut self, cluster: &str, quota: Option<Quota>) {
        if self.clusters.change(cluster, |index| index.set_quota(quota.clone())) == Some(true) {
            self.waiting.freed(cluster);
        }
        match quota {
            Some(quota) => _ = self.quotas.insert(cluster.to_owned(), quota),
            None => _ = self.quotas.remove(cluster),
        }
    }

    /// What may be used of a cluster at most, if more than its nodes is a bound.
    #[must_use]
    pub fn quota(&self, cluster: &str) -> Option<&Quota> {
        self.quotas.get(cluster)
    }

    /// The cluster as a workload with replicas of this shape sees it. A cluster that is not known has no room.
    pub fn view(&mut self, cluster: &str, uid: &str, shape: &Shape) -> View {
        let view = self.clusters.view(cluster, uid, shape);
        view.unwrap_or_else(|| View { reserved: self.reserved(cluster, uid), ..View::default() })
    }

    /// How many pods of a workload have a node in a cluster, of whichever template.
    #[must_use]
    pub fn bound(&self, cluster: &str, uid: &str) -> u32 {
        self.clusters.get(cluster).map_or(0, |index| index.bound(uid))
    }

    /// How many replicas a workload holds in a cluster.
    #[must_use]
    pub fn reserved(&self, cluster: &str, uid: &str) -> u32 {
        let entry = self.reservations.get(uid);
        let reserved = entry.map(|entry| {
            entry.assumed.as_ref().map_or(&entry.recorded.reserved, |assumed| &assumed.reserved)
        });
        reserved.and_then(|reserved| reserved.get(cluster).copied()).unwrap_or(0)
    }

    /// Why no replica fits in a cluster any more when `more` of the workload have found their place there.
    pub fn shortage(&mut self, cluster: &str, uid: &str, shape: &Shape, more: u32) -> Shortage {
        self.clusters.ask(cluster).map(|index| index.shortage(uid, shape, more)).unwrap_or_default()
    }

    /// All that is free in a cluster for a workload, on nodes that take its shape.
    pub fn free(&mut self, cluster: &str, uid: &str, shape: &Shape) -> Amounts {
        self.clusters.ask(cluster).map(|index| index.free(uid, shape)).unwrap_or_default()
    }

    /// The replicas that are reserved in a cluster and have no node there yet, by shape.
    #[must_use]
    pub fn unbound(&self, cluster: &str) -> Vec<(Shape, u32)> {
        let known = self.clusters.get(cluster);
        known
            .into_iter()
            .flat_map(|known| known.unbound())
            .map(|(shape, count)| (shape.clone(), count))
            .collect()
    }

    /// What is known of a cluster, node by node.
    pub(crate) fn index(&self, cluster: &str) -> Option<&ClusterIndex> {
        self.clusters.get(cluster)
    }

    /// A cluster in numbers, once it is known.
    #[must_use]
    pub fn summary(&self, cluster: &str) -> Option<ClusterSummary> {
        self.clusters.get(cluster).map(ClusterIndex::summary)
    }

    /// What the pods in these namespaces of a cluster request that have a node.
    pub fn used_in<'a>(&self, cluster: &str, namespaces: impl IntoIterator<Item = &'a str>) -> Amounts {
        self.clusters.get(cluster).map(|index| index.used_in(namespaces)).unwrap_or_default()
    }

    /// Takes a decision for granted: from now on the workload holds this, until its object comes back with another
    /// version. `decided_on` is the version that the decision was taken on; answers whether that is still the last one
    /// known. If not, nothing is reserved, and the decision is to be taken again.
    #[must_use]
    pub fn assume(
        &mut self,
        uid: &str,
        decided_on: Option<&str>,
        shape: &Shape,
        reserved: BTreeMap<String, u32>,
    ) -> bool {
        let current = |entry: &Arc<Entry>| entry.recorded.version.as_deref() == decided_on;
        if !self.reservations.get(uid).is_some_and(current) {
            return false;
        }
        self.change(uid, |entry| entry.assumed = Some(Assumed { shape: shape.clone(), reserved }));
        true
    }

    /// A decision could not be written: the workload holds what its object says.
    pub fn retract(&mut self, uid: &str) {
        if self.reservations.get(uid).is_some_and(|entry| entry.assumed.is_some()) {
            self.change(uid, |entry| entry.assumed = None);
        }
    }

    /// Puts a reservation in the place of the one that its workload has, in a fork.
    pub(crate) fn suppose(&mut self, owner: Owner, reservation: Reservation) {
        let uid = reservation.uid.clone();
        self.record(owner, reservation);
        self.change(&uid, |entry| entry.assumed = None);
    }

    /// Whether a workload of this owner is on record with another uid.
    pub(crate) fn has_namesake(&self, owner: &Owner, uid: &str) -> bool {
        self.uids.get(owner).is_some_and(|known| known != uid)
    }

    pub(super) fn expect(&mut self, kind: &'static str) {
        self.awaited.insert(kind);
    }

    /// These workloads of a kind are there and cannot be read: what they hold is not known.
    pub fn cannot_read(&mut self, kind: &'static str, uids: BTreeSet<String>) {
        self.unreadable.insert(kind, uids);
    }

    /// Whether there is a workload with this uid, be it one that cannot be read.
    #[must_use]
    pub fn is_there(&self, uid: &str) -> bool {
        self.reservations.contains_key(uid) || self.unreadable.values().any(|uids| uids.contains(uid))
    }

    /// The workload with this uid, if it is there and its kind holds room.
    #[must_use]
    pub fn owner(&self, uid: &str) -> Option<&Owner> {
        self.reservations.get(uid).map(|entry| &entry.owner)
    }

    /// All reservations: the cluster, the owner, and how many replicas.
    pub fn holders(&self) -> impl Iterator<Item = (&str, &Owner, u32)> {
        self.reservations.values().flat_map(|entry| {
            let reserved = entry.holds().into_iter().flat_map(|(_, reserved)| reserved);
            reserved.map(|(cluster, count)| (cluster.as_str(), &entry.owner, *count))
        })
    }

    /// How many workloads hold any replica in a cluster.
    #[must_use]
    pub fn count_holders(&self, cluster: &str) -> usize {
        let held = |entry: &Arc<Entry>| {
            entry
                .holds()
                .and_then(|(_, reserved)| reserved.get(cluster))
                .is_some_and(|replicas| *replicas > 0)
        };
        self.reservations.values().filter(|entry| held(entry)).count()
    }

    /// The reservations in a cluster that is new to the book.
    pub(super) fn reservations_of(&self, cluster: &str) -> Vec<(String, Shape, u32)> {
        let reserved = |(uid, entry): (&String, &Arc<Entry>)| {
            let (shape, reserved) = entry.holds()?;
            Some((uid.clone(), shape.clone(), *reserved.get(cluster)?))
        };
        self.reservations.iter().filter_map(reserved).collect()
    }

    fn record(&mut self, owner: Owner, reservation: Reservation) {
        let uid = reservation.uid.clone();
        // A namesake that was made anew has another uid.
        if self.uids.get(&owner).is_some_and(|known| *known != uid) {
            self.gone(&owner);
        }
        // Nobody holds room in another's name.
        if let Some(other) = self.owner(&uid).filter(|other| **other != owner).cloned() {
            self.gone(&other);
        }
        let waits = Some(&reservation.waits).filter(|waits| waits.is_somewhere());
        self.waiting.set(&owner, reservation.shape.as_ref().zip(waits));
        if !self.reservations.contains_key(&uid) {
            let recorded = Reservation { reserved: BTreeMap::new(), ..reservation.clone() };
            Arc::make_mut(&mut self.uids).insert(owner.clone(), uid.clone());
            let entry = Entry { owner, recorded, assumed: None };
            Arc::make_mut(&mut self.reservations).insert(uid.clone(), Arc::new(entry));
        }
        self.change(&uid, |entry| {
            if entry.recorded.version != reservation.version {
                entry.assumed = None;
            }
            entry.recorded = reservation;
        });
    }

    fn gone(&mut self, owner: &Owner) {
        self.waiting.set(owner, None);
        if !self.uids.contains_key(owner) {
            return;
        }
        let Some(uid) = Arc::make_mut(&mut self.uids).remove(owner) else { return };
        Arc::make_mut(&mut self.reservations).remove(&uid);
        for name in self.clusters.knowing(&uid) {
            if self.clusters.change(&name, |index| index.forget(&uid)) == Some(true) {
                self.waiting.freed(&name);
            }
        }
    }

    /// Changes an entry, and what it holds in clusters along with it.
    fn change(&mut self, uid: &str, change: impl FnOnce(&mut Entry)) {
        if !self.reservations.contains_key(uid) {
            return;
        }
        let Some(entry) = Arc::make_mut(&mut self.reservations).get_mut(uid).map(Arc::make_mut) else {
            return;
        };
        let before: Vec<String> =
            entry.holds().map(|(_, reserved)| reserved.keys().cloned().collect()).unwrap_or_default();
        change(entry);
        let holds = entry.holds();
        let after = holds.map(|(_, reserved)| reserved);
        for name in before.iter().filter(|name| after.is_none_or(|after| !after.contains_key(*name))) {
            if self.clusters.change(name, |index| index.release(uid)) == Some(true) {
                self.waiting.freed(name);
            }
        }
        for (shape, (name, replicas)) in
            holds.into_iter().flat_map(|(shape, reserved)| reserved.iter().map(move |each| (shape, each)))
        {
            if self.clusters.change(name, |index| index.reserve(uid, shape, *replicas)) == Some(true) {
                self.waiting.freed(name);
            }
        }
    }
}

impl Owner {
    /// The owner of this kind and key.
    #[must_use]
    pub fn new(kind: &'static str, key: &Key) -> Self {
        Self { kind, key: key.clone() }
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;

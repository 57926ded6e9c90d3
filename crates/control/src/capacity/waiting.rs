//! Who waits for room.

use super::{Owner, Waits};
use portolan_core::capacity::Shape;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Who waits, and what has changed.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) by_shape: BTreeMap<Shape, BTreeMap<Owner, Waits>>,
    shapes: BTreeMap<Owner, Shape>,
    /// Clusters that have changed, and whether there may be more room.
    pub(super) changed: BTreeMap<String, bool>,
    /// The cluster that was asked in part in the last round, and the shape up to which.
    pub(super) asked: Option<(String, Shape)>,
    /// Those that are to be woken, after the one that was woken last.
    pub(super) backlog: BTreeMap<Owner, Cause>,
    pub(super) last: Option<Owner>,
    /// How many were woken in the last round, if others were left for this one.
    pub(super) round: usize,
}

/// Why somebody is to be woken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// There is room in these clusters, if nobody else has taken it.
    Room(BTreeSet<String>),
    /// Replicas have no node, and may find none where they are.
    NoNode,
}

impl Waiting {
    /// A workload waits for room for this shape in some clusters, or for none.
    pub(super) fn set(&mut self, owner: &Owner, waits: Option<(&Shape, &Waits)>) {
        let known =
            self.shapes.get(owner).and_then(|shape| Some((shape, self.by_shape.get(shape)?.get(owner)?)));
        if known == waits {
            return;
        }
        if let Some(before) = self.shapes.remove(owner)
            && let Some(owners) = self.by_shape.get_mut(&before)
        {
            owners.remove(owner);
            if owners.is_empty() {
                self.by_shape.remove(&before);
            }
        }
        if let Some((shape, waits)) = waits {
            self.shapes.insert(owner.clone(), shape.clone());
            self.by_shape.entry(shape.clone()).or_default().insert(owner.clone(), waits.clone());
        }
    }

    /// The shape for which a workload waits for room.
    pub(super) fn shape(&self, owner: &Owner) -> Option<&Shape> {
        self.shapes.get(owner)
    }

    /// There is room in a cluster for a shape.
    pub(super) fn hope(&mut self, shape: &Shape, cluster: &str) {
        let owners = self.by_shape.get(shape).into_iter().flatten();
        for (owner, _) in owners.filter(|(_, waits)| waits.wants(cluster)) {
            let cause = self.backlog.entry(owner.clone()).or_insert_with(|| Cause::Room(BTreeSet::new()));
            if let Cause::Room(clusters) = cause {
                clusters.insert(cluster.to_owned());
            }
        }
    }

    /// Takes the next one of the backlog, in turn after this one.
    pub(super) fn next(&mut self, after: Option<&Owner>) -> Option<(Owner, Cause)> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.backlog.range((after, Bound::Unbounded)).next();
        let (owner, _) = later.or_else(|| self.backlog.first_key_value())?;
        let owner = owner.clone();
        self.backlog.remove_entry(&owner)
    }

    /// There may be more room in a cluster.
    pub(super) fn freed(&mut self, cluster: &str) {
        // What was asked of it before is not true any more.
        self.asked.take_if(|(asked, _)| asked == cluster);
        match self.changed.get_mut(cluster) {
            Some(freed) => *freed = true,
            None => _ = self.changed.insert(cluster.to_owned(), true),
        }
    }

    /// The room of a cluster has changed.
    pub(super) fn changed(&mut self, cluster: &str) {
        if !self.changed.contains_key(cluster) {
            self.changed.insert(cluster.to_owned(), false);
        }
    }

    /// Whether somebody may have to be woken.
    pub(super) fn is_stirred(&self) -> bool {
        !self.changed.is_empty() || !self.backlog.is_empty()
    }
}

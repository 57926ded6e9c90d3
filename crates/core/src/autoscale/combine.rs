//! From the wishes of the clusters to the one number of the workload.

use portolan_api::placement::ReplicasMode;
use std::cmp::Ordering;

/// How the replicas of a workload are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    /// The replicas of the workload, as its spec says.
    pub(super) replicas: u32,
    /// Whether they are for each location or for all.
    pub(super) mode: ReplicasMode,
    /// How many locations there are.
    pub(super) locations: u32,
}

impl Count {
    /// How many replicas are asked for in all clusters together.
    pub(super) fn total(self) -> u32 {
        match self.mode {
            ReplicasMode::PerLocation => self.replicas.saturating_mul(self.locations.max(1)),
            ReplicasMode::Total => self.replicas,
        }
    }

    /// The number that clusters ask for; each is given as (current, desired). None if there is none.
    ///
    /// A location that has all its replicas in a cluster of its own asks for itself, and the largest wish counts. What
    /// clusters hold of other locations is asked for by all of them together.
    pub(super) fn by_clusters(self, wishes: &[(u32, u32)]) -> Option<u32> {
        let wishes = wishes.iter().filter(|(current, desired)| current.max(desired) > &0);
        let wishes: Vec<(u32, u32)> = wishes.copied().collect();
        let one_each = self.is_one_each(&wishes);
        let is_own = |(current, _): &(u32, u32)| match self.mode {
            ReplicasMode::PerLocation => one_each || *current == self.replicas,
            ReplicasMode::Total => false,
        };
        let (own, shared): (Vec<_>, Vec<_>) = wishes.into_iter().partition(is_own);
        let largest = own.iter().map(|wish| self.of_location(*wish)).max();
        largest.max(self.shared(&shared, u32::try_from(own.len()).unwrap_or(u32::MAX)))
    }

    /// Whether each location has a cluster of its own, though not with the replicas of the spec: those were just changed, or
    /// there is no room for all. No cluster holds replicas of two locations then, or it would have more than others.
    fn is_one_each(self, wishes: &[(u32, u32)]) -> bool {
        let same = |(one, other): (&(u32, u32), &(u32, u32))| one.0 == other.0;
        u32::try_from(wishes.len()) == Ok(self.locations)
            && (wishes.iter().all(|(current, _)| *current <= self.replicas)
                || wishes.iter().zip(wishes.iter().skip(1)).all(same))
    }

    /// What a location with a cluster of its own asks for. If that has not the replicas of the spec, these count where its
    /// load asks for no fewer than it has: replicas without a cluster have no load.
    fn of_location(self, (current, desired): (u32, u32)) -> u32 {
        match desired.cmp(&current) {
            Ordering::Less => desired,
            Ordering::Equal => self.replicas,
            Ordering::Greater => desired.max(self.replicas),
        }
    }

    /// The number that a total for all clusters comes to.
    pub(super) fn by_total(self, total: u32) -> u32 {
        if total == self.total() {
            return self.replicas;
        }
        match self.mode {
            ReplicasMode::PerLocation => total.div_ceil(self.locations.max(1)),
            ReplicasMode::Total => total,
        }
    }

    /// What clusters ask for that hold replicas of the same locations.
    fn shared(self, wishes: &[(u32, u32)], own_locations: u32) -> Option<u32> {
        if wishes.is_empty() {
            return None;
        }
        let sum = |each: fn(&(u32, u32)) -> u32| wishes.iter().map(each).fold(0, u32::saturating_add);
        let (current, desired) = (sum(|wish| wish.0), sum(|wish| wish.1));
        let locations = match self.mode {
            ReplicasMode::PerLocation => self.locations.saturating_sub(own_locations),
            ReplicasMode::Total => 1,
        };
        // More replicas than the locations ask for are on their way to another cluster.
        let locations = if locations == 0 { current / self.replicas.max(1) } else { locations };
        let number = desired.div_ceil(locations.max(1));
        // Replicas without a cluster have no load. They are given up only if those with a cluster are too many.
        let unchanged = wishes.iter().all(|(current, desired)| current == desired);
        Some(if unchanged {
            self.replicas
        } else if desired >= current {
            number.max(self.replicas)
        } else {
            number
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ReplicasMode::{PerLocation, Total};

    #[test]
    fn wishes_of_clusters_become_one_number() {
        type Case<'a> = (&'a str, u32, ReplicasMode, u32, &'a [(u32, u32)], Option<u32>);
        let cases: [Case<'_>; 17] = [
            ("the largest wish of the locations", 4, PerLocation, 3, &[(4, 3), (4, 7), (4, 4)], Some(7)),
            ("all locations ask for fewer", 4, PerLocation, 2, &[(4, 2), (4, 3)], Some(3)),
            ("one location on three clusters", 9, PerLocation, 1, &[(4, 6), (3, 5), (2, 2)], Some(13)),
            ("a cluster stands in for another location", 3, PerLocation, 2, &[(6, 8)], Some(4)),
            (
                "one location in its cluster, one on two",
                4,
                PerLocation,
                2,
                &[(4, 5), (3, 6), (1, 2)],
                Some(8),
            ),
            ("replicas without a cluster, constant load", 10, PerLocation, 1, &[(6, 6)], Some(10)),
            ("replicas without a cluster, more load", 10, PerLocation, 1, &[(6, 8)], Some(10)),
            ("replicas without a cluster, less load", 10, PerLocation, 1, &[(6, 5)], Some(5)),
            ("replicas on their way elsewhere", 4, PerLocation, 1, &[(4, 4), (2, 2)], Some(4)),
            ("the sum of a total", 10, Total, 3, &[(4, 6), (3, 3), (3, 1)], Some(10)),
            ("load that moves", 10, Total, 2, &[(5, 10), (5, 0)], Some(10)),
            ("nothing is placed", 10, Total, 2, &[], None),
            ("fewer were just asked for", 7, PerLocation, 3, &[(8, 7), (8, 1), (8, 1)], Some(7)),
            ("more were just asked for", 7, PerLocation, 3, &[(4, 7), (4, 1), (4, 1)], Some(7)),
            ("no location has room for all", 7, PerLocation, 3, &[(5, 6), (4, 1), (3, 1)], Some(7)),
            (
                "no location has room for all, less load",
                7,
                PerLocation,
                3,
                &[(5, 3), (4, 1), (3, 1)],
                Some(3),
            ),
            ("from zero", 0, PerLocation, 2, &[(0, 3), (0, 0)], Some(3)),
        ];
        for (about, replicas, mode, locations, wishes, expected) in cases {
            assert_eq!(Count { replicas, mode, locations }.by_clusters(wishes), expected, "{about}");
        }
    }

    #[test]
    fn a_total_for_all_clusters_is_shared_by_the_locations() {
        let count = Count { replicas: 4, mode: PerLocation, locations: 3 };
        assert_eq!((count.total(), count.by_total(12), count.by_total(13), count.by_total(7)), (12, 4, 5, 3));
        let count = Count { replicas: 4, mode: Total, locations: 3 };
        assert_eq!((count.total(), count.by_total(13)), (4, 13));
    }
}

//! The workloads of ours that are known in a cluster, and a quick no to the question whether one is.

use super::pods::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many bits a filter has.
const BITS: usize = 256;

/// Which workloads a cluster may know: whoever is not in it is not known there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadFilter([u64; BITS / 64]);

impl WorkloadFilter {
    /// Whether the workload may be known. A no is certain.
    #[must_use]
    pub fn may_contain(&self, uid: &str) -> bool {
        let bit = bit(uid);
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn set(&mut self, bit: usize, to: bool) {
        let mask = 1 << (bit % 64);
        if to {
            self.0[bit / 64] |= mask;
        } else {
            self.0[bit / 64] &= !mask;
        }
    }
}

/// The bit of a workload. Uids are random, so that little mixing is enough.
fn bit(uid: &str) -> usize {
    let mut hash = 0_u64;
    for chunk in uid.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    (hash >> 56) as usize % BITS
}

/// Workloads by uid.
#[derive(Clone, Debug)]
pub(super) struct Workloads {
    all: BTreeMap<Arc<str>, Workload>,
    /// How many workloads share each bit.
    counts: Box<[u32; BITS]>,
    filter: WorkloadFilter,
}

impl Default for Workloads {
    fn default() -> Self {
        Self { all: BTreeMap::new(), counts: Box::new([0; BITS]), filter: WorkloadFilter::default() }
    }
}

impl Workloads {
    /// A decision asks every cluster, and most of them do not know the workload.
    pub(super) fn contains(&self, uid: &str) -> bool {
        self.filter.may_contain(uid) && self.all.contains_key(uid)
    }

    pub(super) fn filter(&self) -> WorkloadFilter {
        self.filter
    }

    pub(super) fn get(&self, uid: &str) -> Option<&Workload> {
        self.all.get(uid)
    }

    pub(super) fn get_mut(&mut self, uid: &str) -> Option<&mut Workload> {
        self.all.get_mut(uid)
    }

    /// The uid as it is kept, if the workload is known.
    pub(super) fn uid(&self, uid: &str) -> Option<&Arc<str>> {
        self.all.get_key_value(uid).map(|(uid, _)| uid)
    }

    /// The workload, which is known from now on.
    pub(super) fn known(&mut self, uid: &Arc<str>) -> &mut Workload {
        if !self.all.contains_key(uid) {
            let bit = bit(uid);
            self.counts[bit] += 1;
            self.filter.set(bit, true);
        }
        self.all.entry(Arc::clone(uid)).or_default()
    }

    pub(super) fn remove(&mut self, uid: &str) {
        if self.all.remove(uid).is_some() {
            let bit = bit(uid);
            self.counts[bit] -= 1;
            self.filter.set(bit, self.counts[bit] > 0);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Workload)> {
        self.all.iter()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Workload> {
        self.all.values()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.counts.iter().all(|count| *count == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_known_is_in_the_filter_and_leaves_it() {
        let uids: Vec<Arc<str>> = (0..600).map(|number| format!("{number}-uid").into()).collect();
        let mut workloads = Workloads::default();
        assert!(uids.iter().all(|uid| !workloads.filter.may_contain(uid)));
        for uid in &uids {
            workloads.known(uid);
            workloads.known(uid);
        }
        assert!(uids.iter().all(|uid| workloads.filter.may_contain(uid)));
        for uid in &uids[10..] {
            workloads.remove(uid);
            workloads.remove(uid);
        }
        assert!(uids[..10].iter().all(|uid| workloads.filter.may_contain(uid)));
        let taken = uids.iter().filter(|uid| workloads.filter.may_contain(uid)).count();
        assert!(taken < 100, "of 600 uids {taken} may be among 10");
        uids[..10].iter().for_each(|uid| workloads.remove(uid));
        assert!(workloads.is_empty() && workloads.filter == WorkloadFilter::default());
    }
}

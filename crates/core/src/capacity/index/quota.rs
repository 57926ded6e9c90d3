//! What may be used of a cluster, whatever its nodes have, and what namespaces use.

use super::pods::Pod;
use super::resources::{Need, Resources, clamp};
use super::view::View;
use crate::capacity::Amounts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What may be used of a cluster at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    /// How much, by resource. What is not named is not bounded.
    pub hard: Amounts,
    /// The namespaces whose pods use it.
    pub namespaces: BTreeSet<String>,
    /// Why nothing new may be placed there, if so: then nothing is left, whatever is used.
    pub closed: Option<String>,
}

/// What is lacking of a quota for one more pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::capacity) enum Exceeded {
    /// Nothing new may be placed.
    Closed(String),
    /// A resource: what is needed, what is left, and what there is in all.
    Resource { name: String, need: i64, left: i64, hard: i64 },
}

/// What the pods that have a node request, by namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage(Arc<BTreeMap<Box<str>, Used>>);

/// The pods of a namespace, and what they request together, by slot.
#[derive(Clone, Debug)]
struct Used {
    pods: usize,
    sums: Box<[i128]>,
}

impl Usage {
    /// Counts a pod in or out.
    pub(super) fn count(&mut self, key: &str, pod: &Pod, times: i8) {
        let Some(namespace) = namespace_of(key).filter(|_| pod.node.is_some()) else { return };
        let all = Arc::make_mut(&mut self.0);
        if !all.contains_key(namespace) {
            let sums = vec![0; pod.requests.vector.len()].into();
            all.insert(namespace.into(), Used { pods: 0, sums });
        }
        let Some(used) = all.get_mut(namespace) else { return };
        used.pods = used.pods.saturating_add_signed(isize::from(times));
        for (sum, milli) in used.sums.iter_mut().zip(&pod.requests.vector) {
            *sum += i128::from(*milli) * i128::from(times);
        }
        if used.pods == 0 {
            all.remove(namespace);
        }
    }

    /// Forgets everything, to be counted again.
    pub(super) fn clear(&mut self) {
        self.0 = Arc::default();
    }

    /// What pods in these namespaces request together, by slot.
    pub(super) fn of<'a>(&self, namespaces: impl IntoIterator<Item = &'a str>, slots: usize) -> Vec<i128> {
        let mut sum = vec![0; slots];
        for used in namespaces.into_iter().filter_map(|namespace| self.0.get(namespace)) {
            sum.iter_mut().zip(&used.sums).for_each(|(sum, used)| *sum += used);
        }
        sum
    }
}

/// The namespace in the key of a pod.
fn namespace_of(key: &str) -> Option<&str> {
    key.split_once('/').map(|(namespace, _)| namespace)
}

/// A quota in the slots of a cluster, and how much of it is used.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) quota: Quota,
    hard: Vec<Option<i64>>,
    used: Vec<i128>,
}

impl Bound {
    pub(super) fn new(quota: Quota, resources: &Resources, usage: &Usage) -> Self {
        let hard = resources.names().map(|name| quota.hard.find(name)).collect();
        let used = usage.of(quota.namespaces.iter().map(String::as_str), resources.len());
        Self { quota, hard, used }
    }

    /// Counts a pod in or out.
    pub(super) fn count(&mut self, key: &str, pod: &Pod, times: i8) {
        if pod.node.is_some() && namespace_of(key).is_some_and(|own| self.quota.namespaces.contains(own)) {
            for (used, milli) in self.used.iter_mut().zip(&pod.requests.vector) {
                *used += i128::from(*milli) * i128::from(times);
            }
        }
    }

    /// What is left by slot when so much more is taken than the pods use that have a node.
    pub(super) fn left(&self, taken: &[i128]) -> Vec<i64> {
        let of = |(slot, hard): (usize, &Option<i64>)| match hard {
            _ if self.quota.closed.is_some() => 0,
            Some(hard) => {
                let used = self.used.get(slot).copied().unwrap_or(0) + taken.get(slot).copied().unwrap_or(0);
                clamp((i128::from(*hard) - used).max(0))
            }
            None => i64::MAX,
        };
        self.hard.iter().enumerate().map(of).collect()
    }

    /// What is lacking for one more pod that needs so much, when this is left.
    pub(super) fn exceeded(&self, resources: &Resources, need: &Amounts, left: &[i64]) -> Vec<Exceeded> {
        if let Some(why) = &self.quota.closed {
            return vec![Exceeded::Closed(why.clone())];
        }
        let lacking = |((name, hard), left): ((&str, &Option<i64>), &i64)| {
            let (need, hard) = (need.get(name), (*hard)?);
            (need > *left).then(|| Exceeded::Resource { name: name.to_owned(), need, left: *left, hard })
        };
        resources.names().zip(&self.hard).zip(left).filter_map(lacking).collect()
    }
}

impl View {
    /// The view where no more than this is left, by slot.
    pub(super) fn within(mut self, need: &Need, left: &[i64]) -> Self {
        if !need.is_impossible() {
            let most = need.times(left);
            self.room.max_replicas = self.room.max_replicas.min(most);
            self.max_replicas_if_grown = self.max_replicas_if_grown.min(most);
        }
        self.room.cpu = self.room.cpu.min(left.first().copied().unwrap_or(i64::MAX));
        self.room.memory = self.room.memory.min(left.get(1).copied().unwrap_or(i64::MAX));
        self
    }
}

//! What is known of pods and of the workloads of ours that they belong to.

use super::resources::{Free, Resources};
use crate::capacity::{Amounts, Shape};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod that has not finished. It takes about a hundred bytes, its name included.
#[derive(Debug, PartialEq)]
pub(super) struct Pod {
    pub(super) node: Option<Arc<str>>,
    pub(super) requests: Arc<Requests>,
    pub(super) workload: Option<Arc<str>>,
}

/// What a pod requests; many pods share it.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) id: u32,
    pub(super) amounts: Amounts,
    pub(super) vector: Free,
}

impl PartialEq for Requests {
    fn eq(&self, other: &Self) -> bool {
        self.amounts == other.amounts
    }
}

/// All requests that pods of the cluster make.
#[derive(Debug, Default)]
pub(super) struct AllRequests {
    all: BTreeMap<Amounts, Arc<Requests>>,
    ids: BTreeMap<u32, Amounts>,
    next: u32,
}

impl AllRequests {
    /// These requests, shared with all pods that make them.
    pub(super) fn of(&mut self, amounts: Amounts, resources: &Resources) -> Arc<Requests> {
        if let Some(known) = self.all.get(&amounts) {
            return Arc::clone(known);
        }
        self.next += 1;
        let vector = resources.vector(&amounts);
        let requests = Arc::new(Requests { id: self.next, amounts: amounts.clone(), vector });
        self.ids.insert(self.next, amounts.clone());
        self.all.insert(amounts, Arc::clone(&requests));
        requests
    }

    /// The number of these requests, if any pod makes them.
    pub(super) fn id(&self, amounts: &Amounts) -> Option<u32> {
        self.all.get(amounts).map(|requests| requests.id)
    }

    /// The requests of this number.
    pub(super) fn by_id(&self, id: u32) -> Option<&Requests> {
        self.ids.get(&id).and_then(|amounts| self.all.get(amounts)).map(AsRef::as_ref)
    }

    /// Forgets requests that no pod makes any more.
    pub(super) fn prune(&mut self, pods: usize) {
        if self.all.len() > 2 * pods + 64 {
            self.all.retain(|_, requests| Arc::strong_count(requests) > 1);
            let all = &self.all;
            self.ids.retain(|_, amounts| all.contains_key(amounts));
        }
    }

    /// Counts all requests in other slots; whoever keeps some must take them anew.
    pub(super) fn revise(&mut self, resources: &Resources) {
        for requests in self.all.values_mut() {
            let (id, amounts) = (requests.id, requests.amounts.clone());
            *requests = Arc::new(Requests { id, vector: resources.vector(&amounts), amounts });
        }
    }
}

/// What one workload of ours has in the cluster.
#[derive(Debug, Default)]
pub(super) struct Workload {
    /// How many of its pods are bound, by node and number of their requests.
    pub(super) bound: BTreeMap<(Arc<str>, u32), u32>,
    /// How many of its pods are bound, by number of their requests.
    pub(super) by_requests: BTreeMap<u32, u32>,
    /// The replicas it holds here, and their shape.
    pub(super) held: Option<(Shape, u32)>,
    /// Of those, the ones that have no node yet.
    pub(super) outstanding: u32,
}

impl Workload {
    pub(super) fn count(&mut self, node: &Arc<str>, requests: u32, times: i8) {
        let place = (Arc::clone(node), requests);
        add(&mut self.bound, place, times);
        add(&mut self.by_requests, requests, times);
    }

    /// How many of its pods are bound and make these requests.
    pub(super) fn settled(&self, requests: Option<u32>) -> u32 {
        requests.and_then(|id| self.by_requests.get(&id).copied()).unwrap_or(0)
    }

    /// Its bound pods that do not make these requests, by node.
    pub(super) fn to_be_replaced(
        &self,
        requests: Option<u32>,
    ) -> impl Iterator<Item = (&Arc<str>, u32, u32)> {
        let others = self.bound.iter().filter(move |((_, id), _)| Some(*id) != requests);
        others.map(|((node, id), pods)| (node, *id, *pods))
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.bound.is_empty() && self.held.is_none()
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K, times: i8) {
    let count = counts.get(&key).copied().unwrap_or(0).saturating_add_signed(i32::from(times));
    if count == 0 {
        counts.remove(&key);
    } else {
        counts.insert(key, count);
    }
}

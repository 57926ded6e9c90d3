//! What is known of pods and of the workloads of ours that they belong to.

use super::resources::{Free, Resources};
use crate::capacity::{Amounts, Shape, TemplateHash};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod that has not finished. It takes about a hundred bytes, its name included.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pod {
    pub(super) node: Option<Arc<str>>,
    pub(super) requests: Arc<Requests>,
    pub(super) workload: Option<Arc<str>>,
    pub(super) template: Option<TemplateHash>,
    /// Whether it is being deleted.
    pub(super) leaving: bool,
}

impl Pod {
    pub(super) fn make(&self) -> Make {
        Make { template: self.template, requests: self.requests.id }
    }
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
#[derive(Clone, Debug, Default)]
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

/// What made a pod as it is: which template, and by the number of its requests what admission made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Make {
    pub(super) template: Option<TemplateHash>,
    pub(super) requests: u32,
}

/// What a shape says of pods: the template that makes them, and the number of its requests, if any pod makes these.
#[derive(Clone, Copy, Debug)]
pub(super) struct Revision {
    pub(super) template: TemplateHash,
    pub(super) requests: Option<u32>,
}

impl Make {
    /// Whether the pod is of the revision. One that does not say which template made it is known by its requests.
    pub(super) fn is(self, revision: Revision) -> bool {
        match self.template {
            Some(template) => template == revision.template,
            None => Some(self.requests) == revision.requests,
        }
    }
}

/// What one workload of ours has in the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    /// How many of its pods are bound, by node and make.
    bound: BTreeMap<(Arc<str>, Make), u32>,
    /// How many of its pods are bound, and how many there are, by make.
    by_make: BTreeMap<Make, (u32, u32)>,
    /// The replicas it holds here, and their shape.
    pub(super) reserved: Option<(Shape, u32)>,
    /// Of those, the ones that have no node yet.
    pub(super) unbound: u32,
    /// What pods of a template really request here, once some were seen. It stays known when they have gone: a workload
    /// that went elsewhere for lack of room is not to come back to find out again.
    seen: Option<Seen>,
}

/// What became of the pods of a template.
#[derive(Clone, Debug)]
struct Seen {
    template: TemplateHash,
    requests: u32,
    shape: Shape,
}

impl Workload {
    pub(super) fn count(&mut self, node: Option<&Arc<str>>, make: Make, times: i8) {
        if let Some(node) = node {
            add(&mut self.bound, (Arc::clone(node), make), times);
        }
        let (bound, all) = self.by_make.entry(make).or_default();
        let by = i32::from(times);
        *all = all.saturating_add_signed(by);
        if node.is_some() {
            *bound = bound.saturating_add_signed(by);
        }
        if *all == 0 {
            self.by_make.remove(&make);
        }
    }

    /// How many of its pods are bound and of the revision.
    pub(super) fn bound(&self, revision: Revision) -> u32 {
        let bound = self.by_make.iter().filter(|(make, _)| make.is(revision)).map(|(_, (bound, _))| *bound);
        bound.fold(0, u32::saturating_add)
    }

    /// How many of its pods are bound, of whichever revision.
    pub(super) fn all_bound(&self) -> u32 {
        self.by_make.values().map(|(bound, _)| *bound).fold(0, u32::saturating_add)
    }

    /// Its bound pods of other revisions: node, number of requests, how many.
    pub(super) fn to_be_replaced(&self, revision: Revision) -> impl Iterator<Item = (&Arc<str>, u32, u32)> {
        let others = self.bound.iter().filter(move |((_, make), _)| !make.is(revision));
        others.map(|((node, make), pods)| (node, make.requests, *pods))
    }

    /// A template's shape as its pods turn out in this cluster: admission may have changed what they request.
    pub(super) fn shape(&self, shape: &Shape) -> Shape {
        let seen = self.seen.as_ref().filter(|seen| seen.template == shape.template_hash());
        seen.map_or(shape, |seen| &seen.shape).clone()
    }

    /// The shape of the replicas that it holds, as they turn out here.
    pub(super) fn reserved_shape(&self) -> Option<Shape> {
        self.reserved.as_ref().map(|(shape, _)| self.shape(shape))
    }

    /// Looks at the requests of the pods of the reserved template: those of most pods count.
    pub(super) fn look(&mut self, requests: &AllRequests) {
        let Some((shape, _)) = &self.reserved else { return };
        let template = shape.template_hash();
        let made = self.by_make.iter().filter(|(make, _)| make.template == Some(template));
        let made = made.filter_map(|(make, (_, pods))| Some((*pods, requests.by_id(make.requests)?)));
        match made.max_by(|one, other| (one.0, &one.1.amounts).cmp(&(other.0, &other.1.amounts))) {
            Some((_, requests)) => {
                let same = |seen: &Seen| seen.template == template && seen.requests == requests.id;
                if !self.seen.as_ref().is_some_and(same) {
                    let shape = shape.with_requests(requests.amounts.clone());
                    self.seen = Some(Seen { template, requests: requests.id, shape });
                }
            }
            None if self.seen.as_ref().is_some_and(|seen| seen.template != template) => self.seen = None,
            None => {}
        }
    }

    /// Forgets what its pods were like.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.by_make.is_empty() && self.reserved.is_none() && self.seen.is_none()
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

//! The room of one cluster, followed change by change.
//!
//! Nodes are grouped in classes that no known pod shape can tell apart, and within a class by what is free on them. For
//! each shape that was asked for lately the sums are kept and moved along with every change, so that an answer costs
//! nothing that grows with the number of nodes; only replicas that have no node yet are estimated anew, over groups of
//! equal nodes. A node that a shape names is a class of its own.
//!
//! A pod of ours is known by the template that made it (see [`TemplateHash`]), not by what it requests: admission in the
//! cluster may change that. What pods of a template request there counts for those that are still to come.

mod answers;
mod classes;
mod estimate;
mod nodes;
mod pods;
mod quota;
mod reported;
mod resources;
mod view;
mod workloads;

#[cfg(doc)]
use super::TemplateHash;
use super::{Amounts, Growth, NodeFacts, PodFacts, Shape};
use answers::Answers;
use classes::Classes;
use estimate::Estimate;
use nodes::{Common, Node, Place};
use pods::{AllRequests, Pod, Revision};
use quota::{Bound, Usage};
use resources::Resources;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) use quota::Exceeded;
pub use quota::Quota;
use reported::Reported;
pub use reported::{NodeRoom, ReportedRoom};
use view::Newcomer;
pub use view::{ClusterSummary, Room, View};
pub use workloads::WorkloadFilter;
use workloads::Workloads;

/// What is known of the room of one cluster, and of what is reserved there.
///
/// Copies share nodes and pods until one of them is told something new.
#[derive(Clone, Debug, Default)]
pub struct ClusterIndex {
    resources: Resources,
    classes: Classes,
    common: Common,
    nodes: Arc<BTreeMap<Arc<str>, Node>>,
    requests: AllRequests,
    pods: Arc<BTreeMap<Box<str>, Pod>>,
    pending: usize,
    workloads: Workloads,
    /// How many replicas of each shape have a reservation and no node yet.
    unbound: BTreeMap<Shape, u32>,
    answers: Answers,
    /// Where all unbound replicas probably go; nothing if that is to be estimated again.
    estimate: Option<Estimate>,
    growth: Growth,
    usage: Usage,
    /// What may be used of it at most; nothing if only its nodes are a bound.
    bound: Option<Bound>,
    /// What it grows by; nothing if that is to be found out anew.
    newcomer: Option<Newcomer>,
    /// What a summary tells, if no more is known.
    reported: Option<Arc<Reported>>,
    /// Whether nodes and pods were listed.
    listed: [bool; 2],
    /// How many groups of equal nodes were looked at for estimates.
    steps: u64,
}

impl ClusterIndex {
    /// Takes what a node is now; answers whether there may be more room.
    pub fn set_node(&mut self, facts: NodeFacts) -> bool {
        if self.resources.learn(&facts.allocatable) {
            self.revise();
        }
        let name: Arc<str> = match self.nodes.get_key_value(facts.name.as_str()) {
            Some((name, _)) => Arc::clone(name),
            None => facts.name.as_str().into(),
        };
        let mut known = self.common.know(&name, facts, &self.resources);
        known.class = self.classes.of(&name, &known);
        let slots = self.resources.len();
        let node = Arc::make_mut(&mut self.nodes).entry(Arc::clone(&name)).or_default();
        if node.allocated.len() < slots {
            node.allocated = vec![0; slots].into();
        }
        let (before, was_ready) = (node.place(), node.is_ready());
        node.known = Some(known);
        let after = node.place();
        let freed = self.recount_leaving(&name, was_ready) | self.moved(before, after);
        self.tidy();
        freed
    }

    /// Forgets a node; answers whether there may be more room, which is never so.
    pub fn remove_node(&mut self, name: &str) -> bool {
        let nodes = Arc::make_mut(&mut self.nodes);
        let Some(node) = nodes.get_mut(name) else { return false };
        let (before, was_ready) = (node.place(), node.is_ready());
        node.known = None;
        if node.pods == 0 {
            nodes.remove(name);
        }
        let freed = self.recount_leaving(name, was_ready) | self.moved(before, None);
        self.tidy();
        freed
    }

    /// Takes what a pod is now; answers whether there may be more room.
    pub fn set_pod(&mut self, key: &str, facts: PodFacts) -> bool {
        if facts.finished {
            return self.remove_pod(key);
        }
        let requests = self.requests.of(facts.requests, &self.resources);
        let node = facts.node.map(|node| self.node_name(&node));
        let workload = facts.workload.map(|uid| self.workload_uid(&uid));
        let pod = Pod { node, requests, workload, template: facts.template, leaving: facts.leaving };
        let before = self.pods.get(key);
        if before == Some(&pod) {
            return false;
        }
        let freed = self.remove_pod(key);
        self.count_use(key, &pod, 1);
        self.count(&pod, 1);
        Arc::make_mut(&mut self.pods).insert(key.into(), pod);
        freed
    }

    /// Forgets a pod; answers whether there may be more room.
    pub fn remove_pod(&mut self, key: &str) -> bool {
        if !self.pods.contains_key(key) {
            return false;
        }
        let Some(pod) = Arc::make_mut(&mut self.pods).remove(key) else { return false };
        let unbound_use = self.count_use(key, &pod, -1);
        let freed = self.count(&pod, -1) | unbound_use;
        self.requests.prune(self.pods.len());
        freed
    }

    /// The names of all known nodes.
    pub fn node_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|(_, node)| node.known.is_some()).map(|(name, _)| name.as_ref())
    }

    /// The keys of all known pods.
    pub fn pod_keys(&self) -> impl Iterator<Item = &str> {
        self.pods.keys().map(AsRef::as_ref)
    }

    /// Reserves room for all replicas of a workload of ours here; answers whether there may be more room.
    ///
    /// Replicas that have a node take their room there; the others are estimated.
    pub fn reserve(&mut self, uid: &str, shape: &Shape, replicas: u32) -> bool {
        self.set_reserved(uid, (replicas > 0).then(|| (shape.clone(), replicas)))
    }

    /// Gives up the reservation of a workload of ours; answers whether there may be more room.
    pub fn release(&mut self, uid: &str) -> bool {
        self.set_reserved(uid, None)
    }

    /// Forgets a workload that is gone: what its pods were like matters to nobody any more. Pods of it that are left
    /// still take their room.
    pub fn forget(&mut self, uid: &str) -> bool {
        let freed = self.release(uid);
        if let Some(own) = self.workloads.get_mut(uid) {
            own.forget();
            if own.is_nothing() {
                self.workloads.remove(uid);
            }
        }
        freed
    }

    /// Whether anything of a workload of ours is known here.
    #[must_use]
    pub fn knows(&self, uid: &str) -> bool {
        self.workloads.contains(uid)
    }

    /// Takes how the cluster may grow; answers whether there may be more room.
    pub fn set_growth(&mut self, growth: Growth) -> bool {
        if self.growth == growth {
            return false;
        }
        if let Growth::UpTo { like: Some(like), .. } = &growth
            && self.resources.learn(&like.allocatable)
        {
            self.revise();
        }
        self.growth = growth;
        self.newcomer = None;
        true
    }

    /// Takes what may be used of the cluster at most; answers whether there may be more room.
    pub fn set_quota(&mut self, quota: Option<Quota>) -> bool {
        if self.bound.as_ref().map(|bound| &bound.quota) == quota.as_ref() {
            return false;
        }
        self.bound = quota.map(|quota| Bound::new(quota, &self.resources, &self.usage));
        true
    }

    /// What the pods in these namespaces request that have a node.
    pub fn used_in<'a>(&self, namespaces: impl IntoIterator<Item = &'a str>) -> Amounts {
        self.resources.amounts(&self.usage.of(namespaces, self.resources.len()))
    }

    /// All nodes that the cluster has were told.
    pub fn nodes_listed(&mut self) {
        self.listed[0] = true;
    }

    /// All pods that the cluster has were told.
    pub fn pods_listed(&mut self) {
        self.listed[1] = true;
    }

    /// Whether all nodes and pods were told once.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed == [true; 2]
    }

    /// How many replicas of each shape are reserved and have no node yet.
    pub fn unbound(&self) -> impl Iterator<Item = (&Shape, u32)> {
        self.unbound.iter().map(|(shape, count)| (shape, *count))
    }

    /// The workloads with reserved replicas that have no node yet, with their shape as it turns out here.
    pub fn with_unbound(&self) -> impl Iterator<Item = (&str, Shape)> {
        let with_unbound = self.workloads.iter().filter(|(_, own)| own.unbound > 0);
        with_unbound.filter_map(|(uid, own)| Some((uid.as_ref(), own.reserved_shape()?)))
    }

    /// How many groups of equal nodes were looked at so far: what answers have cost.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps + self.answers.steps
    }

    fn set_reserved(&mut self, uid: &str, reserved: Option<(Shape, u32)>) -> bool {
        let known = self.workloads.get(uid).and_then(|own| own.reserved.as_ref());
        if known == reserved.as_ref() {
            return false;
        }
        if let Some((shape, _)) = &reserved {
            self.learn(shape);
        }
        let uid = self.workload_uid(uid);
        let before = self.unbound_of(&uid);
        self.workloads.known(&uid).reserved = reserved;
        self.update_unbound(&uid, before)
    }

    /// A pod comes or goes, and with it what its namespace uses; answers whether more is left of the quota.
    fn count_use(&mut self, key: &str, pod: &Pod, times: i8) -> bool {
        self.usage.count(key, pod, times);
        if let Some(bound) = &mut self.bound {
            bound.count(key, pod, times);
        }
        self.bound.is_some() && times < 0
    }

    /// A pod comes or goes.
    fn count(&mut self, pod: &Pod, times: i8) -> bool {
        let is_replica = self.is_replica(pod);
        let freed = match &pod.node {
            Some(name) => {
                let nodes = Arc::make_mut(&mut self.nodes);
                let node = nodes.entry(Arc::clone(name)).or_default();
                let before = node.place();
                node.count(pod, times);
                let after = node.place();
                if node.known.is_none() && node.pods == 0 {
                    nodes.remove(name);
                }
                self.moved(before, after)
            }
            None => {
                self.pending = self.pending.saturating_add_signed(isize::from(times));
                false
            }
        };
        if is_replica { self.count_replica(pod, times) | freed } else { freed }
    }

    /// A pod of ours comes or goes as a replica of its workload.
    fn count_replica(&mut self, pod: &Pod, times: i8) -> bool {
        let Some(uid) = &pod.workload else { return false };
        let unbound_before = self.unbound_of(uid);
        self.workloads.known(uid).count(pod.node.as_ref(), pod.make(), times);
        self.update_unbound(uid, unbound_before)
    }

    /// Whether a pod counts as a replica of its workload. One that is being deleted does only while its node is ready:
    /// nobody else stops it, and the pod that is made in its place needs room of its own.
    fn is_replica(&self, pod: &Pod) -> bool {
        let ready = |name: &Arc<str>| self.nodes.get(name).is_some_and(Node::is_ready);
        !pod.leaving || pod.node.as_ref().is_none_or(ready)
    }

    /// A node may have become ready or ceased to be: its pods that are being deleted are replicas, or are no more.
    fn recount_leaving(&mut self, name: &str, was_ready: bool) -> bool {
        let Some(node) = self.nodes.get(name) else { return false };
        if node.leaving == 0 || node.is_ready() == was_ready {
            return false;
        }
        let times = if was_ready { -1 } else { 1 };
        let on_node = |pod: &&Pod| pod.leaving && pod.node.as_deref() == Some(name);
        let pods = Arc::clone(&self.pods);
        pods.values().filter(on_node).fold(false, |freed, pod| self.count_replica(pod, times) | freed)
    }

    /// A node has changed its class or what is free on it.
    fn moved(&mut self, before: Option<Place>, after: Option<Place>) -> bool {
        if before == after {
            return false;
        }
        self.estimate = None;
        let freed = match (&before, &after) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(was), Some(is)) => {
                was.class != is.class
                    || is.nodes > was.nodes
                    || was.free.iter().zip(&is.free).any(|(old, new)| new > old)
            }
        };
        if let Some(place) = before {
            self.classes.remove(&place);
            self.answers.moved(place.class, &place.free, -i64::from(place.nodes));
        }
        if let Some(place) = after {
            self.answers.cover(&self.classes, place.class);
            self.answers.moved(place.class, &place.free, i64::from(place.nodes));
            self.classes.add(place);
        }
        freed
    }

    /// The reserved replicas of a workload that have no node yet, with the shape as it turns out here.
    fn unbound_of(&self, uid: &str) -> Option<(Shape, u32)> {
        let own = self.workloads.get(uid).filter(|own| own.unbound > 0)?;
        Some((own.reserved_shape()?, own.unbound))
    }

    /// What a shape says of pods.
    fn revision(&self, shape: &Shape) -> Revision {
        Revision { template: shape.template_hash(), requests: self.requests.id(&shape.requests) }
    }

    /// Counts the reserved replicas of a workload that have no node yet again; says whether room became free.
    fn update_unbound(&mut self, uid: &str, before: Option<(Shape, u32)>) -> bool {
        let Some(own) = self.workloads.get_mut(uid) else { return false };
        own.look(&self.requests);
        own.unbound = own.reserved.as_ref().map_or(0, |(shape, replicas)| {
            let requests = self.requests.id(&shape.requests);
            replicas.saturating_sub(own.bound(Revision { template: shape.template_hash(), requests }))
        });
        if own.is_nothing() {
            self.workloads.remove(uid);
        }
        let after = self.unbound_of(uid);
        if before == after {
            return false;
        }
        self.estimate = None;
        let freed = before.as_ref().map_or(0, |(_, unbound_before)| *unbound_before)
            > after.as_ref().map_or(0, |(_, unbound_after)| *unbound_after);
        if let Some((shape, unbound_before)) = before {
            let total = self.unbound.get(&shape).copied().unwrap_or(0).saturating_sub(unbound_before);
            if total == 0 {
                self.unbound.remove(&shape);
            } else {
                self.unbound.insert(shape, total);
            }
        }
        if let Some((shape, unbound_after)) = after {
            *self.unbound.entry(shape).or_insert(0) += unbound_after;
        }
        freed
    }

    fn node_name(&self, name: &str) -> Arc<str> {
        self.nodes.get_key_value(name).map_or_else(|| name.into(), |(name, _)| Arc::clone(name))
    }

    fn workload_uid(&self, uid: &str) -> Arc<str> {
        self.workloads.uid(uid).map_or_else(|| uid.into(), Arc::clone)
    }

    /// Nodes offer a resource that none did: everything is counted in other slots.
    fn revise(&mut self) {
        self.common.revise(&self.resources);
        self.requests.revise(&self.resources);
        let slots = self.resources.len();
        let nodes = Arc::make_mut(&mut self.nodes);
        for node in nodes.values_mut() {
            node.allocated = vec![0; slots].into();
            (node.pods, node.leaving) = (0, 0);
            if let Some(known) = &mut node.known
                && let Some(offered) = self.common.offered(&known.allocatable)
            {
                known.offered = offered;
            }
        }
        self.usage.clear();
        for (key, pod) in Arc::make_mut(&mut self.pods) {
            pod.requests = self.requests.of(Amounts::clone(&pod.requests.amounts), &self.resources);
            if let Some(node) = pod.node.as_ref().and_then(|name| nodes.get_mut(name)) {
                node.count(pod, 1);
            }
            self.usage.count(key, pod, 1);
        }
        let quota = self.bound.take().map(|bound| bound.quota);
        self.bound = quota.map(|quota| Bound::new(quota, &self.resources, &self.usage));
        self.reclass();
    }

    /// Sees to it that the classes are fine enough for a shape. When they were not, they are made anew, and as coarse as
    /// the shapes allow that still matter.
    fn learn(&mut self, shape: &Shape) {
        // Sums are kept only while the classes are fine enough for them.
        if self.answers.has(shape) || self.classes.knows(shape) {
            return;
        }
        let reserved =
            self.workloads.values().filter_map(|own| own.reserved.as_ref().map(|(shape, _)| shape));
        let matter: Vec<Shape> = reserved.chain(self.answers.shapes()).cloned().collect();
        self.classes.forget();
        for each in matter.iter().chain([shape]) {
            self.classes.learn(each);
        }
        self.reclass();
    }

    /// Puts all nodes in their classes anew.
    fn reclass(&mut self) {
        self.classes.clear();
        self.answers.clear();
        self.estimate = None;
        self.newcomer = None;
        for (name, node) in Arc::make_mut(&mut self.nodes) {
            if let Some(known) = &mut node.known {
                known.class = self.classes.of(name, known);
            }
            if let Some(place) = node.place() {
                self.classes.add(place);
            }
        }
    }

    fn tidy(&mut self) {
        self.newcomer = None;
        self.common.prune(self.nodes.len());
        if self.classes.is_stale() {
            self.reclass();
        }
    }
}

#[cfg(test)]
mod tests;

//! What the index answers.

use super::estimate::Estimate;
use super::pods::Workload;
use super::resources::{Free, clamp};
use super::{ClusterIndex, WorkloadFilter};
use crate::capacity::{Amounts, Growth, NodeFacts, PodShape, Shape, Shortage};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;

/// Why nothing is placed on nodes that are in no group of a summary.
const OMITTED: &str = "left out of the summary of the cluster, which has too many kinds of nodes";

/// The room of a cluster for one shape, in the numbers that a decision takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// How many more pods of the shape fit, each on a single node.
    pub max_replicas: u32,
    /// The free CPU of the nodes that take the shape, in thousandths.
    pub cpu: i64,
    /// The free memory of those nodes, in thousandths of a byte.
    pub memory: i64,
}

/// A cluster as one workload sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What is free beside its bound pods and the reservations of others; its pods that are to be replaced take no room.
    pub room: Room,
    /// How many of its pods, as the present spec asks for them, have a node.
    pub bound: u32,
    /// How many replicas it holds.
    pub reserved: u32,
    /// How many more pods of the shape would fit if the cluster grew as far as it may, those that fit now included. It is
    /// [`u32::MAX`] where room is not counted.
    pub max_replicas_if_grown: u32,
    /// How many nodes take the shape, however full they are. None means: what room there was is gone, not taken.
    pub open_nodes: u32,
    /// Whether nodes and pods of the cluster were listed. Until then there may be more of everything.
    pub known: bool,
}

impl View {
    /// Whether the workload holds replicas here and there is no node any more that takes them.
    #[must_use]
    pub fn is_room_gone(&self) -> bool {
        self.known && self.reserved > 0 && self.open_nodes == 0
    }
}

/// A cluster as people see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSummary {
    /// How many nodes there are whose room counts.
    pub nodes: usize,
    /// How many nodes there are beside, which are virtual or claim what no machine has.
    pub left_out: usize,
    /// How many of them are ready.
    pub ready: usize,
    /// What they offer together.
    pub capacity: Amounts,
    /// What their pods request.
    pub allocated: Amounts,
    /// What is left on nodes that are ready, not cordoned and without a taint that repels.
    pub available: Amounts,
    /// What nodes offer together that are ready, not cordoned, and repel nobody but pods that do without a resource of
    /// theirs, such as GPUs.
    pub usable: Amounts,
    /// What is left on those nodes.
    pub usable_free: Amounts,
    /// How many pods wait for a node.
    pub pending_pods: usize,
    /// How many pods there are that have not finished.
    pub pods: usize,
    /// When the cluster summarised itself, where no more is known than that.
    pub observed_at: Option<Timestamp>,
}

/// A node that a cluster would grow by.
#[derive(Clone, Debug)]
pub(super) struct Newcomer {
    /// How many nodes there are already.
    beside: u32,
    /// Its class, and what would be free on it; nothing if nobody knows what it would be like.
    place: Option<(usize, Free)>,
}

impl ClusterIndex {
    /// How many pods of a workload of ours have a node, of whichever template.
    #[must_use]
    pub fn bound(&self, uid: &str) -> u32 {
        self.workloads.get(uid).map_or(0, |own| own.all_bound())
    }

    /// The cluster as a workload of ours with pods of this shape sees it. The workload need not hold anything yet.
    pub fn view(&mut self, uid: &str, shape: &Shape) -> View {
        let kept = if self.workloads.contains(uid) { None } else { self.kept_view(shape, &mut 0) };
        kept.unwrap_or_else(|| self.counted_view(uid, shape))
    }

    /// The cluster as workloads with pods of this shape see it that are not known in it, if nothing has to be counted for
    /// that. The hint is where the shape was found in the cluster that was asked before.
    #[must_use]
    pub fn kept_view(&self, shape: &Shape, hint: &mut usize) -> Option<View> {
        let grows = matches!(self.growth, Growth::UpTo { .. });
        if !self.unbound.is_empty() || grows {
            return None;
        }
        let sums = self.answers.kept(shape, hint)?;
        let max_replicas = u32::try_from(sums.max_replicas).unwrap_or(u32::MAX);
        let room = Room { max_replicas, cpu: clamp(sums.cpu), memory: clamp(sums.memory) };
        let open_nodes = u32::try_from(sums.nodes).unwrap_or(u32::MAX);
        let max_replicas_if_grown = if self.growth == Growth::Uncounted { u32::MAX } else { max_replicas };
        let known = self.is_all_known(shape);
        let view = View { room, open_nodes, max_replicas_if_grown, known, ..View::default() };
        Some(match &self.bound {
            Some(bound) => view.within(&self.resources.need(&shape.requests), &bound.left(&[])),
            None => view,
        })
    }

    /// Which workloads may be known in the cluster: for those that are not among them, [`ClusterIndex::kept_view`] holds.
    #[must_use]
    pub fn workload_filter(&self) -> WorkloadFilter {
        self.workloads.filter()
    }

    fn counted_view(&mut self, uid: &str, shape: &Shape) -> View {
        let known = self.is_all_known(shape);
        let own = self.workloads.get(uid);
        let revision = self.revision(shape);
        let bound = own.map_or(0, |own| own.bound(revision));
        let reserved = own.and_then(|own| own.reserved.as_ref()).map_or(0, |(_, replicas)| *replicas);
        let alone = own.is_none_or(|own| own.unbound == 0 && own.to_be_replaced(revision).next().is_none());
        let apart_from = (!alone).then_some(uid);
        let turned_out = self.turned_out(uid, shape);
        self.learn(&turned_out);
        let kept = if alone { self.estimate.take() } else { None };
        let estimate = kept.unwrap_or_else(|| self.estimated(apart_from, shape));
        let (mut room, open_nodes) = self.room(&turned_out, &estimate);
        let replaced = self.replaced(self.workloads.get(uid), revision, &turned_out);
        room.max_replicas = room.max_replicas.saturating_add(replaced);
        let max_replicas_if_grown = self.max_replicas_if_grown(&turned_out, room.max_replicas, &estimate);
        if alone {
            self.estimate = Some(estimate);
        }
        let view = View { room, bound, reserved, max_replicas_if_grown, open_nodes, known };
        match self.left_of_quota(uid, shape) {
            Some(left) => view.within(&self.resources.need(&turned_out.requests), &left),
            None => view,
        }
    }

    /// What is left of the quota for a workload, by slot, if there is one: beside its bound pods, those aside that are to be
    /// replaced, and the reservations of others.
    fn left_of_quota(&self, uid: &str, shape: &Shape) -> Option<Vec<i64>> {
        let bound = self.bound.as_ref()?;
        let mut taken = vec![0i128; self.resources.len()];
        let mut take = |vector: &[i64], times: i64| {
            for (taken, milli) in taken.iter_mut().zip(vector) {
                *taken += i128::from(*milli) * i128::from(times);
            }
        };
        let own = self.workloads.get(uid);
        for (other, count) in self.others(own) {
            take(self.resources.need(&other.requests).takes(), i64::from(count));
        }
        if let Some(own) = own {
            for (_, requests, pods) in own.to_be_replaced(self.revision(shape)) {
                if let Some(requests) = self.requests.by_id(requests) {
                    take(&requests.vector, -i64::from(pods));
                }
            }
        }
        Some(bound.left(&taken))
    }

    /// Why not even one more pod of the shape fits for this workload when `more` have found their place.
    pub fn shortage(&mut self, uid: &str, shape: &Shape, more: u32) -> Shortage {
        self.learn(shape);
        let mut estimate = self.estimated(Some(uid), shape);
        let template = shape;
        let shape = &self.turned_out(uid, template);
        let answer = self.answers.of(shape, &self.classes, &self.resources, &self.unbound);
        estimate.reserve(&self.classes, answer.fitting, more);
        let mut shortage = Shortage::default();
        let mut largest = vec![0i64; self.resources.len()];
        for (class, group) in self.classes.iter().enumerate().filter(|(_, group)| group.nodes > 0) {
            shortage.nodes += group.nodes;
            match group.refuses(shape) {
                Some(reason) => *shortage.refusals.entry(reason).or_insert(0) += group.nodes,
                None => {
                    shortage.open += group.nodes;
                    for (free, _) in estimate.groups(&self.classes, class) {
                        for (most, milli) in largest.iter_mut().zip(free) {
                            *most = (*most).max(*milli);
                        }
                    }
                }
            }
        }
        if let Some(reported) = self.reported.as_ref().filter(|reported| reported.omitted > 0) {
            shortage.nodes += reported.omitted;
            shortage.refusals.insert(OMITTED, reported.omitted);
        }
        let largest: Vec<i128> = largest.into_iter().map(i128::from).collect();
        let largest = self.resources.amounts(&largest);
        let lacking = |(name, need): (&str, i64)| (name.to_owned(), need, largest.get(name));
        shortage.lacking = shape.requests.iter().map(lacking).filter(|(_, need, most)| need > most).collect();
        if let (Some(bound), Some(mut left)) = (&self.bound, self.left_of_quota(uid, template)) {
            for (left, milli) in left.iter_mut().zip(self.resources.need(&shape.requests).takes()) {
                *left = left.saturating_sub(milli.saturating_mul(i64::from(more))).max(0);
            }
            shortage.exceeded = bound.exceeded(&self.resources, &shape.requests, &left);
        }
        shortage
    }

    /// All that is free for this workload on nodes that take the shape.
    pub fn free(&mut self, uid: &str, shape: &Shape) -> Amounts {
        self.learn(shape);
        let estimate = self.estimated(Some(uid), shape);
        let answer = self.answers.of(shape, &self.classes, &self.resources, &self.unbound);
        let open = self.classes.iter().zip(&answer.fitting.open).filter(|(_, open)| **open);
        let base =
            open.flat_map(|(class, _)| class.free.iter().map(|(free, nodes)| (free, i64::from(*nodes))));
        let mut sum = vec![0i128; self.resources.len()];
        for (free, nodes) in base.chain(estimate.differences(answer.fitting)) {
            for (sum, milli) in sum.iter_mut().zip(free) {
                *sum += i128::from(*milli) * i128::from(nodes);
            }
        }
        for (sum, left) in sum.iter_mut().zip(self.left_of_quota(uid, shape).into_iter().flatten()) {
            *sum = (*sum).min(i128::from(left));
        }
        self.resources.amounts(&sum)
    }

    /// The cluster in numbers.
    #[must_use]
    pub fn summary(&self) -> ClusterSummary {
        if let Some(reported) = &self.reported {
            return reported.totals.clone();
        }
        let slots = self.resources.len();
        let (mut capacity, mut allocated, mut available) =
            (vec![0i128; slots], vec![0; slots], vec![0; slots]);
        let (mut usable, mut usable_free) = (vec![0i128; slots], vec![0; slots]);
        let mut summary =
            ClusterSummary { pending_pods: self.pending, pods: self.pods.len(), ..ClusterSummary::default() };
        let anything = Shape::from(PodShape::default());
        for node in self.nodes.values() {
            if node.known.as_ref().is_some_and(|known| known.traits.left_out.is_some()) {
                summary.left_out += 1;
                continue;
            }
            for (sum, milli) in allocated.iter_mut().zip(&node.allocated) {
                *sum += milli;
            }
            let (Some(known), Some(place)) = (&node.known, node.place()) else { continue };
            let (class, free) = (place.class, place.free);
            summary.nodes += 1;
            summary.ready += usize::from(known.traits.ready);
            for (sum, milli) in capacity.iter_mut().zip(known.offered.iter()) {
                *sum += i128::from(*milli);
            }
            if known.is_usable() {
                for (sum, milli) in usable.iter_mut().zip(known.offered.iter()) {
                    *sum += i128::from(*milli);
                }
                for (sum, milli) in usable_free.iter_mut().zip(&free) {
                    *sum += i128::from((*milli).max(0));
                }
            }
            if self.classes.get(class).refuses(&anything).is_none() {
                for (sum, milli) in available.iter_mut().zip(&free) {
                    *sum += i128::from((*milli).max(0));
                }
            }
        }
        summary.capacity = self.resources.amounts(&capacity);
        summary.allocated = self.resources.amounts(&allocated);
        summary.available = self.resources.amounts(&available);
        summary.usable = self.resources.amounts(&usable);
        summary.usable_free = self.resources.amounts(&usable_free);
        summary
    }

    /// A shape as the pods of a workload turn out here.
    fn turned_out(&self, uid: &str, shape: &Shape) -> Shape {
        self.workloads.get(uid).map_or_else(|| shape.clone(), |own| own.shape(shape))
    }

    fn room(&mut self, shape: &Shape, estimate: &Estimate) -> (Room, u32) {
        let answer = self.answers.of(shape, &self.classes, &self.resources, &self.unbound);
        let (mut max_replicas, mut cpu, mut memory) =
            (i128::from(answer.sums.max_replicas), answer.sums.cpu, answer.sums.memory);
        for (free, nodes) in estimate.differences(answer.fitting) {
            let nodes = i128::from(nodes);
            max_replicas += i128::from(answer.fitting.need.times(free)) * nodes;
            cpu += i128::from(free[0]) * nodes;
            memory += i128::from(free[1]) * nodes;
        }
        let max_replicas = u32::try_from(max_replicas.max(0)).unwrap_or(u32::MAX);
        let nodes = u32::try_from(answer.sums.nodes).unwrap_or(u32::MAX);
        (Room { max_replicas, cpu: clamp(cpu), memory: clamp(memory) }, nodes)
    }

    /// Where unbound replicas go: all of them, or those of others than one workload, whose pods that a template of
    /// this shape did not make give up their room first.
    fn estimated(&mut self, apart_from: Option<&str>, shape: &Shape) -> Estimate {
        let mut estimate = Estimate::default();
        let own = apart_from.and_then(|uid| self.workloads.get(uid));
        if let Some(own) = own {
            for (class, from, to) in self.given_up(own, shape).into_values() {
                estimate.shift(class, from, to, 1);
            }
        }
        for (shape, count) in self.others(own) {
            let answer = self.answers.of(&shape, &self.classes, &self.resources, &self.unbound);
            let reserved = estimate.reserve(&self.classes, answer.fitting, count);
            if reserved < count {
                estimate.unplaced.push((shape, count - reserved));
            }
        }
        self.steps += std::mem::take(&mut estimate.steps);
        estimate
    }

    /// How many pods of a shape would fit if the cluster grew. Replicas that wait for room take theirs of the new nodes.
    fn max_replicas_if_grown(&mut self, shape: &Shape, max_replicas: u32, estimate: &Estimate) -> u32 {
        let most = match &self.growth {
            Growth::Fixed => return max_replicas,
            Growth::Uncounted => return u32::MAX,
            Growth::UpTo { nodes, .. } => *nodes,
        };
        if self.newcomer.is_none() {
            self.newcomer = Some(self.found_newcomer());
        }
        let Some(newcomer) = &self.newcomer else { return max_replicas };
        let more = most.saturating_sub(newcomer.beside);
        let Some((class, offered)) = newcomer.place.clone().filter(|_| more > 0) else { return max_replicas };
        let mut grown = estimate.clone();
        grown.grow(class, offered, more);
        for (waiting, count) in &estimate.unplaced {
            let answer = self.answers.of(waiting, &self.classes, &self.resources, &self.unbound);
            grown.reserve(&self.classes, answer.fitting, *count);
        }
        self.steps += grown.steps;
        self.room(shape, &grown).0.max_replicas.max(max_replicas)
    }

    /// What a node would be that the cluster grows by.
    fn found_newcomer(&mut self) -> Newcomer {
        let known = || self.nodes.values().filter_map(|node| node.known.as_ref());
        let counted = known().filter(|known| known.traits.left_out.is_none()).count();
        let present = self.reported.as_ref().map_or(counted, |reported| reported.totals.nodes);
        let beside = u32::try_from(present).unwrap_or(u32::MAX);
        if let Growth::UpTo { like: Some(like), .. } = &self.growth {
            let known = self.common.know(&"".into(), NodeFacts::clone(like), &self.resources);
            let class = self.classes.of("", &known);
            self.answers.cover(&self.classes, class);
            return Newcomer { beside, place: Some((class, known.offered.as_ref().into())) };
        }
        let mut kinds: BTreeMap<(usize, &[i64]), u32> = BTreeMap::new();
        for known in known().filter(|known| self.classes.get(known.class).is_in_use()) {
            *kinds.entry((known.class, known.offered.as_ref())).or_insert(0) += 1;
        }
        let most = kinds.into_iter().max_by_key(|((class, offered), nodes)| (*nodes, *offered, *class));
        Newcomer { beside, place: most.map(|((class, offered), _)| (class, offered.into())) }
    }

    /// Outstanding replicas by shape, without those of one workload.
    fn others(&self, own: Option<&Workload>) -> Vec<(Shape, u32)> {
        let own_unbound = own.and_then(|own| Some((own.reserved_shape()?, own.unbound)));
        let rest = |shape: &Shape, count: u32| match &own_unbound {
            Some((own, own_unbound)) if own == shape => count.saturating_sub(*own_unbound),
            _ => count,
        };
        let all = self.unbound.iter().map(|(shape, count)| (shape.clone(), rest(shape, *count)));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The nodes on which pods of a workload are to be replaced: their class, what is free, and what will be.
    fn given_up<'a>(&'a self, own: &'a Workload, shape: &Shape) -> BTreeMap<&'a str, (usize, Free, Free)> {
        let mut nodes: BTreeMap<&str, (usize, Free, Free)> = BTreeMap::new();
        for (name, requests, pods) in own.to_be_replaced(self.revision(shape)) {
            let Some(place) = self.nodes.get(name).and_then(super::Node::place) else { continue };
            let Some(requests) = self.requests.by_id(requests) else { continue };
            let (_, _, to) =
                nodes.entry(name).or_insert_with(|| (place.class, place.free.clone(), place.free));
            for (free, milli) in to.iter_mut().zip(&requests.vector) {
                *free = free.saturating_add(milli.saturating_mul(i64::from(pods)));
            }
        }
        nodes
    }

    /// How a node ranks among others that have the same free.
    #[cfg(test)]
    pub(super) fn rank(&self, name: &str) -> Option<String> {
        Some(self.classes.get(self.nodes.get(name)?.place()?.class).key.clone())
    }
}

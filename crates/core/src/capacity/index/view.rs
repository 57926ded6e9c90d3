//! What the index answers.

use super::ClusterIndex;
use super::estimate::Estimate;
use super::pods::Workload;
use super::resources::{Free, clamp};
use crate::capacity::{Amounts, CPU, ClusterRoom, MEMORY, PodShape, Shape, Shortage};
use std::collections::BTreeMap;

/// The room of a cluster for one shape, in the numbers that a decision takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// How many more pods of the shape fit, each on a single node.
    pub fits: u32,
    /// The free CPU of the nodes that take the shape, in thousandths.
    pub cpu: i64,
    /// The free memory of those nodes, in thousandths of a byte.
    pub memory: i64,
}

/// A cluster as one workload sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What is free beside its settled pods and what others hold; its pods that are to be replaced take no room.
    pub room: Room,
    /// How many of its pods, as they are wanted now, have a node.
    pub settled: u32,
    /// How many replicas it holds.
    pub held: u32,
}

/// A cluster as people see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSummary {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many of them are ready.
    pub ready: usize,
    /// What they offer together.
    pub capacity: Amounts,
    /// What their pods request.
    pub allocated: Amounts,
    /// What is left on nodes that are ready, not cordoned and without a taint that repels.
    pub available: Amounts,
    /// How many pods wait for a node.
    pub pending_pods: usize,
    /// How many pods there are that have not finished.
    pub pods: usize,
}

impl ClusterIndex {
    /// The cluster as a workload of ours with pods of this shape sees it. The workload need not hold anything yet.
    pub fn view(&mut self, uid: &str, shape: &Shape) -> View {
        if self.outstanding.is_empty()
            && !self.workloads.contains_key(uid)
            && let Some(room) = self.answers.kept(shape)
        {
            return View { room, ..View::default() };
        }
        self.learn(shape);
        let own = self.workloads.get(uid);
        let requests = own.and_then(|_| self.requests.id(&shape.requests));
        let settled = own.map_or(0, |own| own.settled(requests));
        let held = own.and_then(|own| own.held.as_ref()).map_or(0, |(_, replicas)| *replicas);
        let alone =
            own.is_none_or(|own| own.outstanding == 0 && own.to_be_replaced(requests).next().is_none());
        let room = if self.is_pinned(shape) {
            let room = self.counted(uid, shape);
            let free = room.free(shape);
            Room { fits: room.fits(shape), cpu: free.get(CPU), memory: free.get(MEMORY) }
        } else if alone {
            let estimate = self.estimate.take().unwrap_or_else(|| self.estimated(None, shape));
            let room = self.room(shape, &estimate);
            self.estimate = Some(estimate);
            room
        } else {
            let estimate = self.estimated(Some(uid), shape);
            self.room(shape, &estimate)
        };
        View { room, settled, held }
    }

    /// Why not even one more pod of the shape fits for this workload when `more` have found their place.
    pub fn shortage(&mut self, uid: &str, shape: &Shape, more: u32) -> Shortage {
        self.learn(shape);
        if self.is_pinned(shape) {
            let mut room = self.counted(uid, shape);
            room.reserve(shape, more);
            return room.shortage(shape);
        }
        let mut estimate = self.estimated(Some(uid), shape);
        let answer = self.answers.of(shape, &self.classes, &self.resources, &self.outstanding);
        estimate.reserve(&self.classes, &answer.fitting, more);
        let mut shortage = Shortage::default();
        let mut largest = vec![0i64; self.resources.len()];
        for (class, group) in self.classes.iter().enumerate().filter(|(_, group)| group.nodes > 0) {
            shortage.nodes += group.nodes;
            match group.refuses(shape) {
                Some(reason) => *shortage.refusals.entry(reason).or_insert(0) += group.nodes,
                None => {
                    shortage.open += group.nodes;
                    for free in estimate.free(&self.classes, class) {
                        for (most, milli) in largest.iter_mut().zip(free) {
                            *most = (*most).max(*milli);
                        }
                    }
                }
            }
        }
        let largest: Vec<i128> = largest.into_iter().map(i128::from).collect();
        let largest = self.resources.amounts(&largest);
        let lacking = |(name, need): (&str, i64)| (name.to_owned(), need, largest.get(name));
        shortage.lacking = shape.requests.iter().map(lacking).filter(|(_, need, most)| need > most).collect();
        shortage
    }

    /// All that is free for this workload on nodes that take the shape.
    pub fn free(&mut self, uid: &str, shape: &Shape) -> Amounts {
        self.learn(shape);
        if self.is_pinned(shape) {
            return self.counted(uid, shape).free(shape);
        }
        let estimate = self.estimated(Some(uid), shape);
        let answer = self.answers.of(shape, &self.classes, &self.resources, &self.outstanding);
        let open = self.classes.iter().zip(&answer.fitting.open).filter(|(_, open)| **open);
        let base =
            open.flat_map(|(class, _)| class.free.iter().map(|(free, nodes)| (free, i64::from(*nodes))));
        let mut sum = vec![0i128; self.resources.len()];
        for (free, nodes) in base.chain(estimate.differences(&answer.fitting)) {
            for (sum, milli) in sum.iter_mut().zip(free) {
                *sum += i128::from(*milli) * i128::from(nodes);
            }
        }
        self.resources.amounts(&sum)
    }

    /// The cluster in numbers.
    #[must_use]
    pub fn summary(&self) -> ClusterSummary {
        let slots = self.resources.len();
        let (mut capacity, mut allocated, mut available) =
            (vec![0i128; slots], vec![0; slots], vec![0; slots]);
        let mut summary =
            ClusterSummary { pending_pods: self.pending, pods: self.pods.len(), ..ClusterSummary::default() };
        let anything = Shape::from(PodShape::default());
        for node in self.nodes.values() {
            for (sum, milli) in allocated.iter_mut().zip(&node.allocated) {
                *sum += milli;
            }
            let (Some(known), Some((class, free))) = (&node.known, node.place()) else { continue };
            summary.nodes += 1;
            summary.ready += usize::from(known.traits.ready);
            for (sum, milli) in capacity.iter_mut().zip(known.offered.iter()) {
                *sum += i128::from(*milli);
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
        summary
    }

    /// Sees to it that the classes are fine enough for the shape.
    fn learn(&mut self, shape: &Shape) {
        // Sums are kept only while the classes are fine enough for them.
        if !self.answers.has(shape) && self.classes.learn(shape) {
            self.reclass();
        }
    }

    fn is_pinned(&self, shape: &Shape) -> bool {
        shape.is_pinned() || self.outstanding.keys().any(Shape::is_pinned)
    }

    fn room(&mut self, shape: &Shape, estimate: &Estimate) -> Room {
        let answer = self.answers.of(shape, &self.classes, &self.resources, &self.outstanding);
        let (mut fits, mut cpu, mut memory) = (i128::from(answer.fits), answer.cpu, answer.memory);
        for (free, nodes) in estimate.differences(&answer.fitting) {
            let nodes = i128::from(nodes);
            fits += i128::from(answer.fitting.need.times(free)) * nodes;
            cpu += i128::from(free[0]) * nodes;
            memory += i128::from(free[1]) * nodes;
        }
        let fits = u32::try_from(fits.max(0)).unwrap_or(u32::MAX);
        Room { fits, cpu: clamp(cpu), memory: clamp(memory) }
    }

    /// Where outstanding replicas go: all of them, or those of others than one workload, whose pods that do not have
    /// this shape give up their room first.
    fn estimated(&mut self, apart_from: Option<&str>, shape: &Shape) -> Estimate {
        let mut estimate = Estimate::default();
        let own = apart_from.and_then(|uid| self.workloads.get(uid));
        if let Some(own) = own {
            for (class, from, to) in self.given_up(own, shape).into_values() {
                estimate.shift(class, from, to, 1);
            }
        }
        for (shape, count) in self.others(own) {
            let answer = self.answers.of(&shape, &self.classes, &self.resources, &self.outstanding);
            estimate.reserve(&self.classes, &answer.fitting, count);
        }
        estimate
    }

    /// Outstanding replicas by shape, without those of one workload.
    fn others(&self, own: Option<&Workload>) -> Vec<(Shape, u32)> {
        let owed = own.and_then(|own| own.held.as_ref().map(|(shape, _)| (shape, own.outstanding)));
        let rest = |shape: &Shape, count: u32| match owed {
            Some((own, owed)) if own == shape => count.saturating_sub(owed),
            _ => count,
        };
        let all = self.outstanding.iter().map(|(shape, count)| (shape.clone(), rest(shape, *count)));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The nodes on which pods of a workload are to be replaced: their class, what is free, and what will be.
    fn given_up<'a>(&'a self, own: &'a Workload, shape: &Shape) -> BTreeMap<&'a str, (usize, Free, Free)> {
        let mut nodes: BTreeMap<&str, (usize, Free, Free)> = BTreeMap::new();
        for (name, requests, pods) in own.to_be_replaced(self.requests.id(&shape.requests)) {
            let Some((class, free)) = self.nodes.get(name).and_then(super::Node::place) else { continue };
            let Some(requests) = self.requests.by_id(requests) else { continue };
            let (_, _, to) = nodes.entry(name).or_insert_with(|| (class, free.clone(), free));
            for (free, milli) in to.iter_mut().zip(&requests.vector) {
                *free = free.saturating_add(milli.saturating_mul(i64::from(pods)));
            }
        }
        nodes
    }

    /// The room counted node by node, for shapes that name nodes.
    fn counted(&self, uid: &str, shape: &Shape) -> ClusterRoom {
        let own = self.workloads.get(uid);
        let mut given_up = own.map(|own| self.given_up(own, shape)).unwrap_or_default();
        let free = self.nodes.iter().filter_map(|(name, node)| {
            let (class, free) = node.place()?;
            let free = given_up.remove(name.as_ref()).map_or(free, |(_, _, to)| to);
            let free: Vec<i128> = free.iter().map(|milli| i128::from(*milli)).collect();
            Some((self.classes.get(class).key.clone(), node.facts(name)?, self.resources.amounts(&free)))
        });
        let mut room = ClusterRoom::of(free);
        for (shape, count) in self.others(own) {
            room.reserve(&shape, count);
        }
        room
    }

    /// How a node ranks among others that have the same free.
    #[cfg(test)]
    pub(super) fn rank(&self, name: &str) -> Option<String> {
        let (class, _) = self.nodes.get(name)?.place()?;
        Some(self.classes.get(class).key.clone())
    }
}

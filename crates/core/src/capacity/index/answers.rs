//! Sums for the shapes that were asked for lately, moved along with every change.

use super::classes::Classes;
use super::estimate::Fitting;
use super::resources::Resources;
use crate::capacity::Shape;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// For so many shapes sums are kept; each costs a little at every change of a node or pod, and some 300 bytes.
const KEPT: usize = 512;

/// What all nodes together have for one shape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) max_replicas: u64,
    /// How many nodes take the shape, however full they are.
    pub(super) nodes: u64,
    pub(super) cpu: i128,
    pub(super) memory: i128,
}

/// The sums for a shape, and which classes of nodes take it.
pub(super) struct Answer<'a> {
    pub(super) fitting: &'a Fitting,
    pub(super) sums: Sums,
}

/// A number that readers count up: which shapes are asked for is noted without taking the index for oneself.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Not one step of the processor, since that would hold up all that come after it; a count that is lost does no harm.
    fn next(&self) -> u64 {
        let next = self.get() + 1;
        self.set(next);
        next
    }

    fn set(&self, count: u64) {
        self.0.store(count, Relaxed);
    }
}

impl Clone for Count {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.get()))
    }
}

/// What is looked at when a shape is asked for. It stands apart from the rest, since a decision asks every cluster.
#[derive(Clone, Debug)]
struct Head {
    digest: u128,
    sums: Sums,
    used: Count,
    /// Whether the classes were made anew since the sums were counted.
    outdated: bool,
}

/// What is looked at when a node changes.
#[derive(Clone, Debug)]
struct Tail {
    fitting: Fitting,
    shape: Shape,
}

impl Tail {
    fn open_to(&mut self, classes: &Classes) {
        for class in self.fitting.open.len()..classes.len() {
            self.fitting.open.push(classes.get(class).refuses(&self.shape).is_none());
        }
    }

    fn add(&self, sums: &mut Sums, free: &[i64], nodes: i64) {
        let max_replicas = u64::from(self.fitting.need.times(free)) * nodes.unsigned_abs();
        let add = |sum: u64, by: u64| if nodes < 0 { sum - by } else { sum + by };
        sums.max_replicas = add(sums.max_replicas, max_replicas);
        sums.nodes = add(sums.nodes, nodes.unsigned_abs());
        sums.cpu += i128::from(free[0]) * i128::from(nodes);
        sums.memory += i128::from(free[1]) * i128::from(nodes);
    }
}

fn count(shape: &Shape, classes: &Classes, resources: &Resources, steps: &mut u64) -> (Tail, Sums) {
    let fitting = Fitting { open: Vec::new(), need: resources.need(&shape.requests) };
    let mut tail = Tail { fitting, shape: shape.clone() };
    tail.open_to(classes);
    let mut sums = Sums::default();
    for (class, _) in classes.iter().zip(&tail.fitting.open).filter(|(_, open)| **open) {
        for (free, nodes) in &class.free {
            *steps += 1;
            tail.add(&mut sums, free, i64::from(*nodes));
        }
    }
    (tail, sums)
}

/// The sums by shape: heads and tails in the same order.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    heads: Vec<Head>,
    tails: Vec<Tail>,
    /// Where each shape is, by digest.
    places: BTreeMap<u128, usize>,
    uses: Count,
    /// How many groups of equal nodes were looked at to count sums.
    pub(super) steps: u64,
}

impl Answers {
    /// Whether the sums for a shape are kept.
    pub(super) fn has(&self, shape: &Shape) -> bool {
        self.places.get(&shape.digest()).is_some_and(|place| !self.heads[*place].outdated)
    }

    /// The sums for a shape, if they are kept. Clusters are mostly asked for shapes in the same order, so that one is looked for
    /// first where it was in the cluster that was asked before.
    pub(super) fn kept(&self, shape: &Shape, hint: &mut usize) -> Option<&Sums> {
        let digest = shape.digest();
        if self.heads.get(*hint).is_none_or(|head| head.digest != digest) {
            *hint = self.places.get(&digest).copied()?;
        }
        let head = self.heads.get(*hint).filter(|head| !head.outdated)?;
        head.used.set(self.uses.next());
        Some(&head.sums)
    }

    /// The shapes that were asked for lately.
    pub(super) fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.tails.iter().map(|tail| &tail.shape)
    }

    /// Forgets all sums, not which shapes were asked for.
    pub(super) fn clear(&mut self) {
        self.heads.iter_mut().for_each(|head| head.outdated = true);
    }

    /// A node with so much free comes to a class or leaves it.
    pub(super) fn moved(&mut self, class: usize, free: &[i64], nodes: i64) {
        for (head, tail) in self.heads.iter_mut().zip(&self.tails).filter(|(head, _)| !head.outdated) {
            if tail.fitting.open[class] {
                tail.add(&mut head.sums, free, nodes);
            }
        }
    }

    /// Finds out which shapes a class takes that may be new.
    pub(super) fn cover(&mut self, classes: &Classes, class: usize) {
        for (head, tail) in self.heads.iter().zip(&mut self.tails) {
            if !head.outdated && tail.fitting.open.len() <= class {
                tail.open_to(classes);
            }
        }
    }

    /// The sums for a shape. They are kept from now on, in place of those that were not used for the longest time; those
    /// of unbound replicas stay.
    pub(super) fn of(
        &mut self,
        shape: &Shape,
        classes: &Classes,
        resources: &Resources,
        unbound: &BTreeMap<Shape, u32>,
    ) -> Answer<'_> {
        let used = self.uses.next();
        let place = match self.places.get(&shape.digest()) {
            Some(place) => *place,
            None => {
                if self.heads.len() >= KEPT {
                    self.drop_oldest(unbound);
                }
                let (tail, sums) = count(shape, classes, resources, &mut self.steps);
                let (digest, place) = (shape.digest(), self.heads.len());
                self.heads.push(Head { digest, sums, used: Count::default(), outdated: false });
                self.tails.push(tail);
                self.places.insert(digest, place);
                place
            }
        };
        let (head, tail) = (&mut self.heads[place], &mut self.tails[place]);
        if head.outdated {
            (*tail, head.sums) = count(shape, classes, resources, &mut self.steps);
            head.outdated = false;
        }
        head.used.set(used);
        Answer { fitting: &tail.fitting, sums: head.sums }
    }

    /// Forgets a quarter of the sums at once, so that it need not be done for every new shape.
    fn drop_oldest(&mut self, unbound: &BTreeMap<Shape, u32>) {
        let dispensable = self.heads.iter().zip(&self.tails);
        let dispensable = dispensable.filter(|(_, tail)| !unbound.contains_key(&tail.shape));
        let mut used: Vec<u64> = dispensable.map(|(head, _)| head.used.get()).collect();
        if used.is_empty() {
            return;
        }
        let quarter = used.len() / 4;
        let (_, last, _) = used.select_nth_unstable(quarter);
        let last = *last;
        let all = std::mem::take(&mut self.heads).into_iter().zip(std::mem::take(&mut self.tails));
        (self.heads, self.tails) =
            all.filter(|(head, tail)| head.used.get() > last || unbound.contains_key(&tail.shape)).unzip();
        let places = self.heads.iter().enumerate().map(|(place, head)| (head.digest, place));
        self.places = places.collect();
    }
}

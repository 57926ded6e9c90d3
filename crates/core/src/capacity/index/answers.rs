//! Sums for the shapes that were asked for lately, moved along with every change.

use super::classes::Classes;
use super::estimate::Fitting;
use super::resources::Resources;
use crate::capacity::Shape;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// For so many shapes sums are kept; each costs a little at every change of a node or pod, and some 300 bytes.
const KEPT: usize = 512;

/// What all nodes together have for one shape.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) fitting: Fitting,
    pub(super) max_replicas: u64,
    /// How many nodes take the shape, however full they are.
    pub(super) nodes: u64,
    pub(super) cpu: i128,
    pub(super) memory: i128,
    shape: Shape,
    used: u64,
    /// Whether the classes were made anew since it was counted.
    outdated: bool,
}

impl Answer {
    fn count(shape: &Shape, classes: &Classes, resources: &Resources, steps: &mut u64) -> Self {
        let fitting = Fitting { open: Vec::new(), need: resources.need(&shape.requests) };
        let mut answer = Self {
            fitting,
            max_replicas: 0,
            nodes: 0,
            cpu: 0,
            memory: 0,
            shape: shape.clone(),
            used: 0,
            outdated: false,
        };
        answer.open_to(classes);
        for (class, open) in classes.iter().zip(answer.fitting.open.clone()) {
            for (free, nodes) in class.free.iter().filter(|_| open) {
                *steps += 1;
                answer.moved(free, i64::from(*nodes));
            }
        }
        answer
    }

    fn moved(&mut self, free: &[i64], nodes: i64) {
        let max_replicas = u64::from(self.fitting.need.times(free)) * nodes.unsigned_abs();
        let add = |sum: u64, by: u64| if nodes < 0 { sum - by } else { sum + by };
        self.max_replicas = add(self.max_replicas, max_replicas);
        self.nodes = add(self.nodes, nodes.unsigned_abs());
        self.cpu += i128::from(free[0]) * i128::from(nodes);
        self.memory += i128::from(free[1]) * i128::from(nodes);
    }

    fn open_to(&mut self, classes: &Classes) {
        for class in self.fitting.open.len()..classes.len() {
            self.fitting.open.push(classes.get(class).refuses(&self.shape).is_none());
        }
    }
}

/// The sums by shape.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    all: BTreeMap<Shape, Answer>,
    uses: u64,
    /// How many groups of equal nodes were looked at to count sums.
    pub(super) steps: u64,
}

impl Answers {
    /// Whether the sums for a shape are kept.
    pub(super) fn has(&self, shape: &Shape) -> bool {
        self.all.get(shape).is_some_and(|answer| !answer.outdated)
    }

    /// The sums for a shape, if they are kept.
    pub(super) fn kept(&mut self, shape: &Shape) -> Option<&Answer> {
        let answer = self.all.get_mut(shape).filter(|answer| !answer.outdated)?;
        self.uses += 1;
        answer.used = self.uses;
        Some(answer)
    }

    /// The shapes that were asked for lately.
    pub(super) fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.all.keys()
    }

    /// Forgets all sums, not which shapes were asked for.
    pub(super) fn clear(&mut self) {
        self.all.values_mut().for_each(|answer| answer.outdated = true);
    }

    /// A node with so much free comes to a class or leaves it.
    pub(super) fn moved(&mut self, class: usize, free: &[i64], nodes: i64) {
        for answer in self.all.values_mut().filter(|answer| !answer.outdated) {
            if answer.fitting.open[class] {
                answer.moved(free, nodes);
            }
        }
    }

    /// Finds out which shapes a class takes that may be new.
    pub(super) fn cover(&mut self, classes: &Classes, class: usize) {
        let short = |answer: &&mut Answer| !answer.outdated && answer.fitting.open.len() <= class;
        for answer in self.all.values_mut().filter(short) {
            answer.open_to(classes);
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
    ) -> &Answer {
        if self.all.len() >= KEPT && !self.all.contains_key(shape) {
            self.drop_oldest(unbound);
        }
        self.uses += 1;
        let (uses, steps) = (self.uses, &mut self.steps);
        let mut count = || Answer::count(shape, classes, resources, steps);
        let answer = match self.all.entry(shape.clone()) {
            Entry::Vacant(vacant) => vacant.insert(count()),
            Entry::Occupied(kept) => {
                let kept = kept.into_mut();
                if kept.outdated {
                    *kept = count();
                }
                kept
            }
        };
        answer.used = uses;
        answer
    }

    /// Forgets a quarter of the sums at once, so that it need not be done for every new shape.
    fn drop_oldest(&mut self, unbound: &BTreeMap<Shape, u32>) {
        let dispensable = self.all.iter().filter(|(shape, _)| !unbound.contains_key(*shape));
        let mut used: Vec<u64> = dispensable.map(|(_, answer)| answer.used).collect();
        if used.is_empty() {
            return;
        }
        let quarter = used.len() / 4;
        let (_, last, _) = used.select_nth_unstable(quarter);
        let last = *last;
        self.all.retain(|shape, answer| answer.used > last || unbound.contains_key(shape));
    }
}

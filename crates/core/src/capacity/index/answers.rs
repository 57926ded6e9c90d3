//! Sums for the shapes that were asked for lately, moved along with every change.

use super::classes::Classes;
use super::estimate::Fitting;
use super::resources::{Resources, clamp};
use super::view::Room;
use crate::capacity::Shape;
use std::collections::BTreeMap;

/// For so many shapes sums are kept; each costs a little at every change of a node or pod.
const KEPT: usize = 32;

/// What all nodes together have for one shape.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) fitting: Fitting,
    pub(super) fits: u64,
    pub(super) cpu: i128,
    pub(super) memory: i128,
    shape: Shape,
    used: u64,
}

impl Answer {
    fn count(shape: &Shape, classes: &Classes, resources: &Resources) -> Self {
        let fitting = Fitting { open: Vec::new(), need: resources.need(&shape.requests) };
        let mut answer = Self { fitting, fits: 0, cpu: 0, memory: 0, shape: shape.clone(), used: 0 };
        answer.open_to(classes);
        for (class, open) in classes.iter().zip(answer.fitting.open.clone()) {
            for (free, nodes) in class.free.iter().filter(|_| open) {
                answer.moved(free, i64::from(*nodes));
            }
        }
        answer
    }

    fn moved(&mut self, free: &[i64], nodes: i64) {
        let fits = u64::from(self.fitting.need.times(free)) * nodes.unsigned_abs();
        self.fits = if nodes < 0 { self.fits - fits } else { self.fits + fits };
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
#[derive(Debug, Default)]
pub(super) struct Answers {
    all: BTreeMap<Shape, Answer>,
    uses: u64,
}

impl Answers {
    /// Whether the sums for a shape are kept.
    pub(super) fn has(&self, shape: &Shape) -> bool {
        self.all.contains_key(shape)
    }

    /// The room for a shape of which sums are kept, if nothing is to be estimated.
    pub(super) fn kept(&mut self, shape: &Shape) -> Option<Room> {
        let answer = self.all.get_mut(shape).filter(|_| !shape.is_pinned())?;
        self.uses += 1;
        answer.used = self.uses;
        let fits = u32::try_from(answer.fits).unwrap_or(u32::MAX);
        Some(Room { fits, cpu: clamp(answer.cpu), memory: clamp(answer.memory) })
    }

    /// Forgets all sums.
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// A node with so much free comes to a class or leaves it.
    pub(super) fn moved(&mut self, class: usize, free: &[i64], nodes: i64) {
        for answer in self.all.values_mut() {
            if answer.fitting.open[class] {
                answer.moved(free, nodes);
            }
        }
    }

    /// Finds out which shapes a class takes that may be new.
    pub(super) fn cover(&mut self, classes: &Classes, class: usize) {
        for answer in self.all.values_mut().filter(|answer| answer.fitting.open.len() <= class) {
            answer.open_to(classes);
        }
    }

    /// The sums for a shape. They are kept from now on, in place of those that were not used for the longest time; those
    /// of outstanding replicas stay.
    pub(super) fn of(
        &mut self,
        shape: &Shape,
        classes: &Classes,
        resources: &Resources,
        outstanding: &BTreeMap<Shape, u32>,
    ) -> &Answer {
        if self.all.len() >= KEPT && !self.all.contains_key(shape) {
            let dispensable = self.all.iter().filter(|(shape, _)| !outstanding.contains_key(*shape));
            let oldest = dispensable.min_by_key(|(_, answer)| answer.used).map(|(shape, _)| shape.clone());
            oldest.and_then(|shape| self.all.remove(&shape));
        }
        self.uses += 1;
        let answer =
            self.all.entry(shape.clone()).or_insert_with(|| Answer::count(shape, classes, resources));
        answer.used = self.uses;
        answer
    }
}

//! Where replicas that have no node yet will probably go.

use super::classes::Classes;
use super::resources::{Free, Need};
use std::collections::BTreeMap;

/// How the room of a cluster would differ: how many nodes more or fewer of each class have exactly this free.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    moved: BTreeMap<usize, BTreeMap<Free, i64>>,
}

/// Which classes take a shape, and what it needs there.
#[derive(Clone, Debug)]
pub(super) struct Fitting {
    pub(super) open: Vec<bool>,
    pub(super) need: Need,
}

impl Estimate {
    /// Takes a node of a class to have something else free.
    pub(super) fn shift(&mut self, class: usize, from: Free, to: Free, nodes: u32) {
        self.change(class, from, -i64::from(nodes));
        self.change(class, to, i64::from(nodes));
    }

    /// Takes room for up to `count` pods, each from the node with the most free, as a scheduler that spreads would;
    /// answers for how many there was room. Nodes with the same free are taken together.
    pub(super) fn reserve(&mut self, classes: &Classes, fitting: &Fitting, count: u32) -> u32 {
        if !fitting.need.is_bounded() {
            return if (0..classes.len()).any(|class| fitting.open[class] && classes.get(class).nodes > 0) {
                count
            } else {
                0
            };
        }
        let mut left = count;
        while left > 0 {
            let open = (0..classes.len()).filter(|class| fitting.open[*class]);
            let tops = open.filter_map(|class| {
                let (free, nodes) = self.top(classes, class, &fitting.need)?;
                Some((free, &classes.get(class).key, class, nodes))
            });
            let Some((free, _, class, nodes)) =
                tops.max_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)))
            else {
                break;
            };
            let (free, taken) = (free.clone(), left.min(nodes));
            let rest = fitting.need.taken_from(&free);
            self.shift(class, free, rest, taken);
            left -= taken;
        }
        count - left
    }

    /// All that differs in classes that are open to a shape.
    pub(super) fn differences<'a>(
        &'a self,
        fitting: &'a Fitting,
    ) -> impl Iterator<Item = (&'a Free, i64)> + 'a {
        let open = self.moved.iter().filter(|(class, _)| fitting.open.get(**class).copied().unwrap_or(false));
        open.flat_map(|(_, moved)| moved.iter().map(|(free, nodes)| (free, *nodes)))
    }

    /// What is free on the nodes of a class.
    pub(super) fn free<'a>(
        &'a self,
        classes: &'a Classes,
        class: usize,
    ) -> impl Iterator<Item = &'a Free> + 'a {
        let base = classes.get(class).free.iter().map(|(free, nodes)| (free, i64::from(*nodes)));
        let left = base.filter(move |(free, nodes)| nodes + self.difference(class, free) > 0);
        let own = self.of(class).filter(|(_, nodes)| *nodes > 0);
        left.chain(own).map(|(free, _)| free)
    }

    /// The nodes of a class with the most free that a pod still fits on.
    fn top<'a>(&'a self, classes: &'a Classes, class: usize, need: &Need) -> Option<(&'a Free, u32)> {
        let fits = |free: &Free, nodes: i64| nodes > 0 && need.times(free) > 0;
        let base = classes.get(class).free.iter().rev().find_map(|(free, nodes)| {
            let nodes = i64::from(*nodes) + self.difference(class, free);
            fits(free, nodes).then_some((free, nodes))
        });
        let base_of = |free: &Free| classes.get(class).free.get(free).map_or(0, |nodes| i64::from(*nodes));
        let own = self.of(class).rev().find_map(|(free, nodes)| {
            let nodes = nodes + base_of(free);
            fits(free, nodes).then_some((free, nodes))
        });
        let (free, nodes) = base.into_iter().chain(own).max_by_key(|(free, _)| *free)?;
        Some((free, u32::try_from(nodes).unwrap_or(u32::MAX)))
    }

    fn of(&self, class: usize) -> impl DoubleEndedIterator<Item = (&Free, i64)> {
        self.moved.get(&class).into_iter().flatten().map(|(free, nodes)| (free, *nodes))
    }

    fn difference(&self, class: usize, free: &Free) -> i64 {
        self.moved.get(&class).and_then(|moved| moved.get(free)).copied().unwrap_or(0)
    }

    fn change(&mut self, class: usize, free: Free, by: i64) {
        let moved = self.moved.entry(class).or_default();
        let nodes = moved.get(&free).copied().unwrap_or(0) + by;
        if nodes == 0 {
            moved.remove(&free);
        } else {
            moved.insert(free, nodes);
        }
    }
}

//! Where replicas that have no node yet will probably go.

use super::classes::Classes;
use super::resources::{Free, Need};
use crate::capacity::Shape;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// How the room of a cluster would differ: how many nodes more or fewer of each class have exactly this free.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    moved: BTreeMap<usize, BTreeMap<Free, i64>>,
    /// Replicas that no node has room for.
    pub(super) unplaced: Vec<(Shape, u32)>,
    /// How many groups of equal nodes were looked at for it.
    pub(super) steps: u64,
}

/// Which classes take a shape, and what it needs there.
#[derive(Clone, Debug)]
pub(super) struct Fitting {
    pub(super) open: Vec<bool>,
    pub(super) need: Need,
}

/// Nodes of one class that have the same free, ordered as they are taken: the most free first, then by class.
struct Group<'a> {
    free: Cow<'a, [i64]>,
    key: &'a str,
    class: usize,
    nodes: u32,
    /// Whether nothing was taken from it yet: then its class may have more groups, with less free.
    untouched: bool,
}

impl Group<'_> {
    fn rank(&self) -> (&[i64], &str) {
        (&self.free, self.key)
    }
}

impl PartialEq for Group<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Group<'_> {}

impl PartialOrd for Group<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Group<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl Estimate {
    /// Takes a node of a class to have something else free.
    pub(super) fn shift(&mut self, class: usize, from: Free, to: Free, nodes: u32) {
        self.change(class, from, -i64::from(nodes));
        self.change(class, to, i64::from(nodes));
    }

    /// Takes it that a class has so many more nodes with this free.
    pub(super) fn grow(&mut self, class: usize, free: Free, nodes: u32) {
        self.change(class, free, i64::from(nodes));
    }

    /// Takes room for up to `count` pods, each from the node with the most free, as a scheduler that spreads would;
    /// answers for how many there was room. Nodes with the same free are taken together.
    pub(super) fn reserve(&mut self, classes: &Classes, fitting: &Fitting, count: u32) -> u32 {
        let need = &fitting.need;
        if need.is_impossible() || count == 0 {
            return 0;
        }
        if !need.is_bounded() {
            let open = |class: usize| fitting.open[class] && self.nodes(classes, class) > 0;
            return if (0..classes.len()).any(open) { count } else { 0 };
        }
        let (mut left, mut steps, mut changes) = (count, 0, Vec::new());
        let mut groups: Vec<_> = (0..classes.len())
            .map(|class| fitting.open[class].then(|| self.groups(classes, class)))
            .collect();
        let mut next = |class: usize, steps: &mut u64| {
            let of_class = groups[class].as_mut()?;
            let mut may_fit = of_class.inspect(|_| *steps += 1).take_while(|(free, _)| need.may_fit(free[0]));
            let (free, nodes) = may_fit.find(|(free, _)| need.times(free) > 0)?;
            let key = classes.get(class).key.as_str();
            Some(Group { free: Cow::Borrowed(free), key, class, nodes, untouched: true })
        };
        let mut heap: BinaryHeap<Group<'_>> =
            (0..classes.len()).filter_map(|class| next(class, &mut steps)).collect();
        while left > 0
            && let Some(group) = heap.pop()
        {
            steps += 1;
            if group.untouched {
                heap.extend(next(group.class, &mut steps));
            }
            let fits = need.times(&group.free);
            let (times, nodes) = match left / group.nodes {
                0 => (1, left),
                rounds => (rounds_of(need, &group, heap.peek(), fits.min(rounds)), group.nodes),
            };
            let rest = need.taken_from(&group.free, times);
            left -= times * nodes;
            changes.push((group.class, Free::from(&*group.free), rest.clone(), nodes));
            if fits > times {
                heap.push(Group { free: Cow::Owned(rest.into()), nodes, untouched: false, ..group });
            }
        }
        drop((heap, groups));
        for (class, from, to, nodes) in changes {
            self.shift(class, from, to, nodes);
        }
        self.steps += steps;
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

    /// What is free on the nodes of a class, the most free first, and on how many.
    pub(super) fn groups<'a>(
        &'a self,
        classes: &'a Classes,
        class: usize,
    ) -> impl Iterator<Item = (&'a Free, u32)> + 'a {
        let mut base = classes.get(class).free.iter().rev().peekable();
        let mut own = self.moved.get(&class).into_iter().flatten().rev().peekable();
        std::iter::from_fn(move || {
            loop {
                let (of_base, of_own) =
                    (base.peek().map(|(free, _)| *free), own.peek().map(|(free, _)| *free));
                let free = of_base.max(of_own)?;
                let mut nodes = 0;
                if of_base == Some(free) {
                    nodes += base.next().map_or(0, |(_, nodes)| i64::from(*nodes));
                }
                if of_own == Some(free) {
                    nodes += own.next().map_or(0, |(_, nodes)| *nodes);
                }
                if nodes > 0 {
                    return Some((free, u32::try_from(nodes).unwrap_or(u32::MAX)));
                }
            }
        })
    }

    /// How many nodes a class has.
    fn nodes(&self, classes: &Classes, class: usize) -> i64 {
        let own: i64 = self.moved.get(&class).into_iter().flat_map(BTreeMap::values).sum();
        own.saturating_add(i64::try_from(classes.get(class).nodes).unwrap_or(i64::MAX))
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

/// How many times in a row every node of a group is taken before another group has more free, at least once and at most
/// so many times.
fn rounds_of(need: &Need, group: &Group<'_>, other: Option<&Group<'_>>, most: u32) -> u32 {
    let Some(other) = other else { return most };
    let is_first_after = |times: u32| (&*need.taken_from(&group.free, times), group.key) >= other.rank();
    if most < 2 || !is_first_after(1) {
        return 1;
    }
    // With each round less is free: the last round that begins with this group in front is found by halving.
    let (mut some, mut too_many) = (1, most);
    while some + 1 < too_many {
        let middle = some.midpoint(too_many);
        if is_first_after(middle) {
            some = middle;
        } else {
            too_many = middle;
        }
    }
    some + 1
}

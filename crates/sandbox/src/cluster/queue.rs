//! What is to be looked at, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::store::ObjectKey;

/// An object to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) table: Arc<str>,
    pub(super) key: ObjectKey,
}

impl Item {
    pub(super) fn new(table: &str, key: &ObjectKey) -> Self {
        Self { table: table.into(), key: key.clone() }
    }
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.table.trim_start_matches('/'), self.key)
    }
}

/// The queue of all controllers of a cluster. An item is in it once a controller, at its earliest time.
///
/// Controllers take turns, as if they ran side by side: while one has much to do, what it has done goes on through the
/// others. Each deals with its own items by time and name.
pub(super) struct Queue {
    lanes: Vec<Lane>,
    acting: usize,
    /// Whose turn it is.
    turn: usize,
}

/// What one controller is to look at.
#[derive(Default)]
struct Lane {
    by_time: BTreeSet<(Instant, Item)>,
    due: BTreeMap<Item, Instant>,
}

impl Queue {
    pub(super) fn new(controllers: usize) -> Self {
        Self { lanes: (0..controllers).map(|_| Lane::default()).collect(), acting: 0, turn: 0 }
    }

    /// Items added next are for this controller.
    pub(super) fn acting(&mut self, controller: usize) {
        self.acting = controller;
    }

    /// Adds an item for the acting controller, to be looked at now.
    pub(super) fn add(&mut self, item: Item) {
        self.add_at(self.acting, item, Instant::now());
    }

    pub(super) fn add_after(&mut self, controller: usize, item: Item, after: Duration) {
        self.add_at(controller, item, Instant::now() + after);
    }

    fn add_at(&mut self, controller: usize, item: Item, at: Instant) {
        let Some(lane) = self.lanes.get_mut(controller) else { return };
        if let Some(before) = lane.due.get(&item) {
            if *before <= at {
                return;
            }
            lane.by_time.remove(&(*before, item.clone()));
        }
        lane.by_time.insert((at, item.clone()));
        lane.due.insert(item, at);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.lanes.iter().filter_map(Lane::next_due).min()
    }

    /// The next item that is due, of the controller whose turn it is or of the next one that has any.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(usize, Item)> {
        let count = self.lanes.len();
        let mut in_turn = (0..count).map(|step| (self.turn + step) % count);
        let controller = in_turn.find(|index| self.lanes[*index].next_due().is_some_and(|at| at <= now))?;
        let lane = &mut self.lanes[controller];
        let (_, item) = lane.by_time.pop_first()?;
        lane.due.remove(&item);
        self.turn = (controller + 1) % count;
        Some((controller, item))
    }
}

impl Lane {
    fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn controllers_take_turns() {
        let mut queue = Queue::new(3);
        let item = |name: &str| Item::new("x", &ObjectKey::new("", name));
        for (controller, name) in [(0, "a"), (0, "b"), (0, "c"), (2, "d")] {
            queue.acting(controller);
            queue.add(item(name));
        }
        queue.add_after(1, item("late"), Duration::from_secs(1));
        queue.add_after(0, item("a"), Duration::from_secs(1));
        let mut taken = Vec::new();
        while let Some((controller, item)) = queue.pop_due(Instant::now()) {
            taken.push((controller, item.key.name.to_string()));
        }
        let expected = [(0, "a"), (2, "d"), (0, "b"), (0, "c")];
        assert_eq!(taken, expected.map(|(controller, name)| (controller, name.to_owned())));
        assert_eq!(queue.next_due(), Some(Instant::now() + Duration::from_secs(1)));
    }
}

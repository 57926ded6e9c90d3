//! What is to be looked at, and when: ordered by time, controller, and name.

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
#[derive(Default)]
pub(super) struct Queue {
    by_time: BTreeSet<(Instant, usize, Item)>,
    due: BTreeMap<(usize, Item), Instant>,
    acting: usize,
}

impl Queue {
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
        let slot = (controller, item);
        if let Some(before) = self.due.get(&slot) {
            if *before <= at {
                return;
            }
            self.by_time.remove(&(*before, slot.0, slot.1.clone()));
        }
        self.by_time.insert((at, slot.0, slot.1.clone()));
        self.due.insert(slot, at);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _, _)| *at)
    }

    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(usize, Item)> {
        if self.next_due()? > now {
            return None;
        }
        let (_, controller, item) = self.by_time.pop_first()?;
        self.due.remove(&(controller, item.clone()));
        Some((controller, item))
    }
}

//! How many bytes a session may unpack, with all of its parts together.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was unpacked, by the part that it was in.
#[derive(Debug, Default)]
pub(super) struct Budget(Mutex<BTreeMap<String, u64>>);

impl Budget {
    /// What the other parts have used. A part that is unpacked once more is not counted twice.
    pub(super) fn others(&self, part: &str) -> u64 {
        let used = self.lock();
        used.iter().filter(|(other, _)| *other != part).fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Counts a part.
    pub(super) fn count(&self, part: &str, bytes: u64) {
        self.lock().insert(part.to_owned(), bytes);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_once_each() {
        let budget = Budget::default();
        budget.count("a", 5);
        budget.count("b", 7);
        budget.count("a", 6);
        assert_eq!(["a", "b", "c"].map(|part| budget.others(part)), [7, 6, 13]);
        budget.count("c", u64::MAX);
        assert_eq!(budget.others("a"), u64::MAX);
    }
}

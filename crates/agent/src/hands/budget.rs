//! How many bytes a session may unpack, with all of its parts together.

use super::{NodeError, Settings};
use crate::session::Pod;
use portolan_node::archive::{ArchiveError, Limits, Refusal};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was unpacked, by the part that it was in.
#[derive(Debug, Default)]
pub(super) struct Budget(Mutex<BTreeMap<String, u64>>);

impl Budget {
    /// Does something that uses so many bytes for a part, and no more than are left.
    pub(super) fn within<T>(
        &self,
        pod: &Pod,
        part: &str,
        settings: &Settings,
        work: impl FnOnce(&Limits) -> Result<(u64, T), NodeError>,
    ) -> Result<T, NodeError> {
        let (limits, limit) = (settings.limits, settings.session_bytes);
        let others = self.others(part);
        let within = Limits { total_bytes: limits.total_bytes.min(limit.saturating_sub(others)), ..limits };
        let (bytes, done) = work(&within).map_err(|error| match too_many(&error) {
            // By itself it would not be too large.
            Some(bytes) if bytes <= limits.total_bytes => {
                let bytes = others.saturating_add(bytes);
                NodeError::Budget { pod: pod.to_string(), part: part.to_owned(), bytes, limit }
            }
            _ => error,
        })?;
        self.count(part, bytes);
        Ok(done)
    }

    /// What the other parts have used. A part that is unpacked once more is not counted twice.
    fn others(&self, part: &str) -> u64 {
        let used = self.lock();
        used.iter().filter(|(other, _)| *other != part).fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Counts a part.
    fn count(&self, part: &str, bytes: u64) {
        self.lock().insert(part.to_owned(), bytes);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many bytes a part has at least, if it has too many.
fn too_many(error: &NodeError) -> Option<u64> {
    let NodeError::Archive { source, .. } = error else { return None };
    match **source {
        ArchiveError::Refused { refusal: Refusal::TooManyBytes { bytes, .. }, .. } => Some(bytes),
        _ => None,
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

//! Reservations that were decided but are not in the index yet.

use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Between a decision and its return through the watch, other decisions must already count it.
///
/// An entry holds for the version of the object that the decision was taken on: once the index has another version, our
/// write has come back, or somebody else's has made it fail.
#[derive(Debug, Default)]
pub(super) struct Assumed(Mutex<BTreeMap<Key, Entry>>);

#[derive(Debug)]
struct Entry {
    decided_on: Option<String>,
    placed: BTreeMap<String, u32>,
}

impl Assumed {
    /// Takes a decision for granted.
    pub(super) fn assume(&self, key: &Key, decided_on: Option<String>, placed: BTreeMap<String, u32>) {
        self.lock().insert(key.clone(), Entry { decided_on, placed });
    }

    /// The decision could not be written.
    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// How many replicas the workload holds in the cluster by an assumption that still stands.
    pub(super) fn replicas(&self, key: &Key, version: Option<&str>, cluster: &str) -> Option<u32> {
        let mut entries = self.lock();
        let entry = entries.get(key)?;
        if entry.decided_on.as_deref() != version {
            entries.remove(key);
            return None;
        }
        Some(entry.placed.get(cluster).copied().unwrap_or(0))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stands_until_the_index_has_another_version() {
        let assumed = Assumed::default();
        let key = Key::new("default", "app");
        assumed.assume(&key, Some("5".into()), BTreeMap::from([("a".into(), 3)]));
        assert_eq!(assumed.replicas(&key, Some("5"), "a"), Some(3));
        assert_eq!(assumed.replicas(&key, Some("5"), "b"), Some(0), "it holds nothing elsewhere");
        assert_eq!(assumed.replicas(&key, Some("6"), "a"), None);
        assert_eq!(assumed.replicas(&key, Some("5"), "a"), None, "and is forgotten then");
    }
}

//! How far a session is sent.

use portolan_node::Name;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How far a part is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartProgress {
    /// How many bytes were sent, those that were sent again included.
    pub sent: u64,
    /// How many bytes the receiver has on disk.
    pub acknowledged: u64,
    /// How many connections were tried.
    pub tries: u32,
    /// Whether the receiver has the whole part.
    pub whole: bool,
}

/// How far the parts of a session are sent; clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<BTreeMap<Name, PartProgress>>>);

impl Progress {
    /// What is known of each part now.
    #[must_use]
    pub fn parts(&self) -> BTreeMap<Name, PartProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All parts together: bytes that were sent, and bytes that were acknowledged.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        self.parts()
            .values()
            .fold((0, 0), |(sent, acknowledged), part| (sent + part.sent, acknowledged + part.acknowledged))
    }

    pub(super) fn record(&self, part: &Name, record: impl FnOnce(&mut PartProgress)) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(progress) = parts.get_mut(part) {
            record(progress);
        } else {
            record(parts.entry(part.clone()).or_default());
        }
    }
}

//! A cluster in the book.

use portolan_core::capacity::ClusterIndex;
use std::sync::Arc;

/// A cluster, and which of its watches may write to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    index: Arc<ClusterIndex>,
    pub(super) epoch: u64,
}

impl Cluster {
    pub(super) fn new(index: ClusterIndex, epoch: u64) -> Self {
        Self { index: Arc::new(index), epoch }
    }

    pub(super) fn known(&self) -> &ClusterIndex {
        &self.index
    }

    /// The index, to be changed or asked. A fork of the book keeps what it has.
    pub(super) fn index(&mut self) -> &mut ClusterIndex {
        Arc::make_mut(&mut self.index)
    }
}

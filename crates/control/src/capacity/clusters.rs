//! The clusters in the book.

use super::board::Board;
use portolan_core::capacity::{ClusterIndex, Shape, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All clusters, by name.
#[derive(Debug, Default)]
pub(super) struct Clusters {
    all: BTreeMap<String, Cluster>,
    board: Board,
}

/// A cluster, and which of its watches may write to it.
#[derive(Clone, Debug, Default)]
struct Cluster {
    index: Arc<ClusterIndex>,
    epoch: u64,
}

impl Clusters {
    /// The same clusters for another book. Each is copied when something has to be counted in one of the two.
    pub(super) fn fork(&self) -> Self {
        Self { all: self.all.clone(), board: Board::default() }
    }

    /// A cluster as a workload sees it, if the cluster is known.
    pub(super) fn view(&mut self, name: &str, uid: &str, shape: &Shape) -> Option<View> {
        if let Some(view) = self.board.view(name, uid, shape) {
            return Some(view);
        }
        let cluster = self.all.get_mut(name)?;
        let view = Arc::make_mut(&mut cluster.index).view(uid, shape);
        self.board.learn(name, &cluster.index, shape);
        Some(view)
    }

    /// What is known of a cluster.
    pub(super) fn get(&self, name: &str) -> Option<&ClusterIndex> {
        self.all.get(name).map(|cluster| cluster.index.as_ref())
    }

    /// What is known of a cluster, to be asked what may have to be counted first. Nothing that is known changes by that:
    /// [`Clusters::change`] is for changes.
    pub(super) fn ask(&mut self, name: &str) -> Option<&mut ClusterIndex> {
        self.all.get_mut(name).map(|cluster| Arc::make_mut(&mut cluster.index))
    }

    /// Changes what is known of a cluster, if it is there.
    pub(super) fn change<T>(&mut self, name: &str, change: impl FnOnce(&mut ClusterIndex) -> T) -> Option<T> {
        let cluster = self.all.get_mut(name)?;
        let result = change(Arc::make_mut(&mut cluster.index));
        self.board.changed(name, &cluster.index);
        Some(result)
    }

    /// Whether the watches of this epoch may write to a cluster.
    pub(super) fn is_open(&self, name: &str, epoch: u64) -> bool {
        self.all.get(name).is_some_and(|cluster| cluster.epoch == epoch)
    }

    /// Takes a cluster, in the place of what was known of it.
    pub(super) fn insert(&mut self, name: &str, index: ClusterIndex, epoch: u64) {
        self.board.insert(name, &index);
        self.all.insert(name.to_owned(), Cluster { index: Arc::new(index), epoch });
    }

    /// Forgets a cluster.
    pub(super) fn remove(&mut self, name: &str) {
        self.board.remove(name);
        self.all.remove(name);
    }

    /// The names of the clusters where something of a workload is known.
    pub(super) fn knowing(&self, uid: &str) -> Vec<String> {
        let knowing = self.all.iter().filter(|(_, cluster)| cluster.index.knows(uid));
        knowing.map(|(name, _)| name.clone()).collect()
    }
}

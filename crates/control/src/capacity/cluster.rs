//! A cluster in the book.

use portolan_core::capacity::{ClusterIndex, Shape, View, WorkloadFilter};
use std::sync::Arc;

/// For so many shapes it is kept what a cluster looks like to workloads that it does not know.
const KEPT: usize = 8;

/// A cluster, and which of its watches may write to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    index: Arc<ClusterIndex>,
    pub(super) epoch: u64,
    outside: Outside,
}

/// What workloads that a cluster does not know see of it. It stands beside the pointer to the index: a decision looks at
/// every cluster, and most of them neither know the workload nor have changed since the last decision.
#[derive(Clone, Debug, Default)]
struct Outside {
    /// Who may be known.
    known: WorkloadFilter,
    shapes: [u128; KEPT],
    views: [View; KEPT],
    count: usize,
}

impl Outside {
    fn view(&self, uid: &str, shape: &Shape) -> Option<View> {
        let digest = shape.digest();
        let found = self.shapes.iter().take(self.count.min(KEPT)).position(|kept| *kept == digest)?;
        self.views.get(found).copied().filter(|_| !self.known.may_contain(uid))
    }

    fn keep(&mut self, shape: &Shape, view: View) {
        let digest = shape.digest();
        if self.shapes.iter().take(self.count.min(KEPT)).any(|kept| *kept == digest) {
            return;
        }
        let place = self.count % KEPT;
        self.shapes[place] = digest;
        self.views[place] = view;
        self.count += 1;
    }
}

impl Cluster {
    pub(super) fn new(index: ClusterIndex, epoch: u64) -> Self {
        Self { index: Arc::new(index), epoch, outside: Outside::default() }
    }

    pub(super) fn known(&self) -> &ClusterIndex {
        &self.index
    }

    /// The cluster as a workload sees it.
    pub(super) fn view(&mut self, uid: &str, shape: &Shape) -> View {
        if let Some(view) = self.outside.view(uid, shape) {
            return view;
        }
        let view = self.ask().view(uid, shape);
        if !self.index.knows(uid) {
            self.outside.known = self.index.workload_filter();
            self.outside.keep(shape, view);
        }
        view
    }

    /// The index, to be asked. A fork of the book keeps what it has.
    pub(super) fn ask(&mut self) -> &mut ClusterIndex {
        Arc::make_mut(&mut self.index)
    }

    /// The index, to be changed. A fork of the book keeps what it has.
    pub(super) fn change(&mut self) -> &mut ClusterIndex {
        self.outside.count = 0;
        self.ask()
    }
}

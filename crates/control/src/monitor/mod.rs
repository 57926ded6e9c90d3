//! The controllers seen from outside: whether they are ready, and what they count.
//!
//! A process has one [`Monitor`] for as long as it lives. Each term of a leader shows its controllers to it, and takes
//! them away when it ends. What is counted is kept where it happens, and is collected when somebody asks.

mod clouds;
mod collect;
mod families;
mod members;
mod page;
mod queues;
mod readiness;
mod workloads;

pub use families::*;
pub use page::page;
pub(crate) use queues::Queues;
pub use readiness::Check;

use crate::driver::{Controllers, EpochFence};
use crate::fleet::{Connect, Fleet};
use crate::hub_kinds::HubKind;
use portolan_api::CloudProvisioner;
use portolan_runtime::metrics::{RequestCounts, Samples};
use portolan_runtime::{Index, Queue};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What can be seen of the controllers of a process; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Monitor {
    running: Arc<Mutex<Option<Running>>>,
    /// The queues of those who work beside the controllers of a fleet.
    queues: Queues,
    requests: RequestCounts,
}

/// The controllers of a term.
pub(crate) struct Running {
    pub(crate) kinds: Vec<HubKind>,
    pub(crate) fence: EpochFence,
    pub(crate) fleet: Fleet,
    pub(crate) controllers: Controllers,
    pub(crate) provisioners: Index<CloudProvisioner>,
    pub(crate) connect: Arc<dyn Connect>,
}

/// A queue is shown for as long as this is kept.
pub(crate) struct ShownQueue {
    queues: Queues,
    name: &'static str,
}

impl Drop for ShownQueue {
    fn drop(&mut self) {
        self.queues.hide(self.name);
    }
}

/// Controllers are shown for as long as this is kept.
pub(crate) struct Shown(Monitor);

impl Monitor {
    /// Where requests to the hub and to members are counted.
    #[must_use]
    pub fn requests(&self) -> &RequestCounts {
        &self.requests
    }

    /// What must hold before the controllers of a leader are ready; nothing while no controllers run.
    #[must_use]
    pub fn checks(&self) -> Option<Vec<Check>> {
        self.running().as_ref().map(readiness::checks)
    }

    /// The numbers of this moment.
    #[must_use]
    pub fn samples(&self) -> Samples {
        let mut samples = Samples::default();
        collect::requests(&self.requests, &mut samples);
        if let Some(running) = self.running().as_ref() {
            collect::controllers(running, &mut samples);
        }
        self.queues.collect(&mut samples);
        samples
    }

    /// Shows a queue for as long as what is answered is kept.
    pub(crate) fn show_queue<K>(&self, name: &'static str, queue: &Queue<K>) -> ShownQueue
    where
        K: Ord + Clone + Debug + Send + 'static,
    {
        self.queues.show(name, queue.clone());
        ShownQueue { queues: self.queues.clone(), name }
    }

    pub(crate) fn show(&self, running: Running) -> Shown {
        *self.running() = Some(running);
        Shown(self.clone())
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let running = self.0.running().take();
        // Without the lock: what goes with it may be much.
        drop(running);
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

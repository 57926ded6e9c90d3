//! The work queues of the controllers.

use super::families as family;
use portolan_runtime::metrics::Samples;
use portolan_runtime::{Queue, QueueView};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

type View = Box<dyn Fn() -> QueueView + Send>;

/// The work queues of a term, by name; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Queues(Arc<Mutex<Vec<(&'static str, View)>>>);

impl Queues {
    /// Shows a queue, and hands it back.
    pub(crate) fn show<K>(&self, name: &'static str, queue: Queue<K>) -> Queue<K>
    where
        K: Ord + Clone + Debug + Send + 'static,
    {
        let shown = queue.clone();
        let view: View = Box::new(move || shown.view());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name, view));
        queue
    }

    /// Shows the queue of this name no more, which was shown first.
    pub(super) fn hide(&self, name: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = all.iter().position(|(shown, _)| *shown == name) {
            drop(all.remove(index));
        }
    }

    pub(super) fn collect(&self, samples: &mut Samples) {
        for (name, view) in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let QueueView { due, working, longest, unfinished, stats } = view();
            let labels = [*name];
            samples.number(&family::QUEUE_DEPTH, &labels, due as f64);
            samples.count(&family::QUEUE_ADDS, &labels, stats.adds);
            samples.count(&family::QUEUE_RETRIES, &labels, stats.failed);
            samples.histogram(&family::QUEUE_LATENCY, &labels, &stats.latency);
            samples.histogram(&family::QUEUE_WORK, &labels, &stats.work);
            samples.number(&family::QUEUE_UNFINISHED, &labels, unfinished.as_secs_f64());
            samples.number(&family::QUEUE_LONGEST, &labels, longest.as_secs_f64());
            samples.number(&family::WORKERS, &labels, working as f64);
            samples.count(&family::RECONCILE_ERRORS, &labels, stats.failed);
            for (result, count) in
                [("success", stats.done), ("requeue_after", stats.requeued), ("error", stats.failed)]
            {
                samples.count(&family::RECONCILES, &[name, result], count);
            }
        }
    }
}

impl Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(all.iter().map(|(name, _)| name)).finish()
    }
}

//! Long actions, which run while the session goes on.

use super::HandsError;
use tokio::task::{AbortHandle, JoinSet};

/// How a long action ended; nothing if it was stopped.
pub(super) type Outcome = Option<Result<(), HandsError>>;

/// The long actions of a session. All of them are stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Jobs<A> {
    tasks: JoinSet<Result<(), HandsError>>,
    running: Vec<(A, AbortHandle)>,
}

impl<A: Copy + PartialEq> Jobs<A> {
    pub(super) fn new() -> Self {
        Self { tasks: JoinSet::new(), running: Vec::new() }
    }

    pub(super) fn runs(&self, action: A) -> bool {
        self.running.iter().any(|(running, _)| *running == action)
    }

    pub(super) fn start(
        &mut self,
        action: A,
        work: impl Future<Output = Result<(), HandsError>> + Send + 'static,
    ) {
        let handle = self.tasks.spawn(work);
        self.running.push((action, handle));
    }

    /// The next one that ends, if there is any. May be dropped while it waits.
    pub(super) async fn next(&mut self) -> Option<(A, Outcome)> {
        let (id, outcome) = match self.tasks.join_next_with_id().await? {
            Ok((id, result)) => (id, Some(result)),
            Err(error) if error.is_cancelled() => (error.id(), None),
            Err(error) => (error.id(), Some(Err(HandsError::new("the agent failed in the middle of it")))),
        };
        let place = self.running.iter().position(|(_, handle)| handle.id() == id)?;
        let (action, _) = self.running.swap_remove(place);
        Some((action, outcome))
    }

    /// Stops some of them, and waits until they have ended.
    pub(super) async fn stop(&mut self, which: &[A]) -> Vec<(A, Outcome)> {
        for (action, handle) in &self.running {
            if which.contains(action) {
                handle.abort();
            }
        }
        let mut ended = Vec::new();
        while self.running.iter().any(|(action, _)| which.contains(action)) {
            match self.next().await {
                Some(job) => ended.push(job),
                None => break,
            }
        }
        ended
    }

    /// Which ones are running.
    pub(super) fn running(&self) -> Vec<A> {
        self.running.iter().map(|(action, _)| *action).collect()
    }
}

//! Tasks that are to go on for ever, and what becomes of the rest when one of them does not.

use tokio::task::JoinSet;

/// Works beside tasks that are meant to go on for ever, until the work or one of them ends. The others are dropped then.
///
/// A panic of a task is the caller's as much as its own, and is raised again here: nothing goes on with a part missing.
pub async fn supervise(mut tasks: JoinSet<()>, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        Some(ended) = tasks.join_next() => {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        () = work => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_or_ends_ends_the_work() {
        let mut tasks = JoinSet::new();
        tasks.spawn(async { assert_eq!(1, 2, "broken") });
        let supervised = tokio::spawn(supervise(tasks, std::future::pending()));
        assert!(supervised.await.unwrap_err().is_panic());
        let mut tasks = JoinSet::new();
        tasks.spawn(async {});
        supervise(tasks, std::future::pending()).await;
        supervise(JoinSet::new(), async {}).await;
    }
}

//! Questions that a member, or the Prometheus of the hub, did not answer in time: they are not put to it again for a while.
//!
//! All autoscalers share a few workers. One that takes requests and never answers would hold them all, look after look.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a look waits for one answer.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How long a question without an answer is not put again; after that, one look at a time finds out.
const LEFT_ALONE: Duration = Duration::from_secs(60);

/// What members did not answer, and when they are asked that again.
#[derive(Debug, Default)]
pub(super) struct Hung(Mutex<BTreeMap<(String, &'static str), Instant>>);

impl Hung {
    /// Puts a question about `what` to a member, unless it lately did not answer it.
    ///
    /// # Errors
    /// It does not answer in time, or what it says instead.
    pub(super) async fn ask<T>(
        &self,
        member: &str,
        what: &'static str,
        question: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let key = (member.to_owned(), what);
        let silent = || {
            let (limit, pause) = (ANSWER_WITHIN.as_secs(), LEFT_ALONE.as_secs());
            format!("no answer about {what} within {limit} s; it is asked again after {pause} s")
        };
        if !self.may_ask(&key) {
            return Err(silent());
        }
        let answer = tokio::time::timeout(ANSWER_WITHIN, question).await;
        if let Ok(answer) = answer {
            self.lock().remove(&key);
            answer
        } else {
            self.lock().insert(key, Instant::now() + LEFT_ALONE);
            Err(silent())
        }
    }

    fn may_ask(&self, key: &(String, &'static str)) -> bool {
        let now = Instant::now();
        match self.lock().get_mut(key) {
            Some(again) if now < *again => false,
            Some(again) => {
                *again = now + LEFT_ALONE;
                true
            }
            None => true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, &'static str), Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::{join_all, pending, ready};

    #[tokio::test(start_paused = true)]
    async fn a_member_that_hangs_costs_one_wait_and_then_none() {
        let (hung, begun) = (Hung::default(), Instant::now());
        let hang = || hung.ask("c1", "pods", pending::<Result<(), String>>());
        assert!(join_all((0..24).map(|_| hang())).await.iter().all(Result::is_err));
        assert_eq!(begun.elapsed(), ANSWER_WITHIN);
        assert!(join_all((0..24).map(|_| hang())).await.iter().all(Result::is_err));
        assert_eq!(begun.elapsed(), ANSWER_WITHIN, "nobody waits again");
        assert_eq!(hung.ask("c2", "pods", ready(Ok(1))).await, Ok(1), "the others are asked");
        assert_eq!(hung.ask("c1", "metrics", ready(Ok(1))).await, Ok(1), "and other questions are put to it");
        tokio::time::sleep(LEFT_ALONE).await;
        let refused: Result<(), String> = Err("forbidden".to_owned());
        assert_eq!(hung.ask("c1", "pods", ready(refused)).await, Err("forbidden".to_owned()));
        assert_eq!(hung.ask("c1", "pods", ready(Ok(2))).await, Ok(2), "it answers again");
    }
}

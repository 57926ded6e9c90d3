//! How many replicas of each copy were ready lately.
//!
//! A copy that nobody wants any more goes when it serves nobody. What is not ready at one moment may be back in the next: its
//! node restarts, its kubelet is cut off, a probe fails for a while. So the greatest number of the last minutes counts; and a
//! process that has not watched for so long takes all replicas for ready.

use super::facts::DeploymentFacts;
use portolan_runtime::Key;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What was ready within this time may be again.
const LATELY: Duration = Duration::from_secs(300);

/// By workload and cluster.
#[derive(Debug, Default)]
pub(super) struct LatelyReady(Mutex<BTreeMap<Key, BTreeMap<String, Seen>>>);

/// What was seen of one copy.
#[derive(Debug)]
struct Seen {
    uid: String,
    /// Numbers that were ready, each greater than all after it, and until when they were seen; the last one is the present.
    ready: VecDeque<(Instant, i32)>,
}

impl LatelyReady {
    /// How many were ready at one time within the last minutes, or may have been before anybody looked.
    pub(super) fn greatest(&self, key: &Key, cluster: &str, copy: &DeploymentFacts) -> u32 {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_workload = all.entry(key.clone()).or_default();
        let first = || Seen {
            uid: copy.meta.uid.clone(),
            ready: VecDeque::from([(now, copy.replicas), (now, copy.ready)]),
        };
        let seen = of_workload.entry(cluster.to_owned()).or_insert_with(first);
        if seen.uid != copy.meta.uid {
            *seen = first();
        }
        seen.note(now, copy.ready);
        let greatest = seen.ready.front().map_or(0, |(_, ready)| *ready);
        u32::try_from(greatest).unwrap_or(0)
    }

    /// When what was ready of a copy of a workload, and is not, will not count any more.
    pub(super) fn changes(&self, key: &Key) -> Option<Duration> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let dips = all.get(key)?.values().filter(|seen| seen.ready.len() > 1);
        let ends = dips.filter_map(|seen| seen.ready.front()).map(|(until, _)| *until + LATELY);
        let left = ends.min()?.saturating_duration_since(Instant::now());
        Some(left.saturating_add(Duration::from_secs(1)))
    }

    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl Seen {
    fn note(&mut self, now: Instant, ready: i32) {
        // What was ready until now was so until now.
        if let Some((until, _)) = self.ready.back_mut() {
            *until = now;
        }
        while self.ready.front().is_some_and(|(until, _)| now.duration_since(*until) > LATELY) {
            self.ready.pop_front();
        }
        while self.ready.back().is_some_and(|(_, before)| *before <= ready) {
            self.ready.pop_back();
        }
        self.ready.push_back((now, ready));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::CopyMeta;

    fn copy(uid: &str, replicas: i32, ready: i32) -> DeploymentFacts {
        let meta = CopyMeta { uid: uid.to_owned(), ..CopyMeta::default() };
        DeploymentFacts { meta, replicas, ready, ..DeploymentFacts::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_dip_is_forgotten_when_it_lasts_and_recovers_at_once() {
        let (lately, key) = (LatelyReady::default(), Key::new("shop", "web"));
        let pass = async |seconds| tokio::time::advance(Duration::from_secs(seconds)).await;
        let see = |ready| lately.greatest(&key, "c1", &copy("a", 4, ready));
        assert_eq!(see(0), 4, "nobody has watched it before");
        pass(299).await;
        assert_eq!(see(0), 4);
        pass(2).await;
        assert_eq!(see(0), 0, "it is not ready for five minutes");
        assert_eq!([see(3), see(2), see(1)], [3, 3, 3]);
        pass(200).await;
        assert_eq!(see(1), 3);
        assert_eq!(see(2), 3);
        pass(200).await;
        assert_eq!(see(0), 2, "two were ready until now, three some time ago");
        pass(301).await;
        assert_eq!(see(0), 0);
        assert_eq!(lately.greatest(&key, "c1", &copy("b", 2, 0)), 2, "it is another copy");
        lately.forget(&key);
        assert_eq!(see(0), 4);
    }
}

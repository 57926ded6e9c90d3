//! What the API server says of pods, asked beside the looks.
//!
//! It knows less of a pod than the kernel, may take its time, and may be away for long. A pod that stands still must not wait for
//! that.

use super::{PodState, Pods};
use crate::session::{HandsError, SessionInfo};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// How long the first answer about a pod is waited for.
const FIRST: Duration = Duration::from_millis(500);
/// How long another one is waited for. Without it, the latest one counts.
const NEXT: Duration = Duration::from_millis(20);
/// How long an answer is kept that nobody asks for.
const KEPT: Duration = Duration::from_secs(60);

type Answer = Result<Option<PodState>, HandsError>;

/// The pods of this cluster, as the API server has said lately.
pub(super) struct AskedPods<P> {
    pods: Arc<P>,
    /// How old an answer may be that is not asked for again.
    fresh: Duration,
    all: Mutex<BTreeMap<String, Known>>,
}

/// What is known of the pod of a migration.
struct Known {
    latest: Option<(Instant, Option<PodState>)>,
    request: Option<Arc<Request>>,
    used: Instant,
}

/// A request that is under way, or over.
struct Request {
    begun: Instant,
    answer: Mutex<Option<Answer>>,
    answered: Notify,
}

impl Request {
    fn begin<P: Pods>(pods: &Arc<P>, session: &SessionInfo) -> Arc<Self> {
        let (begun, answer, answered) = (Instant::now(), Mutex::default(), Notify::new());
        let request = Arc::new(Self { begun, answer, answered });
        let (own, pods, session) = (Arc::clone(&request), Arc::clone(pods), session.clone());
        tokio::spawn(async move {
            let answer = pods.get(&session).await;
            *own.lock() = Some(answer);
            own.answered.notify_one();
        });
        request
    }

    fn lock(&self) -> MutexGuard<'_, Option<Answer>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the answer, for so long.
    async fn answer(&self, patience: Duration) -> Option<Answer> {
        let answer = async {
            loop {
                if let Some(answer) = self.lock().clone() {
                    return answer;
                }
                self.answered.notified().await;
            }
        };
        timeout(patience, answer).await.ok()
    }
}

impl<P: Pods> AskedPods<P> {
    pub(super) fn new(pods: Arc<P>, fresh: Duration) -> Self {
        Self { pods, fresh, all: Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pod. As long as the API server does not answer, it is as it was at its latest answer.
    pub(super) async fn get(&self, session: &SessionInfo) -> Answer {
        let (request, latest) = {
            let (mut all, now) = (self.all(), Instant::now());
            all.retain(|_, known| now.duration_since(known.used) < KEPT);
            let known = all.entry(session.migration.clone());
            let known = known.or_insert_with(|| Known { latest: None, request: None, used: now });
            known.used = now;
            known.settle();
            if let Some((at, pod)) = &known.latest
                && now.duration_since(*at) < self.fresh
            {
                return Ok(pod.clone());
            }
            let request = known.request.get_or_insert_with(|| Request::begin(&self.pods, session));
            (Arc::clone(request), known.latest.clone())
        };
        let answer = request.answer(if latest.is_some() { NEXT } else { FIRST }).await;
        match (answer, latest) {
            (Some(Ok(pod)), _) => Ok(pod),
            (_, Some((_, pod))) => Ok(pod),
            (Some(Err(error)), None) => Err(error),
            (None, None) => Err(HandsError::new(format!(
                "pod {}: the API server has not answered within {} ms",
                session.pod,
                FIRST.as_millis()
            ))),
        }
    }

    /// The next answer is one to a new request: the pod has just been changed.
    pub(super) fn forget(&self, session: &SessionInfo) {
        self.all().remove(&session.migration);
    }
}

impl Known {
    /// Takes over the answer to a request that is over.
    fn settle(&mut self) {
        let Some(request) = self.request.take() else { return };
        let answer = request.lock().clone();
        match answer {
            None => self.request = Some(request),
            Some(Ok(pod)) => self.latest = Some((request.begun, pod)),
            Some(Err(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hands::tests::{UID, World, state};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::time::sleep;

    /// An API server that takes its time.
    struct Slow {
        takes: Mutex<Duration>,
        requests: AtomicUsize,
    }

    impl Pods for Slow {
        async fn check(&self, _session: &SessionInfo) -> Result<(), HandsError> {
            Ok(())
        }

        async fn get(&self, _session: &SessionInfo) -> Answer {
            self.requests.fetch_add(1, Ordering::SeqCst);
            let takes = *self.takes.lock().unwrap();
            sleep(takes).await;
            if takes > Duration::from_secs(100) {
                return Err(HandsError::new("it is away"));
            }
            Ok(Some(state(UID)))
        }

        async fn create(&self, _session: &SessionInfo) -> Result<(), HandsError> {
            Ok(())
        }

        async fn mark_committed(&self, _session: &SessionInfo, _uid: &str) -> Result<(), HandsError> {
            Ok(())
        }

        async fn delete(&self, _session: &SessionInfo, _uid: &str) -> Result<(), HandsError> {
            Ok(())
        }
    }

    fn slow() -> (Arc<Slow>, AskedPods<Slow>) {
        let takes = Mutex::new(Duration::from_millis(100));
        let pods = Arc::new(Slow { takes, requests: AtomicUsize::new(0) });
        (Arc::clone(&pods), AskedPods::new(pods, Duration::from_millis(100)))
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_first_answer_is_waited_for() {
        let (pods, asked) = slow();
        let info = World::new().session(3);
        let begun = Instant::now();
        assert_eq!(asked.get(&info).await, Ok(Some(state(UID))));
        assert_eq!(begun.elapsed(), Duration::from_millis(100));
        *pods.takes.lock().unwrap() = Duration::from_secs(1_000);
        let begun = Instant::now();
        for _ in 0..10 {
            assert_eq!(asked.get(&info).await, Ok(Some(state(UID))));
        }
        assert!(begun.elapsed() <= 10 * NEXT, "{:?}", begun.elapsed());
        assert_eq!(pods.requests.load(Ordering::SeqCst), 2, "one at a time");
        asked.forget(&info);
        let error = asked.get(&info).await.unwrap_err().to_string();
        assert!(error.contains("pod shop/web-0") && error.contains("500 ms"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_fresh_is_not_asked_for_again() {
        let (pods, asked) = slow();
        let info = World::new().session(3);
        *pods.takes.lock().unwrap() = Duration::from_millis(5);
        for _ in 0..40 {
            asked.get(&info).await.unwrap();
            sleep(Duration::from_millis(5)).await;
        }
        let requests = pods.requests.load(Ordering::SeqCst);
        assert!((2..=4).contains(&requests), "{requests} requests in 0.2 s");
    }
}

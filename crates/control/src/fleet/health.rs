//! Whether a member answers, and is ready to.

use crate::fleet::MemberEvent;
use kube::Client;
use portolan_core::latency::RoundTrip;
use portolan_runtime::{Clock, bounded_text, foreign_text};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// A member that has not answered for this long is silent.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(8);

/// The longest version of Kubernetes that is kept.
const VERSION_LIMIT: usize = 64;

/// How often a member that is well is asked: each request carries a token of a kilobyte, and there may be many members.
const PROBE_EVERY: Duration = Duration::from_secs(4);
/// How soon one is asked again that has just failed to answer, so that it is known to be silent in time.
const DOUBTED_AGAIN: Duration = Duration::from_secs(1);
/// How often a member that is silent is asked.
const SILENT_EVERY: Duration = Duration::from_secs(2);
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// Of so many probes of a member that is well, one asks whether it is ready, and the others for its version.
const READY_EVERY: u64 = 3;

/// Why a probe got no answer that helps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unanswered {
    why: String,
    /// Whether the API server answered, and refused the credential.
    refused: bool,
}

/// What the probes of a member say.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<RwLock<State>>);

#[derive(Clone, Debug, Default)]
struct State {
    version: Option<String>,
    silent: Option<Unanswered>,
    /// Since when this process knows that its API server does not answer.
    silent_since: Option<Instant>,
    round_trip: RoundTrip,
    back: Option<Instant>,
}

impl Health {
    /// Whether the member answers.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        let state = self.read();
        state.version.is_some() && state.silent.is_none()
    }

    /// The member's version of Kubernetes, once it has answered.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.read().version
    }

    /// Why the member cannot be asked, if it cannot.
    #[must_use]
    pub fn unreachable_reason(&self) -> Option<String> {
        self.read().silent.map(|unanswered| unanswered.why)
    }

    /// Whether its API server does not answer.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.read().silent.is_some_and(|unanswered| !unanswered.refused)
    }

    /// For how long this process has known that its API server does not answer.
    #[must_use]
    pub(super) fn silent_for(&self) -> Duration {
        self.read().silent_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether its API server answers, and refuses the credential of the hub.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.read().silent.is_some_and(|unanswered| unanswered.refused)
    }

    /// When it last answered again after a silence.
    #[must_use]
    pub(super) fn back(&self) -> Option<Instant> {
        self.read().back
    }

    /// How long a request takes to the member and back, once that was measured.
    #[must_use]
    pub fn round_trip(&self) -> RoundTrip {
        self.read().round_trip
    }

    fn read(&self) -> State {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn measure(&self, time: Duration) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).round_trip.measure(time);
    }

    /// Takes what was found; answers whether that is news.
    fn set(&self, version: Option<String>, silent: Option<Unanswered>) -> bool {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let refused = |silent: &Option<Unanswered>| silent.as_ref().map(|unanswered| unanswered.refused);
        let news =
            refused(&state.silent) != refused(&silent) || (state.version.is_none() && version.is_some());
        if state.silent.is_some() && silent.is_none() {
            state.back = Some(Instant::now());
        }
        let is_silent = silent.as_ref().is_some_and(|unanswered| !unanswered.refused);
        state.silent_since = is_silent.then(|| state.silent_since.unwrap_or_else(Instant::now));
        state.version = version.or(state.version.take());
        state.silent = silent;
        news
    }
}

/// Asks the member for ever whether it answers and is ready, and tells when it falls silent or answers again. A version
/// alone is no health: an API server that has lost its etcd still tells it. So a member counts as well when it was last asked
/// whether it is ready and said so, and answers since. Versions measure the round-trip time; the first answer after a
/// failure does not, since a connection is made for it.
pub(crate) async fn probe(client: Client, health: Health, on_event: impl Fn(MemberEvent), clock: Clock) {
    let (mut heard, mut warm, mut ready) = (Instant::now(), false, false);
    for count in 0_u64.. {
        let well = ready && warm;
        let mut problem = None;
        let mut version = None;
        if !well || !count.is_multiple_of(READY_EVERY) {
            let asked = Instant::now();
            match in_time(client.apiserver_version()).await {
                Ok(info) => {
                    if std::mem::replace(&mut warm, true) {
                        health.measure(asked.elapsed());
                    }
                    version = Some(bounded_text(&info.git_version, VERSION_LIMIT));
                }
                Err(unanswered) => problem = Some(unanswered),
            }
        }
        if problem.is_none() && (!well || count.is_multiple_of(READY_EVERY)) {
            problem = unready(&client).await;
            ready = problem.is_none();
        }
        match problem {
            None => {
                heard = Instant::now();
                if health.set(version, None) {
                    on_event(MemberEvent::Health);
                }
                tokio::time::sleep(PROBE_EVERY).await;
            }
            Some(problem) => {
                warm = false;
                let is_silent = heard.elapsed() >= UNREACHABLE_AFTER;
                if is_silent && health.set(None, Some(problem.clone())) {
                    tracing::warn!(problem = problem.why, now = %clock.now(), "a member cannot be asked");
                    on_event(MemberEvent::Health);
                }
                tokio::time::sleep(if is_silent { SILENT_EVERY } else { DOUBTED_AGAIN }).await;
            }
        }
    }
}

/// Why the API server says that it is not ready, if it does. One that does not let us ask says nothing.
async fn unready(client: &Client) -> Option<Unanswered> {
    let request = match http::Request::get("/readyz").body(Vec::new()) {
        Ok(request) => request,
        Err(error) => return Some(Unanswered { why: error.to_string(), refused: false }),
    };
    let answer = async {
        match client.request_text(request).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(String::new()),
            other => other,
        }
    };
    let problem = in_time(answer).await.err()?;
    Some(Unanswered { why: format!("its API server is not ready: {}", problem.why), ..problem })
}

async fn in_time<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Unanswered> {
    match tokio::time::timeout(PROBE_LIMIT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => {
            let refused = matches!(&error, kube::Error::Api(status) if matches!(status.code, 401 | 403));
            Err(Unanswered { why: foreign_text(&portolan_runtime::chain(&error)), refused })
        }
        Err(_) => {
            let why = format!("no answer within {} s", PROBE_LIMIT.as_secs());
            Err(Unanswered { why, refused: false })
        }
    }
}

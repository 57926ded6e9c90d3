//! Whether a member answers.

use crate::fleet::Touched;
use kube::Client;
use portolan_core::latency::RoundTrip;
use portolan_runtime::{Clock, bounded_text, foreign_text};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// A member that has not answered for this long is silent.
pub const SILENT_AFTER: Duration = Duration::from_secs(8);

/// The longest version of Kubernetes that is kept.
const VERSION_LIMIT: usize = 64;

const PROBE_EVERY: Duration = Duration::from_secs(2);
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// What the probes of a member say.
#[derive(Clone, Debug, Default)]
pub struct Reach(Arc<RwLock<State>>);

#[derive(Clone, Debug, Default)]
struct State {
    version: Option<String>,
    silent: Option<String>,
    round_trip: RoundTrip,
    back: Option<Instant>,
}

impl Reach {
    /// Whether the member answers.
    #[must_use]
    pub fn answers(&self) -> bool {
        let state = self.read();
        state.version.is_some() && state.silent.is_none()
    }

    /// The member's version of Kubernetes, once it has answered.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.read().version
    }

    /// Why the member is taken for silent, if it is.
    #[must_use]
    pub fn silence(&self) -> Option<String> {
        self.read().silent
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
    fn set(&self, version: Option<String>, silent: Option<String>) -> bool {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let news =
            state.silent.is_some() != silent.is_some() || (state.version.is_none() && version.is_some());
        if state.silent.is_some() && silent.is_none() {
            state.back = Some(Instant::now());
        }
        state.version = version.or(state.version.take());
        state.silent = silent;
        news
    }
}

/// Asks the member for its version for ever, and tells when it falls silent or answers again. The answers measure the
/// round-trip time; the first one after a failure does not, since a connection is made for it.
pub(crate) async fn probe(client: Client, reach: Reach, touched: impl Fn(Touched), clock: Clock) {
    let mut heard = Instant::now();
    let mut warm = false;
    loop {
        let asked = Instant::now();
        let problem = match tokio::time::timeout(PROBE_LIMIT, client.apiserver_version()).await {
            Ok(Ok(info)) => {
                heard = Instant::now();
                if std::mem::replace(&mut warm, true) {
                    reach.measure(heard - asked);
                }
                if reach.set(Some(bounded_text(&info.git_version, VERSION_LIMIT)), None) {
                    touched(Touched::Reach);
                }
                None
            }
            Ok(Err(error)) => Some(foreign_text(&portolan_runtime::chain(&error))),
            Err(_) => Some(format!("no answer within {} s", PROBE_LIMIT.as_secs())),
        };
        warm = problem.is_none();
        if let Some(problem) = problem.filter(|_| heard.elapsed() >= SILENT_AFTER)
            && reach.set(None, Some(problem.clone()))
        {
            tracing::warn!(problem, now = %clock.now(), "a member is silent");
            touched(Touched::Reach);
        }
        tokio::time::sleep(PROBE_EVERY).await;
    }
}

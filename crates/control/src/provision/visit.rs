//! Visits to cloud clusters: what is asked of their own API servers. They are made beside the rounds, so that a cluster that
//! answers slowly or not at all keeps no other CloudProvisioner waiting.

use super::Provision;
use super::observe::Observed;
use super::order_error::OrderError;
use portolan_api::Reason;
use portolan_runtime::{Action, EventType, chain};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How soon orders that could not be carried out are tried again.
pub(super) const TRIED_AGAIN: Duration = Duration::from_secs(10);

/// How many cloud clusters are visited at the same time.
pub(super) const VISITORS: usize = 8;

/// What is to be done in a cloud cluster.
pub(super) struct Visit {
    pub(super) errand: Errand,
    /// The CloudProvisioner of the cluster.
    pub(super) observed: Arc<Observed>,
    /// The Cluster in Cluster API.
    pub(super) cluster: String,
    /// The namespaces that the member opens to the hub.
    pub(super) namespaces: BTreeSet<String>,
}

/// Why a cloud cluster is visited.
#[derive(Clone, Copy)]
pub(super) enum Errand {
    /// It is to join the fleet.
    Peer,
    /// It has joined, and is to open further namespaces.
    Open,
}

/// The visits of one CloudProvisioner.
#[derive(Default)]
pub(super) struct Visits {
    /// The next one.
    next: Option<Visit>,
    under_way: bool,
    /// Why the last one failed.
    pub(super) problem: Option<String>,
}

impl Provision {
    /// Has a cloud cluster visited, unless that is under way.
    pub(super) fn send(&self, visit: Visit) {
        let uid = visit.observed.settings.uid.clone();
        let mut state = self.state();
        let visits = state.visits.entry(uid.clone()).or_default();
        if !visits.under_way {
            visits.next = Some(visit);
            self.visits.add(uid);
        }
    }

    /// No visit is wanted any more.
    pub(super) fn stay_home(&self, uid: &str) {
        let mut state = self.state();
        if state.visits.get(uid).is_some_and(|visits| !visits.under_way) {
            state.visits.remove(uid);
        }
    }

    /// Makes the next visit for a CloudProvisioner, and has a round made that sees what came of it.
    pub(super) async fn visit(&self, uid: String) -> Result<Action, Infallible> {
        let begin = |visits: &mut Visits| {
            let next = visits.next.take()?;
            visits.under_way = true;
            Some(next)
        };
        let next = self.state().visits.get_mut(&uid).and_then(begin);
        let Some(Visit { errand, observed, cluster, namespaces }) = next else {
            return Ok(Action::AwaitChange);
        };
        let visited = match errand {
            Errand::Peer => self.peer(&observed, &cluster, &namespaces).await,
            Errand::Open => self.open(&observed, &cluster, &namespaces).await,
        };
        self.end_visit(&observed, &uid, &visited).await;
        match visited {
            Ok(()) => self.queue.add(()),
            Err(_) => self.queue.add_after((), TRIED_AGAIN),
        }
        Ok(Action::AwaitChange)
    }

    /// Remembers why a visit failed, and says so once.
    async fn end_visit(&self, observed: &Observed, uid: &str, visited: &Result<(), OrderError>) {
        let problem = visited.as_ref().err().map(|error| chain(error));
        let before = {
            let mut state = self.state();
            let visits = state.visits.entry(uid.to_owned()).or_default();
            visits.under_way = false;
            std::mem::replace(&mut visits.problem, problem.clone())
        };
        if let Some(problem) = problem.filter(|problem| before.as_ref() != Some(problem)) {
            let (object, reason) = (observed.object.as_ref(), Reason::CloudRequestFailed);
            self.recorder.record(object, EventType::Warning, reason, &problem).await;
        }
    }
}

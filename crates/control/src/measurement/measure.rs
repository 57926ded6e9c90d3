//! Round after round: connect to what hubs name, and report what answered.

use super::Handshake;
use crate::names::FIELD_MANAGER;
use crate::peering::NAMESPACE;
use futures::StreamExt;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::{API_VERSION, ClusterReport, ClusterReportStatus, Reason};
use portolan_core::report::{Endpoint, Measurements};
use portolan_runtime::{CallError, Clock, Index, Key, Seed, Term, chain, feed, supervise};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How often an endpoint is connected to, at most.
const PERIOD: Duration = Duration::from_secs(5);

/// How long an endpoint has to finish a handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(3);

/// How many endpoints are connected to at the same time.
const AT_ONCE: usize = 16;

/// Measures what hubs name in ClusterReports of this cluster, and reports it there, for the length of a term. Dropped, it stops at
/// once.
pub async fn measure(cluster: Client, handshake: Arc<dyn Handshake>, clock: Clock, seed: Seed, term: Term) {
    let reports = Index::<ClusterReport>::default();
    let mut tasks = JoinSet::new();
    tasks.spawn(feed(
        Api::<ClusterReport>::namespaced(cluster.clone(), NAMESPACE),
        watcher::Config::default(),
        |report| report,
        reports.clone(),
        |_: &Key| {},
        seed.child("clusterreports"),
    ));
    let measuring = Measuring { cluster, handshake, clock, term, reports };
    supervise(tasks, Box::pin(measuring.run())).await;
}

/// Why reports were not written in the last round: the same again is no news.
#[derive(Debug, Default)]
struct Failures(BTreeMap<Key, String>);

impl Failures {
    fn is_news(&self, key: &Key, problem: &str) -> bool {
        self.0.get(key).is_none_or(|before| before != problem)
    }

    fn take(&mut self, key: Key, problem: Option<String>) {
        match problem {
            Some(problem) => self.0.insert(key, problem),
            None => self.0.remove(&key),
        };
    }
}

struct Measuring {
    cluster: Client,
    handshake: Arc<dyn Handshake>,
    clock: Clock,
    term: Term,
    reports: Index<ClusterReport>,
}

impl Measuring {
    async fn run(&self) {
        let mut measurements = Measurements::default();
        let mut failures = Failures::default();
        loop {
            tokio::time::sleep(PERIOD).await;
            let reports = self.reports.all();
            measurements.aim(reports.iter().flat_map(|(_, report)| &report.spec.targets));
            let tries = measurements.endpoints().into_iter().map(|endpoint| self.connect(endpoint));
            let answers: Vec<_> = futures::stream::iter(tries).buffered(AT_ONCE).collect().await;
            for (endpoint, answered) in answers {
                measurements.take(&endpoint, answered);
            }
            failures.0.retain(|key, _| reports.iter().any(|(known, _)| known == key));
            for (key, report) in reports {
                let problem = self.report(&measurements, &report).await.err().map(|error| chain(&error));
                match &problem {
                    Some(error) if failures.is_news(&key, error) => {
                        tracing::warn!(error, "measured round-trip times are not reported");
                    }
                    Some(error) => tracing::debug!(error, "measured round-trip times are still not reported"),
                    None => {}
                }
                failures.take(key, problem);
            }
        }
    }

    async fn connect(&self, endpoint: Endpoint) -> (Endpoint, Option<Duration>) {
        let answer = tokio::time::timeout(HANDSHAKE_LIMIT, self.handshake.time(&endpoint)).await;
        let answered = match answer {
            Ok(Ok(time)) => Some(time),
            Ok(Err(problem)) => {
                tracing::debug!(%endpoint, problem, "no handshake was finished");
                None
            }
            Err(_) => {
                tracing::debug!(%endpoint, limit = ?HANDSHAKE_LIMIT, "no handshake was finished in time");
                None
            }
        };
        (endpoint, answered)
    }

    async fn report(&self, measurements: &Measurements, report: &ClusterReport) -> Result<(), CallError> {
        let told = report.status.clone().unwrap_or_default();
        let (targets, now) = (&report.spec.targets, self.clock.now());
        let generation = report.metadata.generation;
        let Some(latencies) = measurements.news(targets, generation, &told, now) else { return Ok(()) };
        let mut status = ClusterReportStatus {
            observed_generation: generation,
            conditions: told.conditions,
            observed_at: Some(self.clock.time()),
            latencies,
            // Others write it, by another field manager.
            capacity: None,
        };
        // How many of them answer is not told: that is what a scan of ports wants to know.
        let message = format!("the round-trip time to {} other members is measured", targets.len());
        let ready = Finding::new(ConditionType::Ready, true, Reason::Measuring, message);
        conditions::set(&mut status.conditions, ready, generation, now);
        let name = report.metadata.name.as_deref().unwrap_or_default();
        let object = json!({
            "apiVersion": API_VERSION, "kind": "ClusterReport",
            "metadata": { "name": name, "namespace": NAMESPACE }, "status": status,
        });
        let api = Api::<ClusterReport>::namespaced(self.cluster.clone(), NAMESPACE);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let what = format!("apply the status of ClusterReport {NAMESPACE}/{name}");
        match self.term.call(what, api.patch_status(name, &params, &Patch::Apply(&object))).await {
            // The hub has left.
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_again_is_no_news_and_another_one_is() {
        let (one, other) = (Key::new(NAMESPACE, "hub-1"), Key::new(NAMESPACE, "hub-2"));
        let mut failures = Failures::default();
        assert!(failures.is_news(&one, "forbidden"));
        failures.take(one.clone(), Some("forbidden".to_owned()));
        assert!(!failures.is_news(&one, "forbidden"));
        assert!(failures.is_news(&one, "not served") && failures.is_news(&other, "forbidden"));
        failures.take(one.clone(), None);
        assert!(failures.is_news(&one, "forbidden"));
    }
}

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
    supervise(tasks, measuring.run()).await;
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
        loop {
            tokio::time::sleep(PERIOD).await;
            let reports = self.reports.all();
            measurements.aim(reports.iter().flat_map(|(_, report)| &report.spec.targets));
            let tries = measurements.endpoints().into_iter().map(|endpoint| self.connect(endpoint));
            let answers: Vec<_> = futures::stream::iter(tries).buffered(AT_ONCE).collect().await;
            for (endpoint, answered) in answers {
                measurements.take(&endpoint, answered);
            }
            for (_, report) in reports {
                if let Err(error) = self.report(&measurements, &report).await {
                    tracing::warn!(error = %chain(&error), "measured round-trip times are not reported");
                }
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
        let Some(latencies) = measurements.news(targets, &told, now) else { return Ok(()) };
        let generation = report.metadata.generation;
        let mut status = ClusterReportStatus {
            observed_generation: generation,
            conditions: told.conditions,
            observed_at: Some(self.clock.time()),
            latencies,
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

//! Round after round: summarise the cluster for those hubs that ask, and write what is news.

use super::counting::Counting;
use crate::names::CAPACITY_MANAGER;
use crate::peering::NAMESPACE;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::clusterreport::ReportedCapacity;
use portolan_api::{API_VERSION, ClusterReport};
use portolan_core::report::{is_news, summarise};
use portolan_runtime::{CallError, Clock, Index, Key, Seed, Term, chain, feed, supervise};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How often the cluster is summarised, at most.
const PERIOD: Duration = Duration::from_secs(5);

/// Reports the capacity of this cluster to the hubs that ask for it in a ClusterReport, for the length of a term. Dropped, it stops
/// at once.
pub async fn report_capacity(cluster: Client, clock: Clock, seed: Seed, term: Term) {
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
    let reporting = Reporting { cluster, clock, seed, term, reports };
    supervise(tasks, Box::pin(reporting.run())).await;
}

struct Reporting {
    cluster: Client,
    clock: Clock,
    seed: Seed,
    term: Term,
    reports: Index<ClusterReport>,
}

impl Reporting {
    async fn run(&self) {
        let mut counting: Option<Counting> = None;
        let mut problem = None;
        loop {
            tokio::time::sleep(PERIOD).await;
            let reports = self.reports.all();
            let asked: Vec<Arc<ClusterReport>> = reports
                .into_iter()
                .map(|(_, report)| report)
                .filter(|report| report.spec.capacity.is_some())
                .collect();
            counting = counting.filter(|counting| counting.is_whole() && !asked.is_empty());
            if asked.is_empty() {
                continue;
            }
            let own = counting.get_or_insert_with(|| Counting::start(&self.cluster, self.seed));
            let mut found = own.obstacle();
            if found.is_none() {
                for report in &asked {
                    let failed = self.report(own, report).await.err();
                    found = found.or(failed.map(|error| chain(&error)));
                }
            }
            if let Some(error) = found.as_ref().filter(|_| found != problem) {
                tracing::warn!(error, "the capacity of this cluster is not reported");
            }
            problem = found;
        }
    }

    /// Writes a summary, if it is news.
    async fn report(&self, counting: &Counting, report: &ClusterReport) -> Result<(), CallError> {
        let Some(request) = &report.spec.capacity else { return Ok(()) };
        let own_version = counting.own_version();
        let summary = counting.look(|index, version| summarise(index, request, version, self.clock.now()));
        let Some(summary) = summary else { return Ok(()) };
        let told = report.status.as_ref().and_then(|status| status.capacity.as_ref());
        if told.is_some_and(|told| !is_news(told, &summary, own_version)) {
            return Ok(());
        }
        self.write(report.metadata.name.as_deref().unwrap_or_default(), &summary).await
    }

    /// By a manager of its own: what is measured in the same report is not taken away.
    async fn write(&self, name: &str, summary: &ReportedCapacity) -> Result<(), CallError> {
        let object = json!({
            "apiVersion": API_VERSION, "kind": "ClusterReport",
            "metadata": { "name": name, "namespace": NAMESPACE }, "status": { "capacity": summary },
        });
        let api = Api::<ClusterReport>::namespaced(self.cluster.clone(), NAMESPACE);
        let params = PatchParams::apply(CAPACITY_MANAGER).force();
        let what = format!("apply the capacity in the status of ClusterReport {NAMESPACE}/{name}");
        match self.term.call(what, api.patch_status(name, &params, &Patch::Apply(&object))).await {
            // The hub has left.
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

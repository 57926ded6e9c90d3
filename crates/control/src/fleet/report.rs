//! What a member reports of its distance to the others and of its capacity, where Portolan runs in it.
//!
//! Only if its operator has switched measuring on, the hub makes a ClusterReport in the member, and names the others in it once the member measures at all: a member that does not
//! learns no addresses. One without the definition of the kind is asked again after minutes, and is as well as any other.

use super::summaries::Summaries;
use super::{Connect, Health};
use crate::names::{FIELD_MANAGER, HUB_LABEL};
use crate::peering::{NAMESPACE, Names};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::clusterreport::{CapacityRequest, ReportTarget, TARGETS_AT_MOST};
use portolan_api::foreigncluster::ClusterType;
use portolan_api::{API_VERSION, ClusterReport, ClusterReportSpec, ForeignCluster};
use portolan_core::report::{Endpoint, Report, judge};
use portolan_runtime::{CallError, Clock, Index, Key, call, chain, foreign_text};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a member is asked for its report.
const ASK_EVERY: Duration = Duration::from_secs(20);

/// How often a member is asked for a summary of its capacity, and when first.
const SUMMARY_EVERY: Duration = Duration::from_secs(5);
const FIRST_SUMMARY_AFTER: Duration = Duration::from_secs(1);

/// How often a member is asked for a summary that has no such kind, or does not let the hub ask.
const SUMMARY_AGAIN_EVERY: Duration = Duration::from_secs(60);

/// How often a member is asked that has no such kind, or does not let the hub ask.
const LOOK_AGAIN_EVERY: Duration = Duration::from_secs(300);

/// The last report of a member; clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Reported(Arc<Mutex<Option<Report>>>);

impl Reported {
    /// The report; nothing if the member was not asked yet.
    pub(super) fn last(&self) -> Option<Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Nothing is reported, and what was reported before does not count any more.
    pub(super) fn clear(&self) {
        self.set(Report::default());
    }

    fn set(&self, report: Report) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

/// The other members that a member can measure.
pub(crate) struct Others {
    own: String,
    clusters: Index<ForeignCluster>,
    connect: Arc<dyn Connect>,
}

impl Others {
    /// The others for this member; nothing if it is not asked: the hub itself, or one by an invitation.
    pub(super) fn of(
        foreign: &ForeignCluster,
        clusters: Index<ForeignCluster>,
        connect: Arc<dyn Connect>,
    ) -> Option<Self> {
        let own = foreign.metadata.name.clone().unwrap_or_default();
        is_peered(foreign).then_some(Self { own, clusters, connect })
    }

    fn has(&self, name: &str) -> bool {
        let cluster = self.clusters.get(&Key::cluster(name));
        name != self.own && cluster.is_some_and(|cluster| is_peered(&cluster))
    }

    /// Whether the member itself is reached by an address.
    fn is_reached_by_address(&self) -> bool {
        self.connect.server(&self.own).is_some()
    }

    fn targets(&self) -> Vec<ReportTarget> {
        let all = self.clusters.all().into_iter().filter_map(|(key, _)| {
            let endpoint = Endpoint::parse(&self.connect.server(&key.name)?)?;
            Some((key.name, endpoint))
        });
        let others = unshared(all.collect()).into_iter().filter(|(name, _)| self.has(name));
        let targets = others.map(|(name, endpoint)| ReportTarget { name, server: endpoint.to_string() });
        targets.take(TARGETS_AT_MOST).collect()
    }
}

/// The clusters whose endpoint is no other cluster's: of a proxy that several are behind, the distance says nothing of theirs.
fn unshared(mut all: Vec<(String, Endpoint)>) -> Vec<(String, Endpoint)> {
    let mut clusters: BTreeMap<Endpoint, usize> = BTreeMap::new();
    for (_, endpoint) in &all {
        *clusters.entry(endpoint.clone()).or_default() += 1;
    }
    all.retain(|(_, endpoint)| clusters.get(endpoint) == Some(&1));
    all
}

/// Whether a cluster was made a member by somebody who has rights in it.
pub(super) fn is_peered(cluster: &ForeignCluster) -> bool {
    cluster.spec.type_ == ClusterType::Remote && cluster.spec.outgoing.is_none()
}

/// What a member is asked to report.
#[derive(Default)]
pub(crate) struct Asked {
    /// The others that it can measure, if it is asked for its distance to them.
    pub(super) others: Option<Others>,
    /// The summary of its capacity that is read in place of nodes and pods, if so.
    pub(super) summary: Option<CapacityRequest>,
    /// Whether it was asked for a summary before.
    pub(super) was_summarised: bool,
}

impl Asked {
    /// Whether there is anything to be asked for, or to be asked for no longer.
    pub(super) fn is_anything(&self) -> bool {
        self.others.is_some() || self.summary.is_some() || self.was_summarised
    }
}

/// Asks a member for its report.
pub(super) struct Asking {
    pub(super) client: Client,
    /// The identity of the hub.
    pub(super) hub: String,
    /// The name of the member.
    pub(super) member: String,
    /// The others that it can measure, if it is asked for its distance to them.
    pub(super) others: Option<Others>,
    /// What is done with its summary, if it is asked for one.
    pub(super) summaries: Option<Summaries>,
    pub(super) reported: Reported,
    pub(super) health: Health,
    pub(super) clock: Clock,
}

impl Asking {
    /// Asks for ever. Of a member that could not be asked for five minutes, nothing is reported any more, also if it reported to an
    /// earlier run.
    pub(super) async fn run(mut self) {
        let (period, mut wait) = match self.summaries {
            Some(_) => (SUMMARY_EVERY, FIRST_SUMMARY_AFTER),
            None => (ASK_EVERY, ASK_EVERY),
        };
        let look_again = if self.summaries.is_some() { SUMMARY_AGAIN_EVERY } else { LOOK_AGAIN_EVERY };
        let mut unheard = Duration::ZERO;
        loop {
            tokio::time::sleep(wait).await;
            unheard += wait;
            if self.health.is_reachable() && self.may_ask() {
                wait = match self.ask(&mut unheard).await {
                    Ok(true) => period,
                    Ok(false) => {
                        self.no_summary("it does not know the kind ClusterReport");
                        look_again
                    }
                    Err(error) => {
                        let why = foreign_text(&chain(&error));
                        tracing::debug!(member = self.member, why, "a member does not report");
                        self.no_summary(&why);
                        if error.is_final() { look_again } else { period }
                    }
                };
            }
            if unheard >= LOOK_AGAIN_EVERY {
                self.reported.clear();
            }
        }
    }

    /// A member that is reached by no address has no distance to report.
    fn may_ask(&self) -> bool {
        self.others.as_ref().is_none_or(Others::is_reached_by_address) || self.summaries.is_some()
    }

    fn no_summary(&self, why: &str) {
        if let Some(summaries) = &self.summaries {
            summaries.fail(why);
        }
    }

    /// Reads the report, and has the right targets in it; answers whether the member has the kind at all. `unheard` is how long it
    /// could not be read.
    async fn ask(&mut self, unheard: &mut Duration) -> Result<bool, CallError> {
        let name = Names::of(&self.hub).account;
        let api = Api::<ClusterReport>::namespaced(self.client.clone(), NAMESPACE);
        let what = format!("read ClusterReport {NAMESPACE}/{name}");
        let found = call(what, api.get_opt(&name)).await?;
        *unheard = Duration::ZERO;
        let status = found.as_ref().and_then(|found| found.status.as_ref());
        let now = self.clock.now();
        if let Some(summaries) = &mut self.summaries {
            summaries.take(status.and_then(|status| status.capacity.as_ref()), now);
        }
        let mut targets = Vec::new();
        if let Some(others) = self.others.as_ref().filter(|others| others.is_reached_by_address()) {
            let report = status.map(|status| judge(status, |name| others.has(name))).unwrap_or_default();
            if report.is_fresh(now) {
                targets = others.targets();
            }
            self.reported.set(report);
        }
        let capacity = self.summaries.as_ref().map(|summaries| summaries.request.clone());
        let spec = ClusterReportSpec { targets, capacity };
        let asked = found.map(|found| {
            let mut asked = found.spec;
            asked.targets.sort();
            asked
        });
        // Who asks for nothing any more makes no report to say so.
        let nothing = self.others.is_none() && spec.capacity.is_none() && asked.is_none();
        if nothing || asked.as_ref() == Some(&spec) {
            return Ok(true);
        }
        let object = json!({
            "apiVersion": API_VERSION, "kind": "ClusterReport",
            "metadata": { "name": name, "namespace": NAMESPACE, "labels": { HUB_LABEL: self.hub } },
            "spec": spec,
        });
        let what = format!("apply ClusterReport {NAMESPACE}/{name}");
        let params = PatchParams::apply(FIELD_MANAGER).force();
        match call(what, api.patch(&name, &params, &Patch::Apply(&object))).await {
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
            Ok(_) => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_an_endpoint_is_not_measured() {
        let named = |name: &str, server: &str| (name.to_owned(), Endpoint::parse(server).unwrap());
        let all = vec![
            named("lille", "https://proxy.example.org:6443"),
            named("oslo", "https://203.0.113.7:6443"),
            named("paris", "https://Proxy.example.org:6443/"),
            named("rome", "https://203.0.113.7:6444"),
        ];
        let names: Vec<String> = unshared(all).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["oslo", "rome"]);
    }
}

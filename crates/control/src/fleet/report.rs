//! What a member reports of its distance to the others, where Portolan runs in it.
//!
//! The hub makes a ClusterReport in the member, and names the others in it once the member measures at all: a member that does not
//! learns no addresses. One without the definition of the kind is asked again after minutes, and is as well as any other.

use super::{Connect, Health};
use crate::names::{FIELD_MANAGER, HUB_LABEL};
use crate::peering::{NAMESPACE, Names};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::clusterreport::{ReportTarget, TARGETS_AT_MOST};
use portolan_api::foreigncluster::ClusterType;
use portolan_api::{API_VERSION, ClusterReport, ClusterReportSpec, ForeignCluster};
use portolan_core::report::{Endpoint, Report, judge};
use portolan_runtime::{CallError, Clock, Index, Key, call, chain, foreign_text};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a member is asked for its report.
const ASK_EVERY: Duration = Duration::from_secs(20);

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
        let names = self.clusters.all().into_iter().map(|(key, _)| key.name).filter(|name| self.has(name));
        let targets = names.filter_map(|name| {
            let server = Endpoint::parse(&self.connect.server(&name)?)?.to_string();
            Some(ReportTarget { name, server })
        });
        targets.take(TARGETS_AT_MOST).collect()
    }
}

/// Whether a cluster was made a member by somebody who has rights in it.
fn is_peered(cluster: &ForeignCluster) -> bool {
    cluster.spec.type_ == ClusterType::Remote && cluster.spec.outgoing.is_none()
}

/// Asks a member for its report.
pub(super) struct Asking {
    pub(super) client: Client,
    /// The identity of the hub.
    pub(super) hub: String,
    pub(super) others: Others,
    pub(super) reported: Reported,
    pub(super) health: Health,
    pub(super) clock: Clock,
}

impl Asking {
    /// Asks for ever. What cannot be asked grows old and then counts as not reported.
    pub(super) async fn run(self) {
        let mut wait = ASK_EVERY;
        loop {
            tokio::time::sleep(wait).await;
            if !self.health.is_reachable() || !self.others.is_reached_by_address() {
                continue;
            }
            wait = match self.ask().await {
                Ok(true) => ASK_EVERY,
                Ok(false) => LOOK_AGAIN_EVERY,
                Err(error) => {
                    let why = foreign_text(&chain(&error));
                    tracing::debug!(member = self.others.own, why, "a member does not report");
                    if error.is_final() { LOOK_AGAIN_EVERY } else { ASK_EVERY }
                }
            };
        }
    }

    /// Reads the report, and has the right targets in it; answers whether the member has the kind at all.
    async fn ask(&self) -> Result<bool, CallError> {
        let name = Names::of(&self.hub).account;
        let api = Api::<ClusterReport>::namespaced(self.client.clone(), NAMESPACE);
        let what = format!("read ClusterReport {NAMESPACE}/{name}");
        let found = call(what, api.get_opt(&name)).await?;
        let status = found.as_ref().and_then(|found| found.status.as_ref());
        let report = status.map(|status| judge(status, |name| self.others.has(name))).unwrap_or_default();
        let targets = if report.is_fresh(self.clock.now()) { self.others.targets() } else { Vec::new() };
        self.reported.set(report);
        let named = found.map(|found| {
            let mut named = found.spec.targets;
            named.sort();
            named
        });
        if named.as_ref() == Some(&targets) {
            return Ok(true);
        }
        let object = json!({
            "apiVersion": API_VERSION, "kind": "ClusterReport",
            "metadata": { "name": name, "namespace": NAMESPACE, "labels": { HUB_LABEL: self.hub } },
            "spec": ClusterReportSpec { targets },
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

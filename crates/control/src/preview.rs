//! Decisions that are only looked at: the same watches and the same decisions as the controllers', and not one write.

use crate::capacity::{Book, Owner};
use crate::claims::Claims;
use crate::dependencies::Sources;
use crate::fleet::{Connect, Fleet, Hub, Needs, look};
use crate::jobs::{self, JobOutlook, Jobs};
use crate::placement::{Outlook, Placement};
use crate::services::{ServiceOutlook, Services};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use portolan_api::{MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use portolan_runtime::{Clock, Key, Seed, Term};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often to look whether all is known.
const OFTEN: Duration = Duration::from_millis(50);

/// What is told when a cluster was lost sight of since all were known.
pub(crate) const NOT_KNOWN: &str = "a cluster is not known well enough yet";

/// The fleet, watched to be asked what would be decided.
pub struct Preview {
    fleet: Fleet,
    placement: Placement,
    jobs: Jobs,
    services: Services,
    _tasks: JoinSet<()>,
}

impl Preview {
    /// Watches the fleet of a hub until it is known, but no longer than `limit`. Clusters that are not known by then keep
    /// what they hold and take nothing new, as those that do not answer.
    ///
    /// # Errors
    /// The hub is not known by then.
    pub async fn open(
        hub: Client,
        connect: Arc<dyn Connect>,
        clock: Clock,
        seed: Seed,
        limit: Duration,
    ) -> Result<Self, Vec<String>> {
        let deadline = Instant::now() + limit;
        let Ok(hub) = tokio::time::timeout(limit, Hub::identify(hub, seed)).await else {
            return Err(vec!["the hub".to_owned()]);
        };
        let fleet = Fleet::default();
        // What follows a workload makes no difference to where it goes.
        let (sources, term) = (Sources::default(), Term::alone("preview"));
        let claims = Claims::new(&term);
        let placement = Placement::new(&hub, &fleet, &sources, &clock, seed, &claims, &term);
        let jobs = Jobs::new(&hub, &fleet, &sources, &clock, seed.child("jobs"), &claims, &term);
        let workloads = placement.workloads();
        let services = Services::new(&hub, &fleet, workloads, &clock, seed.child("services"), &claims, &term);
        let mut tasks = JoinSet::new();
        tasks.spawn(jobs.watch());
        tasks.spawn(services.watch());
        tasks.spawn(look(hub, fleet.clone(), connect, clock, seed.child("fleet")));
        tasks.spawn(placement.watch(|_| ()));
        let preview = Self { fleet, placement, jobs, services, _tasks: tasks };
        loop {
            match preview.unknown() {
                Some(names) if names.is_empty() => return Ok(preview),
                // They are told as not known; about the others it is decided without them.
                Some(_) if Instant::now() >= deadline => preview.fleet.hurry(),
                None if Instant::now() >= deadline => return Err(vec!["the hub".to_owned()]),
                _ => tokio::time::sleep(OFTEN).await,
            }
        }
    }

    /// What would be decided now about a deployment of the hub; nothing if it is not there.
    #[must_use]
    pub fn explain(&self, namespace: &str, name: &str) -> Option<Outlook> {
        self.placement.explain(&Key::new(namespace, name))
    }

    /// What would be planned now for a job of the hub; nothing if it is not there.
    #[must_use]
    pub fn explain_job(&self, namespace: &str, name: &str) -> Option<JobOutlook> {
        self.jobs.explain(&Key::new(namespace, name))
    }

    /// Where a service of the hub belongs now; nothing if it is not there.
    #[must_use]
    pub fn explain_service(&self, namespace: &str, name: &str) -> Option<ServiceOutlook> {
        self.services.explain(&Key::new(namespace, name))
    }

    /// What would be decided if this object were applied, which need not be there yet. From then on its replicas count
    /// as placed here, for what is planned next.
    #[must_use]
    pub fn plan(&self, object: MultiClusterDeployment) -> Outlook {
        self.placement.plan(object)
    }

    /// What would be planned if this job were applied. From then on its pods count as placed here.
    #[must_use]
    pub fn plan_job(&self, object: MultiClusterJob) -> JobOutlook {
        self.jobs.plan_ahead(object)
    }

    /// Where this service would belong if it were applied, after what was planned before it.
    #[must_use]
    pub fn plan_service(&self, object: &MultiClusterService) -> ServiceOutlook {
        self.services.plan_ahead(object)
    }

    /// The clusters of which not enough is known to decide; nothing if not even which clusters there are.
    fn unknown(&self) -> Option<Vec<String>> {
        let complete = self.fleet.ledger.transact(|book| book.is_complete());
        let declared = self.placement.synced() && self.jobs.synced() && self.services.synced();
        if !self.fleet.clusters.synced() || !declared || !complete {
            return None;
        }
        let unknown = |name: &String| self.fleet.reached(name, None, Needs::All).joining;
        Some(self.fleet.clusters.all().into_iter().map(|(key, _)| key.name).filter(unknown).collect())
    }
}

/// What others hold in each cluster, by who they are.
pub(crate) fn reserved(book: &Book, own: &Owner) -> BTreeMap<String, BTreeMap<String, u32>> {
    let mut reserved: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    for (cluster, owner, count) in book.holders().filter(|(_, owner, count)| *owner != own && *count > 0) {
        let name = match owner.kind {
            jobs::KIND => format!("mcj {}", owner.key),
            _ => format!("mcd {}", owner.key),
        };
        reserved.entry(cluster.to_owned()).or_default().insert(name, count);
    }
    reserved
}

/// Gives an object that is only planned the identity of the one that is there, or one of its own.
pub(crate) fn planned(meta: &mut ObjectMeta, existing: Option<&ObjectMeta>) {
    let name = meta.name.as_deref().unwrap_or_default();
    let own = format!("planned {}/{name}", meta.namespace.as_deref().unwrap_or_default());
    meta.uid = existing.map_or(Some(own), |existing| existing.uid.clone());
    meta.resource_version = existing.and_then(|existing| existing.resource_version.clone());
    meta.generation = existing.and_then(|existing| existing.generation);
}

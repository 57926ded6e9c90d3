//! What must hold of jobs at every moment, and once the storm is over.

use super::Fleet;
use super::invariants::{referred, room};
use crate::NAMESPACE;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use portolan_api::MultiClusterJob;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::multiclusterjob::MultiClusterJobStatus;
use portolan_api::placement::ReplicasMode;
use portolan_core::capacity::PodShape;
use portolan_sandbox::Cluster;
use std::collections::{BTreeMap, BTreeSet};

/// What was seen of jobs so far.
#[derive(Default)]
pub(super) struct JobsSeen {
    /// By uid of the job: the completions that were told to be finished.
    finished: BTreeMap<String, i32>,
    /// By uid of the job: the pods that have finished successfully.
    pods: BTreeMap<String, BTreeSet<String>>,
    /// Jobs were lost with what they had done.
    lost: bool,
}

impl JobsSeen {
    /// Somebody takes Jobs with what they have done: it is done again.
    pub(super) fn lost(&mut self) {
        self.lost = true;
    }

    /// Looks at all jobs; answers what must not be.
    pub(super) async fn look(&mut self, fleet: &Fleet) -> Vec<String> {
        for member in &fleet.members {
            let api: Api<Pod> = Api::namespaced(member.client("observer"), NAMESPACE);
            for pod in api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default() {
                let owner =
                    pod.metadata.labels.as_ref().and_then(|labels| labels.get("portolan.dev/workload"));
                let done =
                    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded");
                if let (Some(owner), true, Some(uid)) = (owner, done, pod.metadata.uid.clone()) {
                    self.pods.entry(owner.clone()).or_default().insert(uid);
                }
            }
        }
        let mut problems = Vec::new();
        for job in declared(fleet).await {
            let (name, uid) =
                (job.metadata.name.clone().unwrap_or_default(), job.metadata.uid.clone().unwrap_or_default());
            let (total, status) = (total(&job), job.status.clone().unwrap_or_default());
            let last = self.finished.insert(uid.clone(), status.succeeded).unwrap_or(0);
            if status.succeeded < last {
                problems
                    .push(format!("job {name}: {last} completions were finished, now {}", status.succeeded));
            }
            if status.succeeded > total {
                problems
                    .push(format!("job {name}: {} of {total} completions are finished", status.succeeded));
            }
            let given: i32 = status.placements.iter().map(|placed| placed.completions).sum();
            if job.status.is_some() && given + status.pending_completions != total {
                let pending = status.pending_completions;
                problems.push(format!("job {name}: {given} placed and {pending} pending of {total}"));
            }
            let ran = self.pods.get(&uid).map_or(0, BTreeSet::len);
            if !self.lost && ran > usize::try_from(total).unwrap_or(0) {
                problems.push(format!("job {name}: {ran} pods have finished for {total} completions"));
            }
        }
        problems
    }
}

/// Every job that may run and has room has come to its end, and no Job is left behind.
pub(super) async fn settled(fleet: &Fleet) -> Vec<String> {
    let mut problems = Vec::new();
    let mut known = BTreeSet::new();
    let mut without_room = BTreeSet::new();
    for member in &fleet.members {
        without_room.extend(crowded_out(fleet, member).await);
    }
    for job in declared(fleet).await {
        let name = job.metadata.name.clone().unwrap_or_default();
        let status = job.status.clone().unwrap_or_default();
        known.extend(status.placements.iter().map(|placed| (placed.cluster.clone(), name.clone())));
        let complete = conditions::is_true(&status.conditions, ConditionType::Complete);
        if complete != (status.succeeded == total(&job)) {
            problems.push(format!("job {name}: complete is {complete} at {:?}", status.completions_summary));
        }
        let crowded_out = job.metadata.uid.as_ref().is_some_and(|uid| without_room.contains(uid));
        if !complete && !job.spec.suspend && !waits(&status) && !crowded_out {
            problems.push(format!("job {name} does not come to its end: {status:?}"));
        }
    }
    for member in &fleet.members {
        let api: Api<Job> = Api::namespaced(member.client("observer"), NAMESPACE);
        for copy in api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default() {
            let name = copy.metadata.name.unwrap_or_default();
            if !known.contains(&(member.name().to_owned(), name.clone())) {
                problems.push(format!("job {name} in {} is an orphan", member.name()));
            }
        }
    }
    problems
}

/// The jobs whose part in a member says that it has no room, and has none: others of the member took it, since a RuntimeClass
/// or nodes that never came made them need more than was known.
pub(super) async fn crowded_out(fleet: &Fleet, member: &Cluster) -> BTreeSet<String> {
    let room = room(member).await;
    let is_crowded_out = |job: &MultiClusterJob| {
        let parts = job.status.iter().flat_map(|status| &status.placements);
        let told = parts
            .clone()
            .any(|part| part.cluster == member.name() && part.reason.as_deref() == Some("NoRoom"));
        let shape =
            job.spec.template.to_typed().ok().and_then(|template| PodShape::of_template(&template).ok());
        told && shape.is_some_and(|shape| room.max_replicas(&shape) == 0)
    };
    let jobs = declared(fleet).await.into_iter().filter(is_crowded_out);
    jobs.filter_map(|job| job.metadata.uid).collect()
}

/// The ConfigMaps that Jobs of a member refer to.
#[derive(Default)]
pub(super) struct References {
    /// By Jobs that run.
    pub(super) at_work: BTreeSet<String>,
    /// By Jobs that have ended, or are held.
    pub(super) at_rest: BTreeSet<String>,
}

/// What the Jobs in a member refer to.
pub(super) async fn references(fleet: &Fleet, member: &Cluster) -> References {
    let jobs = declared(fleet).await;
    let api: Api<Job> = Api::namespaced(member.client("observer"), NAMESPACE);
    let mut found = References::default();
    for copy in api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default() {
        let job = jobs.iter().find(|job| job.metadata.name == copy.metadata.name);
        let Some(name) = job.and_then(|job| referred(&job.spec.template.0)) else { continue };
        let conditions = copy.status.as_ref().and_then(|status| status.conditions.as_deref());
        let ended = conditions
            .unwrap_or_default()
            .iter()
            .any(|each| each.status == "True" && matches!(each.type_.as_str(), "Complete" | "Failed"));
        let held = copy.spec.and_then(|spec| spec.suspend).unwrap_or(false);
        if ended || held { &mut found.at_rest } else { &mut found.at_work }.insert(name);
    }
    found
}

/// Whether completions wait for a cluster, or a cluster waits for room.
fn waits(status: &MultiClusterJobStatus) -> bool {
    let stuck = |placed: &portolan_api::multiclusterjob::JobPlacementStatus| {
        placed.completions > placed.succeeded && placed.parallelism == 0
    };
    status.pending_completions > 0 || status.placements.iter().any(stuck)
}

fn total(job: &MultiClusterJob) -> i32 {
    let locations = i32::try_from(job.spec.placement.effective_locations()).unwrap_or(i32::MAX);
    match job.spec.completions_mode {
        ReplicasMode::PerLocation => job.spec.completions * locations,
        ReplicasMode::Total => job.spec.completions,
    }
}

async fn declared(fleet: &Fleet) -> Vec<MultiClusterJob> {
    let api: Api<MultiClusterJob> = Api::namespaced(fleet.hub.client("observer"), NAMESPACE);
    api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default()
}

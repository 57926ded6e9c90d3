//! What would be planned for a job, by the plan of the controller.

use super::desired::Numbers;
use super::reconcile::Evaluated;
use super::record::{record, write};
use super::supposed::Supposed;
use super::{DeclaredJob, Jobs, KIND};
use crate::capacity::{Book, Owner};
use crate::driver::{Declared, PreparedCopy, Problem, Reserved, open_to_trial, reserved, taken_over};
use crate::names::WORKLOAD_ID_ANNOTATION;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use portolan_api::MultiClusterJob;
use portolan_api::multiclusterjob::JobPlacementStatus;
use portolan_core::jobs::{Order, Part, Plan, Record, explain};
use portolan_core::placement::{Account, Refusal};
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// After so many looks at what it has written itself, a controller has no more to change.
const STEPS: usize = 8;

/// What would be planned for a job, and why.
#[derive(Debug)]
pub(crate) struct JobOutlook {
    /// What is on record.
    pub(crate) before: Record,
    /// The next step.
    pub(crate) plan: Result<Plan, Problem>,
    /// How many completions are asked for in all.
    pub(crate) total: u32,
    /// How many locations are to be found for it; none if it names them, or counts over all of them.
    pub(crate) locations: usize,
    /// Every cluster's part in it.
    pub(crate) accounts: Vec<Account>,
    /// What others hold in each cluster.
    pub(crate) reserved: BTreeMap<String, Reserved>,
    /// What the controller says of the job's part in a cluster where all is not well: a word and a sentence.
    pub(crate) notes: BTreeMap<String, (Option<String>, String)>,
    /// Whether no pod may run.
    pub(crate) suspended: bool,
}

/// Answers what would be planned, on what the controller knows.
#[derive(Clone)]
pub(crate) struct Previews(pub(crate) Arc<Jobs>);

impl Previews {
    /// The job of the hub, if it is there.
    pub(crate) fn get(&self, key: &Key) -> Option<MultiClusterJob> {
        self.0.base.objects.get(key).map(|job| job.object.clone())
    }

    /// What would be planned now for a job of the hub; nothing if it is not there.
    pub(crate) fn explain(&self, book: &mut Book, key: &Key) -> Option<JobOutlook> {
        let job = self.0.base.objects.get(key)?;
        Some(self.outlook(book, key, &job, &Supposed::default()))
    }

    /// What would be planned if this object were applied, and these clusters refused it. From then on it is supposed to be
    /// placed so, for what is planned next.
    pub(crate) fn settle(
        &self,
        book: &mut Book,
        object: MultiClusterJob,
        refusing: &BTreeMap<String, Refusal>,
    ) -> (DeclaredJob, JobOutlook) {
        let (key, mut job) = (Key::of(&object), DeclaredJob::of(object));
        self.0.base.context.fleet.identities.resolve(&Owner::new(KIND, &key), &job.identity);
        match taken_over(&self.0.base, &key, &job) {
            Ok(None) => {}
            Ok(Some(identity)) => {
                let mut object = job.object;
                object.annotations_mut().insert(WORKLOAD_ID_ANNOTATION.to_owned(), identity);
                job = DeclaredJob::of(object);
            }
            Err(problem) => {
                let outlook = undecided(book, &key, &job, problem);
                return (job, outlook);
            }
        }
        book.suppose(Owner::new(KIND, &key), job.reserved());
        let mut supposed = Supposed::refusing(refusing);
        let mut outlook = self.outlook(book, &key, &job, &supposed);
        // A controller looks again at what it has written: what one look leaves open, the next one may place.
        for _ in 0..STEPS {
            let Ok(plan) = &outlook.plan else { break };
            take(&plan.record, &mut job);
            book.suppose(Owner::new(KIND, &key), job.reserved());
            let stops = supposed.stop(plan);
            let next = self.outlook(book, &key, &job, &supposed);
            if !stops && next.plan.as_ref().is_ok_and(|next| next.record == plan.record) {
                break;
            }
            let before = outlook.before;
            outlook = JobOutlook { before, ..next };
        }
        (job, outlook)
    }

    /// The Jobs that clusters would be asked to create. The template of a job of which no cluster has a part is tried in a few
    /// clusters that are open to it.
    pub(crate) fn copies(
        &self,
        key: &Key,
        job: &DeclaredJob,
        outlook: &JobOutlook,
    ) -> BTreeMap<String, PreparedCopy> {
        let Ok(plan) = &outlook.plan else { return BTreeMap::new() };
        let numbers = |(cluster, order): (&String, &Order)| match order {
            Order::Create { attempt, finished_before, completions, parallelism } => {
                let (attempt, finished_before) = (*attempt, *finished_before);
                let (completions, parallelism) = (*completions, *parallelism);
                Some((cluster.clone(), Numbers { attempt, finished_before, completions, parallelism }))
            }
            _ => None,
        };
        let mut created: BTreeMap<String, Numbers> = plan.orders.iter().filter_map(numbers).collect();
        if outlook.suspended && plan.record.parts.values().all(|part: &Part| part.completions == 0) {
            let one = Numbers { attempt: 0, finished_before: 0, completions: 1, parallelism: 1 };
            created.extend(open_to_trial(&outlook.accounts).map(|cluster| (cluster, one)));
        }
        let copy = |(cluster, numbers): (String, Numbers)| {
            let copy = self.prepare(key, job, &cluster, numbers);
            (cluster, copy)
        };
        created.into_iter().map(copy).collect()
    }

    fn prepare(&self, key: &Key, job: &DeclaredJob, cluster: &str, numbers: Numbers) -> PreparedCopy {
        let member = self.0.base.context.fleet.member(cluster);
        let Some(member) = member.filter(|member| member.health.is_reachable()) else {
            return PreparedCopy::Unreachable;
        };
        if member.index::<Job>().get(key).is_some_and(|found| found.meta.is_of(job.uid())) {
            return PreparedCopy::Held;
        }
        let object = self.0.desired(key, job, numbers).object;
        PreparedCopy::ToApply { member, object, owned: false }
    }

    fn outlook(&self, book: &mut Book, key: &Key, job: &DeclaredJob, supposed: &Supposed) -> JobOutlook {
        let mut outlook = undecided(book, key, job, Problem::NotKnown);
        match self.0.consider(book, key, job, supposed) {
            Evaluated::CacheNotSynced => {}
            Evaluated::Impossible(reason, why) => outlook.plan = Err(Problem::Undecided(reason, why)),
            Evaluated::Made { seen, work, plan } => {
                let candidates: Vec<_> = seen.values().map(|each| each.candidate.clone()).collect();
                outlook.accounts = explain(&work, &candidates, &plan);
                outlook.plan = Ok(*plan);
            }
        }
        outlook
    }
}

/// What is told of a job about which nothing is planned.
fn undecided(book: &Book, key: &Key, job: &DeclaredJob, problem: Problem) -> JobOutlook {
    let placements = job.object.status.iter().flat_map(|status| &status.placements);
    let note = |placed: &JobPlacementStatus| {
        Some((placed.cluster.clone(), (placed.reason.clone(), placed.message.clone()?)))
    };
    JobOutlook {
        before: record(job.object.status.as_ref()),
        plan: Err(problem),
        total: super::record::count(job.object.spec.completions).saturating_mul(job.times()),
        locations: if job.object.spec.placement.locations.is_empty() {
            usize::try_from(job.times()).unwrap_or(usize::MAX)
        } else {
            0
        },
        accounts: Vec::new(),
        reserved: reserved(book, &Owner::new(KIND, key)),
        notes: placements.filter_map(note).collect(),
        suspended: job.object.spec.suspend,
    }
}

/// Writes a record into the status of a job.
fn take(record: &Record, job: &mut DeclaredJob) {
    let status = job.object.status.get_or_insert_default();
    for (cluster, part) in &record.parts {
        match status.placements.iter_mut().find(|placed| placed.cluster == *cluster) {
            Some(placed) => write(part, placed),
            None => {
                let mut placed =
                    JobPlacementStatus { cluster: cluster.clone(), ..JobPlacementStatus::default() };
                write(part, &mut placed);
                status.placements.push(placed);
            }
        }
    }
}

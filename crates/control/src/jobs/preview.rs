//! What would be planned for a job, by the plan of the controller.

use super::reconcile::Considered;
use super::record::{record, write};
use super::{Declared, Jobs, KIND};
use crate::capacity::Owner;
use crate::preview::{NOT_KNOWN, planned, reserved};
use portolan_api::MultiClusterJob;
use portolan_api::multiclusterjob::JobPlacementStatus;
use portolan_core::jobs::{Plan, Record, explain};
use portolan_core::placement::Account;
use portolan_runtime::{Change, Key};
use std::collections::BTreeMap;

/// What would be planned for a job, and why.
#[derive(Debug)]
pub struct JobOutlook {
    /// What is on record.
    pub before: Record,
    /// The next step.
    pub plan: Result<Plan, String>,
    /// How many completions are asked for in all.
    pub total: u32,
    /// Every cluster's part in it.
    pub accounts: Vec<Account>,
    /// What others hold in each cluster.
    pub reserved: BTreeMap<String, BTreeMap<String, u32>>,
    /// What the controller says of the job's part in a cluster where all is not well.
    pub notes: BTreeMap<String, String>,
    /// Whether no pod may run.
    pub suspended: bool,
}

impl Jobs {
    /// What would be planned now for a job of the hub; nothing if it is not there.
    pub(crate) fn explain(&self, key: &Key) -> Option<JobOutlook> {
        let job = self.controller.jobs.get(key)?;
        Some(self.outlook(key, &job))
    }

    /// What would be planned if this object were applied, which need not be there yet. From then on it counts as placed so,
    /// for what is planned next.
    pub(crate) fn plan_ahead(&self, mut object: MultiClusterJob) -> JobOutlook {
        let key = Key::of(&object);
        let existing = self.controller.jobs.get(&key);
        planned(&mut object.metadata, existing.as_ref().map(|known| &known.object.metadata));
        object.status = existing.and_then(|known| known.object.status.clone());
        let mut job = Declared::of(object);
        let outlook = self.outlook(&key, &job);
        if let Ok(plan) = &outlook.plan {
            let status = job.object.status.get_or_insert_default();
            for (cluster, part) in &plan.record.parts {
                match status.placements.iter_mut().find(|placed| placed.cluster == *cluster) {
                    Some(placed) => write(part, placed),
                    None => {
                        let fresh =
                            JobPlacementStatus { cluster: cluster.clone(), ..JobPlacementStatus::default() };
                        let mut placed = fresh;
                        write(part, &mut placed);
                        status.placements.push(placed);
                    }
                }
            }
            job.object.metadata.resource_version = None;
            let change = Change::Set(key, job);
            self.controller.fleet.ledger.transact(|book| book.take(KIND, &change, Declared::claim));
            self.controller.jobs.take(change);
        }
        outlook
    }

    /// Whether all jobs of the hub are known.
    pub(crate) fn synced(&self) -> bool {
        self.controller.jobs.synced()
    }

    fn outlook(&self, key: &Key, job: &Declared) -> JobOutlook {
        let placements = job.object.status.iter().flat_map(|status| &status.placements);
        let note = |placed: &JobPlacementStatus| Some((placed.cluster.clone(), placed.message.clone()?));
        let mut outlook = JobOutlook {
            before: record(job.object.status.as_ref()),
            plan: Err(NOT_KNOWN.to_owned()),
            total: super::record::count(job.object.spec.completions).saturating_mul(job.times()),
            accounts: Vec::new(),
            reserved: BTreeMap::new(),
            notes: placements.filter_map(note).collect(),
            suspended: job.object.spec.suspend,
        };
        self.controller.fleet.ledger.transact(|book| {
            outlook.reserved = reserved(book, &Owner::new(KIND, key));
            match self.controller.consider(book, key, job) {
                Considered::NotYet => {}
                Considered::Not(_, why) => outlook.plan = Err(why),
                Considered::So { seen, work, plan } => {
                    let candidates: Vec<_> = seen.values().map(|each| each.candidate.clone()).collect();
                    outlook.accounts = explain(&work, &candidates, &plan);
                    outlook.plan = Ok(*plan);
                }
            }
        });
        outlook
    }
}

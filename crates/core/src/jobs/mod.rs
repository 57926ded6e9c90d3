//! How the work of a job is divided over clusters, and what the Job in each of them should be.
//!
//! Every cluster has a [`Part`] on record: how many completions it is to bring, and how many of them are finished for
//! good. [`plan`] takes the record and the state of the Jobs in the clusters, and answers the next record and an [`Order`] for
//! each cluster. The completions of all parts and those that are pending always sum up to what the job asks for, and a
//! completion that was counted once is never asked for again: a Job that replaces another one asks for what is still
//! open, by the record.

mod assign;
mod count;
mod elsewhere;
mod explain;
mod pace;
mod plan;

pub use explain::explain;
pub use plan::plan;

use crate::placement::{PlacementRequest, Refusal};
use portolan_api::Reason;
use portolan_api::placement::{PlacementCause, ReplicasMode};
use std::collections::{BTreeMap, BTreeSet};

/// What a job asks for.
#[derive(Clone, Debug)]
pub struct Work {
    /// The shape of a pod and how clusters are chosen. Its number of replicas is not used.
    pub request: PlacementRequest,
    /// How many completions: in each location or in all, as the mode of `request` says.
    pub completions: u32,
    /// How many pods run at the same time at most, counted in the same way.
    pub parallelism: u32,
    /// Whether the completions of a location are numbered: then they cannot be divided, nor a rest of them be run alone.
    pub indexed: bool,
    /// Whether no pod may run.
    pub suspended: bool,
    /// How often open completions of a failed Job may go to another cluster; none if they may not.
    pub retries: Option<u32>,
    /// The clusters that are about to leave the fleet: what they have not finished goes to others.
    pub leaving: BTreeSet<String>,
}

impl Work {
    /// How many completions there are in all.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.completions.saturating_mul(self.times())
    }

    /// How many locations the numbers count for.
    fn times(&self) -> u32 {
        match self.request.mode {
            ReplicasMode::PerLocation => {
                u32::try_from(self.request.placement.effective_locations()).unwrap_or(u32::MAX)
            }
            ReplicasMode::Total => 1,
        }
    }
}

/// The part of one cluster, by the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// How many completions it is to bring, finished ones included.
    pub completions: u32,
    /// How many pods it may run at the same time. The room for them is reserved.
    pub parallelism: u32,
    /// How many completions are finished. It never goes down.
    pub succeeded: u32,
    /// How many pods have failed.
    pub failed: u32,
    /// Which Job for this part it is: 0 for the first one.
    pub attempt: u32,
    /// How many completions were finished before that Job.
    pub finished_before: u32,
    /// How many pods had failed before that Job.
    pub failed_before: u32,
    /// Why its open completions were given to others, if they were.
    pub released: Option<Release>,
    /// Why the cluster was chosen.
    pub cause: Option<PlacementCause>,
    /// How many completions it had at most when open ones were given to others: no more are ever counted there.
    pub given: u32,
}

/// Why the open completions of a cluster were given to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Its Job has failed.
    Failed,
    /// It was silent for too long, or leaves the fleet.
    Silent,
    /// Not a single pod of them found a node there.
    NoRoom,
    /// It did not take the Job: it refused it, or was closed to it.
    Refused,
}

impl Release {
    /// Whether the work was lost there, so that it may go wherever there is room. Otherwise it goes where the policy
    /// of the job would have let it go at once.
    fn is_loss(self) -> bool {
        matches!(self, Self::Failed | Self::Silent)
    }
}

impl Part {
    /// How many completions are still to be brought.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.completions.saturating_sub(self.succeeded)
    }

    /// How many pods may run, given what is still open: the room that is reserved.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.parallelism.min(self.open())
    }

    /// Begins another Job for what is open.
    fn renew(&mut self) {
        self.attempt = self.attempt.saturating_add(1);
        self.finished_before = self.succeeded;
        self.failed_before = self.failed;
    }

    /// Gives what is open away.
    fn release(&mut self, why: Release) {
        self.given = self.given.max(self.completions);
        self.completions = self.succeeded;
        self.parallelism = 0;
        self.released = Some(why);
        self.renew();
    }
}

/// The Job of one member cluster, as far as the hub knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberJobState {
    /// The member does not answer; whether for so long that its open completions are to be given to others.
    Unreachable {
        /// Whether it was too long.
        too_long: bool,
    },
    /// The member answers and has no Job.
    NoJob,
    /// The member answers and has a Job.
    Job(JobSnapshot),
}

/// A Job in a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSnapshot {
    /// Which Job for the part it is.
    pub attempt: u32,
    /// How many completions of the part were finished before it.
    pub finished_before: u32,
    /// How many completions it asks for.
    pub completions: u32,
    /// How many pods have finished successfully.
    pub succeeded: u32,
    /// How many pods have failed.
    pub failed: u32,
    /// Whether the Job is suspended.
    pub suspended: bool,
    /// Whether no more completions come: the Job has ended, or is suspended and has no pod left.
    pub over: bool,
    /// Whether it has brought all it asks for.
    pub complete: bool,
    /// Why it has failed, if it has.
    pub failure: Option<String>,
    /// Whether its pods are made by another template than the present one.
    pub outdated: bool,
}

/// The next operation on the Job of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Change nothing, or nothing that could be changed now.
    Noop,
    /// Create a Job of this attempt for so many completions.
    Create {
        /// Which Job for the part it is.
        attempt: u32,
        /// How many completions were finished before it.
        finished_before: u32,
        /// How many completions it asks for.
        completions: u32,
        /// How many pods run at the same time at most.
        parallelism: u32,
    },
    /// Let the Job run, with so many pods at the same time.
    Resume {
        /// How many pods run at the same time at most.
        parallelism: u32,
    },
    /// Suspend the Job: no pod of the Job may run.
    Suspend,
    /// Delete the Job: all its completions are on record.
    Delete,
}

/// How the whole job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All completions are finished.
    Complete,
    /// It has failed for good.
    Failed {
        /// The reason in a word.
        reason: Reason,
        /// A sentence.
        message: String,
    },
}

/// What is on record of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The parts by cluster.
    pub parts: BTreeMap<String, Part>,
    /// How often open completions went to another cluster.
    pub retries: u32,
    /// How it ended, if it did.
    pub end: Option<End>,
}

impl Record {
    /// How many pods may run in which cluster: the room that is reserved.
    #[must_use]
    pub fn reserved(&self) -> BTreeMap<String, u32> {
        let reserved = self.parts.iter().map(|(cluster, part)| (cluster.clone(), part.in_use()));
        reserved.filter(|(_, pods)| *pods > 0).collect()
    }
}

/// The next record, and what is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What is to be on record before any cluster is touched.
    pub record: Record,
    /// What each cluster is to do then.
    pub orders: BTreeMap<String, Order>,
    /// How many completions have no cluster.
    pub pending: u32,
    /// For pending completions: why each cluster did not take them.
    pub refusals: BTreeMap<String, Refusal>,
    /// Whether a further cluster in the cloud would help.
    pub to_cloud: bool,
    /// The clusters in which not a single pod of their part can run now, and why.
    pub stuck: BTreeMap<String, Refusal>,
}

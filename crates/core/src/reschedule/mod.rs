//! Bringing work home from the cloud and from substitutes.
//!
//! The rescheduler moves nothing itself. [`plan`] says which workloads may come home now and how far; [`confine`] tells
//! the placement, by what it lets each cluster take: replicas that stand in stay where they are, except those of a
//! [`Move`]. The decision then reserves the room at home before anything is touched, and the transition lets replicas in the
//! cloud go only when their replacements are ready and PodDisruptionBudgets allow it. A move that does not become ready in time is given back in the same
//! way.

mod budgets;
mod confine;
mod follow;
mod plan;
mod room;
mod settings;
mod status;
mod stay;
mod whereabouts;

pub use budgets::may_leave;
pub use confine::confine;
pub use plan::plan;
pub use settings::Settings;
pub use stay::StayReason;
pub use whereabouts::{stands_in, whereabouts};

use k8s_openapi::jiff::Timestamp;
use portolan_api::multiclusterrescheduler::MovePhase;
use std::collections::BTreeMap;

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkloadKey {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What is known of a workload that has replicas away from home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadSnapshot {
    /// Its uid.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The clusters that hold replicas of it.
    pub held: BTreeMap<String, Held>,
    /// The clusters that run more replicas of it than were decided, and how many more.
    pub leaving: BTreeMap<String, u32>,
    /// The PodDisruptionBudgets that protect its pods, by cluster; those of other clusters are not known.
    pub budgets: BTreeMap<String, Budgets>,
    /// The clusters in which it would rather be.
    pub homes: BTreeMap<String, Home>,
    /// Whether all its copies are as decided and ready, and none is left where nothing was decided.
    pub settled: bool,
    /// Whether it is paused.
    pub paused: bool,
}

/// What one cluster holds of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// How many replicas, by the last decision.
    pub replicas: u32,
    /// How many are ready.
    pub ready: u32,
    /// Whether the cluster only stands in until there is room at home.
    pub away: bool,
    /// Whether it is a cloud cluster.
    pub cloud: bool,
    /// Whether the cluster answers.
    pub reachable: bool,
}

/// PodDisruptionBudgets by name, and how many pods each of them lets go now.
pub type Budgets = BTreeMap<String, u32>;

/// A cluster in which a workload would rather be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// How many more replicas it should have.
    pub lacks: u32,
    /// How many more replicas have room there.
    pub fits: u32,
}

/// A workload that comes home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The uid of the workload, if it is on record.
    pub uid: Option<String>,
    /// How far it is.
    pub phase: MovePhase,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How many replicas move.
    pub replicas: u32,
    /// The clusters that they leave.
    pub from: Vec<String>,
    /// How many replicas each cluster had before.
    pub before: BTreeMap<String, u32>,
    /// How many replicas each home is to have.
    pub targets: BTreeMap<String, u32>,
}

impl Move {
    /// Whether it is a move of the workload with this uid, and not of one that had the same name.
    #[must_use]
    pub fn is_of(&self, uid: &str) -> bool {
        self.uid.as_deref().is_none_or(|known| known == uid)
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(self.phase, MovePhase::Surging | MovePhase::Draining | MovePhase::Returning)
    }
}

/// Since when a workload has been away, and since when it could come home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The uid of the workload, if it is on record.
    pub uid: Option<String>,
    /// Since when it has been away.
    pub since: Timestamp,
    /// Since when there has been room for it at home.
    pub room_since: Option<Timestamp>,
    /// Before this time no move is tried again.
    pub retry_at: Option<Timestamp>,
}

impl Stay {
    /// The stay of a workload that is away since then.
    pub(crate) fn beginning(workload: &WorkloadSnapshot, since: Timestamp) -> Self {
        Self { uid: Some(workload.uid.clone()), since, room_since: None, retry_at: None }
    }
}

/// What is on record of a rescheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The workloads that are away and do not move.
    pub stays: BTreeMap<WorkloadKey, Stay>,
    /// The moves under way.
    pub moves: BTreeMap<WorkloadKey, Move>,
    /// The last moves that ended, the newest first.
    pub ended: Vec<(WorkloadKey, Move)>,
    /// How many workloads came home so far.
    pub moved: u64,
    /// When workloads were last looked at.
    pub last_run: Option<Timestamp>,
}

/// The next record, and why each workload stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What is to be on record. The moves in it are what [`confine`] lets happen.
    pub record: Record,
    /// The workloads that stay, the clusters that they are on, and why.
    pub staying: BTreeMap<WorkloadKey, (Vec<String>, StayReason)>,
    /// The moves whose replicas at home are ready, and why those that they replace do not leave yet.
    pub waiting: BTreeMap<WorkloadKey, StayReason>,
    /// The workloads that are to be decided again at once: their move began, turned or ended.
    pub decide: Vec<WorkloadKey>,
    /// When to look again if nothing changes before.
    pub next: Option<Timestamp>,
}

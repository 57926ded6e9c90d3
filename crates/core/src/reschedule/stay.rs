//! Why a workload stays where it is.

use k8s_openapi::jiff::Timestamp;
use portolan_api::Reason;
use std::fmt;

/// Why a workload stays where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StayReason {
    /// No move is begun while the rescheduler is paused.
    ReschedulerPaused,
    /// The workload is paused.
    WorkloadPaused,
    /// A cluster that it is on does not answer: what runs there is not known.
    Unreachable {
        /// The cluster.
        cluster: String,
    },
    /// Its replicas are being rolled out or moved.
    NotSettled,
    /// The last move was given up.
    RetryLater {
        /// Until when.
        until: Timestamp,
    },
    /// It has not been away for long enough.
    MinimumStay {
        /// Until when.
        until: Timestamp,
    },
    /// The PodDisruptionBudgets of a cluster that it is on are not known.
    BudgetsUnknown {
        /// The cluster.
        cluster: String,
    },
    /// A PodDisruptionBudget lets none of its pods go, or fewer than are to leave.
    DisruptionBudget {
        /// The cluster.
        cluster: String,
        /// The PodDisruptionBudget.
        budget: String,
        /// How many pods it still lets go.
        allows: u32,
        /// How many pods are to leave.
        leaves: u32,
    },
    /// There is no room at home, or not with the margin.
    NoRoom {
        /// How many replicas are away.
        replicas: u32,
        /// How many have room at home, without the margin.
        fits: u32,
        /// The margin, in percent.
        margin: u32,
    },
    /// There has not been room at home for long enough.
    RoomNotStable {
        /// Until when.
        until: Timestamp,
    },
    /// Another workload is about to reserve the room at home.
    HomeBusy,
    /// As many workloads move as may.
    MaxConcurrentMoves {
        /// How many.
        moves: u32,
    },
    /// It is a job, and jobs are not moved.
    JobRunsToEnd,
    /// It would move, and nothing is moved in a dry run.
    DryRun {
        /// How many replicas would move.
        replicas: u32,
        /// Where to.
        to: Vec<String>,
    },
}

impl StayReason {
    /// The reason in a word.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::ReschedulerPaused => Reason::ReschedulerPaused,
            Self::WorkloadPaused => Reason::Paused,
            Self::Unreachable { .. } => Reason::Unreachable,
            Self::NotSettled => Reason::Progressing,
            Self::RetryLater { .. } => Reason::MoveFailed,
            Self::MinimumStay { .. } => Reason::MinimumStay,
            Self::BudgetsUnknown { .. } => Reason::BudgetsUnknown,
            Self::DisruptionBudget { .. } => Reason::DisruptionBudget,
            Self::NoRoom { .. } => Reason::NoRoom,
            Self::RoomNotStable { .. } => Reason::RoomNotStable,
            Self::HomeBusy => Reason::HomeBusy,
            Self::MaxConcurrentMoves { .. } => Reason::MaxConcurrentMoves,
            Self::JobRunsToEnd => Reason::JobRunsToEnd,
            Self::DryRun { .. } => Reason::DryRun,
        }
    }

    /// When the reason passes by itself.
    pub(super) fn until(&self) -> Option<Timestamp> {
        match self {
            Self::RetryLater { until } | Self::MinimumStay { until } | Self::RoomNotStable { until } => {
                Some(*until)
            }
            _ => None,
        }
    }
}

impl fmt::Display for StayReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReschedulerPaused => f.write_str("spec.paused of the rescheduler is true"),
            Self::WorkloadPaused => f.write_str("spec.paused of the workload is true"),
            Self::Unreachable { cluster } => write!(f, "the member cluster {cluster} does not answer"),
            Self::NotSettled => f.write_str("its replicas are being rolled out or moved"),
            Self::RetryLater { until } => {
                write!(f, "the last move did not become ready in time; it is tried again after {until}")
            }
            Self::MinimumStay { until } => write!(f, "spec.minimumStay lasts until {until}"),
            Self::BudgetsUnknown { cluster } => write!(
                f,
                "the PodDisruptionBudgets of the member cluster {cluster} cannot be listed: `portolan peer` grants the right"
            ),
            Self::DisruptionBudget { cluster, budget, allows: 0, .. } => {
                write!(f, "PodDisruptionBudget {budget} in cluster {cluster} allows no disruption")
            }
            Self::DisruptionBudget { cluster, budget, allows, leaves } => write!(
                f,
                "PodDisruptionBudget {budget} in cluster {cluster} allows {allows} disruptions, and {leaves} pods are to leave"
            ),
            Self::NoRoom { replicas, fits, margin } => write!(
                f,
                "{replicas} replicas are away and {fits} more fit in the preferred clusters; spec.margin keeps {margin} percent free"
            ),
            Self::RoomNotStable { until } => {
                write!(f, "there is room in the preferred clusters; spec.roomStableFor lasts until {until}")
            }
            Self::HomeBusy => {
                f.write_str("another workload is about to use the room in the preferred clusters")
            }
            Self::MaxConcurrentMoves { moves } => {
                write!(f, "{moves} workloads are being moved, which is spec.maxConcurrentMoves")
            }
            Self::JobRunsToEnd => f.write_str("a job runs to its end in the cluster where it was placed"),
            Self::DryRun { replicas, to } => {
                write!(f, "{replicas} replicas would move to {}; spec.dryRun is true", to.join(", "))
            }
        }
    }
}

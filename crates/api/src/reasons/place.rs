//! Where a reason is seen.

use crate::condition_type::ConditionType;
use std::fmt;

/// The part of an object where users find a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A condition in `status.conditions[]`.
    Condition(ConditionType),
    /// A cluster that takes no replicas or completions: `status.pending[]`, and `portolan explain`.
    Pending,
    /// The part of a workload in one cluster: `status.placements[]`.
    Placement,
    /// The status of a CloudProvisioner: `status.leftOut[]` and `status.cluster.deprovisioning`.
    Provisioner,
    /// A Kubernetes event.
    Event,
    /// A workload that stays away from the clusters it prefers: `status.staying[]` of a MultiClusterRescheduler.
    Staying,
    /// An error or a refusal in the answer to `portolan plan` and `portolan explain`.
    Review,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition(type_) => write!(formatter, "condition `{type_}`"),
            Self::Pending => formatter.write_str("pending"),
            Self::Placement => formatter.write_str("placement"),
            Self::Provisioner => formatter.write_str("cloud provisioner"),
            Self::Event => formatter.write_str("event"),
            Self::Staying => formatter.write_str("staying"),
            Self::Review => formatter.write_str("review"),
        }
    }
}

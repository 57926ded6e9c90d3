//! The types of conditions.

use std::fmt;

/// The types of condition that Portolan's objects carry. `Ready` sums up the others and always comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The object is in the state that its spec asks for.
    Ready,
    /// Every replica or completion asked for has been given a cluster.
    Placed,
    /// What was placed is being rolled out or moved.
    Progressing,
    /// The required minimum of replicas is available.
    Available,
    /// A cloud cluster is needed because no existing cluster has room.
    ToCloud,
    /// At least one cluster that holds replicas is silent: what it reported last may be out of date.
    Unreachable,
    /// Objects in a member differ from what was placed there.
    Drifted,
    /// The ConfigMaps and Secrets that the workload refers to are there to follow it.
    DependenciesReady,
    /// The job has finished successfully.
    Complete,
    /// The job or the migration has failed for good.
    Failed,
    /// The job is suspended: none of its pods run.
    Suspended,
    /// The scale target exists and can be scaled.
    AbleToScale,
    /// The autoscaler is computing a scale.
    ScalingActive,
    /// The scale is held back by the bounds of the autoscaler.
    ScalingLimited,
    /// The API server of the cluster answers.
    Reachable,
    /// So many clusters are silent at once that the silence of this one is not believed: nothing of it is replaced.
    SilenceDoubted,
    /// Objects in the cluster were placed by the hub and have no object in it any more: they stay as they are.
    Orphaned,
    /// The cluster is to leave the fleet, and something still holds that up.
    Leaving,
    /// The cluster accepts the identity of this one, or this one has given it one.
    Authenticated,
    /// The cluster consumes from this one.
    IncomingPeering,
    /// This cluster consumes from the cluster.
    OutgoingPeering,
    /// The cluster has an offer of this one, and quotas enforce it.
    Sharing,
    /// The offer of the cluster has been accepted.
    OfferAccepted,
    /// The consumer has accepted the offer.
    Accepted,
    /// The cloud cluster exists and has joined.
    Provisioned,
    /// The namespace exists in all selected clusters.
    Offloaded,
    /// All selected clusters have the features asked for.
    FeaturesEnabled,
}

impl ConditionType {
    /// The name as it stands in `status.conditions[].type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Placed => "Placed",
            Self::Progressing => "Progressing",
            Self::Available => "Available",
            Self::ToCloud => "ToCloud",
            Self::Unreachable => "Unreachable",
            Self::Drifted => "Drifted",
            Self::DependenciesReady => "DependenciesReady",
            Self::Complete => "Complete",
            Self::Failed => "Failed",
            Self::Suspended => "Suspended",
            Self::AbleToScale => "AbleToScale",
            Self::ScalingActive => "ScalingActive",
            Self::ScalingLimited => "ScalingLimited",
            Self::Reachable => "Reachable",
            Self::SilenceDoubted => "SilenceDoubted",
            Self::Orphaned => "Orphaned",
            Self::Leaving => "Leaving",
            Self::Authenticated => "Authenticated",
            Self::IncomingPeering => "IncomingPeering",
            Self::OutgoingPeering => "OutgoingPeering",
            Self::Sharing => "Sharing",
            Self::OfferAccepted => "OfferAccepted",
            Self::Accepted => "Accepted",
            Self::Provisioned => "Provisioned",
            Self::Offloaded => "Offloaded",
            Self::FeaturesEnabled => "FeaturesEnabled",
        }
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

//! The custom resources of Portolan: their types, schema and rules, and the conversion of other systems' manifests.

// Printer columns of one kind repeat `type_ = "string"`.
#![allow(clippy::duplicated_attributes)]

pub mod autoscaling;
pub mod cloudprovisioner;
pub mod clusterprofile;
pub mod clusterreport;
mod condition_type;
pub mod conditions;
pub mod convert;
mod crds;
pub mod duration;
pub mod examples;
pub mod featureconfig;
pub mod foreigncluster;
pub mod invitation;
pub mod livemigration;
pub mod money;
pub mod multiclusterdeployment;
pub mod multiclusterhorizontalpodautoscaler;
pub mod multiclusterjob;
pub mod multiclusterrescheduler;
pub mod multiclusterservice;
pub mod namespaceoffloading;
pub mod placement;
pub mod placementreview;
mod quantity;
pub mod reasons;
pub mod resourceoffer;
mod schema;
pub mod selector;
pub mod sharing;
pub mod template;
mod unknown;
pub mod words;

pub use cloudprovisioner::{CloudProvisioner, CloudProvisionerSpec, CloudProvisionerStatus};
pub use clusterreport::{ClusterReport, ClusterReportSpec, ClusterReportStatus};
pub use crds::{
    EXPERIMENTAL_KINDS, PROGRAM_VERSION, RenderError, VERSION_LABEL, all_crds, crds, hub_crds, is_served,
    render, render_crds, served_crds,
};
pub use duration::Duration;
pub use featureconfig::{FeatureConfig, FeatureConfigSpec, FeatureConfigStatus};
pub use foreigncluster::{ForeignCluster, ForeignClusterSpec, ForeignClusterStatus};
pub use invitation::{Invitation, InvitationSpec, InvitationStatus};
pub use livemigration::{LiveMigration, LiveMigrationSpec, LiveMigrationStatus};
pub use money::Money;
pub use multiclusterdeployment::{
    MultiClusterDeployment, MultiClusterDeploymentSpec, MultiClusterDeploymentStatus,
};
pub use multiclusterhorizontalpodautoscaler::{
    MultiClusterHorizontalPodAutoscaler, MultiClusterHorizontalPodAutoscalerSpec,
    MultiClusterHorizontalPodAutoscalerStatus,
};
pub use multiclusterjob::{MultiClusterJob, MultiClusterJobSpec, MultiClusterJobStatus};
pub use multiclusterrescheduler::{
    MultiClusterRescheduler, MultiClusterReschedulerSpec, MultiClusterReschedulerStatus,
};
pub use multiclusterservice::{MultiClusterService, MultiClusterServiceSpec, MultiClusterServiceStatus};
pub use namespaceoffloading::{NamespaceOffloading, NamespaceOffloadingSpec, NamespaceOffloadingStatus};
pub use placementreview::{PlacementReview, PlacementReviewSpec, PlacementReviewStatus};
pub use reasons::Reason;
pub use resourceoffer::{ResourceOffer, ResourceOfferSpec, ResourceOfferStatus};
pub use sharing::{SharingClass, SharingClassSpec, SharingClassStatus};
pub use template::{PodTemplate, PreservedObject};
pub use unknown::{UnknownField, unknown_fields};

/// The API group of all kinds of Portolan.
pub const GROUP: &str = "portolan.dev";
/// The version of the API.
pub const VERSION: &str = "v1alpha1";
/// The `apiVersion` of all kinds of Portolan.
pub const API_VERSION: &str = "portolan.dev/v1alpha1";

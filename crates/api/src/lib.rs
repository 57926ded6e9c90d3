//! The custom resources of Portolan: their types, schema and rules, and the conversion of other systems' manifests.

pub mod conditions;
mod crds;
pub mod duration;
pub mod foreigncluster;
pub mod multiclusterdeployment;
pub mod placement;
mod quantity;
mod schema;
pub mod selector;
pub mod template;

pub use crds::crds;
pub use duration::Duration;
pub use foreigncluster::{ForeignCluster, ForeignClusterSpec, ForeignClusterStatus};
pub use multiclusterdeployment::{
    MultiClusterDeployment, MultiClusterDeploymentSpec, MultiClusterDeploymentStatus,
};
pub use template::{PodTemplate, PreservedObject};

/// The API group of all kinds of Portolan.
pub const GROUP: &str = "portolan.dev";
/// The version of the API.
pub const VERSION: &str = "v1alpha1";
/// The `apiVersion` of all kinds of Portolan.
pub const API_VERSION: &str = "portolan.dev/v1alpha1";

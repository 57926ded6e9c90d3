//! What Portolan consists of in a cluster.
//!
//! [`Values`] say how it is to be; [`render`] answers the objects, and [`chart`] the Helm chart of the same objects. Both come
//! from one description in `objects.rs`, so that they cannot differ. Nothing here asks a cluster or a clock.

mod chart;
mod check;
mod diagnosis;
mod document;
mod error;
mod go_template;
mod monitoring;
mod node;
mod objects;
mod provider;
mod record;
mod set;
mod values;

pub use chart::chart;
pub use check::parse;
pub use diagnosis::{Seen, diagnose};
pub use document::{CONTROLLER, NAMESPACE};
pub use error::ValuesError;
pub use objects::{CLUSTER_CONFIG, Rendered, render};
pub use portolan_core::version::{SkewError, check_skew};
pub use provider::{NodeFacts, Provider, detect, region};
pub use record::{Entry, Identity, Phase, RECORD, Record, RecordError};
pub use set::set;
pub use values::{
    ClusterValues, ControllerValues, CrdValues, ImageValues, MonitoringValues, Values, merge, schema,
    values_yaml,
};

/// The version that is installed: that of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

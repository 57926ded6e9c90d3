//! How much room there is in a cluster.
//!
//! [`ClusterIndex`] follows a cluster node by node and pod by pod and answers without counting; [`ClusterRoom`] counts,
//! for tests.

mod amount;
mod growth;
mod index;
mod node;
mod pod;
mod pod_shape;
mod quantity;
mod room;
mod shape;
mod text;

pub use amount::{Amounts, CPU, MEMORY, PODS};
pub use growth::Growth;
pub use index::{ClusterIndex, ClusterSummary, NodeRoom, Quota, ReportedRoom, Room, View, WorkloadFilter};
pub use node::{LeftOut, NodeFacts, NodeGroup};
pub use pod::PodFacts;
pub use pod_shape::{PodShape, ShapeError};
pub use quantity::{NotAQuantity, milli};
pub use room::{ClusterRoom, Shortage};
pub use shape::{Shape, TemplateHash};
pub use text::amount;

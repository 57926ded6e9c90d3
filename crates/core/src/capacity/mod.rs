//! How much room there is in a cluster.
//!
//! [`ClusterIndex`] follows a cluster node by node and pod by pod and answers without counting; [`ClusterRoom`] counts.

mod amount;
mod index;
mod node;
mod pod;
mod quantity;
mod room;
mod shape;
mod text;

pub use amount::{Amounts, CPU, MEMORY, PODS};
pub use index::{ClusterIndex, ClusterSummary, Room, View};
pub use node::NodeFacts;
pub use pod::{PodFacts, PodShape, ShapeError};
pub use quantity::{NotAQuantity, milli};
pub use room::{ClusterRoom, Shortage};
pub use shape::Shape;
pub use text::amount;

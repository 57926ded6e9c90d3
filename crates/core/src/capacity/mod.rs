//! How much room there is in a cluster, counted node by node.

mod amount;
mod node;
mod pod;
mod quantity;
mod room;

pub use amount::{Amounts, CPU, MEMORY, PODS};
pub use node::NodeFacts;
pub use pod::{PodFacts, PodShape, ShapeError};
pub use quantity::{NotAQuantity, milli};
pub use room::{ClusterRoom, Shortage};

//! Real Kubernetes clusters on one machine, for tests and benchmarks.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use portolan_lab::{Component, Lab};
//!
//! let lab = Lab::builder().clusters(2).start().await?;
//! let c1 = lab.cluster("c1")?;
//! println!("{}", c1.kubectl(&["get", "nodes"]).await?);
//! c1.kill(Component::ApiServer).await?;
//! c1.start(Component::ApiServer).await?;
//! lab.cut("c1", "c2").await?;
//! # Ok(()) }
//! ```
//!
//! A node is a set of namespaces on a Debian root, see [`Node`]; what is written down about a lab is in [`state`].

mod addons;
mod builder;
mod cgroup;
mod cidr;
mod cluster;
mod command;
mod component;
mod custom_metrics;
mod cuts;
mod earlier;
mod host;
mod kwok;
mod lab;
mod metrics;
mod node;
pub mod parts;
mod pki;
mod portolan;
mod process;
mod provider;
mod report;
pub mod state;
mod switch;
mod teardown;
mod wait;

pub use builder::LabBuilder;
pub use cidr::Cidr;
pub use cluster::Cluster;
pub use component::Component;
pub use earlier::earlier_binary;
pub use lab::Lab;
pub use node::Node;
pub use portolan::{
    PORTOLAN_IMAGE, portolan_binary, portolan_image, portolan_image_as, portolan_image_of,
    portolan_runc_binary,
};
pub use provider::{ClusterApi, cluster_class};
pub use report::Row;
pub use state::MachineSize;
pub use teardown::{down, sweep};
pub use wait::{Seen, until};

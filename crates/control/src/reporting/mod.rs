//! Reporting the capacity of this cluster in a few kilobytes, where Portolan runs in a member.
//!
//! A hub asks for a summary in a ClusterReport. **Only if the administrator of the member has switched it on**, and only while some
//! hub asks, the controller of the member watches its nodes and pods and writes into the report what is free on groups of nodes. The
//! hub then need not watch them over the network, nor hold them.

mod counting;
mod report;

pub use report::report_capacity;

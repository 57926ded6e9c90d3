//! What would happen: the controllers of production on simulated clusters, in virtual time.
//!
//! A [`Scenario`] says which clusters there are and what happens to them. [`simulate`] plays it and answers a [`Record`]: time
//! series and summary figures. The same scenario and seed give the same record, byte for byte, on any machine.

mod engine;
mod figures;
mod fleet;
mod record;
mod scenario;

pub use engine::{Options, SimulationError, simulate};
pub use figures::{NamedPlot, comparison, figures};
pub use fleet::{
    Assumption, Converted, FleetState, HubState, MemberState, Unread, convert, join, read_hub, read_member,
};
pub use record::{Figure, Record, Series};
pub use scenario::{
    Arrivals, Baseline, Between, Boot, Cloud, CloudMachineType, ClusterSpec, ControlPlane, Distribution,
    Drawn, Event, Fault, Generator, Hub, Latency, Load, Location, NodeRef, NodeSpec, NodeTaint, Nodes,
    ObjectRef, Point, Quantile, Quantity, Refusal, Scenario, ScenarioError, Shipped, Step, TaintEffect, Task,
    TaskKind, Tasks, Trace, Traffic, Variant, Wave, load, schema, shipped,
};

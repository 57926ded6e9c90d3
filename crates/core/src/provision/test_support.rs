//! What tests of provisioning share.

use super::MachineType;
use crate::capacity::{Amounts, CPU, MEMORY, NodeFacts, PODS, PodShape, Shape};

/// A MiB, in thousandths of a byte.
pub(crate) const MIB: i64 = 1_048_576_000;

/// What a pod of so many millicores and MiB asks of a node.
pub(crate) fn shape(milli_cpu: i64, mib: i64) -> Shape {
    let mut requests = Amounts::of(CPU, milli_cpu);
    requests.set(MEMORY, mib * MIB);
    requests.set(PODS, 1000);
    PodShape { requests, ..PodShape::default() }.into()
}

/// A machine type of so many millicores and MiB at this price.
pub(crate) fn machine(name: &str, milli_cpu: i64, mib: i64, price: u64) -> MachineType {
    let mut allocatable = Amounts::of(CPU, milli_cpu);
    allocatable.set(MEMORY, mib * MIB);
    allocatable.set(PODS, 110_000);
    let node = NodeFacts { name: name.into(), allocatable, ready: true, ..NodeFacts::default() };
    MachineType { name: name.into(), node, price }
}

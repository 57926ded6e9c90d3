//! Room on nodes that are there or on their way.

use super::{Demand, MachineType};
use crate::capacity::{Amounts, NodeFacts};
use std::cmp::Reverse;

/// A node with what is free on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Bin {
    /// The node.
    pub facts: NodeFacts,
    /// What is free.
    pub free: Amounts,
}

impl Bin {
    /// A new node of this type.
    #[must_use]
    pub fn new(machine_type: &MachineType) -> Self {
        Self { facts: machine_type.node.clone(), free: machine_type.node.allocatable.clone() }
    }
}

/// Puts as many pods as fit on the nodes, those that request most CPU and memory first; answers those that do not fit.
#[must_use]
pub fn fill(bins: &mut [Bin], demand: &Demand) -> Demand {
    let mut shapes: Vec<_> = demand.iter().collect();
    shapes.sort_by_key(|(shape, _)| {
        let need = |name| shape.requests.get(name);
        Reverse((need(crate::capacity::CPU), need(crate::capacity::MEMORY)))
    });
    let mut rest = demand.clone();
    for (shape, mut pods) in shapes {
        for bin in bins.iter_mut().filter(|bin| bin.facts.refuses(shape).is_none()) {
            let taken = bin.free.times(&shape.requests).min(pods);
            bin.free.add(&shape.requests, -i64::from(taken));
            rest.take(shape, taken);
            pods -= taken;
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{machine, shape};
    use super::*;

    #[test]
    fn pods_fill_the_nodes_one_by_one_and_the_rest_is_named() {
        let mut bins =
            vec![Bin::new(&machine("small", 2000, 4096, 1)), Bin::new(&machine("small", 2000, 4096, 1))];
        let demand: Demand = [(shape(500, 100), 3), (shape(1500, 100), 3)].into_iter().collect();
        let rest = fill(&mut bins, &demand);
        let left: Vec<u32> = rest.iter().map(|(_, pods)| pods).collect();
        assert_eq!(left, [1, 1], "each node holds one of 1.5 CPU and one of 0.5 CPU");
        assert_eq!(fill(&mut bins, &Demand::default()), Demand::default());
        bins[0].facts.cordoned = true;
        assert_eq!(fill(&mut bins[..1], &demand), demand, "nothing goes to a cordoned node");
    }
}

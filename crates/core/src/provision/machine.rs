//! Machine types: what a node of each offers to pods, and what it costs.

use crate::capacity::{Amounts, CPU, MEMORY, NodeFacts, NotAQuantity, PODS};
use portolan_api::cloudprovisioner::MachineType as Declared;
use portolan_api::placement::Resources;
use std::collections::BTreeMap;

/// A machine type.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineType {
    /// The cloud's name for it.
    pub name: String,
    /// A new node of it: what is left for pods after the node's own overhead, its labels and taints.
    pub node: NodeFacts,
    /// What it costs per hour, in millionths of the currency; 0 if prices are not known.
    pub price: u64,
}

impl MachineType {
    /// A declared machine type, less what the pods of the node's own services request.
    ///
    /// # Errors
    /// The name of a resource and what is wrong with its quantity.
    pub fn of(declared: &Declared, overhead: &Resources) -> Result<Self, (String, NotAQuantity)> {
        let mut offered = declared.resources.clone();
        offered.insert(CPU.to_owned(), declared.cpu.clone());
        offered.insert(MEMORY.to_owned(), declared.memory.clone());
        let mut allocatable = Amounts::parse(&offered)?;
        allocatable.set(PODS, i64::from(declared.pods).saturating_mul(1000));
        let mut overhead = Amounts::parse(overhead)?;
        overhead.retain(|name| allocatable.get(name) > 0);
        allocatable.add(&overhead, -1);
        // Labels that the kubelet sets by itself.
        let labels = BTreeMap::from([
            ("kubernetes.io/os".to_owned(), "linux".to_owned()),
            ("node.kubernetes.io/instance-type".to_owned(), declared.name.clone()),
        ]);
        let node = NodeFacts {
            name: declared.name.clone(),
            allocatable: allocatable.not_below_zero(),
            ready: true,
            labels,
            ..NodeFacts::default()
        };
        let price = declared.price_per_hour.map_or(0, |price| price.micros);
        Ok(Self { name: declared.name.clone(), node, price })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

    #[test]
    fn the_overhead_of_a_node_is_not_left_for_pods() {
        let quantity = |text: &str| Quantity(text.to_owned());
        let declared = Declared {
            name: "m1.large".into(),
            cpu: quantity("4"),
            memory: quantity("8Gi"),
            resources: Resources::from([("nvidia.com/gpu".to_owned(), quantity("1"))]),
            price_per_hour: Some("0.0416".parse().unwrap()),
            pods: 110,
        };
        let overhead = Resources::from([
            ("cpu".to_owned(), quantity("300m")),
            ("memory".to_owned(), quantity("9Gi")),
            ("pods".to_owned(), quantity("4")),
        ]);
        let machine = MachineType::of(&declared, &overhead).unwrap();
        let left = |name| machine.node.allocatable.get(name);
        assert_eq!((left(CPU), left(MEMORY), left(PODS), left("nvidia.com/gpu")), (3700, 0, 106_000, 1000));
        assert_eq!(machine.price, 41_600);
    }
}

//! What a CloudProvisioner asks for, in numbers.

use super::MachineType;
use crate::capacity::{Amounts, NotAQuantity, PODS, PodShape, Shape};
use portolan_api::CloudProvisioner;
use std::time::Duration;

/// What a CloudProvisioner asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The uid of the CloudProvisioner.
    pub uid: String,
    /// The name that clusters begin with, and that of the ForeignCluster.
    pub cluster_name: String,
    /// The machine types that nodes may be made of.
    pub machine_types: Vec<MachineType>,
    /// The least number of nodes while the cluster exists.
    pub min_nodes: u32,
    /// The largest number of nodes.
    pub max_nodes: u32,
    /// The most that the cluster may cost per hour, in millionths.
    pub max_cost: Option<u64>,
    /// What the cluster costs per hour beside its nodes, in millionths.
    pub cluster_price: u64,
    /// The pods for which room is kept free.
    pub headroom: Option<(Shape, u32)>,
    /// A node of which less than so many percent are requested is little used.
    pub threshold: u32,
    /// How long a node must be little used before it is removed.
    pub scale_in_after: Duration,
    /// How long the cluster must be without work before it is removed.
    pub decommission_after: Duration,
    /// How long the cluster or a node may take to be ready.
    pub provision_timeout: Duration,
    /// How long nothing is tried after a failure.
    pub retry_after: Duration,
    /// Whether nothing is to be made or removed.
    pub paused: bool,
    /// Whether the CloudProvisioner is being deleted.
    pub deleting: bool,
}

impl Settings {
    /// Reads a CloudProvisioner.
    ///
    /// # Errors
    /// The name of a resource and what is wrong with its quantity.
    pub fn of(object: &CloudProvisioner) -> Result<Self, (String, NotAQuantity)> {
        let (spec, metadata) = (&object.spec, &object.metadata);
        let types = spec.machine_types.iter().map(|each| MachineType::of(each, &spec.node_overhead));
        let headroom = spec.headroom.as_ref().map(|headroom| {
            let mut requests = Amounts::parse(&headroom.requests)?;
            requests.set(PODS, 1000);
            let shape = PodShape { requests, ..PodShape::default() };
            Ok((shape.into(), count(headroom.pods)))
        });
        Ok(Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            cluster_name: spec.cloud_cluster_name.clone(),
            machine_types: types.collect::<Result<_, _>>()?,
            min_nodes: count(spec.min_nodes),
            max_nodes: count(spec.max_nodes),
            max_cost: spec.max_cost_per_hour.map(|most| most.micros),
            cluster_price: spec.cluster_price_per_hour.map_or(0, |price| price.micros),
            headroom: headroom.transpose()?,
            threshold: count(spec.utilization_threshold),
            scale_in_after: spec.scale_in_after.0,
            decommission_after: spec.decommission_after.0,
            provision_timeout: spec.provision_timeout.0,
            retry_after: spec.retry_after.0,
            paused: spec.paused,
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// The machine type of this name.
    pub(super) fn machine_type(&self, name: &str) -> Option<&MachineType> {
        self.machine_types.iter().find(|each| each.name == name)
    }
}

fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

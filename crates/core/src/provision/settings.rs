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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn provisioner(spec: serde_json::Value) -> CloudProvisioner {
        let object = json!({
            "apiVersion": "portolan.dev/v1alpha1",
            "kind": "CloudProvisioner",
            "metadata": {"name": "cp1", "uid": "0b1c"},
            "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn the_delays_of_the_paper_are_the_defaults() {
        let settings =
            Settings::of(&provisioner(json!({"cloudClusterName": "cloud1", "cloudProvider": "OpenStack"})))
                .unwrap();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!((settings.scale_in_after, settings.decommission_after), (minutes(10), minutes(20)));
        assert_eq!((settings.min_nodes, settings.max_nodes, settings.threshold), (1, 10, 50));
        assert_eq!((settings.uid.as_str(), settings.max_cost, settings.headroom), ("0b1c", None, None));
    }

    #[test]
    fn prices_and_headroom_are_read_exactly_and_a_bad_quantity_is_named() {
        let spec = |cpu: &str| {
            json!({
                "cloudClusterName": "cloud1",
                "cloudProvider": "OpenStack",
                "maxCostPerHour": "0.25",
                "clusterPricePerHour": "0.01",
                "headroom": {"pods": 2, "requests": {"cpu": cpu}},
                "machineTypes": [{"name": "small", "cpu": "2", "memory": "4Gi", "pricePerHour": "0.0416"}],
            })
        };
        let settings = Settings::of(&provisioner(spec("500m"))).unwrap();
        assert_eq!((settings.max_cost, settings.cluster_price), (Some(250_000), 10_000));
        assert_eq!(settings.machine_type("small").unwrap().price, 41_600);
        let (shape, pods) = settings.headroom.unwrap();
        assert_eq!(
            (shape.requests.get(crate::capacity::CPU), shape.requests.get(PODS), pods),
            (500, 1000, 2)
        );
        assert_eq!(Settings::of(&provisioner(spec("half"))).unwrap_err().0, "cpu");
    }
}

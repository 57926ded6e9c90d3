//! What must hold of services once the storm is over.

use super::Fleet;
use crate::NAMESPACE;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use portolan_api::placement::PlacementStatus;
use portolan_api::{MultiClusterDeployment, MultiClusterService};
use std::collections::BTreeSet;

/// Every cluster that holds pods of a service has the Service, with all its endpoints, and no other cluster has one.
pub(super) async fn settled(fleet: &Fleet, workloads: &[MultiClusterDeployment]) -> Vec<String> {
    let api: Api<MultiClusterService> = Api::namespaced(fleet.hub.client("observer"), NAMESPACE);
    let declared = api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
    let mut problems = Vec::new();
    let mut wanted = BTreeSet::new();
    for service in &declared {
        let name = service.metadata.name.clone().unwrap_or_default();
        let status = service.status.clone().unwrap_or_default();
        let mut clusters = BTreeSet::new();
        let mut replicas = 0;
        for workload in workloads {
            let labels: Vec<_> = workload.spec.template.labels().collect();
            if service.spec.selector.iter().all(|(key, value)| labels.contains(&(key, value))) {
                let placed = workload.status.iter().flat_map(|status| &status.placements);
                // A replica that is to go and serves until others are ready has its Service as long.
                let serves = |each: &&PlacementStatus| each.replicas > 0 || each.ready_replicas > 0;
                clusters.extend(placed.clone().filter(serves).map(|each| each.cluster.clone()));
                replicas += placed.map(|each| each.ready_replicas).sum::<i32>();
            }
        }
        let told: BTreeSet<_> = status.clusters.iter().map(|each| each.cluster.clone()).collect();
        if told != clusters || status.ready_endpoints != replicas {
            problems.push(format!(
                "service {name} tells {:?}, its {replicas} ready pods are in {clusters:?}",
                status.locations_summary
            ));
        }
        wanted.extend(clusters.into_iter().map(|cluster| (cluster, name.clone())));
    }
    for member in &fleet.members {
        let api: Api<Service> = Api::namespaced(member.client("observer"), NAMESPACE);
        for copy in api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default() {
            let name = copy.metadata.name.unwrap_or_default();
            if !wanted.remove(&(member.name().to_owned(), name.clone())) {
                problems.push(format!("service {name} in {} is an orphan", member.name()));
            }
        }
    }
    problems.extend(wanted.iter().map(|(cluster, name)| format!("service {name} is not in {cluster}")));
    problems
}

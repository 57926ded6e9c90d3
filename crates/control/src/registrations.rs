//! The kinds that are watched in every member: one line each.
//!
//! What a hub may do in a member follows from this list; see `peering`.

use crate::copies::registration;
use crate::fleet::{Registration, Starting};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

/// All of them.
pub(crate) const REGISTRATIONS: &[Registration] = &[
    Registration::index::<Namespace>("which namespaces are open to placement"),
    Registration::room::<Node>("what each node has for pods", |member: &mut Starting<'_>| member.nodes()),
    Registration::room::<Pod>(
        "what pods take of each node, and which of them wait",
        |member: &mut Starting<'_>| {
            member.pods();
        },
    ),
    registration::<Deployment>("how the copies of workloads fare", "the copies of MultiClusterDeployments"),
    registration::<Job>("how far the Jobs of MultiClusterJobs are", "the Jobs of MultiClusterJobs"),
    registration::<Service>(
        "the addresses of the Services of MultiClusterServices",
        "the Services of MultiClusterServices",
    ),
    Registration::index::<EndpointSlice>("which pods serve those Services"),
    Registration::index::<PodDisruptionBudget>("how many pods may go when work is brought home"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_kind_is_registered_once_and_what_copies_need_is_registered() {
        let resources: BTreeSet<&str> = REGISTRATIONS.iter().map(|each| each.resource).collect();
        assert_eq!(resources.len(), REGISTRATIONS.len());
        let copies = REGISTRATIONS.iter().filter_map(|each| each.copies);
        for needed in copies.flat_map(|copies| copies.needs.0) {
            assert!(resources.contains(needed), "{needed} is needed and nobody watches it");
        }
    }
}

//! Which namespaces of a cloud cluster are opened to the hub: those of the workloads that wait for it.
//!
//! A member opens its namespaces itself. A cluster that the hub has made has nobody else who could.

use super::Provision;
use super::observe::Observed;
use k8s_openapi::api::core::v1::Namespace;
use portolan_core::provision::{MemberState, Waiting};
use portolan_runtime::Key;
use std::collections::BTreeSet;

/// The namespaces of workloads that wait for the cloud, without those of the system, where credentials of the cluster are.
pub(super) fn namespaces(waiting: &[(Key, Waiting)]) -> BTreeSet<String> {
    let is_system = |name: &str| name.starts_with("kube-") || name == "portolan";
    let all = waiting.iter().map(|(key, _)| key.namespace.clone());
    all.filter(|name| !is_system(name)).collect()
}

impl Provision {
    /// Those of the namespaces that a cloud cluster which answers has not opened yet.
    pub(super) fn closed(&self, observed: &Observed, needed: &BTreeSet<String>) -> BTreeSet<String> {
        if !matches!(observed.snapshot.member, MemberState::Joined { reachable: true, .. }) {
            return BTreeSet::new();
        }
        let Some(member) = self.known_member(&observed.settings.cluster_name) else { return BTreeSet::new() };
        let index = member.index::<Namespace>();
        if !index.synced() {
            return BTreeSet::new();
        }
        let is_open = |name: &String| index.get(&Key::cluster(name)).is_some_and(|open| *open);
        needed.iter().filter(|name| !is_open(name)).cloned().collect()
    }
}

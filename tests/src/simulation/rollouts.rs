//! Rolling updates that come to a stop since their own old pods hold the room of the new ones. Kubernetes takes old pods only
//! down to what must be available, so that such an update waits until somebody helps: no controller of a fleet can.

use crate::NAMESPACE;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use portolan_control::names::WORKLOAD_LABEL;
use portolan_core::capacity::{ClusterRoom, NodeFacts, PodFacts, PodShape};
use portolan_sandbox::Cluster;
use std::collections::BTreeSet;

const REVISION: &str = "deployment.kubernetes.io/revision";

/// A ReplicaSet in numbers.
#[derive(Clone, Copy, Debug)]
struct Size {
    wanted: i32,
    available: i32,
}

/// The workloads, by uid, whose update in a member waits for room that its own old pods hold.
pub(super) async fn waiting(member: &Cluster) -> BTreeSet<String> {
    let client = member.client("observer");
    let (copies, sets): (Api<Deployment>, Api<ReplicaSet>) =
        (Api::namespaced(client.clone(), NAMESPACE), Api::namespaced(client.clone(), NAMESPACE));
    let (pods, nodes): (Api<Pod>, Api<Node>) = (Api::all(client.clone()), Api::all(client));
    let copies = copies.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
    let sets = sets.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
    let pods = pods.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
    let nodes = nodes.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
    // Nobody but Kubernetes takes old pods away, of whichever copy they are.
    let former =
        |pod: &&Pod| copies.iter().any(|copy| Rollout::of(copy, &sets).is_some_and(|all| all.is_old(pod)));
    let others = pods.iter().filter(|pod| !former(pod)).map(|pod| PodFacts::of(pod, WORKLOAD_LABEL));
    let others: Vec<_> = others.collect();
    let nodes: Vec<_> = nodes.iter().map(NodeFacts::of).collect();
    let room = ClusterRoom::count(&nodes, &others);
    let waits = |copy: &&Deployment| {
        Rollout::of(copy, &sets)
            .is_some_and(|rollout| rollout.takes_no_more() && rollout.has_room(&pods, &room))
    };
    let of = |copy: &Deployment| copy.metadata.labels.as_ref()?.get(WORKLOAD_LABEL).cloned();
    copies.iter().filter(waits).filter_map(of).collect()
}

/// The rolling update of a copy.
struct Rollout<'a> {
    spec: &'a DeploymentSpec,
    new: &'a ReplicaSet,
    old: Vec<&'a ReplicaSet>,
}

impl<'a> Rollout<'a> {
    /// Nothing for a copy that takes all old pods at once.
    fn of(copy: &'a Deployment, sets: &'a [ReplicaSet]) -> Option<Self> {
        let spec = copy.spec.as_ref()?;
        let type_ = spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        let (new, old): (Vec<_>, Vec<_>) = sets
            .iter()
            .filter(|set| is_of(&set.metadata, &copy.metadata))
            .partition(|set| revision(&set.metadata) == revision(&copy.metadata));
        let new = new.first().copied().filter(|_| type_ != Some("Recreate"))?;
        Some(Self { spec, new, old })
    }

    fn is_old(&self, pod: &Pod) -> bool {
        self.old.iter().any(|set| is_of(&pod.metadata, &set.metadata))
    }

    fn takes_no_more(&self) -> bool {
        let rolling = self.spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let replicas = self.spec.replicas.unwrap_or(1);
        let spared = resolve(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), replicas, false);
        let surge = resolve(rolling.and_then(|rolling| rolling.max_surge.as_ref()), replicas, true);
        let spared = if spared == 0 && surge == 0 { 1 } else { spared };
        let old: Vec<Size> = self.old.iter().map(|set| size(set)).collect();
        takes_no_more(replicas, spared, size(self.new), &old)
    }

    /// Whether there are new pods without a node, and room for them where old ones are.
    fn has_room(&self, pods: &[Pod], room: &ClusterRoom) -> bool {
        let without_node = |pod: &&Pod| {
            let facts = PodFacts::of(pod, WORKLOAD_LABEL);
            is_of(&pod.metadata, &self.new.metadata) && facts.node.is_none() && !facts.finished
        };
        let unbound = pods.iter().filter(without_node).count();
        let fit = PodShape::of_template(&self.spec.template).map_or(0, |shape| room.max_replicas(&shape));
        unbound > 0 && usize::try_from(fit).is_ok_and(|fit| fit >= unbound)
    }
}

/// Whether Kubernetes takes no more of the old pods until more of the new ones are available.
fn takes_no_more(replicas: i32, spared: i32, new: Size, old: &[Size]) -> bool {
    let wanted: i32 = old.iter().map(|set| set.wanted).sum();
    let least = replicas - spared.min(replicas);
    let spare = new.wanted + wanted - least - (new.wanted - new.available);
    let broken = old.iter().any(|set| set.available < set.wanted);
    let available = new.available + old.iter().map(|set| set.available.min(set.wanted)).sum::<i32>();
    wanted > 0 && (spare <= 0 || !broken && available <= least)
}

fn size(set: &ReplicaSet) -> Size {
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
    Size { wanted, available: set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0) }
}

fn is_of(owned: &ObjectMeta, owner: &ObjectMeta) -> bool {
    owned.owner_references.iter().flatten().any(|each| Some(&each.uid) == owner.uid.as_ref())
}

fn revision(meta: &ObjectMeta) -> Option<&String> {
    meta.annotations.as_ref()?.get(REVISION)
}

/// A number, or a percentage of all replicas, rounded up or down; a quarter if nothing is given.
fn resolve(value: Option<&IntOrString>, replicas: i32, up: bool) -> i32 {
    let percent = match value {
        Some(IntOrString::Int(number)) => return *number,
        Some(IntOrString::String(text)) => text.trim_end_matches('%').parse().unwrap_or(0),
        None => 25,
    };
    if up { (percent * replicas + 99) / 100 } else { percent * replicas / 100 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_kubernetes_itself_leaves_is_waited_for() {
        let size = |wanted, available| Size { wanted, available };
        assert!(takes_no_more(4, 1, size(2, 0), &[size(3, 3)]), "three must be available");
        assert!(!takes_no_more(4, 1, size(2, 1), &[size(3, 3)]), "one more may go");
        assert!(!takes_no_more(4, 1, size(1, 1), &[size(3, 2)]), "one that does not serve goes");
        assert!(takes_no_more(1, 0, size(1, 0), &[size(1, 1)]), "the new one comes first");
        assert!(!takes_no_more(2, 1, size(2, 0), &[]), "no old pod is in the way");
        assert!(!takes_no_more(2, 1, size(2, 0), &[size(0, 0)]));
    }

    #[test]
    fn percentages_round_as_kubernetes_rounds() {
        assert_eq!((resolve(None, 3, true), resolve(None, 3, false)), (1, 0));
        assert_eq!(resolve(Some(&IntOrString::Int(1)), 3, false), 1);
        assert_eq!(resolve(Some(&IntOrString::String("50%".into())), 3, true), 2);
    }
}

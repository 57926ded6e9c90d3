//! The nodes of a cloud cluster, and which pods would have to leave them.
//!
//! The ledger counts room for all members alike and keeps a hundred bytes a pod. Whether a node of the cloud can be emptied
//! takes more: who owns each pod, and what it keeps on its node. So the nodes and pods of these few clusters, and of no others,
//! are watched once more. Their disruption budgets are watched for all members.

use crate::fleet::{BudgetsUnknown, Member, is_outdated, tightest_budget};
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::runtime::watcher;
use portolan_core::capacity::{Amounts, NodeFacts, PodFacts, PodShape, Shape};
use portolan_core::provision::{Bin, Demand, NodeSnapshot, PodSnapshot, fill};
use portolan_runtime::{Index, Key, Seed, feed};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// On mirror pods of the kubelet.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// On pods: whether they may be evicted, as the cluster autoscaler of Kubernetes reads it.
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// The nodes of one member, watched for as long as this is kept.
pub(super) struct CloudNodes {
    /// Not kept alive: the fleet decides how long a connection lasts.
    member: Weak<Member>,
    nodes: Index<NodeFacts>,
    pods: Index<CloudPod>,
    /// Since when lists tell what the member holds.
    listed_since: Instant,
    /// When each node was seen first.
    first_seen: BTreeMap<String, Timestamp>,
    _tasks: JoinSet<()>,
}

/// A node, and since when the hub has known it.
#[derive(Clone, Debug)]
pub(super) struct SeenNode {
    pub(super) since: Timestamp,
    pub(super) node: NodeSnapshot,
}

/// What is kept of a pod.
#[derive(Clone, Debug)]
struct CloudPod {
    node: Option<String>,
    requests: Amounts,
    labels: BTreeMap<String, String>,
    /// What it needs of another node; nothing for a pod of the node's own services.
    shape: Option<Shape>,
    /// Why it cannot be evicted by itself.
    stays: Option<&'static str>,
}

impl CloudNodes {
    /// Begins to watch the nodes of a member; `changed` is called when anything has changed.
    pub(super) fn watch<C: Fn() + Clone + Send + Sync + 'static>(
        member: &Arc<Member>,
        seed: Seed,
        changed: C,
    ) -> Self {
        let (nodes, pods) = (Index::default(), Index::default());
        let (client, config) = (&member.client, watcher::Config::default);
        let mut tasks = JoinSet::new();
        let tell = |changed: &C| {
            let changed = changed.clone();
            move |_: &Key| changed()
        };
        let api = Api::<Node>::all(client.clone());
        tasks.spawn(feed(
            api,
            config(),
            |node| NodeFacts::of(&node),
            nodes.clone(),
            tell(&changed),
            seed.child("nodes"),
        ));
        let api = Api::<Pod>::all(client.clone());
        tasks.spawn(feed(
            api,
            config(),
            |pod| CloudPod::of(&pod),
            pods.clone(),
            tell(&changed),
            seed.child("pods"),
        ));
        let (listed_since, first_seen) = (member.listed_since(), BTreeMap::new());
        Self { member: Arc::downgrade(member), nodes, pods, listed_since, first_seen, _tasks: tasks }
    }

    /// Whether these are the nodes of this connection to the member.
    pub(super) fn is_of(&self, member: &Arc<Member>) -> bool {
        Weak::ptr_eq(&self.member, &Arc::downgrade(member))
    }

    /// The nodes by name, if nodes and pods were listed and are not of the past. `unbound` are the pods that are reserved and have no node yet:
    /// they take their room on the first nodes that have some.
    pub(super) fn snapshots(
        &mut self,
        unbound: &Demand,
        now: Timestamp,
    ) -> Option<BTreeMap<String, SeenNode>> {
        if !self.are_current() {
            return None;
        }
        let (nodes, pods) = (self.nodes.all_if_synced()?, self.pods.all_if_synced()?);
        let mut snapshots: BTreeMap<String, NodeSnapshot> = nodes
            .into_iter()
            .map(|(key, facts)| {
                let free = facts.allocatable.clone();
                (key.name, NodeSnapshot { facts: facts.as_ref().clone(), free, pods: Vec::new() })
            })
            .collect();
        for (key, pod) in pods {
            let Some(node) = pod.node.as_ref().and_then(|node| snapshots.get_mut(node)) else { continue };
            node.free.add(&pod.requests, -1);
            if let Some(shape) = &pod.shape {
                let stays = pod.stays.map(str::to_owned).or_else(|| self.budget(&key, &pod.labels));
                node.pods.push(PodSnapshot { shape: shape.clone(), stays });
            }
        }
        let mut bins: Vec<Bin> = snapshots
            .values()
            .map(|node| Bin { facts: node.facts.clone(), free: node.free.clone() })
            .collect();
        let _without_room = fill(&mut bins, unbound);
        for (node, bin) in snapshots.values_mut().zip(bins) {
            node.free = bin.free;
        }
        self.first_seen.retain(|name, _| snapshots.contains_key(name));
        let seen = snapshots.into_iter().map(|(name, node)| {
            let since = *self.first_seen.entry(name.clone()).or_insert(now);
            (name, SeenNode { since, node })
        });
        Some(seen.collect())
    }

    /// Whether what is known of nodes and pods is not of the past. When the member answers again after a silence, they are
    /// listed anew.
    fn are_current(&mut self) -> bool {
        let Some(member) = self.member.upgrade() else { return false };
        let (since, watches) = (member.listed_since(), [self.nodes.health(), self.pods.health()]);
        if since != self.listed_since {
            self.listed_since = since;
            watches.iter().for_each(|watch| watch.refresh());
        }
        watches.iter().all(|watch| watch.is_listed_since(since) && !is_outdated(watch))
    }

    /// The budget that keeps a pod where it is, in words.
    fn budget(&self, key: &Key, labels: &BTreeMap<String, String>) -> Option<String> {
        let member = self.member.upgrade().ok_or(BudgetsUnknown);
        match member.and_then(|member| tightest_budget(&member, &key.namespace, labels)) {
            Err(BudgetsUnknown) => {
                Some("the PodDisruptionBudgets of the cluster cannot be listed".to_owned())
            }
            Ok(Some((name, 0))) => {
                Some(format!("PodDisruptionBudget {}/{name} allows no disruption", key.namespace))
            }
            Ok(_) => None,
        }
    }
}

impl CloudPod {
    fn of(pod: &Pod) -> Self {
        let facts = PodFacts::of(pod, crate::names::WORKLOAD_LABEL);
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        let spec = pod.spec.clone().unwrap_or_default();
        let annotation =
            |name: &str| pod.metadata.annotations.as_ref().and_then(|all| all.get(name)).map(String::as_str);
        let owners = pod.metadata.owner_references.iter().flatten();
        let controller =
            owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.kind.as_str()).next();
        let own = controller == Some("DaemonSet") || annotation(MIRROR_ANNOTATION).is_some();
        let stays = match (annotation(SAFE_TO_EVICT), controller) {
            (Some("true"), _) => None,
            (Some("false"), _) => Some("its annotation says that it must not be evicted"),
            (_, None) => Some("nothing would create it again"),
            (_, Some("Job")) => Some("it belongs to a Job, and would begin again"),
            (_, Some(_)) if keeps_data(&spec) => Some("it keeps data on its node"),
            (_, Some(_)) => None,
        };
        let shape =
            PodShape::of_spec(&spec).ok().map(Shape::from).unwrap_or_else(|| PodShape::default().into());
        Self {
            node: facts.node.filter(|_| !facts.finished),
            requests: facts.requests,
            labels,
            shape: (!own).then_some(shape),
            stays,
        }
    }
}

/// Whether a pod has a volume on the disk of its node.
fn keeps_data(spec: &PodSpec) -> bool {
    spec.volumes.iter().flatten().any(|volume| {
        let on_disk = volume.empty_dir.as_ref().is_some_and(|dir| dir.medium.as_deref() != Some("Memory"));
        on_disk || volume.host_path.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(owner: Option<&str>, more: Value) -> CloudPod {
        let owners: Vec<Value> = owner
            .iter()
            .map(
                |kind| json!({"apiVersion": "v1", "kind": kind, "name": "o", "uid": "o", "controller": true}),
            )
            .collect();
        let mut spec =
            json!({"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]});
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        let object = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop", "ownerReferences": owners},
            "spec": spec,
        });
        CloudPod::of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn pods_that_would_lose_something_stay_and_those_of_the_node_do_not_count() {
        assert_eq!(pod(Some("ReplicaSet"), json!({})).stays, None);
        assert!(pod(None, json!({})).stays.unwrap().contains("nothing would create it again"));
        assert!(pod(Some("Job"), json!({})).stays.unwrap().contains("Job"));
        let data = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
        assert!(pod(Some("ReplicaSet"), data).stays.unwrap().contains("data"));
        let memory = json!({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]});
        assert_eq!(pod(Some("ReplicaSet"), memory).stays, None);
        let own = pod(Some("DaemonSet"), json!({}));
        assert!(own.shape.is_none() && own.requests.get(portolan_core::capacity::CPU) == 1000);
    }
}

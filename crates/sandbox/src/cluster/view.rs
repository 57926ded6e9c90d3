//! What the controllers know of pods and nodes without decoding them again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Seen, controller_of, deleting, text};
use crate::kinds::condition_is_true;
use crate::quantity;
use crate::store::{EventKind, ObjectKey, at};

/// Amounts by resource name, in thousandths.
pub(crate) type Amounts = BTreeMap<Arc<str>, i128>;

/// A pod in brief.
#[derive(Clone, Debug)]
pub(super) struct PodView {
    pub(super) uid: Arc<str>,
    pub(super) owner: Option<Arc<str>>,
    /// An object, or null.
    pub(super) labels: Value,
    pub(super) address: Arc<str>,
    pub(super) node: Arc<str>,
    pub(super) over: bool,
    pub(super) ready: bool,
    /// Since when it is ready, or not.
    pub(super) ready_since: Option<Timestamp>,
    pub(super) deleting: bool,
    pub(super) created: Arc<str>,
    pub(super) requests: Amounts,
}

impl PodView {
    /// How long until a ready pod has been ready for `least`: nothing or less if it is available, none if it is not ready.
    pub(super) fn until_available(&self, least: SignedDuration, now: Timestamp) -> Option<SignedDuration> {
        self.ready
            .then(|| self.ready_since.map_or(SignedDuration::ZERO, |since| least - now.duration_since(since)))
    }
}

/// Objects of one table by the uid of what controls them.
#[derive(Default)]
pub(super) struct Owned {
    by_owner: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    owners: BTreeMap<ObjectKey, Arc<str>>,
}

impl Owned {
    /// The objects that an owner controls.
    pub(super) fn of<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a ObjectKey> {
        self.by_owner.get(owner).into_iter().flatten()
    }

    fn update(&mut self, seen: &Seen) {
        if let Some(owner) = self.owners.remove(&seen.key) {
            remove_from(&mut self.by_owner, &owner, &seen.key);
        }
        if let (false, Some(owner)) = (seen.kind == EventKind::Deleted, controller_of(&seen.object)) {
            let owner: Arc<str> = text(owner, "/uid").into();
            self.by_owner.entry(owner.clone()).or_default().insert(seen.key.clone());
            self.owners.insert(seen.key.clone(), owner);
        }
    }
}

/// A node in brief.
#[derive(Clone, Debug)]
pub(super) struct NodeView {
    pub(super) allocatable: Amounts,
    pub(super) object: Arc<Value>,
    pub(super) simulated: bool,
}

/// Pods and nodes, indexed.
#[derive(Default)]
pub(super) struct View {
    pub(super) pods: BTreeMap<ObjectKey, PodView>,
    pub(super) pods_by_owner: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    pub(super) nodes: BTreeMap<Arc<str>, NodeView>,
    /// What the pods of each node ask for, with their number under `pods`.
    pub(super) used: BTreeMap<Arc<str>, Amounts>,
    /// Pods that nothing controls.
    pub(super) orphans: BTreeSet<ObjectKey>,
    pub(super) replica_sets: Owned,
    pub(super) revisions: Owned,
}

impl View {
    /// Takes in a change.
    pub(super) fn update(&mut self, seen: &Seen) {
        let gone = seen.kind == EventKind::Deleted;
        match &*seen.table {
            "/pods" => {
                self.forget_pod(&seen.key);
                if !gone {
                    self.add_pod(&seen.key, &seen.object);
                }
            }
            "/nodes" => {
                if gone {
                    self.nodes.remove(&seen.key.name);
                } else {
                    self.nodes.insert(seen.key.name.clone(), node_view(&seen.object));
                }
            }
            "apps/replicasets" => self.replica_sets.update(seen),
            "apps/controllerrevisions" => self.revisions.update(seen),
            _ => {}
        }
    }

    /// The pods that an owner controls.
    pub(super) fn pods_of<'a>(&'a self, owner: &str) -> impl Iterator<Item = (&'a ObjectKey, &'a PodView)> {
        let keys = self.pods_by_owner.get(owner).into_iter().flatten();
        keys.filter_map(|key| self.pods.get_key_value(key))
    }

    /// The pods of a namespace.
    pub(super) fn pods_in<'a>(
        &'a self,
        namespace: &str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a PodView)> {
        let namespace: Arc<str> = namespace.into();
        let first = ObjectKey { namespace: namespace.clone(), name: "".into() };
        self.pods.range(first..).take_while(move |(key, _)| key.namespace == namespace)
    }

    fn forget_pod(&mut self, key: &ObjectKey) {
        let Some(pod) = self.pods.remove(key) else { return };
        match &pod.owner {
            Some(owner) => remove_from(&mut self.pods_by_owner, owner, key),
            None => _ = self.orphans.remove(key),
        }
        if !pod.node.is_empty() && !pod.over {
            self.charge(&pod, -1);
        }
    }

    fn add_pod(&mut self, key: &ObjectKey, object: &Value) {
        let pod = pod_view(object);
        match &pod.owner {
            Some(owner) => _ = self.pods_by_owner.entry(owner.clone()).or_default().insert(key.clone()),
            None => _ = self.orphans.insert(key.clone()),
        }
        if !pod.node.is_empty() && !pod.over {
            self.charge(&pod, 1);
        }
        self.pods.insert(key.clone(), pod);
    }

    fn charge(&mut self, pod: &PodView, sign: i128) {
        let used = self.used.entry(pod.node.clone()).or_default();
        for (resource, amount) in &pod.requests {
            *used.entry(resource.clone()).or_default() += sign * amount;
        }
    }
}

fn ready_since(pod: &Value) -> Option<Timestamp> {
    let conditions = at(pod, "/status/conditions").and_then(Value::as_array)?;
    let ready = conditions.iter().find(|condition| text(condition, "/type") == "Ready")?;
    text(ready, "/lastTransitionTime").parse().ok()
}

fn remove_from(index: &mut BTreeMap<Arc<str>, BTreeSet<ObjectKey>>, owner: &Arc<str>, key: &ObjectKey) {
    if let Some(keys) = index.get_mut(owner) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(owner);
        }
    }
}

fn pod_view(object: &Value) -> PodView {
    let phase = text(object, "/status/phase");
    PodView {
        uid: text(object, "/metadata/uid").into(),
        labels: at(object, "/metadata/labels").cloned().unwrap_or_default(),
        address: text(object, "/status/podIP").into(),
        owner: controller_of(object).map(|owner| text(owner, "/uid").into()),
        node: text(object, "/spec/nodeName").into(),
        over: matches!(phase, "Succeeded" | "Failed"),
        ready: condition_is_true(object, "Ready"),
        ready_since: ready_since(object),
        deleting: deleting(object),
        created: text(object, "/metadata/creationTimestamp").into(),
        requests: pod_requests(object),
    }
}

/// What a pod asks for: the sum of its containers and side-cars, or the greatest of its other init containers on
/// top of the side-cars started before, whichever is more; overhead; and one of `pods`.
pub(super) fn pod_requests(pod: &Value) -> Amounts {
    pod_amounts(pod, "requests")
}

/// The same for its `requests` or its `limits`.
pub(crate) fn pod_amounts(pod: &Value, part: &str) -> Amounts {
    let list = |name: &str| at(pod, &format!("/spec/{name}")).and_then(Value::as_array).into_iter().flatten();
    let mut running = Amounts::new();
    for container in list("containers") {
        add(&mut running, &amounts(at(container, &format!("/resources/{part}"))));
    }
    let mut sidecars = Amounts::new();
    let mut initial = Amounts::new();
    for container in list("initContainers") {
        let own = amounts(at(container, &format!("/resources/{part}")));
        let mut together = sidecars.clone();
        add(&mut together, &own);
        if text(container, "/restartPolicy") == "Always" {
            sidecars = together.clone();
        }
        greatest(&mut initial, &together);
    }
    add(&mut running, &sidecars);
    greatest(&mut running, &initial);
    add(&mut running, &amounts(at(pod, "/spec/overhead")));
    running.insert("pods".into(), 1000);
    running
}

fn amounts(quantities: Option<&Value>) -> Amounts {
    let pairs = quantities.and_then(Value::as_object).into_iter().flatten();
    pairs
        .filter_map(|(name, quantity)| {
            let written = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
            Some((name.as_str().into(), quantity::parse(&written)?))
        })
        .collect()
}

fn add(into: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        *into.entry(name.clone()).or_default() += amount;
    }
}

fn greatest(into: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = into.entry(name.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}

fn node_view(object: &Value) -> NodeView {
    NodeView {
        allocatable: amounts(at(object, "/status/allocatable")),
        simulated: at(object, "/metadata/annotations/sandbox.portolan.dev~1simulated").is_some(),
        object: Arc::new(object.clone()),
    }
}

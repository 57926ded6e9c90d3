//! Nodes that take the same pods, and what is free on them.

use super::nodes::{Known, Place};
use super::resources::Free;
use crate::capacity::shape::{HOSTNAME, SingleNodes};
use crate::capacity::{LeftOut, NodeFacts, NodeGroup, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// Stands for all names that no shape asks about.
const ANY_OTHER: &str = "\u{0}";

/// Nodes that no known shape can tell apart but by their room.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) key: String,
    traits: NodeFacts,
    /// How many nodes have exactly this free.
    pub(super) free: BTreeMap<Free, u32>,
    pub(super) nodes: usize,
}

impl Class {
    /// Why its nodes do not take the shape, if they do not.
    pub(super) fn refuses(&self, shape: &Shape) -> Option<&'static str> {
        self.traits.refuses(shape)
    }

    /// Whether its nodes take pods, if not every pod.
    pub(super) fn is_in_use(&self) -> bool {
        self.traits.ready && !self.traits.cordoned && self.traits.left_out.is_none()
    }
}

/// All classes of a cluster. Only labels and names that some shape has asked about tell classes apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    all: Vec<Class>,
    by_key: BTreeMap<String, usize>,
    labels: BTreeSet<String>,
    named: SingleNodes,
}

impl Classes {
    /// Takes what a shape asks about to matter; answers whether that makes the present classes too coarse.
    pub(super) fn learn(&mut self, shape: &Shape) -> bool {
        let labels = self.labels.len();
        self.labels.extend(shape.labels().iter().cloned());
        self.named.extend(shape.nodes()) || self.labels.len() > labels
    }

    /// Whether what a shape asks about matters already.
    pub(super) fn knows(&self, shape: &Shape) -> bool {
        shape.labels().is_subset(&self.labels) && {
            let (asks, known) = (shape.nodes(), &self.named);
            (known.by_hostname || !asks.by_hostname)
                && (known.all || !asks.all)
                && asks.hostnames.is_subset(&known.hostnames)
                && asks.names.is_subset(&known.names)
        }
    }

    /// Forgets what matters, and all classes.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Forgets all classes, not what matters.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.by_key.clear();
    }

    /// The class of a node.
    pub(super) fn of(&mut self, name: &str, node: &Known) -> usize {
        let traits = &node.traits;
        let labels = traits.labels.iter().filter(|(key, _)| self.labels.contains(*key));
        let mut labels: BTreeMap<_, _> = labels.map(|(key, value)| (key.clone(), value.clone())).collect();
        if let Some(hostname) = node.hostname.as_deref().filter(|_| self.named.by_hostname) {
            let asked = self.named.all || self.named.hostnames.contains(hostname);
            labels.insert(HOSTNAME.to_owned(), if asked { hostname } else { ANY_OTHER }.to_owned());
        }
        let asked = self.named.all || self.named.names.contains(name);
        let facts = NodeFacts {
            name: if asked { name } else { ANY_OTHER }.to_owned(),
            ready: traits.ready,
            cordoned: traits.cordoned,
            left_out: traits.left_out,
            taints: traits.taints.clone(),
            labels,
            group: traits.told_labels.clone().map(|told_labels| NodeGroup { nodes: 1, told_labels }),
            ..NodeFacts::default()
        };
        let left_out = facts.left_out.map(LeftOut::why);
        let key = [facts.ready, facts.cordoned];
        let told = traits.told_labels.as_deref();
        let key =
            serde_json::json!([key, left_out, facts.taints, facts.labels, facts.name, told]).to_string();
        if let Some(known) = self.by_key.get(&key) {
            return *known;
        }
        self.by_key.insert(key.clone(), self.all.len());
        self.all.push(Class { key, traits: facts, free: BTreeMap::new(), nodes: 0 });
        self.all.len() - 1
    }

    /// Counts nodes in.
    pub(super) fn add(&mut self, place: Place) {
        let class = &mut self.all[place.class];
        class.nodes += place.nodes as usize;
        *class.free.entry(place.free).or_insert(0) += place.nodes;
    }

    /// Counts nodes out.
    pub(super) fn remove(&mut self, place: &Place) {
        let class = &mut self.all[place.class];
        class.nodes -= place.nodes as usize;
        if let Some(count) = class.free.get_mut(&place.free) {
            *count -= place.nodes;
            if *count == 0 {
                class.free.remove(&place.free);
            }
        }
    }

    /// Whether most classes have no node any more.
    pub(super) fn is_stale(&self) -> bool {
        self.all.len() > 64 && self.all.iter().filter(|class| class.nodes == 0).count() * 2 > self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Class> {
        self.all.iter()
    }

    pub(super) fn get(&self, class: usize) -> &Class {
        &self.all[class]
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

//! Nodes that take the same pods, and what is free on them.

use super::resources::Free;
use crate::capacity::{NodeFacts, Shape};
use k8s_openapi::api::core::v1::Taint;
use std::collections::{BTreeMap, BTreeSet};

/// What decides which pods a node takes, apart from its name and its room. Nodes share it.
#[derive(Debug, PartialEq)]
pub(super) struct Traits {
    pub(super) ready: bool,
    pub(super) cordoned: bool,
    pub(super) taints: Vec<Taint>,
    /// The labels, without the one that is different on every node.
    pub(super) labels: BTreeMap<String, String>,
}

impl Traits {
    /// A text that is the same for equal traits.
    pub(super) fn key(&self) -> String {
        serde_json::json!([self.ready, self.cordoned, self.taints, self.labels]).to_string()
    }
}

/// Nodes that no known shape can tell apart but by their room.
#[derive(Debug)]
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
}

/// All classes of a cluster. Only labels that some shape has asked about tell classes apart.
#[derive(Debug, Default)]
pub(super) struct Classes {
    all: Vec<Class>,
    by_key: BTreeMap<String, usize>,
    labels: BTreeSet<String>,
}

impl Classes {
    /// Takes the labels that a shape asks about to matter; answers whether that makes the present classes too coarse.
    pub(super) fn learn(&mut self, shape: &Shape) -> bool {
        if shape.labels().is_subset(&self.labels) {
            return false;
        }
        self.labels.extend(shape.labels().iter().cloned());
        true
    }

    /// Forgets all classes, not which labels matter.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.by_key.clear();
    }

    /// The class of nodes with these traits.
    pub(super) fn of(&mut self, traits: &Traits) -> usize {
        let labels = traits.labels.iter().filter(|(key, _)| self.labels.contains(*key));
        let facts = NodeFacts {
            ready: traits.ready,
            cordoned: traits.cordoned,
            taints: traits.taints.clone(),
            labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
            ..NodeFacts::default()
        };
        let key = serde_json::json!([facts.ready, facts.cordoned, facts.taints, facts.labels]).to_string();
        if let Some(known) = self.by_key.get(&key) {
            return *known;
        }
        self.by_key.insert(key.clone(), self.all.len());
        self.all.push(Class { key, traits: facts, free: BTreeMap::new(), nodes: 0 });
        self.all.len() - 1
    }

    /// Counts a node in.
    pub(super) fn add(&mut self, class: usize, free: Free) {
        self.all[class].nodes += 1;
        *self.all[class].free.entry(free).or_insert(0) += 1;
    }

    /// Counts a node out.
    pub(super) fn remove(&mut self, class: usize, free: &Free) {
        let class = &mut self.all[class];
        class.nodes -= 1;
        if let Some(count) = class.free.get_mut(free) {
            *count -= 1;
            if *count == 0 {
                class.free.remove(free);
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

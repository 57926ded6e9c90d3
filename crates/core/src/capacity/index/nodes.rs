//! What is known of each node.

use super::pods::Pod;
use super::resources::{Free, Resources, clamp};
use crate::capacity::shape::HOSTNAME;
use crate::capacity::{Amounts, LeftOut, NodeFacts};
use k8s_openapi::api::core::v1::Taint;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What decides which pods a node takes, apart from its name and its room. Nodes share it.
#[derive(Debug, PartialEq)]
pub(super) struct Traits {
    pub(super) ready: bool,
    pub(super) cordoned: bool,
    pub(super) left_out: Option<LeftOut>,
    pub(super) taints: Vec<Taint>,
    /// The labels, without the one that is different on every node.
    pub(super) labels: BTreeMap<String, String>,
    /// The labels that are told, if not all are.
    pub(super) told_labels: Option<Arc<BTreeSet<String>>>,
}

impl Traits {
    /// A text that is the same for equal traits.
    pub(super) fn key(&self) -> String {
        let left_out = self.left_out.map(LeftOut::why);
        let told = self.told_labels.as_deref();
        serde_json::json!([self.ready, self.cordoned, left_out, self.taints, self.labels, told]).to_string()
    }
}

/// A node, or the name of one that pods are bound to and that is not known yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) known: Option<Known>,
    /// What its pods request, by slot: exact, so that taking away gives back what was there.
    pub(super) allocated: Box<[i128]>,
    pub(super) pods: usize,
    /// How many of its pods are being deleted.
    pub(super) leaving: usize,
}

/// A node that the cluster has.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) traits: Arc<Traits>,
    pub(super) hostname: Option<Arc<str>>,
    pub(super) allocatable: Arc<Amounts>,
    pub(super) offered: Arc<[i64]>,
    pub(super) class: usize,
    /// How many nodes it stands for: one, but for groups of a summary.
    pub(super) nodes: u32,
}

/// What decides about the room of a node, or of several that are alike.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) class: usize,
    pub(super) free: Free,
    pub(super) nodes: u32,
}

impl Known {
    /// Whether it takes pods in general. A taint with the name of a resource that it offers repels pods that do without the
    /// resource, and no others.
    pub(super) fn is_usable(&self) -> bool {
        let repels = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        let traits = &self.traits;
        traits.ready
            && !traits.cordoned
            && traits.left_out.is_none()
            && traits.taints.iter().filter(repels).all(|taint| self.allocatable.get(&taint.key) > 0)
    }
}

impl Node {
    /// What is free on it, and its class, if it is there.
    pub(super) fn place(&self) -> Option<Place> {
        let known = self.known.as_ref()?;
        let left = |(offered, taken): (&i64, &i128)| clamp(i128::from(*offered) - taken);
        let free = known.offered.iter().zip(&self.allocated).map(left).collect();
        Some(Place { class: known.class, free, nodes: known.nodes })
    }

    /// Whether it is there and ready.
    pub(super) fn is_ready(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.traits.ready)
    }

    /// Counts a pod in or out.
    pub(super) fn count(&mut self, pod: &Pod, times: i8) {
        let requests = &pod.requests.vector;
        if self.allocated.len() < requests.len() {
            self.allocated = vec![0; requests.len()].into();
        }
        for (allocated, milli) in self.allocated.iter_mut().zip(requests.iter()) {
            *allocated += i128::from(*milli) * i128::from(times);
        }
        self.pods = self.pods.wrapping_add_signed(isize::from(times));
        if pod.leaving {
            self.leaving = self.leaving.wrapping_add_signed(isize::from(times));
        }
    }
}

/// What many nodes have in common is kept once.
#[derive(Clone, Debug, Default)]
pub(super) struct Common {
    traits: BTreeMap<String, Arc<Traits>>,
    offers: BTreeMap<Amounts, (Arc<Amounts>, Arc<[i64]>)>,
}

impl Common {
    /// A node in its class, of which the caller must find out which it is.
    pub(super) fn know(&mut self, name: &Arc<str>, facts: NodeFacts, resources: &Resources) -> Known {
        let NodeFacts { allocatable, ready, cordoned, left_out, taints, mut labels, group, .. } = facts;
        let nodes = group.as_ref().map_or(1, |group| group.nodes);
        let told_labels = group.map(|group| group.told_labels);
        let hostname = labels
            .remove(HOSTNAME)
            .map(|hostname| if hostname == **name { Arc::clone(name) } else { hostname.into() });
        let traits = Traits { ready, cordoned, left_out, taints, labels, told_labels };
        let key = traits.key();
        let traits = Arc::clone(self.traits.entry(key).or_insert_with(|| Arc::new(traits)));
        let offer = self.offers.entry(allocatable.clone()).or_insert_with(|| {
            let vector = resources.vector(&allocatable);
            (Arc::new(allocatable), vector.into())
        });
        let (allocatable, offered) = (Arc::clone(&offer.0), Arc::clone(&offer.1));
        Known { traits, hostname, allocatable, offered, class: 0, nodes }
    }

    /// Forgets what no node has any more.
    pub(super) fn prune(&mut self, nodes: usize) {
        if self.traits.len() > 2 * nodes + 64 {
            self.traits.retain(|_, traits| Arc::strong_count(traits) > 1);
        }
        if self.offers.len() > 2 * nodes + 64 {
            self.offers.retain(|_, (amounts, _)| Arc::strong_count(amounts) > 1);
        }
    }

    /// Counts all offers in other slots.
    pub(super) fn revise(&mut self, resources: &Resources) {
        for (amounts, offered) in self.offers.values_mut() {
            *offered = resources.vector(amounts).into();
        }
    }

    /// An offer in the present slots.
    pub(super) fn offered(&self, allocatable: &Amounts) -> Option<Arc<[i64]>> {
        self.offers.get(allocatable).map(|(_, offered)| Arc::clone(offered))
    }
}

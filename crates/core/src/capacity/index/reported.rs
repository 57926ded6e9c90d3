//! A cluster of which no more is known than a summary of it.

use super::pods::{Revision, Workload};
use super::{ClusterIndex, ClusterSummary};
use crate::capacity::{Amounts, NodeFacts, Shape};
use k8s_openapi::api::core::v1::Taint;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a summary tells of a cluster in place of its nodes and of the pods on them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportedRoom {
    /// Groups of nodes, each as one node that has what is free on every one of them.
    pub groups: Vec<NodeFacts>,
    /// The cluster in numbers.
    pub totals: ClusterSummary,
    /// The labels that are told of nodes.
    pub told_labels: Arc<BTreeSet<String>>,
    /// How many nodes take pods and are in no group.
    pub omitted: usize,
    /// Which pods are counted: those of this version or an earlier one.
    pub pods_version: u64,
}

/// What a summary tells beside its groups.
#[derive(Debug)]
pub(super) struct Reported {
    pub(super) totals: ClusterSummary,
    told_labels: Arc<BTreeSet<String>>,
    pub(super) omitted: usize,
}

/// What is free on a node, and what it shares with others.
#[derive(Debug)]
pub struct NodeRoom<'a> {
    /// Its labels, without that of its host name.
    pub labels: &'a BTreeMap<String, String>,
    /// Its taints.
    pub taints: &'a [Taint],
    /// What it offers to pods.
    pub allocatable: &'a Amounts,
    /// What is left of that.
    pub free: Amounts,
}

impl ClusterIndex {
    /// Takes a summary in place of all nodes that were known; answers whether there may be more room. Pods on nodes that are
    /// not known take no room: those that are told have to be counted in the summary.
    pub fn set_reported(&mut self, room: ReportedRoom) -> bool {
        let ReportedRoom { groups, totals, told_labels, omitted, .. } = room;
        let named: BTreeSet<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        let gone: Vec<String> =
            self.node_names().filter(|name| !named.contains(name)).map(str::to_owned).collect();
        let mut freed = false;
        for name in &gone {
            freed |= self.remove_node(name);
        }
        for group in groups {
            freed |= self.set_node(group);
        }
        self.reported = Some(Arc::new(Reported { totals, told_labels, omitted }));
        self.nodes_listed();
        freed
    }

    /// Whether a pod is known to have a node.
    #[must_use]
    pub fn is_bound(&self, key: &str) -> bool {
        self.pods.get(key).is_some_and(|pod| pod.node.is_some())
    }

    /// What is free on each node that takes pods, if not every pod.
    pub fn rooms(&self) -> impl Iterator<Item = NodeRoom<'_>> {
        self.nodes.values().filter_map(move |node| {
            let (known, place) = (node.known.as_ref()?, node.place()?);
            let traits = &known.traits;
            let in_use = traits.ready && !traits.cordoned && traits.left_out.is_none();
            let free: Vec<i128> = place.free.iter().map(|milli| i128::from((*milli).max(0))).collect();
            in_use.then(|| NodeRoom {
                labels: &traits.labels,
                taints: &traits.taints,
                allocatable: &known.allocatable,
                free: self.resources.amounts(&free),
            })
        })
    }

    /// Whether all nodes and pods were told, and all of them that matters to a shape: of a summary, there may be more of everything.
    pub(super) fn is_all_known(&self, shape: &Shape) -> bool {
        let is_told = |reported: &Arc<Reported>| {
            reported.omitted == 0
                && shape.labels().is_subset(&reported.told_labels)
                && !shape.nodes().are_any()
        };
        self.is_listed() && self.reported.as_ref().is_none_or(is_told)
    }

    /// How many pods of a shape find the room of pods of the same workload that are to be replaced. On which nodes those are is not
    /// known of a summary, so that each makes room for one at most, and only if it was let onto nodes by the same rules.
    pub(super) fn replaced(&self, own: Option<&Workload>, revision: Revision, shape: &Shape) -> u32 {
        let Some(own) = own.filter(|_| self.reported.is_some()) else { return 0 };
        let same_nodes = own.reserved.as_ref().is_some_and(|(reserved, _)| {
            reserved.node_selector == shape.node_selector
                && reserved.node_terms == shape.node_terms
                && reserved.tolerations == shape.tolerations
        });
        if !same_nodes {
            return 0;
        }
        let need = self.resources.need(&shape.requests);
        let fits = |requests: u32| {
            self.requests.by_id(requests).is_some_and(|requests| need.times(&requests.vector) > 0)
        };
        let replaced = own.to_be_replaced(revision).filter(|(_, requests, _)| fits(*requests));
        replaced.map(|(_, _, pods)| pods).fold(0, u32::saturating_add)
    }
}

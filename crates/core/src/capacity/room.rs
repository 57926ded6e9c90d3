//! The free room of a cluster.

use super::amount::written;
use super::index::Exceeded;
use super::{Amounts, CPU, MEMORY, NodeFacts, PODS, PodFacts, PodShape};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is free on each node of a cluster: allocatable, less what its pods request, less what is reserved.
///
/// Counted node by node, which is simple and slow: tests hold [`super::ClusterIndex`] against it, which gives the same
/// answers without counting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterRoom {
    nodes: BTreeMap<String, NodeRoom>,
    /// All resources that nodes offer, in the order in which free amounts are compared.
    resources: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct NodeRoom {
    facts: NodeFacts,
    free: Amounts,
    /// Which of two nodes with the same free is taken first.
    rank: String,
}

impl ClusterRoom {
    /// Counts the room from what is known of the nodes and of the pods on them.
    #[must_use]
    pub fn count<'a>(
        nodes: impl IntoIterator<Item = &'a NodeFacts>,
        pods: impl IntoIterator<Item = &'a PodFacts>,
    ) -> Self {
        let free = |facts: &NodeFacts| (String::new(), facts.clone(), facts.allocatable.clone());
        let mut room = Self::of(nodes.into_iter().map(free));
        for pod in pods.into_iter().filter(|pod| !pod.finished) {
            if let Some(node) = pod.node.as_ref().and_then(|name| room.nodes.get_mut(name)) {
                node.free.add(&pod.requests, -1);
            }
        }
        room
    }

    /// The room on nodes of which it is known what is free, of each resource that counts. Of nodes with the same free,
    /// that of the highest rank is taken first.
    pub(super) fn of(nodes: impl IntoIterator<Item = (String, NodeFacts, Amounts)>) -> Self {
        let mut offered = BTreeSet::new();
        let room = |(rank, facts, free): (String, NodeFacts, Amounts)| {
            offered.extend(free.iter().map(|(name, _)| name.to_owned()));
            (facts.name.clone(), NodeRoom { facts, free, rank })
        };
        let nodes = nodes.into_iter().map(room).collect();
        let first = [CPU, MEMORY, PODS].map(str::to_owned);
        let rest = offered.into_iter().filter(|name| !first.contains(name));
        let resources = first.iter().cloned().chain(rest.collect::<Vec<_>>()).collect();
        Self { nodes, resources }
    }

    /// How many more pods of the shape fit, each on a single node.
    #[must_use]
    pub fn max_replicas(&self, shape: &PodShape) -> u32 {
        self.open_to(shape).map(|node| node.free.times(&shape.requests)).fold(0, u32::saturating_add)
    }

    /// Reserves room for up to `count` pods of the shape; answers for how many there was room.
    ///
    /// Which node each will get is not known yet: the estimate takes the node with the most free (CPU before memory
    /// before pods before the rest), as a scheduler that spreads would.
    pub fn reserve(&mut self, shape: &PodShape, count: u32) -> u32 {
        let resources = &self.resources;
        let free = |node: &NodeRoom| resources.iter().map(|name| node.free.get(name)).collect::<Vec<_>>();
        for reserved in 0..count {
            let roomiest = self
                .nodes
                .values_mut()
                .filter(|node| node.facts.refuses(shape).is_none() && node.free.times(&shape.requests) > 0)
                .max_by_key(|node| (free(node), node.rank.clone()));
            match roomiest {
                Some(node) => node.free.add(&shape.requests, -1),
                None => return reserved,
            }
        }
        count
    }

    /// All that is free on nodes that take pods of the shape.
    #[must_use]
    pub fn free(&self, shape: &PodShape) -> Amounts {
        let mut free = Amounts::default();
        for node in self.open_to(shape) {
            free.add(&node.free, 1);
        }
        free
    }

    /// Why not even one pod of the shape fits.
    #[must_use]
    pub fn shortage(&self, shape: &PodShape) -> Shortage {
        let mut refusals = BTreeMap::new();
        let mut largest = Amounts::default();
        let mut open = 0;
        for node in self.nodes.values() {
            match node.facts.refuses(shape) {
                Some(reason) => *refusals.entry(reason).or_insert(0) += 1,
                None => {
                    open += 1;
                    largest.raise_to(&node.free);
                }
            }
        }
        let lacking = |(name, need): (&str, i64)| (name.to_owned(), need, largest.get(name));
        let lacking = shape.requests.iter().map(lacking).filter(|(_, need, most)| need > most).collect();
        Shortage { nodes: self.nodes.len(), open, refusals, lacking, exceeded: Vec::new() }
    }

    fn open_to<'a>(&'a self, shape: &'a PodShape) -> impl Iterator<Item = &'a NodeRoom> {
        self.nodes.values().filter(|node| node.facts.refuses(shape).is_none())
    }
}

/// Why a cluster has no room, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    pub(super) nodes: usize,
    pub(super) open: usize,
    pub(super) refusals: BTreeMap<&'static str, usize>,
    /// Resources of which no node has enough: what is needed, and the most that any has.
    pub(super) lacking: Vec<(String, i64, i64)>,
    /// What is lacking of what may be used of the cluster.
    pub(super) exceeded: Vec<Exceeded>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes == 0 {
            return f.write_str("the cluster has no nodes");
        }
        let mut parts: Vec<_> = self
            .refusals
            .iter()
            .map(|(reason, count)| format!("{count} of {} nodes: {reason}", self.nodes))
            .collect();
        for (name, need, most) in self.lacking.iter().filter(|_| self.open > 0) {
            let (need, most) = (written(name, *need), written(name, (*most).max(0)));
            parts.push(format!(
                "a replica needs {name} {need} and the freest of {} nodes has {most}",
                self.open
            ));
        }
        for exceeded in &self.exceeded {
            parts.push(match exceeded {
                Exceeded::Closed(why) => why.clone(),
                Exceeded::Resource { name, need, left, hard } => {
                    let [need, left, hard] = [need, left, hard].map(|milli| written(name, *milli));
                    format!("a replica needs {name} {need} and {left} is left of the {hard} that the cluster offers")
                }
            });
        }
        if self.lacking.is_empty() && self.exceeded.is_empty() && self.open > 0 {
            parts.push(format!("none of {} nodes has all that a replica needs free at once", self.open));
        }
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(name: &str, milli_cpu: i64) -> NodeFacts {
        let mut allocatable = Amounts::of(CPU, milli_cpu);
        allocatable.set(PODS, 110_000);
        NodeFacts { name: name.into(), allocatable, ready: true, ..NodeFacts::default() }
    }

    fn shape(milli_cpu: i64) -> PodShape {
        let mut requests = Amounts::of(CPU, milli_cpu);
        requests.set(PODS, 1000);
        PodShape { requests, ..PodShape::default() }
    }

    fn running_on(name: &str, milli_cpu: i64) -> PodFacts {
        PodFacts { node: Some(name.into()), requests: shape(milli_cpu).requests, ..PodFacts::default() }
    }

    #[test]
    fn room_is_per_node_not_summed_over_the_cluster() {
        let room = ClusterRoom::count(&[node("a", 1500), node("b", 1500)], &[]);
        assert_eq!(room.max_replicas(&shape(1000)), 2, "3000m in all, but no third pod fits on a node");
    }

    #[test]
    fn bound_pods_take_room_until_they_finish() {
        let finished = PodFacts { finished: true, ..running_on("a", 1000) };
        let room = ClusterRoom::count(&[node("a", 2000)], &[running_on("a", 500), finished]);
        assert_eq!(room.max_replicas(&shape(500)), 3);
    }

    #[test]
    fn a_shortage_names_resource_need_and_what_is_there() {
        let mut cordoned = node("c", 8000);
        cordoned.cordoned = true;
        let room = ClusterRoom::count(&[node("a", 500), node("b", 700), cordoned], &[]);
        let text = room.shortage(&shape(1000)).to_string();
        assert_eq!(text, "1 of 3 nodes: cordoned; a replica needs cpu 1 and the freest of 2 nodes has 700m");
        assert_eq!(ClusterRoom::default().shortage(&shape(1)).to_string(), "the cluster has no nodes");
    }

    proptest! {
        #[test]
        fn reserving_takes_exactly_what_fits(sizes in proptest::collection::vec(0i64..8000, 0..8), need in 1i64..3000, count in 0u32..50) {
            let nodes: Vec<_> = sizes.iter().enumerate().map(|(i, size)| node(&format!("n{i}"), *size)).collect();
            let mut room = ClusterRoom::count(&nodes, &[]);
            let before = room.max_replicas(&shape(need));
            let reserved = room.reserve(&shape(need), count);
            prop_assert_eq!(reserved, count.min(before));
            prop_assert_eq!(room.max_replicas(&shape(need)), before - reserved);
        }
    }
}

//! Nodes in few groups, of each of which the least that is free on a node counts.

/// Nodes, and what is free on each of them at least.
#[derive(Clone, Debug)]
pub(super) struct Rooms {
    /// Which nodes these are.
    pub(super) nodes: Vec<usize>,
    /// What is free on every one of them, by resource.
    pub(super) free: Vec<i64>,
    /// What is not told of them, and the resource of which most is not.
    waste: (i128, usize),
}

/// The nodes of some groups in no more than `most` rooms, and at least one for each group: by group. `free` has what is free on each
/// node, and `scale` the most that any node has, by resource.
///
/// It begins with a room for each group, and divides that of which most is not told, until nothing is left to be told.
pub(super) fn divide(
    groups: Vec<Vec<usize>>,
    free: &[Vec<i64>],
    scale: &[i64],
    most: usize,
) -> Vec<Vec<Rooms>> {
    let mut all: Vec<(usize, Rooms)> =
        groups.into_iter().enumerate().map(|(group, nodes)| (group, Rooms::of(nodes, free, scale))).collect();
    let groups = all.len();
    while all.len() < most {
        // Of several that are equal, the first: the same cluster is always told in the same way.
        let largest = all.iter_mut().rev().max_by_key(|(_, rooms)| rooms.waste.0);
        let Some((group, rooms)) = largest.filter(|(_, rooms)| rooms.waste.0 > 0) else { break };
        let (group, (less, more)) = (*group, rooms.halves(free, scale));
        *rooms = less;
        all.push((group, more));
    }
    let mut divided = vec![Vec::new(); groups];
    for (group, rooms) in all {
        if let Some(of_group) = divided.get_mut(group) {
            of_group.push(rooms);
        }
    }
    for rooms in &mut divided {
        rooms.sort_by(|one, other| other.free.cmp(&one.free));
    }
    divided
}

impl Rooms {
    fn of(nodes: Vec<usize>, free: &[Vec<i64>], scale: &[i64]) -> Self {
        let of = |resource: usize| {
            let of_node =
                move |node: &usize| free.get(*node).and_then(|free| free.get(resource)).copied().unwrap_or(0);
            nodes.iter().map(of_node)
        };
        let least: Vec<i64> = (0..scale.len()).map(|resource| of(resource).min().unwrap_or(0)).collect();
        let untold = |(resource, (least, scale)): (usize, (&i64, &i64))| {
            let sum: i128 = of(resource).map(|free| i128::from(free) - i128::from(*least)).sum();
            (sum * 1_000_000 / i128::from((*scale).max(1)), resource)
        };
        let wastes: Vec<(i128, usize)> = least.iter().zip(scale).enumerate().map(untold).collect();
        let total = wastes.iter().map(|(waste, _)| waste).sum();
        let most = wastes.iter().rev().max_by_key(|(waste, _)| *waste).map_or(0, |(_, resource)| *resource);
        Self { nodes, free: least, waste: (total, most) }
    }

    /// The nodes with less of the resource of which most is not told, and those with more.
    fn halves(&self, free: &[Vec<i64>], scale: &[i64]) -> (Self, Self) {
        let resource = self.waste.1;
        let of = |node: &usize| free.get(*node).and_then(|free| free.get(resource)).copied().unwrap_or(0);
        let (least, greatest) = self.nodes.iter().fold((i64::MAX, i64::MIN), |(least, greatest), node| {
            (least.min(of(node)), greatest.max(of(node)))
        });
        let middle = least.midpoint(greatest);
        let (less, more) = self.nodes.iter().copied().partition(|node| of(node) <= middle);
        (Self::of(less, free, scale), Self::of(more, free, scale))
    }
}

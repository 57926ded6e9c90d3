//! The packing in numbers: resources by index, pods by size.

use super::{Left, LeftBecause, Limits};
use crate::capacity::Shape;
use crate::provision::{Demand, MachineType};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What machines cost and how large they are: price, CPU, memory, number. Compared in this order, added part by part.
pub(super) type Weight = [i128; 4];

pub(super) fn plus(one: &Weight, other: &Weight, times: u32) -> Weight {
    std::array::from_fn(|part| one[part] + other[part] * i128::from(times))
}

/// A machine type.
pub(super) struct Kind {
    /// What a new node has of each resource.
    pub(super) capacity: Vec<i64>,
    pub(super) weight: Weight,
    /// Whether it takes pods of each group at all.
    pub(super) takes: Vec<bool>,
}

/// Pods of the same shape.
pub(super) struct Group {
    pub(super) shape: Shape,
    pub(super) count: u32,
    /// What one pod needs of each resource.
    pub(super) need: Vec<i64>,
    /// How large one pod is beside the largest machines, in millionths of its scarcest resource; at least 1.
    pub(super) size: i128,
}

pub(super) struct Problem {
    pub(super) kinds: Vec<Kind>,
    /// The largest pods first.
    pub(super) groups: Vec<Group>,
    pub(super) limits: Limits,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Packing {
    /// How many machines of each kind.
    pub(super) machines: Vec<u32>,
    pub(super) weight: Weight,
    pub(super) placed: u32,
    /// How many pods of each group have no machine.
    pub(super) left: Vec<u32>,
}

impl Packing {
    /// Whether it holds more pods than the other one, or as many for less.
    pub(super) fn is_better_than(&self, other: &Self) -> bool {
        (Reverse(self.placed), self.weight) < (Reverse(other.placed), other.weight)
    }

    pub(super) fn nodes(&self) -> u32 {
        self.machines.iter().sum()
    }

    pub(super) fn cost(&self) -> u64 {
        u64::try_from(self.weight[0]).unwrap_or(u64::MAX)
    }
}

impl Problem {
    pub(super) fn of(types: &[MachineType], demand: &Demand, limits: Limits) -> Self {
        let needed = |(shape, _): (&Shape, u32)| {
            shape
                .requests
                .iter()
                .filter(|(_, milli)| *milli > 0)
                .map(|(name, _)| name.to_owned())
                .collect::<Vec<_>>()
        };
        let resources: BTreeSet<String> = demand.iter().flat_map(needed).collect();
        let amounts =
            |of: &crate::capacity::Amounts| resources.iter().map(|name| of.get(name).max(0)).collect();
        let largest: Vec<i64> = resources
            .iter()
            .map(|name| types.iter().map(|each| each.node.allocatable.get(name)).max().unwrap_or(0).max(1))
            .collect();
        let mut groups: Vec<Group> = demand
            .iter()
            .map(|(shape, count)| {
                let need: Vec<i64> = amounts(&shape.requests);
                let share = |(need, most): (&i64, &i64)| i128::from(*need) * 1_000_000 / i128::from(*most);
                let size = need.iter().zip(&largest).map(share).max().unwrap_or(0).max(1);
                Group { shape: shape.clone(), count, need, size }
            })
            .collect();
        groups.sort_by_key(|group| (Reverse(group.size), Reverse(group.need.clone())));
        let kinds = types
            .iter()
            .map(|each| {
                let allocatable = &each.node.allocatable;
                let part = |name| i128::from(allocatable.get(name).max(0));
                Kind {
                    capacity: amounts(allocatable),
                    weight: [
                        i128::from(each.price),
                        part(crate::capacity::CPU),
                        part(crate::capacity::MEMORY),
                        1,
                    ],
                    takes: groups.iter().map(|group| each.node.refuses(&group.shape).is_none()).collect(),
                }
            })
            .collect();
        Self { kinds, groups, limits }
    }

    pub(super) fn pods(&self) -> u32 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.count))
    }

    /// How many machines of the kind may still be added to those of this weight.
    pub(super) fn affordable(&self, kind: usize, nodes: u32, weight: &Weight) -> u32 {
        let nodes = self.limits.nodes.saturating_sub(nodes);
        let price = self.kinds[kind].weight[0];
        match self.limits.cost {
            Some(limit) if price > 0 => {
                let left = (i128::from(limit) - weight[0]).max(0) / price;
                nodes.min(u32::try_from(left).unwrap_or(u32::MAX))
            }
            _ => nodes,
        }
    }

    /// How many more pods of the group fit in what is free on a machine of the kind.
    pub(super) fn fits(&self, kind: usize, group: usize, free: &[i64]) -> u32 {
        if !self.kinds[kind].takes[group] {
            return 0;
        }
        let needs = self.groups[group].need.iter().zip(free).filter(|(need, _)| **need > 0);
        let times = needs.map(|(need, free)| u32::try_from(free / need).unwrap_or(u32::MAX));
        times.min().unwrap_or(u32::MAX)
    }

    /// Takes room for pods of the group.
    pub(super) fn occupy(&self, group: usize, pods: u32, free: &mut [i64]) {
        for (free, need) in free.iter_mut().zip(&self.groups[group].need) {
            *free -= need * i64::from(pods);
        }
    }

    /// Why each pod without a machine has none.
    pub(super) fn left(&self, types: &[MachineType], packing: &Packing) -> Vec<Left> {
        let left = self.groups.iter().enumerate().zip(&packing.left).filter(|(_, pods)| **pods > 0);
        let why = |((index, group), pods): ((usize, &Group), &u32)| {
            let held =
                (0..self.kinds.len()).any(|kind| self.fits(kind, index, &self.kinds[kind].capacity) > 0);
            let because = if !held {
                LeftBecause::NoMachineType { lacking: lacking(types, &group.shape) }
            } else if packing.nodes() >= self.limits.nodes {
                LeftBecause::NodeLimit
            } else {
                LeftBecause::CostLimit
            };
            Left { shape: group.shape.clone(), pods: *pods, because }
        };
        left.map(why).collect()
    }
}

/// The resources that no machine type has enough of for one pod.
fn lacking(types: &[MachineType], shape: &Shape) -> Vec<(String, i64, i64)> {
    let most = |name: &str| types.iter().map(|each| each.node.allocatable.get(name)).max().unwrap_or(0);
    let compared = shape.requests.iter().map(|(name, need)| (name.to_owned(), need, most(name)));
    compared.filter(|(_, need, most)| need > most).collect()
}

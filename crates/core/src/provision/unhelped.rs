//! Pods that a new node did not help: no more nodes are bought for them for some time.
//!
//! What a machine type is declared to offer may differ from what its nodes have: less is left for pods, a device comes
//! late, a taint stays. Pods that fit the declared type then wait beside a node that has room for them by what is
//! declared. That a further node would help them is not to be expected.

use super::bins::Bin;
use super::retry::MOST_RETRY;
use super::step::Step;
use super::{ClusterSnapshot, Demand, Left, LeftBecause, NodeSnapshot, Record, Unhelped};
use crate::capacity::{Amounts, Shape};
use crate::time::{after, has_passed};
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;

/// Pods are expected to find a node within this time.
pub(super) const HELPS: Duration = Duration::from_secs(120);

impl Record {
    /// What the pods request for which no node is bought now, and until when.
    pub(super) fn unhelped(&self, now: Timestamp) -> Vec<(Amounts, Timestamp)> {
        let blocked =
            |each: &Unhelped| Some((each.requests.clone(), each.until.filter(|until| *until > now)?));
        self.unhelped.iter().filter_map(blocked).collect()
    }
}

/// The pods for which nodes may be bought, and the others.
pub(super) fn split(unhelped: &[(Amounts, Timestamp)], demand: &Demand) -> (Demand, Vec<Left>) {
    let (mut open, mut left) = (Demand::default(), Vec::new());
    for (shape, pods) in demand.iter() {
        match unhelped.iter().find(|(requests, _)| *requests == shape.requests) {
            Some((_, until)) => {
                let because = LeftBecause::NodesDidNotHelp { until: *until };
                left.push(Left { shape: shape.clone(), pods, because });
            }
            None => open.add(shape, pods),
        }
    }
    (open, left)
}

impl Step<'_> {
    /// Takes note of pods that wait beside a little used node that should hold them.
    pub(super) fn note_unhelped(&mut self, own: &ClusterSnapshot) {
        let now = self.now;
        let mut nodes: Vec<(&NodeSnapshot, Bin, bool)> = Vec::new();
        for (name, seen) in &own.pools {
            let (Some(pool), Some(machine_type)) =
                (self.plan.record.pools.get(name), self.settings.machine_type(name))
            else {
                continue;
            };
            for (machine, since) in pool.little_used.iter().filter(|(name, _)| !pool.removing.contains(*name))
            {
                if let Some(node) = seen.machines.get(machine).and_then(|machine| machine.node.as_ref()) {
                    nodes.push((
                        node,
                        node.declared(Bin::new(machine_type)),
                        has_passed(Some(*since), HELPS, now),
                    ));
                }
            }
        }
        // A node with such a pod has helped.
        let holds = |shape: &Shape, (node, bin, _): &&(&NodeSnapshot, Bin, bool)| {
            bin.facts.refuses(shape).is_none()
                && bin.free.times(&shape.requests) > 0
                && node.pods.iter().all(|pod| pod.shape != *shape)
        };
        let before = std::mem::take(&mut self.plan.record.unhelped);
        let (mut after_all, open): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|each| each.until.is_some_and(|until| until > now));
        for (shape, _) in self.snapshot.demand.iter() {
            if after_all.iter().any(|each| each.requests == shape.requests) {
                continue;
            }
            let known = open.iter().find(|each| each.requests == shape.requests);
            let beside = nodes.iter().any(|node| holds(shape, &node));
            let began = known.filter(|known| beside || known.until.is_some()).cloned();
            let fresh = || Unhelped { requests: shape.requests.clone(), since: now, times: 0, until: None };
            let Some(mut entry) = began.or_else(|| beside.then(fresh)) else { continue };
            let settled = nodes.iter().filter(|(_, _, settled)| *settled).any(|node| holds(shape, &node));
            if settled && has_passed(Some(entry.since), HELPS, now) {
                let times = 1u32.checked_shl(entry.times).unwrap_or(MOST_RETRY).min(MOST_RETRY);
                entry.until = Some(after(now, self.settings.retry_after.saturating_mul(times)));
                entry.times = entry.times.saturating_add(1);
            }
            after_all.push(entry);
        }
        let next: Vec<Timestamp> = after_all
            .iter()
            .map(|each| each.until.filter(|until| *until > now).unwrap_or_else(|| after(each.since, HELPS)))
            .filter(|at| *at > now)
            .collect();
        for at in next {
            self.wake(at);
        }
        self.plan.record.unhelped = after_all;
    }
}

impl NodeSnapshot {
    /// What would be free on this node if it offered what is declared.
    pub(super) fn declared(&self, mut bin: Bin) -> Bin {
        for pod in &self.pods {
            bin.free.add(&pod.shape.requests, -1);
        }
        bin.free = bin.free.not_below_zero();
        bin
    }
}

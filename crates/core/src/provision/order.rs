//! Several provisioners: which of them makes room for what.

use super::bins::fill;
use super::limits::limits;
use super::obstacle::is_stuck;
use super::retry::FAILURE_GRACE;
use super::size::coming;
use super::unhelped::split;
use super::{
    Bin, Demand, Ending, Left, Limits, MachineType, MemberState, Record, Settings, Snapshot, Waiting, choose,
};
use crate::capacity::Amounts;
use crate::time::{has_passed, whole_seconds};
use k8s_openapi::jiff::Timestamp;
use portolan_api::cloudprovisioner::ProvisionerPreference;
use std::collections::BTreeMap;
use std::time::Duration;

/// What one provisioner could do.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The name of the CloudProvisioner.
    pub name: String,
    /// Whether it can be used now: it is not paused, not being deleted, and no failure makes it wait.
    pub available: bool,
    /// The machine types that can be tried now.
    pub machine_types: Vec<MachineType>,
    /// What it may still add.
    pub limits: Limits,
    /// The room on its nodes that are on their way.
    pub coming: Vec<Bin>,
    /// What the pods request for which it buys no node now, and until when.
    pub unhelped: Vec<(Amounts, Timestamp)>,
    /// What its cluster costs per hour beside nodes, if there is none yet, in millionths.
    pub cluster_price: u64,
    /// The round-trip times from its region to other clusters, as far as they are known.
    pub rtt: BTreeMap<String, Duration>,
}

impl Offer {
    /// What a provisioner could do. The demand of the snapshot makes no difference.
    #[must_use]
    pub fn of(
        name: &str,
        settings: &Settings,
        record: &Record,
        snapshot: &Snapshot,
        rtt: BTreeMap<String, Duration>,
        now: Timestamp,
    ) -> Self {
        let now = whole_seconds(now);
        let stuck = is_stuck(settings, record, snapshot);
        let usable = match &record.cluster {
            None => record.retry_at.is_none_or(|at| at <= now) && !stuck && snapshot.rival.is_none(),
            Some(cluster) => match cluster.ending {
                None => !stuck && !has_passed(record.silent_since, FAILURE_GRACE, now),
                Some((ending, _)) => {
                    ending == Ending::Unused && matches!(snapshot.member, MemberState::Joined { .. })
                }
            },
        };
        let retried = |each: &&MachineType| {
            record.pools.get(&each.name).and_then(|pool| pool.retry_at).is_none_or(|at| at <= now)
        };
        Self {
            name: name.to_owned(),
            available: usable && !settings.paused && !settings.deleting,
            machine_types: settings.machine_types.iter().filter(retried).cloned().collect(),
            limits: limits(settings, record, snapshot),
            coming: coming(settings, record, snapshot, now).bins,
            unhelped: record.unhelped(now),
            cluster_price: if record.cluster.is_none() { settings.cluster_price } else { 0 },
            rtt,
        }
    }
}

/// Which provisioner makes room for what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    /// The pods of each provisioner, by its name.
    pub demands: BTreeMap<String, Demand>,
    /// The pods that no provisioner takes.
    pub left: Demand,
    /// Why each provisioner that was asked did not take them.
    pub refusals: BTreeMap<String, Vec<Left>>,
}

/// The preference of all provisioners together: the cheapest first only if all say so.
#[must_use]
pub fn preference(all: impl IntoIterator<Item = ProvisionerPreference>) -> ProvisionerPreference {
    let mut all = all.into_iter().peekable();
    let cheapest = all.peek().is_some() && all.all(|each| each == ProvisionerPreference::CheapestFirst);
    if cheapest { ProvisionerPreference::CheapestFirst } else { ProvisionerPreference::NearestFirst }
}

/// Divides what waits over the provisioners. Nodes that are on their way are used first, wherever they are: what was
/// begun with one provisioner is not begun with another one.
#[must_use]
pub fn assign(preference: ProvisionerPreference, waiting: &[Waiting], offers: &[Offer]) -> Assignment {
    let mut open: Vec<Offer> = offers.iter().filter(|offer| offer.available).cloned().collect();
    let mut assignment = Assignment::default();
    let mut groups: BTreeMap<Option<&str>, Demand> = BTreeMap::new();
    for each in waiting.iter().filter(|each| each.to_cloud) {
        groups.entry(each.near.as_deref()).or_default().add(&each.shape, each.replicas);
    }
    for (near, group) in &mut groups {
        open.sort_by_key(|offer| (offer.distance(*near), offer.name.clone()));
        for offer in &mut open {
            let (open, unhelped) = split(&offer.unhelped, group);
            let mut rest = fill(&mut offer.coming, &open);
            rest.extend(&unhelped.into_iter().map(|left| (left.shape, left.pods)).collect());
            assignment.give(&offer.name, group, &rest);
            *group = rest;
        }
    }
    for (near, mut group) in groups {
        sort(preference, near, &group, &mut open);
        for offer in &mut open {
            if group.is_empty() {
                break;
            }
            let rest = offer.take(&group);
            let left: Demand = rest.iter().map(|left| (left.shape.clone(), left.pods)).collect();
            assignment.give(&offer.name, &group, &left);
            if !rest.is_empty() {
                assignment.refusals.entry(offer.name.clone()).or_default().extend(rest);
            }
            group = left;
        }
        assignment.left.extend(&group);
    }
    assignment
}

fn sort(preference: ProvisionerPreference, near: Option<&str>, group: &Demand, offers: &mut [Offer]) {
    match preference {
        ProvisionerPreference::NearestFirst => {
            offers.sort_by_key(|offer| (offer.distance(near), offer.name.clone()));
        }
        ProvisionerPreference::CheapestFirst => offers.sort_by_cached_key(|offer| {
            let (open, unhelped) = split(&offer.unhelped, group);
            let chosen = choose(&offer.machine_types, &open, offer.limits);
            let left: u32 = chosen.left.iter().chain(&unhelped).map(|left| left.pods).sum();
            let cost = chosen.cost.saturating_add(offer.cluster_price);
            (left, cost, offer.distance(near), offer.name.clone())
        }),
    }
}

impl Offer {
    /// How far it is; what is not known is farthest.
    fn distance(&self, near: Option<&str>) -> Duration {
        near.and_then(|near| self.rtt.get(near)).copied().unwrap_or(Duration::MAX)
    }

    /// Takes as many pods as it has limits for; answers the others.
    fn take(&mut self, demand: &Demand) -> Vec<Left> {
        let (open, unhelped) = split(&self.unhelped, demand);
        let unfilled = fill(&mut self.coming, &open);
        let chosen = choose(&self.machine_types, &unfilled, self.limits);
        let nodes: u32 = chosen.count.values().sum();
        self.limits.nodes = self.limits.nodes.saturating_sub(nodes);
        self.limits.cost = self.limits.cost.map(|cost| cost.saturating_sub(chosen.cost));
        if nodes > 0 {
            self.cluster_price = 0;
        }
        let mut taken = unfilled;
        for left in &chosen.left {
            taken.take(&left.shape, left.pods);
        }
        let count = |each: &MachineType| chosen.count.get(&each.name).copied().unwrap_or(0) as usize;
        let mut bins: Vec<Bin> = self
            .machine_types
            .iter()
            .flat_map(|each| std::iter::repeat_n(Bin::new(each), count(each)))
            .collect();
        // What the search packs tighter than this is not offered to others a second time.
        if fill(&mut bins, &taken).is_empty() {
            self.coming.append(&mut bins);
        }
        chosen.left.into_iter().chain(unhelped).collect()
    }
}

impl Assignment {
    /// Gives a provisioner what it took of the pods.
    fn give(&mut self, name: &str, pods: &Demand, left: &Demand) {
        let mut taken = pods.clone();
        for (shape, pods) in left.iter() {
            taken.take(shape, pods);
        }
        if !taken.is_empty() {
            self.demands.entry(name.to_owned()).or_default().extend(&taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{machine, shape};
    use super::*;
    use ProvisionerPreference::{CheapestFirst, NearestFirst};

    fn offer(name: &str, price: u64, nodes: u32, rtt_ms: u64) -> Offer {
        Offer {
            name: name.into(),
            available: true,
            machine_types: vec![machine("small", 2000, 4096, price)],
            limits: Limits { nodes, cost: None },
            coming: Vec::new(),
            unhelped: Vec::new(),
            cluster_price: 0,
            rtt: BTreeMap::from([("rennes".into(), Duration::from_millis(rtt_ms))]),
        }
    }

    fn waiting(replicas: u32) -> Waiting {
        let workload = "MultiClusterDeployment/shop/web".into();
        Waiting { workload, shape: shape(1000, 100), replicas, to_cloud: true, near: Some("rennes".into()) }
    }

    fn pods(assignment: &Assignment) -> Vec<(&str, u32)> {
        assignment.demands.iter().map(|(name, demand)| (name.as_str(), demand.pods())).collect()
    }

    #[test]
    fn the_nearest_is_filled_first_or_the_cheapest() {
        let offers = [offer("far", 10, 9, 40), offer("near", 50, 2, 5)];
        let nearest = assign(NearestFirst, &[waiting(6)], &offers);
        assert_eq!(
            pods(&nearest),
            [("far", 2), ("near", 4)],
            "two nodes of two pods are all that near may have"
        );
        assert_eq!(nearest.refusals["near"][0].pods, 2);
        assert_eq!(pods(&assign(CheapestFirst, &[waiting(6)], &offers)), [("far", 6)]);
        let tight = [offer("far", 10, 1, 40), offer("near", 50, 2, 5)];
        let left = assign(CheapestFirst, &[waiting(9)], &tight);
        assert_eq!((pods(&left), left.left.pods()), (vec![("far", 2), ("near", 4)], 3));
    }

    #[test]
    fn a_provisioner_that_waits_after_a_failure_is_passed_over() {
        let failed = Offer { available: false, ..offer("near", 10, 9, 5) };
        let assignment = assign(NearestFirst, &[waiting(3)], &[failed, offer("far", 50, 9, 40)]);
        assert_eq!(pods(&assignment), [("far", 3)]);
        assert_eq!(assign(NearestFirst, &[waiting(3)], &[]).left.pods(), 3);
    }

    #[test]
    fn pods_that_nodes_of_one_did_not_help_are_given_to_the_next() {
        let blocked = vec![(shape(1000, 100).requests.clone(), Timestamp::MAX)];
        let near = Offer { unhelped: blocked, ..offer("near", 10, 9, 5) };
        let assignment = assign(NearestFirst, &[waiting(3)], &[near, offer("far", 50, 9, 40)]);
        assert_eq!(pods(&assignment), [("far", 3)]);
        assert_eq!(assignment.refusals["near"][0].because.reason(), "NodesDidNotHelp");
    }

    #[test]
    fn nodes_on_their_way_are_used_before_a_nearer_provisioner_begins() {
        let mut far = offer("far", 10, 9, 40);
        far.coming = vec![Bin::new(&far.machine_types[0])];
        let assignment = assign(NearestFirst, &[waiting(3)], &[far, offer("near", 50, 9, 5)]);
        assert_eq!(pods(&assignment), [("far", 2), ("near", 1)]);
    }

    #[test]
    fn the_price_of_a_new_cluster_counts() {
        let begun = offer("begun", 50, 9, 40);
        let new = Offer { cluster_price: 100, ..offer("new", 10, 9, 5) };
        assert_eq!(pods(&assign(CheapestFirst, &[waiting(2)], &[begun, new])), [("begun", 2)]);
    }

    #[test]
    fn the_cheapest_first_only_if_all_say_so() {
        assert_eq!(preference([CheapestFirst, CheapestFirst]), CheapestFirst);
        assert_eq!(preference([CheapestFirst, NearestFirst]), NearestFirst);
        assert_eq!(preference([]), NearestFirst);
    }
}

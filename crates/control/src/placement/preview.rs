//! What would be decided about a workload, by the decision of the controller.

mod adoption;
mod updates;

use super::facts::DeploymentFacts;
use super::observe::ClusterSnapshot;
use super::reconcile::Evaluated;
use super::{KIND, Placement, Workload};
use crate::capacity::{Book, Owner};
use crate::driver::{Declared, PreparedCopy, Problem, Reserved, open_to_trial, reserved, taken_over};
use crate::names::WORKLOAD_ID_ANNOTATION;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use portolan_api::MultiClusterDeployment;
use portolan_api::placement::{PlacementState, PlacementStatus};
use portolan_core::placement::{Account, Decision, Refusal, explain};
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;
use updates::{Update, spared, updates};

/// After so many decisions in a row, each on what the one before would have brought, the last one counts.
const ROUNDS: usize = 12;

/// What would be decided about a workload, and why.
#[derive(Debug)]
pub(crate) struct Outlook {
    /// How many replicas each cluster holds by what is recorded.
    pub(crate) before: BTreeMap<String, u32>,
    /// How many replicas run in clusters that the record does not name.
    pub(crate) unrecorded: BTreeMap<String, u32>,
    /// How many replicas run in clusters that are to hold none by what is recorded.
    pub(crate) being_removed: BTreeMap<String, u32>,
    /// How many replicas are ready in each cluster that has a copy, as last known.
    pub(crate) ready: BTreeMap<String, u32>,
    /// How many replicas the copy of each cluster is asked to run, as last known, whatever is recorded.
    pub(crate) running: BTreeMap<String, u32>,
    /// What was decided; what is asked for is more than what is placed if some are pending.
    pub(crate) decision: Result<Decision, Problem>,
    /// Every cluster's part in it.
    pub(crate) accounts: Vec<Account>,
    /// What other workloads hold in each cluster.
    pub(crate) reserved: BTreeMap<String, Reserved>,
    /// Clusters whose rolling update waits for room that its own old pods hold.
    pub(crate) waiting_updates: Vec<String>,
    /// ConfigMaps and Secrets that the template refers to and the hub does not have.
    pub(crate) missing: Vec<String>,
    /// The rescheduler that replicas wait for which only stand in where they are.
    pub(crate) rescheduler: Option<String>,
    /// Whether the workload is paused, so that nothing is done about it.
    pub(crate) paused: bool,
}

/// Answers what would be decided, on what the controller knows.
#[derive(Clone)]
pub(crate) struct Previews(pub(crate) Arc<Placement>);

impl Previews {
    /// The workload of the hub, if it is there.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Workload>> {
        self.0.base.objects.get(key)
    }

    /// What would be decided now about a workload of the hub.
    pub(crate) fn explain(&self, book: &mut Book, key: &Key, workload: &Workload) -> Outlook {
        self.outlook(book, key, workload, &BTreeMap::new())
    }

    /// What would be decided if this object were applied, and these clusters refused it, once everything has settled. From
    /// then on it is supposed to be placed so, for what is planned next.
    pub(crate) fn settle(
        &self,
        book: &mut Book,
        object: MultiClusterDeployment,
        refusing: &BTreeMap<String, Refusal>,
    ) -> (Workload, Outlook) {
        let (key, mut workload) = (Key::of(&object), Workload::of(object));
        let owner = Owner::new(KIND, &key);
        self.0.base.context.fleet.identities.resolve(&owner, &workload.identity);
        if self.awaits_adoption(&key, &workload).is_none() {
            match taken_over(&self.0.base, &key, &workload) {
                Ok(None) => {}
                Ok(Some(identity)) => {
                    let mut object = workload.object;
                    object.annotations_mut().insert(WORKLOAD_ID_ANNOTATION.to_owned(), identity);
                    workload = Workload::of(object);
                }
                Err(problem) => {
                    let outlook = self.undecided(book, &key, &workload, problem);
                    return (workload, outlook);
                }
            }
        }
        let first = self.outlook(book, &key, &workload, refusing);
        let ahead = self.updates_ahead(book, &key, &workload);
        book.suppose(owner.clone(), workload.reserved());
        let mut outlook = self.outlook(book, &key, &workload, refusing);
        for _ in 0..ROUNDS {
            let Ok(decision) = &outlook.decision else { break };
            let placements = self.placements(&workload, decision, &outlook.unrecorded);
            let status = workload.object.status.get_or_insert_default();
            let held = |all: &[PlacementStatus]| -> BTreeMap<String, i32> {
                let some = all.iter().filter(|each| each.replicas > 0);
                some.map(|each| (each.cluster.clone(), each.replicas)).collect()
            };
            let settled = held(&status.placements) == held(&placements);
            status.placements = placements;
            if settled {
                break;
            }
            book.suppose(owner.clone(), workload.reserved());
            outlook = self.outlook(book, &key, &workload, refusing);
        }
        outlook.before = first.before;
        outlook.unrecorded = first.unrecorded;
        outlook.being_removed = first.being_removed;
        outlook.reserved = first.reserved;
        let strategy = workload.object.spec.strategy.as_ref().map(|strategy| &strategy.0);
        let waits = |update: &Update| {
            let after =
                workload.held().find(|(name, _)| *name == update.cluster).map_or(0, |(_, after)| after);
            update.waits(strategy, i32::try_from(after).unwrap_or(i32::MAX))
        };
        outlook.waiting_updates = ahead.into_iter().filter(waits).map(|update| update.cluster).collect();
        (workload, outlook)
    }

    /// What the status would say of the placements after a decision.
    fn placements(
        &self,
        workload: &Workload,
        decision: &Decision,
        unrecorded: &BTreeMap<String, u32>,
    ) -> Vec<PlacementStatus> {
        let mut last =
            workload.object.status.as_ref().map(|status| status.placements.clone()).unwrap_or_default();
        let found = |cluster: &String| PlacementStatus { cluster: cluster.clone(), ..Default::default() };
        last.extend(unrecorded.keys().map(found));
        let mut next: Vec<PlacementStatus> = decision
            .placed
            .iter()
            .map(|(cluster, placed)| PlacementStatus {
                cluster: cluster.clone(),
                replicas: i32::try_from(placed.replicas).unwrap_or(i32::MAX),
                staying_replicas: i32::try_from(placed.staying()).unwrap_or(i32::MAX),
                cause: Some(placed.cause),
                substitute_for: Some(placed.stands_in_for.join(",")).filter(|names| !names.is_empty()),
                ..last.iter().find(|each| each.cluster == *cluster).cloned().unwrap_or_default()
            })
            .collect();
        for gone in last.into_iter().filter(|each| !decision.placed.contains_key(&each.cluster)) {
            let is_known = self
                .0
                .base
                .context
                .fleet
                .member(&gone.cluster)
                .is_some_and(|member| member.health.is_reachable());
            let state = if is_known { PlacementState::Removing } else { PlacementState::Unknown };
            next.push(PlacementStatus { replicas: 0, staying_replicas: 0, state, ..gone });
        }
        next.sort_by(|one, other| one.cluster.cmp(&other.cluster));
        next
    }

    /// What is told of a workload about which nothing is decided.
    fn undecided(&self, book: &Book, key: &Key, workload: &Workload, problem: Problem) -> Outlook {
        let before = workload.held().filter(|(_, count)| *count > 0);
        Outlook {
            before: before.map(|(name, count)| (name.to_owned(), count)).collect(),
            unrecorded: BTreeMap::new(),
            being_removed: BTreeMap::new(),
            ready: BTreeMap::new(),
            running: BTreeMap::new(),
            decision: Err(problem),
            accounts: Vec::new(),
            reserved: reserved(book, &Owner::new(KIND, key)),
            waiting_updates: Vec::new(),
            missing: self.missing(key, workload),
            rescheduler: self.0.awaited_rescheduler(key, workload),
            paused: workload.object.spec.paused,
        }
    }

    fn outlook(
        &self,
        book: &mut Book,
        key: &Key,
        workload: &Workload,
        refusing: &BTreeMap<String, Refusal>,
    ) -> Outlook {
        let mut outlook = self.undecided(book, key, workload, Problem::NotKnown);
        if let Some(problem) = self.awaits_adoption(key, workload) {
            outlook.decision = Err(problem);
            return outlook;
        }
        match self.0.consider(book, key, workload, refusing) {
            Evaluated::CacheNotSynced => {}
            Evaluated::Impossible(_, reason, why) => outlook.decision = Err(Problem::Undecided(reason, why)),
            Evaluated::Made { seen, wanted, decision, .. } => {
                let candidates: Vec<_> = seen.values().map(|each| each.candidate.clone()).collect();
                outlook.accounts = explain(&wanted, &candidates, &decision);
                for (cluster, sight) in seen.iter().filter(|(cluster, _)| updates(&decision, cluster)) {
                    // Somebody without pods there has no room: what the new pods need, the old ones hold.
                    let others = book.view(cluster, "", &wanted.shape).room.max_replicas;
                    let updating = sight.copy.as_ref().filter(|copy| copy.updated < copy.replicas);
                    let strategy = workload.object.spec.strategy.as_ref().map(|strategy| &strategy.0);
                    let holds = |copy: &DeploymentFacts| {
                        spared(strategy, copy.replicas) == 0
                            && copy.outdated.min(self.bound(book, key, workload, cluster)) > 0
                    };
                    if others == 0 && updating.is_some_and(|copy| holds(copy)) {
                        outlook.waiting_updates.push(cluster.clone());
                    }
                }
                for (cluster, copy) in
                    seen.iter().filter_map(|(name, seen)| Some((name, seen.copy.as_ref()?)))
                {
                    if copy.replicas <= 0 || outlook.before.contains_key(cluster) {
                        continue;
                    }
                    let left = if workload.is_in(cluster) {
                        &mut outlook.being_removed
                    } else {
                        &mut outlook.unrecorded
                    };
                    left.insert(cluster.clone(), u32::try_from(copy.replicas).unwrap_or(0));
                }
                let running =
                    |(cluster, seen): (&String, &ClusterSnapshot)| (cluster.clone(), seen.candidate.running);
                outlook.running = seen.iter().map(running).collect();
                outlook.ready = seen.iter().filter_map(|each| ready(workload, each)).collect();
                outlook.decision = Ok(decision);
            }
        }
        outlook
    }

    /// The copies that clusters would be asked to hold, or will be when a workload that is paused goes on. The template of one
    /// that has no cluster is tried in a few that are open to it.
    pub(crate) fn copies(
        &self,
        key: &Key,
        workload: &Workload,
        outlook: &Outlook,
    ) -> BTreeMap<String, PreparedCopy> {
        let Ok(decision) = &outlook.decision else { return BTreeMap::new() };
        let placed = decision.placed.iter().map(|(cluster, placed)| (cluster.clone(), placed.replicas));
        let mut placed: BTreeMap<String, u32> = placed.collect();
        if outlook.paused && placed.is_empty() {
            placed.extend(open_to_trial(&outlook.accounts).map(|cluster| (cluster, 1)));
        }
        let copy = |(cluster, replicas): (String, u32)| {
            let copy = self.prepare(key, workload, &cluster, replicas);
            (cluster, copy)
        };
        placed.into_iter().map(copy).collect()
    }

    fn prepare(&self, key: &Key, workload: &Workload, cluster: &str, replicas: u32) -> PreparedCopy {
        let member = self.0.base.context.fleet.member(cluster);
        let Some(member) = member.filter(|member| member.health.is_reachable()) else {
            return PreparedCopy::Unreachable;
        };
        let wanted = self.0.desired(workload, replicas);
        let copy = member.index::<Deployment>().get(key).filter(|copy| copy.meta.is_of(workload.uid()));
        if copy.as_ref().is_some_and(|copy| copy.meta.digest.as_deref() == Some(&wanted.digest)) {
            return PreparedCopy::Held;
        }
        PreparedCopy::ToApply { member, object: wanted.object, owned: copy.is_some() }
    }

    /// ConfigMaps and Secrets that must be there and are not.
    fn missing(&self, key: &Key, workload: &Workload) -> Vec<String> {
        if !self.0.base.context.sources.synced() {
            return Vec::new();
        }
        let missing = self.0.base.context.sources.missing(&key.namespace, &workload.references);
        let needed = missing.into_iter().filter(|(_, optional)| !optional);
        needed.map(|(reference, _)| reference.to_string()).collect()
    }
}

/// The ready replicas of a cluster's copy: as it says, or as it last said if it is silent.
fn ready(workload: &Workload, (cluster, seen): (&String, &ClusterSnapshot)) -> Option<(String, u32)> {
    let last = || {
        let mut all = workload.object.status.iter().flat_map(|status| &status.placements);
        all.find(|each| each.cluster == *cluster).map(|each| each.ready_replicas)
    };
    let count = match &seen.copy {
        Some(copy) if seen.is_known => Some(copy.ready),
        Some(copy) => last().or(Some(copy.ready)),
        None if seen.is_known => None,
        None => last(),
    };
    Some((cluster.clone(), u32::try_from(count?).unwrap_or(0)))
}

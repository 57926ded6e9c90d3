use super::*;
use crate::capacity::{PodShape, Room, Shortage};
use crate::placement::{CopySnapshot, Decision, Order, decide, transition};
use crate::reschedule::{
    Budgets, Record, Settings, WorkloadKey, WorkloadSnapshot, may_leave, plan, whereabouts,
};
use k8s_openapi::jiff::Timestamp;
use portolan_api::MultiClusterReschedulerStatus;
use portolan_api::placement::Placement;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// A workload of the model, with what it holds and what runs.
#[derive(Clone, Debug)]
struct Workload {
    request: PlacementRequest,
    placements: Vec<PlacementStatus>,
    copies: BTreeMap<String, CopySnapshot>,
    /// How many replicas were ready, once all were.
    reached: bool,
}

/// Clusters with so many slots for replicas, workloads, and a rescheduler.
#[derive(Clone, Debug)]
struct World {
    slots: BTreeMap<String, u32>,
    workloads: BTreeMap<WorkloadKey, Workload>,
    settings: Settings,
    status: MultiClusterReschedulerStatus,
    clock: i64,
    /// Whether no replica becomes ready at home.
    slow: bool,
    started: Vec<(WorkloadKey, i64)>,
}

fn request(replicas: u32, home: Option<&str>) -> PlacementRequest {
    let locations: Vec<String> = home.iter().map(|home| (*home).to_owned()).collect();
    let enable_substitution = home.is_some();
    PlacementRequest {
        shape: PodShape::default().into(),
        replicas,
        mode: ReplicasMode::PerLocation,
        weights: BTreeMap::new(),
        placement: Placement { locations, enable_substitution, ..Placement::default() },
        bursting: true,
    }
}

impl World {
    fn new(slots: &[(&str, u32)], workloads: &[(&str, PlacementRequest)]) -> Self {
        let key = |name: &str| WorkloadKey {
            kind: "MultiClusterDeployment".into(),
            namespace: "shop".into(),
            name: name.into(),
        };
        let workload = |request: &PlacementRequest| Workload {
            request: request.clone(),
            placements: Vec::new(),
            copies: BTreeMap::new(),
            reached: false,
        };
        Self {
            slots: slots.iter().map(|(name, slots)| ((*name).to_owned(), *slots)).collect(),
            workloads: workloads.iter().map(|(name, request)| (key(name), workload(request))).collect(),
            settings: Settings {
                interval: Duration::from_secs(30),
                minimum_stay: Duration::from_secs(120),
                room_stable_for: Duration::from_secs(30),
                margin: 10,
                move_timeout: Duration::from_secs(120),
                max_concurrent: 1,
                selector: None,
                dry_run: false,
                paused: false,
            },
            status: MultiClusterReschedulerStatus::default(),
            clock: 0,
            slow: false,
            started: Vec::new(),
        }
    }

    fn record(&self) -> Record {
        Record::of(&self.status)
    }

    /// What a workload holds or runs in a cluster, whichever is more.
    fn takes(workload: &Workload, cluster: &str) -> u32 {
        let held = workload.placements.iter().find(|placed| placed.cluster == cluster);
        let held = held.map_or(0, |placed| u32::try_from(placed.replicas).unwrap());
        held.max(workload.copies.get(cluster).map_or(0, |copy| copy.replicas))
    }

    fn candidates(&self, key: &WorkloadKey) -> Vec<Candidate> {
        let own = &self.workloads[key];
        let candidate = |(name, slots): (&String, &u32)| {
            let others = self.workloads.iter().filter(|(other, _)| *other != key);
            let taken: u32 = others.map(|(_, other)| Self::takes(other, name)).sum();
            let running = own.copies.get(name).map_or(0, |copy| copy.replicas);
            let held = own.placements.iter().find(|placed| placed.cluster == *name);
            let room = Room { max_replicas: slots.saturating_sub(taken + running), ..Room::default() };
            let reserved = held.map_or(0, |placed| u32::try_from(placed.replicas).unwrap());
            Candidate { room, bound: running, reserved, running, ..Candidate::default() }.at(|site| {
                site.name = name.clone();
                site.cloud = name.starts_with("cloud");
            })
        };
        self.slots.iter().map(candidate).collect()
    }

    /// One workload is decided, its room reserved, and its copies follow.
    fn place(&mut self, key: &WorkloadKey) {
        let mut candidates = self.candidates(key);
        let moves = self.record().moves;
        let workload = self.workloads.get_mut(key).unwrap();
        confine(&workload.request, &mut candidates, &workload.placements, moves.get(key));
        let decision = decide(&workload.request, &candidates, |_, _| Shortage::default()).unwrap();
        workload.placements = written(&decision);
        for (cluster, copy) in &mut workload.copies {
            let decided = decision.placed.get(cluster).map_or(0, |placed| placed.replicas);
            let leaves = copy.replicas.saturating_sub(decided);
            copy.stays = leaves > 0 && !may_leave(moves.get(key), cluster, leaves, Some(&Budgets::new()));
        }
        for (cluster, order) in transition(&decision, &workload.copies) {
            let ready = workload.copies.get(&cluster).map_or(0, |copy| copy.ready);
            match order {
                Order::Apply { replicas } | Order::Scale { replicas } => {
                    let copy = CopySnapshot {
                        replicas,
                        ready: ready.min(replicas),
                        lately_ready: ready.min(replicas),
                        current: true,
                        reachable: true,
                        ..CopySnapshot::default()
                    };
                    workload.copies.insert(cluster, copy);
                }
                Order::Delete => {
                    workload.copies.remove(&cluster);
                }
                Order::Keep => {}
            }
        }
    }

    fn snapshots(&self) -> BTreeMap<WorkloadKey, WorkloadSnapshot> {
        let snapshot = |(key, workload): (&WorkloadKey, &Workload)| {
            let ready = |cluster: &str| workload.copies.get(cluster).map_or(0, |copy| copy.ready);
            let mut placements = workload.placements.clone();
            for placed in &mut placements {
                placed.ready_replicas = i32::try_from(ready(&placed.cluster)).unwrap();
            }
            let (held, leaving, homes) = whereabouts(&workload.request, &self.candidates(key), &placements);
            let as_decided = |(cluster, copy): (&String, &CopySnapshot)| {
                held.get(cluster)
                    .is_some_and(|held| held.replicas == copy.replicas && held.ready == copy.replicas)
            };
            let settled = workload.copies.iter().all(as_decided)
                && held.keys().all(|name| workload.copies.contains_key(name));
            let budgets = self.slots.keys().map(|name| (name.clone(), Budgets::new())).collect();
            (
                key.clone(),
                WorkloadSnapshot { held, leaving, budgets, homes, settled, ..WorkloadSnapshot::default() },
            )
        };
        self.workloads.iter().map(snapshot).collect()
    }

    /// Ten seconds: the rescheduler plans, workloads are placed, replicas become ready.
    fn step(&mut self, written: bool) {
        self.clock += 10;
        let before = self.record().moves;
        let plan = plan(
            &self.settings,
            &self.record(),
            &self.snapshots(),
            Timestamp::from_second(self.clock).unwrap(),
        );
        if written {
            plan.write(&mut self.status);
            assert_eq!(self.record(), plan.record);
            let new = plan.record.moves.keys().filter(|key| !before.contains_key(*key));
            self.started.extend(new.map(|key| (key.clone(), self.clock)));
        }
        let keys: Vec<WorkloadKey> = self.workloads.keys().cloned().collect();
        for key in keys {
            self.place(&key);
        }
        self.check();
        for workload in self.workloads.values_mut() {
            for (cluster, copy) in &mut workload.copies {
                if !self.slow || cluster.starts_with("cloud") {
                    copy.ready = copy.replicas;
                }
            }
            let ready: u32 = workload.copies.values().map(|copy| copy.ready).sum();
            workload.reached |= ready >= workload.request.replicas;
        }
    }

    fn check(&self) {
        assert!(self.record().moves.len() <= self.settings.max_concurrent as usize);
        for (key, workload) in &self.workloads {
            let ready: u32 = workload.copies.values().map(|copy| copy.ready).sum();
            assert!(!workload.reached || ready >= workload.request.replicas, "{key:?} dips to {ready}");
        }
    }

    fn run(&mut self, seconds: i64) {
        (0..seconds / 10).for_each(|_| self.step(true));
    }

    fn held(&self, name: &str) -> Vec<(&str, i32)> {
        let workload = self.workloads.iter().find(|(key, _)| key.name == name).unwrap().1;
        let mut held: Vec<_> =
            workload.placements.iter().map(|placed| (placed.cluster.as_str(), placed.replicas)).collect();
        held.sort_unstable();
        held
    }

    fn staying(&self) -> Vec<&str> {
        self.status.staying.iter().map(|staying| staying.reason.as_str()).collect()
    }
}

fn written(decision: &Decision) -> Vec<PlacementStatus> {
    let placed = decision.placed.iter();
    let status = placed.map(|(cluster, placed)| PlacementStatus {
        cluster: cluster.clone(),
        replicas: i32::try_from(placed.replicas).unwrap(),
        cause: Some(placed.cause),
        substitute_for: placed.stands_in_for.first().cloned(),
        ..PlacementStatus::default()
    });
    status.collect()
}

#[test]
fn replicas_in_the_cloud_stay_until_the_rescheduler_lets_them_go() {
    let mut world = World::new(&[("home", 1), ("cloud1", 9)], &[("web", request(4, Some("home")))]);
    world.run(60);
    assert_eq!(world.held("web"), [("cloud1", 3), ("home", 1)]);
    world.slots.insert("home".into(), 9);
    world.run(50);
    assert_eq!(world.held("web"), [("cloud1", 3), ("home", 1)], "the minimum stay");
    world.run(60);
    assert_eq!(world.held("web"), [("home", 4)]);
    assert_eq!((world.status.moved, world.status.moving, world.started.len()), (1, 0, 1));
}

#[test]
fn a_workload_that_a_policy_put_in_the_cloud_comes_home_too() {
    let mut world = World::new(&[("a", 0), ("cloud1", 9)], &[("web", request(3, None))]);
    world.run(60);
    assert_eq!(world.held("web"), [("cloud1", 3)]);
    world.slots.insert("a".into(), 4);
    world.run(300);
    assert_eq!(world.held("web"), [("a", 3)]);
}

#[test]
fn what_does_not_become_ready_at_home_is_given_back() {
    let mut world = World::new(&[("home", 0), ("cloud1", 9)], &[("web", request(3, Some("home")))]);
    world.run(60);
    world.slots.insert("home".into(), 9);
    world.slow = true;
    world.run(120);
    assert_eq!((world.held("web"), world.status.moving), (vec![("home", 3)], 1));
    world.run(120);
    assert_eq!((world.held("web"), world.status.moved), (vec![("cloud1", 3)], 0));
    assert_eq!(world.staying(), ["MoveFailed"]);
}

#[test]
fn scaling_and_a_change_of_locations_go_on_while_replicas_stay() {
    let mut world =
        World::new(&[("home", 1), ("cloud1", 9), ("other", 0)], &[("web", request(3, Some("home")))]);
    world.run(30);
    world.slots.insert("home".into(), 3);
    let key = world.workloads.keys().next().unwrap().clone();
    let workload = world.workloads.get_mut(&key).unwrap();
    (workload.request.replicas, workload.reached) = (4, false);
    world.step(true);
    assert_eq!(world.held("web"), [("cloud1", 2), ("home", 2)], "the new one goes home, the others stay");
    world.workloads.get_mut(&key).unwrap().request.replicas = 3;
    world.step(true);
    assert_eq!(world.held("web"), [("cloud1", 1), ("home", 2)]);
    world.slots.insert("other".into(), 9);
    world.workloads.get_mut(&key).unwrap().request.placement.locations = vec!["other".into()];
    world.step(true);
    assert_eq!(world.held("web"), [("other", 3)], "the user asked for another place");
}

#[test]
fn replicas_whose_node_is_gone_join_those_that_stand_in() {
    let request = request(12, Some("paris"));
    let placed =
        |cluster: &str, replicas: i32, cause: PlacementCause, substitute_for: Option<&str>| PlacementStatus {
            cluster: cluster.into(),
            replicas,
            cause: Some(cause),
            substitute_for: substitute_for.map(str::to_owned),
            ..PlacementStatus::default()
        };
    let placements = [
        placed("paris", 10, PlacementCause::Preferred, None),
        placed("rome", 2, PlacementCause::Substitution, Some("paris")),
    ];
    let candidate = |name: &str, reserved: u32, bound: u32, free: u32| {
        let room = Room { max_replicas: free, ..Room::default() };
        let stands_in_for = if name == "rome" { vec!["paris".to_owned()] } else { Vec::new() };
        Candidate { room, bound, reserved, running: bound, stands_in_for, ..Candidate::default() }
            .at(|site| site.name = name.to_owned())
    };
    // Two of the ten in paris have lost their node, and there is no room for them on others.
    let mut candidates = [candidate("paris", 10, 8, 0), candidate("rome", 2, 2, 14)];
    confine(&request, &mut candidates, &placements, None);
    let decision = decide(&request, &candidates, |_, _| Shortage::default()).unwrap();
    let placed: Vec<(&str, u32)> =
        decision.placed.iter().map(|(name, placed)| (name.as_str(), placed.replicas)).collect();
    assert_eq!(placed, [("paris", 8), ("rome", 4)]);
    assert_eq!(decision.pending, 0);
}

#[test]
fn nothing_is_limited_if_nothing_stands_in() {
    let world = World::new(&[("home", 9), ("cloud1", 9)], &[("web", request(3, Some("home")))]);
    let key = world.workloads.keys().next().unwrap();
    let mut candidates = world.candidates(key);
    confine(&world.workloads[key].request, &mut candidates, &[], None);
    assert_eq!(candidates[1].room.max_replicas, 9);
}

#[derive(Clone, Debug)]
enum Happening {
    /// A home gets so many slots; no running replica is pushed out of them.
    Slots(bool, u32),
    /// So many steps.
    Run(u32),
    /// A plan that is not written.
    Crash,
    /// Replicas do not become ready at home from now on, or do.
    Slow(bool),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        3 => (any::<bool>(), 0u32..12).prop_map(|(first, slots)| Happening::Slots(first, slots)),
        4 => (1u32..30).prop_map(Happening::Run),
        1 => Just(Happening::Crash),
        1 => any::<bool>().prop_map(Happening::Slow),
    ];
    proptest::collection::vec(one, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ready_replicas_never_dip_and_nothing_oscillates(
        sizes in proptest::collection::vec((1u32..5, 0u8..3), 1..4),
        happenings in happenings(),
        max_concurrent in 1u32..3,
    ) {
        let home = |which: u8| match which { 0 => Some("a"), 1 => Some("b"), _ => None };
        let names = ["u", "v", "w"];
        let workloads: Vec<(&str, PlacementRequest)> =
            names.iter().zip(&sizes).map(|(name, (replicas, which))| (*name, request(*replicas, home(*which)))).collect();
        let mut world = World::new(&[("a", 2), ("b", 2), ("cloud1", 99)], &workloads);
        world.settings.max_concurrent = max_concurrent;
        for happening in happenings {
            match happening {
                Happening::Slots(first, slots) => {
                    let name = if first { "a" } else { "b" };
                    let used: u32 = world.workloads.values().map(|workload| World::takes(workload, name)).sum();
                    world.slots.insert(name.into(), slots.max(used));
                }
                Happening::Run(steps) => (0..steps).for_each(|_| world.step(true)),
                Happening::Crash => world.step(false),
                Happening::Slow(slow) => world.slow = slow,
            }
        }
        let mut last: BTreeMap<&WorkloadKey, i64> = BTreeMap::new();
        for (key, at) in &world.started {
            if let Some(before) = last.insert(key, *at) {
                prop_assert!(at - before >= 30, "{key:?} moved at {before} and {at}");
            }
        }
        // Once nothing changes any more, all comes to rest.
        world.slow = false;
        world.run(1800);
        let (started, placed) = (world.started.len(), world.workloads.values().map(|each| each.placements.clone()).collect::<Vec<_>>());
        world.run(1800);
        prop_assert_eq!(world.started.len(), started);
        prop_assert_eq!(world.workloads.values().map(|each| each.placements.clone()).collect::<Vec<_>>(), placed);
        prop_assert!(world.staying().iter().all(|reason| *reason == "NoRoom"), "{:?}", world.staying());
    }
}

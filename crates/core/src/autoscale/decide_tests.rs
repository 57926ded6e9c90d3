use super::super::test_support::{at, cpu, external, loaded};
use super::*;
use crate::placement::divide;
use portolan_api::MultiClusterHorizontalPodAutoscalerStatus;
use portolan_api::autoscaling::{Behavior, Metric, MetricTargetType, MinimumSchedule, ScalingRules};
use portolan_api::conditions::ConditionStatus;
use portolan_api::multiclusterhorizontalpodautoscaler::ScaleTargetRef;
use proptest::prelude::*;

fn spec(min_replicas: i32, max_replicas: i32, metrics: &[Metric]) -> MultiClusterHorizontalPodAutoscalerSpec {
    MultiClusterHorizontalPodAutoscalerSpec {
        scale_target_ref: ScaleTargetRef {
            api_version: portolan_api::API_VERSION.into(),
            kind: "MultiClusterDeployment".into(),
            name: "web".into(),
        },
        min_replicas,
        max_replicas,
        metrics: metrics.to_vec(),
        behavior: None,
        schedules: Vec::new(),
    }
}

/// A workload whose clusters have a constant load each, in thousandths of a CPU, and whose pods request a CPU each.
struct World {
    spec: MultiClusterHorizontalPodAutoscalerSpec,
    mode: ReplicasMode,
    loads: Vec<u64>,
    /// What placement gave each cluster.
    parts: Vec<u32>,
    replicas: u32,
    silent: Vec<bool>,
    readings: BTreeMap<usize, Reading>,
    memory: Memory,
    second: i64,
}

impl World {
    fn new(
        spec: MultiClusterHorizontalPodAutoscalerSpec,
        mode: ReplicasMode,
        clusters: &[(u32, u64)],
    ) -> Self {
        let parts: Vec<u32> = clusters.iter().map(|(replicas, _)| *replicas).collect();
        let replicas = match mode {
            ReplicasMode::PerLocation => parts[0],
            ReplicasMode::Total => parts.iter().sum(),
        };
        Self {
            spec,
            mode,
            loads: clusters.iter().map(|(_, load)| *load).collect(),
            silent: vec![false; parts.len()],
            parts,
            replicas,
            readings: BTreeMap::new(),
            memory: Memory::default(),
            second: 0,
        }
    }

    fn clusters(&self) -> Vec<ClusterSnapshot> {
        let clusters = self.parts.iter().zip(&self.loads).zip(&self.silent).enumerate();
        let snapshot = |(index, ((part, load), silent)): (usize, ((&u32, &u64), &bool))| {
            let measured_at = if *silent { 0 } else { self.second };
            ClusterSnapshot {
                reachable: !silent,
                ..loaded(&format!("c{index}"), *part, *load, at(measured_at))
            }
        };
        clusters.map(snapshot).collect()
    }

    fn decide(&self) -> Decision {
        decide(&Known {
            spec: &self.spec,
            replicas: self.replicas,
            mode: self.mode,
            locations: u32::try_from(self.parts.len()).unwrap(),
            clusters: &self.clusters(),
            readings: &self.readings,
            memory: &self.memory,
            now: at(self.second),
        })
    }

    /// Decides, does what was decided, and lets 15 seconds pass. What is remembered goes through the status.
    fn step(&mut self) -> Decision {
        let mut decision = self.decide();
        let mut status = MultiClusterHorizontalPodAutoscalerStatus::default();
        decision.write_to(&mut status, &self.clusters(), Some(1), at(self.second));
        if decision.desired != decision.current {
            decision.carried_out(&mut status, Some(1), at(self.second));
        }
        self.memory = Memory::of_status(&status);
        assert_eq!(self.memory, decision.memory, "the status remembers all");
        self.replicas = decision.desired;
        self.parts = match self.mode {
            ReplicasMode::PerLocation => vec![self.replicas; self.parts.len()],
            ReplicasMode::Total => {
                let names = (0..self.parts.len()).map(|index| format!("c{index}"));
                let weights =
                    names.map(|name| (decision.division.get(&name).copied().unwrap_or(1), u32::MAX));
                divide(self.replicas, &weights.collect::<Vec<_>>())
            }
        };
        self.second += 15;
        decision
    }

    fn steps_until(&mut self, second: i64) -> Decision {
        while self.second < second {
            self.step();
        }
        self.step()
    }
}

fn condition(decision: &Decision, type_: ConditionType) -> (ConditionStatus, Reason) {
    let finding = decision.findings.iter().find(|finding| finding.type_ == type_).unwrap();
    (finding.status, finding.reason)
}

use ConditionStatus::{False, True};
use ConditionType::{AbleToScale, Ready, ScalingActive, ScalingLimited};
use ReplicasMode::{PerLocation, Total};

#[test]
fn the_rule_of_the_paper() {
    // Replicas in each cluster with its load, the target in percent, and ceil(current * utilization / target).
    type Case<'a> = (&'a [(u32, u64)], i32, u32);
    let cases: [Case<'_>; 6] = [
        (&[(2, 2000)], 50, 4),                      // 2 * 100 / 50
        (&[(4, 6000)], 75, 8),                      // 4 * 150 / 75
        (&[(4, 3100)], 75, 4),                      // 4 * 77.5 / 75 is within the tolerance
        (&[(3, 1500), (3, 2400), (3, 300)], 50, 5), // 3 * 80 / 50 = 4.8 in the second cluster
        (&[(4, 2000), (4, 4000)], 50, 8),           // the first one is on target
        (&[(60, 90_000)], 75, 100),                 // 120, but there are 100 at most
    ];
    for (clusters, target, expected) in cases {
        let world = World::new(spec(2, 100, &[cpu(target)]), PerLocation, clusters);
        assert_eq!(world.decide().desired, expected, "{clusters:?}");
    }
}

#[test]
fn fewer_replicas_must_have_been_enough_for_ten_minutes() {
    let mut world = World::new(spec(2, 100, &[cpu(50)]), PerLocation, &[(8, 4000)]);
    world.step();
    world.loads = vec![1500];
    let held = world.steps_until(585);
    assert_eq!((held.desired, condition(&held, AbleToScale)), (8, (True, Reason::ScaleDownStabilized)));
    assert_eq!(condition(&held, ScalingLimited), (False, Reason::DesiredWithinRange));
    // The last time that 8 were recommended was second 0. A short peak begins the ten minutes again.
    world.loads = vec![3500];
    assert_eq!(world.step().desired, 7);
    world.loads = vec![1500];
    assert_eq!(world.steps_until(1185).desired, 7, "the peak of second 600 needed 7");
    let last = world.step();
    assert_eq!((last.desired, last.cause.as_deref()), (3, Some("All metrics below target")));
    assert_eq!(world.step().desired, 3);
}

#[test]
fn a_clock_that_was_set_back_holds_fewer_replicas_back_for_one_window_only() {
    let mut world = World::new(spec(2, 100, &[cpu(50)]), PerLocation, &[(8, 4000)]);
    world.second = 7200;
    world.step();
    (world.second, world.loads) = (0, vec![1500]);
    assert_eq!(world.steps_until(585).desired, 8);
    assert_eq!(world.steps_until(615).desired, 3);
}

#[test]
fn bounds_and_rates_hold_replicas_back() {
    let behavior =
        |rules: ScalingRules| Some(Behavior { scale_up: Some(rules.clone()), scale_down: Some(rules) });
    let at_once =
        || behavior(ScalingRules { stabilization_window_seconds: Some(0), ..ScalingRules::default() });
    type Case = (Option<Behavior>, (u32, u64), u32, ConditionStatus, Reason);
    let cases: [Case; 6] = [
        (None, (3, 30_000), 7, True, Reason::ScaleUpLimit), // by 4 or by 100 percent
        (None, (10, 90_000), 20, True, Reason::ScaleUpLimit),
        (None, (50, 90_000), 60, True, Reason::TooManyReplicas),
        (at_once(), (5, 100), 2, True, Reason::TooFewReplicas),
        (at_once(), (9, 3000), 6, False, Reason::DesiredWithinRange),
        (at_once(), (9, 4500), 9, False, Reason::DesiredWithinRange),
    ];
    for (behavior, cluster, desired, status, reason) in cases {
        let spec = MultiClusterHorizontalPodAutoscalerSpec { behavior, ..spec(2, 60, &[cpu(50)]) };
        let decision = World::new(spec, PerLocation, &[cluster]).decide();
        assert_eq!(
            (decision.desired, condition(&decision, ScalingLimited)),
            (desired, (status, reason)),
            "{cluster:?}"
        );
        assert_eq!(condition(&decision, ScalingActive), (True, Reason::ValidMetricFound));
        assert_eq!(condition(&decision, AbleToScale), (True, Reason::ReadyForNewScale));
        assert_eq!(condition(&decision, Ready), (True, Reason::Ready));
    }
}

#[test]
fn a_change_that_was_not_carried_out_counts_for_no_policy() {
    let mut world = World::new(spec(2, 60, &[cpu(50)]), PerLocation, &[(3, 30_000)]);
    let mut status = MultiClusterHorizontalPodAutoscalerStatus::default();
    for second in [0, 5] {
        world.second = second;
        let refused = world.decide();
        assert_eq!(refused.desired, 7, "4 more, and the first change was refused");
        refused.write_to(&mut status, &world.clusters(), Some(1), at(second));
        world.memory = Memory::of_status(&status);
        assert!(status.scale_events.is_empty() && status.last_scale_time.is_none());
    }
    world.second = 10;
    let carried_out = world.step();
    assert_eq!((carried_out.desired, carried_out.memory.changes.len()), (7, 1));
    world.second = 12;
    assert_eq!(world.decide().desired, 7, "4 more in 15 seconds were carried out");
}

#[test]
fn what_is_outside_the_bounds_is_brought_inside_without_metrics() {
    let decide = |replicas: u32| World::new(spec(4, 10, &[cpu(50)]), PerLocation, &[(replicas, 1)]).decide();
    let few = decide(2);
    assert_eq!((few.desired, condition(&few, ScalingLimited)), (4, (True, Reason::TooFewReplicas)));
    assert_eq!(few.cause.as_deref(), Some("Current number of replicas below Spec.MinReplicas"));
    let many = decide(12);
    assert_eq!((many.desired, condition(&many, ScalingLimited)), (10, (True, Reason::TooManyReplicas)));
    let none = decide(0);
    assert_eq!((none.desired, condition(&none, ScalingActive)), (0, (False, Reason::ScalingDisabled)));
    assert_eq!(condition(&none, Ready), (False, Reason::ScalingDisabled));
}

#[test]
fn a_schedule_raises_the_minimum_at_its_minute() {
    let schedule = MinimumSchedule {
        name: "peak".into(),
        // Second 0 of the tests is 08:00 UTC.
        start: "1 8 * * *".into(),
        end: "30 8 * * *".into(),
        time_zone: "Etc/UTC".into(),
        min_replicas: 6,
    };
    let spec =
        MultiClusterHorizontalPodAutoscalerSpec { schedules: vec![schedule], ..spec(2, 60, &[cpu(50)]) };
    let mut world = World::new(spec, PerLocation, &[(2, 1000)]);
    world.second = 50;
    let before = world.decide();
    assert_eq!(
        (before.desired, before.look_again_at),
        (2, at(60)),
        "it looks again when the schedule begins"
    );
    world.second = 60;
    let during = world.step();
    assert_eq!((during.desired, during.minimum.schedule.as_deref()), (6, Some("peak")));
    assert_eq!(world.steps_until(1785).desired, 6);
    assert_eq!(world.step().desired, 2, "the load has needed no more for long");
    world.spec.schedules[0].time_zone = "Nowhere".into();
    assert_eq!(condition(&world.decide(), Ready), (False, Reason::InvalidSchedule));
}

#[test]
fn a_schedule_wakes_a_workload_that_may_have_no_replicas() {
    let schedule = MinimumSchedule {
        name: "day".into(),
        start: "0 8 * * *".into(),
        end: "0 9 * * *".into(),
        time_zone: "Etc/UTC".into(),
        min_replicas: 5,
    };
    for (least, desired) in [(0, 5), (1, 0)] {
        let schedules = vec![schedule.clone()];
        let spec = MultiClusterHorizontalPodAutoscalerSpec { schedules, ..spec(least, 60, &[cpu(50)]) };
        assert_eq!(World::new(spec, PerLocation, &[(0, 0)]).decide().desired, desired, "minReplicas {least}");
    }
}

#[test]
fn in_a_total_replicas_follow_the_load_and_leave_after_the_cool_down() {
    let mut world = World::new(spec(2, 100, &[cpu(50)]), Total, &[(5, 2500), (5, 2500)]);
    assert_eq!((world.step().desired, world.parts.clone()), (10, vec![5, 5]));
    // All load of the first cluster moves to the second one: that one grows at once, and the first one waits.
    world.loads = vec![0, 5000];
    let moved = world.step();
    assert_eq!((moved.desired, world.parts.clone()), (15, vec![5, 10]));
    assert_eq!(
        moved.cause.as_deref(),
        Some("cpu resource utilization (percentage of request) above target in cluster c1")
    );
    world.steps_until(585);
    assert_eq!(world.parts, [5, 10]);
    world.steps_until(615);
    assert_eq!(world.parts, [1, 10], "the last replica stays, to tell of load that comes back");
}

#[test]
fn a_location_that_never_had_a_replica_gets_one() {
    let mut world = World::new(spec(2, 100, &[cpu(50)]), Total, &[(6, 3000), (4, 2000), (0, 0)]);
    let decision = world.step();
    assert_eq!(decision.division, BTreeMap::from([("c0".to_owned(), 6), ("c1".to_owned(), 4)]));
    assert_eq!(world.parts.iter().filter(|part| **part == 0).count(), 0, "{:?}", world.parts);
    let later = world.steps_until(1500);
    assert_eq!(later.division.len(), 3);
}

#[test]
fn nothing_becomes_less_because_a_member_is_silent() {
    for mode in [PerLocation, Total] {
        let mut world = World::new(spec(1, 100, &[cpu(50)]), mode, &[(8, 4000), (8, 4000)]);
        world.step();
        world.silent = vec![false, true];
        world.loads = vec![500, 4000];
        let decision = world.steps_until(3600);
        match mode {
            PerLocation => assert_eq!(decision.desired, 8, "the silent cluster still needs as many"),
            Total => assert_eq!((decision.desired, world.parts.clone()), (9, vec![1, 8])),
        }
        assert_eq!(condition(&decision, ScalingActive), (True, Reason::ValidMetricFound));
        let message =
            &decision.findings.iter().find(|finding| finding.type_ == ScalingActive).unwrap().message;
        assert!(message.contains("c1: it is silent"), "{message}");
        world.loads = vec![6000, 4000];
        assert!(world.step().desired > decision.desired, "more is always possible");
    }
}

#[test]
fn a_metric_that_is_known_nowhere_stops_only_scaling_down() {
    let metrics = [cpu(50), external(MetricTargetType::AverageValue, "30")];
    let mut world = World::new(spec(1, 100, &metrics), PerLocation, &[(8, 500)]);
    let held = world.steps_until(1200);
    assert_eq!(
        (held.desired, condition(&held, ScalingActive)),
        (8, (False, Reason::FailedGetExternalMetric))
    );
    assert_eq!(held.metrics_summary, "cpu 6%/50%, queue <unknown>/30");
    world.loads = vec![8000];
    let more = world.step();
    assert_eq!((more.desired, condition(&more, ScalingActive)), (16, (True, Reason::ValidMetricFound)));
    world.silent = vec![true];
    world.second = 4000;
    let unknown = world.decide();
    assert_eq!((unknown.desired, condition(&unknown, ScalingActive).0), (16, ConditionStatus::Unknown));
}

#[test]
fn one_value_for_all_clusters_is_shared_by_the_locations() {
    let mut metric = external(MetricTargetType::AverageValue, "30");
    metric.external.as_mut().unwrap().query = Some("sum(queue)".into());
    let with = |mode, clusters: &[(u32, u64)], value: u64| {
        let mut world = World::new(spec(0, 100, std::slice::from_ref(&metric)), mode, clusters);
        world.readings.insert(0, Reading::Value { value: value * 1000, at: at(0) });
        world
    };
    assert_eq!(with(PerLocation, &[(2, 0), (2, 0)], 170).decide().desired, 3, "6 replicas in 2 locations");
    assert_eq!(with(PerLocation, &[(0, 0), (0, 0)], 65).decide().desired, 2, "from zero");
    let total = with(Total, &[(3, 0), (1, 0)], 240).decide();
    assert_eq!((total.desired, total.metrics_summary.as_str()), (8, "queue 60/30"));
    assert_eq!(total.division, BTreeMap::from([("c0".to_owned(), 6), ("c1".to_owned(), 2)]));
    let mut unread = with(Total, &[(3, 0), (1, 0)], 0);
    unread.readings.insert(0, Reading::Failed("connection refused".into()));
    let decision = unread.decide();
    assert_eq!(
        (decision.desired, condition(&decision, ScalingActive)),
        (4, (False, Reason::FailedGetExternalMetric))
    );
}

#[test]
fn the_status_reads_like_that_of_an_autoscaler() {
    let world = World::new(spec(2, 100, &[cpu(75)]), Total, &[(4, 2520), (2, 2000)]);
    let mut decision = world.decide();
    let mut status = MultiClusterHorizontalPodAutoscalerStatus::default();
    decision.write_to(&mut status, &world.clusters(), Some(7), at(0));
    assert_eq!((status.current_replicas, status.desired_replicas, status.min_replicas), (6, 7, Some(2)));
    assert_eq!(status.metrics_summary.as_deref(), Some("cpu 75%/75%"));
    assert_eq!(status.current_metrics[0].average_value.as_ref().unwrap().0, "753m");
    let told: Vec<_> = status.clusters.iter().map(|each| (each.average_utilization, each.share)).collect();
    assert_eq!(told, [(Some(63), Some(4)), (Some(100), Some(3))]);
    let types: Vec<&str> = status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, ["Ready", "AbleToScale", "ScalingActive", "ScalingLimited"]);
    decision.carried_out(&mut status, Some(7), at(1));
    assert_eq!((status.scale_events[0].change, status.last_scale_time.unwrap().0), (1, at(1)));
    assert_eq!(status.conditions[1].reason, Reason::SucceededRescale.to_string());
}

#[test]
fn a_change_that_is_refused_again_and_again_is_told_once() {
    let mut world = World::new(spec(2, 100, &[cpu(75)]), PerLocation, &[(4, 6000)]);
    let mut status = MultiClusterHorizontalPodAutoscalerStatus::default();
    let write = |world: &World, status: &mut MultiClusterHorizontalPodAutoscalerStatus| {
        let decision = world.decide();
        decision.write_to(status, &world.clusters(), Some(1), at(world.second));
        decision
    };
    let refuse = |status: &mut MultiClusterHorizontalPodAutoscalerStatus, second: i64| {
        for finding in conditions::update_failed("forbidden") {
            portolan_api::conditions::set(&mut status.conditions, finding, Some(1), at(second));
        }
    };
    let of = |status: &MultiClusterHorizontalPodAutoscalerStatus| -> Vec<(String, String)> {
        status.conditions.iter().take(2).map(|each| (each.status.clone(), each.reason.clone())).collect()
    };
    let decision = write(&world, &mut status);
    assert_eq!((decision.current, decision.desired), (4, 8));
    refuse(&mut status, 1);
    let failed = ("False".to_owned(), "FailedUpdateScale".to_owned());
    assert_eq!(of(&status), [failed.clone(), failed], "what cannot scale is not ready");
    let told = status.conditions.clone();
    world.second = 15;
    let mut decision = write(&world, &mut status);
    assert_eq!(status.conditions, told, "before it is tried again nothing else is told");
    refuse(&mut status, 16);
    assert_eq!(status.conditions, told);

    let mut unwanted = status.clone();
    world.loads = vec![3000];
    write(&world, &mut unwanted);
    assert_eq!(of(&unwanted).iter().map(|(status, _)| status.as_str()).collect::<Vec<_>>(), ["True", "True"]);
    decision.carried_out(&mut status, Some(1), at(17));
    let told = of(&status);
    assert_eq!((told[0].0.as_str(), told[1].1.as_str()), ("True", "SucceededRescale"));
}

fn clusters() -> impl Strategy<Value = Vec<(u32, u64)>> {
    proptest::collection::vec((1u32..30, 0u64..25_000), 1..5)
}

fn mode() -> impl Strategy<Value = ReplicasMode> {
    proptest::sample::select(vec![PerLocation, Total])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn constant_load_comes_to_rest_and_never_oscillates(
        mode in mode(), mut clusters in clusters(), target in 1i32..150, min in 1i32..20, more in 0i32..60,
        shared in any::<bool>(),
    ) {
        if mode == PerLocation {
            let replicas = clusters[0].0;
            clusters.iter_mut().for_each(|cluster| cluster.0 = replicas);
        }
        let all: u64 = clusters.iter().map(|(_, load)| load).sum();
        let mut world = World::new(spec(min, min + more, &[cpu(target)]), mode, &clusters);
        let (mut last, mut shrunk) = (world.step().desired, false);
        for step in 0..160 {
            let parts = world.parts.clone();
            if shared {
                // Requests go to any pod of the fleet, not only to those of their cluster.
                let pods: u64 = parts.iter().copied().map(u64::from).sum();
                world.loads = parts.iter().map(|part| all * u64::from(*part) / pods).collect();
            }
            let desired = world.step().desired;
            prop_assert!((min..=min + more).contains(&i32::try_from(desired).unwrap()));
            prop_assert!(!(shrunk && desired > last), "step {step}: from {last} to {desired} after it had shrunk");
            shrunk |= desired < last;
            last = desired;
            // Two windows, and the time that growing takes.
            prop_assert!(step < 100 || parts == world.parts, "step {step}: {parts:?} to {:?}", world.parts);
        }
    }

    #[test]
    fn more_load_never_gives_fewer_replicas(
        mode in mode(), mut clusters in clusters(), which in 0usize..5, more in 0u64..25_000, target in 1i32..150,
    ) {
        if mode == PerLocation {
            let replicas = clusters[0].0;
            clusters.iter_mut().for_each(|cluster| cluster.0 = replicas);
        }
        let at_once = Some(ScalingRules { stabilization_window_seconds: Some(0), ..ScalingRules::default() });
        let behavior = Some(Behavior { scale_up: at_once.clone(), scale_down: at_once });
        let spec = MultiClusterHorizontalPodAutoscalerSpec { behavior, ..spec(1, 500, &[cpu(target)]) };
        let lighter = World::new(spec.clone(), mode, &clusters).decide();
        if let Some(cluster) = clusters.get_mut(which) {
            cluster.1 += more;
        }
        let heavier = World::new(spec, mode, &clusters).decide();
        prop_assert!(heavier.desired >= lighter.desired);
    }

    #[test]
    fn whatever_is_silent_the_rest_never_gets_fewer_than_with_all_answering(
        mode in mode(), mut clusters in clusters(), silent in proptest::collection::vec(any::<bool>(), 5), later in 0i64..4000,
    ) {
        if mode == PerLocation {
            let replicas = clusters[0].0;
            clusters.iter_mut().for_each(|cluster| cluster.0 = replicas);
        }
        let mut world = World::new(spec(1, 500, &[cpu(50)]), mode, &clusters);
        world.second = later;
        world.silent = silent[..clusters.len()].to_vec();
        let decision = world.decide();
        for (wish, silent) in decision.clusters.iter().zip(&world.silent) {
            prop_assert!(!silent || wish.desired >= wish.current);
        }
        if world.silent.iter().all(|silent| *silent) {
            prop_assert!(decision.desired >= decision.current);
        }
    }
}

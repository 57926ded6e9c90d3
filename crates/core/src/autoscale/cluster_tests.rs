use super::super::MemberClock;
use super::super::test_support::{at, cluster, cpu, external, loaded};
use super::*;
use portolan_api::autoscaling::{Metric, MetricTargetType};
use proptest::prelude::*;

const TOLERANCES: Tolerances = Tolerances { up: 100, down: 100 };

fn wish_of(metrics: &[Metric], cluster: &ClusterSnapshot, now: Timestamp) -> ClusterWish {
    let sources = metrics.iter().map(|metric| Source::of(metric).unwrap()).enumerate().collect();
    wish(&sources, cluster, TOLERANCES, now)
}

fn value(value: u64, second: i64) -> Reading {
    Reading::Value { value: value * 1000, at: at(second) }
}

#[test]
fn the_metric_that_asks_for_the_most_decides() {
    let metrics = [cpu(50), external(MetricTargetType::AverageValue, "30")];
    for (load, queue, expected, metric) in [(4000, 60, 8, 0), (1000, 300, 10, 1), (1000, 60, 2, 0)] {
        let mut cluster = loaded("paris", 4, load, at(0));
        cluster.readings.push(value(queue, 0));
        let wish = wish_of(&metrics, &cluster, at(0));
        assert_eq!((wish.desired, wish.metric), (expected, Some(metric)), "{load} {queue}");
        assert!(wish.problems.is_empty() && wish.message.is_none());
    }
}

#[test]
fn while_a_metric_is_not_known_replicas_become_more_but_not_fewer() {
    let metrics = [cpu(50), external(MetricTargetType::Value, "30")];
    for (load, expected) in [(1000, 4), (4000, 8)] {
        let mut cluster = loaded("paris", 4, load, at(0));
        cluster.readings.push(Reading::Failed("the server could not find the metric".into()));
        let wish = wish_of(&metrics, &cluster, at(0));
        assert_eq!(wish.desired, expected);
        assert_eq!(wish.problems[0].reason, Reason::FailedGetExternalMetric);
        let told = "unable to get external metric queue: the server could not find the metric";
        assert_eq!(wish.message.as_deref(), Some(told));
    }
}

#[test]
fn old_numbers_count_for_five_minutes_and_then_as_missing() {
    // 8 replicas that needed 2, or 16, when they were last measured; the member answers or not.
    let cases = [
        (1000, true, 300, 2),
        (1000, true, 301, 8),
        (1000, false, 300, 8),
        (1000, false, 301, 8),
        (8000, true, 300, 16),
        (8000, true, 301, 8),
        (8000, false, 300, 16),
        (8000, false, 301, 8),
    ];
    for (load, reachable, age, expected) in cases {
        let cluster = ClusterSnapshot { reachable, ..loaded("paris", 8, load, at(0)) };
        let wish = wish_of(&[cpu(50)], &cluster, at(age));
        assert_eq!(wish.desired, expected, "{load} {reachable} {age}");
        assert_eq!(wish.problems.is_empty(), !reachable || age == 300);
    }
}

#[test]
fn a_silent_member_is_told() {
    let silent = ClusterSnapshot { reachable: false, ..loaded("paris", 4, 1000, at(0)) };
    let told = |second| wish_of(&[cpu(50)], &silent, at(second)).message.unwrap();
    assert_eq!(
        told(42),
        "it is silent: its numbers of 42s ago count until they are 5m old, and its replicas are kept"
    );
    assert_eq!(told(900), "it is silent and its last numbers are older than 5m: its replicas are kept");
    let unknown = ClusterSnapshot { pods: Vec::new(), readings: Vec::new(), ..silent };
    assert_eq!(wish_of(&[cpu(50)], &unknown, at(0)).desired, 4, "after a restart of the hub");
}

#[test]
fn only_values_scale_from_zero() {
    let metrics = [cpu(50), external(MetricTargetType::AverageValue, "30")];
    let mut cluster = cluster("paris", 0, &[], at(0));
    assert_eq!(
        wish_of(&metrics[..1], &cluster, at(0)),
        ClusterWish { cluster: "paris".into(), ..Default::default() }
    );
    cluster.readings.push(value(65, 0));
    let wish = wish_of(&metrics, &cluster, at(0));
    assert_eq!((wish.desired, wish.problems.len()), (3, 0));
}

proptest! {
    #[test]
    fn a_silent_member_asks_for_no_fewer_than_run_there_and_for_no_fewer_than_if_it_answered(
        replicas in 1u32..20, load in 0u64..30_000, age in 0i64..900, target in 1i32..150,
    ) {
        let answering = loaded("paris", replicas, load, at(0));
        let silent = ClusterSnapshot { reachable: false, ..answering.clone() };
        let (silent, answering) = (wish_of(&[cpu(target)], &silent, at(age)), wish_of(&[cpu(target)], &answering, at(age)));
        prop_assert!(silent.desired >= replicas && silent.desired >= answering.desired);
        prop_assert!(age <= 300 || (silent.desired, answering.desired) == (replicas, replicas));
    }

    #[test]
    fn losing_a_number_never_lowers_the_wish_of_pods_that_are_not_above_their_target(
        used in proptest::collection::vec(0u64..500, 2..10), lost in 0usize..10,
    ) {
        let replicas = u32::try_from(used.len()).unwrap();
        let all = cluster("paris", replicas, &used, at(0));
        let mut some = all.clone();
        let Reading::Pods(samples) = &mut some.readings[0] else { panic!("no samples") };
        samples.remove(&format!("web-{lost}"));
        let (all, some) = (wish_of(&[cpu(50)], &all, at(0)), wish_of(&[cpu(50)], &some, at(0)));
        prop_assert!(some.desired >= all.desired);
    }
}

#[test]
fn numbers_of_a_clock_that_is_ahead_are_no_newer_than_the_answer() {
    let metrics = [cpu(50), external(MetricTargetType::AverageValue, "30")];
    let mut ahead = loaded("paris", 4, 4000, at(3600));
    ahead.readings.push(value(300, 3600));
    let ahead = ClusterSnapshot { reachable: false, observed_at: Some(at(0)), ..ahead };
    assert_eq!(wish_of(&metrics, &ahead, at(300)).desired, 10);
    let later = wish_of(&metrics, &ahead, at(600));
    assert_eq!((later.desired, later.metric), (4, None), "{:?}", later.message);
}

#[test]
fn numbers_of_a_clock_that_is_behind_count_as_soon_as_they_move_on() {
    let metrics = [cpu(50)];
    let mut clock = MemberClock::default();
    let mut look = |measured: i64, now: i64| {
        let cluster = loaded("paris", 4, 4000, at(measured));
        clock = clock.after(&cluster.readings, at(now));
        let cluster = ClusterSnapshot { clock, observed_at: Some(at(now)), ..cluster };
        wish_of(&metrics, &cluster, at(now)).desired
    };
    assert_eq!(look(-3600, 0), 4, "nobody knows whether this is an hour old or its clock an hour behind");
    assert_eq!(look(-3585, 15), 8, "it is its clock");
    assert_eq!(look(-3585, 310), 8);
    assert_eq!(look(-3585, 330), 4, "its numbers do not move any more");
    assert_eq!(look(-2700, 900), 8, "they do again, by the clock as it stood");
    let mut clock = MemberClock::default();
    for (measured, now) in [(0, 0), (600, 2000)] {
        let cluster = loaded("paris", 4, 4000, at(measured));
        clock = clock.after(&cluster.readings, at(now));
        let cluster = ClusterSnapshot { clock, observed_at: Some(at(now)), ..cluster };
        let old = now > 0;
        assert_eq!(wish_of(&metrics, &cluster, at(now)).desired == 4, old, "after a silence old is old");
    }
}

#[test]
fn why_the_pods_of_a_cluster_cannot_be_read_is_told() {
    let refused = ClusterSnapshot {
        reachable: false,
        error: Some("cannot list pods in shop: forbidden (403)".into()),
        ..loaded("paris", 4, 1000, at(0))
    };
    let message = wish_of(&[cpu(50)], &refused, at(10)).message.unwrap();
    let told =
        "its pods cannot be read (cannot list pods in shop: forbidden (403)): its numbers of 10s ago count";
    assert!(message.starts_with(told), "{message}");
}

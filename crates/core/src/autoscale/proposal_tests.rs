use super::super::metric::Source;
use super::super::pods::groups;
use super::super::snapshot::{PodPhase, Readiness, Reading};
use super::super::test_support::{at, cluster, cpu, external, sample};
use super::*;
use crate::autoscale::ClusterSnapshot;
use jiff::SignedDuration;
use portolan_api::autoscaling::{ContainerResourceMetric, Metric, MetricTargetType, MetricType, PodsMetric};
use proptest::prelude::*;
use std::sync::Arc;

const DEFAULT: Tolerances = Tolerances { up: 100, down: 100 };

/// A pod in the tables: each requests 1000 thousandths of a CPU.
#[derive(Clone, Copy, Debug)]
enum Pod {
    /// It is ready and uses so much.
    Uses(u64),
    /// It uses CPU and was never ready.
    NotReady(u64),
    Pending,
    Unmeasured,
    Deleted(u64),
    Finished,
}
use Pod::{Deleted, Finished, NotReady, Pending, Unmeasured, Uses};

fn snapshot(pods: &[Pod]) -> ClusterSnapshot {
    let now = at(0);
    let mut cluster = cluster("paris", u32::try_from(pods.len()).unwrap(), &[], now);
    let mut samples = std::collections::BTreeMap::new();
    for (pod, what) in cluster.pods.iter_mut().zip(pods) {
        let mut measured = |value| samples.insert(pod.name.clone(), sample(value, now));
        match what {
            Uses(value) => drop(measured(*value)),
            NotReady(value) => {
                measured(*value);
                pod.readiness = Some(Readiness { ready: false, since: at(-99_990) });
            }
            Pending => pod.phase = PodPhase::Pending,
            Unmeasured => {}
            Deleted(value) => {
                measured(*value);
                pod.deleted = true;
            }
            Finished => pod.phase = PodPhase::Finished,
        }
    }
    cluster.readings = vec![Reading::Pods(samples)];
    cluster
}

fn propose(metric: &Metric, current: u32, cluster: &ClusterSnapshot) -> Result<u32, String> {
    let Reading::Pods(samples) = &cluster.readings[0] else { panic!("no samples") };
    by_pods(current, &groups(&Source::of(metric)?, cluster, samples, at(0))?, DEFAULT)
}

#[test]
fn the_rules_of_the_horizontal_pod_autoscaler() {
    type Case<'a> = (&'a str, i32, u32, &'a [Pod], u32);
    let cases: [Case<'_>; 20] = [
        // 1500 of 3000 are 50 percent; 50 / 30 * 3 = 5.
        ("more", 30, 3, &[Uses(300), Uses(500), Uses(700)], 5),
        // 1400 of 5000 are 28 percent; 28 / 50 * 5 = 2.8.
        ("fewer", 50, 5, &[Uses(100), Uses(300), Uses(500), Uses(250), Uses(250)], 3),
        ("no load", 50, 2, &[Uses(0), Uses(0)], 0),
        ("on target", 50, 2, &[Uses(500), Uses(500)], 2),
        ("2 percent more than the target", 100, 3, &[Uses(1010), Uses(1030), Uses(1020)], 3),
        ("10 percent more", 50, 2, &[Uses(550), Uses(550)], 2),
        ("a little more than 10 percent", 50, 2, &[Uses(551), Uses(550)], 3),
        ("10 percent less", 50, 10, &[Uses(450); 10], 10),
        ("a little more than 10 percent less", 50, 10, &[Uses(449); 10], 9),
        // 60 percent of two; with a third one without load 1200 of 3000 are 40 percent; 40 / 30 * 3 = 4.
        ("more, one is not ready", 30, 3, &[NotReady(300), Uses(500), Uses(700)], 4),
        ("more, one is pending", 30, 3, &[Pending, Uses(500), Uses(700)], 4),
        // 500 of 1000 are 50 percent; of three pods 16.7: that is less than the target, not more.
        ("more turns into fewer", 30, 3, &[NotReady(900), NotReady(900), Uses(500)], 3),
        // Two at 10 percent; 10 / 50 * 2 = 0.4. Those that are not ready are not counted.
        ("fewer, some are not ready", 50, 5, &[NotReady(0), NotReady(0), Pending, Uses(100), Uses(100)], 1),
        // (400 + 95 + 2 * 1000) of 4000 are 62.4 percent; 62.4 / 100 * 4 = 2.5.
        ("fewer, two are missing", 100, 4, &[Uses(400), Uses(95), Unmeasured, Unmeasured], 3),
        // The same are more than 50 percent, though the known ones are less.
        ("fewer turns into more", 50, 4, &[Uses(400), Uses(95), Unmeasured, Unmeasured], 4),
        // (100 + 200 * 10) / 200 * 2 = 2 of 2: a pod without a number is on target at least, also above 100 percent.
        ("fewer, target above 100", 200, 2, &[Uses(1000), Unmeasured], 2),
        // 4000 of 4000 are 100 percent; 100 / 50 * 4 = 8.
        ("more, two are missing", 50, 4, &[Uses(2000), Uses(2000), Unmeasured, Unmeasured], 8),
        (
            "more, but not with those that are missing",
            50,
            4,
            &[Uses(1000), Uses(1000), Unmeasured, Unmeasured],
            4,
        ),
        ("pods that go do not count", 50, 2, &[Uses(500), Uses(500), Deleted(9000), Finished], 2),
        // 120 percent of the target for 2 pods, while 5 are asked for: 3 are not even made yet.
        ("more load does not mean fewer replicas", 50, 5, &[Uses(600), Uses(600)], 5),
    ];
    for (about, target, current, pods, expected) in cases {
        assert_eq!(propose(&cpu(target), current, &snapshot(pods)), Ok(expected), "{about}");
    }
}

#[test]
fn an_average_value_needs_no_request() {
    let target = external(MetricTargetType::AverageValue, "300m").external.unwrap().target;
    let pods = Some(PodsMetric { metric: Default::default(), target });
    let metric = Metric { type_: MetricType::Pods, pods, ..Metric::default() };
    let cases: [(&[Pod], u32); 4] = [
        (&[Uses(300), Uses(500), Uses(700)], 5),
        (&[Uses(100), Uses(100), Uses(100)], 1),
        (&[Uses(100), Uses(100), Unmeasured], 2), // (100 + 100 + 300) / 300
        (&[NotReady(300), NotReady(500), NotReady(700)], 5), // only the CPU of a start is not load
    ];
    for (pods, expected) in cases {
        let mut cluster = snapshot(pods);
        cluster.pods.iter_mut().for_each(|pod| pod.requests = Arc::default());
        assert_eq!(propose(&metric, 3, &cluster), Ok(expected), "{pods:?}");
    }
}

#[test]
fn one_container_is_compared_with_its_own_request() {
    let target = cpu(60).resource.unwrap().target;
    let container_resource =
        Some(ContainerResourceMetric { name: "cpu".into(), container: "web".into(), target });
    let metric = Metric { type_: MetricType::ContainerResource, container_resource, ..Metric::default() };
    let mut cluster = snapshot(&[Uses(900), Uses(900)]);
    for pod in &mut cluster.pods {
        // The other container has no request, and needs none.
        Arc::make_mut(&mut pod.requests).containers.insert("log".into(), Default::default());
    }
    assert_eq!(propose(&metric, 2, &cluster), Ok(3), "90 / 60 * 2");
    Arc::make_mut(&mut cluster.pods[1].requests).containers.remove("web");
    let error = propose(&metric, 2, &cluster).unwrap_err();
    assert_eq!(error, "missing request for cpu in container web of pod web-1");
}

#[test]
fn without_numbers_or_requests_nothing_is_proposed() {
    let proposed = |pods: &[Pod]| propose(&cpu(50), 3, &snapshot(pods)).unwrap_err();
    assert_eq!(proposed(&[Finished, Deleted(1)]), "no pods were found");
    let unready = "did not receive metrics for targeted pods (pods might be unready)";
    assert_eq!(proposed(&[Unmeasured, Pending]), unready);
    assert_eq!(proposed(&[NotReady(100)]), unready);
    let mut cluster = snapshot(&[Uses(100)]);
    let requests = Arc::make_mut(&mut cluster.pods[0].requests);
    requests.containers.insert("log".into(), Default::default());
    let error = propose(&cpu(50), 1, &cluster).unwrap_err();
    assert_eq!(error, "missing request for cpu in container log of pod web-0");
}

#[test]
fn cpu_of_a_start_is_not_load() {
    // Seconds since the start, since it became (not) ready, whether it is ready, and the window of the number.
    let cases = [
        ("just ready, measured since", 100, 60, true, 30, true),
        ("just ready, measured before that, too", 100, 20, true, 30, false),
        ("not ready in the first minutes", 100, 60, false, 30, false),
        ("old and ready", 400, 10, true, 30, true),
        ("old and never ready", 400, 380, false, 30, false),
        ("old and ready once", 400, 300, false, 30, true),
    ];
    for (about, started, since, ready, window, counts) in cases {
        let mut cluster = snapshot(&[Uses(500)]);
        cluster.pods[0].started_at = Some(at(-started));
        cluster.pods[0].readiness = Some(Readiness { ready, since: at(-since) });
        let Reading::Pods(samples) = &mut cluster.readings[0] else { panic!("no samples") };
        samples.get_mut("web-0").unwrap().window = SignedDuration::from_secs(window);
        assert_eq!(propose(&cpu(50), 1, &cluster).is_ok(), counts, "{about}");
    }
}

#[test]
fn values_are_compared_with_the_replicas() {
    // Replicas, ready pods, value, target, expected.
    let in_proportion = [
        (3, 3, 20, 10, 6),
        (3, 2, 20, 10, 4),
        (3, 3, 11, 10, 3),
        (3, 3, 5, 10, 2),
        (3, 0, 20, 10, 3),
        (3, 1, 20, 10, 3), // more load does not mean fewer replicas
        (0, 0, 25, 10, 3),
        (0, 0, 0, 10, 0),
    ];
    for (current, ready, value, target, expected) in in_proportion {
        assert_eq!(by_value(current, ready, value, target, DEFAULT), expected, "{current} {ready} {value}");
    }
    for (current, value, target, expected) in [
        (3, 90, 30, 3),
        (3, 99, 30, 3),
        (3, 100, 30, 4),
        (3, 80, 30, 3),
        (3, 59, 30, 2),
        (0, 65, 30, 3),
        (0, 0, 30, 0),
    ] {
        assert_eq!(by_average(current, value, target, DEFAULT), expected, "{current} {value}");
    }
}

fn pods() -> impl Strategy<Value = Vec<Pod>> {
    let pod = prop_oneof![
        6 => (0u64..2000).prop_map(Uses),
        1 => (0u64..2000).prop_map(NotReady),
        1 => Just(Pending),
        2 => Just(Unmeasured),
        1 => Just(Deleted(100)),
    ];
    proptest::collection::vec(pod, 1..12)
}

proptest! {
    #[test]
    fn more_load_never_proposes_fewer(
        pods in pods(), which in 0usize..12, more in 0u64..3000, target in 1i32..150, current in 1u32..15,
    ) {
        let mut heavier = pods.clone();
        if let Some(Uses(value)) = heavier.get_mut(which) {
            *value += more;
        }
        let (one, other) = (snapshot(&pods), snapshot(&heavier));
        if let (Ok(one), Ok(other)) = (propose(&cpu(target), current, &one), propose(&cpu(target), current, &other)) {
            prop_assert!(other >= one, "{one} {other}");
        }
    }

    #[test]
    fn pods_without_a_number_never_hide_the_known_load(pods in pods(), target in 1u64..150, current in 1u32..15) {
        let cluster = snapshot(&pods);
        if let Ok(proposed) = propose(&cpu(i32::try_from(target).unwrap()), current, &cluster) {
            let known: u64 = pods.iter().map(|pod| if let Uses(value) = pod { *value } else { 0 }).sum();
            if current as usize >= pods.len() {
                // With the tolerance of a tenth.
                prop_assert!(u64::from(proposed) * target * 11 >= known, "{proposed} for {known}");
            }
            let missing = pods.iter().filter(|pod| matches!(pod, Unmeasured)).count() as u32;
            prop_assert!(proposed >= missing.min(current), "{proposed} for {missing}");
        }
    }

    #[test]
    fn the_replicas_that_a_load_needs_are_enough_for_it(
        load in 1u64..40_000, target in 1i32..150, current in 1u32..40,
    ) {
        let now = at(0);
        let propose = |current| {
            propose(&cpu(target), current, &super::super::test_support::loaded("paris", current, load, now)).unwrap()
        };
        let first = propose(current);
        if first > 0 && first < 2000 {
            prop_assert_eq!(propose(first), first);
        }
    }
}

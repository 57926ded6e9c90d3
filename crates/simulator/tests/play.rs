//! Small scenarios from beginning to end.

#![allow(clippy::unwrap_used)]

use portolan_simulator::{Baseline, Options, Record, load, simulate};
use sha2::{Digest, Sha256};

/// Two clusters of four CPUs, and twelve tasks of a CPU that all prefer the first.
const CROWDED: &str = "
name: crowded
title: Twelve tasks prefer a cluster that holds four
duration: 12m
hub: {site: paris}
clusters:
- {name: a, site: paris, nodes: {count: 2, cpu: 2, memory: 8Gi}}
- {name: b, site: lyon, nodes: {count: 2, cpu: 2, memory: 8Gi}}
latencies:
- {between: [paris, lyon], rtt: 8ms}
cloud:
  site: paris
  infrastructure: {least: 5s, most: 5s}
  controlPlane: {boot: {least: 40s, most: 50s}, pricePerHour: '0.02'}
  machineTypes:
  - {name: m, cpu: 4, memory: 8Gi, pricePerHour: '0.1', boot: {least: 20s, most: 30s}}
tasks:
  placement: {enableSubstitution: true}
  generator:
    during: 2m
    duration: {always: 2h}
    cpu: {always: 900m}
    memory: {quantiles: [{percent: 0, value: 64Mi}, {percent: 100, value: 128Mi}]}
    locations: [{cluster: a, tasks: 12}]
variants:
  stay:
    title: Nothing goes elsewhere
    patch: [{op: replace, path: /tasks/placement, value: {}}]
";

/// The same with two clouds, one near and dear, the other far and cheap.
fn two_clouds(preference: &str, more: &str) -> String {
    let cloud = |name: &str, site: &str, price: &str| {
        format!(
            "
- name: {name}
  site: {site}
  infrastructure: {{least: 5s, most: 5s}}
  controlPlane: {{boot: {{least: 40s, most: 50s}}, pricePerHour: '0.02'}}
  machineTypes:
  - {{name: m, cpu: 4, memory: 8Gi, pricePerHour: '{price}', boot: {{least: 20s, most: 30s}}}}
  provisioner: {{preference: {preference}}}"
        )
    };
    let (head, tail) = CROWDED.split_once("cloud:\n").unwrap();
    let (_, tail) = tail.split_once("tasks:\n").unwrap();
    let (near, far) = (cloud("near", "orsay", "0.3"), cloud("far", "oslo", "0.1"));
    let ways = "- {between: [paris, orsay], rtt: 2ms}\n- {between: [paris, oslo], rtt: 40ms}\n";
    format!("{head}{ways}clouds:{near}{far}\n{more}tasks:\n{tail}")
}

fn play(variant: Option<&str>, seed: Option<u64>, baseline: Option<Baseline>) -> Record {
    play_this(CROWDED, variant, seed, baseline)
}

fn play_this(text: &str, variant: Option<&str>, seed: Option<u64>, baseline: Option<Baseline>) -> Record {
    let scenario = load("crowded", text, variant).unwrap();
    let options = Options { seed, baseline, label: "crowded".to_owned(), ..Options::default() };
    let mut told = Vec::new();
    let record = simulate(&scenario, &options, &mut |done, total| told.push((done, total))).unwrap();
    assert_eq!(told.last().map(|(done, total)| (done.as_secs(), total.as_secs())), Some((720, 720)));
    record
}

fn last(record: &Record, series: &str) -> f64 {
    *record.series(series).unwrap().values.last().unwrap()
}

#[test]
fn tasks_go_to_a_substitute_and_then_to_the_cloud_and_static_placement_leaves_them_waiting() {
    let portolan = play(None, None, None);
    let running = ["a", "b", "cloud"].map(|name| last(&portolan, &format!("cluster.{name}.podsRunning")));
    assert_eq!(running, [4.0, 4.0, 4.0], "{:?}", portolan.summary);
    assert_eq!(last(&portolan, "fleet.pendingPercent"), 0.0);
    assert_eq!(last(&portolan, "cluster.cloud.cpuCapacity"), 4.0);
    assert!(last(&portolan, "cloud.cost") > 0.0);
    let baseline = play(None, None, Some(Baseline::KubeFed));
    assert_eq!(last(&baseline, "cluster.a.podsPending"), 8.0);
    assert_eq!(last(&baseline, "cluster.b.podsRunning"), 0.0);
    assert_eq!(baseline.figure("peakPendingPercent").unwrap().split('%').next(), Some("66.7"));
    let stay = play(Some("stay"), None, None);
    assert_eq!((last(&stay, "fleet.podsPending"), last(&stay, "cluster.cloud.nodes")), (8.0, 0.0));
}

#[test]
fn of_several_clouds_the_nearest_or_the_cheapest_is_used_and_another_one_if_it_refuses() {
    let cpus = |text: &str| {
        let record = play_this(text, None, None, None);
        assert_eq!(last(&record, "fleet.podsPending"), 0.0, "{:?}", record.summary);
        assert!(
            record.figure("cost.far").is_some() && record.figure("cost").is_some(),
            "{:?}",
            record.summary
        );
        let cpus = ["near", "far"].map(|name| last(&record, &format!("cluster.{name}.cpuCapacity")));
        assert_eq!(last(&record, "cloud.cpuCapacity"), cpus[0] + cpus[1]);
        cpus
    };
    assert_eq!(cpus(&two_clouds("nearest-first", "")), [4.0, 0.0]);
    assert_eq!(cpus(&two_clouds("cheapest-first", "")), [0.0, 4.0]);
    let refuses = "faults:\n- {at: 0s, event: {refuseClusters: {cloud: near, reason: QuotaExceeded, message: no more}}}\n";
    assert_eq!(cpus(&two_clouds("nearest-first", refuses)), [0.0, 4.0]);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let text = |seed| {
        let record = play(None, seed, None);
        record.series_csv() + &record.summary_csv()
    };
    let first = text(None);
    assert_eq!(first, text(None));
    assert_ne!(first, text(Some(2)));
    let columns = first.lines().next().unwrap();
    assert!(columns.starts_with("seconds,cluster.a.cpuRequested,cluster.a.cpuCapacity,"), "{columns}");
}

/// What another machine must come to as well. It changes when the controllers decide differently, or the sandbox behaves otherwise;
/// a change that does neither must not change it.
#[test]
fn the_same_seed_gives_the_same_bytes_on_every_machine() {
    let csv = play(None, None, None).series_csv();
    let digest: String = Sha256::digest(&csv).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "b2d9e775a3e11db761e2ea87f3260d13ef7b9329edae5e47fd84ecf2a47eab43", "{csv}");
}

//! How fast decisions are: `cargo bench -p portolan-control --bench decisions`. Each fleet is a process of its own, so that
//! the memory it prints is its own.
//!
//! A decision is what a controller does in one step: look at the room of every cluster for one workload, decide, and hold
//! what was decided. Between two decisions the last one comes back by its watch, its pods get nodes, and 1% of all nodes
//! change: on each of them one pod goes and one of another size comes. That is timed too, and printed apart from the
//! decisions.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a benchmark looks at the real clock")]
#![allow(missing_docs, reason = "a benchmark is a program")]

use portolan_api::placement::{Placement, PlacementPolicy, ReplicasMode};
use portolan_control::capacity::{Claim, ClusterFeed, Ledger};
use portolan_core::capacity::{Amounts, CPU, MEMORY, NodeFacts, PODS, PodFacts, PodShape, Shape};
use portolan_core::placement::{Candidate, Wanted, decide};
use portolan_runtime::{Change, Key};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const KIND: &str = "Workload";
const PODS_PER_NODE: usize = 2;
const DECISIONS: usize = 1000;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    if let [clusters, nodes] = sizes.as_slice() {
        measure(*clusters, *nodes);
        return;
    }
    for (clusters, nodes) in [(10, 5000), (100, 500), (100, 5000), (100, 50), (1000, 50)] {
        let status = Command::new(std::env::current_exe().unwrap())
            .args([clusters.to_string(), nodes.to_string()])
            .status()
            .unwrap();
        assert!(status.success(), "{clusters} clusters of {nodes} nodes");
    }
}

/// Numbers that look random and are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// One of 32 shapes of nodes: four sizes, four zones, tainted or not.
fn node(name: &str, kind: usize) -> NodeFacts {
    let cpus = [4, 8, 16, 32][kind % 4];
    let mut allocatable = Amounts::of(CPU, cpus * 1000);
    allocatable.set(MEMORY, cpus * 4 * (1 << 30) * 1000);
    allocatable.set(PODS, 110_000);
    let label = |key: &str, value: String| (key.to_owned(), value);
    let labels = BTreeMap::from([
        label("kubernetes.io/hostname", name.to_owned()),
        label("topology.kubernetes.io/zone", format!("z{}", kind / 4 % 4)),
        label("node.kubernetes.io/instance-type", format!("t{}", kind % 4)),
    ]);
    let mut facts =
        NodeFacts { name: name.to_owned(), allocatable, ready: true, labels, ..NodeFacts::default() };
    if kind >= 16 {
        facts.taints = serde_json::from_str(r#"[{"key": "dedicated", "effect": "NoSchedule"}]"#).unwrap();
    }
    facts
}

fn requests(size: usize) -> Amounts {
    let mut requests = Amounts::of(CPU, [100, 250, 500, 1000][size % 4]);
    requests.set(MEMORY, [128, 256, 1024, 2048][size % 4] * (1 << 20) * 1000);
    requests.set(PODS, 1000);
    requests
}

/// Eight shapes of replicas: four sizes, with and without a zone that they want.
fn shape(index: usize) -> Shape {
    let mut shape = PodShape { requests: requests(index), ..PodShape::default() };
    if index % 8 >= 4 {
        shape.node_selector.insert("topology.kubernetes.io/zone".to_owned(), "z1".to_owned());
    }
    shape.into()
}

fn wanted(index: usize, clusters: usize, draw: &mut Draw) -> Wanted {
    let mut placement = Placement::default();
    match index % 3 {
        0 => placement.placement_policy = Some(PlacementPolicy::WorstFit),
        1 => placement.placement_policy = Some(PlacementPolicy::BestFit),
        _ => placement.locations = (0..2).map(|_| format!("c{}", draw.below(clusters))).collect(),
    }
    if placement.locations.is_empty() {
        placement.number_of_locations = Some(2);
    }
    placement.locations.dedup();
    let replicas = 1 + u32::try_from(draw.below(4)).unwrap();
    let (mode, weights) = (ReplicasMode::PerLocation, BTreeMap::new());
    Wanted { shape: shape(index), replicas, mode, weights, placement, bursting: index.is_multiple_of(2) }
}

struct Fleet {
    ledger: Ledger,
    feeds: Vec<Arc<ClusterFeed>>,
    facts: Vec<Candidate>,
    nodes: usize,
}

fn pod(node: usize, size: usize, workload: Option<&str>) -> PodFacts {
    PodFacts {
        node: Some(format!("n{node}")),
        requests: requests(size),
        finished: false,
        workload: workload.map(str::to_owned),
    }
}

fn fleet(clusters: usize, nodes: usize, draw: &mut Draw) -> Fleet {
    let ledger = Ledger::default();
    let feeds: Vec<_> = (0..clusters).map(|cluster| ledger.open(&format!("c{cluster}"))).collect();
    for feed in &feeds {
        let all = (0..nodes).map(|number| {
            let name = format!("n{number}");
            (Key::cluster(&name), node(&name, number % 32))
        });
        feed.nodes(Change::Listed(all.collect()));
        let pods = (0..nodes * PODS_PER_NODE).map(|number| {
            let key = Key::new("default", &format!("app-7d4b9c5f6-{number:05}"));
            (key, pod(number / PODS_PER_NODE, draw.below(4), None))
        });
        feed.pods(Change::Listed(pods.collect()));
    }
    let candidate = |cluster: usize| {
        let labels = BTreeMap::from([("region".to_owned(), format!("r{}", cluster % 7))]);
        Candidate { name: format!("c{cluster}").into(), labels: labels.into(), ..Candidate::default() }
    };
    Fleet { ledger, feeds, facts: (0..clusters).map(candidate).collect(), nodes }
}

impl Fleet {
    /// One decision, as a controller takes it.
    fn decide(&self, uid: &str, wanted: &Wanted) -> BTreeMap<String, u32> {
        self.ledger.transact(|book| {
            let candidates: Vec<Candidate> = self
                .facts
                .iter()
                .map(|facts| {
                    let view = book.view(&facts.name, uid, &wanted.shape);
                    Candidate { room: view.room, settled: view.settled, held: view.held, ..facts.clone() }
                })
                .collect();
            let shortage = |cluster: &str, more: u32| book.shortage(cluster, uid, &wanted.shape, more);
            let decision = decide(wanted, &candidates, shortage).unwrap();
            let placed = decision.placed.iter().map(|(cluster, placed)| (cluster.clone(), placed.replicas));
            let placed: BTreeMap<_, _> = placed.collect();
            assert!(book.assume(uid, Some("1"), &wanted.shape, placed.clone()));
            placed
        })
    }

    fn told(&self, uid: &str, version: &str, shape: &Shape, held: BTreeMap<String, u32>) {
        let (shape, version) = (Some(shape.clone()), Some(version.to_owned()));
        let claim = Claim { uid: uid.to_owned(), version, shape, held, waits: false };
        let change = Change::Set(Key::new("default", uid), claim);
        self.ledger.transact(|book| book.take(KIND, &change, Claim::clone));
    }

    /// The pods of a workload get nodes.
    fn bind(&self, uid: &str, wanted: &Wanted, placed: &BTreeMap<String, u32>, draw: &mut Draw) {
        for (cluster, replicas) in placed {
            let feed = &self.feeds[cluster[1..].parse::<usize>().unwrap()];
            for replica in 0..*replicas {
                let node = Some(format!("n{}", draw.below(self.nodes)));
                let requests = wanted.shape.requests.clone();
                let facts = PodFacts { node, requests, finished: false, workload: Some(uid.to_owned()) };
                feed.pods(Change::Set(Key::new("default", &format!("{uid}-{replica}")), facts));
            }
        }
    }

    /// On 1% of all nodes a pod goes and another one comes.
    fn churn(&self, draw: &mut Draw) -> usize {
        let count = (self.feeds.len() * self.nodes / 100).max(1);
        for _ in 0..count {
            let (cluster, node) = (draw.below(self.feeds.len()), draw.below(self.nodes));
            let number = node * PODS_PER_NODE + draw.below(PODS_PER_NODE);
            let key = Key::new("default", &format!("app-7d4b9c5f6-{number:05}"));
            self.feeds[cluster].pods(Change::Set(key, pod(node, draw.below(4), None)));
        }
        count
    }
}

fn measure(clusters: usize, nodes: usize) {
    let mut draw = Draw(7);
    let began = Instant::now();
    let fleet = fleet(clusters, nodes, &mut draw);
    let (filled, resident) = (began.elapsed(), memory());
    let (mut times, mut churning, mut churned, mut placed_in_all) =
        (Vec::with_capacity(DECISIONS), Duration::ZERO, 0, 0);
    for index in 0..DECISIONS {
        let uid = format!("u{index}");
        let wanted = wanted(index, clusters, &mut draw);
        fleet.told(&uid, "1", &wanted.shape, BTreeMap::new());
        let began = Instant::now();
        let placed = fleet.decide(&uid, &wanted);
        times.push(began.elapsed());
        placed_in_all += placed.values().sum::<u32>();
        let began = Instant::now();
        fleet.told(&uid, "2", &wanted.shape, placed.clone());
        fleet.bind(&uid, &wanted, &placed, &mut draw);
        churned += fleet.churn(&mut draw);
        churning += began.elapsed();
    }
    times.sort();
    let total: Duration = times.iter().sum();
    let at = |percent: usize| times[times.len() * percent / 100];
    println!(
        "decisions: {clusters} clusters x {nodes} nodes in 32 shapes, {} pods: {:.0} decisions/s on one core \
         (p50 {:?}, p99 {:?}, most {:?}; target 2000/s, p99 5ms), {placed_in_all} replicas placed; between \
         decisions 1% churn: {} pods replaced each time, {:.0} changes/s; filled in {filled:.1?}, {resident} MiB \
         before and {} MiB after",
        clusters * nodes * PODS_PER_NODE,
        DECISIONS as f64 / total.as_secs_f64(),
        at(50),
        at(99),
        times.last().unwrap(),
        churned / DECISIONS,
        churned as f64 / churning.as_secs_f64(),
        memory(),
    );
}

fn memory() -> u64 {
    let pages: u64 =
        std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096 / (1 << 20)
}

//! How fast decisions are, on one core.
//!
//! A decision is what a controller does in one step: look at the room of every cluster for one workload, decide, and hold
//! what was decided. Between two decisions the last one comes back by its watch, its pods get nodes, and 1% of all nodes
//! change: on each of them one pod goes and one of another size comes. That is timed too, and printed apart from the
//! decisions.

use portolan_api::placement::{Placement, PlacementPolicy, ReplicasMode};
use portolan_control::capacity::{ClusterFeed, Ledger, Reservation, Waits};
use portolan_core::capacity::{Amounts, CPU, MEMORY, NodeFacts, PODS, PodFacts, PodShape, Shape};
use portolan_core::placement::{Candidate, PlacementRequest, Site, decide};
use portolan_runtime::{Change, Key};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::measure::{Report, quantile_ms};

const KIND: &str = "Workload";
const PODS_PER_NODE: usize = 2;
const DECISIONS: usize = 1000;
/// These come before: each brings a shape that was not asked for yet, and whose room is counted once.
const FIRST: usize = 24;

/// Few large clusters.
pub(crate) fn over_large(clusters: usize) -> Result<Report> {
    measure(clusters, 5_000, 2_000.0)
}

/// Many small clusters.
pub(crate) fn over_many(clusters: usize) -> Result<Report> {
    measure(clusters, 50, 3_000.0)
}

/// Numbers that look random and are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// One of 32 shapes of nodes: four sizes, four zones, tainted or not.
fn node(name: &str, kind: usize) -> Result<NodeFacts> {
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
        facts.taints = serde_json::from_str(r#"[{"key": "dedicated", "effect": "NoSchedule"}]"#)?;
    }
    Ok(facts)
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

fn request(index: usize, clusters: usize, draw: &mut Draw) -> PlacementRequest {
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
    let replicas = [1, 2, 3, 4][draw.below(4)];
    let (mode, weights) = (ReplicasMode::PerLocation, BTreeMap::new());
    PlacementRequest {
        shape: shape(index),
        replicas,
        mode,
        weights,
        placement,
        bursting: index.is_multiple_of(2),
    }
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
        workload: workload.map(str::to_owned),
        ..PodFacts::default()
    }
}

fn fleet(clusters: usize, nodes: usize, draw: &mut Draw) -> Result<Fleet> {
    let ledger = Ledger::default();
    let feeds: Vec<_> = (0..clusters).map(|cluster| ledger.open(&format!("c{cluster}"))).collect();
    for feed in &feeds {
        let all = (0..nodes).map(|number| {
            let name = format!("n{number}");
            Ok((Key::cluster(&name), node(&name, number % 32)?))
        });
        feed.nodes(Change::Listed(all.collect::<Result<_>>()?));
        let pods = (0..nodes * PODS_PER_NODE).map(|number| {
            let key = Key::new("default", &format!("app-7d4b9c5f6-{number:05}"));
            (key, pod(number / PODS_PER_NODE, draw.below(4), None))
        });
        feed.pods(Change::Listed(pods.collect()));
    }
    let candidate = |cluster: usize| {
        let labels = BTreeMap::from([("region".to_owned(), format!("r{}", cluster % 7))]);
        let site = Site { name: format!("c{cluster}"), labels, ..Site::default() };
        Candidate { site: site.into(), ..Candidate::default() }
    };
    let mut facts: Vec<Candidate> = (0..clusters).map(candidate).collect();
    // A controller goes through its clusters by name.
    facts.sort_by(|one, other| one.name().cmp(other.name()));
    Ok(Fleet { ledger, feeds, facts, nodes })
}

impl Fleet {
    /// One decision, as a controller takes it.
    fn decide(&self, uid: &str, request: &PlacementRequest) -> Result<BTreeMap<String, u32>> {
        self.ledger.transact(|book| {
            let candidates: Vec<Candidate> = self
                .facts
                .iter()
                .map(|facts| {
                    let view = book.view(facts.name(), uid, &request.shape);
                    Candidate { room: view.room, bound: view.bound, reserved: view.reserved, ..facts.clone() }
                })
                .collect();
            let shortage = |cluster: &str, more: u32| book.shortage(cluster, uid, &request.shape, more);
            let decision = decide(request, &candidates, shortage)?;
            let placed = decision.placed.iter().map(|(cluster, placed)| (cluster.clone(), placed.replicas));
            let placed: BTreeMap<_, _> = placed.collect();
            let held = book.assume(uid, Some("1"), &request.shape, placed.clone());
            ensure!(held, "{uid} has changed meanwhile");
            Ok(placed)
        })
    }

    fn told(&self, uid: &str, version: &str, shape: &Shape, held: BTreeMap<String, u32>) {
        let (shape, version) = (Some(shape.clone()), Some(version.to_owned()));
        let reservation =
            Reservation { uid: uid.to_owned(), version, shape, reserved: held, waits: Waits::nowhere() };
        let change = Change::Set(Key::new("default", uid), reservation);
        self.ledger.transact(|book| book.take(KIND, &change, Reservation::clone));
    }

    /// The pods of a workload get nodes.
    fn bind(
        &self,
        uid: &str,
        request: &PlacementRequest,
        placed: &BTreeMap<String, u32>,
        draw: &mut Draw,
    ) -> Result<()> {
        for (cluster, replicas) in placed {
            let number: usize = cluster.trim_start_matches('c').parse()?;
            let feed = self.feeds.get(number).context("a cluster of the fleet")?;
            for replica in 0..*replicas {
                let node = Some(format!("n{}", draw.below(self.nodes)));
                let requests = request.shape.requests.clone();
                let template = Some(request.shape.template_hash());
                let workload = Some(uid.to_owned());
                let facts = PodFacts { node, requests, workload, template, ..PodFacts::default() };
                feed.pods(Change::Set(Key::new("default", &format!("{uid}-{replica}")), facts));
            }
        }
        Ok(())
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

fn measure(clusters: usize, nodes: usize, least: f64) -> Result<Report> {
    let mut draw = Draw(7);
    let began = Instant::now();
    let fleet = fleet(clusters, nodes, &mut draw)?;
    let filled = began.elapsed();
    let mut times = Vec::with_capacity(DECISIONS);
    let (mut first, mut churning, mut churned) = (Duration::ZERO, Duration::ZERO, 0);
    for index in 0..FIRST + DECISIONS {
        let uid = format!("u{index}");
        let request = request(index, clusters, &mut draw);
        fleet.told(&uid, "1", &request.shape, BTreeMap::new());
        let began = Instant::now();
        let placed = fleet.decide(&uid, &request)?;
        if index < FIRST {
            first += began.elapsed();
        } else {
            times.push(began.elapsed());
        }
        let began = Instant::now();
        fleet.told(&uid, "2", &request.shape, placed.clone());
        fleet.bind(&uid, &request, &placed, &mut draw)?;
        churned += fleet.churn(&mut draw);
        churning += began.elapsed();
    }
    let total: Duration = times.iter().sum();
    Ok(Report::new(total)?
        .figure("nodes, in 32 shapes", (clusters * nodes) as f64, "")
        .figure("pods at the start", (clusters * nodes * PODS_PER_NODE) as f64, "")
        .figure("filled in", filled.as_secs_f64(), "s")
        .figure("nodes changed between two decisions", churned as f64 / (FIRST + DECISIONS) as f64, "")
        .figure("changes taken", churned as f64 / churning.as_secs_f64(), "a second")
        .figure("the first 24 decisions, new shapes", first.as_secs_f64() * 1000.0, "ms")
        .at_least("decisions on one core", DECISIONS as f64 / total.as_secs_f64(), "a second", least)
        .figure("a decision, p50", quantile_ms(&mut times, 0.5), "ms")
        .at_most("a decision, p99", quantile_ms(&mut times, 0.99), "ms", 5.0))
}

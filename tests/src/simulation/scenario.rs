//! What happens in a simulation, drawn from its seed.

use super::invariants::{Observer, settled};
use super::wishes::{Wishes, config, reference};
use super::{CONTROLLER, Contender, Fleet, STANDBY, apply};
use crate::{NAMESPACE, foreign_cluster, job, open_namespace, service};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use portolan_api::{MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use portolan_runtime::Seed;
use portolan_sandbox::{Cluster, CrashPoint, FaultPlan, FaultRates, NodeConfig, World, WorldConfig};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// What came of a simulation.
pub struct Outcome {
    /// The hash of the history: every request, its outcome, and every change of every store.
    pub hash: String,
    /// How many lines the history has.
    pub events: u64,
    /// How often a controller crashed.
    pub crashes: usize,
    /// What was not as it must be.
    pub problems: Vec<String>,
    /// The history, to be read.
    pub log: Vec<String>,
}

const NAMES: [&str; 4] = ["m1", "m2", "m3", "m4"];
const PARTIES: [&str; 2] = [CONTROLLER, STANDBY];
const STEPS: usize = 14;
const STEP: Duration = Duration::from_secs(7);
const CALM: Duration = Duration::from_secs(300);

/// Runs one simulation from beginning to end, on a runtime of its own with virtual time.
///
/// # Panics
/// The machine has no room for a runtime.
#[must_use]
pub fn simulate(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime can be made").block_on(run(seed))
}

async fn run(seed: u64) -> Outcome {
    let mut rng = Seed::new(seed).child("scenario").rng();
    let (faults, crashes) = faults(&mut rng);
    let start = Timestamp::from_second(1_800_000_000).unwrap_or_default();
    let world = World::new(WorldConfig { seed, start, faults, ..WorldConfig::default() });
    let members: Vec<_> = NAMES[..rng.random_range(2..=NAMES.len())]
        .iter()
        .map(|name| {
            (*name, rng.random_range(1..=3), NodeConfig::new(rng.random_range(1..=4).to_string(), "8Gi"))
        })
        .collect();
    let fleet = Fleet::new(world.clone(), &members).await;
    set_distances(&fleet, &mut rng).await;
    // Half of the worlds have a second controller that stands by.
    let contenders = rng.random_range(1..=2);
    let controllers: Vec<_> = PARTIES[..contenders]
        .iter()
        .map(|party| {
            let seed = Seed::new(seed).child(party);
            tokio::spawn(Contender::named(party).run(world.clone(), fleet.hub.clone(), seed))
        })
        .collect();
    let mut story = Story::new(fleet, rng);
    let mut problems = Vec::new();
    for _ in 0..STEPS {
        story.act().await;
        tokio::time::sleep(STEP).await;
        problems.extend(story.observer.look(&story.fleet).await);
    }
    story.mend().await;
    world.stop_faults();
    tokio::time::sleep(CALM).await;
    problems.extend(story.observer.look(&story.fleet).await);
    problems.extend(settled(&story.fleet).await);
    controllers.iter().for_each(tokio::task::JoinHandle::abort);
    let log = world.log();
    Outcome { hash: log.hash(), events: log.count(), crashes, problems, log: log.lines() }
}

/// Some requests fail in every way there is, and now and then a controller crashes around one.
fn faults(rng: &mut ChaCha8Rng) -> (FaultPlan, usize) {
    let rates = FaultRates::evenly(rng.random_range(0..=120));
    let mut plan = FaultPlan::none().party(CONTROLLER, rates).party(STANDBY, rates);
    let crashes = rng.random_range(0..=4);
    for _ in 0..crashes {
        let point = if rng.random_bool(0.5) { CrashPoint::Before } else { CrashPoint::After };
        let party = PARTIES[rng.random_range(0..PARTIES.len())];
        plan = plan.crash(party, rng.random_range(5..400), point);
    }
    (plan, crashes)
}

/// Says how far the members are from each other, in most worlds.
async fn set_distances(fleet: &Fleet, rng: &mut ChaCha8Rng) {
    if rng.random_bool(0.3) {
        return;
    }
    let user = fleet.hub.client("user");
    for (index, member) in fleet.members.iter().enumerate() {
        let mut foreign = foreign_cluster(member.name());
        let others = fleet.members[..index].iter();
        let latencies: Vec<_> = others
            .map(|other| json!({"to": other.name(), "rtt": format!("{}ms", rng.random_range(1..=60))}))
            .collect();
        foreign["spec"]["latencies"] = json!(latencies);
        apply(&user, &foreign).await;
    }
}

struct Story {
    fleet: Fleet,
    rng: ChaCha8Rng,
    /// Who is cut off from which cluster.
    cut: BTreeSet<(&'static str, String)>,
    /// Members whose namespace is closed.
    closed: BTreeSet<usize>,
    /// Nodes that are down: member and node.
    down: BTreeSet<(usize, String)>,
    observer: Observer,
}

impl Story {
    fn new(fleet: Fleet, rng: ChaCha8Rng) -> Self {
        let (cut, closed, down) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { fleet, rng, cut, closed, down, observer: Observer::default() }
    }

    /// One thing happens.
    async fn act(&mut self) {
        let user = self.fleet.hub.client("user");
        let name = format!("app{}", self.rng.random_range(0..4));
        let member = self.rng.random_range(0..self.fleet.members.len());
        match self.rng.random_range(0..26) {
            0..=8 => {
                let members: Vec<_> = self.fleet.members.iter().map(Cluster::name).collect();
                let wish = Wishes { members: &members, rng: &mut self.rng }.draw(&name);
                apply(&user, &wish).await;
            }
            9 => {
                let api: Api<MultiClusterDeployment> = Api::namespaced(user, NAMESPACE);
                // There may be nothing to delete.
                let _ = api.delete(&name, &Default::default()).await;
            }
            10..=12 => {
                let member = self.fleet.members[member].name().to_owned();
                for party in PARTIES {
                    self.cut_off(party, member.clone());
                }
            }
            13 => {
                let party = PARTIES[self.rng.random_range(0..PARTIES.len())];
                self.cut_off(party, "hub".to_owned());
            }
            14 => self.heal(),
            15 => {
                let object = config(self.rng.random_range(0..3), self.rng.random_range(0..100));
                apply(&user, &object).await;
            }
            16 => {
                let api: Api<ConfigMap> = Api::namespaced(user, NAMESPACE);
                let _ =
                    api.delete(&format!("config{}", self.rng.random_range(0..3)), &Default::default()).await;
            }
            17 => self.fail_a_node(member).await,
            18 => self.close(member, !self.closed.contains(&member)).await,
            19 => apply(&user, &service("web", json!({"app": "any"}))).await,
            20 => {
                let api: Api<MultiClusterService> = Api::namespaced(user, NAMESPACE);
                let _ = api.delete("web", &Default::default()).await;
            }
            21..=23 => self.ask_for_work(&user).await,
            24 => {
                let api: Api<MultiClusterJob> = Api::namespaced(user, NAMESPACE);
                let _ = api.delete("batch0", &Default::default()).await;
            }
            _ => self.meddle(member, &name).await,
        }
    }

    /// A job is made, or one that is there is held, let go or run at another pace.
    async fn ask_for_work(&mut self, user: &kube::Client) {
        let name = format!("batch{}", self.rng.random_range(0..2));
        let (completions, parallelism) = (self.rng.random_range(1..=5), self.rng.random_range(1..=3));
        let (suspend, total) = (self.rng.random_bool(0.2), self.rng.random_bool(0.5));
        let members: Vec<String> = self.fleet.members.iter().map(|member| member.name().to_owned()).collect();
        let count = self.rng.random_range(1..=members.len());
        let by_name = self.rng.random_bool(0.6);
        let api: Api<MultiClusterJob> = Api::namespaced(user.clone(), NAMESPACE);
        if api.get_opt(&name).await.is_ok_and(|found| found.is_some()) {
            let patch = json!({"spec": {"parallelism": parallelism, "suspend": suspend}});
            // It may be gone by now.
            let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
            return;
        }
        let mut more = if by_name {
            json!({"locations": members[..count]})
        } else {
            json!({"placementPolicy": "worst-fit", "numberOfLocations": 1})
        };
        more["countMode"] = json!(if total { "Total" } else { "PerLocation" });
        let mut wish = job(&name, completions, parallelism, more);
        if let Some(reference) = reference(&mut self.rng) {
            wish["spec"]["template"]["spec"]["containers"][0]["envFrom"] = reference;
        }
        apply(user, &wish).await;
    }

    fn cut_off(&mut self, party: &'static str, cluster: String) {
        self.fleet.world.partition(party, &cluster);
        self.cut.insert((party, cluster));
    }

    fn heal(&mut self) {
        for (party, cluster) in std::mem::take(&mut self.cut) {
            self.fleet.world.heal(party, &cluster);
        }
    }

    async fn fail_a_node(&mut self, member: usize) {
        let api: Api<Node> = Api::all(self.fleet.members[member].client("user"));
        let nodes = api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
        if nodes.len() > 1 {
            let node = nodes[self.rng.random_range(0..nodes.len())].metadata.name.clone().unwrap_or_default();
            self.fleet.members[member].fail_node(&node);
            self.down.insert((member, node));
        }
    }

    async fn close(&mut self, member: usize, closed: bool) {
        let mut namespace = open_namespace();
        if closed {
            namespace["metadata"]["labels"]["portolan.dev/placement"] = json!("closed");
            self.closed.insert(member);
        } else {
            self.closed.remove(&member);
        }
        apply(&self.fleet.members[member].client("user"), &namespace).await;
    }

    /// Somebody changes a copy in a member, or deletes it.
    async fn meddle(&mut self, member: usize, name: &str) {
        let api: Api<Deployment> = Api::namespaced(self.fleet.members[member].client("user"), NAMESPACE);
        let patch = json!({"spec": {"replicas": self.rng.random_range(0..=5)}});
        // There may be no copy.
        let _ = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    }

    /// A node that was down comes back without its pods.
    async fn reboot(&self, member: usize, node: &str) {
        let api: Api<Pod> = Api::namespaced(self.fleet.members[member].client("user"), NAMESPACE);
        for pod in api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default() {
            let here = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            if here && !matches!(phase, Some("Succeeded" | "Failed")) {
                let name = pod.metadata.name.unwrap_or_default();
                let _ = api.delete(&name, &DeleteParams::default().grace_period(0)).await;
            }
        }
        self.fleet.members[member].restore_node(node);
    }

    /// All that was broken is whole again.
    async fn mend(&mut self) {
        self.heal();
        for member in self.closed.clone() {
            self.close(member, false).await;
        }
        for (member, node) in std::mem::take(&mut self.down) {
            self.reboot(member, &node).await;
        }
    }
}

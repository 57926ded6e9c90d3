//! What happens in a simulation, drawn from its seed.

use super::invariants::{Observer, settled};
use super::{CONTROLLER, Fleet, apply};
use crate::{NAMESPACE, job, service, workload};
use jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::{MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use portolan_runtime::Seed;
use portolan_sandbox::{CrashPoint, FaultPlan, FaultRates, NodeConfig, World, WorldConfig};
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
    /// How often the controller crashed.
    pub crashes: usize,
    /// What was not as it must be.
    pub problems: Vec<String>,
    /// The history, to be read.
    pub log: Vec<String>,
}

const NAMES: [&str; 4] = ["m1", "m2", "m3", "m4"];
const STEPS: usize = 12;
const STEP: Duration = Duration::from_secs(7);
const CALM: Duration = Duration::from_secs(240);

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
    let plan = faults(&mut rng);
    let crashes = plan.1;
    let start = Timestamp::from_second(1_800_000_000).unwrap_or_default();
    let world = World::new(WorldConfig { seed, start, faults: plan.0, ..WorldConfig::default() });
    let members: Vec<_> = NAMES[..rng.random_range(2..=NAMES.len())]
        .iter()
        .map(|name| {
            (*name, rng.random_range(1..=3), NodeConfig::new(rng.random_range(1..=4).to_string(), "8Gi"))
        })
        .collect();
    let fleet = Fleet::new(world.clone(), &members).await;
    let controller =
        tokio::spawn(Fleet::control(world.clone(), fleet.hub.clone(), Seed::new(seed).child("controller")));
    let mut story = Story { fleet, rng, cut: BTreeSet::new(), observer: Observer::default() };
    let mut problems = Vec::new();
    for _ in 0..STEPS {
        story.act().await;
        tokio::time::sleep(STEP).await;
        problems.extend(story.observer.look(&story.fleet).await);
    }
    for member in std::mem::take(&mut story.cut) {
        world.heal(CONTROLLER, &member);
    }
    world.stop_faults();
    tokio::time::sleep(CALM).await;
    problems.extend(story.observer.look(&story.fleet).await);
    problems.extend(settled(&story.fleet).await);
    controller.abort();
    let log = world.log();
    Outcome { hash: log.hash(), events: log.count(), crashes, problems, log: log.lines() }
}

/// Some requests fail in every way there is, and now and then the controller crashes around one.
fn faults(rng: &mut ChaCha8Rng) -> (FaultPlan, usize) {
    let rates = FaultRates::evenly(rng.random_range(0..=120));
    let mut plan = FaultPlan::none().party(CONTROLLER, rates);
    let crashes = rng.random_range(0..=4);
    for _ in 0..crashes {
        let point = if rng.random_bool(0.5) { CrashPoint::Before } else { CrashPoint::After };
        plan = plan.crash(CONTROLLER, rng.random_range(5..400), point);
    }
    (plan, crashes)
}

struct Story {
    fleet: Fleet,
    rng: ChaCha8Rng,
    cut: BTreeSet<String>,
    observer: Observer,
}

impl Story {
    /// One thing happens.
    async fn act(&mut self) {
        let user = self.fleet.hub.client("user");
        let name = format!("app{}", self.rng.random_range(0..4));
        match self.rng.random_range(0..16) {
            0..=5 => {
                let replicas = self.rng.random_range(0..=4);
                let more = self.wish();
                apply(&user, &workload(&name, replicas, more)).await;
            }
            6 => {
                let api: Api<MultiClusterDeployment> = Api::namespaced(user, NAMESPACE);
                // There may be nothing to delete.
                let _ = api.delete(&name, &Default::default()).await;
            }
            7 | 8 => {
                let member =
                    self.fleet.members[self.rng.random_range(0..self.fleet.members.len())].name().to_owned();
                self.fleet.world.partition(CONTROLLER, &member);
                self.cut.insert(member);
            }
            10 => apply(&user, &service("web", json!({"app": "any"}))).await,
            11 => {
                let api: Api<MultiClusterService> = Api::namespaced(user, NAMESPACE);
                // There may be nothing to delete.
                let _ = api.delete("web", &Default::default()).await;
            }
            12..=14 => self.ask_for_work(&user).await,
            15 => {
                let api: Api<MultiClusterJob> = Api::namespaced(user, NAMESPACE);
                // There may be nothing to delete.
                let _ = api.delete("batch0", &Default::default()).await;
            }
            _ => {
                for member in std::mem::take(&mut self.cut) {
                    self.fleet.world.heal(CONTROLLER, &member);
                }
            }
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
        more["completionsMode"] = json!(if total { "Total" } else { "PerLocation" });
        apply(user, &job(&name, completions, parallelism, more)).await;
    }

    fn wish(&mut self) -> serde_json::Value {
        let members: Vec<String> = self.fleet.members.iter().map(|member| member.name().to_owned()).collect();
        let mode = if self.rng.random_bool(0.3) { "Total" } else { "PerLocation" };
        let request = format!("{}m", self.rng.random_range(1..=8) * 100);
        let template = json!({
            "metadata": {"labels": {"app": "any"}},
            "spec": {"containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": request}}}]},
        });
        let mut wish = match self.rng.random_range(0..3) {
            0 => {
                let count = self.rng.random_range(1..=members.len());
                json!({"locations": members[..count]})
            }
            1 => json!({"placementPolicy": "worst-fit", "numberOfLocations": self.rng.random_range(1..=2)}),
            _ => json!({"placementPolicy": "best-fit", "numberOfLocations": 1}),
        };
        if wish.get("locations").is_some() && self.rng.random_bool(0.4) {
            wish["enableSubstitution"] = json!(true);
        }
        if self.rng.random_bool(0.3) {
            wish["enableBursting"] = json!(true);
        }
        wish["replicasMode"] = json!(mode);
        wish["selector"] = json!({"matchLabels": {"app": "any"}});
        wish["template"] = template;
        // In a full cluster a rolling update that also grows may wait for ever for room that its own old pods hold;
        // so it is in Kubernetes.
        wish["strategy"] = json!({"type": "Recreate"});
        wish
    }
}

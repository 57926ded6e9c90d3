//! What happens in a simulation, drawn from its seed.

use super::acts::Story;
use super::invariants::settled;
use super::patience::impatient;
use super::readiness::Readiness;
use super::tally::{Drawn, Tally};
use super::wishes::runtime_class;
use super::{CONTROLLER, Contender, Fleet, STANDBY, apply};
use crate::foreign_cluster;
use jiff::Timestamp;
use kube::Api;
use portolan_api::MultiClusterService;
use portolan_runtime::Seed;
use portolan_sandbox::{CrashPoint, FaultPlan, FaultRates, NodeConfig, World, WorldConfig};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::time::Duration;

/// What came of a simulation.
pub struct Outcome {
    /// The hash of the history: every request, its outcome, and every change of every store.
    pub hash: String,
    /// How many lines the history has.
    pub events: u64,
    /// How often a controller crashed.
    pub crashes: usize,
    /// What was drawn, and how often.
    pub drawn: Tally,
    /// What was not as it must be.
    pub problems: Vec<String>,
    /// The history, to be read.
    pub log: Vec<String>,
}

const NAMES: [&str; 4] = ["m1", "m2", "m3", "m4"];
/// All controllers that there may be.
pub(super) const PARTIES: [&str; 2] = [CONTROLLER, STANDBY];
const STEPS: usize = 14;
const STEP: Duration = Duration::from_secs(7);
const CALM: Duration = Duration::from_secs(660);

/// From this seed on, clusters of different administrators peer by invitation.
pub const TENANCIES: u64 = 1_000_000;

/// Runs one simulation from beginning to end, on a runtime of its own with virtual time.
///
/// # Panics
/// The machine has no room for a runtime.
#[must_use]
pub fn simulate(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime can be made").block_on(async {
        match seed {
            TENANCIES.. => super::tenancy::run(seed).await,
            // The fleet of every sixteenth world grows and shrinks.
            _ if seed % 16 == 7 => super::elastic::run(seed).await,
            _ => run(seed).await,
        }
    })
}

async fn run(seed: u64) -> Outcome {
    let mut rng = Seed::new(seed).child("scenario").rng();
    let mut tally = Tally::default();
    let (faults, crashes) = faults(&mut rng, &mut tally);
    let start = Timestamp::from_second(1_800_000_000).unwrap_or_default();
    let world = World::new(WorldConfig { seed, start, faults, ..WorldConfig::default() });
    let readiness = Readiness::default();
    readiness.follow(&world);
    let members: Vec<_> = NAMES[..rng.random_range(2..=NAMES.len())]
        .iter()
        .map(|name| {
            (*name, rng.random_range(1..=3), NodeConfig::new(rng.random_range(1..=4).to_string(), "8Gi"))
        })
        .collect();
    let fleet = Fleet::new(world.clone(), &members).await;
    for member in &fleet.members {
        apply(&member.client("user"), &runtime_class(rng.random_range(1..=5) * 50)).await;
    }
    set_distances(&fleet, &mut rng).await;
    // Half of the worlds have a second controller that stands by.
    let contenders = rng.random_range(1..=2);
    if contenders > 1 {
        tally.add(Drawn::Standby);
    }
    let controllers: Vec<_> = PARTIES[..contenders]
        .iter()
        .map(|party| {
            let seed = Seed::new(seed).child(party);
            tokio::spawn(Contender::named(party).run(world.clone(), fleet.hub.clone(), seed))
        })
        .collect();
    let mut story = Story::new(fleet, rng, tally, readiness);
    story.remember_clusters().await;
    let mut problems = Vec::new();
    for _ in 0..STEPS {
        story.act().await;
        tokio::time::sleep(STEP).await;
        problems.extend(story.observer.look(&story.fleet).await);
        problems.extend(story.readiness.look());
    }
    story.mend().await;
    tokio::time::sleep(CALM).await;
    problems.extend(story.observer.look(&story.fleet).await);
    problems.extend(story.readiness.look());
    problems.extend(settled(&story.fleet).await);
    controllers.iter().for_each(tokio::task::JoinHandle::abort);
    let log = world.log();
    log.listen(None);
    let (drawn, mut lines) = (story.tally, log.lines());
    problems.extend(impatient(&lines));
    if !problems.is_empty() {
        lines.extend(last_state(&story.fleet).await);
    }
    Outcome { hash: log.hash(), events: log.count(), crashes, drawn, problems, log: lines }
}

/// The workloads and services as they are in the end, for whoever looks for the cause of a problem.
async fn last_state(fleet: &Fleet) -> Vec<String> {
    let services: Api<MultiClusterService> = Api::all(fleet.hub.client("user"));
    let services = services.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
    let workloads = fleet.workloads().await.into_iter().map(|workload| json!(workload));
    let objects = workloads.chain(services.into_iter().map(|service| json!(service)));
    objects
        .map(|mut object| {
            object["metadata"]["managedFields"].take();
            format!("in the end: {object}")
        })
        .collect()
}

/// Some requests fail in every way there is, and now and then a controller crashes around one.
fn faults(rng: &mut ChaCha8Rng, tally: &mut Tally) -> (FaultPlan, usize) {
    let per_mille = rng.random_range(0..=120);
    if per_mille > 0 {
        tally.add(Drawn::RequestFaults);
    }
    let rates = FaultRates::evenly(per_mille);
    let mut plan = FaultPlan::none().party(CONTROLLER, rates).party(STANDBY, rates);
    let crashes = rng.random_range(0..=4);
    for _ in 0..crashes {
        let point = if rng.random_bool(0.5) { CrashPoint::Before } else { CrashPoint::After };
        let party = PARTIES[rng.random_range(0..PARTIES.len())];
        tally.add(Drawn::Crash);
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

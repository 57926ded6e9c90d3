//! What a world of tenancies begins with.

use super::stage::{command, controller};
use crate::simulation::tally::{Drawn, Tally};
use jiff::SignedDuration;
use portolan_sandbox::{CrashPoint, FaultPlan, FaultRates};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const NAMES: [&str; 4] = ["rome", "paris", "oslo", "bern"];

/// The clusters that there are, and what goes wrong between them.
pub(super) struct Plan {
    pub(super) clusters: Vec<Site>,
    pub(super) faults: FaultPlan,
    pub(super) crashes: usize,
    /// For how many seconds certificates are asked for.
    pub(super) lifetime: i32,
}

/// One cluster as it begins.
pub(super) struct Site {
    pub(super) name: &'static str,
    pub(super) nodes: usize,
    pub(super) cpus: u32,
    /// How far its clock is ahead.
    pub(super) ahead: SignedDuration,
}

impl Plan {
    pub(super) fn draw(rng: &mut ChaCha8Rng, tally: &mut Tally) -> Self {
        let mut clusters = Vec::new();
        for name in &NAMES[..[2, 2, 3, 3, 4][rng.random_range(0..5)]] {
            let ahead = if rng.random_bool(0.25) {
                tally.add(Drawn::ClockOff);
                SignedDuration::from_secs(rng.random_range(-600..=600))
            } else {
                SignedDuration::ZERO
            };
            let (nodes, cpus) = (rng.random_range(1..=2), rng.random_range(2..=6));
            clusters.push(Site { name, nodes, cpus, ahead });
        }
        let (faults, crashes) = faults(rng, tally, &clusters);
        Self { clusters, faults, crashes, lifetime: [1800, 3600, 7200][rng.random_range(0..3)] }
    }
}

/// Requests of controllers and of commands fail, and now and then one of them crashes around a request.
fn faults(rng: &mut ChaCha8Rng, tally: &mut Tally, clusters: &[Site]) -> (FaultPlan, usize) {
    let per_mille = [0, 10, 40, 90][rng.random_range(0..4)];
    if per_mille > 0 {
        tally.add(Drawn::RequestFaults);
    }
    let rates = FaultRates::evenly(per_mille);
    // A command makes many requests and ends at the first that fails: with the rates of controllers none would succeed.
    let of_commands = FaultRates::evenly(per_mille / 10);
    let mut plan = FaultPlan::none();
    for site in clusters {
        plan = plan.party(controller(site.name), rates).party(command(site.name), of_commands);
    }
    let crashes = rng.random_range(0..=5);
    for _ in 0..crashes {
        tally.add(Drawn::Crash);
        let point = if rng.random_bool(0.5) { CrashPoint::Before } else { CrashPoint::After };
        let site = &clusters[rng.random_range(0..clusters.len())];
        plan = plan.crash(controller(site.name), rng.random_range(30..900), point);
    }
    (plan, crashes)
}

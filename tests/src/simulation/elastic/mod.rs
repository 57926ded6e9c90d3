//! Worlds whose fleet grows and shrinks: an autoscaler, cloud clusters on demand and a rescheduler, while loads change,
//! metrics lie, clouds fail and controllers crash.

mod acts;
mod cloud;
mod draw;
mod judge;
mod stage;

pub use cloud::{CLOUDS, cluster_class, cluster_templates, from_templates};
pub use stage::controllers;

use super::readiness::Readiness;
use super::tally::Tally;
use super::{CONTROLLER, Outcome};
use acts::Story;
use draw::Plan;
use portolan_runtime::Seed;
use rand::RngExt;
use stage::Stage;
use std::time::Duration;

const STEPS: usize = 16;
/// How often it is looked what the cloud runs.
const LOOK: Duration = Duration::from_secs(5);
/// After this the fleet has settled under a load that stays the same.
const SETTLE: Duration = Duration::from_secs(1_800);
/// So long nothing may change then.
const STEADY: Duration = Duration::from_secs(900);
/// After this nothing is left of a burst when the load has gone.
const CALM: Duration = Duration::from_secs(2_700);

pub(super) async fn run(seed: u64) -> Outcome {
    let mut rng = Seed::new(seed).child("elastic").rng();
    let mut tally = Tally::default();
    let (faults, crashes) = draw::faults(&mut rng, &mut tally);
    let plan = Plan::draw(&mut rng, &mut tally);
    let readiness = Readiness::default();
    let stage = Stage::new(seed, faults, &plan, &readiness).await;
    let (world, hub) = (stage.world.clone(), stage.hub.clone());
    let work = tokio::spawn(stage::for_ever(world.clone(), hub, Seed::new(seed).child(CONTROLLER)));
    let mut story = Story::new(stage, plan, rng, tally, readiness);
    story.begin().await;
    let mut problems = Vec::new();
    for _ in 0..STEPS {
        story.act().await;
        let pause = Duration::from_secs(story.rng.random_range(20..=200));
        problems.extend(story.pass(pause).await);
    }
    story.mend().await;
    problems.extend(story.pass(SETTLE).await);
    problems.extend(story.steady(STEADY).await);
    story.leave().await;
    problems.extend(story.pass(CALM).await);
    problems.extend(story.settled().await);
    work.abort();
    let log = world.log();
    log.listen(None);
    let mut lines = log.lines();
    problems.extend(super::patience::impatient(&lines));
    if !problems.is_empty() {
        lines.extend(story.last_state().await);
    }
    let drawn = story.tally;
    problems.dedup();
    Outcome { hash: log.hash(), events: log.count(), crashes, drawn, problems, log: lines }
}

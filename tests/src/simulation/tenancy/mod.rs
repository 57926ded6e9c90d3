//! Worlds of clusters with different administrators, who peer by invitation, share, end peerings and make mistakes, while
//! requests fail, clusters are cut off and controllers crash.

mod acts;
mod commands;
mod dial;
mod judge;
mod left;
mod own_work;
mod plan;
mod settled;
mod stage;

pub use dial::{by_config, keys};

use super::Outcome;
use super::tally::Tally;
use acts::Story;
use judge::Judge;
use plan::Plan;
use portolan_runtime::Seed;
use rand::RngExt;
use stage::Stage;
use std::time::Duration;

const STEPS: usize = 22;
/// After this all that can come back has come back.
const CALM: Duration = Duration::from_secs(600);
/// So long little may be written then.
const STEADY: Duration = Duration::from_secs(240);
/// After this nothing is left of peerings that were ended, nor of invitations that were never answered.
const PARTED: Duration = Duration::from_secs(4_500);

pub(super) async fn run(seed: u64) -> Outcome {
    let mut rng = Seed::new(seed).child("tenancies").rng();
    let mut tally = Tally::default();
    let plan = Plan::draw(&mut rng, &mut tally);
    let (crashes, judge) = (plan.crashes, Judge::default());
    let stage = Stage::new(seed, plan, &judge).await;
    let before = left::listed(&stage).await;
    let world = stage.world.clone();
    let mut story = Story::new(stage, rng, tally, judge, seed);
    let mut problems = Vec::new();
    for left in (1..=STEPS).rev() {
        story.act(left).await;
        tokio::time::sleep(Duration::from_secs(story.rng.random_range(2..=45))).await;
        problems.extend(story.look(false));
    }
    story.mend().await;
    tokio::time::sleep(CALM).await;
    problems.extend(story.look(true));
    problems.extend(story.settled().await);
    let steady = world.log().count();
    tokio::time::sleep(STEADY).await;
    let since = usize::try_from(world.log().count() - steady).unwrap_or(usize::MAX);
    let lines = world.log().lines();
    problems.extend(settled::busy(&lines[lines.len().saturating_sub(since)..]));
    problems.dedup();
    let state = if problems.is_empty() { Vec::new() } else { left::state(&story.stage).await };
    problems.extend(story.part().await);
    tokio::time::sleep(PARTED).await;
    problems.extend(story.look(true));
    problems.extend(left::left(&story.stage, &before).await);
    story.stage.stop();
    let log = world.log();
    log.listen(None);
    let mut lines = log.lines();
    problems.extend(super::patience::impatient(&lines));
    if !problems.is_empty() {
        lines.extend(state);
        lines.extend(left::state(&story.stage).await);
    }
    Outcome { hash: log.hash(), events: log.count(), crashes, drawn: story.tally, problems, log: lines }
}

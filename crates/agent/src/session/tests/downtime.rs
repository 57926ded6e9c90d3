//! A pod that stands still waits for nothing that is done already.

use super::node::{Node, clock, order, pod};
use super::play::Play;
use super::world::World;
use crate::session::Role;
use portolan_core::migration::destination::DestinationStage;
use portolan_core::migration::source::{SourceGoal, SourceStage};
use portolan_core::migration::{Outcome, Report};
use std::time::Duration;
use tokio::time::sleep;

/// Much shorter than the pause between two looks at a pod with which nothing is to be done.
const SHORT: Duration = Duration::from_millis(30);

#[tokio::test(start_paused = true)]
async fn a_source_goes_on_as_soon_as_a_step_is_done() {
    let world = World::shared();
    let node = Node::start(&world, Role::Source, &clock()).await;
    let ask = async |session, goal| match node.sessions().order_source(&pod(), &order(session, 1, goal)).await
    {
        Ok(Report::Progress(progress)) => progress,
        other => unreachable!("there is no session: {other:?}"),
    };
    let session = Some(ask(None, SourceGoal::Reserved).await.session);
    ask(session, SourceGoal::Sent).await;
    let dump = world.lock().unwrap().dump_takes;
    sleep(dump + SHORT).await;
    assert_eq!(ask(session, SourceGoal::Sent).await.stage, SourceStage::Checkpointed);
    ask(session, SourceGoal::Released).await;
    sleep(SHORT).await;
    let stage = ask(session, SourceGoal::Released).await.stage;
    assert!(stage >= SourceStage::Released && stage.is_committed(), "{stage:?}");
}

#[tokio::test(start_paused = true)]
async fn a_destination_restores_as_soon_as_the_checkpoint_has_arrived() {
    let mut play = Play::new("Transactional").await;
    play.world.lock().unwrap().send_takes = Duration::from_secs(3600);
    play.until(|world| world.receiving && world.checkpoint.is_some()).await;
    {
        let mut world = play.world.lock().unwrap();
        world.data = world.checkpoint;
        world.arrived.notify_one();
    }
    sleep(SHORT).await;
    match play.destination.sessions().destination_report(&pod()) {
        Some(Report::Progress(progress)) => assert_eq!(progress.stage, DestinationStage::Verified),
        other => unreachable!("there is no session: {other:?}"),
    }
    assert_eq!(play.settle().await, Outcome::Succeeded);
}

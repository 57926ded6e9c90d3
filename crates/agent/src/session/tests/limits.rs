//! The source's own limit, aborts of what takes long, and disks that are full.

use super::node::pod;
use super::play::Play;
use super::world::World;
use crate::session::Role;
use portolan_core::migration::source::{Frozen, SourceStage};
use portolan_core::migration::{Answer, Outcome, Report};
use std::time::Duration;
use tokio::time::sleep;

/// Longer than any migration of these tests.
const FOREVER: Duration = Duration::from_secs(3600);

fn stands_still(world: &World) -> bool {
    world.frozen == Frozen::All
}

/// A migration whose checkpoint is written, but does not arrive.
async fn checkpointed() -> Play {
    let mut play = Play::new("Transactional").await;
    play.world.lock().unwrap().send_takes = FOREVER;
    play.until(|world| stands_still(world) && world.checkpoint.is_some()).await;
    // That it is complete is written down by now.
    play.round().await;
    play
}

/// What the source says by itself: its stage, and what went wrong.
fn source(play: &Play) -> (SourceStage, String) {
    match play.source.sessions().source_report(&pod()) {
        Some(Report::Progress(progress)) => (progress.stage, progress.failure.unwrap_or_default()),
        other => unreachable!("there is no session: {other:?}"),
    }
}

fn frozen(play: &Play) -> Frozen {
    play.world.lock().unwrap().frozen
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_stood_still_for_too_long_is_thawed_though_nobody_asks() {
    let mut play = checkpointed().await;
    sleep(Duration::from_millis(4_000)).await;
    assert_eq!(frozen(&play), Frozen::All);
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(frozen(&play), Frozen::None);
    let (stage, failure) = source(&play);
    assert_eq!(stage, SourceStage::Aborted);
    assert!(failure.contains("5000 ms") && failure.contains("limits.maxDowntime"), "{failure}");
    assert_eq!(play.settle().await, Outcome::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_looked_at_is_thawed_all_the_same() {
    let mut play = checkpointed().await;
    play.world.lock().unwrap().look_fails = true;
    sleep(Duration::from_millis(4_000)).await;
    assert_eq!(frozen(&play), Frozen::All);
    sleep(Duration::from_millis(3_000)).await;
    assert_eq!(frozen(&play), Frozen::None);
    play.world.lock().unwrap().look_fails = false;
    assert_eq!(play.settle().await, Outcome::Failed);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_was_restarted_thaws_at_once() {
    let mut play = checkpointed().await;
    assert!(play.source.restart().await.is_empty());
    sleep(Duration::from_millis(300)).await;
    assert_eq!(frozen(&play), Frozen::None);
    let (_, failure) = source(&play);
    assert!(failure.contains("restarted"), "{failure}");
    assert_eq!(play.settle().await, Outcome::Failed);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_was_restarted_after_the_commit_does_not_thaw() {
    let mut play = Play::new("Transactional").await;
    play.until(|world| world.committed).await;
    assert!(play.source.restart().await.is_empty());
    sleep(Duration::from_secs(30)).await;
    {
        let world = play.world.lock().unwrap();
        assert!(world.gone && !world.actions.contains(&"thaw"), "{world:?}");
    }
    assert_eq!(play.settle().await, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn orders_are_taken_while_a_checkpoint_is_written_and_an_abort_stops_it() {
    let mut play = Play::new("Transactional").await;
    play.world.lock().unwrap().dump_takes = FOREVER;
    play.until(|world| world.dumping).await;
    play.round().await;
    assert!(matches!(&play.facts.source, Answer::Report(Report::Progress(progress))
        if progress.stage == SourceStage::Checkpointing));
    assert!(play.world.lock().unwrap().dumping);
    play.facts.abort_requested = true;
    play.round().await;
    play.round().await;
    {
        let world = play.world.lock().unwrap();
        assert!(!world.dumping && world.frozen == Frozen::None, "{world:?}");
    }
    assert_eq!(play.settle().await, Outcome::Aborted);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_that_could_not_be_written_down() {
    let mut play = Play::new("Transactional").await;
    play.round().await;
    assert!(matches!(play.facts.source, Answer::Report(Report::Progress(_))));
    play.world.lock().unwrap().agent(Role::Source).disk_is_full = true;
    for _ in 0..40 {
        play.round().await;
    }
    let freezes = play.world.lock().unwrap().actions.contains(&"freeze");
    assert!(!freezes, "the pod is frozen, and that is not written down");
    play.world.lock().unwrap().agent(Role::Source).disk_is_full = false;
    assert_eq!(play.settle().await, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_cannot_write_does_nothing() {
    let mut play = Play::new("Transactional").await;
    play.until(|world| world.committed).await;
    play.world.lock().unwrap().agent(Role::Destination).disk_is_full = true;
    for _ in 0..40 {
        play.round().await;
    }
    let runs = play.world.lock().unwrap().actions.contains(&"run");
    assert!(!runs, "the pod runs, and that is not written down");
    play.world.lock().unwrap().agent(Role::Destination).disk_is_full = false;
    assert_eq!(play.settle().await, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_does_not_hold_the_pod_still() {
    let mut play = checkpointed().await;
    play.world.lock().unwrap().agent(Role::Source).disk_is_full = true;
    sleep(Duration::from_millis(6_500)).await;
    assert_eq!(frozen(&play), Frozen::None);
    assert_eq!(source(&play).0, SourceStage::Checkpointed, "the journal cannot say more");
    // Whatever is ordered now: what was written down is of the past.
    for _ in 0..10 {
        play.round().await;
    }
    assert!(!play.world.lock().unwrap().committed);
    play.world.lock().unwrap().agent(Role::Source).disk_is_full = false;
    assert_eq!(play.settle().await, Outcome::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_may_be_on_the_disk_is_neither_acted_on_nor_taken_back() {
    let mut play = Play::new("Transactional").await;
    play.world.lock().unwrap().agent(Role::Source).doubtful_commit = true;
    play.until(|world| world.committed).await;
    sleep(Duration::from_secs(10)).await;
    {
        let world = play.world.lock().unwrap();
        assert_eq!(world.frozen, Frozen::All);
        assert!(!world.actions.contains(&"mark_for_deletion"), "{world:?}");
    }
    {
        let mut world = play.world.lock().unwrap();
        let agent = world.agent(Role::Source);
        agent.doubtful_commit = false;
        agent.disk_is_full = false;
    }
    assert_eq!(play.settle().await, Outcome::Failed);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_dies_in_doubt_follows_what_is_on_the_disk() {
    let mut play = Play::new("Transactional").await;
    play.world.lock().unwrap().agent(Role::Source).doubtful_commit = true;
    play.until(|world| world.committed).await;
    sleep(Duration::from_secs(10)).await;
    {
        let mut world = play.world.lock().unwrap();
        let agent = world.agent(Role::Source);
        agent.doubtful_commit = false;
        agent.disk_is_full = false;
    }
    // Before it tries again it dies, and the disk says that the pod never runs here again.
    assert!(play.source.restart().await.is_empty());
    assert_eq!(play.settle().await, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_thawed_in_the_turn_that_gives_it_up_and_not_after_another_look() {
    for restarts in [false, true] {
        let mut play = checkpointed().await;
        play.world.lock().unwrap().look_takes = Duration::from_millis(4_000);
        if restarts {
            assert!(play.source.restart().await.is_empty());
        } else {
            play.facts.abort_requested = true;
            play.round().await;
            // The look that was under way, and the one that takes the order.
            sleep(Duration::from_millis(4_900)).await;
        }
        sleep(Duration::from_millis(300)).await;
        assert_eq!(frozen(&play), Frozen::None, "restarts: {restarts}");
        play.world.lock().unwrap().look_takes = Duration::ZERO;
        play.settle().await;
    }
}

/// A migration that is committed while the API server is away.
async fn committed_alone() -> Play {
    let mut play = Play::new("Transactional").await;
    play.world.lock().unwrap().api_is_away = true;
    play.until(|world| world.committed).await;
    play.round().await;
    play
}

/// As if the kubelet had started a container afresh that was killed after the commit.
fn start_afresh(play: &Play) {
    play.world.lock().unwrap().frozen = Frozen::None;
}

#[tokio::test(start_paused = true)]
async fn what_is_started_afresh_while_the_api_server_is_away_is_frozen_again() {
    let mut play = committed_alone().await;
    start_afresh(&play);
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(frozen(&play), Frozen::All);
    assert!(!play.world.lock().unwrap().gone);
    play.world.lock().unwrap().api_is_away = false;
    assert_eq!(play.settle().await, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_committed_pod_is_marked_for_deletion_though_it_cannot_be_frozen() {
    let mut play = committed_alone().await;
    start_afresh(&play);
    {
        let mut world = play.world.lock().unwrap();
        world.freeze_fails = true;
        world.api_is_away = false;
    }
    sleep(Duration::from_secs(5)).await;
    {
        let mut world = play.world.lock().unwrap();
        assert!(world.terminating && world.gone, "{world:?}");
        // It ran after the commit, until it was killed.
        world.violations.clear();
    }
    assert_eq!(play.settle().await, Outcome::Succeeded);
}

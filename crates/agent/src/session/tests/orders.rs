//! Orders that do not count, and sessions that are over.

use super::node::{Node, clock, order, pod};
use super::world::World;
use crate::session::{Pod, Role, SessionError, Settings};
use portolan_core::migration::source::{SourceGoal, SourceStage};
use portolan_core::migration::{Report, SourceOrder, SourceReport};
use std::time::Duration;
use tokio::time::sleep;

async fn ask(node: &Node, order: &SourceOrder) -> SourceReport {
    node.sessions().order_source(&pod(), order).await.unwrap()
}

/// The session, the token and the stage of a report.
fn progress(report: SourceReport) -> (u64, i64, SourceStage) {
    match report {
        Report::Progress(progress) => (progress.session, progress.token, progress.stage),
        other => unreachable!("there is no session: {other:?}"),
    }
}

/// Why no session is begun.
pub(super) fn refused(report: Result<SourceReport, SessionError>) -> String {
    match report {
        Ok(Report::Refused { reason, .. }) => reason,
        other => unreachable!("it is not refused: {other:?}"),
    }
}

fn no_record(session: Option<u64>) -> SourceReport {
    Report::NoRecord { migration: "m".to_owned(), session }
}

#[tokio::test(start_paused = true)]
async fn orders_that_are_out_of_date_or_of_others_do_nothing() {
    let world = World::shared();
    let node = Node::start(&world, Role::Source, &clock()).await;
    let (session, ..) = progress(ask(&node, &order(None, 2, SourceGoal::Reserved)).await);
    let stale = ask(&node, &order(Some(session), 1, SourceGoal::Sent)).await;
    assert_eq!(progress(stale), (session, 2, SourceStage::Reserved));
    let other = Some(session + 1);
    assert_eq!(ask(&node, &order(other, 9, SourceGoal::Sent)).await, no_record(other));
    let another = SourceOrder { migration: "n".to_owned(), ..order(None, 9, SourceGoal::Reserved) };
    let busy = Report::Busy { migration: "n".to_owned(), with: "m".to_owned() };
    assert_eq!(ask(&node, &another).await, busy);
    let blind = ask(&node, &order(None, 2, SourceGoal::Sent)).await;
    assert_eq!(progress(blind), (session, 2, SourceStage::Reserved));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(world.lock().unwrap().actions, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_over_is_never_there_again() {
    let world = World::shared();
    let mut node = Node::start(&world, Role::Source, &clock()).await;
    let (first, ..) = progress(ask(&node, &order(None, 1, SourceGoal::Reserved)).await);
    let forget = order(Some(first), 2, SourceGoal::Forgotten);
    ask(&node, &forget).await;
    sleep(Duration::from_secs(1)).await;
    assert!(node.files().is_empty() && node.sessions().pods().is_empty());
    for goal in [SourceGoal::Sent, SourceGoal::Released, SourceGoal::Aborted, SourceGoal::Forgotten] {
        assert_eq!(ask(&node, &order(Some(first), 3, goal)).await, no_record(Some(first)));
    }
    let (second, ..) = progress(ask(&node, &order(None, 1, SourceGoal::Reserved)).await);
    assert!(second > first);
    ask(&node, &order(Some(second), 2, SourceGoal::Forgotten)).await;
    sleep(Duration::from_secs(1)).await;
    assert!(node.restart().await.is_empty());
    let (third, ..) = progress(ask(&node, &order(None, 1, SourceGoal::Reserved)).await);
    assert!(third > second, "a number is drawn once, also by an agent that was restarted");
    assert!(!world.lock().unwrap().actions.contains(&"freeze"));
}

#[tokio::test(start_paused = true)]
async fn a_node_has_a_bounded_number_of_sessions() {
    let world = World::shared();
    let settings = Settings { max_sessions: 1, ..Settings::default() };
    let node = Node::start_with(&world, Role::Source, &clock(), settings).await;
    let (session, ..) = progress(ask(&node, &order(None, 1, SourceGoal::Reserved)).await);
    let second = Pod::new("shop", "web-1", "7b1c").unwrap();
    let begin = order(None, 1, SourceGoal::Reserved);
    let reason = refused(node.sessions().order_source(&second, &begin).await);
    assert!(reason.contains("pod shop/web-1") && reason.contains("1 sessions"), "{reason}");
    // What needs no session is answered all the same.
    let late = order(Some(3), 1, SourceGoal::Aborted);
    assert_eq!(node.sessions().order_source(&second, &late).await.unwrap(), no_record(Some(3)));
    ask(&node, &order(Some(session), 1, SourceGoal::Forgotten)).await;
    sleep(Duration::from_secs(1)).await;
    progress(node.sessions().order_source(&second, &begin).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_moved_is_refused_and_one_that_cannot_be_seen_is_not() {
    let world = World::shared();
    let node = Node::start(&world, Role::Source, &clock()).await;
    let begin = order(None, 1, SourceGoal::Reserved);
    world.lock().unwrap().refusal = Some("it has a volume of the node");
    let reason = refused(node.sessions().order_source(&pod(), &begin).await);
    assert!(reason.contains("pod shop/web-0") && reason.contains("a volume of the node"), "{reason}");
    // Nothing is begun that would have to be given up.
    let abort = node.sessions().order_source(&pod(), &order(None, 2, SourceGoal::Aborted)).await;
    assert_eq!(abort.unwrap(), no_record(None));
    world.lock().unwrap().refusal = None;
    world.lock().unwrap().look_fails = true;
    let error = node.sessions().order_source(&pod(), &begin).await.unwrap_err();
    assert!(matches!(error, SessionError::Look { .. }), "{error}");
    world.lock().unwrap().look_fails = false;
    progress(ask(&node, &begin).await);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_that_cannot_be_written_down() {
    let world = World::shared();
    let node = Node::start(&world, Role::Source, &clock()).await;
    world.lock().unwrap().agent(Role::Source).disk_is_full = true;
    let begin = order(None, 1, SourceGoal::Reserved);
    let reason = refused(node.sessions().order_source(&pod(), &begin).await);
    assert!(reason.contains("cannot be kept"), "{reason}");
    world.lock().unwrap().agent(Role::Source).disk_is_full = false;
    let large = SourceOrder { migration: "m".repeat(70_000), ..begin.clone() };
    let reason = refused(node.sessions().order_source(&pod(), &large).await);
    assert!(reason.contains("65536"), "{reason}");
    assert!(node.files().is_empty() && node.sessions().pods().is_empty());
    progress(ask(&node, &begin).await);
}

#[test]
fn a_pod_has_names_that_lead_nowhere() {
    for (namespace, name, uid) in
        [("..", "web", "1"), ("shop", "a/b", "1"), ("shop", "web", "../1"), ("", "web", "1")]
    {
        assert!(Pod::new(namespace, name, uid).is_err());
    }
    let error = Pod::new("shop", "web", &"1".repeat(65)).unwrap_err();
    assert!(error.to_string().contains("64"), "{error}");
}

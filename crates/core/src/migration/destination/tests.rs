//! The destination, step by step.

use super::*;
use crate::migration::{DestinationOrder, Order, Write};
use jiff::Timestamp;
use portolan_api::Duration;

fn record(order: MigrationOrder, stage: DestinationStage) -> DestinationRecord {
    let terms = Terms { order, timeout: Duration::from_secs(60), max_downtime: Duration::from_secs(2) };
    let mut record = DestinationRecord {
        fence: Fence { migration: "m".to_owned(), session: 7, token: 3 },
        terms,
        stage,
        prepared_at: Timestamp::UNIX_EPOCH,
        bound: false,
        failure: None,
    };
    record.bound = stage >= record.binds_at();
    record
}

fn order(goal: DestinationGoal) -> DestinationOrder {
    let terms = record(MigrationOrder::Transactional, DestinationStage::Prepared).terms;
    Order { migration: "m".to_owned(), session: Some(7), token: 3, terms, goal }
}

fn seen(target: Target) -> DestinationSeen {
    DestinationSeen { target, data: Data::Complete, live: false, committed: true, has_files: true }
}

fn after(record: &DestinationRecord, goal: Option<DestinationGoal>, target: Target) -> DestinationDecision {
    let order = goal.map(order);
    next(Some(record), order.as_ref(), &seen(target), 8, Timestamp::UNIX_EPOCH)
}

fn stage(decision: &DestinationDecision) -> Option<DestinationStage> {
    match &decision.write {
        Write::Put(record) => Some(record.stage),
        _ => None,
    }
}

#[test]
fn it_thaws_only_when_it_is_told_to_run() {
    let verified = record(MigrationOrder::Transactional, DestinationStage::Verified);
    for goal in [None, Some(DestinationGoal::Prepared), Some(DestinationGoal::Verified)] {
        assert!(after(&verified, goal, Target::Frozen).is_idle(), "{goal:?}");
    }
    let decision = after(&verified, Some(DestinationGoal::Running), Target::Frozen);
    assert_eq!(stage(&decision), Some(DestinationStage::Thawing));
    assert!(decision.actions.is_empty(), "first it is written down");
}

#[test]
fn a_pod_that_may_have_run_is_neither_discarded_nor_restored_again() {
    let thawing = record(MigrationOrder::Transactional, DestinationStage::Thawing);
    let discard = Some(DestinationGoal::Discarded);
    assert_eq!(after(&thawing, discard, Target::Frozen).actions, [DestinationAction::Thaw]);
    let next = |target, live| {
        let seen = DestinationSeen { live, ..seen(target) };
        stage(&next(Some(&thawing), None, &seen, 8, Timestamp::UNIX_EPOCH))
    };
    for target in [Target::None, Target::Waiting, Target::Failed("exit 1".to_owned()), Target::Running] {
        assert_eq!(next(target, true), Some(DestinationStage::Running));
    }
    assert_eq!(next(Target::Waiting, false), Some(DestinationStage::Restoring), "it has not run yet");
    let running = record(MigrationOrder::Transactional, DestinationStage::Running);
    assert!(after(&running, discard, Target::Waiting).is_idle());
}

#[test]
fn a_pod_that_runs_gets_traffic_before_its_session_is_forgotten() {
    let running = record(MigrationOrder::Transactional, DestinationStage::Running);
    let hidden = DestinationSeen { committed: false, ..seen(Target::Running) };
    for goal in [None, Some(DestinationGoal::Running), Some(DestinationGoal::Forgotten)] {
        let decision = next(Some(&running), goal.map(order).as_ref(), &hidden, 8, Timestamp::UNIX_EPOCH);
        assert_eq!(decision.actions, [DestinationAction::MarkCommitted], "{goal:?}");
    }
    let forgotten = after(&running, Some(DestinationGoal::Forgotten), Target::Running);
    assert_eq!(forgotten.actions, [DestinationAction::RemoveFiles]);
    // Not before it runs.
    for stage in [DestinationStage::Restoring, DestinationStage::Verified, DestinationStage::Thawing] {
        let record = record(MigrationOrder::Transactional, stage);
        let frozen = DestinationSeen { committed: false, ..seen(Target::Frozen) };
        let decision = next(Some(&record), None, &frozen, 8, Timestamp::UNIX_EPOCH);
        assert!(!decision.actions.contains(&DestinationAction::MarkCommitted), "{stage:?}");
    }
}

#[test]
fn a_verified_pod_that_dies_frozen_is_restored_again() {
    let verified = record(MigrationOrder::Transactional, DestinationStage::Verified);
    let decision = after(&verified, None, Target::Waiting);
    assert_eq!(stage(&decision), Some(DestinationStage::Restoring));
    let restoring = record(MigrationOrder::DeleteFirst, DestinationStage::Restoring);
    let decision = after(&restoring, None, Target::Failed("no such file".to_owned()));
    assert_eq!(decision.actions, [DestinationAction::Restore]);
}

#[test]
fn a_pod_that_does_not_wait_long_enough_is_created_once_more() {
    use DestinationStage::{Prepared, Preparing, Received, Receiving};
    let failed = || Target::Failed("context deadline exceeded".to_owned());
    for order in [MigrationOrder::Transactional, MigrationOrder::DeleteFirst] {
        for at in [Prepared, Receiving, Received] {
            let decision = after(&record(order, at), None, failed());
            assert_eq!(decision.actions, [DestinationAction::DeletePod]);
            let Write::Put(again) = decision.write else { unreachable!("{at:?}") };
            assert_eq!(again.stage, Preparing);
            assert!(again.failure.as_ref().is_some_and(|why| why.contains("context deadline")), "{again:?}");
            assert_eq!(after(&again, None, Target::None).actions, [DestinationAction::CreatePod]);
        }
    }
    let first = after(&record(MigrationOrder::Transactional, Preparing), None, failed());
    assert_eq!(stage(&first), Some(DestinationStage::Discarding), "it never waited");
}

#[test]
fn a_pod_that_runs_before_the_commit_is_discarded() {
    let restoring = record(MigrationOrder::Transactional, DestinationStage::Restoring);
    let decision = after(&restoring, None, Target::Running);
    assert_eq!(stage(&decision), Some(DestinationStage::Discarding));
}

#[test]
fn it_gives_up_by_itself_only_while_the_source_cannot_be_released() {
    let late = Timestamp::from_second(61).unwrap();
    for (order, stage, gives_up) in [
        (MigrationOrder::Transactional, DestinationStage::Prepared, true),
        (MigrationOrder::Transactional, DestinationStage::Received, true),
        (MigrationOrder::Transactional, DestinationStage::Verified, false),
        (MigrationOrder::DeleteFirst, DestinationStage::Prepared, true),
        (MigrationOrder::DeleteFirst, DestinationStage::Receiving, false),
    ] {
        let target = if stage == DestinationStage::Verified { Target::Frozen } else { Target::Waiting };
        let seen = DestinationSeen { data: Data::Incomplete, ..seen(target) };
        let decision = next(Some(&record(order, stage)), None, &seen, 8, late);
        let gave_up =
            matches!(decision.write, Write::Put(record) if record.stage == DestinationStage::Discarding);
        assert_eq!(gave_up, gives_up, "{order:?} {stage:?}");
    }
}

#[test]
fn a_late_order_does_not_touch_the_pod_of_a_session_that_is_over() {
    let late = DestinationOrder { session: None, ..order(DestinationGoal::Prepared) };
    for target in [Target::Running, Target::Waiting, Target::Failed("exit 1".to_owned())] {
        assert!(next(None, Some(&late), &seen(target), 8, Timestamp::UNIX_EPOCH).is_idle());
    }
    let decision = next(None, Some(&late), &seen(Target::None), 8, Timestamp::UNIX_EPOCH);
    assert_eq!(stage(&decision), Some(DestinationStage::Preparing));
}

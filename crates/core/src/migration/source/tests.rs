//! The source, step by step.

use super::*;
use crate::migration::{Order, Report, SourceOrder, Write};
use jiff::Timestamp;
use portolan_api::Duration;
use portolan_api::livemigration::MigrationOrder;

fn terms() -> Terms {
    let order = MigrationOrder::Transactional;
    Terms { order, timeout: Duration::from_secs(60), max_downtime: Duration::from_secs(2) }
}

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap()
}

fn order(session: Option<u64>, token: i64, goal: SourceGoal) -> SourceOrder {
    Order { migration: "m".to_owned(), session, token, terms: terms(), goal }
}

fn record(stage: SourceStage) -> SourceRecord {
    SourceRecord {
        fence: Fence { migration: "m".to_owned(), session: 7, token: 3 },
        terms: terms(),
        stage,
        reserved_at: at(0),
        frozen_at: (stage > SourceStage::Reserved).then(|| at(1_000)),
        failure: None,
    }
}

fn seen() -> SourceSeen {
    SourceSeen {
        gone: false,
        frozen: Frozen::All,
        replaced: None,
        terminating: false,
        checkpoint: Checkpoint::Complete,
        sent: true,
        has_files: true,
    }
}

fn written(decision: SourceDecision) -> SourceRecord {
    match decision.write {
        Write::Put(record) => record,
        other => unreachable!("nothing is written: {other:?}"),
    }
}

#[test]
fn the_commit_is_written_before_anything_is_done_for_it() {
    let release = order(Some(7), 3, SourceGoal::Released);
    let checkpointed = record(SourceStage::Checkpointed);
    let decision = next(Some(&checkpointed), Some(&release), &seen(), 8, at(1_500));
    assert!(decision.actions.is_empty());
    let released = written(decision);
    assert_eq!(released.stage, SourceStage::Releasing);
    let decision = next(Some(&released), None, &seen(), 8, at(90_000));
    assert_eq!(
        decision.actions,
        [SourceAction::MarkForDeletion],
        "it goes on without orders, and has no limit"
    );
}

#[test]
fn a_release_that_comes_after_the_limit_is_too_late() {
    let release = order(Some(7), 3, SourceGoal::Released);
    let decision = next(Some(&record(SourceStage::Checkpointed)), Some(&release), &seen(), 8, at(3_000));
    let record = written(decision);
    assert_eq!(record.stage, SourceStage::Aborting);
    let why = record.failure.as_deref().unwrap_or_default();
    assert!(why.contains("2000 ms") && why.contains("limits.maxDowntime"), "{why}");
    assert_eq!(next(Some(&record), Some(&release), &seen(), 8, at(3_001)).actions, [SourceAction::Thaw]);
}

#[test]
fn a_pod_that_is_committed_is_never_thawed() {
    for stage in [SourceStage::Releasing, SourceStage::Released, SourceStage::Deleted] {
        let abort = order(Some(7), 9, SourceGoal::Aborted);
        let mut record = record(stage);
        for _ in 0..5 {
            let decision = next(Some(&record), Some(&abort), &seen(), 8, at(i64::from(u32::MAX)));
            assert!(!decision.actions.contains(&SourceAction::Thaw));
            if let Write::Put(next) = decision.write {
                record = next;
            }
            assert!(record.stage.is_committed());
        }
    }
}

#[test]
fn a_committed_pod_that_others_thaw_is_frozen_again_or_killed() {
    let thawed = SourceSeen { frozen: Frozen::None, ..seen() };
    let decision = next(Some(&record(SourceStage::Releasing)), None, &thawed, 8, at(0));
    assert_eq!(decision.actions, [SourceAction::Freeze, SourceAction::MarkForDeletion]);
    let decision = next(Some(&record(SourceStage::Released)), None, &thawed, 8, at(0));
    assert_eq!(decision.actions, [SourceAction::Kill]);
}

#[test]
fn orders_with_an_older_token_or_of_another_session_do_nothing() {
    let checkpointed = record(SourceStage::Checkpointed);
    let late = order(Some(7), 2, SourceGoal::Released);
    assert!(next(Some(&checkpointed), Some(&late), &seen(), 8, at(1_500)).is_idle());
    let other = order(Some(6), 9, SourceGoal::Released);
    let decision = next(Some(&checkpointed), Some(&other), &seen(), 8, at(1_500));
    assert!(decision.is_idle());
    assert_eq!(decision.report, Some(Report::NoRecord { migration: "m".to_owned(), session: Some(6) }));
    let blind = order(None, 9, SourceGoal::Released);
    let decision = next(Some(&checkpointed), Some(&blind), &seen(), 8, at(1_500));
    assert_eq!(written(decision).stage, SourceStage::Checkpointed, "only the token is taken over");
}

#[test]
fn a_pod_takes_part_in_one_migration_at_a_time() {
    let mut other = order(None, 1, SourceGoal::Reserved);
    other.migration = "n".to_owned();
    let running = SourceSeen { frozen: Frozen::None, checkpoint: Checkpoint::None, ..seen() };
    let decision = next(Some(&record(SourceStage::Reserved)), Some(&other), &running, 8, at(10));
    assert!(decision.is_idle());
    assert_eq!(decision.report, Some(Report::Busy { migration: "n".to_owned(), with: "m".to_owned() }));
}

#[test]
fn a_pod_that_is_gone_is_refused_with_a_reason() {
    let gone = SourceSeen { gone: true, ..seen() };
    let decision = next(None, Some(&order(None, 1, SourceGoal::Reserved)), &gone, 8, at(0));
    assert!(decision.is_idle());
    let Some(Report::Refused { migration, reason }) = decision.report else {
        unreachable!("{:?}", decision.report)
    };
    assert_eq!((migration.as_str(), reason.as_str()), ("m", "the pod does not run on this node"));
    let aborted = next(None, Some(&order(None, 2, SourceGoal::Aborted)), &gone, 8, at(0));
    let none = Report::NoRecord { migration: "m".to_owned(), session: None };
    assert_eq!(aborted.report, Some(none), "there is nothing to give up");
}

#[test]
fn a_record_reads_back_as_it_was_written() {
    let mut record = record(SourceStage::Checkpointing);
    record.failure = Some("no space".to_owned());
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<SourceRecord>(&text).unwrap(), record);
    assert!(text.contains("\"maxDowntime\":\"2s\"") && text.contains("\"session\":7"), "{text}");
}

#[test]
fn a_released_pod_that_is_gone_is_marked_for_deletion_all_the_same() {
    let booted = SourceSeen { gone: true, frozen: Frozen::None, ..seen() };
    let decision = next(Some(&record(SourceStage::Releasing)), None, &booted, 8, at(0));
    assert_eq!((decision.write, decision.actions), (Write::Nothing, vec![SourceAction::MarkForDeletion]));
    let marked = SourceSeen { terminating: true, ..booted };
    let decision = next(Some(&record(SourceStage::Releasing)), None, &marked, 8, at(0));
    assert_eq!(written(decision).stage, SourceStage::Released);
}

#[test]
fn a_dump_may_thaw_the_freezers_while_it_works_and_not_after_it() {
    for frozen in [Frozen::None, Frozen::Partly] {
        let look = |checkpoint| SourceSeen { frozen, checkpoint, ..seen() };
        let begun = record(SourceStage::Checkpointing);
        let decision = next(Some(&begun), None, &look(Checkpoint::Writing), 8, at(1_500));
        assert!(decision.is_idle());
        for checkpoint in [Checkpoint::None, Checkpoint::Complete] {
            let decision = next(Some(&begun), None, &look(checkpoint), 8, at(1_500));
            let why = written(decision).failure.unwrap_or_default();
            assert!(why.contains("somebody else has thawed the pod"), "{why}");
        }
    }
}

#[test]
fn a_pod_is_thawed_in_the_same_turn_in_which_it_is_given_up() {
    let abort = order(Some(7), 3, SourceGoal::Aborted);
    for stage in [SourceStage::Freezing, SourceStage::Checkpointing, SourceStage::Checkpointed] {
        let decision = next(Some(&record(stage)), Some(&abort), &seen(), 8, at(1_500));
        assert_eq!(decision.actions, [SourceAction::Thaw]);
        assert_eq!(written(decision).stage, SourceStage::Aborting);
    }
}

//! One fault at each point of a migration that would go well.

use super::{Crash, Happening, World};
use crate::migration::destination::{DestinationStage, Target};
use crate::migration::source::Frozen;
use crate::migration::{Outcome, Step};
use portolan_api::livemigration::MigrationOrder;

const ORDERS: [MigrationOrder; 2] = [MigrationOrder::Transactional, MigrationOrder::DeleteFirst];

/// Everything that happens in a migration in which nothing fails.
fn undisturbed(order: MigrationOrder) -> Vec<Happening> {
    use Happening::{Coordinator, DeliverAll, Destination, Pass, Source};
    let mut world = World::new(order);
    let mut all = Vec::new();
    while world.record.step != Step::Done {
        for what in [
            Coordinator(Crash::Never),
            DeliverAll,
            Source(Crash::Never),
            Source(Crash::Never),
            Destination(Crash::Never),
            Destination(Crash::Never),
            DeliverAll,
            Pass { milliseconds: 20 },
        ] {
            world.happen(&what);
            all.push(what);
        }
        assert!(all.len() < 1000, "an undisturbed migration comes to its end: {world:?}");
    }
    world.settle();
    world.check_end();
    assert_eq!(world.record.outcome, Some(Outcome::Succeeded));
    all
}

/// Runs the undisturbed migration with these happenings put in at each point; `check` sees the world after them, and the
/// outcomes are returned.
fn at_every_point(
    order: MigrationOrder,
    faults: &[Happening],
    replaces: bool,
    mut check: impl FnMut(&World),
) -> Vec<Outcome> {
    let all = undisturbed(order);
    let mut outcomes = Vec::new();
    for point in 0..all.len() {
        let mut world = World::new(order);
        all[..point].iter().for_each(|what| world.happen(what));
        faults.iter().for_each(|what| world.happen(what));
        check(&world);
        all[point + usize::from(replaces)..].iter().for_each(|what| world.happen(what));
        world.settle();
        world.check_end();
        outcomes.extend(world.record.outcome);
    }
    outcomes
}

#[test]
fn any_party_may_die_at_any_point() {
    use Crash::{BeforeReport, BeforeWrite, InAction};
    let crashes = [BeforeWrite, InAction(0), InAction(1), BeforeReport];
    for order in ORDERS {
        for crash in crashes {
            for party in [Happening::Coordinator, Happening::Source, Happening::Destination] {
                at_every_point(order, &[party(crash)], true, |_| {});
            }
            let everybody =
                [Happening::Coordinator(crash), Happening::Source(crash), Happening::Destination(crash)];
            at_every_point(order, &everybody, false, |_| {});
        }
    }
}

#[test]
fn messages_may_be_lost_or_come_again_at_any_point() {
    for order in ORDERS {
        for index in 0..4 {
            at_every_point(order, &[Happening::Lose { index }], false, |_| {});
            at_every_point(order, &[Happening::Deliver { index, keep: true }], false, |_| {});
        }
        for index in 0..12 {
            at_every_point(
                order,
                &[Happening::EarlierOrders { index }, Happening::DeliverAll],
                false,
                |_| {},
            );
        }
    }
}

/// The coordinator is away for so long, and both agents are alone.
fn alone(milliseconds: i64) -> Vec<Happening> {
    let mut all = Vec::new();
    // What it was ordered before may make it begin at the end of the first wait, but not of the second one.
    for _ in 0..2 {
        all.push(Happening::Pass { milliseconds });
        for _ in 0..6 {
            all.push(Happening::Source(Crash::Never));
            all.push(Happening::Destination(Crash::Never));
            all.push(Happening::Lose { index: 0 });
            all.push(Happening::Lose { index: 0 });
        }
    }
    all
}

#[test]
fn an_agent_that_is_left_alone_thaws_by_itself_before_the_commit_and_never_after_it() {
    for order in ORDERS {
        for milliseconds in [5_000, 20_000] {
            at_every_point(order, &alone(milliseconds), false, |world| {
                let holds = !world.source.committed && world.source.disk.is_some();
                assert!(!holds || world.source.frozen == Frozen::None, "{world:?}");
            });
        }
    }
}

#[test]
fn an_abort_sets_the_pod_going_unless_it_is_committed() {
    for order in ORDERS {
        let mut aborted = vec![Happening::Abort];
        for _ in 0..2 {
            aborted.push(Happening::Coordinator(Crash::Never));
            aborted.push(Happening::DeliverAll);
            aborted.push(Happening::Source(Crash::Never));
            aborted.push(Happening::Source(Crash::Never));
        }
        let mut too_late = false;
        let outcomes = at_every_point(order, &aborted, false, |world| {
            too_late |= world.source.committed && world.record.token > 1;
            assert!(world.source.committed || world.source.runs(), "it still stands still: {world:?}");
        });
        assert!(too_late, "no abort comes after the commit");
        assert_eq!(outcomes.first(), Some(&Outcome::Aborted));
        assert_eq!(outcomes.last(), Some(&Outcome::Succeeded));
        let back = outcomes.iter().filter(|outcome| **outcome == Outcome::Aborted).count();
        let forward = outcomes.iter().filter(|outcome| **outcome == Outcome::Succeeded).count();
        assert_eq!(
            (back + forward, outcomes.is_sorted_by_key(|outcome| *outcome == Outcome::Succeeded)),
            (outcomes.len(), true)
        );
    }
}

#[test]
fn what_fails_before_the_commit_leaves_the_pod_at_the_source() {
    use Happening::{
        CheckpointFails, RestoreFails, SourceContainerDies, SourceThawedByOthers, Spoil, TargetDies,
    };
    for fault in [
        CheckpointFails(true),
        RestoreFails(true),
        Spoil,
        SourceContainerDies,
        SourceThawedByOthers,
        TargetDies,
    ] {
        at_every_point(MigrationOrder::Transactional, std::slice::from_ref(&fault), false, |_| {});
        at_every_point(MigrationOrder::DeleteFirst, &[fault], false, |_| {});
    }
}

#[test]
fn a_side_that_refuses_ends_the_migration_at_once_and_says_why() {
    for order in ORDERS {
        for (refuses, reason) in [
            (Happening::SourceRefuses(true), "the source refuses: it has a volume of the node"),
            (Happening::DestinationRefuses(true), "the destination refuses: it has no room"),
        ] {
            let mut world = World::new(order);
            world.happen(&refuses);
            let limit = world.record.terms.timeout.0;
            for _ in 0..8 {
                world.round();
            }
            assert_eq!(world.record.step, Step::Done, "{world:?}");
            assert!(world.now.as_duration().unsigned_abs() < limit / 10, "nothing is waited for");
            assert!(world.record.entered_at(Step::Freeze).is_none() && world.source.runs());
            assert_eq!(world.record.abort.as_ref().map(|abort| abort.message.as_str()), Some(reason));
            world.settle();
            world.check_end();
            assert_eq!(world.record.outcome, Some(Outcome::Failed));
            at_every_point(order, &[refuses], false, |_| {});
        }
    }
}

#[test]
fn a_pod_that_stops_waiting_is_created_once_more_and_the_migration_succeeds() {
    for order in ORDERS {
        let mut waited = Vec::new();
        let outcomes = at_every_point(order, &[Happening::TargetStopsWaiting], false, |world| {
            use DestinationStage::{Prepared, Received, Receiving};
            // Before its agent has seen it wait, it may be that it never can; later it may be the restore that fails.
            let stage = world.destination.disk.as_ref().map(|record| record.stage);
            let waited_before = matches!(stage, Some(Prepared | Receiving | Received));
            waited.push(waited_before && matches!(world.destination.target, Target::Failed(_)));
        });
        assert!(waited.contains(&true));
        for (waited, outcome) in waited.iter().zip(&outcomes) {
            assert!(!waited || *outcome == Outcome::Succeeded, "{order:?}: {outcomes:?}");
        }
    }
}

#[test]
fn a_node_that_is_booted_at_any_point_never_makes_two_copies() {
    use Happening::{Pass, Source, SourceReboots};
    let kubelet = Pass { milliseconds: 20 };
    for order in ORDERS {
        // The agent is there first, or the kubelet.
        for faults in [
            vec![SourceReboots, Source(Crash::Never), Source(Crash::Never), kubelet.clone()],
            vec![SourceReboots, kubelet.clone(), Source(Crash::Never)],
        ] {
            at_every_point(order, &faults, false, |_| {});
        }
    }
}

#[test]
fn a_source_whose_api_server_is_away_stops_what_its_kubelet_starts_afresh() {
    use Happening::{Source, SourceApiIsAway, SourceContainerDies};
    for order in ORDERS {
        let faults = [SourceApiIsAway(true), SourceContainerDies, Source(Crash::Never)];
        at_every_point(order, &faults, false, |world| {
            assert!(!world.source.committed || !world.source.runs(), "{world:?}");
        });
    }
}

#[test]
fn a_source_that_gives_up_thaws_in_the_turn_that_writes_it_down() {
    for order in ORDERS {
        let faults = [Happening::Pass { milliseconds: 6_000 }, Happening::Source(Crash::Never)];
        at_every_point(order, &faults, false, |world| {
            let aborting = world.source.disk.as_ref().is_some_and(|record| record.failure.is_some());
            assert!(!aborting || world.source.runs(), "{world:?}");
        });
    }
}

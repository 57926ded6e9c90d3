//! Any number of faults in any order.

use super::{Crash, Happening, World};
use crate::migration::Outcome;
use portolan_api::livemigration::MigrationOrder;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;

fn crash() -> impl Strategy<Value = Crash> {
    prop_oneof![
        12 => Just(Crash::Never),
        1 => Just(Crash::BeforeWrite),
        1 => (0usize..2).prop_map(Crash::InAction),
        1 => Just(Crash::BeforeReport),
    ]
}

/// One thing that happens; `faults` says how often something happens to the pods and disks themselves.
fn happening(faults: u32) -> impl Strategy<Value = Happening> {
    prop_oneof![
        30 => crash().prop_map(Happening::Coordinator),
        40 => crash().prop_map(Happening::Source),
        40 => crash().prop_map(Happening::Destination),
        50 => Just(Happening::DeliverAll),
        20 => (any::<usize>(), any::<bool>()).prop_map(|(index, keep)| Happening::Deliver { index, keep }),
        10 => any::<usize>().prop_map(|index| Happening::Lose { index }),
        6 => any::<usize>().prop_map(|index| Happening::EarlierOrders { index }),
        30 => (0i64..60).prop_map(|milliseconds| Happening::Pass { milliseconds }),
        1 => (0i64..6_000).prop_map(|milliseconds| Happening::Pass { milliseconds }),
        faults => prop_oneof![
            5 => Just(Happening::Abort),
            2 => any::<bool>().prop_map(Happening::CheckpointFails),
            2 => any::<bool>().prop_map(Happening::RestoreFails),
            2 => Just(Happening::Spoil),
            2 => Just(Happening::SourceContainerDies),
            2 => Just(Happening::SourceThawedByOthers),
            1 => Just(Happening::SourceReboots),
            2 => any::<bool>().prop_map(Happening::SourceApiIsAway),
            1 => any::<bool>().prop_map(Happening::SourceRefuses),
            1 => any::<bool>().prop_map(Happening::DestinationRefuses),
            2 => Just(Happening::TargetDies),
            2 => Just(Happening::TargetStopsWaiting),
        ],
    ]
}

fn order() -> impl Strategy<Value = MigrationOrder> {
    prop_oneof![3 => Just(MigrationOrder::Transactional), 1 => Just(MigrationOrder::DeleteFirst)]
}

fn play(order: MigrationOrder, all: &[Happening]) -> World {
    let mut world = World::new(order);
    all.iter().for_each(|what| world.happen(what));
    world.settle();
    world.check_end();
    world
}

#[test]
fn one_copy_runs_whatever_dies_and_whatever_is_lost() {
    let config = ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() };
    let seen = RefCell::new(BTreeMap::<String, u32>::new());
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let histories = (order(), prop_oneof![Just(1u32), Just(8u32)])
        .prop_flat_map(|(order, faults)| (Just(order), proptest::collection::vec(happening(faults), 0..250)));
    runner
        .run(&histories, |(order, all)| {
            let world = play(order, &all);
            let end = format!("{order:?} {:?}", world.record.outcome);
            *seen.borrow_mut().entry(end).or_default() += 1;
            Ok(())
        })
        .unwrap();
    // The histories have to come where it matters: to each end.
    let seen = seen.into_inner();
    for end in [Outcome::Succeeded, Outcome::Failed, Outcome::Aborted] {
        let name = format!("Transactional {:?}", Some(end));
        assert!(seen.get(&name).is_some_and(|times| *times > 5), "{name} is rare: {seen:?}");
    }
    assert!(seen.contains_key("DeleteFirst Some(Succeeded)"), "{seen:?}");
}

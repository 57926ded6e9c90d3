//! Properties of a provisioner over random histories.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Happening {
    /// So many replicas are to run.
    Replicas(u32),
    /// So many steps of half a minute pass.
    Run(u32),
    /// The record is written, so many orders are carried out, and the controller stops.
    Crash(usize),
    /// The plan is made and nothing of it is written.
    Forgotten,
    /// Clusters fail from now on, or do not.
    Fails(bool),
    /// Machines of a type fail from now on, or do not.
    Breaks(bool),
    /// The member does not answer from now on, or does.
    Silent(bool),
    /// Pods cannot be evicted from now on, or can.
    Budget(bool),
    /// The nodes of a member that answers are not known from now on, or are.
    Unlisted(bool),
    /// The lists of the hub are of the past from now on, or are not.
    Outdated(bool),
    /// The controller stops after it has tainted a ForeignCluster that is to be deleted.
    Tainted,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        4 => (0u32..14).prop_map(Happening::Replicas),
        6 => (1u32..50).prop_map(Happening::Run),
        4 => (0usize..3).prop_map(Happening::Crash),
        1 => Just(Happening::Forgotten),
        1 => any::<bool>().prop_map(Happening::Fails),
        1 => any::<bool>().prop_map(Happening::Breaks),
        1 => any::<bool>().prop_map(Happening::Silent),
        1 => any::<bool>().prop_map(Happening::Budget),
        1 => any::<bool>().prop_map(Happening::Unlisted),
        1 => any::<bool>().prop_map(Happening::Outdated),
        1 => Just(Happening::Tainted),
    ];
    proptest::collection::vec(one, 1..40)
}

fn happen(world: &mut World, happening: &Happening, check: &mut dyn FnMut(&World)) {
    match happening {
        Happening::Replicas(replicas) => world.replicas = *replicas,
        Happening::Run(steps) => {
            for _ in 0..*steps {
                world.step(30);
                check(world);
            }
        }
        Happening::Crash(after) => {
            let orders = world.plan();
            for order in orders.iter().take(*after) {
                world.carry_out(order);
            }
            world.pass(30);
            check(world);
        }
        Happening::Forgotten => {
            let before = world.status.clone();
            world.plan();
            world.status = before;
            world.pass(30);
            check(world);
        }
        Happening::Fails(fails) => world.cluster_fails = fails.then(|| failure("QuotaExceeded")),
        Happening::Breaks(breaks) => {
            world.broken =
                if *breaks { [("small".to_owned(), failure("FlavorNotFound"))].into() } else { [].into() };
        }
        Happening::Silent(silent) => {
            if let MemberState::Joined { reachable, .. } = &mut world.member {
                *reachable = !silent;
            }
        }
        Happening::Budget(budget) => world.budget = *budget,
        Happening::Unlisted(unlisted) => world.unlisted = *unlisted,
        Happening::Outdated(outdated) => {
            world.outdated = None;
            world.outdated = outdated.then(|| world.snapshot());
        }
        Happening::Tainted => {
            world.leaving |= world.plan().iter().any(|order| matches!(order, Order::Unpeer { .. }));
            world.pass(30);
            check(world);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_second_cluster_no_wrong_machine_no_cost_above_the_limit_and_nothing_left_at_the_end(
        happenings in happenings(),
        max_cost in proptest::option::of(50_000u64..400_000),
        max_nodes in 1u32..6,
        headroom in proptest::option::of(1u32..3),
        piecemeal in any::<bool>(),
    ) {
        let headroom = headroom.map(|pods| (pod(), pods));
        let mut world = World::new(Settings { max_cost, max_nodes, headroom, ..settings() });
        world.piecemeal = piecemeal;
        let mut check = |world: &World| {
            assert!(world.clusters.len() <= 1, "a second cluster");
            assert!(world.nodes() <= max_nodes as usize, "{} nodes", world.nodes());
            assert!(max_cost.is_none_or(|most| world.cost() <= most), "{} per hour", world.cost());
            assert_eq!(world.wrongly_deleted, 0);
            let bursts: u64 = world.record().meter.bursts.iter().map(|burst| burst.counted).sum();
            assert!(world.record().meter.bursts.len() == crate::provision::BURSTS || bursts == world.record().meter.counted);
        };
        for happening in &happenings {
            happen(&mut world, happening, &mut check);
        }
        // In the end all works, nothing is wanted and the provisioner goes.
        for happening in [Happening::Fails(false), Happening::Breaks(false), Happening::Silent(false), Happening::Budget(false), Happening::Unlisted(false), Happening::Outdated(false), Happening::Replicas(0)] {
            happen(&mut world, &happening, &mut check);
        }
        world.settings.headroom = None;
        happen(&mut world, &Happening::Run(240), &mut check);
        prop_assert_eq!((world.clusters.len(), world.member, world.record().cluster), (0, MemberState::Absent, None));
        world.settings.deleting = true;
        world.step(10);
        prop_assert!(world.last.done);
    }

    #[test]
    fn a_steady_load_comes_to_rest(replicas in 0u32..12, before in 0u32..12, max_nodes in 3u32..6) {
        let mut world = World::new(Settings { max_nodes, ..settings() });
        let run = |world: &mut World, minutes: i64| (0..minutes).for_each(|_| world.step(MINUTE));
        world.replicas = before;
        run(&mut world, 10);
        world.replicas = replicas;
        run(&mut world, 60);
        let (nodes, clusters, events) = (world.nodes(), world.made, world.events.len());
        prop_assert!(world.pods() == replicas || world.nodes() == max_nodes as usize);
        run(&mut world, 120);
        prop_assert_eq!((world.nodes(), world.made, world.events.len()), (nodes, clusters, events), "nothing oscillates: {:?}", world.events);
    }
}

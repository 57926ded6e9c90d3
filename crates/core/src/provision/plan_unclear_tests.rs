//! What a provisioner does about what it does not know, or did not make: silence, the objects of others, nodes that do not
//! help.

use super::*;

#[test]
fn a_silent_member_loses_nothing() {
    let mut world = running(8);
    world.replicas = 0;
    world.pass(0);
    world.run(5 * MINUTE);
    world.member = MemberState::Joined { reachable: false, workloads: 0 };
    world.run(120 * MINUTE);
    assert_eq!((world.nodes(), world.phase()), (2, CloudPhase::Ready), "silence is not absence");
    world.member = MemberState::Joined { reachable: true, workloads: 0 };
    world.run(4 * MINUTE);
    assert_eq!(world.nodes(), 2, "the silence does not count for the delay");
    world.run(4 * MINUTE);
    assert_eq!((world.nodes(), world.made), (1, 1), "what was before it does");
}

#[test]
fn a_new_leader_that_has_not_listed_the_nodes_removes_none() {
    for member in [true, false].map(|reachable| MemberState::Joined { reachable, workloads: 1 }) {
        let mut world = running(8);
        // One machine more is wanted and cannot be made, for longer than spec.provisionTimeout.
        world.broken.insert("small".into(), failure("Quota"));
        world.replicas = 9;
        world.step(10);
        world.clock += 21 * MINUTE;
        (world.unlisted, world.member) = (true, member);
        world.run(MINUTE);
        let ready: Vec<_> = world.machines().filter(|(_, machine)| machine.ready.is_some()).collect();
        assert!(ready.iter().all(|(_, machine)| !machine.marked), "a node that was ready is marked");
        assert_eq!((ready.len(), world.pods(), world.record().pools["medium"].desired), (2, 8, 2));
    }
}

#[test]
fn nothing_is_lowered_or_removed_on_lists_that_are_of_the_past() {
    let mut world = running(8);
    world.replicas = 12;
    world.pass(0);
    for order in world.plan() {
        world.carry_out(&order);
    }
    world.outdated = Some(world.snapshot());
    world.run(60 * MINUTE);
    assert_eq!((world.nodes(), world.pods(), world.wrongly_deleted), (3, 12, 0));
    assert_eq!((world.record().pools["medium"].desired, world.last.orders.len()), (3, 0));
    assert_eq!(world.last.obstacle.as_ref().unwrap().reason(), "CacheNotSynced");
    world.replicas = 0;
    world.pass(0);
    world.outdated = None;
    world.outdated = Some(world.snapshot());
    world.run(60 * MINUTE);
    assert_eq!(world.nodes(), 3, "and no delay goes on");
    world.outdated = None;
    world.run(9 * MINUTE);
    assert_eq!((world.nodes(), world.phase()), (3, CloudPhase::Ready));
    world.run(3 * MINUTE);
    assert_eq!(world.nodes(), 1);
}

#[test]
fn a_change_of_leaders_does_not_begin_the_delays_again() {
    let mut world = running(8);
    world.replicas = 4;
    world.pass(0);
    for _ in 0..10 {
        world.run(MINUTE);
        world.member = MemberState::Joined { reachable: false, workloads: 1 };
        world.run(20);
        assert_eq!(world.nodes(), 2, "not yet");
        world.member = MemberState::Joined { reachable: true, workloads: 1 };
    }
    world.run(3 * MINUTE);
    assert_eq!((world.nodes(), world.pods()), (1, 4));
}

#[test]
fn what_somebody_else_deletes_or_scales_is_followed() {
    let mut world = running(5);
    for cluster in world.clusters.values_mut() {
        cluster.pools.get_mut("small").unwrap().0 = 3;
    }
    world.run(5 * MINUTE);
    assert_eq!((world.nodes(), world.record().pools["small"].desired), (4, 3));
    world.run(10 * MINUTE);
    assert_eq!((world.nodes(), world.pods(), world.wrongly_deleted), (2, 5, 0), "they were little used");
    world.replicas = 0;
    world.pass(0);
    world.clusters.clear();
    world.run(2 * MINUTE);
    assert_eq!((world.phase(), world.member), (CloudPhase::Idle, MemberState::Absent));
}

#[test]
fn a_cluster_whose_foreign_cluster_is_not_its_own_any_more_is_not_deleted() {
    let lost = [MemberState::Foreign { workloads: 1 }, MemberState::Missing { workloads: 1 }];
    for (member, reason) in lost.into_iter().zip(["ForeignClusterNotOwned", "WorkloadsRemain"]) {
        let mut world = running(5);
        world.member = member;
        world.run(60 * MINUTE);
        assert_eq!((world.clusters.len(), world.nodes(), world.pods()), (1, 2, 5));
        assert_eq!(world.last.obstacle.as_ref().unwrap().reason(), reason);
        let mut forgotten = world.clone();
        forgotten.status = Default::default();
        forgotten.run(60 * MINUTE);
        assert_eq!(forgotten.pods(), 5, "not even if the status is lost as well");
        let mut deleted = world.clone();
        deleted.settings.deleting = true;
        deleted.run(10 * MINUTE);
        assert_eq!((deleted.pods(), deleted.last.done), (5, false), "not even with its CloudProvisioner");
        world.member = MemberState::Joined { reachable: true, workloads: 1 };
        world.run(MINUTE);
        assert_eq!((world.phase(), &world.last.obstacle), (CloudPhase::Ready, &None));
    }
}

#[test]
fn a_cluster_of_the_name_on_record_that_is_not_ours_any_more_is_left_alone_and_not_replaced() {
    use crate::provision::Untouchable;
    let unreadable = Untouchable::Unreadable("missing field `spec`".into());
    for (why, reason) in [(Untouchable::NotOwned, "CloudClusterNotOwned"), (unreadable, "CloudRequestFailed")]
    {
        let mut world = running(5);
        world.untouchable = Some(why);
        world.replicas = 12;
        world.run(60 * MINUTE);
        assert_eq!(
            (world.made, world.nodes(), world.pods()),
            (1, 2, 6),
            "one fits on the nodes that are there"
        );
        assert_eq!(world.last.obstacle.as_ref().unwrap().reason(), reason);
        assert_eq!(world.status.cost_per_hour.to_string(), "0.15", "it costs money all the same");
        world.replicas = 0;
        world.pass(0);
        world.run(60 * MINUTE);
        world.settings.deleting = true;
        world.run(10 * MINUTE);
        assert_eq!((world.nodes(), world.last.done), (2, false), "not even with its CloudProvisioner");
        assert!(matches!(world.member, MemberState::Joined { .. }), "{:?}", world.member);
        world.untouchable = None;
        world.run(5 * MINUTE);
        assert_eq!((world.nodes(), world.last.done), (0, true));
    }
}

#[test]
fn a_cluster_is_not_asked_for_under_a_name_that_is_taken() {
    let mut world = World::new(settings());
    (world.replicas, world.member) = (1, MemberState::Foreign { workloads: 0 });
    world.run(10 * MINUTE);
    assert_eq!(world.made, 0);
    assert_eq!(world.last.obstacle, Some(Obstacle::NameTaken("cloud1".into())));
    (world.member, world.rival) = (MemberState::Absent, Some("other".into()));
    world.run(10 * MINUTE);
    assert_eq!((world.made, &world.last.obstacle), (0, &Some(Obstacle::NameShared("other".into()))));
    use crate::provision::Offer;
    let offer =
        Offer::of("cp1", &world.settings, &world.record(), &world.snapshot(), BTreeMap::new(), world.now());
    assert!(!offer.available, "another provisioner is asked instead");
    world.rival = None;
    world.run(10 * MINUTE);
    assert_eq!((world.made, world.pods()), (1, 1));
}

#[test]
fn a_cluster_that_somebody_deleted_with_work_on_it_is_abandoned_and_replaced() {
    let mut world = running(5);
    world.clusters.clear();
    world.held = 1;
    world.member = MemberState::Joined { reachable: false, workloads: 1 };
    world.run(10 * MINUTE);
    assert_eq!((world.made, world.pods(), world.phase()), (2, 5, CloudPhase::Ready));
}

#[test]
fn nodes_that_do_not_help_are_not_bought_again_and_again() {
    let machine_types = vec![machine("tiny", 1000, 1024, 10_000)];
    let mut world = World::new(Settings { machine_types, ..settings() });
    (world.replicas, world.smaller) = (1, 1);
    world.run(10 * MINUTE);
    assert_eq!(world.status.left_out[0].reason, "NodesDidNotHelp", "{:?}", world.status.left_out);
    let mut most = 0;
    for _ in 0..180 {
        world.run(MINUTE);
        most = most.max(world.nodes());
    }
    assert!(most <= 2, "one at a time is tried again, {most} were there at a time");
    assert!(world.made <= 5, "{} clusters in three hours", world.made);
    world.smaller = 0;
    world.run(60 * MINUTE);
    assert_eq!((world.pods(), world.record().unhelped.len()), (1, 0), "it is tried again");
}

#[test]
fn smaller_nodes_than_declared_get_as_many_as_the_pods_need() {
    let mut world = World::new(settings());
    (world.replicas, world.smaller) = (4, 1);
    world.run(30 * MINUTE);
    assert_eq!((world.pods(), world.nodes()), (4, 2), "three on a medium one, one on a small one");
}

#[test]
fn a_node_that_is_not_ready_any_more_is_not_waited_for_for_ever() {
    let mut world = running(4);
    let clock = world.clock;
    for (_, machines) in world.clusters.values_mut().flat_map(|cluster| cluster.pools.values_mut()) {
        machines.values_mut().for_each(|machine| (machine.pods, machine.unready) = (0, Some(clock)));
    }
    world.run(10 * MINUTE);
    assert_eq!(world.nodes(), 1, "it may come back");
    world.run(20 * MINUTE);
    assert_eq!((world.nodes(), world.pods()), (2, 4));
}

#[test]
fn a_silent_cluster_gets_no_nodes_and_leaves_the_pods_to_the_next_provisioner() {
    use crate::provision::{Offer, Waiting, assign};
    let mut silent = running(8);
    silent.member = MemberState::Joined { reachable: false, workloads: 1 };
    silent.replicas = 12;
    let offered = |world: &World, name: &str| {
        Offer::of(name, &world.settings, &world.record(), &world.snapshot(), BTreeMap::new(), world.now())
    };
    let other = World::new(settings());
    let assigned = |silent: &World| {
        let workload = "MultiClusterDeployment/shop/web".to_owned();
        let waiting = Waiting { workload, shape: pod(), replicas: 4, to_cloud: true, near: None };
        let offers = [offered(silent, "a"), offered(&other, "b")];
        assign(Default::default(), &[waiting], &offers).demands.into_keys().collect::<Vec<_>>()
    };
    silent.step(10);
    assert_eq!(assigned(&silent), ["a"], "a new leader knows its members in a moment");
    silent.run(3 * MINUTE);
    assert_eq!(assigned(&silent), ["b"]);
    assert_eq!((silent.nodes(), silent.last.orders.len()), (2, 0));
}

#[test]
fn a_provisioner_that_cannot_go_on_leaves_the_pods_to_the_next() {
    use crate::provision::{Offer, Untouchable, Waiting, assign};
    let offered = |world: &World, name: &str| {
        Offer::of(name, &world.settings, &world.record(), &world.snapshot(), BTreeMap::new(), world.now())
    };
    let assigned = |stuck: &World| {
        let workload = "MultiClusterDeployment/shop/web".to_owned();
        let waiting = Waiting { workload, shape: pod(), replicas: 4, to_cloud: true, near: None };
        let offers = [offered(stuck, "a"), offered(&World::new(settings()), "b")];
        assign(Default::default(), &[waiting], &offers).demands.into_keys().collect::<Vec<_>>()
    };
    let mut world = running(8);
    assert_eq!(assigned(&world), ["a"]);
    world.member = MemberState::Missing { workloads: 1 };
    assert_eq!(assigned(&world), ["b"], "workloads are on record in a ForeignCluster that is gone");
    world.member = MemberState::Foreign { workloads: 1 };
    assert_eq!(assigned(&world), ["b"]);
    (world.member, world.untouchable) =
        (MemberState::Joined { reachable: true, workloads: 1 }, Some(Untouchable::NotOwned));
    assert_eq!(assigned(&world), ["b"], "its Cluster is not its own any more");
}

//! Nodes that come late, are replaced, or are not ready any more.

use super::*;

/// The machines of the medium type, by name.
fn medium(world: &mut World) -> &mut BTreeMap<String, super::super::super::model::ModelMachine> {
    let cluster = world.clusters.values_mut().next().unwrap();
    &mut cluster.pools.get_mut("medium").unwrap().1
}

#[test]
fn nodes_have_their_whole_time_also_if_the_control_plane_took_most_of_its_own() {
    let mut world = World::new(Settings { provision_timeout: Duration::from_secs(240), ..settings() });
    (world.replicas, world.boot) = (4, 400);
    world.run(12 * MINUTE);
    assert_eq!(reasons(&world), ["ClusterRequested", "ClusterJoined"], "it joined after 190 s");
    assert_eq!((world.phase(), world.pods()), (CloudPhase::Ready, 4));
    // Of two machines that are asked for one after the other, each has its own time.
    world.replicas = 6;
    world.run(3 * MINUTE);
    world.boot = 10_000;
    world.replicas = 10;
    world.run(3 * MINUTE);
    let failed = |world: &World| reasons(world).iter().filter(|reason| **reason == "NodesFailed").count();
    assert_eq!((failed(&world), world.nodes()), (1, 3), "the one of the first request is given up");
    world.run(2 * MINUTE);
    assert_eq!(failed(&world), 2);
}

#[test]
fn the_machine_that_replaces_one_that_was_not_ready_for_long_has_its_time() {
    let mut world = running(8);
    let clock = world.clock;
    let dead = medium(&mut world).keys().next().unwrap().clone();
    medium(&mut world).get_mut(&dead).unwrap().unready = Some(clock);
    world.run(60 * MINUTE);
    let clock = world.clock;
    let machine = medium(&mut world).get_mut(&dead).unwrap();
    (machine.deleting, machine.pods) = (Some(clock), 0);
    world.run(6 * MINUTE);
    assert!(!reasons(&world).contains(&"NodesFailed"), "{:?}", world.events);
    assert_eq!((world.pods(), world.record().pools["medium"].desired), (8, 2));
}

#[test]
fn one_node_that_is_not_ready_does_not_keep_the_others_and_is_named() {
    let mut world = running(12);
    let (clock, dead) = (world.clock, medium(&mut world).keys().last().unwrap().clone());
    medium(&mut world).get_mut(&dead).unwrap().unready = Some(clock);
    world.replicas = 8;
    world.pass(0);
    world.run(13 * MINUTE);
    assert_eq!((world.nodes(), world.pods(), world.wrongly_deleted), (2, 8, 0));
    assert!(world.last.lost.is_empty(), "it may come back");
    world.run(8 * MINUTE);
    assert_eq!(world.last.lost, [dead.clone()].into());
    assert!(medium(&mut world).contains_key(&dead), "it may run pods");
    assert_eq!(world.phase(), CloudPhase::Ready);
    medium(&mut world).get_mut(&dead).unwrap().unready = None;
    world.run(MINUTE);
    assert!(world.last.lost.is_empty());
}

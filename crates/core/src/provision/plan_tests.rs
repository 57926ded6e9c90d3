use super::super::model::{World, pod};
use super::super::test_support::machine;
use super::super::{Failure, LeftBecause, Obstacle};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const MINUTE: i64 = 60;

fn settings() -> Settings {
    Settings {
        uid: "0b1c".into(),
        cluster_name: "cloud1".into(),
        machine_types: vec![machine("medium", 4000, 8192, 90_000), machine("small", 2000, 4096, 50_000)],
        min_nodes: 1,
        max_nodes: 6,
        max_cost: None,
        cluster_price: 10_000,
        headroom: None,
        threshold: 50,
        scale_in_after: Duration::from_secs(600),
        decommission_after: Duration::from_secs(1200),
        provision_timeout: Duration::from_secs(1200),
        retry_after: Duration::from_secs(300),
        paused: false,
        deleting: false,
    }
}

fn failure(reason: &str) -> Failure {
    Failure { reason: reason.into(), message: "no quota for cores".into() }
}

/// A world with so many replicas, whose cluster has joined and runs them.
fn running(replicas: u32) -> World {
    let mut world = World::new(settings());
    world.replicas = replicas;
    world.run(8 * MINUTE);
    assert_eq!((world.phase(), world.pods()), (CloudPhase::Ready, replicas));
    world
}

fn reasons(world: &World) -> Vec<&'static str> {
    world.events.iter().map(Event::reason).collect()
}

#[test]
fn a_cluster_that_is_refused_is_given_up_after_the_grace_and_tried_again_later() {
    let mut world = World::new(settings());
    (world.replicas, world.refused) = (2, Some(failure("Invalid")));
    world.run(MINUTE);
    assert_eq!(world.phase(), CloudPhase::Provisioning, "many refusals pass by themselves");
    world.run(3 * MINUTE);
    assert_eq!((world.phase(), world.made), (CloudPhase::Failed, 0));
    assert_eq!(world.record().last_failure.unwrap().0, failure("Invalid"));
    world.refused = None;
    world.run(6 * MINUTE);
    assert_eq!((world.made, world.record().cluster.unwrap().failing_since), (1, None));
}

#[test]
fn from_the_first_pod_that_waits_to_the_last_machine_that_goes() {
    let mut world = World::new(settings());
    world.step(10);
    assert_eq!((world.phase(), world.last.orders.len()), (CloudPhase::Idle, 0), "nothing waits");
    world.replicas = 5;
    let orders = world.plan();
    let name = cluster_name("cloud1", "0b1c", 1);
    let pools = BTreeMap::from([("medium".to_owned(), 1), ("small".to_owned(), 1)]);
    assert_eq!(orders, [Order::CreateCluster { name: name.clone(), number: 1, pools }], "0.14 per hour");
    assert_eq!(
        world.last.events,
        [Event::ClusterRequested { name: name.clone(), nodes: 2, cost: 150_000 }],
        "with the cluster's own price"
    );
    world.run(8 * MINUTE);
    assert_eq!((world.phase(), world.pods(), world.nodes(), world.made), (CloudPhase::Ready, 5, 2, 1));
    assert_eq!(world.status.cost_per_hour.to_string(), "0.15");
    world.replicas = 0;
    world.run(19 * MINUTE);
    assert_eq!((world.phase(), world.nodes()), (CloudPhase::Ready, 1), "one node stays until all is removed");
    world.run(3 * MINUTE);
    assert_eq!((world.phase(), world.nodes(), world.member), (CloudPhase::Idle, 0, MemberState::Absent));
    assert_eq!(
        reasons(&world),
        ["ClusterRequested", "ClusterJoined", "ScaledIn", "Deprovisioning", "ClusterDeleted"]
    );
    assert_eq!(world.status.cost_so_far, world.status.bursts[0].cost);
    assert_eq!(world.status.cost_per_hour.to_string(), "0");
    assert_eq!(world.wrongly_deleted, 0);
}

#[test]
fn the_same_record_and_snapshot_give_the_same_order_so_that_a_crash_makes_no_second_cluster() {
    let mut world = World::new(settings());
    world.replicas = 2;
    let first = world.plan();
    assert_eq!(world.plan(), first, "the answer was lost, or nothing was asked: it is asked again");
    world.carry_out(&first[0]);
    world.carry_out(&first[0]);
    assert_eq!((world.clusters.len(), world.made), (1, 1));
}

#[test]
fn nodes_are_added_for_more_pods_and_not_twice() {
    let mut world = running(5);
    world.replicas = 8;
    world.pass(10);
    assert_eq!(world.snapshot().demand.pods(), 2, "one fits on the small node");
    world.step(10);
    assert_eq!(
        world.last.orders,
        [Order::SetReplicas {
            cluster: cluster_name("cloud1", "0b1c", 1),
            machine_type: "small".into(),
            replicas: 2
        }]
    );
    assert_eq!(world.phase(), CloudPhase::Scaling);
    world.run(3 * MINUTE);
    assert_eq!((world.phase(), world.pods(), world.nodes()), (CloudPhase::Ready, 8, 3));
    assert_eq!(world.events.iter().filter(|event| event.reason() == "ScaledOut").count(), 1);
}

#[test]
fn limits_on_nodes_and_cost_hold_and_are_named() {
    let mut world = World::new(Settings { max_cost: Some(200_000), ..settings() });
    world.replicas = 20;
    world.run(10 * MINUTE);
    assert_eq!((world.pods(), world.cost()), (8, 190_000), "two medium nodes and the cluster itself");
    assert_eq!((world.last.left[0].pods, &world.last.left[0].because), (12, &LeftBecause::CostLimit));
    assert_eq!(world.status.left_out[0].reason, "CostLimitReached");

    let mut world = World::new(Settings { max_nodes: 2, ..settings() });
    world.replicas = 20;
    world.run(10 * MINUTE);
    assert_eq!((world.pods(), world.last.left[0].because.reason()), (8, "NodeLimitReached"));

    let mut world = World::new(Settings { max_cost: Some(55_000), ..settings() });
    world.replicas = 1;
    world.run(MINUTE);
    assert_eq!((world.made, world.phase()), (0, CloudPhase::Idle), "0.05 and 0.01 are more than 0.055");
}

#[test]
fn a_failure_is_named_in_the_words_of_cluster_api_and_waits_longer_each_time() {
    let mut world = World::new(settings());
    world.replicas = 2;
    world.cluster_fails = Some(failure("QuotaExceeded"));
    world.run(3 * MINUTE);
    assert!(world.events.contains(&Event::ClusterFailed(failure("QuotaExceeded"))), "{:?}", world.events);
    assert_eq!((world.phase(), world.clusters.len()), (CloudPhase::Failed, 0), "nothing is left behind");
    assert_eq!(world.status.last_failure.as_ref().unwrap().reason, "QuotaExceeded");
    let waits = |world: &World| {
        world.record().retry_at.unwrap().as_second() - world.record().last_failure.unwrap().1.as_second()
    };
    assert_eq!(waits(&world), 300);
    world.run(8 * MINUTE);
    assert_eq!((world.made, waits(&world), world.status.failures), (2, 600, 2));
    world.run(100 * MINUTE);
    assert_eq!(waits(&world), 2400, "eight times as long at most");
    world.cluster_fails = None;
    world.run(60 * MINUTE);
    assert_eq!((world.phase(), world.pods(), world.status.failures), (CloudPhase::Ready, 2, 0));
}

#[test]
fn the_next_provisioner_is_tried_while_one_waits_after_a_failure() {
    use super::super::{Offer, Waiting, assign};
    let mut near = World::new(settings());
    near.replicas = 2;
    let far = World::new(Settings { uid: "2d3e".into(), cluster_name: "cloud2".into(), ..settings() });
    let assigned = |near: &World| {
        let offer = |name: &str, world: &World, ms: u64| {
            let rtt = BTreeMap::from([("rennes".to_owned(), Duration::from_millis(ms))]);
            Offer::of(name, &world.settings, &world.record(), &world.snapshot(), rtt, near.now())
        };
        let workload = "MultiClusterDeployment/shop/web".to_owned();
        let waiting =
            Waiting { workload, shape: pod(), replicas: 2, to_cloud: true, near: Some("rennes".into()) };
        let offers = [offer("far", &far, 40), offer("near", near, 5)];
        assign(Default::default(), &[waiting], &offers).demands.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(assigned(&near), ["near"]);
    near.cluster_fails = Some(failure("QuotaExceeded"));
    near.run(3 * MINUTE);
    assert_eq!((near.phase(), assigned(&near)), (CloudPhase::Failed, vec!["far".to_owned()]));
    near.clock += 6 * MINUTE;
    assert_eq!(assigned(&near), ["near"], "it is tried again after its delay");
}

#[test]
fn a_cluster_that_takes_too_long_is_given_up() {
    let mut world = World::new(Settings { provision_timeout: Duration::from_secs(120), ..settings() });
    world.replicas = 2;
    world.run(MINUTE);
    assert_eq!(world.last.next.unwrap().as_second(), 1_000_000 + 120);
    world.run(2 * MINUTE);
    let Some(Event::ClusterFailed(failure)) = world.events.iter().find(|event| event.is_warning()) else {
        panic!("{:?}", world.events)
    };
    assert_eq!(failure.reason, "Timeout");
}

#[test]
fn machines_that_cannot_be_made_are_given_up_and_another_type_is_tried() {
    let mut world = running(4);
    assert_eq!(world.nodes(), 1);
    world.broken.insert("small".into(), failure("FlavorNotFound"));
    world.replicas = 6;
    world.run(2 * MINUTE);
    assert_eq!(world.nodes(), 2);
    world.run(6 * MINUTE);
    let given_up = Event::NodesFailed { machine_type: "small".into(), failure: failure("FlavorNotFound") };
    assert!(world.events.contains(&given_up), "{:?}", world.events);
    assert_eq!((world.pods(), world.nodes(), world.wrongly_deleted), (6, 2, 0), "two medium nodes");
}

#[test]
fn little_used_nodes_go_after_the_delay_and_by_their_mark() {
    let mut world = running(8);
    assert_eq!(world.nodes(), 2, "two medium nodes");
    world.replicas = 3;
    world.pass(0);
    world.run(9 * MINUTE);
    assert_eq!((world.nodes(), world.last.orders.len()), (2, 0), "not yet");
    world.run(3 * MINUTE);
    assert_eq!((world.nodes(), world.pods(), world.wrongly_deleted), (1, 3, 0));
    assert_eq!(world.record().pools["medium"].desired, 1);
}

#[test]
fn a_node_goes_in_three_steps() {
    let mut world = running(8);
    world.replicas = 4;
    world.pass(0);
    world.step(10 * MINUTE);
    let orders = world.plan();
    let [Order::MarkForDeletion { machines, .. }] = orders.as_slice() else { panic!("{orders:?}") };
    assert_eq!(machines.len(), 1);
    assert_eq!(world.plan(), orders, "until the mark is seen");
    world.carry_out(&orders[0]);
    let lowered = world.plan();
    assert!(matches!(&lowered[..], [Order::SetReplicas { replicas: 1, .. }]), "{lowered:?}");
    assert_eq!(world.plan(), lowered, "until the number is seen");
    world.carry_out(&lowered[0]);
    world.run(2 * MINUTE);
    assert_eq!((world.nodes(), world.pods(), world.phase()), (1, 4, CloudPhase::Ready));
}

#[test]
fn a_machine_that_is_being_deleted_counts_until_it_is_gone() {
    let mut world = World::new(Settings { max_nodes: 3, max_cost: Some(280_000), ..settings() });
    world.replicas = 8;
    world.run(8 * MINUTE);
    world.replicas = 4;
    world.pass(0);
    world.step(10 * MINUTE);
    world.run(40);
    assert_eq!((world.nodes(), world.record().pools["medium"].desired), (2, 1), "one is being deleted");
    // Pods come faster than Cluster API shows what was asked for.
    for replicas in [8, 12, 16] {
        world.replicas = replicas;
        for order in world.plan() {
            world.carry_out(&order);
        }
    }
    for _ in 0..12 {
        world.step(10);
        assert!(world.nodes() <= 3 && world.cost() <= 280_000, "{} nodes", world.nodes());
    }
    world.run(4 * MINUTE);
    assert_eq!((world.nodes(), world.pods()), (3, 12));
}

#[test]
fn a_removal_is_called_off_when_pods_wait() {
    let mut world = running(8);
    world.replicas = 4;
    world.pass(0);
    world.step(10 * MINUTE);
    let mark = world.plan();
    world.carry_out(&mark[0]);
    world.replicas = 10;
    let called_off = world.plan();
    assert!(
        matches!(&called_off[..], [Order::Unmark { machines, .. }] if machines.len() == 1),
        "{called_off:?}"
    );
    // The controller stops before the mark is removed.
    let again = world.plan();
    assert!(again.iter().any(|order| matches!(order, Order::Unmark { .. })), "{again:?}");
    world.run(6 * MINUTE);
    assert_eq!((world.pods(), world.wrongly_deleted), (10, 0));
    assert!(world.machines().all(|(_, machine)| !machine.marked));
}

#[test]
fn a_node_that_cannot_be_emptied_stays() {
    let mut world = running(8);
    world.budget = true;
    world.replicas = 5;
    world.pass(0);
    world.run(30 * MINUTE);
    assert_eq!(world.nodes(), 2, "the pods of the little used node cannot be evicted");
    world.budget = false;
    world.run(MINUTE);
    assert_eq!(world.nodes(), 2, "and would not fit on the other one: 4 pods are all that it holds");
    assert!(!reasons(&world).contains(&"ScaledIn"));
    world.replicas = 4;
    world.run(15 * MINUTE);
    assert_eq!(world.nodes(), 1);
}

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
fn work_that_comes_calls_the_removal_of_the_cluster_off() {
    let mut world = running(2);
    world.replicas = 0;
    world.pass(0);
    world.run(20 * MINUTE);
    let orders = world.plan();
    assert_eq!(orders, [Order::Unpeer { member: "cloud1".into(), abandon: false }]);
    world.replicas = 2;
    world.pass(0);
    assert_eq!(world.plan(), [], "the ForeignCluster is still there");
    assert_eq!(world.last.events, [Event::DeprovisioningCalledOff]);
    world.run(MINUTE);
    assert_eq!((world.pods(), world.made, world.phase()), (2, 1, CloudPhase::Ready));
}

#[test]
fn a_deleted_provisioner_waits_for_workloads_and_leaves_nothing() {
    let mut world = running(5);
    world.settings.deleting = true;
    world.run(30 * MINUTE);
    assert_eq!(world.member, MemberState::Leaving { workloads: 1 });
    assert_eq!((world.nodes(), world.last.done), (2, false), "its machines stay while workloads are there");
    world.replicas = 0;
    world.run(MINUTE);
    assert_eq!((world.nodes(), world.clusters.len(), world.last.done), (0, 0, true));
    assert!(World::new(Settings { deleting: true, ..settings() }).plan().is_empty());
}

#[test]
fn a_provisioner_that_is_deleted_before_its_request_is_seen_forgets_no_cluster() {
    let mut world = World::new(settings());
    world.replicas = 2;
    let create = world.plan();
    world.settings.deleting = true;
    world.step(10);
    assert!(!world.last.done, "the request may be under way");
    world.carry_out(&create[0]);
    world.run(2 * MINUTE);
    assert_eq!((world.clusters.len(), world.last.done), (0, true));
}

#[test]
fn headroom_is_kept_ready() {
    let mut world = World::new(Settings { headroom: Some((pod(), 2)), ..settings() });
    world.run(8 * MINUTE);
    assert_eq!((world.phase(), world.nodes()), (CloudPhase::Ready, 1), "a small node for nobody yet");
    world.replicas = 2;
    world.run(6 * MINUTE);
    assert_eq!(
        (world.pods(), world.nodes()),
        (2, 2),
        "the pods had a node at once, and the next ones will have"
    );
    world.replicas = 0;
    world.run(60 * MINUTE);
    assert_eq!((world.phase(), world.nodes()), (CloudPhase::Ready, 1));
}

#[test]
fn a_cluster_of_a_lost_status_is_found_again() {
    let mut world = running(5);
    world.status = Default::default();
    world.run(3 * MINUTE);
    assert_eq!((world.made, world.pods(), world.phase()), (1, 5, CloudPhase::Ready));
    assert_eq!((world.record().clusters, world.nodes()), (1, 2));
    let other = world.clusters.values().next().unwrap().clone();
    world.clusters.insert(
        "copy".into(),
        super::super::model::ModelCluster { number: 7, pools: BTreeMap::new(), ..other },
    );
    world.step(10);
    assert_eq!(world.last.strays, ["copy"]);
    assert!(world.last.orders.is_empty(), "it is shown, not deleted");
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
fn a_cluster_is_not_asked_for_under_a_name_that_is_taken() {
    let mut world = World::new(settings());
    (world.replicas, world.member) = (1, MemberState::Foreign { workloads: 0 });
    world.run(10 * MINUTE);
    assert_eq!(world.made, 0);
    assert_eq!(world.last.obstacle, Some(Obstacle::NameTaken("cloud1".into())));
    (world.member, world.rival) = (MemberState::Absent, Some("other".into()));
    world.run(10 * MINUTE);
    assert_eq!((world.made, &world.last.obstacle), (0, &Some(Obstacle::NameShared("other".into()))));
    use super::super::Offer;
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
    use super::super::{Offer, Waiting, assign};
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
fn a_paused_provisioner_makes_and_removes_nothing() {
    let mut world = World::new(Settings { paused: true, ..settings() });
    world.replicas = 5;
    world.run(5 * MINUTE);
    assert_eq!(world.made, 0);
    let mut world = running(5);
    world.settings.paused = true;
    world.replicas = 0;
    world.run(60 * MINUTE);
    assert_eq!(world.nodes(), 2);
    assert_eq!(world.status.cost_per_hour.to_string(), "0.15", "what it costs is counted all the same");
}

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
    ) {
        let headroom = headroom.map(|pods| (pod(), pods));
        let mut world = World::new(Settings { max_cost, max_nodes, headroom, ..settings() });
        let mut check = |world: &World| {
            assert!(world.clusters.len() <= 1, "a second cluster");
            assert!(world.nodes() <= max_nodes as usize, "{} nodes", world.nodes());
            assert!(max_cost.is_none_or(|most| world.cost() <= most), "{} per hour", world.cost());
            assert_eq!(world.wrongly_deleted, 0);
            let bursts: u64 = world.record().meter.bursts.iter().map(|burst| burst.counted).sum();
            assert!(world.record().meter.bursts.len() == super::super::BURSTS || bursts == world.record().meter.counted);
        };
        for happening in &happenings {
            happen(&mut world, happening, &mut check);
        }
        // In the end all works, nothing is wanted and the provisioner goes.
        for happening in [Happening::Fails(false), Happening::Breaks(false), Happening::Silent(false), Happening::Budget(false), Happening::Unlisted(false), Happening::Replicas(0)] {
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

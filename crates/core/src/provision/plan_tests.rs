use super::super::model::{World, pod};
use super::super::test_support::machine;
use super::super::{Failure, LeftBecause, Obstacle};
use super::*;
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
fn a_cluster_whose_parts_were_not_created_is_completed_or_given_up_with_all_its_parts() {
    let mut world = World::new(settings());
    (world.replicas, world.piecemeal) = (2, true);
    world.step(10);
    let orders = world.plan();
    let name = cluster_name("cloud1", "0b1c", 1);
    assert!(orders.contains(&Order::CompleteCluster { name: name.clone() }), "{orders:?}");
    world.refused = Some(failure("Invalid"));
    world.run(MINUTE);
    assert_eq!((world.phase(), world.clusters.len()), (CloudPhase::Provisioning, 1));
    world.run(3 * MINUTE);
    assert_eq!((world.phase(), world.clusters.len()), (CloudPhase::Failed, 0), "no part is left");
    assert_eq!(world.record().last_failure.unwrap().0, failure("Invalid"));
    world.refused = None;
    world.run(14 * MINUTE);
    assert_eq!((world.phase(), world.pods(), world.made), (CloudPhase::Ready, 2, 2));
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
fn work_that_comes_calls_the_removal_of_the_cluster_off() {
    let mut world = running(2);
    world.replicas = 0;
    world.pass(0);
    world.run(20 * MINUTE);
    let orders = world.plan();
    assert_eq!(orders, [Order::Unpeer { member: "cloud1".into(), abandon: false }]);
    // The controller stops after it has tainted the ForeignCluster, and before it deletes it.
    world.leaving = true;
    world.replicas = 2;
    world.pass(0);
    let stays = [Order::KeepPeered { member: "cloud1".into() }];
    assert_eq!(world.plan(), stays, "the ForeignCluster is still there");
    assert_eq!(world.last.events, [Event::DeprovisioningCalledOff]);
    assert_eq!(world.plan(), stays, "until the taint is gone");
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
    world.settings.deleting = true;
    world.run(60 * MINUTE);
    assert_eq!((world.nodes(), world.last.done), (2, false), "it stays, and says why");
    assert_eq!(world.last.obstacle, Some(Obstacle::Paused));
    world.settings.paused = false;
    world.run(5 * MINUTE);
    assert_eq!((world.nodes(), world.last.done), (0, true));
    let mut unused = World::new(Settings { paused: true, deleting: true, ..settings() });
    unused.step(10);
    assert!(unused.last.done, "one that has made nothing goes at once");
}

#[path = "plan_late_tests.rs"]
mod late;
#[path = "plan_properties.rs"]
mod properties;
#[path = "plan_unclear_tests.rs"]
mod unclear;

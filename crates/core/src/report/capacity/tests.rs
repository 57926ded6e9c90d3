use super::*;
use crate::capacity::{
    Amounts, CPU, ClusterIndex, ClusterRoom, MEMORY, NodeFacts, PODS, PodFacts, PodShape, Shape,
};
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};
use k8s_openapi::jiff::Timestamp;
use portolan_api::clusterreport::{CapacityRequest, ReportedCapacity};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

const ZONE: &str = "topology.kubernetes.io/zone";
const POOL: &str = "example.org/pool";
const DISK: &str = "example.org/disk";
const GPU: &str = "example.org/gpu";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn amounts(cpu: i64, memory: i64, pods: i64) -> Amounts {
    let mut amounts = Amounts::of(CPU, cpu);
    amounts.set(MEMORY, memory * 1000);
    amounts.set(PODS, pods * 1000);
    amounts
}

/// A cluster as its own controller follows it.
#[derive(Debug, Default)]
struct Cluster {
    nodes: Vec<NodeFacts>,
    pods: Vec<PodFacts>,
}

impl Cluster {
    fn index(&self) -> ClusterIndex {
        let mut index = ClusterIndex::default();
        self.nodes.iter().cloned().for_each(|node| _ = index.set_node(node));
        for (number, pod) in self.pods.iter().enumerate() {
            index.set_pod(&format!("shop/p{number}"), pod.clone());
        }
        index.nodes_listed();
        index.pods_listed();
        index
    }

    fn summary(&self) -> ReportedCapacity {
        let request = CapacityRequest { node_labels: vec![POOL.to_owned()] };
        summarise(&self.index(), &request, 7, at(0))
    }

    fn room(&self) -> ClusterRoom {
        ClusterRoom::count(&self.nodes, &self.pods)
    }
}

/// A hub's index of a summary, which went over the wire.
fn told(summary: &ReportedCapacity) -> ClusterIndex {
    let wire = serde_json::to_string(summary).unwrap();
    let mut index = ClusterIndex::default();
    index.set_reported(read(&serde_json::from_str(&wire).unwrap(), at(1)).unwrap());
    index.pods_listed();
    index
}

fn requirement(key: &str, operator: &str) -> PodShape {
    let values = (operator == "In" || operator == "NotIn").then(|| vec!["a".to_owned()]);
    let wanted = NodeSelectorRequirement { key: key.into(), operator: operator.into(), values };
    let term = NodeSelectorTerm { match_expressions: Some(vec![wanted]), ..NodeSelectorTerm::default() };
    PodShape { node_terms: vec![term], ..PodShape::default() }
}

/// Shapes that ask for labels that are told and for such that are not, that tolerate taints, or name nodes.
fn shape(kind: usize, cpu: i64, memory: i64, gpu: bool) -> Shape {
    let selecting = |key: &str| PodShape {
        node_selector: BTreeMap::from([(key.to_owned(), "a".to_owned())]),
        ..PodShape::default()
    };
    let mut shape = match kind {
        1 => selecting(ZONE),
        2 => selecting(POOL),
        3 => selecting(DISK),
        4 => requirement(DISK, "DoesNotExist"),
        5 => requirement(DISK, "NotIn"),
        6 => requirement(POOL, "DoesNotExist"),
        7 => requirement("kubernetes.io/hostname", "Exists"),
        8 => PodShape {
            tolerations: vec![Toleration { operator: Some("Exists".into()), ..Toleration::default() }],
            ..PodShape::default()
        },
        _ => PodShape::default(),
    };
    shape.requests = amounts(cpu, memory, 1);
    if gpu {
        shape.requests.set(GPU, 1000);
    }
    shape.into()
}

fn shapes() -> impl Strategy<Value = Shape> {
    (0..10usize, 1..3000i64, 0..4000i64, proptest::bool::weighted(0.2))
        .prop_map(|(kind, cpu, memory, gpu)| shape(kind, cpu, memory, gpu))
}

/// CPU, memory, GPUs, and which zone, pool and disk; whether it is tainted, and more.
type Numbers = (i64, i64, i64, usize, usize, usize, [bool; 3]);

fn clusters(nodes: usize) -> impl Strategy<Value = Cluster> {
    let node = (0..16_000i64, 0..32_000i64, 0..4i64, 0..3usize, 0..3usize, 0..2usize, any::<[bool; 3]>());
    let nodes = proptest::collection::vec(node, 0..nodes).prop_map(|nodes| {
        let node =
            |(number, (cpu, memory, gpu, zone, pool, disk, [tainted, odd, unready])): (usize, Numbers)| {
                let names = ["a", "b", "c"];
                let mut labels = BTreeMap::from([
                    ("kubernetes.io/hostname".to_owned(), format!("n{number}")),
                    (ZONE.to_owned(), names[zone].to_owned()),
                    (DISK.to_owned(), names[disk].to_owned()),
                ]);
                if pool > 0 {
                    labels.insert(POOL.to_owned(), names[pool].to_owned());
                }
                let mut allocatable = amounts(cpu, memory, 20);
                if gpu > 0 {
                    allocatable.set(GPU, gpu * 1000);
                }
                let taint = Taint { key: "t".into(), effect: "NoSchedule".into(), ..Taint::default() };
                let taints = (tainted && odd).then_some(taint).into_iter().collect();
                let cordoned = odd && unready && !tainted;
                NodeFacts {
                    name: format!("n{number}"),
                    allocatable,
                    labels,
                    taints,
                    cordoned,
                    ready: !(tainted && odd && unready),
                    ..NodeFacts::default()
                }
            };
        nodes.into_iter().enumerate().map(node).collect::<Vec<_>>()
    });
    let pod = (0..200usize, 0..3000i64, 0..6000i64);
    (nodes, proptest::collection::vec(pod, 0..60)).prop_map(|(nodes, pods)| {
        let pod = |(node, cpu, memory): (usize, i64, i64)| PodFacts {
            node: Some(format!("n{node}")),
            requests: amounts(cpu, memory, 1),
            ..PodFacts::default()
        };
        Cluster { nodes, pods: pods.into_iter().map(pod).collect() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_more_is_placed_by_a_summary_than_fits_on_the_nodes_it_was_made_of(
        cluster in clusters(200), wanted in proptest::collection::vec(shapes(), 1..8),
    ) {
        let (summary, room) = (cluster.summary(), cluster.room());
        let mut index = told(&summary);
        for shape in &wanted {
            let view = index.view("new", shape);
            prop_assert!(view.room.max_replicas <= room.max_replicas(shape));
        }
    }

    #[test]
    fn each_node_of_a_summary_is_a_node_with_at_least_that_free(cluster in clusters(120)) {
        let summary = cluster.summary();
        let index = cluster.index();
        let real: Vec<_> = index.rooms().map(|room| (room.labels.clone(), room.free)).collect();
        for group in &summary.groups {
            let of_group = |labels: &BTreeMap<String, String>| {
                group.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            };
            let nodes: i32 = group.rooms.iter().map(|room| room.nodes).sum();
            let having = real.iter().filter(|(labels, _)| of_group(labels)).count();
            prop_assert!(usize::try_from(nodes).unwrap() <= having);
            for room in &group.rooms {
                let free = Amounts::parse(&room.free).unwrap();
                let enough = |own: &Amounts| free.iter().all(|(name, milli)| own.get(name) >= milli);
                let found = real.iter().filter(|(labels, own)| of_group(labels) && enough(own)).count();
                prop_assert!(found >= usize::try_from(room.nodes).unwrap());
            }
        }
    }

    #[test]
    fn nodes_pods_and_amounts_are_conserved(cluster in clusters(200)) {
        let (summary, index) = (cluster.summary(), cluster.index());
        let in_groups: i32 = summary.groups.iter().flat_map(|group| &group.rooms).map(|room| room.nodes).sum();
        prop_assert_eq!(usize::try_from(in_groups + summary.omitted_nodes).unwrap(), index.rooms().count());
        let (totals, heard) = (index.summary(), told(&summary).summary());
        prop_assert_eq!((heard.nodes, heard.ready, heard.pods), (totals.nodes, totals.ready, totals.pods));
        for name in [CPU, MEMORY, PODS] {
            prop_assert_eq!(heard.capacity.get(name), totals.capacity.get(name));
            prop_assert_eq!(heard.allocated.get(name), totals.allocated.get(name));
            prop_assert!(heard.available.get(name) <= totals.available.get(name));
        }
        prop_assert!(serde_json::to_vec(&summary).unwrap().len() <= BYTES_AT_MOST);
    }

    #[test]
    fn whatever_a_member_tells_is_read_without_harm(
        nodes in any::<[i32; 4]>(), free in "\\PC{0,12}", version in "[0-9]{1,30}|\\PC{0,5}", labels in 0..40usize,
    ) {
        let room = |nodes: i32| json!({"nodes": nodes, "free": {"cpu": free, "memory": "1e30", "pods": "110"}});
        let keys: Vec<String> = (0..labels).map(|number| format!("l{number}")).collect();
        let of_node: BTreeMap<&String, &str> = keys.iter().map(|key| (key, "x")).collect();
        let group = json!({"labels": of_node, "rooms": nodes.map(room)});
        let summary = json!({
            "observedAt": "1970-01-01T00:00:00Z", "podsResourceVersion": version, "nodeLabels": keys,
            "omittedNodes": nodes[0], "pods": nodes[1], "groups": vec![group; 40],
        });
        if let Ok(room) = read(&serde_json::from_value(summary).unwrap(), at(1)) {
            let nodes = room.groups.iter().filter_map(|facts| facts.group.as_ref()).map(|group| group.nodes);
            prop_assert!(nodes.sum::<u32>() <= 100_000 && room.groups.len() <= 192 && room.told_labels.len() <= 21);
            prop_assert!(room.groups.iter().all(|facts| facts.allocatable.get(MEMORY) == 0));
        }
    }
}

fn node(name: String, cpu: i64) -> NodeFacts {
    NodeFacts { name, allocatable: amounts(cpu, 64_000, 110), ready: true, ..NodeFacts::default() }
}

/// 5,000 nodes of four pools in three zones, each filled differently.
fn large() -> Cluster {
    let mut cluster = Cluster::default();
    for number in 0..5000usize {
        let mut node = node(format!("n{number}"), 64_000);
        node.labels.insert(ZONE.to_owned(), format!("z{}", number % 3));
        node.labels.insert(POOL.to_owned(), format!("p{}", number % 4));
        node.labels.insert("kubernetes.io/hostname".to_owned(), format!("n{number}"));
        cluster.nodes.push(node);
        let cpu = i64::try_from(number * 7919 % 64_000).unwrap();
        let memory = i64::try_from(number * 104_729 % 64_000).unwrap();
        let requests = amounts(cpu, memory, 1);
        cluster.pods.push(PodFacts { node: Some(format!("n{number}")), requests, ..PodFacts::default() });
    }
    cluster
}

#[test]
fn five_thousand_nodes_are_told_in_kilobytes_and_most_of_their_room_is() {
    let cluster = large();
    let summary = cluster.summary();
    let bytes = serde_json::to_vec(&summary).unwrap().len();
    assert!(bytes <= BYTES_AT_MOST, "{bytes}");
    assert_eq!((summary.groups.len(), summary.omitted_nodes), (12, 0));
    let (mut index, room) = (told(&summary), cluster.room());
    assert_eq!(index.summary().nodes, 5000);
    let shape = shape(0, 500, 500, false);
    let (by_summary, counted) = (index.view("new", &shape).room.max_replicas, room.max_replicas(&shape));
    assert!(by_summary <= counted && by_summary * 2 > counted, "{by_summary} of {counted}");
    assert_eq!(index.view("new", &shape).open_nodes, 5000);
}

#[test]
fn reserved_replicas_take_room_of_a_summary_and_pods_that_it_counts_do_not() {
    let cluster = Cluster {
        nodes: (0..10).map(|number| node(format!("n{number}"), 4000)).collect(),
        ..Cluster::default()
    };
    let mut index = told(&cluster.summary());
    let shape = shape(0, 1000, 0, false);
    assert_eq!(index.view("new", &shape).room.max_replicas, 40);
    index.reserve("web", &shape, 15);
    assert_eq!(index.view("new", &shape).room.max_replicas, 25);
    // Five of them run, and the summary counts them.
    let own = PodFacts {
        node: Some("n0".into()),
        requests: shape.requests.clone(),
        workload: Some("web".into()),
        template: Some(shape.template_hash()),
        ..PodFacts::default()
    };
    for number in 0..5 {
        index.set_pod(&format!("shop/web-{number}"), own.clone());
    }
    let with = Cluster { pods: vec![own.clone(); 4], ..cluster };
    index.set_reported(read(&with.summary(), at(1)).unwrap());
    let view = index.view("web", &shape);
    assert_eq!((view.bound, view.room.max_replicas), (5, 36), "it is told that four are counted");
    assert_eq!(index.view("new", &shape).room.max_replicas, 26);
}

#[test]
fn pods_that_are_to_be_replaced_make_room_each_for_one() {
    let cluster = Cluster { nodes: vec![node("n0".to_owned(), 4000)], ..Cluster::default() };
    let (old, new) = (shape(0, 1000, 0, false), shape(0, 900, 0, false));
    let own = PodFacts {
        node: Some("n0".into()),
        requests: old.requests.clone(),
        workload: Some("web".into()),
        template: Some(old.template_hash()),
        ..PodFacts::default()
    };
    let full = Cluster { pods: vec![own.clone(); 4], ..cluster };
    let mut index = told(&full.summary());
    index.reserve("web", &old, 4);
    (0..4).for_each(|number| _ = index.set_pod(&format!("shop/web-{number}"), own.clone()));
    assert_eq!(index.view("other", &new).room.max_replicas, 0);
    assert_eq!(index.view("web", &new).room.max_replicas, 4);
    assert_eq!(index.view("web", &shape(0, 1100, 0, false)).room.max_replicas, 0, "they are larger");
    assert_eq!(index.view("web", &shape(1, 900, 0, false)).room.max_replicas, 0, "they want another zone");
}

#[test]
fn what_a_summary_does_not_tell_is_no_reason_to_move_anything() {
    let cluster = Cluster { nodes: vec![node("n0".to_owned(), 4000)], ..Cluster::default() };
    let mut index = told(&cluster.summary());
    let (untold, zoned) = (shape(3, 1000, 0, false), shape(1, 1000, 0, false));
    index.reserve("web", &untold, 2);
    index.reserve("api", &zoned, 2);
    assert!(!index.view("web", &untold).is_room_gone());
    assert!(index.view("api", &zoned).is_room_gone(), "no node has the label, which is told");
    let shortage = index.shortage("new", &untold, 0).to_string();
    assert!(shortage.contains("spec.capacity.fromReport.nodeLabels"), "{shortage}");
}

#[test]
fn nodes_that_are_left_out_are_told_of() {
    let mut cluster = Cluster {
        nodes: (0..40).map(|number| node(format!("n{number}"), 4000)).collect(),
        ..Cluster::default()
    };
    for (number, node) in cluster.nodes.iter_mut().enumerate() {
        node.labels.insert(POOL.to_owned(), format!("p{number}"));
    }
    let summary = cluster.summary();
    assert_eq!((summary.groups.len(), summary.omitted_nodes), (16, 24));
    let mut index = told(&summary);
    let large = shape(0, 5000, 0, false);
    let shortage = index.shortage("new", &large, 0).to_string();
    assert!(shortage.starts_with("24 of 40 nodes: left out of the summary"), "{shortage}");
    index.reserve("web", &shape(2, 1000, 0, false), 1);
    assert!(!index.view("web", &shape(2, 1000, 0, false)).is_room_gone());
}

#[test]
fn an_old_summary_and_one_of_the_future_do_not_count() {
    let mut summary = Cluster::default().summary();
    for (second, counts) in [(0, true), (299, true), (300, false), (-60, true), (-61, false)] {
        assert_eq!(read(&summary, at(second)).is_ok(), counts, "{second}");
    }
    summary.pods_resource_version = "x".to_owned();
    assert_eq!(read(&summary, at(0)), Err(NotASummary::NoVersion("x".to_owned())));
}

#[test]
fn little_more_or_less_is_no_news_and_our_own_pods_are() {
    let mut cluster = large();
    let before = cluster.summary();
    cluster.pods.pop();
    assert!(!is_news(&before, &cluster.summary(), 7));
    assert!(is_news(&before, &cluster.summary(), 8), "a pod of a hub has a node since");
    cluster.pods.truncate(4500);
    assert!(is_news(&before, &cluster.summary(), 7));
    let later =
        summarise(&large().index(), &CapacityRequest { node_labels: vec![POOL.to_owned()] }, 7, at(60));
    assert!(is_news(&before, &later, 7), "it must not grow old");
    cluster.nodes.pop();
    assert!(is_news(&before, &cluster.summary(), 7));
}

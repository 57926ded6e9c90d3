use super::*;
use crate::capacity::{CPU, ClusterRoom, MEMORY, PODS, PodShape};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use proptest::prelude::*;
use std::collections::BTreeSet;

const ZONE: &str = "zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const GPU: &str = "example.org/gpu";

#[derive(Clone, Debug)]
enum Change {
    Node { name: usize, cpu: i64, gpu: i64, zone: usize, tainted: bool, cordoned: bool, ready: bool },
    NodeGone(usize),
    Pod { key: usize, node: Option<usize>, requests: usize, workload: Option<usize>, finished: bool },
    PodGone(usize),
    Hold { uid: usize, shape: usize, replicas: u32 },
    Release(usize),
}

fn requests(index: usize) -> Amounts {
    let mut requests = Amounts::of(CPU, [500, 1000, 1000, 0][index % 4]);
    requests.set(MEMORY, [100, 100, 300, 0][index % 4]);
    requests.set(PODS, 1000);
    if index >= 4 {
        requests.set(GPU, 1000);
    }
    requests
}

/// Shapes that differ in requests, in the zone they want, in taints they tolerate, and one that names its node.
fn shape(index: usize) -> Shape {
    let mut shape = PodShape { requests: requests(index), ..PodShape::default() };
    let tolerate = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
    match index / 4 {
        1 => shape.node_selector = BTreeMap::from([(ZONE.to_owned(), "z1".to_owned())]),
        2 => shape.tolerations = vec![tolerate],
        3 => shape.node_selector = BTreeMap::from([(HOSTNAME.to_owned(), "n1".to_owned())]),
        _ => {}
    }
    shape.into()
}

fn changes(pinned: bool) -> impl Strategy<Value = Change> {
    let shapes = if pinned { 16usize } else { 12 };
    let node = (0..5usize, 0..6i64, 0..3i64, 0..3usize, any::<[bool; 2]>(), proptest::bool::weighted(0.9));
    let pod = (0..12usize, proptest::option::of(0..6usize), 0..6usize, proptest::option::of(0..3usize));
    prop_oneof![
        3 => node.prop_map(|(name, cpu, gpu, zone, [tainted, cordoned], ready)| Change::Node {
            name, cpu, gpu, zone, tainted, cordoned: cordoned && tainted, ready
        }),
        1 => (0..5usize).prop_map(Change::NodeGone),
        5 => (pod, proptest::bool::weighted(0.1)).prop_map(|((key, node, requests, workload), finished)| {
            Change::Pod { key, node, requests, workload, finished }
        }),
        2 => (0..12usize).prop_map(Change::PodGone),
        3 => (0..4usize, 0..shapes, 0..6u32)
            .prop_map(|(uid, shape, replicas)| Change::Hold { uid, shape, replicas }),
        1 => (0..4usize).prop_map(Change::Release),
    ]
}

/// Everything as it was told, counted anew for each answer.
#[derive(Default)]
struct Told {
    nodes: BTreeMap<String, NodeFacts>,
    pods: BTreeMap<String, PodFacts>,
    held: BTreeMap<String, (Shape, u32)>,
    /// Whether a node has ever offered the device: from then on it counts.
    gpu: bool,
}

impl Told {
    fn take(&mut self, index: &mut ClusterIndex, change: Change) {
        match change {
            Change::Node { name, cpu, gpu, zone, tainted, cordoned, ready } => {
                let mut allocatable = Amounts::of(CPU, cpu * 1000);
                allocatable.set(MEMORY, 500 + 100 * cpu);
                allocatable.set(PODS, 4000);
                if gpu > 0 {
                    allocatable.set(GPU, gpu * 1000);
                }
                self.gpu |= gpu > 0;
                let name = format!("n{name}");
                let labels = [(HOSTNAME.to_owned(), name.clone()), (ZONE.to_owned(), format!("z{zone}"))];
                let taint = Taint { key: "t".into(), effect: "NoSchedule".into(), ..Taint::default() };
                let taints = tainted.then_some(taint).into_iter().collect();
                let labels = labels.into_iter().collect();
                let facts = NodeFacts { name: name.clone(), allocatable, ready, cordoned, taints, labels };
                index.set_node(facts.clone());
                self.nodes.insert(name, facts);
            }
            Change::NodeGone(name) => {
                index.remove_node(&format!("n{name}"));
                self.nodes.remove(&format!("n{name}"));
            }
            Change::Pod { key, node, requests: index_of, workload, finished } => {
                let facts = PodFacts {
                    node: node.map(|name| format!("n{name}")),
                    requests: requests(index_of),
                    finished,
                    workload: workload.map(|uid| format!("u{uid}")),
                };
                index.set_pod(&format!("p{key}"), facts.clone());
                self.pods.insert(format!("p{key}"), facts);
            }
            Change::PodGone(key) => {
                index.remove_pod(&format!("p{key}"));
                self.pods.remove(&format!("p{key}"));
            }
            Change::Hold { uid, shape: of, replicas } => {
                index.hold(&format!("u{uid}"), &shape(of), replicas);
                self.held.insert(format!("u{uid}"), (shape(of), replicas));
            }
            Change::Release(uid) => {
                index.release(&format!("u{uid}"));
                self.held.remove(&format!("u{uid}"));
            }
        }
    }

    fn settled(&self, uid: &str, shape: &Shape) -> u32 {
        let settled = |pod: &&PodFacts| pod.node.is_some() && !pod.finished && pod.is_of(uid, shape);
        u32::try_from(self.pods.values().filter(settled).count()).unwrap()
    }

    fn room(&self, index: &ClusterIndex, uid: &str, shape: &Shape) -> ClusterRoom {
        let counts = |pod: &&PodFacts| {
            !pod.finished && (pod.workload.as_deref() != Some(uid) || pod.is_of(uid, shape))
        };
        let free = self.nodes.values().map(|facts| {
            let mut free = facts.allocatable.clone();
            let here = |pod: &&PodFacts| pod.node.as_ref() == Some(&facts.name);
            for pod in self.pods.values().filter(counts).filter(here) {
                for (name, milli) in pod.requests.iter().filter(|(name, _)| *name != GPU || self.gpu) {
                    free.add(&Amounts::of(name, milli), -1);
                }
            }
            (index.rank(&facts.name).unwrap(), facts.clone(), free)
        });
        let mut room = ClusterRoom::of(free.collect::<Vec<_>>());
        let mut outstanding: BTreeMap<&Shape, u32> = BTreeMap::new();
        for (other, (shape, held)) in self.held.iter().filter(|(other, _)| *other != uid) {
            *outstanding.entry(shape).or_insert(0) += held.saturating_sub(self.settled(other, shape));
        }
        for (shape, count) in outstanding {
            room.reserve(shape, count);
        }
        room
    }

    /// All answers of the index are what counting gives.
    fn compare(&self, index: &mut ClusterIndex, uid: &str, shape: &Shape) -> Result<(), TestCaseError> {
        let view = index.view(uid, shape);
        let free = index.free(uid, shape);
        let mut room = self.room(index, uid, shape);
        let counted = room.free(shape);
        prop_assert_eq!(view.room.fits, room.fits(shape), "how many fit");
        prop_assert_eq!((view.room.cpu, view.room.memory), (counted.get(CPU), counted.get(MEMORY)));
        for name in [CPU, MEMORY, PODS] {
            prop_assert_eq!(free.get(name), counted.get(name), "free {}", name);
        }
        prop_assert_eq!(view.settled, self.settled(uid, shape));
        prop_assert_eq!(view.held, self.held.get(uid).map_or(0, |(_, replicas)| *replicas));
        prop_assert_eq!(index.shortage(uid, shape, 2), {
            room.reserve(shape, 2);
            room.shortage(shape)
        });
        let names: BTreeSet<&str> = index.node_names().collect();
        prop_assert_eq!(names, self.nodes.keys().map(String::as_str).collect::<BTreeSet<_>>());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_what_counting_gives(steps in proptest::collection::vec((changes(false), 0..5usize, 0..12usize), 1..40)) {
        let (mut index, mut told) = (ClusterIndex::default(), Told::default());
        for (change, uid, of) in steps {
            told.take(&mut index, change);
            told.compare(&mut index, &format!("u{uid}"), &shape(of))?;
        }
    }

    #[test]
    fn shapes_that_name_nodes_are_counted_too(steps in proptest::collection::vec((changes(true), 0..5usize, 0..16usize), 1..25)) {
        let (mut index, mut told) = (ClusterIndex::default(), Told::default());
        for (change, uid, of) in steps {
            told.take(&mut index, change);
            told.compare(&mut index, &format!("u{uid}"), &shape(of))?;
        }
    }

    #[test]
    fn nothing_is_left_when_everything_goes(steps in proptest::collection::vec(changes(true), 1..40)) {
        let (mut index, mut told) = (ClusterIndex::default(), Told::default());
        for change in steps {
            told.take(&mut index, change);
        }
        let all = (0..12).map(Change::PodGone).chain((0..5).map(Change::NodeGone)).chain((0..4).map(Change::Release));
        for change in all {
            told.take(&mut index, change);
        }
        prop_assert!(index.nodes.is_empty() && index.pods.is_empty() && index.workloads.is_empty());
        prop_assert!(index.outstanding.is_empty() && index.pending == 0);
        prop_assert_eq!(index.view("u0", &shape(0)), View::default());
    }
}

fn node(name: &str, cpu: i64) -> NodeFacts {
    let mut allocatable = Amounts::of(CPU, cpu * 1000);
    allocatable.set(MEMORY, 1_000_000);
    allocatable.set(PODS, 110_000);
    let labels = BTreeMap::from([(HOSTNAME.to_owned(), name.to_owned())]);
    NodeFacts { name: name.into(), allocatable, ready: true, labels, ..NodeFacts::default() }
}

#[test]
fn more_shapes_than_are_kept_are_all_answered() {
    let mut index = ClusterIndex::default();
    index.set_node(node("a", 64));
    let of = |milli: i64| {
        let mut requests = Amounts::of(CPU, milli);
        requests.set(PODS, 1000);
        Shape::from(PodShape { requests, ..PodShape::default() })
    };
    for milli in 1..=100 {
        index.hold(&format!("u{milli}"), &of(milli), 1);
    }
    // 1 + 2 + ... + 100 thousandths are reserved; the workload sees all but its own.
    assert_eq!(index.view("u50", &of(50)).room.cpu, 64_000 - 5050 + 50);
    assert_eq!(index.view("new", &of(1)).room.fits, 10, "the 110 pods of the node bound it");
}

#[test]
fn equal_nodes_are_one_class_whatever_their_names() {
    let mut index = ClusterIndex::default();
    for number in 0..100 {
        index.set_node(node(&format!("n{number}"), 4));
    }
    assert_eq!((index.classes.len(), index.classes.get(0).free.len()), (1, 1));
    assert_eq!(index.summary().nodes, 100);
}

#[test]
fn says_when_there_may_be_more_room() {
    let mut index = ClusterIndex::default();
    assert!(index.set_node(node("a", 4)), "a node came");
    assert!(!index.set_node(node("a", 4)), "nothing new");
    let bound = PodFacts { node: Some("a".into()), requests: requests(0), ..PodFacts::default() };
    assert!(!index.set_pod("p", bound.clone()), "a pod takes room");
    assert!(!index.hold("u", &shape(0), 2));
    assert!(index.set_pod("p", PodFacts { finished: true, ..bound }), "a pod has finished");
    assert!(index.release("u"), "a reservation was given up");
    assert!(!index.remove_node("a"));
}

#[test]
fn a_pod_gives_up_only_what_its_node_offers() {
    let mut index = ClusterIndex::default();
    index.set_node(node("n0", 0));
    let bound = PodFacts {
        node: Some("n0".into()),
        requests: requests(4),
        workload: Some("u1".into()),
        ..PodFacts::default()
    };
    index.set_pod("p", bound);
    index.hold("u0", &shape(12), 1);
    let lacking = index.shortage("u1", &shape(9), 2).lacking;
    assert_eq!(lacking, [(CPU.to_owned(), 1000, 0), (GPU.to_owned(), 1000, 0)], "no node has the device");
}

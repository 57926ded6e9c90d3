use super::*;
use crate::capacity::{CPU, ClusterRoom, MEMORY, PODS, PodShape};
use crate::capacity::{LeftOut, TemplateHash};
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};
use proptest::prelude::*;
use std::collections::BTreeSet;

mod cases;

const ZONE: &str = "zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const GPU: &str = "example.org/gpu";

#[derive(Clone, Debug)]
enum Change {
    Node {
        name: usize,
        cpu: i64,
        gpu: i64,
        zone: usize,
        tainted: bool,
        cordoned: bool,
        ready: bool,
    },
    NodeGone(usize),
    Pod {
        key: usize,
        node: Option<usize>,
        requests: usize,
        workload: Option<usize>,
        template: Option<usize>,
        finished: bool,
        leaving: bool,
    },
    PodGone(usize),
    Reserve {
        uid: usize,
        shape: usize,
        replicas: u32,
    },
    Release(usize),
    Forget(usize),
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

/// Shapes that differ in requests, in the zone they want, in taints they tolerate, and some that name nodes.
fn shape(index: usize) -> Shape {
    let mut shape = PodShape { requests: requests(index), ..PodShape::default() };
    let tolerate = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
    match index / 4 {
        1 => shape.node_selector = BTreeMap::from([(ZONE.to_owned(), "z1".to_owned())]),
        2 => shape.tolerations = vec![tolerate],
        3 => shape.node_selector = BTreeMap::from([(HOSTNAME.to_owned(), "n1".to_owned())]),
        4 => shape.node_terms = vec![by_name("NotIn", &["n0", "n3"]), by_name("In", &["n3"])],
        5 => shape.node_terms = vec![by_name("Gt", &["1"])],
        _ => {}
    }
    shape.into()
}

/// A term that asks for nodes by name.
fn by_name(operator: &str, names: &[&str]) -> NodeSelectorTerm {
    let values = Some(names.iter().map(|name| (*name).to_owned()).collect());
    let requirement =
        NodeSelectorRequirement { key: "metadata.name".into(), operator: operator.into(), values };
    NodeSelectorTerm { match_fields: Some(vec![requirement]), ..NodeSelectorTerm::default() }
}

fn changes(pinned: bool) -> impl Strategy<Value = Change> {
    let shapes = if pinned { 24usize } else { 12 };
    let node = (0..5usize, 0..6i64, 0..3i64, 0..3usize, any::<[bool; 2]>(), proptest::bool::weighted(0.9));
    let pod = (0..12usize, proptest::option::of(0..6usize), 0..6usize, proptest::option::of(0..3usize));
    prop_oneof![
        3 => node.prop_map(|(name, cpu, gpu, zone, [tainted, cordoned], ready)| Change::Node {
            name, cpu, gpu, zone, tainted, cordoned: cordoned && tainted, ready
        }),
        1 => (0..5usize).prop_map(Change::NodeGone),
        5 => (pod, proptest::option::of(0..4usize), [0.1, 0.3].map(proptest::bool::weighted)).prop_map(
            |((key, node, requests, workload), template, [finished, leaving])| {
                Change::Pod { key, node, requests, workload, template, finished, leaving }
            }
        ),
        2 => (0..12usize).prop_map(Change::PodGone),
        3 => (0..4usize, 0..shapes, 0..6u32)
            .prop_map(|(uid, shape, replicas)| Change::Reserve { uid, shape, replicas }),
        1 => (0..4usize).prop_map(Change::Release),
        1 => (0..4usize).prop_map(Change::Forget),
    ]
}

/// Everything as it was told, counted anew for each answer.
#[derive(Default)]
struct Told {
    nodes: BTreeMap<String, NodeFacts>,
    pods: BTreeMap<String, PodFacts>,
    reserved: BTreeMap<String, (Shape, u32)>,
    /// The template of each workload whose pods were seen last, and the shape that they have.
    seen: BTreeMap<String, (TemplateHash, Shape)>,
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
                let left_out = None;
                let facts = NodeFacts {
                    name: name.clone(),
                    allocatable,
                    ready,
                    cordoned,
                    taints,
                    labels,
                    left_out,
                    group: None,
                };
                index.set_node(facts.clone());
                self.nodes.insert(name, facts);
            }
            Change::NodeGone(name) => {
                index.remove_node(&format!("n{name}"));
                self.nodes.remove(&format!("n{name}"));
            }
            Change::Pod { key, node, requests: index_of, workload, template, finished, leaving } => {
                let facts = PodFacts {
                    node: node.map(|name| format!("n{name}")),
                    requests: requests(index_of),
                    finished,
                    leaving,
                    workload: workload.map(|uid| format!("u{uid}")),
                    template: template.map(|of| shape(of).template_hash()),
                    version: None,
                };
                index.set_pod(&format!("p{key}"), facts.clone());
                self.pods.insert(format!("p{key}"), facts);
            }
            Change::PodGone(key) => {
                index.remove_pod(&format!("p{key}"));
                self.pods.remove(&format!("p{key}"));
            }
            Change::Reserve { uid, shape: of, replicas } => {
                index.reserve(&format!("u{uid}"), &shape(of), replicas);
                self.reserved.insert(format!("u{uid}"), (shape(of), replicas));
            }
            Change::Release(uid) => {
                index.release(&format!("u{uid}"));
                self.reserved.remove(&format!("u{uid}"));
            }
            Change::Forget(uid) => {
                index.forget(&format!("u{uid}"));
                self.reserved.remove(&format!("u{uid}"));
                self.seen.remove(&format!("u{uid}"));
            }
        }
        self.look();
    }

    /// Finds out the requests of the pods of reserved templates.
    fn look(&mut self) {
        for (uid, (shape, _)) in self.reserved.iter().filter(|(_, (_, replicas))| *replicas > 0) {
            let template = shape.template_hash();
            let mut made: BTreeMap<&Amounts, usize> = BTreeMap::new();
            let of_template = |pod: &&PodFacts| {
                self.is_replica(pod) && pod.workload.as_ref() == Some(uid) && pod.template == Some(template)
            };
            for pod in self.pods.values().filter(of_template) {
                *made.entry(&pod.requests).or_insert(0) += 1;
            }
            match made.into_iter().max_by_key(|(requests, pods)| (*pods, *requests)) {
                Some((requests, _)) => {
                    self.seen.insert(uid.clone(), (template, shape.with_requests(requests.clone())));
                }
                None if self.seen.get(uid).is_some_and(|(of, _)| *of != template) => {
                    self.seen.remove(uid);
                }
                None => {}
            }
        }
    }

    /// Whether a pod still stands for a replica: being deleted it does only where something can stop it.
    fn is_replica(&self, pod: &PodFacts) -> bool {
        let ready = |name: &String| self.nodes.get(name).is_some_and(|node| node.ready);
        !pod.finished && (!pod.leaving || pod.node.as_ref().is_none_or(ready))
    }

    /// A shape as the pods of a workload turn out.
    fn turned_out(&self, uid: &str, shape: &Shape) -> Shape {
        let seen = self.seen.get(uid).filter(|(template, _)| *template == shape.template_hash());
        seen.map_or(shape, |(_, shape)| shape).clone()
    }

    fn bound(&self, uid: &str, shape: &Shape) -> u32 {
        let bound = |pod: &&PodFacts| pod.node.is_some() && self.is_replica(pod) && pod.is_of(uid, shape);
        u32::try_from(self.pods.values().filter(bound).count()).unwrap()
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
        let mut unbound: BTreeMap<Shape, u32> = BTreeMap::new();
        for (other, (shape, reserved)) in self.reserved.iter().filter(|(other, _)| *other != uid) {
            *unbound.entry(self.turned_out(other, shape)).or_insert(0) +=
                reserved.saturating_sub(self.bound(other, shape));
        }
        for (shape, count) in unbound {
            room.reserve(&shape, count);
        }
        room
    }

    /// All answers of the index are what counting gives.
    fn compare(&self, index: &mut ClusterIndex, uid: &str, shape: &Shape) -> Result<(), TestCaseError> {
        let view = index.view(uid, shape);
        let free = index.free(uid, shape);
        let mut room = self.room(index, uid, shape);
        let (turned_out, bound) = (&self.turned_out(uid, shape), self.bound(uid, shape));
        let shortage = index.shortage(uid, shape, 2);
        let shape = turned_out;
        let counted = room.free(shape);
        prop_assert_eq!(view.room.max_replicas, room.max_replicas(shape), "how many fit");
        prop_assert_eq!(view.max_replicas_if_grown, view.room.max_replicas, "it does not grow");
        prop_assert_eq!((view.room.cpu, view.room.memory), (counted.get(CPU), counted.get(MEMORY)));
        for name in [CPU, MEMORY, PODS] {
            prop_assert_eq!(free.get(name), counted.get(name), "free {}", name);
        }
        prop_assert_eq!(view.bound, bound);
        prop_assert_eq!(view.reserved, self.reserved.get(uid).map_or(0, |(_, replicas)| *replicas));
        prop_assert_eq!(shortage, {
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
    fn shapes_that_name_nodes_are_counted_too(steps in proptest::collection::vec((changes(true), 0..5usize, 0..24usize), 1..25)) {
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
        let all = (0..12).map(Change::PodGone).chain((0..5).map(Change::NodeGone)).chain((0..4).map(Change::Forget));
        for change in all {
            told.take(&mut index, change);
        }
        prop_assert!(index.nodes.is_empty() && index.pods.is_empty() && index.workloads.is_empty());
        prop_assert!(index.unbound.is_empty() && index.pending == 0);
        prop_assert_eq!(index.view("u0", &shape(0)), View::default());
    }
}

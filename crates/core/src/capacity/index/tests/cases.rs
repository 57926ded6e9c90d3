//! Single cases.

use super::*;

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
        index.reserve(&format!("u{milli}"), &of(milli), 1);
    }
    // 1 + 2 + ... + 100 thousandths are reserved; the workload sees all but its own.
    assert_eq!(index.view("u50", &of(50)).room.cpu, 64_000 - 5050 + 50);
    assert_eq!(index.view("new", &of(1)).room.max_replicas, 10, "the 110 pods of the node bound it");
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
    assert!(!index.reserve("u", &shape(0), 2));
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
    index.reserve("u0", &shape(12), 1);
    let lacking = index.shortage("u1", &shape(9), 2).lacking;
    assert_eq!(lacking, [(CPU.to_owned(), 1000, 0), (GPU.to_owned(), 1000, 0)], "no node has the device");
}

#[test]
fn a_pod_being_deleted_on_a_silent_node_stands_for_no_replica() {
    let mut index = ClusterIndex::default();
    index.set_node(node("a", 4));
    index.set_node(node("b", 1));
    let template = asking(1000);
    index.reserve("u", &template, 4);
    let leaving = PodFacts { leaving: true, ..admitted(&template, 1000, Some("a")) };
    for pod in 0..4 {
        index.set_pod(&format!("p{pod}"), leaving.clone());
    }
    assert_eq!(index.with_unbound().count(), 0, "the node stops them, and their room is their successors'");
    index.set_node(NodeFacts { ready: false, ..node("a", 4) });
    assert_eq!(index.unbound().map(|(_, count)| count).sum::<u32>(), 4, "nobody stops them");
    assert_eq!(index.view("other", &template).room.max_replicas, 0, "one successor takes the other node");
    assert!(index.set_node(node("a", 4)));
    assert_eq!(index.with_unbound().count(), 0);
    index.remove_node("a");
    assert_eq!(index.unbound().map(|(_, count)| count).sum::<u32>(), 4);
    for pod in 0..4 {
        index.remove_pod(&format!("p{pod}"));
    }
    assert_eq!(index.unbound().map(|(_, count)| count).sum::<u32>(), 4);
}

fn asking(milli: i64) -> Shape {
    let mut requests = Amounts::of(CPU, milli);
    requests.set(PODS, 1000);
    PodShape { requests, ..PodShape::default() }.into()
}

/// A pod that a template made and that admission has given other requests.
fn admitted(template: &Shape, milli: i64, node: Option<&str>) -> PodFacts {
    PodFacts {
        node: node.map(str::to_owned),
        requests: asking(milli).requests.clone(),
        workload: Some("u".into()),
        template: Some(template.template_hash()),
        ..PodFacts::default()
    }
}

#[test]
fn pods_that_admission_made_larger_take_their_room_once() {
    let mut index = ClusterIndex::default();
    index.set_node(node("a", 8));
    let template = asking(500);
    index.reserve("u", &template, 4);
    for pod in 0..4 {
        index.set_pod(&format!("p{pod}"), admitted(&template, 1000, Some("a")));
    }
    assert_eq!(index.view("u", &template).bound, 4, "known by their template");
    assert_eq!(index.with_unbound().count(), 0);
    assert_eq!(index.view("other", &asking(1000)).room.max_replicas, 4, "8 CPUs less 4, once");
    assert_eq!(
        index.view("u", &template).room.max_replicas,
        4,
        "more of them are as large as those that are there"
    );
}

#[test]
fn replicas_to_come_are_estimated_by_what_the_first_ones_request() {
    for (real, room) in [(2000, 0), (100, 7)] {
        let mut index = ClusterIndex::default();
        index.set_node(node("a", 8));
        let template = asking(500);
        index.reserve("u", &template, 4);
        index.set_pod("p", admitted(&template, real, Some("a")));
        let free = 8000 - 4 * real;
        assert_eq!(index.view("other", &asking(1000)).room.cpu, free, "three more of {real}m are to come");
        assert_eq!(index.view("other", &asking(1000)).room.max_replicas, room);
        let own = index.view("u", &template);
        assert_eq!((own.bound, i64::from(own.room.max_replicas)), (1, (8000 - real) / real), "{real}");
    }
}

#[test]
fn a_pod_that_waits_tells_already_what_it_requests() {
    let mut index = ClusterIndex::default();
    index.set_node(node("a", 2));
    let template = asking(500);
    index.reserve("u", &template, 1);
    index.set_pod("p", admitted(&template, 3000, None));
    assert_eq!(index.view("u", &template).room.max_replicas, 0);
    index.release("u");
    index.remove_pod("p");
    assert_eq!(
        index.view("u", &template).room.max_replicas,
        0,
        "it went elsewhere for lack of room, and need not try again"
    );
    assert_eq!(index.view("u", &asking(400)).room.max_replicas, 5, "another template is another matter");
    index.forget("u");
    assert_eq!(index.view("u", &template).room.max_replicas, 4);
}

#[test]
fn pods_of_an_older_template_give_up_what_they_really_take() {
    let mut index = ClusterIndex::default();
    index.set_node(node("a", 4));
    index.reserve("u", &asking(500), 2);
    for pod in ["p", "q"] {
        index.set_pod(pod, admitted(&asking(500), 1500, Some("a")));
    }
    let view = index.view("u", &asking(1000));
    assert_eq!((view.bound, view.room.max_replicas), (0, 4), "both are replaced");
}

fn pinned(nodes: usize) -> Vec<Shape> {
    let of = |term: NodeSelectorTerm| {
        let shape = PodShape { node_terms: vec![term], ..PodShape::clone(&asking(1)) };
        Shape::from(shape)
    };
    let names: Vec<String> = (0..nodes).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    vec![of(by_name("NotIn", &["nobody"])), of(by_name("In", &names))]
}

#[test]
fn pinned_replicas_cost_no_more_than_nodes_and_replicas_together() {
    const NODES: usize = 300;
    const REPLICAS: u32 = 20_000;
    for shape in pinned(NODES) {
        let mut index = ClusterIndex::default();
        for number in 0..NODES {
            index.set_node(node(&format!("n{number}"), 4 + i64::try_from(number % 7).unwrap()));
        }
        index.reserve("pinned", &shape, REPLICAS);
        let before = index.steps();
        let room = index.view("other", &asking(1)).room;
        assert_eq!(room.max_replicas, 300 * 110 - REPLICAS);
        let steps = index.steps() - before;
        assert!(steps <= 2 * (300 + u64::from(REPLICAS)), "{steps} steps");
        for _ in 0..100 {
            assert_eq!(index.view("other", &asking(1)).room, room);
        }
        assert_eq!(index.steps() - before, steps, "the others do not count again");
    }
}

#[test]
fn a_node_that_holds_all_replicas_is_taken_at_once() {
    let mut index = ClusterIndex::default();
    let mut huge = node("huge", 9000);
    huge.allocatable.set(PODS, 10_000_000_000);
    index.set_node(huge);
    index.set_node(node("small", 2));
    index.reserve("u", &asking(1), 1_000_000);
    assert_eq!(index.view("other", &asking(1)).room.max_replicas, 8_000_000 + 110);
    assert!(index.steps() < 100, "{} steps", index.steps());
}

#[test]
fn hundreds_of_shapes_are_counted_once_each() {
    const NODES: u64 = 200;
    let mut index = ClusterIndex::default();
    for number in 0..NODES {
        index.set_node(node(&format!("n{number}"), 1 + i64::try_from(number).unwrap()));
    }
    for _ in 0..10 {
        for milli in 1..=400 {
            assert!(index.view("u", &asking(milli)).room.max_replicas > 0);
        }
    }
    assert!(index.steps() <= 400 * NODES, "{} steps", index.steps());
}

#[test]
fn shapes_that_ask_about_different_labels_do_not_undo_each_others_classes() {
    let mut index = ClusterIndex::default();
    for number in 0..10 {
        index.set_node(node(&format!("n{number}"), 1));
    }
    let asks = |label: usize| {
        let node_selector = BTreeMap::from([(format!("l{label}"), "x".to_owned())]);
        Shape::from(PodShape { node_selector, ..PodShape::clone(&asking(1)) })
    };
    for label in 0..40 {
        index.view("u", &asks(label));
    }
    let known: Vec<bool> = (0..40).map(|label| index.classes.knows(&asks(label))).collect();
    assert_eq!(known, [true; 40]);
}

#[test]
fn nodes_that_are_left_out_are_no_room_and_no_capacity() {
    let mut index = ClusterIndex::default();
    index.set_node(node("a", 2));
    index.set_node(NodeFacts { left_out: Some(LeftOut::Virtual), ..node("vk", 900) });
    let on_virtual = PodFacts { node: Some("vk".into()), requests: requests(0), ..PodFacts::default() };
    index.set_pod("p", on_virtual);
    assert_eq!(index.view("u", &asking(1000)).room.max_replicas, 2);
    let summary = index.summary();
    assert_eq!((summary.nodes, summary.left_out), (1, 1));
    assert_eq!((summary.capacity.get(CPU), summary.allocated.get(CPU)), (2000, 0));
    let shortage = index.shortage("u", &asking(5000), 0).to_string();
    assert!(
        shortage.starts_with("1 of 2 nodes: virtual, its room is counted where it really is"),
        "{shortage}"
    );
}

#[test]
fn only_so_many_kinds_of_resources_are_known() {
    let mut index = ClusterIndex::default();
    for number in 0..100 {
        let mut facts = node(&format!("n{number}"), 1);
        facts.allocatable.set(&format!("example.org/r{number}"), 1000);
        index.set_node(facts);
    }
    assert_eq!(index.summary().capacity.iter().count(), 32);
}

#[test]
fn a_cluster_that_grows_has_the_room_of_the_nodes_to_come() {
    let mut index = ClusterIndex::default();
    index.set_node(node("a", 4));
    index.set_node(node("b", 4));
    assert!(index.set_growth(Growth::UpTo { nodes: 5, like: None }));
    let view = index.view("u", &asking(1000));
    assert_eq!(
        (view.room.max_replicas, view.max_replicas_if_grown),
        (8, 20),
        "three nodes like those may come"
    );
    index.reserve("u", &asking(1000), 12);
    let view = index.view("other", &asking(1000));
    assert_eq!(
        (view.room.max_replicas, view.max_replicas_if_grown),
        (0, 8),
        "four of the others wait for a new node"
    );
    let like = Some(Box::new(node("", 16)));
    index.set_growth(Growth::UpTo { nodes: 5, like });
    assert_eq!(
        index.view("other", &asking(1000)).max_replicas_if_grown,
        3 * 16 - 4,
        "four of the others go there first"
    );
    index.set_growth(Growth::UpTo { nodes: 2, like: None });
    assert_eq!(index.view("other", &asking(1000)).max_replicas_if_grown, 0, "it is as large as it may be");
    index.set_growth(Growth::Uncounted);
    let view = index.view("other", &asking(1000));
    assert_eq!((view.room.max_replicas, view.max_replicas_if_grown), (0, u32::MAX));
}

#[test]
fn a_pool_that_is_scaled_to_zero_grows_by_its_template_only() {
    let mut index = ClusterIndex::default();
    index.set_growth(Growth::UpTo { nodes: 3, like: None });
    assert_eq!(
        index.view("u", &asking(1000)).max_replicas_if_grown,
        0,
        "nobody knows what its nodes are like"
    );
    index.set_growth(Growth::UpTo { nodes: 3, like: Some(Box::new(node("", 4))) });
    let view = index.view("u", &asking(1000));
    assert_eq!((view.room.max_replicas, view.max_replicas_if_grown), (0, 12));
}

#[test]
fn room_that_is_gone_is_told_from_room_that_is_taken() {
    let mut index = ClusterIndex::default();
    index.reserve("u", &asking(1000), 2);
    assert!(!index.view("u", &asking(1000)).is_room_gone(), "its nodes were not listed yet");
    index.set_node(node("a", 2));
    index.nodes_listed();
    index.pods_listed();
    for pod in ["p", "q"] {
        let bound = PodFacts {
            node: Some("a".into()),
            requests: asking(1000).requests.clone(),
            ..PodFacts::default()
        };
        index.set_pod(pod, bound);
    }
    let view = index.view("u", &asking(1000));
    assert_eq!(
        (view.room.max_replicas, view.open_nodes, view.is_room_gone()),
        (0, 1, false),
        "others have taken it"
    );
    index.remove_node("a");
    assert!(index.view("u", &asking(1000)).is_room_gone());
}

#[test]
fn a_copy_of_the_index_goes_its_own_way() {
    let mut index = ClusterIndex::default();
    index.set_node(node("a", 4));
    let mut copy = index.clone();
    copy.reserve("u", &asking(1000), 3);
    copy.set_node(node("b", 4));
    copy.set_pod("p", admitted(&asking(1000), 1000, Some("a")));
    assert_eq!(copy.view("other", &asking(1000)).room.max_replicas, 5);
    assert_eq!(index.view("other", &asking(1000)).room.max_replicas, 4);
    assert_eq!((index.node_names().count(), index.pod_keys().count()), (1, 0));
}

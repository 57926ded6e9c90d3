use super::*;
use crate::capacity::{Ledger, Waits};
use portolan_core::capacity::{CPU, NodeFacts, NodeGroup, PODS, PodFacts, PodShape, ReportedRoom};

fn shape(milli: i64) -> Shape {
    let mut requests = Amounts::of(CPU, milli);
    requests.set(PODS, 1000);
    PodShape { requests, ..PodShape::default() }.into()
}

fn node(name: &str, cpus: i64) -> NodeFacts {
    let mut allocatable = Amounts::of(CPU, cpus * 1000);
    allocatable.set(PODS, 110_000);
    NodeFacts { name: name.into(), allocatable, ready: true, ..NodeFacts::default() }
}

fn reservation(uid: &str, version: &str, reserved: &[(&str, u32)]) -> Reservation {
    let reserved = reserved.iter().map(|(cluster, replicas)| ((*cluster).to_owned(), *replicas)).collect();
    Reservation {
        uid: uid.into(),
        version: Some(version.into()),
        shape: Some(shape(1000)),
        reserved,
        waits: Waits::nowhere(),
    }
}

fn set(ledger: &Ledger, name: &str, reservation: Reservation) {
    ledger.transact(|book| {
        book.take("Kind", &Change::Set(Key::new("d", name), reservation), Reservation::clone)
    });
}

fn fits(ledger: &Ledger, uid: &str) -> u32 {
    ledger.transact(|book| book.view("c", uid, &shape(1000)).room.max_replicas)
}

#[test]
fn a_decision_counts_for_others_until_it_comes_back_or_is_retracted() {
    let ledger = Ledger::default();
    let feed = ledger.open("c");
    feed.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    set(&ledger, "a", reservation("ua", "1", &[]));
    let reserved = BTreeMap::from([("c".to_owned(), 3)]);
    assert!(ledger.transact(|book| book.assume("ua", Some("1"), &shape(1000), reserved.clone())));
    assert_eq!((fits(&ledger, "ub"), fits(&ledger, "ua")), (1, 4), "one's own reservation is not in the way");
    ledger.transact(|book| book.retract("ua"));
    assert_eq!(fits(&ledger, "ub"), 4);
    assert!(ledger.transact(|book| book.assume("ua", Some("1"), &shape(1000), reserved.clone())));
    set(&ledger, "a", reservation("ua", "1", &[]));
    assert_eq!(fits(&ledger, "ub"), 1, "the version that was decided on, told again, takes nothing back");
    set(&ledger, "a", reservation("ua", "2", &[("c", 2)]));
    assert_eq!(fits(&ledger, "ub"), 2);
    assert!(
        !ledger.transact(|book| book.assume("ua", Some("1"), &shape(1000), reserved)),
        "decided on what was"
    );
    assert_eq!(fits(&ledger, "ub"), 2);
}

#[test]
fn what_is_gone_holds_nothing() {
    let ledger = Ledger::default();
    let feed = ledger.open("c");
    feed.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    set(&ledger, "a", reservation("u1", "1", &[("c", 1)]));
    set(&ledger, "a", reservation("u2", "5", &[("c", 2)]));
    assert_eq!(fits(&ledger, "other"), 2, "made anew under the same name");
    ledger.transact(|book| {
        book.take("Other", &Change::<Reservation>::Listed(BTreeMap::new()), Reservation::clone)
    });
    assert_eq!(fits(&ledger, "other"), 2, "another kind has nothing to say about it");
    ledger.transact(|book| {
        book.take("Kind", &Change::<Reservation>::Listed(BTreeMap::new()), Reservation::clone)
    });
    assert_eq!(fits(&ledger, "other"), 4);
}

#[test]
fn nothing_is_decided_before_all_kinds_are_known() {
    let ledger = Ledger::default();
    ledger.expect("Kind");
    assert!(!ledger.transact(|book| book.is_complete()));
    ledger.transact(|book| {
        book.take("Kind", &Change::<Reservation>::Listed(BTreeMap::new()), Reservation::clone)
    });
    assert!(ledger.transact(|book| book.is_complete()));
}

#[test]
fn a_cluster_that_is_opened_anew_forgets_its_nodes_and_keeps_its_reservations() {
    let ledger = Ledger::default();
    set(&ledger, "a", reservation("ua", "1", &[("c", 3)]));
    let old = ledger.open("c");
    old.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    assert_eq!(fits(&ledger, "ub"), 1, "reserved before the cluster was known");
    let new = ledger.open("c");
    old.nodes(Change::Set(Key::cluster("m"), node("m", 4)));
    assert_eq!(fits(&ledger, "ub"), 0, "the old watch has nothing to say any more");
    new.nodes(Change::Set(Key::cluster("n"), node("n", 5)));
    drop(old);
    assert_eq!(fits(&ledger, "ub"), 2);
    new.nodes(Change::Listed(BTreeMap::from([(Key::cluster("n"), node("n", 5))])));
    assert!(!new.listed().all());
    new.pods(Change::<PodFacts>::Listed(BTreeMap::new()));
    assert!(new.listed().all());
}

#[test]
fn what_is_held_in_a_fork_does_not_reach_the_book() {
    let ledger = Ledger::default();
    let feed = ledger.open("c");
    feed.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    set(&ledger, "a", reservation("ua", "1", &[("c", 1)]));
    let mut fork = ledger.transact(|book| book.fork());
    let fits = |book: &mut Book| book.view("c", "other", &shape(1000)).room.max_replicas;
    assert_eq!(fits(&mut fork), 3);
    assert!(fork.assume("ua", Some("1"), &shape(1000), BTreeMap::from([("c".to_owned(), 4)])));
    assert_eq!((fits(&mut fork), ledger.transact(fits)), (0, 3));
    assert_eq!((fork.reserved("c", "ua"), ledger.transact(|book| book.reserved("c", "ua"))), (4, 1));
    let pod =
        PodFacts { node: Some("n".into()), requests: shape(1000).requests.clone(), ..PodFacts::default() };
    feed.pods(Change::Set(Key::new("d", "p"), pod));
    set(&ledger, "b", reservation("ub", "1", &[("c", 1)]));
    assert_eq!(
        (fits(&mut fork), ledger.transact(fits)),
        (0, 1),
        "nor does what happens meanwhile reach the fork"
    );
    fork.retract("ua");
    assert_eq!(fits(&mut fork), 3);
}

#[test]
fn a_cluster_that_is_opened_anew_grows_as_it_was_told_to() {
    let ledger = Ledger::default();
    let first = ledger.open("c");
    ledger.transact(|book| book.set_growth("c", Growth::UpTo { nodes: 3, like: None }));
    let grown =
        |ledger: &Ledger| ledger.transact(|book| book.view("c", "u", &shape(1000)).max_replicas_if_grown);
    first.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    assert_eq!(grown(&ledger), 12);
    let second = ledger.open("c");
    second.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    assert_eq!(grown(&ledger), 12);
    ledger.transact(|book| book.set_growth("c", Growth::Fixed));
    assert_eq!(grown(&ledger), 4);
}

#[test]
fn a_workload_that_is_gone_leaves_no_memory_of_its_pods() {
    let ledger = Ledger::default();
    let feed = ledger.open("c");
    feed.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    set(&ledger, "a", reservation("ua", "1", &[("c", 1)]));
    let pod = PodFacts {
        requests: shape(3000).requests.clone(),
        workload: Some("ua".into()),
        template: Some(shape(1000).template_hash()),
        ..PodFacts::default()
    };
    feed.pods(Change::Set(Key::new("d", "p"), pod));
    assert_eq!(fits(&ledger, "ua"), 1, "admission made it larger");
    feed.pods(Change::Gone(Key::new("d", "p")));
    assert_eq!(fits(&ledger, "ua"), 1);
    ledger.transact(|book| {
        book.take("Kind", &Change::<Reservation>::Gone(Key::new("d", "a")), Reservation::clone)
    });
    assert_eq!(fits(&ledger, "ua"), 4);
}

#[test]
fn an_offer_bounds_the_room_of_a_cluster_and_reservations_use_it() {
    let ledger = Ledger::default();
    let feed = ledger.open("c");
    feed.nodes(Change::Set(Key::cluster("n"), node("n", 16)));
    let pod = |workload: &str| PodFacts {
        node: Some("n".into()),
        requests: shape(1000).requests.clone(),
        workload: Some(workload.into()),
        template: Some(shape(1000).template_hash()),
        ..PodFacts::default()
    };
    let offered = |cpus: i64| Quota {
        hard: Amounts::of(CPU, cpus * 1000),
        namespaces: ["shop".to_owned()].into(),
        closed: None,
    };
    let quota = |quota: Option<Quota>| ledger.transact(|book| book.set_quota("c", quota));
    assert_eq!(fits(&ledger, "ub"), 16);
    quota(Some(offered(4)));
    assert_eq!(fits(&ledger, "ub"), 4);
    set(&ledger, "a", reservation("ua", "1", &[("c", 3)]));
    assert_eq!((fits(&ledger, "ub"), fits(&ledger, "ua")), (1, 4), "a reservation uses the offer");
    feed.pods(Change::Set(Key::new("shop", "a-1"), pod("ua")));
    assert_eq!(
        (fits(&ledger, "ub"), fits(&ledger, "ua")),
        (1, 3),
        "a pod takes the place of its reservation"
    );
    feed.pods(Change::Set(Key::new("elsewhere", "x"), pod("other")));
    assert_eq!(fits(&ledger, "ub"), 1, "pods of other namespaces use nothing of it");
    feed.pods(Change::Set(Key::new("shop", "x"), pod("other")));
    assert_eq!(fits(&ledger, "ub"), 0);
    let why = ledger.transact(|book| book.shortage("c", "ub", &shape(1000), 0)).to_string();
    assert_eq!(why, "a replica needs cpu 1 and 0 is left of the 4 that the cluster offers");
    quota(Some(offered(2)));
    let bound = ledger.transact(|book| book.view("c", "ua", &shape(1000)));
    assert_eq!((bound.bound, bound.reserved), (1, 3), "what runs goes on when less is offered");
    quota(Some(Quota { closed: Some("its offer is not accepted".into()), ..offered(9) }));
    let why = ledger.transact(|book| book.shortage("c", "ub", &shape(1000), 0)).to_string();
    assert_eq!((fits(&ledger, "ub"), why.as_str()), (0, "its offer is not accepted"));
    drop(feed);
    let again = ledger.open("c");
    again.nodes(Change::Set(Key::cluster("n"), node("n", 16)));
    assert_eq!(fits(&ledger, "ub"), 0, "the bound outlives a connection");
    quota(None);
    assert_eq!(fits(&ledger, "ub"), 13);
}

#[test]
fn an_offer_bounds_a_cluster_whose_room_is_not_counted() {
    let ledger = Ledger::default();
    let _feed = ledger.open("c");
    ledger.transact(|book| {
        book.set_growth("c", Growth::Uncounted);
        let hard = Amounts::of(PODS, 3000);
        book.set_quota("c", Some(Quota { hard, ..Quota::default() }));
    });
    let view = ledger.transact(|book| book.view("c", "u", &shape(1000)));
    assert_eq!(view.max_replicas_if_grown, 3);
}

#[test]
fn a_pod_takes_what_its_replica_reserved_until_a_summary_counts_it_and_then_no_more() {
    let ledger = Ledger::default();
    let feed = ledger.open_reported("c");
    let summary = |free: i64, pods_version: u64| {
        let told_labels = Arc::default();
        let group = NodeGroup { nodes: 4, told_labels: Arc::clone(&told_labels) };
        let facts = NodeFacts { group: Some(group), ..node("group-0-0", free) };
        ReportedRoom { groups: vec![facts], told_labels, pods_version, ..ReportedRoom::default() }
    };
    let pod = |version: u64| PodFacts {
        node: Some("n7".into()),
        requests: shape(1000).requests.clone(),
        workload: Some("ua".into()),
        template: Some(shape(1000).template_hash()),
        version: Some(version),
        ..PodFacts::default()
    };
    let bound = || ledger.transact(|book| book.bound("c", "ua"));
    feed.pods(Change::Listed(BTreeMap::new()));
    assert!(!feed.listed().all());
    feed.summary(summary(4, 10));
    assert!(feed.listed().all());
    assert_eq!(fits(&ledger, "ub"), 16);
    set(&ledger, "a", reservation("ua", "1", &[("c", 2)]));
    assert_eq!(fits(&ledger, "ub"), 14);
    feed.pods(Change::Set(Key::new("d", "a-1"), pod(11)));
    feed.pods(Change::Set(Key::new("d", "a-2"), pod(12)));
    assert_eq!((fits(&ledger, "ub"), bound()), (14, 0), "their node is not known to be theirs");
    // It counts one of them; on each of the four nodes at least three are free.
    feed.summary(summary(3, 11));
    assert_eq!((fits(&ledger, "ub"), bound()), (11, 1));
    feed.pods(Change::Set(Key::new("d", "a-1"), pod(13)));
    assert_eq!(bound(), 1, "whatever happens to it, it is counted");
    feed.summary(summary(3, 13));
    assert_eq!((fits(&ledger, "ub"), bound()), (12, 2));
    feed.pods(Change::Gone(Key::new("d", "a-2")));
    assert_eq!(fits(&ledger, "ub"), 11, "its replica will come again");
}

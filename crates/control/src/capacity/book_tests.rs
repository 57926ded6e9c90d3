use super::*;
use crate::capacity::Ledger;
use portolan_core::capacity::{CPU, NodeFacts, PODS, PodFacts, PodShape};

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

fn claim(uid: &str, version: &str, held: &[(&str, u32)]) -> Claim {
    let held = held.iter().map(|(cluster, replicas)| ((*cluster).to_owned(), *replicas)).collect();
    Claim { uid: uid.into(), version: Some(version.into()), shape: Some(shape(1000)), held, waits: false }
}

fn set(ledger: &Ledger, name: &str, claim: Claim) {
    ledger.transact(|book| book.take("Kind", &Change::Set(Key::new("d", name), claim), Claim::clone));
}

fn fits(ledger: &Ledger, uid: &str) -> u32 {
    ledger.transact(|book| book.view("c", uid, &shape(1000)).room.fits)
}

#[test]
fn a_decision_counts_for_others_until_it_comes_back_or_is_retracted() {
    let ledger = Ledger::default();
    let feed = ledger.open("c");
    feed.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    set(&ledger, "a", claim("ua", "1", &[]));
    let held = BTreeMap::from([("c".to_owned(), 3)]);
    assert!(ledger.transact(|book| book.assume("ua", Some("1"), &shape(1000), held.clone())));
    assert_eq!((fits(&ledger, "ub"), fits(&ledger, "ua")), (1, 4), "one's own reservation is not in the way");
    ledger.transact(|book| book.retract("ua"));
    assert_eq!(fits(&ledger, "ub"), 4);
    assert!(ledger.transact(|book| book.assume("ua", Some("1"), &shape(1000), held.clone())));
    set(&ledger, "a", claim("ua", "1", &[]));
    assert_eq!(fits(&ledger, "ub"), 1, "the version that was decided on, told again, takes nothing back");
    set(&ledger, "a", claim("ua", "2", &[("c", 2)]));
    assert_eq!(fits(&ledger, "ub"), 2);
    assert!(!ledger.transact(|book| book.assume("ua", Some("1"), &shape(1000), held)), "decided on what was");
    assert_eq!(fits(&ledger, "ub"), 2);
}

#[test]
fn what_is_gone_holds_nothing() {
    let ledger = Ledger::default();
    let feed = ledger.open("c");
    feed.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    set(&ledger, "a", claim("u1", "1", &[("c", 1)]));
    set(&ledger, "a", claim("u2", "5", &[("c", 2)]));
    assert_eq!(fits(&ledger, "other"), 2, "made anew under the same name");
    ledger.transact(|book| book.take("Other", &Change::<Claim>::Listed(BTreeMap::new()), Claim::clone));
    assert_eq!(fits(&ledger, "other"), 2, "another kind has nothing to say about it");
    ledger.transact(|book| book.take("Kind", &Change::<Claim>::Listed(BTreeMap::new()), Claim::clone));
    assert_eq!(fits(&ledger, "other"), 4);
}

#[test]
fn nothing_is_decided_before_all_kinds_are_known() {
    let ledger = Ledger::default();
    ledger.expect("Kind");
    assert!(!ledger.transact(|book| book.is_complete()));
    ledger.transact(|book| book.take("Kind", &Change::<Claim>::Listed(BTreeMap::new()), Claim::clone));
    assert!(ledger.transact(|book| book.is_complete()));
}

#[test]
fn a_cluster_that_is_opened_anew_forgets_its_nodes_and_keeps_its_reservations() {
    let ledger = Ledger::default();
    set(&ledger, "a", claim("ua", "1", &[("c", 3)]));
    let old = ledger.open("c");
    old.nodes(Change::Set(Key::cluster("n"), node("n", 4)));
    assert_eq!(fits(&ledger, "ub"), 1, "held before the cluster was known");
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

use crate::capacity::{ClusterFeed, Ledger, Reservation, Waits};
use portolan_core::capacity::{Amounts, CPU, Growth, NodeFacts, PODS, PodFacts, PodShape, Shape};
use portolan_runtime::{Change, Key};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const CLUSTERS: [&str; 4] = ["a", "b", "bb", "c"];
/// More shapes than there are rows.
const SHAPES: i64 = 40;
const UIDS: [&str; 3] = ["u1", "u2", "nobody"];

/// Something happens to the fleet; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Act {
    Open(usize),
    Close(usize),
    Node(usize, u8, i64),
    NoNode(usize, u8),
    Pod(usize, u8, i64, Option<usize>),
    NoPod(usize, u8),
    Listed(usize),
    Growth(usize, u32),
    Workload(usize, i64, Vec<(usize, u32)>),
    Gone(usize),
    Look(i64, usize, bool),
}

fn act() -> impl Strategy<Value = Act> {
    let cluster = 0..CLUSTERS.len();
    let uid = 0..2usize;
    prop_oneof![
        1 => cluster.clone().prop_map(Act::Open),
        1 => cluster.clone().prop_map(Act::Close),
        4 => (cluster.clone(), 0..3u8, 1..9i64).prop_map(|(at, node, cpus)| Act::Node(at, node, cpus)),
        1 => (cluster.clone(), 0..3u8).prop_map(|(at, node)| Act::NoNode(at, node)),
        4 => (cluster.clone(), 0..6u8, 1..SHAPES, proptest::option::of(uid.clone()))
            .prop_map(|(at, pod, shape, uid)| Act::Pod(at, pod, shape, uid)),
        1 => (cluster.clone(), 0..6u8).prop_map(|(at, pod)| Act::NoPod(at, pod)),
        2 => cluster.clone().prop_map(Act::Listed),
        1 => (cluster.clone(), 0..5u32).prop_map(|(at, nodes)| Act::Growth(at, nodes)),
        2 => (uid.clone(), 1..SHAPES, vec((cluster, 0..3u32), 0..3))
            .prop_map(|(uid, shape, held)| Act::Workload(uid, shape, held)),
        1 => uid.prop_map(Act::Gone),
        8 => (1..SHAPES, 0..UIDS.len(), any::<bool>()).prop_map(|(shape, uid, back)| Act::Look(shape, uid, back)),
    ]
}

fn shape(size: i64) -> Shape {
    let mut requests = Amounts::of(CPU, size * 100);
    requests.set(PODS, 1000);
    PodShape { requests, ..PodShape::default() }.into()
}

#[derive(Default)]
struct Fleet {
    ledger: Ledger,
    feeds: BTreeMap<usize, Arc<ClusterFeed>>,
    version: u64,
}

impl Fleet {
    fn act(&mut self, act: Act) -> Result<(), TestCaseError> {
        let feed = |at: &usize| self.feeds.get(at).cloned();
        match act {
            Act::Open(at) => drop(self.feeds.insert(at, self.ledger.open(CLUSTERS[at]))),
            Act::Close(at) => drop(self.feeds.remove(&at)),
            Act::Node(at, node, cpus) => {
                let mut allocatable = Amounts::of(CPU, cpus * 1000);
                allocatable.set(PODS, 110_000);
                let name = format!("n{node}");
                let facts =
                    NodeFacts { name: name.clone(), allocatable, ready: true, ..NodeFacts::default() };
                feed(&at)
                    .into_iter()
                    .for_each(|feed| feed.nodes(Change::Set(Key::cluster(&name), facts.clone())));
            }
            Act::NoNode(at, node) => {
                let key = Key::cluster(&format!("n{node}"));
                feed(&at).into_iter().for_each(|feed| feed.nodes(Change::Gone(key.clone())));
            }
            Act::Pod(at, pod, size, uid) => {
                let facts = PodFacts {
                    node: (pod % 3 > 0).then(|| format!("n{}", pod % 2)),
                    requests: shape(size).requests.clone(),
                    finished: pod == 5,
                    leaving: pod == 4,
                    workload: uid.map(|uid| UIDS[uid].to_owned()),
                    template: uid.map(|_| shape(size).template_hash()),
                    version: None,
                };
                let key = Key::new("d", &format!("p{pod}"));
                feed(&at).into_iter().for_each(|feed| feed.pods(Change::Set(key.clone(), facts.clone())));
            }
            Act::NoPod(at, pod) => {
                let key = Key::new("d", &format!("p{pod}"));
                feed(&at).into_iter().for_each(|feed| feed.pods(Change::Gone(key.clone())));
            }
            Act::Listed(at) => {
                if let Some(feed) = feed(&at) {
                    feed.nodes(Change::Listed(BTreeMap::new()));
                    feed.pods(Change::Listed(BTreeMap::new()));
                }
            }
            Act::Growth(at, nodes) => {
                let growth = match nodes {
                    0 => Growth::Fixed,
                    1 => Growth::Uncounted,
                    nodes => Growth::UpTo { nodes, like: None },
                };
                self.ledger.transact(|book| book.set_growth(CLUSTERS[at], growth));
            }
            Act::Workload(uid, size, held) => {
                self.version += 1;
                let reserved =
                    held.into_iter().map(|(at, replicas)| (CLUSTERS[at].to_owned(), replicas)).collect();
                let (uid, version) = (UIDS[uid].to_owned(), Some(self.version.to_string()));
                let key = Key::new("d", &uid);
                let told =
                    Reservation { uid, version, shape: Some(shape(size)), reserved, waits: Waits::nowhere() };
                self.ledger.transact(|book| book.take("Kind", &Change::Set(key, told), Reservation::clone));
            }
            Act::Gone(uid) => {
                let gone = Change::<Reservation>::Gone(Key::new("d", UIDS[uid]));
                self.ledger.transact(|book| book.take("Kind", &gone, Reservation::clone));
            }
            Act::Look(size, uid, backwards) => return self.look(size, UIDS[uid], backwards),
        }
        Ok(())
    }

    /// What the board says is what a book without one says.
    fn look(&self, size: i64, uid: &str, backwards: bool) -> Result<(), TestCaseError> {
        let mut clusters = CLUSTERS.to_vec();
        if backwards {
            clusters.reverse();
        }
        let shape = shape(size);
        for cluster in clusters {
            let (seen, counted) = self.ledger.transact(|book| {
                let mut apart = book.fork();
                (book.view(cluster, uid, &shape), apart.view(cluster, uid, &shape))
            });
            prop_assert_eq!(seen, counted, "{} for {} of {}", cluster, uid, size);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_board_says_what_the_clusters_say(acts in vec(act(), 1..120)) {
        let mut fleet = Fleet::default();
        for act in acts {
            fleet.act(act)?;
        }
        for size in 1..SHAPES {
            for uid in UIDS {
                fleet.look(size, uid, size % 2 == 0)?;
            }
        }
    }
}

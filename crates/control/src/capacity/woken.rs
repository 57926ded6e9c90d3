//! Who is told when room appears.

use super::waiting::Cause;
use super::{Book, Ledger, Owner};
use portolan_core::capacity::{ClusterIndex, Shape};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

/// Changes of room come in bursts; one look after this long serves them all.
const ROOM_SETTLES: Duration = Duration::from_millis(100);

/// So many are woken in a first round. Most often they take the room, and the others sleep on.
const AT_FIRST: usize = 16;

/// Twice as many are woken in each further round, up to so many at once.
const AT_ONCE: usize = 256;

/// So many questions about room are asked before others may use the ledger again.
const QUESTIONS_AT_ONCE: usize = 2048;

/// Those who are to look again.
pub(super) struct Woken {
    owners: Vec<Owner>,
    /// Whether not all was asked yet that has to be.
    is_partial: bool,
}

impl Book {
    /// Those who are to look again, a few at first and then more at once: who has replicas without a node in a cluster that
    /// has changed and may be too full for them, and who waits for room where some has appeared that their replicas fit in,
    /// and that those before them have left.
    fn woken(&mut self) -> Woken {
        let mut questions = QUESTIONS_AT_ONCE;
        while questions > 0
            && let Some((name, freed)) = self.waiting.changed.pop_first()
        {
            let after = self.waiting.asked.take().filter(|(cluster, _)| *cluster == name);
            let Some(cluster) = self.clusters.ask(&name) else { continue };
            if freed {
                let from = after.as_ref().map_or(Bound::Unbounded, |(_, shape)| Bound::Excluded(shape));
                let mut fit = Vec::new();
                let waiting = self.waiting.by_shape.range((from, Bound::Unbounded));
                let waiting = waiting.filter(|(_, owners)| owners.values().any(|waits| waits.wants(&name)));
                for shape in waiting.map(|(shape, _)| shape) {
                    if questions == 0 {
                        break;
                    }
                    questions -= 1;
                    self.waiting.asked = Some((name.clone(), shape.clone()));
                    if has_room(cluster, shape) {
                        fit.push(shape.clone());
                    }
                }
                fit.iter().for_each(|shape| self.waiting.hope(shape, &name));
                let last = self.waiting.by_shape.last_key_value().map(|(shape, _)| shape);
                if questions == 0 && self.waiting.asked.as_ref().map(|(_, shape)| shape) < last {
                    self.waiting.changed.insert(name, freed);
                    break;
                }
                self.waiting.asked = None;
            }
            let unbound: Vec<(String, Shape)> =
                cluster.with_unbound().map(|(uid, shape)| (uid.to_owned(), shape)).collect();
            let mut full: BTreeMap<Shape, bool> = BTreeMap::new();
            for (_, shape) in &unbound {
                full.entry(shape.clone()).or_insert_with(|| {
                    questions = questions.saturating_sub(1);
                    !has_room(cluster, shape)
                });
            }
            let unbound = unbound.iter().filter(|(_, shape)| full.get(shape) == Some(&true));
            let owners: Vec<Owner> = unbound.filter_map(|(uid, _)| self.owner(uid)).cloned().collect();
            self.waiting.backlog.extend(owners.into_iter().map(|owner| (owner, Cause::NoNode)));
        }
        let (waiting, clusters) = (&mut self.waiting, &mut self.clusters);
        let most = (waiting.round * 2).clamp(AT_FIRST, AT_ONCE);
        let (mut owners, mut turn) = (Vec::new(), waiting.last.clone());
        while questions > 0
            && owners.len() < most
            && let Some((owner, cause)) = waiting.next(turn.as_ref())
        {
            turn = Some(owner.clone());
            let has_cause = match cause {
                Cause::NoNode => true,
                Cause::Room(names) => waiting.shape(&owner).is_some_and(|shape| {
                    questions = questions.saturating_sub(names.len());
                    names
                        .iter()
                        .any(|name| clusters.ask(name).is_some_and(|cluster| has_room(cluster, shape)))
                }),
            };
            if has_cause {
                waiting.last = Some(owner.clone());
                owners.push(owner);
            }
        }
        let is_partial = !waiting.changed.is_empty() || (questions == 0 && !waiting.backlog.is_empty());
        waiting.round = if waiting.backlog.is_empty() { 0 } else { owners.len() };
        Woken { owners, is_partial }
    }
}

/// Whether a replica of this shape would find room, now or when the cluster has grown.
fn has_room(cluster: &mut ClusterIndex, shape: &Shape) -> bool {
    cluster.view("", shape).max_replicas_if_grown > 0
}

/// Tells for ever who is to look again because room has changed.
pub async fn tell_of_room(ledger: Ledger, wake: impl Fn(&Owner)) {
    loop {
        ledger.stirred.notified().await;
        tokio::time::sleep(ROOM_SETTLES).await;
        loop {
            let woken = ledger.transact(Book::woken);
            woken.owners.iter().for_each(&wake);
            if !woken.is_partial {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{ClusterFeed, Reservation, Waits};
    use portolan_core::capacity::{Amounts, CPU, NodeFacts, PODS, PodShape};
    use portolan_runtime::{Change, Key};

    fn shape(cpus: i64) -> Shape {
        let mut requests = Amounts::of(CPU, cpus * 1000);
        requests.set(PODS, 1000);
        PodShape { requests, ..PodShape::default() }.into()
    }

    fn grow(feed: &ClusterFeed, cpus: i64) {
        let mut allocatable = Amounts::of(CPU, cpus * 1000);
        allocatable.set(PODS, 110_000);
        let node = NodeFacts { name: "n".into(), allocatable, ready: true, ..NodeFacts::default() };
        feed.nodes(Change::Set(Key::cluster("n"), node));
    }

    fn workload(ledger: &Ledger, name: &str, cpus: i64, reserved: &[(&str, u32)], waits: bool) {
        let reserved =
            reserved.iter().map(|(cluster, replicas)| ((*cluster).to_owned(), *replicas)).collect();
        let (uid, shape) = (format!("uid-{name}"), Some(shape(cpus)));
        let waits = if waits { Waits::anywhere() } else { Waits::nowhere() };
        record(ledger, name, Reservation { uid, version: Some("1".into()), shape, reserved, waits });
    }

    fn record(ledger: &Ledger, name: &str, reservation: Reservation) {
        ledger.transact(|book| {
            book.take("Kind", &Change::Set(Key::new("d", name), reservation), Reservation::clone)
        });
    }

    fn woken(ledger: &Ledger) -> Vec<String> {
        ledger.transact(Book::woken).owners.into_iter().map(|owner| owner.key.name).collect()
    }

    #[test]
    fn only_those_are_woken_who_could_use_the_room() {
        let ledger = Ledger::default();
        let feed = ledger.open("c");
        grow(&feed, 1);
        workload(&ledger, "small", 2, &[], true);
        workload(&ledger, "large", 8, &[], true);
        workload(&ledger, "content", 1, &[], false);
        assert_eq!(woken(&ledger), [] as [&str; 0], "no replica that waits fits in one CPU");
        grow(&feed, 4);
        assert_eq!(woken(&ledger), ["small"]);
        grow(&feed, 3);
        assert_eq!(woken(&ledger), [] as [&str; 0], "there is less room, not more");
        workload(&ledger, "small", 2, &[("c", 1)], false);
        grow(&feed, 9);
        assert_eq!(
            woken(&ledger),
            [] as [&str; 0],
            "there is room for the one that has no node yet; 7 CPUs are left"
        );
        grow(&feed, 1);
        assert_eq!(woken(&ledger), ["small"], "there is none any more");
        grow(&feed, 9);
        assert_eq!(woken(&ledger), [] as [&str; 0]);
        workload(&ledger, "small", 2, &[], false);
        assert_eq!(woken(&ledger), ["large"], "a reservation was given up");
    }

    #[test]
    fn room_elsewhere_wakes_nobody_who_waits_for_a_place_of_their_own() {
        let ledger = Ledger::default();
        let feeds = ["home", "other"].map(|name| ledger.open(name));
        feeds.iter().for_each(|feed| grow(feed, 0));
        let only = |name: &str| [name.to_owned()].into();
        let waiting = [
            ("at-home", Waits::In(only("home"))),
            ("elsewhere", Waits::NotIn(only("home"))),
            ("anywhere", Waits::anywhere()),
        ];
        for (name, waits) in waiting {
            let (uid, shape) = (format!("uid-{name}"), Some(shape(1)));
            record(
                &ledger,
                name,
                Reservation { uid, version: None, shape, reserved: BTreeMap::new(), waits },
            );
        }
        grow(&feeds[0], 1);
        assert_eq!(woken(&ledger), ["anywhere", "at-home"]);
        grow(&feeds[0], 0);
        grow(&feeds[1], 1);
        assert_eq!(woken(&ledger), ["elsewhere", "anywhere"], "in turn after the last one");
    }

    #[test]
    fn many_are_woken_in_turn_and_none_is_left_out() {
        let ledger = Ledger::default();
        let feed = ledger.open("c");
        let names: Vec<String> = (0..600).map(|number| format!("w{number:03}")).collect();
        for name in &names {
            workload(&ledger, name, 1, &[], true);
        }
        grow(&feed, 1);
        let first = woken(&ledger);
        assert_eq!(first.len(), AT_FIRST);
        grow(&feed, 2);
        let rounds: Vec<Vec<String>> =
            std::iter::repeat_with(|| woken(&ledger)).take_while(|round| !round.is_empty()).collect();
        let sizes: Vec<usize> = rounds.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2 * AT_FIRST, 4 * AT_FIRST, 8 * AT_FIRST, AT_ONCE, 600 - 14 * AT_FIRST - AT_ONCE]);
        assert_eq!(
            [&first[..], &rounds.concat()[..600 - AT_FIRST]].concat(),
            names,
            "new room does not put the first before the last"
        );
    }

    #[test]
    fn those_who_would_find_no_room_any_more_sleep_on() {
        let ledger = Ledger::default();
        let feed = ledger.open("c");
        for number in 0..600 {
            workload(&ledger, &format!("w{number:03}"), 1, &[], true);
        }
        grow(&feed, 1);
        assert_eq!(woken(&ledger).len(), AT_FIRST);
        workload(&ledger, "w000", 1, &[("c", 1)], false);
        assert_eq!(woken(&ledger), [] as [&str; 0], "the first has taken it");
        workload(&ledger, "w000", 1, &[], false);
        assert_eq!(woken(&ledger)[0], "w016", "who was not asked is the next in turn");
    }

    #[test]
    fn many_shapes_in_many_clusters_are_asked_for_in_rounds() {
        let ledger = Ledger::default();
        let feeds: Vec<_> = (0..20).map(|number| ledger.open(&format!("c{number:02}"))).collect();
        // Only the last cluster has room for anything, and only for the smallest.
        for (number, cpus) in (1..=300).enumerate() {
            workload(&ledger, &format!("w{number:03}"), cpus, &[], true);
        }
        feeds.iter().for_each(|feed| grow(feed, 0));
        grow(&feeds[19], 1);
        let (mut rounds, mut all) = (0, Vec::new());
        loop {
            let woken = ledger.transact(Book::woken);
            (rounds, all) = (rounds + 1, [all, woken.owners].concat());
            if !woken.is_partial {
                break;
            }
        }
        let asked = 20 * 300;
        assert_eq!(rounds, usize::div_ceil(asked, QUESTIONS_AT_ONCE), "others have their turn in between");
        assert_eq!(all.iter().map(|owner| owner.key.name.as_str()).collect::<Vec<_>>(), ["w000"]);
        assert_eq!(woken(&ledger), [] as [&str; 0], "nothing is asked twice");
    }
}

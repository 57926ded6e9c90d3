//! Which nodes get a pod of a DaemonSet and which pods go. Arithmetic alone.

use serde_json::Value;

use crate::cluster::rollout::resolve;
use crate::cluster::text;
use crate::store::{ObjectKey, at};

/// Whether a node is one for the pods of a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Runs,
    /// It gets none; the one that is there stays.
    Stays,
    Leaves,
}

/// A pod of a DaemonSet.
#[derive(Clone, Debug)]
pub(super) struct Daemon {
    pub(super) key: ObjectKey,
    /// Made from the present template.
    pub(super) updated: bool,
    pub(super) terminating: bool,
    /// It has ended by itself.
    pub(super) over: bool,
    pub(super) ready: bool,
    pub(super) available: bool,
}

/// A node, and the DaemonSet's pods on it or on their way to it, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) node: String,
    pub(super) fit: Fit,
    pub(super) pods: Vec<Daemon>,
}

/// How pods get a new template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// When somebody deletes them.
    OnDelete,
    /// So many pods may be away, or so many nodes may have a second one.
    Rolling { unavailable: i64, surge: i64 },
}

impl Update {
    /// From the strategy of a DaemonSet that runs on so many nodes.
    pub(super) fn of(set: &Value, nodes: i64) -> Self {
        if text(set, "/spec/updateStrategy/type") == "OnDelete" {
            return Self::OnDelete;
        }
        let limit = |field: &str| {
            resolve(at(set, &format!("/spec/updateStrategy/rollingUpdate/{field}")), nodes, true)
        };
        let (unavailable, surge) = (limit("maxUnavailable"), limit("maxSurge"));
        Self::Rolling { unavailable: if surge == 0 { unavailable.max(1) } else { unavailable }, surge }
    }

    fn surges(self) -> bool {
        matches!(self, Self::Rolling { surge, .. } if surge > 0)
    }
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Orders {
    /// Nodes that get a pod.
    pub(super) create: Vec<String>,
    /// Pods that have ended by themselves.
    pub(super) clear: Vec<ObjectKey>,
    pub(super) delete: Vec<ObjectKey>,
}

/// The next steps: first every node has what it should have, then pods are replaced.
pub(super) fn plan(places: &[Place], update: Update) -> Orders {
    let mut orders = Orders::default();
    for place in places {
        fill(place, update, &mut orders);
    }
    if orders == Orders::default() {
        match update {
            Update::OnDelete => {}
            Update::Rolling { unavailable, surge: 0 } => replace(places, unavailable, &mut orders),
            Update::Rolling { surge, .. } => surge_over(places, surge, &mut orders),
        }
    }
    orders
}

fn fill(place: &Place, update: Update, orders: &mut Orders) {
    let staying = || place.pods.iter().filter(|pod| !pod.terminating);
    if place.fit == Fit::Leaves {
        orders.delete.extend(staying().map(|pod| pod.key.clone()));
        return;
    }
    orders.clear.extend(staying().filter(|pod| pod.over).map(|pod| pod.key.clone()));
    let running: Vec<&Daemon> = staying().filter(|pod| !pod.over).collect();
    let empty = if update.surges() { running.is_empty() } else { place.pods.is_empty() };
    if empty && place.fit == Fit::Runs {
        orders.create.push(place.node.clone());
    }
    if !update.surges() {
        orders.delete.extend(running.iter().skip(1).map(|pod| pod.key.clone()));
        return;
    }
    // A node may have two: one that is ready, and the new one that is not available yet.
    let (new, old): (Vec<&Daemon>, Vec<&Daemon>) = running.into_iter().partition(|pod| pod.updated);
    for more in [&new, &old] {
        orders.delete.extend(more.iter().skip(1).map(|pod| pod.key.clone()));
    }
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (new.available || !old.ready)
    {
        orders.delete.push(old.key.clone());
    }
}

/// The new and the old pod of a node; what is more than that is cleared away first.
fn new_and_old(place: &Place) -> (Option<&Daemon>, Option<&Daemon>) {
    let staying = || place.pods.iter().filter(|pod| !pod.terminating);
    (staying().find(|pod| pod.updated), staying().find(|pod| !pod.updated))
}

/// Deletes old pods as long as not too many are away; those that do not serve anyway go at once.
fn replace(places: &[Place], unavailable: i64, orders: &mut Orders) {
    let mut away = 0;
    let mut candidates = Vec::new();
    for place in places.iter().filter(|place| !place.pods.is_empty()) {
        match new_and_old(place) {
            (None, Some(old)) if old.available => candidates.push(old.key.clone()),
            (None, Some(old)) => {
                orders.delete.push(old.key.clone());
                away += 1;
            }
            (Some(new), None) if new.available => {}
            (Some(_), _) | (None, None) => away += 1,
        }
    }
    let more = usize::try_from(unavailable - away).unwrap_or(0);
    orders.delete.extend(candidates.into_iter().take(more));
}

/// Gives nodes a second, new pod; where the old one does not serve anyway, at once.
fn surge_over(places: &[Place], surge: i64, orders: &mut Orders) {
    let mut doubled = 0;
    let mut candidates = Vec::new();
    for place in places {
        match new_and_old(place) {
            (None, Some(old)) if old.available => candidates.push(place.node.clone()),
            (None, Some(_)) => orders.create.push(place.node.clone()),
            (Some(new), Some(old)) if new.available => orders.delete.push(old.key.clone()),
            (Some(_), Some(_)) => doubled += 1,
            (Some(_) | None, None) => {}
        }
    }
    let more = usize::try_from(surge - doubled).unwrap_or(0);
    orders.create.extend(candidates.into_iter().take(more));
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_AWAY: Update = Update::Rolling { unavailable: 1, surge: 0 };
    const ONE_MORE: Update = Update::Rolling { unavailable: 0, surge: 1 };

    /// A node and its pods: `A`vailable, `R`eady, `U`nready, `T`erminating, `O`ver; in small letters of an old template.
    fn place(index: usize, fit: Fit, pods: &str) -> Place {
        let daemon = |(number, letter): (usize, char)| {
            let state = letter.to_ascii_uppercase();
            Daemon {
                key: ObjectKey::new("n", &format!("{index}{number}")),
                updated: letter.is_ascii_uppercase(),
                terminating: state == 'T',
                over: state == 'O',
                ready: matches!(state, 'A' | 'R'),
                available: state == 'A',
            }
        };
        Place { node: index.to_string(), fit, pods: pods.chars().enumerate().map(daemon).collect() }
    }

    /// What is made and what goes, for nodes that all run pods.
    fn planned(update: Update, nodes: &[&str]) -> (Vec<String>, Vec<String>) {
        let places: Vec<Place> =
            nodes.iter().enumerate().map(|(index, pods)| place(index, Fit::Runs, pods)).collect();
        let orders = plan(&places, update);
        let gone = orders.clear.iter().chain(&orders.delete).map(|key| key.name.to_string()).collect();
        (orders.create, gone)
    }

    fn expect(update: Update, nodes: &[&str], create: &[&str], delete: &[&str]) {
        let owned = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(planned(update, nodes), (owned(create), owned(delete)), "{update:?} {nodes:?}");
    }

    #[test]
    fn each_node_has_one() {
        expect(ONE_AWAY, &["", "A", "T", "O", "AU"], &["0"], &["30", "41"]);
        let orders = plan(
            &[place(0, Fit::Leaves, "AT"), place(1, Fit::Stays, ""), place(2, Fit::Stays, "A")],
            ONE_AWAY,
        );
        assert_eq!((orders.create.len(), orders.delete), (0, vec![ObjectKey::new("n", "00")]));
    }

    #[test]
    fn pods_are_replaced_as_many_at_a_time_as_may_be_away() {
        expect(ONE_AWAY, &["a", "a", "a"], &[], &["00"]);
        expect(ONE_AWAY, &["T", "a", "a"], &[], &[]);
        expect(ONE_AWAY, &["R", "a", "a"], &[], &[]);
        expect(ONE_AWAY, &["A", "a", "a"], &[], &["10"]);
        // What does not serve anyway is replaced at once.
        expect(ONE_AWAY, &["u", "u", "a"], &[], &["00", "10"]);
        expect(Update::Rolling { unavailable: 2, surge: 0 }, &["a", "a", "a"], &[], &["00", "10"]);
        expect(Update::OnDelete, &["a", "a"], &[], &[]);
    }

    #[test]
    fn with_surge_the_new_pod_comes_first() {
        expect(ONE_MORE, &["a", "a"], &["0"], &[]);
        expect(ONE_MORE, &["aU", "a"], &[], &[]);
        expect(ONE_MORE, &["aR", "a"], &[], &[]);
        expect(ONE_MORE, &["aA", "a"], &[], &["00"]);
        expect(ONE_MORE, &["tA", "a"], &["1"], &[]);
        expect(ONE_MORE, &["uU", "a"], &[], &["00"]);
        expect(ONE_MORE, &["u", "u"], &["0", "1"], &[]);
        expect(ONE_MORE, &["T", "A"], &["0"], &[]);
    }
}

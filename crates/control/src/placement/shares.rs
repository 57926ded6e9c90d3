//! How a total of replicas is divided by load, as autoscalers have worked it out.

use portolan_runtime::{Change, Key, WatchHealth};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

/// The shares that autoscalers have worked out for the clusters of their workloads; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    state: Arc<RwLock<State>>,
    health: WatchHealth,
}

#[derive(Debug, Default)]
struct State {
    divisions: BTreeMap<Key, Division>,
    listed: bool,
}

/// What one autoscaler has worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// The workload.
    pub(crate) workload: Key,
    /// The weights of its clusters.
    pub(crate) shares: BTreeMap<String, u32>,
}

impl Shares {
    /// How the watch of autoscalers stands.
    pub(crate) fn health(&self) -> &WatchHealth {
        &self.health
    }

    /// The weights by which the total of a workload is divided; none if no autoscaler has divided it, or several.
    /// Nothing is known before all autoscalers have been listed: without its weights, a total would be divided anew.
    pub(crate) fn of(&self, workload: &Key) -> Option<BTreeMap<String, u32>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        (state.listed || self.health.is_not_served()).then(|| state.of(workload))
    }

    /// Takes what autoscalers say; answers the workloads whose division may have changed.
    pub(crate) fn take<T>(&self, change: &Change<T>, division: impl Fn(&T) -> Division) -> BTreeSet<Key> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let State { divisions: all, listed: is_listed } = &mut *state;
        let mut changed = BTreeSet::new();
        let mut put = |all: &mut BTreeMap<Key, Division>, key: &Key, now: Option<Division>| {
            let before = all.get(key).cloned();
            if before != now {
                changed.extend(before.into_iter().chain(now.clone()).map(|division| division.workload));
                match now {
                    Some(now) => _ = all.insert(key.clone(), now),
                    None => _ = all.remove(key),
                }
            }
        };
        match change {
            Change::Set(key, object) => put(all, key, Some(division(object))),
            Change::Gone(key) => put(all, key, None),
            Change::Listed(listed) => {
                *is_listed = true;
                let gone: Vec<Key> = all.keys().filter(|key| !listed.contains_key(*key)).cloned().collect();
                gone.iter().for_each(|key| put(all, key, None));
                listed.iter().for_each(|(key, object)| put(all, key, Some(division(object))));
            }
        }
        changed
    }
}

impl State {
    fn of(&self, workload: &Key) -> BTreeMap<String, u32> {
        let first = Key::new(&workload.namespace, "");
        let own = self.divisions.range(first..).take_while(|(key, _)| key.namespace == workload.namespace);
        let mut own = own.filter(|(_, division)| division.workload == *workload);
        match (own.next(), own.next()) {
            (Some((_, only)), None) => only.shares.clone(),
            _ => BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(target: &str, share: u32) -> Division {
        Division { workload: Key::new("shop", target), shares: BTreeMap::from([("c1".to_owned(), share)]) }
    }

    #[test]
    fn one_autoscaler_divides_and_two_do_not() {
        let (shares, web) = (Shares::default(), Key::new("shop", "web"));
        let set = |name: &str, division: Division| {
            shares.take(&Change::Set(Key::new("shop", name), division), Division::clone)
        };
        let listed = Change::Listed(BTreeMap::from([(Key::new("shop", "a"), divided("web", 3))]));
        assert_eq!(
            shares.of(&web),
            None,
            "before autoscalers are listed nobody knows whether one divides it"
        );
        assert_eq!(shares.take(&listed, Division::clone), BTreeSet::from([web.clone()]));
        assert_eq!(shares.of(&web), Some(BTreeMap::from([("c1".to_owned(), 3)])));
        assert!(set("a", divided("web", 3)).is_empty(), "nothing is new");
        set("b", divided("web", 4));
        assert!(shares.of(&web).unwrap().is_empty(), "two autoscalers of one workload");
        assert_eq!(set("b", divided("other", 4)).len(), 2, "the workload that it has left, too");
        shares.take(&Change::Listed(BTreeMap::new()), Division::clone);
        assert!(shares.of(&web).unwrap().is_empty());
    }
}

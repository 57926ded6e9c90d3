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
    /// The weights in force, by workload.
    in_force: BTreeMap<Key, BTreeMap<String, u32>>,
    listed: bool,
}

/// What one autoscaler has worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// The workload.
    pub(crate) workload: Key,
    /// The weights of its clusters.
    pub(crate) shares: BTreeMap<String, u32>,
    /// Whether the autoscaler is being deleted: then it scales nothing any more.
    pub(crate) deleted: bool,
}

impl Shares {
    /// How the watch of autoscalers stands.
    pub(crate) fn health(&self) -> &WatchHealth {
        &self.health
    }

    /// The weights by which the total of a workload is divided; none if no autoscaler has divided it. The last ones stay
    /// while several autoscalers claim the workload, and until the one that is left has worked out its own.
    /// Nothing is known before all autoscalers have been listed: without its weights, a total would be divided anew.
    pub(crate) fn of(&self, workload: &Key) -> Option<BTreeMap<String, u32>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let in_force = || state.in_force.get(workload).cloned().unwrap_or_default();
        (state.listed || self.health.is_not_served()).then(in_force)
    }

    /// The names of the autoscalers that scale a workload; those that are being deleted do not.
    pub(crate) fn autoscalers_of(&self, workload: &Key) -> Vec<String> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.autoscalers_of(workload).map(|(key, _)| key.name.clone()).collect()
    }

    /// Takes what autoscalers say; answers the workloads whose division may have changed.
    pub(crate) fn take<T>(&self, change: &Change<T>, division: impl Fn(&T) -> Division) -> BTreeSet<Key> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let State { divisions: all, listed: is_listed, .. } = &mut *state;
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
        changed.iter().for_each(|workload| state.put_in_force(workload));
        changed
    }
}

impl State {
    fn autoscalers_of(&self, workload: &Key) -> impl Iterator<Item = (&Key, &Division)> {
        let first = Key::new(&workload.namespace, "");
        let near = self.divisions.range(first..).take_while(|(key, _)| key.namespace == workload.namespace);
        near.filter(move |(_, division)| division.workload == *workload && !division.deleted)
    }

    fn put_in_force(&mut self, workload: &Key) {
        let all: Vec<&Division> = self.autoscalers_of(workload).map(|(_, division)| division).collect();
        let mut divided = all.iter().map(|division| &division.shares).filter(|shares| !shares.is_empty());
        let (count, shares) = (all.len(), divided.next().cloned());
        match shares {
            _ if count == 0 => _ = self.in_force.remove(workload),
            Some(shares) if count == 1 => _ = self.in_force.insert(workload.clone(), shares),
            // A new leader does not know which of several was the last: most often only one has divided it.
            Some(shares) => _ = self.in_force.entry(workload.clone()).or_insert(shares),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(target: &str, shares: &[u32]) -> Division {
        let shares = shares.iter().enumerate().map(|(index, share)| (format!("c{index}"), *share));
        Division { workload: Key::new("shop", target), shares: shares.collect(), deleted: false }
    }

    fn set(shares: &Shares, name: &str, division: Division) -> BTreeSet<Key> {
        shares.take(&Change::Set(Key::new("shop", name), division), Division::clone)
    }

    fn listed(all: &[(&str, Division)]) -> Change<Division> {
        Change::Listed(
            all.iter().map(|(name, division)| (Key::new("shop", name), division.clone())).collect(),
        )
    }

    #[test]
    fn an_autoscaler_divides_its_workload_once_all_are_listed() {
        let (shares, web) = (Shares::default(), Key::new("shop", "web"));
        assert_eq!(
            shares.of(&web),
            None,
            "before autoscalers are listed nobody knows whether one divides it"
        );
        let first = listed(&[("a", divided("web", &[3]))]);
        assert_eq!(shares.take(&first, Division::clone), BTreeSet::from([web.clone()]));
        assert_eq!(shares.of(&web), Some(divided("web", &[3]).shares));
        assert!(set(&shares, "a", divided("web", &[3])).is_empty(), "nothing is new");
        set(&shares, "b", divided("api", &[4]));
        assert_eq!(set(&shares, "b", divided("other", &[4])).len(), 2, "the workload that it has left, too");
        shares.take(&listed(&[]), Division::clone);
        assert!(shares.of(&web).unwrap().is_empty());
    }

    #[test]
    fn the_last_division_stays_while_several_autoscalers_claim_a_workload() {
        let (shares, web) = (Shares::default(), Key::new("shop", "web"));
        let last = divided("web", &[8, 2]);
        shares.take(&listed(&[("b", last.clone())]), Division::clone);
        set(&shares, "a", divided("web", &[]));
        assert_eq!(shares.autoscalers_of(&web), ["a", "b"]);
        assert_eq!(shares.of(&web), Some(last.shares.clone()), "the second has not divided it");
        set(&shares, "a", divided("web", &[5, 5]));
        assert_eq!(shares.of(&web), Some(last.shares.clone()), "nor may it");
        set(&shares, "a", divided("web", &[]));
        let next = Shares::default();
        let both = listed(&[("a", divided("web", &[])), ("b", last.clone())]);
        next.take(&both, Division::clone);
        assert_eq!(next.of(&web), Some(last.shares.clone()), "a new leader knows as much");

        set(&shares, "b", Division { deleted: true, ..last.clone() });
        assert_eq!(shares.autoscalers_of(&web), ["a"], "one that is being deleted claims nothing");
        assert_eq!(shares.of(&web), Some(last.shares), "until the other one has divided it");
        set(&shares, "a", divided("web", &[6, 4]));
        assert_eq!(shares.of(&web), Some(divided("web", &[6, 4]).shares));
    }
}

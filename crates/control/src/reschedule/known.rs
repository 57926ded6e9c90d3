//! The reschedulers of the hub, and which of them a workload is left to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use portolan_api::MultiClusterRescheduler;
use portolan_core::reschedule::{Move, Record, Settings, WorkloadKey};
use portolan_runtime::{Index, Key, WatchHealth};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::driver::Declared;
use crate::placement::Workload;

/// A rescheduler, and what is read of it once.
#[derive(Debug)]
pub(crate) struct Rescheduler {
    pub(crate) object: MultiClusterRescheduler,
    pub(super) settings: Settings,
    pub(super) record: Record,
}

impl Rescheduler {
    pub(super) fn of(mut object: MultiClusterRescheduler) -> Self {
        object.metadata.managed_fields = None;
        let settings = Settings::of(&object.spec);
        let record = object.status.as_ref().map(Record::of).unwrap_or_default();
        Self { object, settings, record }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// The move of a workload that is under way.
    pub(crate) fn move_of(&self, key: &Key) -> Option<&Move> {
        self.record.moves.get(&workload_key(key))
    }

    /// Whether a workload is in its record.
    pub(super) fn knows(&self, key: &Key) -> bool {
        let key = workload_key(key);
        self.record.moves.contains_key(&key) || self.record.stays.contains_key(&key)
    }

    /// Whether users left it as it was.
    pub(super) fn asks_alike(before: Option<&Self>, after: Option<&Self>) -> bool {
        let asked = |each: Option<&Self>| {
            let meta = &each?.object.metadata;
            Some((meta.uid.clone(), meta.generation, meta.deletion_timestamp.clone()))
        };
        asked(before) == asked(after)
    }

    /// The workloads that it selects; nothing if there is no rescheduler, or it is being deleted.
    pub(super) fn selector(each: Option<&Self>) -> Option<Option<&LabelSelector>> {
        each.filter(|each| !each.is_leaving()).map(|each| each.settings.selector.as_ref())
    }

    /// Whether it is being deleted: then nothing is left to it.
    pub(super) fn is_leaving(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }
}

/// The reschedulers of the hub; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reschedulers(Index<Rescheduler>);

impl Reschedulers {
    /// How the watch of them stands.
    pub(crate) fn health(&self) -> &WatchHealth {
        self.0.health()
    }

    pub(super) fn index(&self) -> &Index<Rescheduler> {
        &self.0
    }

    /// The rescheduler that brings a workload home, if one does. Nothing is known before all of them have been listed;
    /// there are none if the hub does not serve the kind.
    ///
    /// A move under way is ended by the one that began it. Otherwise it is the first, by name, that selects the workload.
    pub(crate) fn of(
        &self,
        key: &Key,
        labels: &BTreeMap<String, String>,
    ) -> Option<Option<Arc<Rescheduler>>> {
        let none = || self.health().is_not_served().then(Vec::new);
        let all = self.0.all_if_synced().or_else(none)?;
        let mut all = all.iter().map(|(_, each)| each).filter(|each| !each.is_leaving());
        let moves = all.clone().find(|each| each.move_of(key).is_some());
        Some(moves.or_else(|| all.find(|each| each.settings.selects(labels))).cloned())
    }
}

/// A workload as records name it.
pub(super) fn workload_key(key: &Key) -> WorkloadKey {
    let (namespace, name) = (key.namespace.clone(), key.name.clone());
    WorkloadKey { kind: Workload::KIND.to_owned(), namespace, name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_runtime::Change;
    use serde_json::json;

    fn rescheduler(name: &str, tier: &str, moves: &str) -> (Key, Rescheduler) {
        let moves: Vec<_> = (!moves.is_empty())
            .then(|| {
                json!({"kind": Workload::KIND, "namespace": "shop", "name": moves, "from": "cloud", "to": "home",
                    "replicas": 1, "phase": "Surging", "startedAt": "2026-01-01T00:00:00Z"})
            })
            .into_iter()
            .collect();
        let object = json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterRescheduler", "metadata": {"name": name},
            "spec": {"workloadSelector": {"matchLabels": {"tier": tier}}},
            "status": {"moving": 0, "moved": 0, "moves": moves},
        });
        (Key::cluster(name), Rescheduler::of(serde_json::from_value(object).unwrap()))
    }

    #[test]
    fn a_workload_is_left_to_the_one_that_moves_it_or_the_first_that_selects_it() {
        let known = Reschedulers::default();
        let labels = |tier: &str| BTreeMap::from([("tier".to_owned(), tier.to_owned())]);
        let web = Key::new("shop", "web");
        assert!(known.of(&web, &labels("front")).is_none(), "they have not been listed");
        let all = [
            rescheduler("a", "back", ""),
            rescheduler("b", "front", "api"),
            rescheduler("c", "front", "web"),
        ];
        known.index().take(Change::Listed(all.into()));
        let of = |key: &Key, tier: &str| {
            let found = known.of(key, &labels(tier)).unwrap();
            found.map(|each| each.name().to_owned())
        };
        assert_eq!(of(&web, "front").as_deref(), Some("c"), "it began the move");
        assert_eq!(of(&web, "none").as_deref(), Some("c"), "and ends it, whatever the labels are now");
        assert_eq!(of(&Key::new("shop", "other"), "front").as_deref(), Some("b"));
        assert_eq!(of(&Key::new("shop", "other"), "none"), None);
    }
}

//! What was carried into a member, watched namespace by namespace.

use super::{CarriedFacts, DependencyKind, Reference};
use crate::fleet::Touched;
use crate::names::HUB_LABEL;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_runtime::{Index, Key, Seed, feed};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a first list may take before it is said to be missing.
const LISTED_WITHIN: Duration = Duration::from_secs(2);

/// The ConfigMaps and Secrets that a hub has carried into one member: never what they hold.
///
/// A namespace is watched from the first time that it is asked for: so the hub needs rights only where it has carried
/// something, and no right to look at all Secrets of a member.
pub struct Carriage {
    client: Client,
    hub: String,
    seed: Seed,
    touched: Arc<dyn Fn(Touched) + Send + Sync>,
    namespaces: Mutex<BTreeMap<String, Watched>>,
}

struct Watched {
    indexes: Namespaced,
    _tasks: JoinSet<()>,
}

/// What was carried into one namespace.
#[derive(Clone, Debug, Default)]
pub struct Namespaced {
    config_maps: Index<CarriedFacts>,
    secrets: Index<CarriedFacts>,
}

impl Namespaced {
    /// Whether all has been listed once.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.config_maps.synced() && self.secrets.synced()
    }

    /// Waits for it a little while; answers whether it came true.
    pub(super) async fn soon_synced(&self) -> bool {
        let end = Instant::now() + LISTED_WITHIN;
        while !self.synced() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.synced()
    }

    pub(super) fn of(&self, kind: DependencyKind) -> &Index<CarriedFacts> {
        match kind {
            DependencyKind::ConfigMap => &self.config_maps,
            DependencyKind::Secret => &self.secrets,
        }
    }
}

impl Carriage {
    pub(crate) fn new(
        client: Client,
        hub: &str,
        seed: Seed,
        touched: Arc<dyn Fn(Touched) + Send + Sync>,
    ) -> Self {
        Self { client, hub: hub.to_owned(), seed, touched, namespaces: Mutex::default() }
    }

    /// What was carried into this namespace, watched from now on.
    #[must_use]
    pub fn into_namespace(&self, namespace: &str) -> Namespaced {
        let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = namespaces.get(namespace) {
            return watched.indexes.clone();
        }
        let watched = self.watch(namespace);
        let indexes = watched.indexes.clone();
        namespaces.insert(namespace.to_owned(), watched);
        indexes
    }

    /// What was carried into this namespace, if it is watched already.
    #[must_use]
    pub fn watched(&self, namespace: &str) -> Option<Namespaced> {
        let namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        namespaces.get(namespace).map(|watched| watched.indexes.clone())
    }

    fn watch(&self, namespace: &str) -> Watched {
        let indexes = Namespaced::default();
        let mut tasks = JoinSet::new();
        let seed = self.seed.child(namespace);
        let ours = || watcher::Config::default().labels(&format!("{HUB_LABEL}={}", self.hub));
        tasks.spawn(feed(
            Api::<PartialObjectMeta<ConfigMap>>::namespaced(self.client.clone(), namespace),
            ours(),
            |object| CarriedFacts::of(&object),
            indexes.config_maps.clone(),
            self.tell(DependencyKind::ConfigMap),
            seed.child("configmaps"),
        ));
        tasks.spawn(feed(
            Api::<PartialObjectMeta<Secret>>::namespaced(self.client.clone(), namespace),
            ours(),
            |object| CarriedFacts::of(&object),
            indexes.secrets.clone(),
            self.tell(DependencyKind::Secret),
            seed.child("secrets"),
        ));
        Watched { indexes, _tasks: tasks }
    }

    fn tell(&self, kind: DependencyKind) -> impl Fn(&Key) + Send + use<> {
        let touched = Arc::clone(&self.touched);
        move |key| {
            let reference = Reference { kind, name: key.name.clone() };
            touched(Touched::Dependency(key.namespace.clone(), reference));
        }
    }
}

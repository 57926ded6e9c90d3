//! What was propagated into a member, watched namespace by namespace.

use super::{DependencyKind, PropagatedFacts, Reference};
use crate::copies::Kind;
use crate::fleet::MemberEvent;
use crate::names::HUB_LABEL;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_runtime::{Backoff, Index, Key, Seed, call, chain, feed, foreign_text};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a first list may take before it is said to be missing.
const LISTED_WITHIN: Duration = Duration::from_secs(2);

/// A namespace that refuses to be listed is asked again after this long: somebody may have granted the right.
const REFUSED_FOR: Duration = Duration::from_secs(60);

/// A namespace in which nothing of ours is and that nobody has asked for within this time is watched no more.
const UNUSED_FOR: Duration = Duration::from_secs(600);

/// What was applied comes back through the watch within this time; until then it is not applied again.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// The ConfigMaps and Secrets that a hub has propagated into one member: never what they hold.
///
/// A namespace is watched from the first time that it is asked for: so the hub needs rights only where it has propagated
/// something, and no right to look at all Secrets of a member. A namespace that nobody uses is watched no more.
pub struct Propagated {
    client: Client,
    hub: String,
    seed: Seed,
    on_event: Arc<dyn Fn(MemberEvent) + Send + Sync>,
    namespaces: Arc<Mutex<BTreeMap<String, Watched>>>,
    applied: Mutex<BTreeMap<(DependencyKind, Key), Applied>>,
}

struct Watched {
    indexes: Namespaced,
    /// When it was last asked for.
    used: Instant,
    _tasks: JoinSet<()>,
}

/// What this process applied last.
struct Applied {
    source: String,
    version: String,
    at: Instant,
}

/// What was propagated into one namespace.
#[derive(Clone, Debug, Default)]
pub struct Namespaced {
    config_maps: Index<PropagatedFacts>,
    secrets: Index<PropagatedFacts>,
    /// Why the member does not let them be listed, if it does not.
    refused: Arc<Mutex<Option<String>>>,
}

impl Namespaced {
    /// Why the member does not let the hub list them, if so: then the hub can neither carry nor take away anything.
    #[must_use]
    pub fn refused(&self) -> Option<String> {
        lock(&self.refused).clone()
    }

    /// Whether it is known what there is, or that the hub may not know it.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.synced() || self.refused().is_some()
    }

    /// Whether all has been listed once.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.config_maps.synced() && self.secrets.synced()
    }

    /// Waits for it a little while; answers whether it came true.
    pub(super) async fn soon_synced(&self) -> bool {
        let end = Instant::now() + LISTED_WITHIN;
        while !self.settled() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.synced()
    }

    pub(super) fn of(&self, kind: DependencyKind) -> &Index<PropagatedFacts> {
        match kind {
            DependencyKind::ConfigMap => &self.config_maps,
            DependencyKind::Secret => &self.secrets,
        }
    }
}

impl Propagated {
    pub(crate) fn new(
        client: Client,
        hub: &str,
        seed: Seed,
        on_event: Arc<dyn Fn(MemberEvent) + Send + Sync>,
    ) -> Self {
        let (namespaces, applied) = (Arc::default(), Mutex::default());
        Self { client, hub: hub.to_owned(), seed, on_event, namespaces, applied }
    }

    /// What was propagated into this namespace, watched from now on.
    #[must_use]
    pub fn into_namespace(&self, namespace: &str) -> Namespaced {
        let mut namespaces = lock(&self.namespaces);
        if let Some(watched) = namespaces.get_mut(namespace) {
            watched.used = Instant::now();
            return watched.indexes.clone();
        }
        let watched = self.watch(namespace);
        let indexes = watched.indexes.clone();
        namespaces.insert(namespace.to_owned(), watched);
        indexes
    }

    /// What was propagated into this namespace, if it is watched already.
    #[must_use]
    pub fn watched(&self, namespace: &str) -> Option<Namespaced> {
        lock(&self.namespaces).get(namespace).map(|watched| watched.indexes.clone())
    }

    /// Whether an object is as this process applied it last, from this state of its source.
    pub(super) fn is_as_applied(&self, kind: DependencyKind, key: &Key, source: &str, version: &str) -> bool {
        let applied = lock(&self.applied);
        let applied = applied.get(&(kind, key.clone())).filter(|applied| applied.source == source);
        applied.is_some_and(|applied| applied.version == version || applied.at.elapsed() < SEEN_WITHIN)
    }

    /// Remembers what came of applying an object.
    pub(super) fn applied(&self, kind: DependencyKind, key: &Key, source: String, version: String) {
        let applied = Applied { source, version, at: Instant::now() };
        lock(&self.applied).insert((kind, key.clone()), applied);
    }

    fn watch(&self, namespace: &str) -> Watched {
        let indexes = Namespaced::default();
        let mut tasks = JoinSet::new();
        let seed = self.seed.child(namespace);
        let labels = format!("{HUB_LABEL}={}", self.hub);
        let when_listed = |kind: DependencyKind| Listing {
            client: self.client.clone(),
            namespace: namespace.to_owned(),
            labels: labels.clone(),
            refused: Arc::clone(&indexes.refused),
            index: indexes.of(kind).clone(),
        };
        let (config_maps, secrets) =
            (when_listed(DependencyKind::ConfigMap), when_listed(DependencyKind::Secret));
        let tell = self.tell(DependencyKind::ConfigMap);
        tasks.spawn(config_maps.keep::<ConfigMap>(tell, seed.child("configmaps")));
        let tell = self.tell(DependencyKind::Secret);
        tasks.spawn(secrets.keep::<Secret>(tell, seed.child("secrets")));
        tasks.spawn(close_when_unused(Arc::downgrade(&self.namespaces), namespace.to_owned()));
        Watched { indexes, used: Instant::now(), _tasks: tasks }
    }

    fn tell(&self, kind: DependencyKind) -> impl Fn(&Key) + Send + use<> {
        let on_event = Arc::clone(&self.on_event);
        move |key| {
            let reference = Reference { kind, name: key.name.clone() };
            on_event(MemberEvent::Dependency(key.namespace.clone(), reference));
        }
    }
}

/// Ends the watch of a namespace in which nothing of ours is, once nobody asks for it.
async fn close_when_unused(namespaces: Weak<Mutex<BTreeMap<String, Watched>>>, namespace: String) {
    loop {
        tokio::time::sleep(UNUSED_FOR / 4).await;
        let Some(namespaces) = namespaces.upgrade() else { return };
        let mut namespaces = lock(&namespaces);
        let unused = |watched: &Watched| {
            let indexes = &watched.indexes;
            indexes.config_maps.is_empty()
                && indexes.secrets.is_empty()
                && watched.used.elapsed() >= UNUSED_FOR
        };
        if namespaces.get(&namespace).is_some_and(unused) {
            namespaces.remove(&namespace);
            return;
        }
    }
}

/// One kind in one namespace of a member.
struct Listing {
    client: Client,
    namespace: String,
    labels: String,
    refused: Arc<Mutex<Option<String>>>,
    index: Index<PropagatedFacts>,
}

impl Listing {
    /// Keeps the index, once the member lets the hub list the kind. A refusal is remembered, and not asked for again all
    /// the time.
    async fn keep<K: Kind + Send + 'static>(self, on_event: impl Fn(&Key) + Send, seed: Seed) {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = ListParams::default().labels(&self.labels).limit(1);
        let mut backoff = Backoff::new(seed.child("first"));
        loop {
            let what = format!("list {}s of namespace {}", K::kind(&()), self.namespace);
            match call(what, api.list_metadata(&params)).await {
                Ok(_) => break,
                Err(error) if error.is_final() => {
                    *lock(&self.refused) = Some(foreign_text(&chain(&error)));
                    tokio::time::sleep(REFUSED_FOR).await;
                }
                Err(_) => tokio::time::sleep(backoff.failed()).await,
            }
        }
        *lock(&self.refused) = None;
        let api: Api<PartialObjectMeta<K>> = Api::namespaced(self.client.clone(), &self.namespace);
        let config = watcher::Config::default().labels(&self.labels);
        feed(api, config, |object| PropagatedFacts::of(&object), self.index, on_event, seed).await;
    }
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The Secrets that ForeignClusters name, watched for changes.

use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::foreigncluster::SecretKeyRef;
use portolan_runtime::{Change, Index, Key, Seed, feed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// Where `portolan peer` puts credentials: a namespace of Portolan's own, watched as a whole.
const OWN_NAMESPACE: &str = "portolan";

/// Watches of Secrets in the hub. Of each only the version is kept.
pub(super) struct Secrets {
    hub: Client,
    seed: Seed,
    versions: Index<Option<String>>,
    changed: Arc<dyn Fn(&Key) + Send + Sync>,
    /// By what is watched: a namespace, or one Secret of another namespace.
    watches: Mutex<BTreeMap<Key, JoinSet<()>>>,
}

impl Secrets {
    /// Watches nothing yet; `changed` is told the Secrets that came, changed or went.
    pub(super) fn new(hub: Client, seed: Seed, changed: impl Fn(&Key) + Send + Sync + 'static) -> Self {
        Self { hub, seed, versions: Index::default(), changed: Arc::new(changed), watches: Mutex::default() }
    }

    /// Watches a Secret from now on.
    pub(super) fn watch(&self, secret: &SecretKeyRef) {
        let place = place(secret);
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        if watches.contains_key(&place) {
            return;
        }
        let config = match place.name.as_str() {
            "" => watcher::Config::default(),
            name => watcher::Config::default().fields(&format!("metadata.name={name}")),
        };
        let (versions, changed) = (self.versions.clone(), Arc::clone(&self.changed));
        // Each watch has an index of its own: a list of one namespace says nothing about another.
        let index = Index::<Option<String>>::default();
        let seen = index.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(feed(
            Api::<Secret>::namespaced(self.hub.clone(), &secret.namespace),
            config,
            |secret| secret.metadata.resource_version,
            index,
            move |key| {
                versions.take(match seen.get(key) {
                    Some(version) => Change::Set(key.clone(), version.as_ref().clone()),
                    None => Change::Gone(key.clone()),
                });
                changed(key);
            },
            self.seed.child(&place.to_string()),
        ));
        watches.insert(place, tasks);
    }

    /// Ends the watches of Secrets that nobody names any more.
    pub(super) fn keep_only<'a>(&self, named: impl Iterator<Item = &'a SecretKeyRef>) {
        let named: BTreeSet<Key> = named.map(place).collect();
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|place, _| named.contains(place));
    }

    /// The resourceVersion that was last seen of a Secret.
    pub(super) fn version(&self, secret: &SecretKeyRef) -> Option<String> {
        self.versions.get(&Key::new(&secret.namespace, &secret.name)).and_then(|version| (*version).clone())
    }
}

fn place(secret: &SecretKeyRef) -> Key {
    match secret.namespace.as_str() {
        OWN_NAMESPACE => Key::new(OWN_NAMESPACE, ""),
        namespace => Key::new(namespace, &secret.name),
    }
}

//! The ConfigMaps and Secrets of the hub: which there are, and their versions. Never what they hold.

use super::{DependencyKind, Reference, References};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use portolan_runtime::{Index, Key, Seed, feed};
use tokio::task::JoinSet;

/// What there is in the hub to be propagated.
#[derive(Clone, Default)]
pub struct Sources {
    config_maps: Index<String>,
    secrets: Index<String>,
}

impl Sources {
    /// Watches them, for as long as the tasks are kept; tells what has changed in which namespace.
    pub fn follow(
        &self,
        hub: &Client,
        seed: Seed,
        tasks: &mut JoinSet<()>,
        on_event: impl Fn(&str, &Reference) + Clone + Send + Sync + 'static,
    ) {
        let tell = |kind| {
            let on_event = on_event.clone();
            move |key: &Key| on_event(&key.namespace, &Reference { kind, name: key.name.clone() })
        };
        tasks.spawn(feed(
            Api::<PartialObjectMeta<ConfigMap>>::all(hub.clone()),
            watcher::Config::default(),
            |object| mark(&object),
            self.config_maps.clone(),
            tell(DependencyKind::ConfigMap),
            seed.child("configmaps"),
        ));
        tasks.spawn(feed(
            Api::<PartialObjectMeta<Secret>>::all(hub.clone()),
            watcher::Config::default(),
            |object| mark(&object),
            self.secrets.clone(),
            tell(DependencyKind::Secret),
            seed.child("secrets"),
        ));
    }

    /// Whether all have been listed once.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.config_maps.synced() && self.secrets.synced()
    }

    /// Which of the references name nothing in this namespace of the hub.
    #[must_use]
    pub fn missing(&self, namespace: &str, references: &References) -> References {
        let absent = |reference: &Reference| self.mark(namespace, reference).is_none();
        let missing = references.iter().filter(|(reference, _)| absent(reference));
        missing.map(|(reference, optional)| (reference.clone(), *optional)).collect()
    }

    /// Which object this is, and which state of it.
    pub(super) fn mark(&self, namespace: &str, reference: &Reference) -> Option<String> {
        let key = Key::new(namespace, &reference.name);
        let index = match reference.kind {
            DependencyKind::ConfigMap => &self.config_maps,
            DependencyKind::Secret => &self.secrets,
        };
        index.get(&key).map(|mark| String::clone(&mark))
    }
}

/// Uid and version of an object; they say nothing of what is in it.
pub(super) fn mark(object: &impl Resource) -> String {
    let meta = object.meta();
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", text(&meta.uid), text(&meta.resource_version))
}

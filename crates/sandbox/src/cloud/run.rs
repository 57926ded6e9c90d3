//! The controllers of Cluster API, which look at everything whenever something changes, and at most once a second.
//!
//! Each pass reads all objects first and then writes, so that what a status says is a little behind what was done, as it
//! is with the real controllers, which look at each object at most once a second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher;
use portolan_runtime::{CallError, WatchHealth, follow_with};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::access::{Access, Objects};
use super::conditions::Verdict;
use super::json::{flag, name, namespace, text};
use super::kinds::{CLUSTER, CLUSTER_CLASS, MACHINE, MACHINE_DEPLOYMENT, VERSION};
use super::provider::Provider;
use super::workload::Workload;
use crate::world::World;

/// The name by which the requests of Cluster API are known to the world.
pub(super) const PARTY: &str = "cluster-api";

/// Changes are gathered for so long.
const PACE: Duration = Duration::from_secs(1);
/// What failed is tried again after this long.
const RETRY: Duration = Duration::from_secs(2);
/// How often workload clusters are probed.
const PROBE: Duration = Duration::from_secs(10);

/// Namespace and name of an object.
pub(super) type Key = (String, String);

/// The namespace and name of an object.
pub(super) fn key(object: &Value) -> Key {
    (namespace(object).to_owned(), name(object).to_owned())
}

/// All controllers.
pub(super) struct Controllers {
    pub(super) world: World,
    pub(super) access: Access,
    pub(super) changed: Arc<Notify>,
    pub(super) workloads: BTreeMap<Key, Workload>,
    /// The clusters of the world that were made here, by their Cluster.
    pub(super) booted: BTreeSet<Key>,
    /// The Machines whose nodes have registered.
    pub(super) registered: BTreeSet<Key>,
    /// How far the deletion of a Machine is, and when to go on with it.
    pub(super) deletions: BTreeMap<Key, (Verdict, Timestamp)>,
    provider: Arc<Mutex<Provider>>,
}

impl Controllers {
    pub(super) fn new(
        world: World,
        access: Access,
        provider: Arc<Mutex<Provider>>,
        changed: Arc<Notify>,
    ) -> Self {
        Self {
            world,
            access,
            changed,
            workloads: BTreeMap::new(),
            booted: BTreeSet::new(),
            registered: BTreeSet::new(),
            deletions: BTreeMap::new(),
            provider,
        }
    }

    /// Works until it is dropped.
    pub(super) async fn run(mut self) {
        let _watches = self.watch();
        loop {
            self.probe().await;
            self.pass().await;
            while !self.wait().await {
                if self.probe().await {
                    break;
                }
            }
        }
    }

    /// Waits until something has changed or is due; answers false if it is only time to probe the workload clusters.
    async fn wait(&self) -> bool {
        let now = self.now();
        let due = self.provider().next_due(now).map(|due| due.duration_since(now));
        let due = due.map(|time| Duration::try_from(time).unwrap_or_default());
        let probe = (!self.workloads.is_empty()).then_some(PROBE);
        tokio::select! {
            biased;
            () = sleep(due) => true,
            () = self.changed.notified() => {
                tokio::time::sleep(PACE).await;
                true
            }
            () = sleep(probe) => false,
        }
    }

    /// Watches the kinds that others write.
    fn watch(&self) -> JoinSet<()> {
        let mut watches = JoinSet::new();
        for kind in [CLUSTER, CLUSTER_CLASS, MACHINE_DEPLOYMENT, MACHINE] {
            let resource = ApiResource::from_gvk_with_plural(
                &GroupVersionKind::gvk(kind.group, VERSION, kind.name),
                &kind.plural(),
            );
            let client = self.access.client.clone();
            let api: Api<DynamicObject> = match &self.access.namespace {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            let changed = self.changed.clone();
            let seed = self.world.seed().child("cluster api").child(kind.name);
            watches.spawn(follow_with(
                api,
                watcher::Config::default(),
                |_| (),
                move |_| changed.notify_one(),
                seed,
                WatchHealth::default(),
            ));
        }
        watches
    }

    /// Looks at everything once.
    async fn pass(&mut self) {
        let objects = match self.access.objects().await {
            Ok(objects) => objects,
            Err(error) => return self.report("management cluster", &error),
        };
        for class in objects.all(CLUSTER_CLASS) {
            let outcome = self.class(class).await;
            self.settle("ClusterClass", class, outcome);
        }
        for cluster in objects.all(CLUSTER).filter(|cluster| !paused(cluster)) {
            let outcome = self.cluster(cluster, &objects).await;
            self.settle("Cluster", cluster, outcome);
        }
        for kind in [MACHINE_DEPLOYMENT, MACHINE] {
            for object in objects.all(kind) {
                let cluster = objects.get(CLUSTER, namespace(object), text(object, "/spec/clusterName"));
                let Some(cluster) = cluster.filter(|cluster| !paused(cluster)) else { continue };
                let outcome = match kind {
                    MACHINE => self.machine(object, cluster, &objects).await,
                    _ => self.deployment(object, cluster, &objects).await,
                };
                self.settle(kind.name, object, outcome);
            }
        }
    }

    /// Shows that a class can be used, and its variables.
    async fn class(&self, class: &Value) -> Result<(), CallError> {
        let status = super::class::status(class, &self.time());
        self.access.set_status(CLUSTER_CLASS, class, &status).await
    }

    fn settle(&self, kind: &str, object: &Value, outcome: Result<(), CallError>) {
        if let Err(error) = outcome {
            self.report(&format!("{kind} {}/{}", namespace(object), name(object)), &error);
        }
    }

    /// Notes what failed, and has it tried again.
    fn report(&self, about: &str, error: &CallError) {
        self.note(&format!("{about}: {error}"));
        let now = self.now();
        self.provider().wake(now, RETRY);
    }

    pub(super) fn note(&self, text: &str) {
        tracing::debug!("{PARTY}: {text}");
        self.world.log().note(self.now(), &format!("{PARTY}: {text}"));
    }

    pub(super) fn provider(&self) -> MutexGuard<'_, Provider> {
        self.provider.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.world.clock().now()
    }

    pub(super) fn time(&self) -> Value {
        json!(self.world.clock().time())
    }
}

/// Waits for so long; without a time, for ever.
async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

fn paused(cluster: &Value) -> bool {
    flag(cluster, "/spec/paused")
}

/// The control plane of a Cluster.
pub(super) fn control_plane_of<'a>(cluster: &Value, objects: &'a Objects) -> Option<&'a Value> {
    objects.referenced(namespace(cluster), cluster.pointer("/spec/controlPlaneRef"))
}

//! What a provider watches of itself.

use super::bounds::Allowances;
use crate::capacity::{Book, ClusterFeed, Ledger, Listed};
use crate::fleet::Watched;
use crate::names::{POD_SECURITY_LABEL, POD_SECURITY_SET, TENANT_LABEL};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node, Pod, PodSpec, ResourceQuota};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use portolan_api::{ForeignCluster, ResourceOffer, SharingClass};
use portolan_core::capacity::{Amounts, PodShape};
use portolan_runtime::{Index, Key, Published, Queue, Seed, follow_with};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The only item of work: offers depend on each other.
pub(super) const ALL: &str = "offers";

/// The name of the cluster in its own ledger.
const OWN: &str = "own";

/// Changes come in bursts; one look after this long serves them all.
const SETTLES: Duration = Duration::from_secs(1);

/// What is kept of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamespaceFacts {
    /// The tenant that it belongs to.
    pub(super) tenant: Option<String>,
    /// What its pods may do, as it says.
    pub(super) pod_security: Option<String>,
    /// What Portolan made it say of that, if it did.
    pub(super) pod_security_set: Option<String>,
    /// What it lets the tenant have beside the offer.
    pub(super) allowances: Allowances,
    pub(super) terminating: bool,
}

impl NamespaceFacts {
    fn of(namespace: &Namespace) -> Self {
        let labels = namespace.metadata.labels.as_ref();
        let annotations = namespace.metadata.annotations.as_ref();
        Self {
            tenant: labels.and_then(|labels| labels.get(TENANT_LABEL).cloned()),
            pod_security: labels.and_then(|labels| labels.get(POD_SECURITY_LABEL).cloned()),
            pod_security_set: annotations.and_then(|all| all.get(POD_SECURITY_SET).cloned()),
            allowances: Allowances::of(namespace),
            terminating: namespace.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// Everything that is watched. All but ForeignClusters and classes only from the moment on when there is a consumer.
pub(super) struct Known {
    pub(super) clusters: Index<ForeignCluster>,
    pub(super) classes: Index<SharingClass>,
    pub(super) namespaces: Index<NamespaceFacts>,
    pub(super) quotas: Index<ResourceQuota>,
    pub(super) ranges: Index<LimitRange>,
    pub(super) offers: Index<ResourceOffer>,
    /// What pods request that are missing, by ReplicaSet and by Job; nothing for most.
    pub(super) replica_sets: Index<Option<Amounts>>,
    pub(super) jobs: Index<Option<Amounts>>,
    /// Whether each storage class is the default one.
    pub(super) storage: Index<bool>,
    ledger: Ledger,
    room: Arc<ClusterFeed>,
    listed: Listed,
    begun: Published<bool>,
}

impl Known {
    /// Starts watching.
    pub(super) fn watch(client: &Client, queue: &Queue<String>, seed: Seed, tasks: &mut JoinSet<()>) -> Self {
        let ledger = Ledger::default();
        let room = ledger.open(OWN);
        let begun = Published::default();
        let known = Self {
            clusters: Index::default(),
            classes: Index::default(),
            namespaces: Index::default(),
            quotas: Index::default(),
            ranges: Index::default(),
            offers: Index::default(),
            replica_sets: Index::default(),
            jobs: Index::default(),
            storage: Index::default(),
            listed: room.listed(),
            ledger,
            room,
            begun: begun.clone(),
        };
        let ours = || Config::default().labels(TENANT_LABEL);
        let watching = Watching { client, queue, seed, begun };
        watching.at_once(tasks, known.clusters.clone());
        watching.at_once(tasks, known.classes.clone());
        watching.later(
            tasks,
            Config::default(),
            |each: Namespace| NamespaceFacts::of(&each),
            &known.namespaces,
        );
        watching.later(tasks, ours(), |quota: ResourceQuota| quota, &known.quotas);
        watching.later(tasks, ours(), |range: LimitRange| range, &known.ranges);
        watching.later(tasks, Config::default(), |offer: ResourceOffer| offer, &known.offers);
        watching.later(tasks, Config::default(), |each: StorageClass| is_default(&each), &known.storage);
        watching.later(
            tasks,
            Config::default(),
            |each: ReplicaSet| missing_replicas(&each),
            &known.replica_sets,
        );
        watching.later(tasks, Config::default(), |each: Job| missing_of_job(&each), &known.jobs);
        watching.room::<Node>(tasks, &known.room, ClusterFeed::nodes);
        watching.room::<Pod>(tasks, &known.room, ClusterFeed::pods);
        known
    }

    /// There is a consumer: everything is watched from now on.
    pub(super) fn begin(&self) {
        self.begun.set(true);
    }

    /// Whether there ever was a consumer.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.get()
    }

    /// Whether all that a plan rests on has been listed. A cluster may do without classes.
    pub(super) fn is_synced(&self) -> bool {
        let classes = self.classes.synced() || self.classes.health().is_not_served();
        classes
            && self.clusters.synced()
            && self.namespaces.synced()
            && self.quotas.synced()
            && self.ranges.synced()
            && self.offers.synced()
            && self.storage.synced()
            && self.listed.all()
    }

    /// What pods of a namespace request that do not exist and are to. It is a hint: most of them come a moment later.
    pub(super) fn wanted(&self, namespace: &str) -> Amounts {
        let mut wanted = Amounts::default();
        for index in [&self.replica_sets, &self.jobs] {
            index.for_each_in(namespace, |_, missing| {
                missing.iter().for_each(|missing| wanted.add(missing, 1));
            });
        }
        wanted
    }

    /// Asks what nodes and pods take and leave.
    pub(super) fn room<T>(&self, ask: impl FnOnce(&Book, &str) -> T) -> T {
        self.ledger.transact(|book| ask(book, OWN))
    }
}

/// What the pods request that a ReplicaSet cannot create.
fn missing_replicas(set: &ReplicaSet) -> Option<Amounts> {
    let (spec, status) = (set.spec.as_ref()?, set.status.as_ref()?);
    let fails =
        |condition: &ReplicaSetCondition| condition.type_ == "ReplicaFailure" && condition.status == "True";
    status.conditions.as_ref()?.iter().find(|condition| fails(condition))?;
    let missing = spec.replicas.unwrap_or(1).saturating_sub(status.replicas);
    requests(spec.template.as_ref()?.spec.as_ref()?, missing)
}

/// What the pods request that a Job is to have at the same time, and has not.
fn missing_of_job(job: &Job) -> Option<Amounts> {
    let (spec, status) = (job.spec.as_ref()?, job.status.clone().unwrap_or_default());
    let finished = status.conditions.iter().flatten().any(|condition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    });
    if finished || spec.suspend == Some(true) {
        return None;
    }
    let rest = spec.completions.map_or(i32::MAX, |all| all.saturating_sub(status.succeeded.unwrap_or(0)));
    let missing = spec.parallelism.unwrap_or(1).min(rest).saturating_sub(status.active.unwrap_or(0));
    requests(spec.template.spec.as_ref()?, missing)
}

fn requests(spec: &PodSpec, pods: i32) -> Option<Amounts> {
    let shape = PodShape::of_spec(spec).ok().filter(|_| pods > 0)?;
    let mut requests = Amounts::default();
    requests.add(&shape.requests, i64::from(pods));
    Some(requests)
}

fn is_default(class: &StorageClass) -> bool {
    let annotations = class.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get("storageclass.kubernetes.io/is-default-class"))
        .is_some_and(|value| value == "true")
}

/// What watches have in common.
struct Watching<'a> {
    client: &'a Client,
    queue: &'a Queue<String>,
    seed: Seed,
    begun: Published<bool>,
}

impl Watching<'_> {
    fn at_once<K>(&self, tasks: &mut JoinSet<()>, index: Index<K>)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        tasks.spawn(self.follow(Config::default(), Box::new(|object: K| object), index));
    }

    fn later<K, T>(
        &self,
        tasks: &mut JoinSet<()>,
        config: Config,
        project: impl Fn(K) -> T + Send + 'static,
        index: &Index<T>,
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let follow = self.follow(config, Box::new(project), index.clone());
        tasks.spawn(after(self.begun.clone(), follow));
    }

    fn follow<K, T>(
        &self,
        config: Config,
        project: Box<dyn Fn(K) -> T + Send>,
        index: Index<T>,
    ) -> impl Future<Output = ()> + Send + use<K, T>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let (health, queue) = (index.health().clone(), self.queue.clone());
        let take = move |change| {
            index.take(change);
            queue.add_after(ALL.to_owned(), SETTLES);
        };
        let seed = self.seed.child(&K::plural(&()));
        follow_with(Api::<K>::all(self.client.clone()), config, project, take, seed, health)
    }

    fn room<K: Watched + Sync>(
        &self,
        tasks: &mut JoinSet<()>,
        room: &Arc<ClusterFeed>,
        tell: fn(&ClusterFeed, portolan_runtime::Change<K::Facts>),
    ) {
        let (room, queue) = (Arc::clone(room), self.queue.clone());
        let take = move |change| {
            tell(&room, change);
            queue.add_after(ALL.to_owned(), SETTLES);
        };
        let seed = self.seed.child(K::URL_PATH_SEGMENT);
        let api = Api::<K>::all(self.client.clone());
        let follow = follow_with(api, Config::default(), K::facts, take, seed, Default::default());
        tasks.spawn(after(self.begun.clone(), follow));
    }
}

/// Does something from the moment on when there is a consumer.
async fn after(begun: Published<bool>, follow: impl Future<Output = ()>) {
    begun.until(true).await;
    follow.await;
}

/// The key of what enforces an offer in a namespace.
pub(super) fn enforced_key(namespace: &str) -> Key {
    Key::new(namespace, super::ENFORCED_NAME)
}

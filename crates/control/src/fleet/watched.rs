//! The kinds that are watched in every member. Each capability registers its own.

use super::readable::Watches;
use super::{CopyMeta, MemberEvent, Needs};
use crate::capacity::ClusterFeed;
use crate::names::WORKLOAD_LABEL;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_runtime::{
    Change, Index, Key, Places, Published, Seed, WatchHealth, follow_places, follow_with,
};
use serde::de::DeserializeOwned;
use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::task::JoinSet;

/// A kind that is watched in every member.
pub(crate) trait Watched:
    k8s_openapi::Resource + kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static
{
    /// What is kept of an object.
    type Facts: Send + Sync + 'static;

    /// The labels of the objects that are watched, for the hub of this identity; nothing for all objects.
    fn selector(_hub: &str) -> Option<String> {
        None
    }

    /// What is kept of an object.
    fn facts(self) -> Self::Facts;

    /// How the objects are watched that belong to a namespace, where not all may be.
    fn in_place(client: Client, place: &str, config: watcher::Config) -> (Api<Self>, watcher::Config);

    /// What a change of an object means to controllers. It is asked of what the object was and of what it is now.
    fn event(_key: &Key, _facts: &Self::Facts) -> Option<MemberEvent> {
        None
    }
}

/// The name of a resource, as it stands in paths and in rules of RBAC.
pub(crate) const fn resource<K: k8s_openapi::Resource>() -> &'static str {
    K::URL_PATH_SEGMENT
}

/// One kind that is watched in every member, and what for.
#[derive(Clone, Copy)]
pub(crate) struct Registration {
    /// Its API group; empty for the core group.
    pub(crate) group: &'static str,
    /// The name of the resource.
    pub(crate) resource: &'static str,
    /// What it is watched for.
    pub(crate) why: &'static str,
    /// What its objects are, if they are copies of objects of the hub.
    pub(crate) copies: Option<CopyKind>,
    start: fn(&mut Starting<'_>),
}

/// Copies, and whose they are.
pub(crate) type ListedCopies = Vec<(Key, CopyMeta)>;

/// Which copies are meant. The index of the copies is held meanwhile: of other locks, it may take those alone that nothing is
/// taken under.
pub(crate) type CopyTest<'a> = dyn Fn(&Key, &CopyMeta) -> bool + 'a;

/// A kind whose objects in members are copies of objects of the hub.
#[derive(Clone, Copy)]
pub(crate) struct CopyKind {
    /// The kind.
    pub(crate) name: &'static str,
    /// The kind in the hub.
    pub(crate) owner: &'static str,
    /// Whether pods belong to the copies.
    pub(crate) runs_pods: bool,
    /// What must be known of a member before anything is decided about its copies.
    pub(crate) needs: Needs,
    /// What a hub does with the copies in namespaces that are open to it.
    pub(crate) why: &'static str,
    /// The copies in a member that pass a test, once they have been listed.
    pub(crate) list: fn(&Indexes, &CopyTest<'_>) -> Option<ListedCopies>,
    /// The namespaces of a member that hold copies.
    pub(crate) namespaces: fn(&Indexes) -> BTreeSet<String>,
}

/// What a hub does with an object that it keeps: it is applied on the server's side, which creates it if it does not exist, and
/// deleted.
pub(crate) const KEEP: &[&str] = &["get", "create", "patch", "delete"];

impl Registration {
    /// A kind that is kept in an index.
    pub(crate) const fn index<K: Watched>(why: &'static str) -> Self {
        Self::new::<K>(why, |member| member.index::<K>())
    }

    /// A kind whose changes go to the ledger.
    pub(crate) const fn room<K: Watched>(why: &'static str, start: fn(&mut Starting<'_>)) -> Self {
        Self::new::<K>(why, start)
    }

    const fn new<K: Watched>(why: &'static str, start: fn(&mut Starting<'_>)) -> Self {
        Self { group: K::GROUP, resource: K::URL_PATH_SEGMENT, why, copies: None, start }
    }

    /// The same, whose objects are copies.
    pub(crate) const fn of_copies(self, copies: CopyKind) -> Self {
        Self { copies: Some(copies), ..self }
    }

    pub(super) fn start(&self, starting: &mut Starting<'_>) {
        (self.start)(starting);
    }
}

/// What tells of changes in a member.
pub(super) type EventSink = Arc<dyn Fn(MemberEvent) + Send + Sync>;

/// A member whose watches are being started.
pub(crate) struct Starting<'a> {
    pub(super) client: &'a Client,
    pub(super) hub: &'a str,
    pub(super) seed: Seed,
    pub(super) sink: EventSink,
    pub(super) room: Arc<ClusterFeed>,
    /// Whether a summary says what nodes have and what others' pods take of it.
    pub(super) is_reported: bool,
    /// Where it may be looked at; nothing for everywhere.
    pub(super) places: Option<Published<Places>>,
    pub(super) watches: &'a mut Watches,
    pub(super) indexes: BTreeMap<TypeId, Box<dyn Any + Send + Sync>>,
    pub(super) tasks: JoinSet<()>,
}

impl Starting<'_> {
    fn index<K: Watched>(&mut self) {
        let index = Index::<K::Facts>::fed_by(self.watches.add(resource::<K>()));
        self.indexes.insert(TypeId::of::<K>(), Box::new(index.clone()));
        let sink = Arc::clone(&self.sink);
        self.follow::<K>(K::selector(self.hub), index.health().clone(), move |change| {
            for changed in index.replace(change) {
                let event = |facts: &Option<Arc<K::Facts>>| {
                    facts.as_ref().and_then(|facts| K::event(&changed.key, facts))
                };
                let (before, after) = (event(&changed.before), event(&changed.after));
                before
                    .filter(|before| after.as_ref() != Some(before))
                    .into_iter()
                    .chain(after)
                    .for_each(&*sink);
            }
        });
    }

    /// Watches what nodes have for pods: where nodes are not to be seen, an offer or a summary says it.
    pub(crate) fn nodes(&mut self) {
        if self.places.is_none() && !self.is_reported {
            self.feed::<Node>(ClusterFeed::nodes);
        }
    }

    /// Watches what pods take of nodes: where a summary says it, only those of workloads of hubs.
    pub(crate) fn pods(&mut self) {
        self.feed::<Pod>(ClusterFeed::pods);
    }

    /// Watches a kind that the ledger takes the changes of.
    fn feed<K: Watched>(&mut self, take: fn(&ClusterFeed, Change<K::Facts>)) {
        let selector = if self.is_reported { Some(WORKLOAD_LABEL.to_owned()) } else { K::selector(self.hub) };
        let health = self.watches.add(resource::<K>());
        let (sink, room) = (Arc::clone(&self.sink), Arc::clone(&self.room));
        self.follow::<K>(selector, health, move |change| {
            take(&room, change);
            sink(MemberEvent::Capacity);
        });
    }

    fn follow<K: Watched>(
        &mut self,
        selector: Option<String>,
        health: WatchHealth,
        take: impl FnMut(Change<K::Facts>) + Send + 'static,
    ) {
        let config = watcher::Config { label_selector: selector, ..watcher::Config::default() };
        let (client, seed) = (self.client.clone(), self.seed.child(resource::<K>()));
        match self.places.clone() {
            None => {
                let api = Api::<K>::all(client);
                self.tasks.spawn(follow_with(api, config, K::facts, take, seed, health));
            }
            Some(places) => {
                let in_place = move |place: &str| K::in_place(client.clone(), place, config.clone());
                self.tasks.spawn(follow_places(places, in_place, K::facts, take, seed, health));
            }
        }
    }
}

/// What is kept of a member, by kind.
#[derive(Clone)]
pub(crate) struct Indexes(pub(super) Arc<BTreeMap<TypeId, Box<dyn Any + Send + Sync>>>);

impl Indexes {
    /// The index of a kind; one that is never listed if nobody registered the kind.
    pub(crate) fn get<K: Watched>(&self) -> Index<K::Facts> {
        let index = self.0.get(&TypeId::of::<K>()).and_then(|index| index.downcast_ref::<Index<K::Facts>>());
        index.cloned().unwrap_or_default()
    }
}

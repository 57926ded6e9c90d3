//! One member: its client, and what is known of it.

use super::actuator::{Actuator, Spawner};
use super::gate::Gate;
use super::health::probe;
use super::prometheus::ask;
use super::readable::{Needs, Readable, Watches, supervise};
use super::rights::{self, MissingRights, NeededRight};
use super::traffic::TrafficReport;
use super::watched::{CopyKind, CopyTest, EventSink, Indexes, KEEP, Registration, Starting, Watched};
use super::{CopyMeta, Health, MemberEvent, Traffic};
use crate::capacity::{Book, ClusterFeed, Ledger};
use crate::dependencies::Propagated;
use crate::names::TRAFFIC_LABEL;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::ResourceOffer;
use portolan_api::foreigncluster::TrafficSource;
use portolan_runtime::{Clock, Index, Key, Seed, WatchHealth, follow, follow_with};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A member of which a task failed is connected again so long after it was connected.
const CONNECTED_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// A cluster of the fleet, watched for as long as this is kept.
pub struct Member {
    /// The name of its ForeignCluster.
    pub name: String,
    /// A client for it.
    pub client: Client,
    /// The traffic that its services tell.
    pub traffic: Traffic,
    /// The ConfigMaps and Secrets that this hub has propagated there.
    pub propagated: Propagated,
    /// The traffic that its Prometheus tells, if one is asked; it goes before the other.
    pub asked_traffic: Traffic,
    /// What it offers to this cluster, if this cluster is a tenant of it.
    pub(crate) offers: Option<Index<ResourceOffer>>,
    /// Whether it answers.
    pub health: Health,
    /// The rights that the hub lacks where it holds copies.
    pub(super) missing_rights: MissingRights,
    /// How much it is asked to do at the same time.
    pub(crate) gate: Arc<Gate>,
    /// What is to be done in it.
    pub(crate) actuator: Actuator,
    /// Since when it is watched through this client: a change of its ForeignCluster makes another one.
    pub since: Instant,
    registrations: &'static [Registration],
    indexes: Indexes,
    watches: Watches,
    room: Arc<ClusterFeed>,
    _tasks: JoinSet<()>,
}

/// What every member of a fleet is watched with.
#[derive(Clone)]
pub(crate) struct Watcher {
    /// The identity of the hub.
    pub(crate) hub: String,
    /// The kinds that are watched.
    pub(crate) registrations: &'static [Registration],
    /// Where the numbers of members go.
    pub(crate) ledger: Ledger,
    /// What runs the actuators of members.
    pub(crate) spawner: Spawner,
    pub(crate) clock: Clock,
    pub(crate) seed: Seed,
}

impl Watcher {
    /// Starts watching a member.
    pub(crate) fn watch(
        &self,
        name: &str,
        client: Client,
        source: Option<&TrafficSource>,
        tenant_namespace: Option<&str>,
        on_event: impl Fn(MemberEvent) + Send + Sync + 'static,
    ) -> Member {
        let sink: EventSink = Arc::new(on_event);
        let (health, traffic, asked_traffic) = (Health::default(), Traffic::default(), Traffic::default());
        let (room, seed) = (self.ledger.open(name), self.seed.child(name));
        let mut watches = Watches::new(&health);
        let mut starting = Starting {
            client: &client,
            hub: &self.hub,
            seed,
            sink: Arc::clone(&sink),
            room: Arc::clone(&room),
            watches: &mut watches,
            indexes: BTreeMap::new(),
            tasks: JoinSet::new(),
        };
        self.registrations.iter().for_each(|each| each.start(&mut starting));
        let Starting { indexes, mut tasks, .. } = starting;
        let indexes = Indexes(Arc::new(indexes));
        let (heard, busy) = (traffic.clone(), Arc::clone(&sink));
        tasks.spawn(follow(
            Api::<Service>::all(client.clone()),
            watcher::Config::default().labels(TRAFFIC_LABEL),
            |service| TrafficReport::of(&service),
            move |change| {
                heard.take(change).into_iter().for_each(|namespace| busy(MemberEvent::Traffic(namespace)))
            },
            seed.child("traffic"),
        ));
        let propagated =
            Propagated::new(client.clone(), &self.hub, seed.child("dependencies"), Arc::clone(&sink));
        let offers = tenant_namespace.map(|namespace| {
            let (offers, sink) = (Index::<ResourceOffer>::default(), Arc::clone(&sink));
            let (index, health) = (offers.clone(), offers.health().clone());
            tasks.spawn(follow_with(
                Api::<ResourceOffer>::namespaced(client.clone(), namespace),
                watcher::Config::default(),
                |offer| offer,
                move |change| {
                    index.take(change);
                    sink(MemberEvent::Offer);
                },
                seed.child("resourceoffers"),
                health,
            ));
            offers
        });
        if let Some(source) = source {
            let (query, sink) = (source.prometheus.clone(), Arc::clone(&sink));
            tasks.spawn(ask(
                client.clone(),
                query,
                asked_traffic.clone(),
                move |what| sink(what),
                self.clock.clone(),
            ));
        }
        let (after, changed) = (Arc::clone(&sink), watches.clone());
        let heard = move |what: MemberEvent| {
            changed.look_again();
            after(what);
        };
        let needed = self.registrations.iter().filter(|each| each.copies.is_some());
        let needed =
            needed.map(|each| NeededRight { group: each.group, resource: each.resource, verbs: KEEP });
        let (registrations, held) = (self.registrations, indexes.clone());
        let held = move || {
            let copies = registrations.iter().filter_map(|each| each.copies);
            copies.flat_map(|copies| (copies.namespaces)(&held)).collect()
        };
        let missing_rights = MissingRights::default();
        let alarm = Arc::clone(&sink);
        tasks.spawn(rights::check(client.clone(), needed.collect(), held, missing_rights.clone(), alarm));
        tasks.spawn(probe(client.clone(), health.clone(), heard, self.clock.clone()));
        let gate = Arc::<Gate>::default();
        let mut supervisor = JoinSet::new();
        supervisor.spawn(supervise(name.to_owned(), tasks, watches.clone(), move |what| sink(what)));
        Member {
            name: name.to_owned(),
            client,
            traffic,
            propagated,
            asked_traffic,
            offers,
            health,
            missing_rights,
            actuator: Actuator::new(Arc::clone(&gate), self.spawner.clone()),
            gate,
            since: Instant::now(),
            registrations: self.registrations,
            indexes,
            watches,
            room,
            _tasks: supervisor,
        }
    }
}

impl Member {
    /// What is kept of the objects of a kind.
    pub(crate) fn index<K: Watched>(&self) -> Index<K::Facts> {
        self.indexes.get::<K>()
    }

    /// The kinds of which it holds copies.
    pub(crate) fn copy_kinds(&self) -> impl Iterator<Item = CopyKind> + use<> {
        self.registrations.iter().filter_map(|each| each.copies)
    }

    /// The copies of a kind, once they have been listed.
    pub(crate) fn copies(&self, kind: CopyKind) -> Option<Vec<(Key, CopyMeta)>> {
        self.copies_that(kind, &|_, _| true)
    }

    /// The copies of a kind that pass a test, once they have been listed: the others are not cloned.
    pub(crate) fn copies_that(&self, kind: CopyKind, test: &CopyTest<'_>) -> Option<Vec<(Key, CopyMeta)>> {
        (kind.list)(&self.indexes, test)
    }

    /// Whether one of its tasks failed, and that long enough after it was connected that another connection is due.
    pub(super) fn is_to_be_connected_again(&self) -> bool {
        self.watches.has_failed() && self.since.elapsed() >= CONNECTED_AGAIN_AFTER
    }

    /// Whether all that is watched is known, and if not, why.
    #[must_use]
    pub fn all_readable(&self) -> Readable {
        self.watches.all_readable()
    }

    /// Whether what a decision needs is known, and if not, why.
    #[must_use]
    pub fn readable(&self, needs: Needs) -> Readable {
        self.watches.readable(needs)
    }

    /// How its watches stand.
    pub(crate) fn watch_health(&self) -> impl Iterator<Item = &WatchHealth> {
        self.watches.health()
    }

    /// Since when lists tell what it holds; what was listed before may be of the past.
    pub(crate) fn listed_since(&self) -> Instant {
        self.watches.since()
    }

    /// Whether it answers, and what a decision needs is known.
    pub(crate) fn is_known(&self, needs: Needs) -> bool {
        self.health.is_reachable() && self.readable(needs) == Readable::Known
    }

    /// Whether the room of its cluster in the ledger is what its watches tell: another connection may have taken over.
    pub(crate) fn is_in(&self, book: &Book) -> bool {
        self.room.is_current(book)
    }
}

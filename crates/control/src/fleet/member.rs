//! One member: its client, and what is known of it.

use super::actuator::{Actuator, Spawner};
use super::gate::Gate;
use super::health::probe;
use super::prometheus::ask;
use super::readable::{Needs, Readable, Watches, supervise};
use super::report::{Asked, Asking, Reported};
use super::rights::{self, MissingRights, NeededRight};
use super::summaries::Summaries;
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
use portolan_api::resourceoffer::OFFER_NAME;
use portolan_core::capacity::Amounts;
use portolan_runtime::{
    Clock, Index, Key, Places, Published, Seed, WatchHealth, follow, follow_places, follow_with,
};
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
    /// What it reports of its distance to the others.
    pub(super) reported: Reported,
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
        tenant: Option<&TenantOf>,
        asked: Asked,
        on_event: impl Fn(MemberEvent) + Send + Sync + 'static,
    ) -> Member {
        let sink: EventSink = Arc::new(on_event);
        let (health, traffic, asked_traffic) = (Health::default(), Traffic::default(), Traffic::default());
        let is_reported = asked.summary.is_some();
        let room = if is_reported { self.ledger.open_reported(name) } else { self.ledger.open(name) };
        let seed = self.seed.child(name);
        let mut watches = Watches::new(&health);
        let confined = tenant.filter(|tenant| !tenant.sees_cluster);
        let places = Published::<Places>::default();
        let mut starting = Starting {
            client: &client,
            hub: &self.hub,
            seed,
            sink: Arc::clone(&sink),
            room: Arc::clone(&room),
            is_reported,
            places: confined.map(|_| places.clone()),
            watches: &mut watches,
            indexes: BTreeMap::new(),
            tasks: JoinSet::new(),
        };
        self.registrations.iter().for_each(|each| each.start(&mut starting));
        let Starting { indexes, mut tasks, .. } = starting;
        let indexes = Indexes(Arc::new(indexes));
        let (heard, busy) = (traffic.clone(), Arc::clone(&sink));
        let measured = watcher::Config::default().labels(TRAFFIC_LABEL);
        let take = move |change| {
            heard.take(change).into_iter().for_each(|namespace| busy(MemberEvent::Traffic(namespace)));
        };
        let report = |service: Service| TrafficReport::of(&service);
        if confined.is_some() {
            let of = client.clone();
            let in_place = move |place: &str| (Api::namespaced(of.clone(), place), measured.clone());
            let seed = seed.child("traffic");
            tasks.spawn(follow_places(places.clone(), in_place, report, take, seed, WatchHealth::default()));
        } else {
            let all = Api::<Service>::all(client.clone());
            tasks.spawn(follow(all, measured, report, take, seed.child("traffic")));
        }
        let propagated =
            Propagated::new(client.clone(), &self.hub, seed.child("dependencies"), Arc::clone(&sink));
        let offers = tenant.map(|tenant| {
            // Where nodes are not seen, the offer tells what they would.
            let health = match confined {
                Some(_) => watches.add("nodes"),
                None => WatchHealth::default(),
            };
            let (offers, sink) = (Index::<ResourceOffer>::fed_by(health.clone()), Arc::clone(&sink));
            let (index, home, told) =
                (offers.clone(), tenant.namespace.clone(), confined.map(|_| Arc::clone(&room)));
            tasks.spawn(follow_with(
                Api::<ResourceOffer>::namespaced(client.clone(), &tenant.namespace),
                watcher::Config::default(),
                |offer| offer,
                move |change| {
                    index.take(change);
                    if let Some(room) = &told {
                        let offer = index.get(&Key::new(&home, OFFER_NAME));
                        tell_room(room, offer.as_deref());
                        let open = open_namespaces(offer.as_deref(), &home);
                        if open.is_some() {
                            places.set(open);
                        }
                        sink(MemberEvent::Capacity);
                    }
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
        let reported = Reported::default();
        if asked.others.is_none() {
            // What it reported to an earlier run does not count any more.
            reported.clear();
        }
        if asked.is_anything() {
            let summaries = asked.summary.map(|request| {
                let (health, sink) = (watches.add("nodes"), Arc::clone(&sink));
                Summaries::new(request, Arc::clone(&room), health, sink)
            });
            let asking = Asking {
                client: client.clone(),
                hub: self.hub.clone(),
                member: name.to_owned(),
                others: asked.others,
                summaries,
                reported: reported.clone(),
                health: health.clone(),
                clock: self.clock.clone(),
            };
            tasks.spawn(asking.run());
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
            reported,
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

/// What this cluster is to a member that it is a tenant of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TenantOf {
    /// Its namespace there.
    pub(crate) namespace: String,
    /// Whether it may look at nodes, and at pods and copies in all namespaces.
    pub(crate) sees_cluster: bool,
}

/// Tells the ledger what is offered.
fn tell_room(room: &ClusterFeed, offer: Option<&ResourceOffer>) {
    let spec = offer.map(|offer| &offer.spec);
    let offered = spec.and_then(|spec| Amounts::parse(&spec.resources).ok()).unwrap_or_default();
    room.offer(&offered, spec.map(|spec| spec.labels.clone()).unwrap_or_default());
}

/// The namespaces that an offer is for, but that of the offer itself; nothing where nobody says.
fn open_namespaces(offer: Option<&ResourceOffer>, home: &str) -> Places {
    let status = offer?.status.as_ref()?;
    let all = status.namespaces.iter().map(|namespace| namespace.name.clone());
    Some(all.filter(|name| name != home).collect())
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

//! The controller of a provider: one look plans all offers, then each is written and enforced.

use super::bounds::{Allowances, bounds, is_offered};
use super::classes::{Problem, Terms, plain, terms};
use super::enforce::{Enforced, Writer};
use super::known::{ALL, Known};
use super::objects::words;
use super::{tenant_namespace, told};
use kube::Client;
use portolan_api::resourceoffer::{OFFER_NAME, OfferedStorageClass, ResourceOfferSpec};
use portolan_api::{ForeignCluster, Reason, SharingClass};
use portolan_core::capacity::Amounts;
use portolan_core::sharing::{Consumer, Rule, Supply, offers};
use portolan_runtime::{Action, CallError, Clock, EventType, Key, Queue, Recorder, Seed, supervise, work};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How soon to look again while not everything is listed.
const SYNCS: Duration = Duration::from_secs(1);

/// How often to look without any news: small rises are due, and offers are to be renewed.
const RESYNC_PERIOD: Duration = Duration::from_secs(60);

/// An offer that has stood for so long rises also by little.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// Keeps the offers to all consumers, and enforces them, for ever. Dropped, it stops at once.
pub async fn provide(client: Client, clock: Clock, seed: Seed) {
    let queue = Queue::<String>::new(seed.child("offers"));
    let mut tasks = JoinSet::new();
    let known = Known::watch(&client, &queue, seed, &mut tasks);
    let recorder = Recorder::new(client.clone(), clock.clone(), "portolan.dev/sharing");
    let writer = Writer { client, clock: clock.clone() };
    let provider = Provider { known, writer, recorder, standing: Mutex::default() };
    queue.add(ALL.to_owned());
    supervise(tasks, work(&queue, 1, &clock, |_| provider.reconcile())).await;
}

/// Since when an offer stands, and by which rule it was made.
#[derive(Clone, Debug)]
struct Standing {
    since: Instant,
    rule: Rule,
}

struct Provider {
    known: Known,
    writer: Writer,
    recorder: Recorder,
    standing: Mutex<BTreeMap<String, Standing>>,
}

/// A consumer, with what is shared with it and where.
pub(super) struct Tenant {
    pub(super) name: String,
    pub(super) cluster: Arc<ForeignCluster>,
    /// The namespace of its offer; whether it exists is seen in the others.
    pub(super) home: String,
    /// Its namespaces that exist and are not being deleted.
    pub(super) namespaces: BTreeSet<String>,
    pub(super) terms: Result<Terms, Problem>,
    /// What was offered before, if anything.
    before: Option<Amounts>,
}

impl Tenant {
    pub(super) fn has_home(&self) -> bool {
        self.namespaces.contains(&self.home)
    }

    /// What is shared. Where that cannot be told, the last offer stands; where nothing is, nothing.
    fn rule(&self) -> Rule {
        match &self.terms {
            Ok(terms) => terms.rule.clone(),
            Err(problem) if problem.reason == Reason::NothingShared => nothing(),
            Err(_) => self.before.clone().map_or_else(nothing, |fixed| Rule { percentage: Some(0), fixed }),
        }
    }
}

fn nothing() -> Rule {
    Rule { percentage: Some(0), fixed: Amounts::default() }
}

impl Provider {
    async fn reconcile(&self) -> Result<Action, CallError> {
        let consumers = self.consumers();
        if consumers.is_empty() && !self.known.has_begun() {
            let synced = self.known.clusters.synced();
            return Ok(if synced { Action::AwaitChange } else { Action::RequeueAfter(SYNCS) });
        }
        self.known.begin();
        if !self.known.is_synced() {
            return Ok(Action::RequeueAfter(SYNCS));
        }
        let classes = self.classes();
        let tenants: Vec<Tenant> =
            consumers.into_iter().map(|(name, cluster)| self.tenant(name, cluster, &classes)).collect();
        let plan = self.plan(&tenants);
        let mut failed = None;
        for tenant in &tenants {
            let offer = plan.get(&tenant.name).cloned().unwrap_or_default();
            if let Err(error) = self.keep(tenant, &offer).await {
                if !error.is_conflict() {
                    let why = portolan_runtime::chain(&error);
                    tracing::warn!(consumer = tenant.name, error = why, "an offer is not kept yet");
                }
                failed.get_or_insert(error);
            }
        }
        let cleaned = self.remove_leftovers(&tenants).await;
        let classes_told = self.tell_classes(&classes, &tenants).await;
        match failed.map_or(cleaned.and(classes_told), Err) {
            Err(error) if error.is_conflict() => Ok(Action::RequeueAfter(SYNCS)),
            result => result.map(|()| Action::RequeueAfter(RESYNC_PERIOD)),
        }
    }

    /// The clusters that consume from this one.
    fn consumers(&self) -> Vec<(String, Arc<ForeignCluster>)> {
        let all = self.known.clusters.all();
        let consuming = all.into_iter().filter(|(_, cluster)| cluster.spec.incoming.is_some());
        consuming.map(|(key, cluster)| (key.name, cluster)).collect()
    }

    fn classes(&self) -> Vec<Arc<SharingClass>> {
        self.known.classes.all().into_iter().map(|(_, class)| class).collect()
    }

    fn tenant(&self, name: String, cluster: Arc<ForeignCluster>, classes: &[Arc<SharingClass>]) -> Tenant {
        let incoming = cluster.spec.incoming.clone().unwrap_or_default();
        let home = incoming.tenant_namespace.unwrap_or_else(|| tenant_namespace(&name));
        let opened: BTreeSet<String> = incoming.namespaces.into_iter().chain([home.clone()]).collect();
        let mut namespaces = BTreeSet::new();
        self.known.namespaces.for_each(|key, facts| {
            // What the label says of a namespace goes before what ForeignClusters say.
            let is_own = match &facts.tenant {
                Some(tenant) => *tenant == name,
                None => opened.contains(&key.name),
            };
            if is_own && !facts.terminating {
                namespaces.insert(key.name.clone());
            }
        });
        let before = self.known.offers.get(&Key::new(&home, OFFER_NAME));
        let before = before.and_then(|offer| Amounts::parse(&offer.spec.resources).ok());
        let terms = terms(&cluster, classes);
        Tenant { name, cluster, home, namespaces, terms, before }
    }

    /// What is offered to each consumer now.
    fn plan(&self, tenants: &[Tenant]) -> BTreeMap<String, Amounts> {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        standing.retain(|name, _| tenants.iter().any(|tenant| tenant.name == *name));
        let (supply, consumers) = self.known.room(|book, own| {
            let summary = book.summary(own).unwrap_or_default();
            let consumer = |tenant: &Tenant| {
                let rule = tenant.rule();
                let stands = standing.get(&tenant.name);
                let settled = stands
                    .is_some_and(|stands| stands.rule != rule || stands.since.elapsed() >= SETTLED_AFTER);
                let used = book.used_in(own, tenant.namespaces.iter().map(String::as_str));
                (tenant.name.clone(), Consumer { rule, used, offered: tenant.before.clone(), settled })
            };
            let consumers: BTreeMap<String, Consumer> = tenants.iter().map(consumer).collect();
            (Supply { whole: summary.usable, free: summary.usable_free }, consumers)
        });
        let plan = offers(&supply, &consumers);
        for (name, consumer) in consumers {
            let changed = consumer.offered.as_ref() != plan.get(&name);
            let same_rule = standing.get(&name).is_some_and(|stands| stands.rule == consumer.rule);
            if changed || !same_rule {
                standing.insert(name, Standing { since: Instant::now(), rule: consumer.rule });
            }
        }
        plan
    }

    /// Writes and enforces one offer, and tells how it stands. What enforces it comes first.
    async fn keep(&self, tenant: &Tenant, offered: &Amounts) -> Result<(), CallError> {
        if !tenant.has_home() {
            return self
                .writer
                .tell_cluster(tenant, offered, &Enforced::default(), &[told::no_tenant(tenant)])
                .await;
        }
        let class = tenant.terms.as_ref().map_or_else(|_| plain(), |terms| terms.class.clone());
        let storage = self.known.storage.all();
        let storage_names = || storage.iter().map(|(key, _)| key.name.as_str());
        let allowances = Allowances::given(&class, storage_names());
        let defaults = (&class.default_requests, &class.default_limits);
        for namespace in &tenant.namespaces {
            let facts = self.known.namespaces.get(&Key::cluster(namespace));
            if facts.as_ref().is_some_and(|facts| !facts.has_pod_security) {
                self.writer.set_pod_security(namespace, class.pod_security).await?;
            }
            self.writer.keep_limit_range(&self.known, namespace, &tenant.name, defaults).await?;
            // No pods run in its own namespace.
            if *namespace != tenant.home && facts.is_some_and(|facts| facts.allowances != allowances) {
                self.writer.set_allowances(namespace, &allowances).await?;
            }
        }
        let bounds = bounds(&class, storage_names());
        let enforced = self.writer.keep_quotas(&self.known, tenant, offered, &bounds).await?;
        let storage = storage.iter().filter(|(key, _)| is_offered(&class, &key.name));
        let spec = ResourceOfferSpec {
            consumer: tenant.name.clone(),
            resources: offered.quantities(),
            storage_classes: storage
                .map(|(key, default)| OfferedStorageClass { name: key.name.clone(), default: **default })
                .collect(),
            labels: class.labels.clone(),
            expires_at: None,
        };
        self.writer.keep_offer(&self.known, &tenant.home, spec).await?;
        if let Some(before) = tenant.before.as_ref().filter(|before| *before != offered) {
            let note = format!("the offer is {} now; it was {}", words(offered), words(before));
            let cluster = tenant.cluster.as_ref();
            self.recorder.record(cluster, EventType::Normal, Reason::OfferChanged, &note).await;
        }
        let ready = told::ready(&enforced);
        self.writer.tell_offer(&self.known, tenant, offered, &enforced, &ready).await?;
        let found = told::sharing(tenant, offered, &enforced);
        self.writer.tell_cluster(tenant, offered, &enforced, &[found]).await
    }

    /// Deletes what enforced offers in namespaces that belong to no tenant any more, and offers to nobody.
    async fn remove_leftovers(&self, tenants: &[Tenant]) -> Result<(), CallError> {
        // One that exists and cannot be read has not left.
        if !self.known.clusters.health().all_unreadable().is_empty() {
            return Ok(());
        }
        let owned = |namespace: &str| tenants.iter().any(|tenant| tenant.namespaces.contains(namespace));
        for (key, quota) in self.known.quotas.all() {
            if !owned(&key.namespace) && key.name == super::ENFORCED_NAME {
                self.writer.delete(quota.as_ref(), &key).await?;
            }
        }
        for (key, range) in self.known.ranges.all() {
            if !owned(&key.namespace) && key.name == super::ENFORCED_NAME {
                self.writer.delete(range.as_ref(), &key).await?;
            }
        }
        for (key, offer) in self.known.offers.all() {
            if !tenants.iter().any(|tenant| tenant.home == key.namespace) {
                self.writer.delete(offer.as_ref(), &key).await?;
            }
        }
        self.remove_allowances(tenants).await
    }

    /// Takes back what namespaces let a tenant have that is not there any more.
    async fn remove_allowances(&self, tenants: &[Tenant]) -> Result<(), CallError> {
        let mut left = Vec::new();
        self.known.namespaces.for_each(|key, facts| {
            let is_owned = tenants.iter().any(|tenant| tenant.namespaces.contains(&key.name));
            if !facts.allowances.is_empty() && !facts.terminating && !is_owned {
                left.push(key.name.clone());
            }
        });
        for namespace in left {
            self.writer.set_allowances(&namespace, &Allowances::default()).await?;
        }
        Ok(())
    }

    async fn tell_classes(&self, classes: &[Arc<SharingClass>], tenants: &[Tenant]) -> Result<(), CallError> {
        for class in classes {
            self.writer.tell_class(class, told::class(class, classes, tenants)).await?;
        }
        Ok(())
    }
}

//! The controller of a provider: one look plans all offers, then each is written and enforced.

use super::bounds::{Allowances, bounds};
use super::classes::terms;
use super::enforce::{Enforced, Writer, has_pods};
use super::known::{ALL, Known};
use super::objects::words;
use super::tenants::{Claim, Tenant, divide_namespaces};
use super::{pod_security, told};
use crate::monitor::Monitor;
use crate::names::{FIELD_MANAGER, TENANT_LABEL};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{Client, Resource};
use portolan_api::resourceoffer::{OFFER_NAME, OfferedStorageClass, ResourceOfferSpec};
use portolan_api::{ForeignCluster, Reason, SharingClass};
use portolan_core::capacity::Amounts;
use portolan_core::sharing::{Consumer, Rule, Supply, offers};
use portolan_runtime::{
    Action, CallError, Clock, EventType, Key, Queue, Recorder, Seed, Term, supervise, work,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How soon to look again while not everything is listed.
const SYNCS: Duration = Duration::from_millis(200);

/// How soon to look again at what somebody else has changed meanwhile, and at rights that are being removed.
const SOON: Duration = Duration::from_secs(1);

/// How often to look without any news: small rises are due, and offers are to be renewed.
const RESYNC_PERIOD: Duration = Duration::from_secs(60);

/// An offer that has stood for so long rises also by little.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// How a provider is run.
#[derive(Clone, Debug)]
pub struct Providing {
    /// The term in whose name is written.
    pub term: Term,
    /// What is shared with clusters that nobody says more about, in percent, where no SharingClass is the default.
    pub by_default: Option<i32>,
    /// Who sees how its queue stands.
    pub monitor: Monitor,
}

/// Keeps the offers to all consumers, and enforces them, for ever. Dropped, it stops at once.
pub async fn provide(client: Client, clock: Clock, seed: Seed) {
    let providing =
        Providing { term: Term::alone(FIELD_MANAGER), by_default: None, monitor: Monitor::default() };
    provide_with(client, clock, seed, providing).await;
}

/// The same for the length of a term.
pub async fn provide_with(client: Client, clock: Clock, seed: Seed, providing: Providing) {
    let queue = Queue::<String>::new(seed.child("offers"));
    let mut tasks = JoinSet::new();
    let known = Known::watch(&client, &queue, seed, &mut tasks);
    let recorder = Recorder::new(client.clone(), clock.clone(), "portolan.dev/sharing");
    let Providing { term, by_default, monitor } = providing;
    let _shown = monitor.show_queue("ResourceOffer", &queue);
    let writer = Writer { client, clock: clock.clone(), term };
    let provider = Provider {
        known,
        writer,
        recorder,
        by_default,
        standing: Mutex::default(),
        looked: AtomicBool::new(false),
    };
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
    by_default: Option<i32>,
    standing: Mutex<BTreeMap<String, Standing>>,
    /// Whether nothing was found of consumers that left while nobody looked.
    looked: AtomicBool,
}

impl Provider {
    async fn reconcile(&self) -> Result<Action, CallError> {
        let consumers = self.consumers();
        if consumers.is_empty() && !self.known.has_begun() {
            if !self.known.clusters.synced() {
                return Ok(Action::RequeueAfter(SYNCS));
            }
            if self.looked.load(Ordering::Relaxed) || !self.writer.finds_leftovers().await? {
                self.looked.store(true, Ordering::Relaxed);
                return Ok(Action::AwaitChange);
            }
        }
        self.known.begin();
        if !self.known.is_synced() {
            return Ok(Action::RequeueAfter(SYNCS));
        }
        let classes = self.classes();
        let tenants = self.tenants(consumers, &classes);
        let plan = self.plan(&tenants);
        let mut failed = None;
        for tenant in tenants.iter().filter(|tenant| !tenant.is_leaving()) {
            let offer = plan.get(&tenant.name).cloned().unwrap_or_default();
            if let Err(error) = self.keep(tenant, &offer).await {
                if !error.is_conflict() {
                    let why = portolan_runtime::chain(&error);
                    tracing::warn!(consumer = tenant.name, error = why, "an offer is not kept yet");
                    self.tell_failure(tenant, &offer, &why).await;
                }
                failed.get_or_insert(error);
            }
        }
        let cleaned = self.remove_leftovers(&tenants).await;
        let classes_told = self.tell_classes(&classes, &tenants).await;
        match failed.map_or(cleaned.and_then(|again| classes_told.map(|()| again)), Err) {
            Err(error) if error.is_conflict() => Ok(Action::RequeueAfter(SOON)),
            result => result.map(Action::RequeueAfter),
        }
    }

    /// The clusters that consume from this one, those that came first before the others.
    fn consumers(&self) -> Vec<(String, Arc<ForeignCluster>)> {
        let all = self.known.clusters.all();
        let consuming = all.into_iter().filter(|(_, cluster)| cluster.spec.incoming.is_some());
        let mut consumers: Vec<_> = consuming.map(|(key, cluster)| (key.name, cluster)).collect();
        consumers.sort_by_key(|(name, cluster)| {
            (cluster.metadata.creation_timestamp.as_ref().map(|time| time.0), name.clone())
        });
        consumers
    }

    fn classes(&self) -> Vec<Arc<SharingClass>> {
        self.known.classes.all().into_iter().map(|(_, class)| class).collect()
    }

    fn tenants(
        &self,
        consumers: Vec<(String, Arc<ForeignCluster>)>,
        classes: &[Arc<SharingClass>],
    ) -> Vec<Tenant> {
        let claims: Vec<Claim> = consumers.iter().map(|(name, cluster)| Claim::of(name, cluster)).collect();
        let namespaces = self.known.namespaces.all();
        let namespaces = namespaces.iter().map(|(key, facts)| (key.name.as_str(), facts.as_ref()));
        let quotas = self.known.quotas.all();
        let held = quotas.iter().filter(|(key, _)| key.name == super::ENFORCED_NAME);
        let holder = |quota: &ResourceQuota| quota.meta().labels.as_ref()?.get(TENANT_LABEL).cloned();
        let holders: BTreeMap<String, String> =
            held.filter_map(|(key, quota)| Some((key.namespace.clone(), holder(quota.as_ref())?))).collect();
        let mut shares = divide_namespaces(&claims, namespaces, &holders);
        let each = |((name, cluster), claim): ((String, Arc<ForeignCluster>), Claim)| Tenant {
            namespaces: shares.own.remove(&name).unwrap_or_default(),
            taken: shares.taken.remove(&name).unwrap_or_default(),
            terms: terms(&cluster, classes, self.by_default),
            offer: self.known.offers.get(&Key::new(&claim.home, OFFER_NAME)),
            home: claim.home,
            name,
            cluster,
        };
        consumers.into_iter().zip(claims).map(each).collect()
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
                (tenant.name.clone(), Consumer { rule, used, offered: tenant.before(), settled })
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
        let class = tenant.class();
        let storage = self.known.storage.all();
        let names = || storage.iter().map(|(key, _)| key.name.as_str());
        let allowances = class.as_ref().map(|class| Allowances::given(class, names()));
        let mut limited = Ok(());
        for namespace in &tenant.namespaces {
            let facts = self.known.namespaces.get(&Key::cluster(namespace)).unwrap_or_default();
            let is_home = *namespace == tenant.home;
            let level = class.as_ref().map(|class| class.pod_security);
            if let Some(level) = pod_security::due(&facts, is_home, level) {
                limited = limited.and(self.writer.set_pod_security(namespace, level).await);
            }
            let defaults = class.as_ref().map(|class| (&class.default_requests, &class.default_limits));
            limited = limited
                .and(self.writer.keep_limit_range(&self.known, namespace, &tenant.name, defaults).await);
            // No pods run in its own namespace. Where nothing is known of the class, what is there stands.
            if let Some(allowances) =
                allowances.as_ref().filter(|given| !is_home && facts.allowances != **given)
            {
                limited = limited.and(self.writer.set_allowances(namespace, allowances).await);
            }
        }
        let bounds = class.as_ref().map(|class| bounds(class, names()));
        let enforced = self.writer.keep_quotas(&self.known, tenant, offered, bounds.as_ref()).await?;
        limited?;
        let last = tenant.offer.as_ref().map(|offer| offer.spec.clone()).unwrap_or_default();
        let (storage_classes, labels) = match &class {
            Some(class) => (self.storage(&class.storage_classes), class.labels.clone()),
            None => (last.storage_classes, last.labels),
        };
        let spec = ResourceOfferSpec {
            consumer: tenant.name.clone(),
            resources: offered.quantities(),
            storage_classes,
            labels,
            expires_at: None,
        };
        self.writer.keep_offer(&self.known, &tenant.home, spec).await?;
        if let Some(before) = tenant.before().filter(|before| before != offered) {
            let note = format!("the offer is {} now; it was {}", words(offered), words(&before));
            let cluster = tenant.cluster.as_ref();
            self.recorder.record(cluster, EventType::Normal, Reason::OfferChanged, &note).await;
        }
        let ready = told::ready(&enforced);
        self.writer.tell_offer(&self.known, tenant, offered, &enforced, &ready).await?;
        let found = told::sharing(tenant, offered, &enforced);
        self.writer.tell_cluster(tenant, offered, &enforced, &[found]).await
    }

    /// The storage classes that are offered: those named, or all.
    fn storage(&self, named: &[String]) -> Vec<OfferedStorageClass> {
        let all = self.known.storage.all().into_iter();
        let offered = all.filter(|(key, _)| named.is_empty() || named.contains(&key.name));
        offered.map(|(key, default)| OfferedStorageClass { name: key.name, default: *default }).collect()
    }

    /// An offer is not enforced as it should be, which is to be seen.
    async fn tell_failure(&self, tenant: &Tenant, offered: &Amounts, why: &str) {
        let told = self.writer.tell_failure(tenant, told::failed(tenant, why)).await;
        if let Err(error) = told {
            let error = portolan_runtime::chain(&error);
            tracing::warn!(consumer = tenant.name, offered = words(offered), error, "nobody is told why");
        }
    }

    /// Deletes what enforced offers in namespaces that belong to no tenant any more, and offers to nobody; says when to look
    /// again. What bounds a tenant goes after its rights.
    async fn remove_leftovers(&self, tenants: &[Tenant]) -> Result<Duration, CallError> {
        // One that exists and cannot be read has not left.
        if !self.known.clusters.health().all_unreadable().is_empty() {
            return Ok(RESYNC_PERIOD);
        }
        let mut again = RESYNC_PERIOD;
        let owned = |namespace: &str| tenants.iter().any(|tenant| tenant.namespaces.contains(namespace));
        let (quotas, ranges) = (self.known.quotas.all(), self.known.ranges.all());
        let left = quotas.iter().map(|(key, _)| key).chain(ranges.iter().map(|(key, _)| key));
        let mut left: Vec<&Key> =
            left.filter(|key| key.name == super::ENFORCED_NAME && !owned(&key.namespace)).collect();
        left.sort();
        left.dedup();
        for key in left {
            if self.writer.has_rights(&key.namespace).await? {
                again = SOON;
                continue;
            }
            let quota = quotas.iter().find(|(each, _)| each == key).map(|(_, quota)| quota.as_ref());
            // What the tenant has left behind there would grow without it.
            if let Some(quota) = quota.filter(|quota| has_pods(quota)) {
                self.writer.freeze(quota, key).await?;
                continue;
            }
            if let Some(quota) = quota {
                self.writer.delete(quota, key).await?;
            }
            for (_, range) in ranges.iter().filter(|(each, _)| each == key) {
                self.writer.delete(range.as_ref(), key).await?;
            }
        }
        for (key, facts) in self.known.namespaces.all() {
            if facts.pod_security_set.is_some() && !facts.terminating && !owned(&key.name) {
                self.writer.take_back_pod_security(&key.name, &facts).await?;
            }
        }
        for (key, offer) in self.known.offers.all() {
            if !tenants.iter().any(|tenant| tenant.home == key.namespace) {
                self.writer.delete(offer.as_ref(), &key).await?;
            }
        }
        self.remove_allowances(tenants).await?;
        Ok(again)
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

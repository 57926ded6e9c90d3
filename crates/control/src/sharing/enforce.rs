//! Writes offers, and what enforces them: only what differs is written.

use super::bounds::Allowances;
use super::known::{Known, NamespaceFacts, enforced_key};
use super::objects::{
    bounds_of, container_defaults, enforced, hard, has_bounds, limit_range, quota_change, resource_offer,
    resource_quota, summary,
};
use super::tenants::Tenant;
use super::{ENFORCED_NAME, pod_security};
use crate::names::{FIELD_MANAGER, TENANT_LABEL};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource};
use portolan_api::conditions::{self, Finding};
use portolan_api::foreigncluster::IncomingStatus;
use portolan_api::placement::Resources;
use portolan_api::resourceoffer::{NamespaceQuota, OFFER_NAME, ResourceOfferSpec, ResourceOfferStatus};
use portolan_api::sharing::PodSecurity;
use portolan_api::{API_VERSION, ForeignCluster, ForeignClusterStatus, ResourceOffer, SharingClass};
use portolan_core::capacity::{Amounts, PODS};
use portolan_core::sharing::{NamespaceState, divide};
use portolan_runtime::{CallError, Clock, Key, Term, call};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// How long an offer holds. It is longer than clocks of clusters ever differ.
const VALID_FOR: SignedDuration = SignedDuration::from_mins(30);

/// An offer that ends sooner than this is renewed.
const RENEWED_BEFORE: SignedDuration = SignedDuration::from_mins(20);

/// How the quotas of a tenant stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Enforced {
    /// By namespace: what is enforced, and what is used.
    pub(super) namespaces: BTreeMap<String, (Amounts, Amounts)>,
    /// The namespaces whose quota is not in force yet.
    pub(super) pending: Vec<String>,
}

impl Enforced {
    /// What the tenant uses in all its namespaces.
    pub(super) fn used(&self) -> Amounts {
        let mut used = Amounts::default();
        self.namespaces.values().for_each(|(_, each)| used.add(each, 1));
        used
    }
}

/// Whether pods run under a quota.
pub(super) fn has_pods(quota: &ResourceQuota) -> bool {
    let used = quota.status.as_ref().and_then(|status| status.used.as_ref()?.get(PODS));
    used.is_some_and(|used| !matches!(used.0.as_str(), "0" | ""))
}

/// What a quota is to admit so that nothing grows; nothing if it is so already.
fn frozen(quota: &ResourceQuota) -> Option<BTreeMap<String, Quantity>> {
    let hard = quota.spec.as_ref()?.hard.as_ref()?;
    let used = quota.status.as_ref()?.used.as_ref()?;
    let of = |name: &String| used.get(name).cloned().unwrap_or_else(|| Quantity("0".to_owned()));
    let frozen: BTreeMap<_, _> = hard.keys().map(|name| (name.clone(), of(name))).collect();
    (frozen != *hard).then_some(frozen)
}

/// Writes to the provider's own API server.
pub(super) struct Writer {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) term: Term,
}

impl Writer {
    /// Whether anything enforces or says an offer, with nobody to offer to.
    pub(super) async fn finds_leftovers(&self) -> Result<bool, CallError> {
        let ours = ListParams::default().labels(TENANT_LABEL).limit(1);
        let quotas: Api<ResourceQuota> = Api::all(self.client.clone());
        if !call("list the ResourceQuotas of tenants", quotas.list_metadata(&ours)).await?.items.is_empty() {
            return Ok(true);
        }
        let ranges: Api<LimitRange> = Api::all(self.client.clone());
        if !call("list the LimitRanges of tenants", ranges.list_metadata(&ours)).await?.items.is_empty() {
            return Ok(true);
        }
        let offers: Api<ResourceOffer> = Api::all(self.client.clone());
        match call("list ResourceOffers", offers.list_metadata(&ListParams::default().limit(1))).await {
            Err(error) if error.is_not_found() => Ok(false),
            found => found.map(|found| !found.items.is_empty()),
        }
    }

    /// Whether a tenant has rights in a namespace.
    pub(super) async fn has_rights(&self, namespace: &str) -> Result<bool, CallError> {
        let bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), namespace);
        let ours = ListParams::default().labels(TENANT_LABEL);
        let what = format!("list the RoleBindings of tenants in namespace {namespace}");
        Ok(!call(what, bindings.list_metadata(&ours)).await?.items.is_empty())
    }

    /// Says what pods of a namespace may do.
    pub(super) async fn set_pod_security(
        &self,
        namespace: &str,
        level: PodSecurity,
    ) -> Result<(), CallError> {
        self.patch_namespace(namespace, pod_security::set(level)).await
    }

    /// Takes back what was said of pods of a namespace that belongs to no tenant any more.
    pub(super) async fn take_back_pod_security(
        &self,
        namespace: &str,
        facts: &NamespaceFacts,
    ) -> Result<(), CallError> {
        match self.patch_namespace(namespace, pod_security::take_back(facts)).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        }
    }

    async fn patch_namespace(&self, namespace: &str, patch: Value) -> Result<(), CallError> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let what = format!("change what pods of namespace {namespace} may do");
        let patch = Patch::Merge(patch);
        self.term.call(what, api.patch(namespace, &PatchParams::default(), &patch)).await.map(|_| ())
    }

    /// Writes what the admission policy of tenants reads on a namespace.
    pub(super) async fn set_allowances(
        &self,
        namespace: &str,
        allowances: &Allowances,
    ) -> Result<(), CallError> {
        let patch = json!({"metadata": {"annotations": allowances.annotations()}});
        match self.patch_namespace(namespace, patch).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        }
    }

    pub(super) async fn keep_limit_range(
        &self,
        known: &Known,
        namespace: &str,
        consumer: &str,
        given: Option<(&Resources, &Resources)>,
    ) -> Result<(), CallError> {
        let found = known.ranges.get(&enforced_key(namespace));
        // Where nothing is known of the class, what is there stands.
        let plain = || (portolan_api::sharing::default_requests(), portolan_api::sharing::default_limits());
        let wanted = match given {
            Some((requests, limits)) => container_defaults(requests, limits),
            None => found.as_deref().and_then(defaults).unwrap_or_else(|| {
                let (requests, limits) = plain();
                container_defaults(&requests, &limits)
            }),
        };
        let parse =
            |(requests, limits): &(Resources, Resources)| (Amounts::parse(requests), Amounts::parse(limits));
        let is_same = found.is_some_and(|range| {
            label(range.as_ref()) == Some(consumer)
                && defaults(&range).is_some_and(|found| parse(&found) == parse(&wanted))
        });
        if is_same {
            return Ok(());
        }
        self.apply::<LimitRange>(namespace, &limit_range(namespace, consumer, &wanted.0, &wanted.1)).await
    }

    /// Has the quota of a tenant that left admit no more than what is there.
    pub(super) async fn freeze(&self, quota: &ResourceQuota, key: &Key) -> Result<(), CallError> {
        let Some(hard) = frozen(quota) else { return Ok(()) };
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": quota.metadata.resource_version}, "spec": {"hard": hard},
        }));
        let api: Api<ResourceQuota> = Api::namespaced(self.client.clone(), &key.namespace);
        let what = format!("freeze ResourceQuota {key}");
        match self.term.call(what, api.patch(&key.name, &PatchParams::default(), &patch)).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Divides an offer over the namespaces of a tenant, each of which has these bounds beside it.
    pub(super) async fn keep_quotas(
        &self,
        known: &Known,
        tenant: &Tenant,
        offered: &Amounts,
        bounds: Option<&Resources>,
    ) -> Result<Enforced, CallError> {
        let cached = |namespace: &String| known.quotas.get(&enforced_key(namespace));
        let states: BTreeMap<String, NamespaceState> = tenant
            .namespaces
            .iter()
            .map(|namespace| {
                (namespace.clone(), state(known, tenant, namespace, cached(namespace).as_deref()))
            })
            .collect();
        // Where nothing is known of the class, what is bounded beside the offer stays so.
        let is_kept = |quota: &ResourceQuota| {
            label(quota) == Some(tenant.name.as_str())
                && bounds.is_none_or(|bounds| has_bounds(quota, bounds))
        };
        let kept = |namespace: &str| {
            known.quotas.get(&enforced_key(namespace)).is_some_and(|quota| is_kept(quota.as_ref()))
        };
        if changes(offered, &states, kept).is_empty() {
            return Ok(standing(offered, &states));
        }
        // What was written a moment ago may not have come back by the watch: nothing is given away twice.
        let api: Api<ResourceQuota> = Api::all(self.client.clone());
        let ours = ListParams::default().fields(&format!("metadata.name={ENFORCED_NAME}"));
        let listed = call("list the ResourceQuotas of tenants", api.list(&ours)).await?;
        let live: BTreeMap<Key, ResourceQuota> =
            listed.items.into_iter().map(|quota| (Key::of(&quota), quota)).collect();
        let states: BTreeMap<String, NamespaceState> = tenant
            .namespaces
            .iter()
            .map(|namespace| {
                let quota = live.get(&enforced_key(namespace));
                (namespace.clone(), state(known, tenant, namespace, quota))
            })
            .collect();
        let kept = |namespace: &str| live.get(&enforced_key(namespace)).is_some_and(is_kept);
        let mut failed = None;
        for (namespace, quota) in changes(offered, &states, kept) {
            let there = live.get(&enforced_key(&namespace));
            let bounds = bounds.cloned().or_else(|| there.map(bounds_of)).unwrap_or_default();
            if let Err(error) = self.write_quota(&namespace, &tenant.name, (&quota, &bounds), there).await {
                failed.get_or_insert(error);
            }
        }
        failed.map_or_else(|| Ok(standing(offered, &states)), Err)
    }

    /// Writes a quota, if it is still as it was when it was decided about. An earlier leader may have been paused in between:
    /// it would give back to one namespace what was given to another one since.
    async fn write_quota(
        &self,
        namespace: &str,
        consumer: &str,
        (hard, bounds): (&Amounts, &Resources),
        there: Option<&ResourceQuota>,
    ) -> Result<(), CallError> {
        let api: Api<ResourceQuota> = Api::namespaced(self.client.clone(), namespace);
        let what = format!("write ResourceQuota {namespace}/{ENFORCED_NAME}");
        let manager = || Some(FIELD_MANAGER.to_owned());
        let Some(there) = there else {
            let params = PostParams { field_manager: manager(), ..PostParams::default() };
            let quota = resource_quota(namespace, consumer, hard, bounds);
            return self.term.call(what, api.create(&params, &quota)).await.map(|_| ());
        };
        let params = PatchParams { field_manager: manager(), ..PatchParams::default() };
        let change = Patch::Merge(quota_change(there, consumer, hard, bounds));
        self.term.call(what, api.patch(ENFORCED_NAME, &params, &change)).await.map(|_| ())
    }

    /// Writes an offer that differs from the one that stands, or ends soon.
    pub(super) async fn keep_offer(
        &self,
        known: &Known,
        home: &str,
        mut spec: ResourceOfferSpec,
    ) -> Result<(), CallError> {
        let now = self.clock.now();
        let found = known.offers.get(&Key::new(home, OFFER_NAME));
        if let Some(found) = &found {
            spec.expires_at.clone_from(&found.spec.expires_at);
            let ends_late = |ends: &Time| ends.0.duration_since(now) > RENEWED_BEFORE;
            let holds = found.spec.expires_at.as_ref().is_some_and(ends_late);
            if holds && found.spec == spec {
                return Ok(());
            }
        }
        spec.expires_at = Some(Time(whole_seconds(now.saturating_add(VALID_FOR).unwrap_or(now))));
        self.apply::<ResourceOffer>(home, &resource_offer(home, &spec)).await
    }

    /// Tells on the offer how it is enforced and used. What the consumer says there is left alone.
    pub(super) async fn tell_offer(
        &self,
        known: &Known,
        tenant: &Tenant,
        offered: &Amounts,
        enforced: &Enforced,
        ready: &Finding,
    ) -> Result<(), CallError> {
        let Some(offer) = known.offers.get(&Key::new(&tenant.home, OFFER_NAME)) else { return Ok(()) };
        let before = offer.status.clone().unwrap_or_default();
        let used = enforced.used();
        let namespaces = enforced.namespaces.iter().map(|(name, (hard, used))| NamespaceQuota {
            name: name.clone(),
            hard: hard.quantities(),
            used: used.quantities(),
        });
        let mut status = ResourceOfferStatus {
            observed_generation: offer.metadata.generation,
            conditions: before.conditions.clone(),
            used: used.quantities(),
            namespaces: namespaces.collect(),
            summary: Some(summary(offered, &used)),
        };
        let generation = offer.metadata.generation;
        conditions::set(&mut status.conditions, ready.clone(), generation, self.clock.now());
        if status == before {
            return Ok(());
        }
        status.conditions.retain(|condition: &Condition| condition.type_ == ready.type_.as_str());
        let api: Api<ResourceOffer> = Api::namespaced(self.client.clone(), &tenant.home);
        let object = json!({
            "apiVersion": API_VERSION, "kind": "ResourceOffer",
            "metadata": { "name": OFFER_NAME, "namespace": tenant.home }, "status": status,
        });
        let what = format!("apply the status of ResourceOffer {}/{OFFER_NAME}", tenant.home);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        self.term.call(what, api.patch_status(OFFER_NAME, &params, &Patch::Apply(&object))).await.map(|_| ())
    }

    /// Tells on the ForeignCluster why its offer is not enforced as it should be; numbers stand.
    pub(super) async fn tell_failure(&self, tenant: &Tenant, found: Finding) -> Result<(), CallError> {
        let mut status = tenant.cluster.status.clone().unwrap_or_default();
        let generation = tenant.cluster.metadata.generation;
        if !conditions::set(&mut status.conditions, found, generation, self.clock.now()) {
            return Ok(());
        }
        self.write_status(tenant, status).await
    }

    /// Tells on the ForeignCluster what it was given.
    pub(super) async fn tell_cluster(
        &self,
        tenant: &Tenant,
        offered: &Amounts,
        enforced: &Enforced,
        found: &[Finding],
    ) -> Result<(), CallError> {
        let cluster = tenant.cluster.as_ref();
        let before = cluster.status.clone().unwrap_or_default();
        let mut status = before.clone();
        for finding in found {
            let generation = cluster.metadata.generation;
            conditions::set(&mut status.conditions, finding.clone(), generation, self.clock.now());
        }
        status.incoming =
            Some(IncomingStatus { offered: offered.quantities(), used: enforced.used().quantities() });
        if status == before {
            return Ok(());
        }
        self.write_status(tenant, status).await
    }

    async fn write_status(&self, tenant: &Tenant, status: ForeignClusterStatus) -> Result<(), CallError> {
        let api: Api<ForeignCluster> = Api::all(self.client.clone());
        let update = ForeignCluster { status: Some(status), ..tenant.cluster.as_ref().clone() };
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let what = format!("write status of ForeignCluster {}", tenant.name);
        self.term.call(what, api.replace_status(&tenant.name, &params, &update)).await.map(|_| ())
    }

    /// Tells on a class that it holds.
    pub(super) async fn tell_class(&self, class: &SharingClass, found: Finding) -> Result<(), CallError> {
        let mut status = class.status.clone().unwrap_or_default();
        status.observed_generation = class.metadata.generation;
        conditions::set(&mut status.conditions, found, class.metadata.generation, self.clock.now());
        if class.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let name = class.metadata.name.clone().unwrap_or_default();
        let api: Api<SharingClass> = Api::all(self.client.clone());
        let what = format!("write status of SharingClass {name}");
        let patch = Patch::Merge(json!({ "status": status }));
        self.term.call(what, api.patch_status(&name, &PatchParams::default(), &patch)).await.map(|_| ())
    }

    /// Deletes an object, if it is still the one that was seen.
    pub(super) async fn delete<K>(&self, object: &K, key: &Key) -> Result<(), CallError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        let same = Preconditions { uid: object.meta().uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
        let what = format!("delete {} {key}", K::kind(&()));
        match self.term.call(what, api.delete(&key.name, &params)).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    async fn apply<K>(&self, namespace: &str, object: &Value) -> Result<(), CallError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let what = format!("apply {} {namespace}/{name}", K::kind(&()));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        self.term.call(what, api.patch(name, &params, &Patch::Apply(object))).await.map(|_| ())
    }
}

/// The requests and limits that containers have by a LimitRange of ours.
fn defaults(range: &LimitRange) -> Option<(Resources, Resources)> {
    match range.spec.as_ref()?.limits.as_slice() {
        [only] => {
            Some((only.default_request.clone().unwrap_or_default(), only.default.clone().unwrap_or_default()))
        }
        _ => None,
    }
}

/// The tenant that an object says it belongs to.
fn label(object: &impl Resource) -> Option<&str> {
    object.meta().labels.as_ref()?.get(TENANT_LABEL).map(String::as_str)
}

fn state(known: &Known, tenant: &Tenant, namespace: &str, quota: Option<&ResourceQuota>) -> NamespaceState {
    let (enforced, used) = quota.map(enforced).unwrap_or_default();
    let (hard, wanted) = (quota.map(hard).unwrap_or_default(), known.wanted(namespace));
    NamespaceState { hard, enforced, used, wanted, is_home: namespace == tenant.home }
}

/// The quotas that are to be written: those that are not the tenant's yet or have other bounds, and those that are to
/// admit more or less.
fn changes(
    offered: &Amounts,
    states: &BTreeMap<String, NamespaceState>,
    is_kept: impl Fn(&str) -> bool,
) -> BTreeMap<String, Amounts> {
    let mut quotas = divide(offered, states);
    quotas.retain(|namespace, quota| {
        !is_kept(namespace) || states.get(namespace).is_none_or(|state| state.hard != *quota)
    });
    quotas
}

fn standing(offered: &Amounts, states: &BTreeMap<String, NamespaceState>) -> Enforced {
    let in_force =
        |state: &NamespaceState| offered.iter().all(|(name, _)| state.enforced.find(name).is_some());
    let pending = states.iter().filter(|(_, state)| !in_force(state)).map(|(name, _)| name.clone());
    let namespaces =
        states.iter().map(|(name, state)| (name.clone(), (state.enforced.clone(), state.used.clone())));
    Enforced { pending: pending.collect(), namespaces: namespaces.collect() }
}

/// Times in the API have no parts of a second.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

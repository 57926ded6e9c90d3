//! Writes offers, and what enforces them: only what differs is written.

use super::bounds::Allowances;
use super::known::{Known, POD_SECURITY_LABEL, enforced_key};
use super::objects::{
    container_defaults, enforced, hard, has_bounds, limit_range, resource_offer, resource_quota, summary,
};
use super::provider::Tenant;
use crate::names::{FIELD_MANAGER, TENANT_LABEL};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource};
use portolan_api::conditions::{self, Finding};
use portolan_api::foreigncluster::IncomingStatus;
use portolan_api::placement::Resources;
use portolan_api::resourceoffer::{NamespaceQuota, OFFER_NAME, ResourceOfferSpec, ResourceOfferStatus};
use portolan_api::sharing::PodSecurity;
use portolan_api::{API_VERSION, ForeignCluster, ResourceOffer, SharingClass};
use portolan_core::capacity::Amounts;
use portolan_core::sharing::{NamespaceState, divide};
use portolan_runtime::{CallError, Clock, Key, call};
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

/// Writes to the provider's own API server.
pub(super) struct Writer {
    pub(super) client: Client,
    pub(super) clock: Clock,
}

impl Writer {
    /// Says what pods of a namespace may do that says nothing about it.
    pub(super) async fn set_pod_security(
        &self,
        namespace: &str,
        level: PodSecurity,
    ) -> Result<(), CallError> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": {"labels": { POD_SECURITY_LABEL: level.as_str() }}}));
        let what = format!("label namespace {namespace}");
        call(what, api.patch(namespace, &PatchParams::default(), &patch)).await.map(|_| ())
    }

    /// Writes what the admission policy of tenants reads on a namespace.
    pub(super) async fn set_allowances(
        &self,
        namespace: &str,
        allowances: &Allowances,
    ) -> Result<(), CallError> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": {"annotations": allowances.annotations()}}));
        let what = format!("annotate namespace {namespace}");
        call(what, api.patch(namespace, &PatchParams::default(), &patch)).await.map(|_| ())
    }

    pub(super) async fn keep_limit_range(
        &self,
        known: &Known,
        namespace: &str,
        consumer: &str,
        (requests, limits): (&Resources, &Resources),
    ) -> Result<(), CallError> {
        let found = known.ranges.get(&enforced_key(namespace));
        let parse =
            |(requests, limits): &(Resources, Resources)| (Amounts::parse(requests), Amounts::parse(limits));
        let wanted = container_defaults(requests, limits);
        let is_same = found.is_some_and(|range| {
            label(range.as_ref()) == Some(consumer)
                && defaults(&range).is_some_and(|found| parse(&found) == parse(&wanted))
        });
        if is_same {
            return Ok(());
        }
        self.apply::<LimitRange>(namespace, &limit_range(namespace, consumer, requests, limits)).await
    }

    /// Divides an offer over the namespaces of a tenant, each of which has these bounds beside it.
    pub(super) async fn keep_quotas(
        &self,
        known: &Known,
        tenant: &Tenant,
        offered: &Amounts,
        bounds: &Resources,
    ) -> Result<Enforced, CallError> {
        let cached = |namespace: &String| known.quotas.get(&enforced_key(namespace));
        let states: BTreeMap<String, NamespaceState> = tenant
            .namespaces
            .iter()
            .map(|namespace| {
                (namespace.clone(), state(known, tenant, namespace, cached(namespace).as_deref()))
            })
            .collect();
        let is_bounded = |quota: Option<&ResourceQuota>| quota.is_some_and(|quota| has_bounds(quota, bounds));
        if changes(offered, &states, |namespace| {
            is_bounded(known.quotas.get(&enforced_key(namespace)).as_deref())
        })
        .is_empty()
        {
            return Ok(standing(offered, &states));
        }
        // What was written a moment ago may not have come back by the watch: nothing is given away twice.
        let api: Api<ResourceQuota> = Api::all(self.client.clone());
        let ours = ListParams::default().labels(TENANT_LABEL);
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
        for (namespace, quota) in
            changes(offered, &states, |namespace| is_bounded(live.get(&enforced_key(namespace))))
        {
            let wanted = resource_quota(&namespace, &tenant.name, &quota, bounds);
            self.apply::<ResourceQuota>(&namespace, &wanted).await?;
        }
        Ok(standing(offered, &states))
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
        call(what, api.patch_status(OFFER_NAME, &params, &Patch::Apply(&object))).await.map(|_| ())
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
        let api: Api<ForeignCluster> = Api::all(self.client.clone());
        let update = ForeignCluster { status: Some(status), ..cluster.clone() };
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let what = format!("write status of ForeignCluster {}", tenant.name);
        call(what, api.replace_status(&tenant.name, &params, &update)).await.map(|_| ())
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
        call(what, api.patch_status(&name, &PatchParams::default(), &patch)).await.map(|_| ())
    }

    /// Deletes an object, if it is still the one that was seen.
    pub(super) async fn delete<K>(&self, object: &K, key: &Key) -> Result<(), CallError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        let same = Preconditions { uid: object.meta().uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
        match call(format!("delete {} {key}", K::kind(&())), api.delete(&key.name, &params)).await {
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
        call(what, api.patch(name, &params, &Patch::Apply(object))).await.map(|_| ())
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

/// The quotas that are to be written: those that do not exist or have other bounds, and those that are to admit more or less.
fn changes(
    offered: &Amounts,
    states: &BTreeMap<String, NamespaceState>,
    is_bounded: impl Fn(&str) -> bool,
) -> BTreeMap<String, Amounts> {
    let mut quotas = divide(offered, states);
    quotas.retain(|namespace, quota| {
        !is_bounded(namespace) || states.get(namespace).is_none_or(|state| state.hard != *quota)
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

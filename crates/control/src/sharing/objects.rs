//! The objects of an offer: pure.

use super::ENFORCED_NAME;
use super::words::{REQUESTS, about_pods};
use crate::names::TENANT_LABEL;
use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use portolan_api::API_VERSION;
use portolan_api::placement::Resources;
use portolan_api::resourceoffer::{OFFER_NAME, OfferSummary, ResourceOfferSpec};
use portolan_core::capacity::{Amounts, CPU, MEMORY, PODS, amount};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Amounts in the words of a ResourceQuota.
pub(super) fn quota_words(amounts: &Amounts) -> BTreeMap<String, Quantity> {
    let word = |name: String| if name == PODS { name } else { format!("{REQUESTS}{name}") };
    amounts.quantities().into_iter().map(|(name, quantity)| (word(name), quantity)).collect()
}

/// What the words of a ResourceQuota say of what pods request. What cannot be read says nothing.
pub(super) fn quota_amounts(words: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let named =
        |(word, quantity): (&String, &Quantity)| Some((about_pods(word)?.to_owned(), quantity.clone()));
    let mut amounts = Amounts::default();
    for (name, quantity) in words.into_iter().flatten().filter_map(named) {
        if let Ok(milli) = portolan_core::capacity::milli(&quantity.0) {
            amounts.set(&name, milli);
        }
    }
    amounts
}

/// What a quota bounds beside what pods request.
pub(super) fn bounds_of(quota: &ResourceQuota) -> Resources {
    let hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let others = hard.into_iter().flatten().filter(|(word, _)| about_pods(word).is_none());
    others.map(|(word, quantity)| (word.clone(), quantity.clone())).collect()
}

/// Whether a quota bounds this beside what pods request, and nothing else.
pub(super) fn has_bounds(quota: &ResourceQuota, bounds: &Resources) -> bool {
    Amounts::parse(&bounds_of(quota)) == Amounts::parse(bounds)
}

/// What a quota says.
pub(super) fn hard(quota: &ResourceQuota) -> Amounts {
    quota_amounts(quota.spec.as_ref().and_then(|spec| spec.hard.as_ref()))
}

/// What the API server enforces of it, and what is used.
pub(super) fn enforced(quota: &ResourceQuota) -> (Amounts, Amounts) {
    let status = quota.status.as_ref();
    (
        quota_amounts(status.and_then(|status| status.hard.as_ref())),
        quota_amounts(status.and_then(|status| status.used.as_ref())),
    )
}

fn all_words(hard: &Amounts, bounds: &Resources) -> Resources {
    quota_words(hard).into_iter().chain(bounds.clone()).collect()
}

/// The quota of a namespace: what its pods may request, and what else is bounded.
pub(super) fn resource_quota(
    namespace: &str,
    consumer: &str,
    hard: &Amounts,
    bounds: &Resources,
) -> ResourceQuota {
    let metadata = ObjectMeta {
        name: Some(ENFORCED_NAME.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some([(TENANT_LABEL.to_owned(), consumer.to_owned())].into()),
        ..ObjectMeta::default()
    };
    let spec = ResourceQuotaSpec { hard: Some(all_words(hard, bounds)), ..ResourceQuotaSpec::default() };
    ResourceQuota { metadata, spec: Some(spec), status: None }
}

/// What makes a quota that is there the one that is wanted, if it has not changed meanwhile.
pub(super) fn quota_change(
    there: &ResourceQuota,
    consumer: &str,
    hard: &Amounts,
    bounds: &Resources,
) -> Value {
    let before = there.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let mut words: Map<String, Value> =
        before.into_iter().flatten().map(|(word, _)| (word.clone(), Value::Null)).collect();
    words.extend(all_words(hard, bounds).into_iter().map(|(word, quantity)| (word, json!(quantity))));
    json!({
        "metadata": {
            "resourceVersion": there.metadata.resource_version, "labels": { TENANT_LABEL: consumer },
        },
        "spec": { "hard": words },
    })
}

/// What containers of a namespace request, and their limits, that do not say so themselves: without requests the quota would
/// refuse them.
pub(super) fn limit_range(
    namespace: &str,
    consumer: &str,
    requests: &Resources,
    limits: &Resources,
) -> Value {
    let (requests, limits) = container_defaults(requests, limits);
    json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {
            "name": ENFORCED_NAME, "namespace": namespace, "labels": { TENANT_LABEL: consumer },
        },
        "spec": { "limits": [{ "type": "Container", "defaultRequest": requests, "default": limits }] },
    })
}

/// Requests and limits as API servers take them: a limit that is less than what is requested is left out, and what has a limit
/// only requests nothing. API servers would make the limit the request.
pub(super) fn container_defaults(requests: &Resources, limits: &Resources) -> (Resources, Resources) {
    let milli = |quantity: &Quantity| portolan_core::capacity::milli(&quantity.0).unwrap_or_default();
    let (mut requests, mut limits) = (requests.clone(), limits.clone());
    limits.retain(|name, limit| requests.get(name).is_none_or(|request| milli(request) <= milli(limit)));
    for name in limits.keys() {
        requests.entry(name.clone()).or_insert_with(|| Quantity("0".to_owned()));
    }
    (requests, limits)
}

/// The offer.
pub(super) fn resource_offer(namespace: &str, spec: &ResourceOfferSpec) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "ResourceOffer",
        "metadata": { "name": OFFER_NAME, "namespace": namespace }, "spec": spec,
    })
}

/// The numbers of an offer as short texts.
pub(super) fn summary(offered: &Amounts, used: &Amounts) -> OfferSummary {
    let of = |name: &str| {
        let offered = offered.find(name)?;
        Some(format!("{}/{}", amount(name, used.get(name)), amount(name, offered)))
    };
    OfferSummary { cpu: of(CPU), memory: of(MEMORY), pods: of(PODS) }
}

/// Amounts as people read them.
pub(super) fn words(amounts: &Amounts) -> String {
    let some = amounts.iter().filter(|(_, milli)| *milli > 0);
    let parts: Vec<String> = some.map(|(name, milli)| format!("{name} {}", amount(name, milli))).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_read_as_it_was_written() {
        let mut amounts = Amounts::of(CPU, 3500);
        amounts.set(MEMORY, (8 << 30) * 1000);
        amounts.set(PODS, 55_000);
        amounts.set("nvidia.com/gpu", 0);
        let none = Resources::new();
        let mut quota = resource_quota("a", "rome", &amounts, &none);
        assert_eq!(hard(&quota), amounts);
        quota.metadata.resource_version = Some("7".to_owned());
        let change = quota_change(&quota, "milan", &Amounts::of(CPU, 1000), &none);
        assert_eq!(change["metadata"]["resourceVersion"], "7", "nobody else has changed it");
        assert_eq!(change["spec"]["hard"]["requests.cpu"], "1");
        assert!(change["spec"]["hard"]["pods"].is_null());
        let words: Vec<String> = quota.spec.unwrap().hard.unwrap().into_keys().collect();
        assert_eq!(words, ["pods", "requests.cpu", "requests.memory", "requests.nvidia.com/gpu"]);
    }

    fn resources(value: Value) -> Resources {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_a_quota_bounds_beside_the_offer_is_no_part_of_it() {
        let amounts = Amounts::of(CPU, 1000);
        let bounds = resources(json!({"requests.storage": "1Gi", "count/secrets": "5"}));
        let quota = resource_quota("a", "rome", &amounts, &bounds);
        assert_eq!(hard(&quota), amounts);
        assert!(has_bounds(&quota, &resources(json!({"requests.storage": "1024Mi", "count/secrets": 5}))));
        assert!(!has_bounds(&quota, &resources(json!({"count/secrets": "5"}))));
        assert!(!has_bounds(&quota, &resources(json!({"requests.storage": "1Gi", "count/secrets": "6"}))));
    }

    #[test]
    fn a_default_limit_makes_no_request_and_is_no_less_than_one() {
        let limits = resources(json!({"memory": "1Gi", "ephemeral-storage": "10Gi"}));
        let (requests, limits) = container_defaults(&resources(json!({"memory": "2Gi"})), &limits);
        assert_eq!(requests, resources(json!({"memory": "2Gi", "ephemeral-storage": "0"})));
        assert_eq!(limits, resources(json!({"ephemeral-storage": "10Gi"})));
    }
}

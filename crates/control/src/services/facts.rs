//! What is kept of Services in members and of what serves them.

use crate::capacity::Owner;
use crate::copies::{Copied, copy_event, selector};
use crate::fleet::{CopyMeta, MemberEvent, Needs, Watched, resource};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use portolan_runtime::{Key, bounded_text};
use serde_json::Value;
use std::collections::BTreeMap;

/// The label by which an EndpointSlice names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// How many addresses of a Service are told at most.
const ADDRESSES_AT_MOST: usize = 16;

/// The longest address that is told, in characters: a name in the DNS has no more.
const ADDRESS_AT_MOST: usize = 253;

/// What is known of a Service in a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServiceFacts {
    /// Whose it is.
    pub meta: CopyMeta,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its spec, as the member has it.
    pub spec: Value,
    /// Its addresses in the cluster.
    pub cluster_ips: Vec<String>,
    /// The addresses or names of its load balancer.
    pub load_balancer: Vec<String>,
}

impl ServiceFacts {
    pub(crate) fn of(service: &Service) -> Self {
        let spec = service.spec.as_ref();
        let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let ingress = balancer.and_then(|balancer| balancer.ingress.as_ref()).into_iter().flatten();
        Self {
            meta: CopyMeta::of(&service.metadata),
            labels: service.metadata.labels.clone().unwrap_or_default(),
            annotations: service.metadata.annotations.clone().unwrap_or_default(),
            // A Service that came as JSON goes as JSON.
            spec: serde_json::to_value(spec).unwrap_or_default(),
            cluster_ips: addresses(
                spec.and_then(|spec| spec.cluster_ips.as_ref()).into_iter().flatten().cloned(),
            ),
            load_balancer: addresses(ingress.filter_map(|each| each.ip.clone().or(each.hostname.clone()))),
        }
    }
}

/// The first addresses that a member tells, short and clean.
fn addresses(told: impl Iterator<Item = String>) -> Vec<String> {
    told.take(ADDRESSES_AT_MOST).map(|address| bounded_text(&address, ADDRESS_AT_MOST)).collect()
}

/// What is known of an EndpointSlice of one of our Services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceFacts {
    /// The Service that it belongs to.
    pub service: Option<Key>,
    /// Its endpoints by identity, and whether each is ready. One pod stands in several slices when it has several
    /// addresses or ports.
    pub endpoints: BTreeMap<String, bool>,
}

impl SliceFacts {
    pub(crate) fn of(slice: &EndpointSlice) -> Self {
        let meta = &slice.metadata;
        let service = meta.labels.as_ref().and_then(|labels| labels.get(SERVICE_NAME));
        let endpoints = slice.endpoints.iter().flatten().map(|endpoint| {
            let target = endpoint.target_ref.as_ref().and_then(|target| target.uid.clone());
            let identity = target.or_else(|| endpoint.addresses.first().cloned()).unwrap_or_default();
            // A readiness that is not told counts as ready, as the API says.
            let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true);
            (identity, ready)
        });
        Self {
            service: service.map(|name| Key::new(meta.namespace.as_deref().unwrap_or_default(), name)),
            endpoints: endpoints.collect(),
        }
    }
}

impl Watched for Service {
    type Facts = ServiceFacts;

    fn selector(hub: &str) -> Option<String> {
        Some(selector(hub))
    }

    fn facts(self) -> ServiceFacts {
        ServiceFacts::of(&self)
    }

    fn in_place(client: Client, place: &str, config: Config) -> (Api<Self>, Config) {
        (Api::namespaced(client, place), config)
    }

    fn event(key: &Key, facts: &ServiceFacts) -> Option<MemberEvent> {
        Some(copy_event::<Self>(key, facts))
    }
}

impl Copied for Service {
    const NAME: &'static str = "Service";
    const OWNER: &'static str = super::KIND;
    const RUNS_PODS: bool = false;
    const NEEDS: Needs = Needs(&[resource::<Namespace>(), resource::<Self>(), resource::<EndpointSlice>()]);

    fn copy_meta(facts: &ServiceFacts) -> &CopyMeta {
        &facts.meta
    }
}

/// EndpointSlices carry the labels of their Service.
impl Watched for EndpointSlice {
    type Facts = SliceFacts;

    fn selector(hub: &str) -> Option<String> {
        Some(selector(hub))
    }

    fn facts(self) -> SliceFacts {
        SliceFacts::of(&self)
    }

    fn in_place(client: Client, place: &str, config: Config) -> (Api<Self>, Config) {
        (Api::namespaced(client, place), config)
    }

    fn event(_: &Key, facts: &SliceFacts) -> Option<MemberEvent> {
        let service = facts.service.clone()?;
        Some(MemberEvent::Copy(Owner { kind: Service::OWNER, key: service }))
    }
}

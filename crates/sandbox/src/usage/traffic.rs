//! Traffic: sources in clusters send requests to services, and endpoints share them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;

use super::metrics::Loads;
use crate::api::Api;
use crate::store::ObjectKey;

/// A service with this annotation is reached in every cluster that has it under the same name.
const GLOBAL: &[&str] = &["io.cilium/global-service", "service.cilium.io/global"];

/// Users in one cluster of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where the users are.
    pub cluster: String,
    /// The service's namespace.
    pub namespace: String,
    /// The service's name.
    pub service: String,
    /// How many requests they send in a thousand seconds.
    pub requests_per_1000s: u64,
}

/// What becomes of the requests of one source in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The source's name.
    pub source: String,
    /// The cluster that answers; none for requests that find no endpoint.
    pub cluster: Option<String>,
    /// How many requests in a thousand seconds.
    pub requests_per_1000s: u64,
    /// How many endpoints share them.
    pub endpoints: usize,
    /// How long the way to that cluster and back takes.
    pub round_trip: Duration,
}

#[derive(Default)]
struct State {
    sources: BTreeMap<String, Source>,
    clusters: BTreeMap<String, Weak<Mutex<Api>>>,
    round_trips: BTreeMap<(String, String), Duration>,
}

/// All traffic of a world.
#[derive(Default)]
pub(crate) struct Traffic(Mutex<State>);

impl Traffic {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_cluster(&self, name: &str, api: &Arc<Mutex<Api>>) {
        self.state().clusters.insert(name.to_owned(), Arc::downgrade(api));
    }

    pub(crate) fn set_source(&self, name: &str, source: Option<Source>) {
        match source {
            Some(source) => self.state().sources.insert(name.to_owned(), source),
            None => self.state().sources.remove(name),
        };
    }

    pub(crate) fn set_round_trip(&self, a: &str, b: &str, time: Duration) {
        let mut state = self.state();
        for (from, to) in [(a, b), (b, a)] {
            state.round_trips.insert((from.to_owned(), to.to_owned()), time);
        }
    }

    /// Where all requests go at this moment.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        self.split().into_iter().map(|(flow, _)| flow).collect()
    }

    /// What reaches each pod of a cluster. No cluster may be locked by the caller.
    pub(crate) fn loads(&self, cluster: &str) -> Loads {
        let mut loads = Loads::new();
        for (flow, pods) in self.split() {
            if flow.cluster.as_deref() == Some(cluster) && !pods.is_empty() {
                let share = flow.requests_per_1000s / pods.len() as u64;
                for pod in pods {
                    *loads.entry(pod).or_default() += share;
                }
            }
        }
        loads
    }

    fn split(&self) -> Vec<(Flow, Vec<ObjectKey>)> {
        let (sources, clusters, round_trips) = {
            let state = self.state();
            let clusters: Vec<_> = state
                .clusters
                .iter()
                .filter_map(|(name, api)| Some((name.clone(), api.upgrade()?)))
                .collect();
            (state.sources.clone(), clusters, state.round_trips.clone())
        };
        let mut out = Vec::new();
        for (name, source) in sources {
            let mut backends: Vec<(&String, Vec<ObjectKey>)> = Vec::new();
            let everywhere =
                clusters.iter().any(|(name, api)| *name == source.cluster && is_global(api, &source));
            for (cluster, api) in &clusters {
                if *cluster == source.cluster || everywhere && is_global(api, &source) {
                    let pods = endpoints(api, &source);
                    if !pods.is_empty() {
                        backends.push((cluster, pods));
                    }
                }
            }
            let all: usize = backends.iter().map(|(_, pods)| pods.len()).sum();
            if all == 0 {
                let requests_per_1000s = source.requests_per_1000s;
                let flow = Flow {
                    source: name,
                    cluster: None,
                    requests_per_1000s,
                    endpoints: 0,
                    round_trip: Duration::ZERO,
                };
                out.push((flow, Vec::new()));
                continue;
            }
            for (cluster, pods) in backends {
                let way = (source.cluster.clone(), cluster.clone());
                let flow = Flow {
                    source: name.clone(),
                    cluster: Some(cluster.clone()),
                    requests_per_1000s: source.requests_per_1000s * pods.len() as u64 / all as u64,
                    endpoints: pods.len(),
                    round_trip: round_trips.get(&way).copied().unwrap_or_default(),
                };
                out.push((flow, pods));
            }
        }
        out
    }
}

fn is_global(api: &Arc<Mutex<Api>>, source: &Source) -> bool {
    let api = api.lock().unwrap_or_else(PoisonError::into_inner);
    let service = api.store.get("/services", &ObjectKey::new(&source.namespace, &source.service));
    let annotations = service.map(|service| service.value()["metadata"]["annotations"].take());
    annotations
        .is_some_and(|all| GLOBAL.iter().any(|key| all.get(*key).and_then(Value::as_str) == Some("true")))
}

/// The ready pods behind a service in one cluster.
fn endpoints(api: &Arc<Mutex<Api>>, source: &Source) -> Vec<ObjectKey> {
    let api = api.lock().unwrap_or_else(PoisonError::into_inner);
    let mut out = Vec::new();
    for slice in api.store.scan("discovery.k8s.io/endpointslices", Some(&source.namespace), None) {
        let named = slice
            .labels
            .iter()
            .any(|(key, value)| &**key == "kubernetes.io/service-name" && **value == *source.service);
        if !named {
            continue;
        }
        let value = slice.value();
        for endpoint in value.get("endpoints").and_then(Value::as_array).into_iter().flatten() {
            let ready = endpoint.pointer("/conditions/ready") == Some(&Value::Bool(true));
            if let Some(pod) = endpoint.pointer("/targetRef/name").and_then(Value::as_str).filter(|_| ready) {
                out.push(ObjectKey::new(&source.namespace, pod));
            }
        }
    }
    out
}

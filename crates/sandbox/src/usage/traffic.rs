//! Traffic: sources in clusters send requests to services, and endpoints share them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::metered::metered;
use super::metrics::Loads;
use super::record::{Batch, Record, Served};
use crate::api::Api;
use crate::store::{ObjectKey, at};

const SERVICES: &str = "/services";
const SLICES: &str = "discovery.k8s.io/endpointslices";

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
    /// How long a request is worked on there, on average; longer the busier the endpoints are.
    pub service_time: Duration,
    /// Of a thousand requests, how many are not answered.
    pub lost_per_1000: u64,
}

/// Even the busiest endpoint answers within this many times what it takes alone.
const LONGEST_WAIT: u64 = 20;

#[derive(Default)]
struct State {
    record: Record,
    sampled: Option<Instant>,
    sources: BTreeMap<String, Source>,
    clusters: BTreeMap<String, Weak<Mutex<Api>>>,
    round_trips: BTreeMap<(String, String), Duration>,
    /// Counts the changes of sources, clusters and round trips.
    changes: u64,
    last: Option<Last>,
    found: BTreeMap<String, Found>,
}

/// Where requests went when it was looked last. That is so until something changes in one of the clusters.
struct Last {
    changes: u64,
    revisions: Vec<Revisions>,
    split: Arc<Vec<(Flow, Arc<Endpoints>)>>,
}

/// When the tables of a cluster last changed that decide where requests go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Revisions {
    services: u64,
    slices: u64,
    pods: u64,
}

/// What was found behind the services of a cluster, as long as its slices and pods stay.
#[derive(Default)]
struct Found {
    at: Revisions,
    endpoints: BTreeMap<(String, String), Arc<Endpoints>>,
}

/// All traffic of a world.
#[derive(Default)]
pub(crate) struct Traffic(Mutex<State>);

impl Traffic {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        state.changes += 1;
        state
    }

    pub(crate) fn add_cluster(&self, name: &str, api: &Arc<Mutex<Api>>) {
        let mut state = self.change();
        state.clusters.insert(name.to_owned(), Arc::downgrade(api));
        state.found.remove(name);
    }

    pub(crate) fn remove_cluster(&self, name: &str) {
        let mut state = self.change();
        state.clusters.remove(name);
        state.found.remove(name);
    }

    pub(crate) fn set_source(&self, name: &str, source: Option<Source>) {
        match source {
            Some(source) => self.change().sources.insert(name.to_owned(), source),
            None => self.change().sources.remove(name),
        };
    }

    pub(crate) fn set_round_trip(&self, a: &str, b: &str, time: Duration) {
        let mut state = self.change();
        for (from, to) in [(a, b), (b, a)] {
            state.round_trips.insert((from.to_owned(), to.to_owned()), time);
        }
    }

    /// True while there is traffic.
    pub(crate) fn flows_now(&self) -> bool {
        !self.state().sources.is_empty()
    }

    /// Counts the requests sent since the last time as going where they go now. No cluster may be locked by the caller.
    pub(crate) fn sample(&self) {
        let flows = self.flows();
        let now = Instant::now();
        let mut state = self.state();
        let since = state.sampled.replace(now).map_or(Duration::ZERO, |last| now - last);
        let sources = state.sources.clone();
        for flow in flows {
            let Some(source) = sources.get(&flow.source) else { continue };
            let route = (source.cluster.clone(), source.namespace.clone(), source.service.clone());
            // A thousandth of a request a second, for a millisecond, is a millionth of a request.
            let batch = Batch {
                requests: u128::from(flow.requests_per_1000s) * since.as_millis(),
                lost_per_1000: flow.lost_per_1000,
                round_trip: flow.round_trip,
                service_time: flow.service_time,
            };
            state.record.add(&route, &batch);
        }
        if sources.is_empty() {
            state.sampled = None;
        }
    }

    /// What became of all requests so far.
    pub(crate) fn served(&self) -> Vec<Served> {
        self.sample();
        self.state().record.told()
    }

    /// Forgets what became of requests so far.
    pub(crate) fn forget(&self) {
        self.sample();
        self.state().record.clear();
    }

    /// Where all requests go at this moment.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        self.split().iter().map(|(flow, _)| flow.clone()).collect()
    }

    /// What reaches each pod of a cluster. No cluster may be locked by the caller.
    pub(crate) fn loads(&self, cluster: &str) -> Loads {
        let mut loads = Loads::new();
        for (flow, pods) in self.split().iter() {
            if flow.cluster.as_deref() == Some(cluster) && !pods.pods.is_empty() {
                let share = flow.requests_per_1000s / pods.pods.len() as u64;
                for pod in &pods.pods {
                    *loads.entry(pod.clone()).or_default() += share;
                }
            }
        }
        loads
    }

    fn split(&self) -> Arc<Vec<(Flow, Arc<Endpoints>)>> {
        let (clusters, changes) = {
            let state = self.state();
            let clusters = state.clusters.iter();
            let clusters = clusters.filter_map(|(name, api)| Some((name.clone(), api.upgrade()?)));
            (clusters.collect::<Vec<_>>(), state.changes)
        };
        let revisions: Vec<Revisions> = clusters.iter().map(|(_, api)| Revisions::of(&locked(api))).collect();
        let same = |last: &&Last| last.changes == changes && last.revisions == revisions;
        if let Some(last) = self.state().last.as_ref().filter(same) {
            return Arc::clone(&last.split);
        }
        let (sources, round_trips, mut found) = {
            let mut state = self.state();
            (state.sources.clone(), state.round_trips.clone(), std::mem::take(&mut state.found))
        };
        let split = Arc::new(split(sources, &clusters, &round_trips, &mut found));
        let mut state = self.state();
        state.found = found;
        state.last = Some(Last { changes, revisions, split: Arc::clone(&split) });
        split
    }
}

impl Revisions {
    fn of(api: &Api) -> Self {
        let at = |table| api.store.changed(table);
        Self { services: at(SERVICES), slices: at(SLICES), pods: at("/pods") }
    }
}

/// Where the requests of all sources go, and who answers them.
fn split(
    sources: BTreeMap<String, Source>,
    clusters: &[(String, Arc<Mutex<Api>>)],
    round_trips: &BTreeMap<(String, String), Duration>,
    known: &mut BTreeMap<String, Found>,
) -> Vec<(Flow, Arc<Endpoints>)> {
    let mut out = Vec::new();
    for (name, source) in sources {
        let mut backends: Vec<(&String, Arc<Endpoints>)> = Vec::new();
        // A service of the cluster's own that is not global hides those of others.
        let own = clusters.iter().find(|(name, _)| *name == source.cluster);
        let hidden = own.is_some_and(|(_, api)| is_global(&locked(api), &source) == Some(false));
        for (cluster, api) in clusters {
            let api = locked(api);
            if *cluster == source.cluster || !hidden && is_global(&api, &source) == Some(true) {
                let found = known.entry(cluster.clone()).or_default().behind(&api, &source);
                if !found.pods.is_empty() {
                    backends.push((cluster, found));
                }
            }
        }
        let all: usize = backends.iter().map(|(_, found)| found.pods.len()).sum();
        if all == 0 {
            let requests_per_1000s = source.requests_per_1000s;
            let flow = Flow {
                source: name,
                cluster: None,
                requests_per_1000s,
                endpoints: 0,
                round_trip: Duration::ZERO,
                service_time: Duration::ZERO,
                lost_per_1000: 1000,
            };
            out.push((flow, Arc::default()));
            continue;
        }
        for (cluster, found) in backends {
            let way = (source.cluster.clone(), cluster.clone());
            let requests_per_1000s = source.requests_per_1000s * found.pods.len() as u64 / all as u64;
            let flow = Flow {
                source: name.clone(),
                cluster: Some(cluster.clone()),
                requests_per_1000s,
                endpoints: found.pods.len(),
                round_trip: round_trips.get(&way).copied().unwrap_or_default(),
                service_time: found.service_time,
                lost_per_1000: 0,
            };
            out.push((flow, found));
        }
    }
    // Sources share endpoints: how busy those are is known once all are counted.
    let mut busy: BTreeMap<(&str, &ObjectKey), u64> = BTreeMap::new();
    for (flow, found) in &out {
        let share = flow.requests_per_1000s / found.pods.len().max(1) as u64;
        for pod in &found.pods {
            *busy.entry((flow.cluster.as_deref().unwrap_or_default(), pod)).or_default() += share;
        }
    }
    let loads = out.iter().map(|(flow, found)| {
        let cluster = flow.cluster.as_deref().unwrap_or_default();
        found.pods.iter().filter_map(|pod| busy.get(&(cluster, pod)).copied()).max()
    });
    let loads: Vec<Option<u64>> = loads.collect();
    for ((flow, found), load) in out.iter_mut().zip(loads) {
        if let (Some(most), Some(load)) = (found.requests_per_1000s, load) {
            flow.slow_down(load, most);
        }
    }
    out
}

impl Flow {
    /// What a load does to endpoints that can answer so much: those that come in between wait, those beyond are lost.
    fn slow_down(&mut self, load: u64, most: u64) {
        if load >= most {
            self.lost_per_1000 = ((load - most) * 1000).checked_div(load).unwrap_or(1000);
        }
        let free = most.saturating_sub(load);
        let factor = u32::try_from(most.checked_div(free).unwrap_or(LONGEST_WAIT).clamp(1, LONGEST_WAIT));
        // Exact to a thousandth where it matters: below the longest wait.
        self.service_time = match most.checked_div(free) {
            Some(whole) if whole < LONGEST_WAIT => {
                let thousandths = u32::try_from(most * 1000 / free).unwrap_or(1000);
                self.service_time * thousandths / 1000
            }
            _ => self.service_time * factor.unwrap_or(1),
        };
    }
}

/// What is behind a service in one cluster.
#[derive(Default)]
struct Endpoints {
    /// The ready pods.
    pods: Vec<ObjectKey>,
    /// How long one of them works on a request.
    service_time: Duration,
    /// How many requests in a thousand seconds one of them can answer, if that is known.
    requests_per_1000s: Option<u64>,
}

impl Found {
    fn behind(&mut self, api: &Api, source: &Source) -> Arc<Endpoints> {
        // A service itself does not decide what is behind it.
        let at = Revisions { services: 0, ..Revisions::of(api) };
        if self.at != at {
            *self = Self { at, ..Self::default() };
        }
        let service = (source.namespace.clone(), source.service.clone());
        Arc::clone(self.endpoints.entry(service).or_insert_with(|| Arc::new(endpoints(api, source))))
    }
}

fn locked(api: &Arc<Mutex<Api>>) -> MutexGuard<'_, Api> {
    api.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the service is marked global; none if there is no such service.
fn is_global(api: &Api, source: &Source) -> Option<bool> {
    let service = api.store.get(SERVICES, &ObjectKey::new(&source.namespace, &source.service))?;
    let is_global = service.derived(|service| {
        let annotations = at(service, "/metadata/annotations");
        let marked = |key: &&str| annotations.and_then(|all| all.get(*key)?.as_str()) == Some("true");
        GLOBAL.iter().any(marked)
    });
    Some(*is_global)
}

fn endpoints(api: &Api, source: &Source) -> Endpoints {
    let mut out = Endpoints::default();
    for slice in api.store.scan(SLICES, Some(&source.namespace), None) {
        let named = slice
            .labels
            .iter()
            .any(|(key, value)| &**key == "kubernetes.io/service-name" && **value == *source.service);
        if !named {
            continue;
        }
        let value = slice.value();
        for endpoint in value.get("endpoints").and_then(Value::as_array).into_iter().flatten() {
            let ready = at(endpoint, "/conditions/ready") == Some(&Value::Bool(true));
            if let Some(pod) = at(endpoint, "/targetRef/name").and_then(Value::as_str).filter(|_| ready) {
                out.pods.push(ObjectKey::new(&source.namespace, pod));
            }
        }
    }
    // The pods of a service are alike: the first speaks for all.
    if let Some(pod) = out.pods.first().and_then(|key| api.store.get("/pods", key)) {
        let behaviour = &metered(api, &pod).behaviour;
        out.service_time = behaviour.service_time.unwrap_or_default();
        out.requests_per_1000s = behaviour.requests_per_second.map(|rate| u64::from(rate) * 1000);
    }
    out
}

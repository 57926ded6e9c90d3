//! Users send requests, and an agent in each member measures them.

use super::stage::Stage;
use super::{SimulationError, access};
use crate::scenario::{Scenario, Traffic};
use portolan_runtime::Seed;
use portolan_sandbox::{Source, World};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// The users of a scenario, and the agents that measure what they send.
pub(crate) struct Agent<'a> {
    scenario: &'a Scenario,
    seed: Seed,
    /// What each source sends now, in requests of a thousand seconds.
    sent: BTreeMap<&'a str, u64>,
    /// When it was last told what a cluster sends to a service.
    told: BTreeMap<(String, String, &'a str), Instant>,
}

/// Where nobody ever sends anything, that is told so often: seldom, but before it counts as old.
const SILENCE_EVERY: Duration = Duration::from_secs(120);

impl<'a> Agent<'a> {
    pub(super) fn new(scenario: &'a Scenario, seed: Seed) -> Self {
        Self { scenario, seed, sent: BTreeMap::new(), told: BTreeMap::new() }
    }

    /// What a source sends now, in requests per second.
    pub(crate) fn requests_per_second(&self, source: &str) -> f64 {
        self.sent.get(source).map_or(0.0, |sent| *sent as f64 / 1000.0)
    }

    /// Lets a source send what it sends at this time.
    pub(super) fn send(&mut self, index: usize, at: Duration, world: &World) {
        let Some(traffic) = self.scenario.traffic.get(index) else { return };
        let number = traffic.load.at(at, &self.seed.child(&traffic.name));
        let requests_per_1000s = (number * 1000.0) as u64;
        let before = self.sent.insert(&traffic.name, requests_per_1000s).unwrap_or(0);
        if before == requests_per_1000s {
            return;
        }
        if requests_per_1000s == 0 {
            return world.stop_traffic(&traffic.name);
        }
        let source = Source {
            cluster: traffic.from.clone(),
            namespace: self.namespace(traffic),
            service: traffic.service.clone(),
            requests_per_1000s,
        };
        world.send_traffic(&traffic.name, source);
    }

    /// Writes in each cluster, on the Service, what the users there send.
    pub(super) async fn measure(
        &mut self,
        stage: &Stage,
        clusters: &[String],
    ) -> Result<(), SimulationError> {
        let scenario = self.scenario;
        let mut seen = BTreeSet::new();
        for traffic in scenario.traffic.iter().filter(|traffic| !traffic.selector.is_empty()) {
            let namespace = self.namespace(traffic);
            if !seen.insert((namespace.clone(), &traffic.service)) {
                continue;
            }
            for cluster in clusters {
                let way = (cluster.clone(), namespace.clone(), traffic.service.as_str());
                let silent = self.sources(cluster, &traffic.service).next().is_none();
                let lately = |last: &Instant| last.elapsed() < SILENCE_EVERY;
                if silent && self.told.get(&way).is_some_and(lately) {
                    continue;
                }
                if self.tell(stage, cluster, traffic).await? {
                    self.told.insert(way, Instant::now());
                }
            }
        }
        Ok(())
    }

    /// Writes what a cluster sends to a service; answers whether the cluster has a place for it.
    async fn tell(&self, stage: &Stage, cluster: &str, traffic: &Traffic) -> Result<bool, SimulationError> {
        let namespace = self.namespace(traffic);
        let sources = self.sources(cluster, &traffic.service);
        let sent: u64 = sources.filter_map(|source| self.sent.get(source.name.as_str())).sum();
        let metadata = json!({
            "labels": {"portolan.dev/traffic": "told"},
            "annotations": {
                "io.cilium/global-service": "true",
                "portolan.dev/requests-per-second": format!("{sent}m"),
                "portolan.dev/traffic-measured-at": stage.world.clock().now().to_string(),
            },
        });
        let Ok(client) = stage.client(cluster, "agent") else { return Ok(false) };
        if access::mark(&client, "Service", &namespace, &traffic.service, &metadata).await? {
            return Ok(true);
        }
        // A cloud cluster has the namespace only once something is placed there.
        let is_member = self.scenario.clusters.iter().any(|member| member.name == *cluster);
        let has_place = is_member || access::has_namespace(&client, &namespace).await?;
        if has_place {
            let mut service = json!({
                "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {"selector": traffic.selector, "ports": [{"port": 80}]},
            });
            service["metadata"]["name"] = json!(traffic.service);
            service["metadata"]["namespace"] = json!(namespace);
            access::apply(&client, &service).await?;
        }
        Ok(has_place)
    }

    /// Those in a cluster who send to a service, now or at another time.
    fn sources(&self, cluster: &str, service: &str) -> impl Iterator<Item = &'a Traffic> {
        let traffic = self.scenario.traffic.iter();
        traffic.filter(move |each| each.from == cluster && each.service == service)
    }

    fn namespace(&self, traffic: &Traffic) -> String {
        traffic.namespace.clone().unwrap_or_else(|| self.scenario.namespace.clone())
    }
}

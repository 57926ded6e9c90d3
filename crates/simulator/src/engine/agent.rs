//! Users send requests, and an agent in each member measures them.

use super::stage::Stage;
use super::{SimulationError, access};
use crate::scenario::{Scenario, Traffic};
use portolan_runtime::Seed;
use portolan_sandbox::{Source, World};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The users of a scenario, and the agents that measure what they send.
pub(crate) struct Agent<'a> {
    scenario: &'a Scenario,
    seed: Seed,
    /// What each source sends now, in requests of a thousand seconds.
    sent: BTreeMap<&'a str, u64>,
}

impl<'a> Agent<'a> {
    pub(super) fn new(scenario: &'a Scenario, seed: Seed) -> Self {
        Self { scenario, seed, sent: BTreeMap::new() }
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
    pub(super) async fn measure(&self, stage: &Stage, clusters: &[String]) -> Result<(), SimulationError> {
        let mut told = BTreeSet::new();
        for traffic in self.scenario.traffic.iter().filter(|traffic| !traffic.selector.is_empty()) {
            let namespace = self.namespace(traffic);
            if !told.insert((namespace.clone(), &traffic.service)) {
                continue;
            }
            for cluster in clusters {
                let is_here = |each: &&Traffic| each.from == *cluster && each.service == traffic.service;
                let sources = self.scenario.traffic.iter().filter(is_here);
                let sent: u64 = sources.filter_map(|source| self.sent.get(source.name.as_str())).sum();
                let service = json!({
                    "apiVersion": "v1", "kind": "Service",
                    "metadata": {
                        "name": traffic.service, "namespace": namespace,
                        "labels": {"portolan.dev/traffic": "told"},
                        "annotations": {
                            "io.cilium/global-service": "true",
                            "portolan.dev/requests-per-second": format!("{sent}m"),
                            "portolan.dev/traffic-measured-at": stage.world.clock().now().to_string(),
                        },
                    },
                    "spec": {"selector": traffic.selector, "ports": [{"port": 80}]},
                });
                let Ok(client) = stage.client(cluster, "agent") else { continue };
                // A cloud cluster has the namespace only once something is placed there.
                let is_member = self.scenario.clusters.iter().any(|member| member.name == *cluster);
                if is_member || access::has_namespace(&client, &namespace).await? {
                    access::apply(&client, &service).await?;
                }
            }
        }
        Ok(())
    }

    fn namespace(&self, traffic: &Traffic) -> String {
        traffic.namespace.clone().unwrap_or_else(|| self.scenario.namespace.clone())
    }
}

//! What users of a simulation ask for.

use super::tally::{Drawn, Tally};
use crate::{NAMESPACE, workload};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// Draws workloads that a fleet of these members can be asked for.
pub(super) struct Wishes<'a> {
    /// The names of the members.
    pub(super) members: &'a [String],
    /// What is drawn from.
    pub(super) rng: &'a mut ChaCha8Rng,
    /// Counts what is drawn.
    pub(super) tally: &'a mut Tally,
}

impl Wishes<'_> {
    /// A MultiClusterDeployment of this name.
    pub(super) fn draw(&mut self, name: &str) -> Value {
        let mut wish = self.places();
        if self.rng.random_bool(0.3) {
            wish["enableBursting"] = json!(true);
        }
        if self.rng.random_bool(0.3) {
            wish["onUnreachable"] = json!("ReplaceAfter");
            wish["replaceAfter"] = json!(format!("{}s", self.rng.random_range(10..=60)));
        }
        if self.rng.random_bool(0.2) {
            let from = &self.members[self.rng.random_range(0..self.members.len())];
            wish["maxLatency"] =
                json!({"from": from, "rtt": format!("{}ms", self.rng.random_range(10..=60))});
        }
        let total = self.rng.random_bool(0.3);
        wish["replicasMode"] = json!(if total { "Total" } else { "PerLocation" });
        if total && self.rng.random_bool(0.5) {
            self.tally.add(Drawn::Weights);
            wish["weights"] = self.weights(&wish);
        }
        if self.rng.random_bool(0.1) {
            self.tally.add(Drawn::DriftReported);
            wish["driftPolicy"] = json!("Report");
        }
        if self.rng.random_bool(0.04) {
            self.tally.add(Drawn::PausedAtFirst);
            wish["paused"] = json!(true);
        }
        wish["selector"] = json!({"matchLabels": {"app": "any"}});
        wish["template"] = self.template();
        if let Some(strategy) = self.strategy() {
            wish["strategy"] = strategy;
        }
        let replicas = self.rng.random_range(0..=4);
        workload(name, replicas, wish)
    }

    /// How pods are replaced. In a full cluster a rolling update that also grows may wait for ever for room that its own old
    /// pods hold; so it is in Kubernetes.
    fn strategy(&mut self) -> Option<Value> {
        match self.rng.random_range(0..20) {
            0..=13 => Some(json!({"type": "Recreate"})),
            14..=18 => {
                self.tally.add(Drawn::RollingUpdate);
                let surge = self.rng.random_range(0..=1);
                let rolling = json!({"maxUnavailable": 1, "maxSurge": surge});
                Some(json!({"type": "RollingUpdate", "rollingUpdate": rolling}))
            }
            _ => {
                self.tally.add(Drawn::DefaultStrategy);
                None
            }
        }
    }

    /// Shares of some clusters among those that the wish names, or of all.
    fn weights(&mut self, wish: &Value) -> Value {
        let named = wish["locations"].as_array().map_or(self.members.len(), Vec::len);
        let share = |cluster: &String| json!({"cluster": cluster, "weight": self.rng.random_range(0..=3)});
        let mut weights: Vec<Value> = self.members[..named].iter().map(share).collect();
        // One of them must be more than none.
        weights[0]["weight"] = json!(self.rng.random_range(1..=3));
        weights.truncate(self.rng.random_range(1..=named));
        json!(weights)
    }

    /// For some workloads: how their clusters are spread over zones.
    fn spread(&mut self, mut wish: Value) -> Value {
        if self.rng.random_bool(0.25) {
            self.tally.add(Drawn::Spread);
            let otherwise = ["DoNotSchedule", "ScheduleAnyway"][self.rng.random_range(0..2)];
            let mut spread = json!({"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": otherwise});
            if self.rng.random_bool(0.3) {
                spread["minDomains"] = wish["numberOfLocations"].clone();
            }
            wish["spread"] = json!([spread]);
        }
        wish
    }

    fn places(&mut self) -> Value {
        match self.rng.random_range(0..3) {
            0 => {
                let count = self.rng.random_range(1..=self.members.len());
                let mut wish = json!({"locations": self.members[..count]});
                if self.rng.random_bool(0.4) {
                    wish["enableSubstitution"] = json!(true);
                }
                wish
            }
            1 => {
                let count = self.rng.random_range(1..=2);
                self.spread(json!({"placementPolicy": "worst-fit", "numberOfLocations": count}))
            }
            _ => self.spread(json!({"placementPolicy": "best-fit", "numberOfLocations": 1})),
        }
    }

    /// A pod template: one container, or more of every sort.
    fn template(&mut self) -> Value {
        let request = format!("{}m", self.rng.random_range(1..=8) * 100);
        let mut main = json!({"name": "main", "image": "app:1", "resources": {"requests": {"cpu": request}}});
        if self.rng.random_bool(0.1) {
            self.tally.add(Drawn::LimitsOnly);
            main["resources"] = json!({"limits": {"cpu": request}});
        }
        if let Some(reference) = reference(self.rng) {
            self.tally.add(Drawn::Reference);
            main["envFrom"] = reference;
        }
        let small = |name: &str, image: &str| json!({"name": name, "image": image, "resources": {"requests": {"cpu": "50m"}}});
        let (mut containers, mut first) = (vec![main], Vec::new());
        if self.rng.random_bool(0.15) {
            self.tally.add(Drawn::SeveralContainers);
            containers.push(small("helper", "helper:1"));
        }
        if self.rng.random_bool(0.1) {
            self.tally.add(Drawn::SameImages);
            containers.push(small("worker", "app:1"));
        }
        if self.rng.random_bool(0.1) {
            self.tally.add(Drawn::InitContainer);
            let mut init = small("init", "init:1");
            init["resources"]["requests"]["cpu"] = json!("600m");
            first.push(init);
        }
        if self.rng.random_bool(0.1) {
            self.tally.add(Drawn::Sidecar);
            let mut sidecar = small("sidecar", "sidecar:1");
            sidecar["restartPolicy"] = json!("Always");
            first.push(sidecar);
        }
        let mut spec = json!({ "containers": containers });
        if !first.is_empty() {
            spec["initContainers"] = json!(first);
        }
        if self.rng.random_bool(0.1) {
            self.tally.add(Drawn::Overhead);
            spec["runtimeClassName"] = json!(RUNTIME_CLASS);
        }
        json!({"metadata": {"labels": {"app": "any"}}, "spec": spec})
    }
}

/// The RuntimeClass that every member has, whose pods cost more than they ask for.
pub(super) const RUNTIME_CLASS: &str = "heavy";

/// That RuntimeClass with an overhead of so many thousandths of a CPU.
pub(super) fn runtime_class(overhead: u32) -> Value {
    json!({
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": RUNTIME_CLASS},
        "handler": RUNTIME_CLASS,
        "overhead": {"podFixed": {"cpu": format!("{overhead}m")}},
    })
}

/// For some containers: the ConfigMap that they take their environment from.
pub(super) fn reference(rng: &mut ChaCha8Rng) -> Option<Value> {
    let name = rng.random_bool(0.4).then(|| format!("config{}", rng.random_range(0..3)))?;
    Some(json!([{"configMapRef": {"name": name}}]))
}

/// One of the ConfigMaps that workloads refer to.
pub(super) fn config(number: u32, value: u32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("config{number}"), "namespace": NAMESPACE},
        "data": {"value": value.to_string()},
    })
}

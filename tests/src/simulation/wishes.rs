//! What users of a simulation ask for.

use crate::{NAMESPACE, workload};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// Draws workloads that a fleet of these members can be asked for.
pub(super) struct Wishes<'a> {
    /// The names of the members.
    pub(super) members: &'a [&'a str],
    /// What is drawn from.
    pub(super) rng: &'a mut ChaCha8Rng,
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
            let from = self.members[self.rng.random_range(0..self.members.len())];
            wish["maxLatency"] =
                json!({"from": from, "rtt": format!("{}ms", self.rng.random_range(10..=60))});
        }
        wish["replicasMode"] = json!(if self.rng.random_bool(0.3) { "Total" } else { "PerLocation" });
        wish["selector"] = json!({"matchLabels": {"app": "any"}});
        wish["template"] = self.template();
        // In a full cluster a rolling update that also grows may wait for ever for room that its own old pods hold;
        // so it is in Kubernetes.
        wish["strategy"] = json!({"type": "Recreate"});
        let replicas = self.rng.random_range(0..=4);
        workload(name, replicas, wish)
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
            1 => json!({"placementPolicy": "worst-fit", "numberOfLocations": self.rng.random_range(1..=2)}),
            _ => json!({"placementPolicy": "best-fit", "numberOfLocations": 1}),
        }
    }

    fn template(&mut self) -> Value {
        let request = format!("{}m", self.rng.random_range(1..=8) * 100);
        let mut container =
            json!({"name": "main", "image": "app:1", "resources": {"requests": {"cpu": request}}});
        if let Some(reference) = reference(self.rng) {
            container["envFrom"] = reference;
        }
        json!({"metadata": {"labels": {"app": "any"}}, "spec": {"containers": [container]}})
    }
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

//! Members that answer whatever they like to the controllers, and have definitions of their own.

use super::Story;
use super::faults::LONGEST;
use crate::NAMESPACE;
use crate::simulation::tally::Drawn;
use crate::simulation::{PARTIES, apply, try_apply};
use portolan_sandbox::{HostileAnswer, HostileRule, RequestFilter};
use rand::RngExt;
use serde_json::{Value, json};
use std::time::Duration;

/// How much of an answer without end is sent.
const ENDLESS: usize = 8 << 20;

/// The longest that a member takes for an answer, in seconds.
const LATEST: u64 = 45;

impl Story {
    /// A member turns hostile to the controllers on one resource; others are answered honestly.
    pub(super) fn turn_hostile(&mut self, member: usize, resource: &str) {
        let (drawn, answer) = match self.rng.random_range(0..4) {
            0 => (Drawn::HostileContent, self.content()),
            1 => {
                let chunk = "{\"metadata\":{\"name\":\"again\"}},".repeat(2048);
                let head = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[".to_owned();
                (Drawn::HostileSize, HostileAnswer::Endless { head, chunk, limit: ENDLESS })
            }
            2 => {
                let late = Duration::from_secs(self.rng.random_range(1..=LATEST));
                (Drawn::HostileDelay, HostileAnswer::Late(late))
            }
            _ => (Drawn::HostileObjects, self.invention()),
        };
        self.count(drawn);
        let cluster = self.fleet.members[member].name().to_owned();
        let rule = |party: &&str| {
            let requests = RequestFilter::any().party(*party).resource(resource);
            HostileRule::new(requests, answer.clone())
        };
        self.fleet.world.hostile(&cluster, PARTIES.iter().map(rule).collect());
        PARTIES.iter().for_each(|party| self.fleet.world.end_watches(party, &cluster));
        // What it says of copies and Jobs is acted on, and what comes of that is its own doing.
        self.readiness.unseen(&cluster);
        self.observer.excuse_all(&cluster);
        let acts = self.rng.random_range(1..=LONGEST);
        self.hostile.insert(member, acts);
    }

    /// Members are honest again after their time, or all of them at once.
    pub(super) fn end_hostility(&mut self, all: bool) {
        let over = |left: usize| all || left == 0;
        let ended: Vec<usize> =
            self.hostile.iter().filter(|(_, left)| over(**left)).map(|(member, _)| *member).collect();
        for member in ended {
            self.hostile.remove(&member);
            let cluster = self.fleet.members[member].name().to_owned();
            self.fleet.world.hostile(&cluster, Vec::new());
            // What it told stays believed until it tells something else.
            PARTIES.iter().for_each(|party| self.fleet.world.end_watches(party, &cluster));
            if self.faults.values().all(|(_, other)| *other != member) {
                self.seen_again(&cluster);
            }
        }
        self.hostile.values_mut().for_each(|left| *left -= 1);
    }

    /// An answer that is none.
    fn content(&mut self) -> HostileAnswer {
        let bodies =
            ["", "null", "[]", "{\"items\":null}", "{\"items\":[7]}", "<html>", "\u{0}\u{1b}[2J", "{"];
        let status = [200, 201, 204, 302, 418, 500, 599][self.rng.random_range(0..7)];
        HostileAnswer::body(status, bodies[self.rng.random_range(0..bodies.len())])
    }

    /// A change of every object.
    fn invention(&mut self) -> HostileAnswer {
        match self.rng.random_range(0..5) {
            0 => HostileAnswer::edit(|object| object["status"] = json!({})),
            1 => HostileAnswer::edit(|object| object["metadata"]["labels"] = json!({})),
            2 => HostileAnswer::edit(|object| object["metadata"]["name"] = json!("same")),
            3 => HostileAnswer::edit(|object| {
                object["status"]["allocatable"] = json!({"cpu": "1e30", "memory": "-5", "pods": "many"});
                for field in ["replicas", "readyReplicas", "succeeded", "active", "observedGeneration"] {
                    object["status"][field] = json!(1_000_000_000);
                }
            }),
            _ => HostileAnswer::edit(|object| {
                object["metadata"]["uid"] = json!("another");
                object["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
            }),
        }
    }

    /// A member has a kind of its own that is called like one of Kubernetes, and an object of it.
    pub(super) async fn define_a_kind(&mut self, member: usize) {
        self.count(Drawn::ForeignDefinition);
        let client = self.fleet.members[member].client("user");
        let (plural, kind) =
            [("deployments", "Deployment"), ("jobs", "Job"), ("nodes", "Node")][self.rng.random_range(0..3)];
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version =
            json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "versions": [version],
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            },
        });
        apply(&client, &definition).await;
        let object = json!({
            "apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "app0", "namespace": NAMESPACE},
            "spec": {"replicas": "none"},
        });
        self.apply_soon(member, &object).await;
    }

    /// A member has the definitions of a hub and a workload of its own, which is nobody's here.
    pub(super) async fn make_it_a_hub(&mut self, member: usize) {
        self.count(Drawn::OwnDefinitions);
        let client = self.fleet.members[member].client("user");
        for definition in portolan_api::crds() {
            apply(&client, &serde_json::to_value(definition).expect("a definition is JSON")).await;
        }
        let own = crate::workload("app1", 3, json!({"locations": ["m1"]}));
        self.apply_soon(member, &own).await;
    }

    /// Applies an object whose kind was defined a moment ago.
    async fn apply_soon(&self, member: usize, object: &Value) {
        let client = self.fleet.members[member].client("user");
        let mut refused = String::new();
        for _ in 0..20 {
            match try_apply(&client, object).await {
                Ok(_) => return,
                Err(error) => refused = error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Somebody deletes the namespace meanwhile, or a policy does not let it in.
        let expected = refused.contains("namespace") || refused.contains("denied request");
        assert!(expected, "{} is not taken although it is defined: {refused}", object["kind"]);
    }
}

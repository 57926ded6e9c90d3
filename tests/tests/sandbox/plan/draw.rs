//! Draws fleets, workloads, jobs and edits.

use portolan_tests::{foreign_cluster, job, workload};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What draws.
pub(super) struct Draw {
    pub(super) rng: ChaCha8Rng,
    pub(super) members: usize,
}

impl Draw {
    pub(super) fn one_of<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.rng.random_range(0..from.len())]
    }

    fn member(&mut self) -> &'static str {
        NAMES[self.rng.random_range(0..self.members)]
    }

    fn locations(&mut self) -> Vec<&'static str> {
        let mut names: Vec<_> =
            (0..self.members).map(|index| NAMES[index]).filter(|_| self.rng.random_bool(0.5)).collect();
        if names.is_empty() {
            names.push(self.member());
        }
        names
    }

    /// How clusters are chosen, and nothing else of a spec.
    fn places(&mut self) -> Value {
        let mut wish = match self.rng.random_range(0..4) {
            0 => json!({"locations": self.locations(), "enableSubstitution": true}),
            1 => json!({"locations": self.locations()}),
            2 => json!({"placementPolicy": "worst-fit", "numberOfLocations": self.rng.random_range(1..=2)}),
            _ => json!({"placementPolicy": "best-fit", "numberOfLocations": 1}),
        };
        if self.rng.random_bool(0.2) {
            wish["enableBursting"] = json!(true);
        }
        if self.rng.random_bool(0.2) {
            let tier = *self.one_of(&["x", "y", "none"]);
            wish["clusterSelector"] = json!({"matchLabels": {"tier": tier}});
        }
        if self.rng.random_bool(0.3) {
            wish["clusterTolerations"] = json!([{"key": "only", "operator": "Exists"}]);
        }
        if self.rng.random_bool(0.4) {
            wish["replicasMode"] = json!("Total");
            if let (Some(locations), true) =
                (wish["locations"].as_array().cloned(), self.rng.random_bool(0.5))
            {
                let weight = |name: &Value| json!({"cluster": name, "weight": self.rng.random_range(1..=4)});
                wish["weights"] = locations.iter().map(weight).collect();
            }
        }
        wish
    }

    fn containers(&mut self) -> Value {
        let image = format!("app:{}", self.rng.random_range(1..=3));
        let cpu = format!("{}m", self.rng.random_range(1..=9) * 100);
        let mut container = json!({"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}});
        match self.rng.random_range(0..15) {
            0 => container["imagee"] = json!("mistyped"),
            1 => container["resources"]["requests"]["cpu"] = json!("50"),
            2 => container["ports"] = json!([{"containerPort": 99_999}]),
            _ => {}
        }
        json!([container])
    }

    pub(super) fn workload(&mut self, name: &str) -> Value {
        let (replicas, places) = (self.rng.random_range(0..=5), self.places());
        let mut object = workload(name, replicas, places);
        object["spec"]["template"]["spec"]["containers"] = self.containers();
        self.strategy(&mut object);
        object
    }

    /// Where old pods do not make way for new ones, an update in a full cluster waits for ever.
    fn strategy(&mut self, object: &mut Value) {
        let rolling = json!({"rollingUpdate": {"maxUnavailable": 1}});
        let waiting = json!({"rollingUpdate": {"maxUnavailable": 0}});
        object["spec"]["strategy"] = self.one_of(&[json!({"type": "Recreate"}), rolling, waiting]).clone();
    }

    /// A cluster of the fleet: with a label, and perhaps tainted or cordoned.
    pub(super) fn cluster(&mut self, name: &str) -> Value {
        let mut cluster = foreign_cluster(name);
        cluster["metadata"]["labels"] = json!({"tier": self.one_of(&["x", "y"])});
        match self.rng.random_range(0..10) {
            0 => cluster["spec"]["unschedulable"] = json!(true),
            1 | 2 => cluster["spec"]["taints"] = json!([{"key": "only", "effect": "NoSchedule"}]),
            _ => {}
        }
        cluster
    }

    /// The same workload after somebody has edited it.
    pub(super) fn edit(&mut self, object: &Value) -> Value {
        let mut edited = object.clone();
        let spec = edited["spec"].as_object_mut().unwrap();
        match self.rng.random_range(0..11) {
            9 | 10 => {
                // Somebody moves it to one other place.
                let kept = ["replicas", "selector", "template", "strategy"];
                spec.retain(|field, _| kept.contains(&field.as_str()));
                let before = spec.get("locations").cloned();
                let to = (0..8).map(|_| self.member()).find(|name| Some(json!([name])) != before);
                spec.insert("locations".to_owned(), json!([to.unwrap_or("a")]));
            }
            0 | 1 => {
                let kept = ["replicas", "selector", "template", "strategy"];
                spec.retain(|field, _| kept.contains(&field.as_str()));
                spec.extend(self.places().as_object().unwrap().clone());
            }
            2 | 3 => spec["replicas"] = json!(self.rng.random_range(0..=6)),
            4 => spec["template"]["spec"]["containers"] = self.containers(),
            5 => {
                for field in ["enableSubstitution", "enableBursting", "clusterSelector", "numberOfLocations"]
                {
                    if self.rng.random_bool(0.6) {
                        spec.remove(field);
                    }
                }
            }
            6 if spec.contains_key("locations") && !spec.contains_key("weights") => {
                spec["locations"] = json!(self.locations());
            }
            7 => {
                let paused = spec.get("paused").is_some_and(|paused| *paused == true);
                spec.insert("paused".to_owned(), json!(!paused));
            }
            _ => {
                spec["template"]["spec"]["containers"] = self.containers();
                spec["replicas"] = json!(self.rng.random_range(1..=4));
            }
        }
        edited
    }

    /// A job whose pods run longer than anybody looks: completions do not move because others have finished.
    pub(super) fn job(&mut self, name: &str) -> Value {
        let (completions, parallelism) = (self.rng.random_range(1..=8), self.rng.random_range(1..=6));
        let places = self.job_places();
        let mut object = job(name, completions, parallelism, places);
        let template = &mut object["spec"]["template"];
        template["metadata"]["annotations"]["sandbox.portolan.dev/run-time"] = json!("1000000s");
        let cpu = format!("{}m", self.rng.random_range(1..=9) * 100);
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
        object
    }

    /// How the clusters of a job are chosen: completions are always a total.
    fn job_places(&mut self) -> Value {
        let mut wish = self.places();
        for field in ["replicasMode", "weights", "enableBursting"] {
            wish.as_object_mut().unwrap().remove(field);
        }
        wish
    }

    /// The same job after somebody has edited it.
    pub(super) fn edit_job(&mut self, object: &Value) -> Value {
        let mut edited = object.clone();
        let spec = edited["spec"].as_object_mut().unwrap();
        match self.rng.random_range(0..6) {
            0 | 1 => {
                spec.retain(|field, _| {
                    ["completions", "parallelism", "template", "suspend"].contains(&field.as_str())
                });
                spec.extend(self.job_places().as_object().unwrap().clone());
            }
            2 | 3 => spec["parallelism"] = json!(self.rng.random_range(1..=8)),
            4 => {
                let suspended = spec.get("suspend").is_some_and(|suspend| *suspend == true);
                spec.insert("suspend".to_owned(), json!(!suspended));
            }
            _ => {
                let image = format!("app:{}", self.rng.random_range(1..=3));
                spec["template"]["spec"]["containers"][0]["image"] = json!(image);
            }
        }
        edited
    }
}

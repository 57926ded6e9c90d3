//! What `plan` says of each cluster is what is there after the manifest was applied and everything has settled.
//!
//! Random fleets, and a row of random edits in each. `PROPTEST_CASES` says how many fleets; `PLAN_SEED` runs the one of
//! that number alone.

use super::{plan, there};
use crate::stage::{contend, pass, status, workloads};
use jiff::Timestamp;
use kube::api::PostParams;
use portolan_api::MultiClusterDeployment;
use portolan_api::placementreview::{ObjectReview, ReviewResult};
use portolan_runtime::Seed;
use portolan_sandbox::{NodeConfig, World, WorldConfig};
use portolan_tests::simulation::{Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, foreign_cluster, workload};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many edits each fleet sees.
const EDITS: usize = 6;

/// After this many seconds an edit has settled.
const SETTLES: u64 = 90;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Draws fleets, workloads and edits.
struct Draw {
    rng: ChaCha8Rng,
    members: usize,
}

impl Draw {
    fn one_of<'a, T>(&mut self, from: &'a [T]) -> &'a T {
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
        match self.rng.random_range(0..30) {
            0 => container["imagee"] = json!("mistyped"),
            1 => container["resources"]["requests"]["cpu"] = json!("50"),
            2 => container["ports"] = json!([{"containerPort": 99_999}]),
            _ => {}
        }
        json!([container])
    }

    fn workload(&mut self, name: &str) -> Value {
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
    fn cluster(&mut self, name: &str) -> Value {
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
    fn edit(&mut self, object: &Value) -> Value {
        let mut edited = object.clone();
        let spec = edited["spec"].as_object_mut().unwrap();
        match self.rng.random_range(0..9) {
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
}

/// What the plan leaves open: these are not held against it.
fn is_left_open(planned: &ObjectReview) -> bool {
    // A rolling update that waits for room holds up what is to go elsewhere.
    planned.clusters.iter().any(|each| each.note.is_some())
}

async fn came_true(fleet: &Fleet, planned: &ObjectReview, case: &str, before: &Templates) {
    let after = there(fleet, &planned.name).await;
    let expected: BTreeMap<String, i32> = planned
        .clusters
        .iter()
        .filter(|each| each.after > 0)
        .map(|each| (each.cluster.clone(), each.after))
        .collect();
    let found: BTreeMap<String, i32> =
        after.iter().map(|(cluster, (replicas, _))| (cluster.clone(), *replicas)).collect();
    let told = status(fleet, &planned.name).await;
    assert_eq!(expected, found, "{case}: plan {planned:#?}, status {told:#?}");
    if planned.result != ReviewResult::Invalid && planned.errors.is_empty() {
        assert_eq!(planned.pending, told.pending_replicas, "{case}: plan {planned:#?}, status {told:#?}");
    }
    for each in planned.clusters.iter().filter(|each| each.before > 0 && each.after > 0) {
        let replaced = each.replaced_pods.is_some_and(|pods| pods > 0);
        let changed = before.get(&each.cluster).map(|(_, template)| template)
            != after.get(&each.cluster).map(|(_, template)| template);
        assert_eq!(replaced, changed, "{case}: pods of {} are replaced: plan {planned:#?}", each.cluster);
    }
}

type Templates = BTreeMap<String, (i32, k8s_openapi::api::core::v1::PodTemplateSpec)>;

/// How often each thing happened.
type Counts = BTreeMap<&'static str, usize>;

/// What a plan that was held against what came said.
fn count(planned: &ObjectReview, seen: &mut Counts) {
    let result = match planned.result {
        ReviewResult::Unchanged => "unchanged",
        ReviewResult::Changes => "changes",
        ReviewResult::Pending => "pending",
        ReviewResult::Removes => "removes",
        ReviewResult::Invalid => "invalid",
    };
    let moves = planned.clusters.iter().any(|each| each.before > 0 && each.after == 0)
        && planned.clusters.iter().any(|each| each.before == 0 && each.after > 0);
    let facts = [
        (result, true),
        ("moves", moves),
        ("rollouts", planned.rollout.is_some()),
        ("paused", planned.paused),
        ("edits", planned.exists),
    ];
    for (fact, _) in facts.into_iter().filter(|(_, holds)| *holds) {
        *seen.entry(fact).or_default() += 1;
    }
}

/// Writes a manifest as a user does who applies from the server's side, or as one who replaces.
async fn write(fleet: &Fleet, manifest: &Value, replaces: bool) {
    if !replaces {
        return apply(&fleet.hub.client("user"), manifest).await;
    }
    let mut object: MultiClusterDeployment = serde_json::from_value(manifest.clone()).unwrap();
    let name = object.metadata.name.clone().unwrap();
    match workloads(fleet).get_opt(&name).await.unwrap() {
        None => _ = workloads(fleet).create(&PostParams::default(), &object).await.unwrap(),
        Some(live) => {
            object.metadata = live.metadata;
            workloads(fleet).replace(&name, &PostParams::default(), &object).await.unwrap();
        }
    }
}

/// One fleet and its edits.
async fn run(number: u64, seen: &mut Counts) {
    let mut draw = Draw { rng: Seed::new(number).child("plan").rng(), members: 0 };
    draw.members = draw.rng.random_range(2..=NAMES.len());
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let world = World::new(WorldConfig { seed: number, start, ..WorldConfig::default() });
    let mut members = Vec::new();
    for name in &NAMES[..draw.members] {
        let cpus = *draw.one_of(&["1", "2", "4"]);
        members.push((*name, draw.rng.random_range(1..=3), NodeConfig::new(cpus, "8Gi")));
    }
    let fleet = Fleet::new(world, &members).await;
    let user = fleet.hub.client("user");
    for name in &NAMES[..draw.members] {
        apply(&user, &draw.cluster(name)).await;
        if draw.rng.random_bool(0.1) {
            let closed = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
            apply(&fleet.world.cluster(name).unwrap().client("user"), &closed).await;
        }
    }
    let _controller = contend(&fleet, Contender::alone());
    pass(10).await;
    let mut objects = [draw.workload("one"), draw.workload("two")];
    for edit in 0..EDITS {
        let index = edit % objects.len();
        let manifest = if edit < objects.len() { objects[index].clone() } else { draw.edit(&objects[index]) };
        let planned = plan(&fleet, &manifest).await;
        let case = format!("PLAN_SEED={number} edit {edit} {manifest}");
        let refused = planned.errors.iter().any(|error| error.cluster.is_none() && error.reason == "Invalid");
        if refused {
            // The hub refuses it: nothing can be applied.
            *seen.entry("refused by the hub").or_default() += 1;
            continue;
        }
        let before = there(&fleet, &planned.name).await;
        write(&fleet, &manifest, index == 1).await;
        pass(SETTLES).await;
        if !is_left_open(&planned) {
            came_true(&fleet, &planned, &case, &before).await;
            count(&planned, seen);
        } else {
            *seen.entry("left open").or_default() += 1;
        }
        objects[index] = manifest;
    }
}

#[test]
fn what_plan_says_is_there_after_apply_has_settled() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("PLAN_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PROPTEST_CASES").unwrap_or(10),
    };
    let many = seeds.end - seeds.start >= 10;
    let mut seen = Counts::new();
    for seed in seeds {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(run(seed, &mut seen));
    }
    println!("{seen:#?}");
    for fact in ["unchanged", "changes", "pending", "removes", "invalid", "moves", "rollouts", "paused"] {
        assert!(!many || seen.contains_key(fact), "no plan {fact}: {seen:?}");
    }
}

//! A what-if from a fleet at work: read without a write, played, and compared with the fleet.

#![allow(clippy::unwrap_used)]

mod common;

use common::workload;
use jiff::Timestamp;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Config};
use portolan_api::MultiClusterDeployment;
use portolan_control::fleet::{Bearer, Credentials};
use portolan_control::peering::{Address, Peer, Sides, join as peer};
use portolan_control::{Settings, run_with};
use portolan_runtime::{Seed, Term};
use portolan_sandbox::{Cluster, ClusterConfig, NodeConfig, User, World, WorldConfig};
use portolan_simulator::{
    Converted, FleetState, Options, Record, Scenario, convert, join, load, read_hub, read_member, simulate,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The party of the world that reads the fleet.
const READER: &str = "reader";

struct Fleet {
    world: World,
    hub: Cluster,
}

impl Fleet {
    /// A hub with controllers, and the members paris (two nodes) and rome (one).
    async fn start() -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let world = World::new(WorldConfig { seed: 3, start, ..WorldConfig::default() });
        let hub = world.add_cluster(ClusterConfig::named("hub"));
        apply(
            &hub.client("user"),
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        )
        .await;
        for (name, nodes) in [("paris", 2), ("rome", 1)] {
            let config = ClusterConfig::named(name).nodes(nodes, NodeConfig::new("4", "8Gi"));
            let member = world.add_cluster(config).client("admin");
            let address = Address { server: format!("https://{name}"), ..Address::default() };
            let sides = Sides { hub: hub.client("admin"), member, address };
            let joined = Peer {
                name: name.to_owned(),
                namespaces: vec!["shop".to_owned()],
                token_lifetime: 86_400,
                ..Peer::default()
            };
            peer(&sides, &joined, world.clock().now(), &|_| ()).await.unwrap();
        }
        let fleet = Self { world, hub };
        fleet.control();
        fleet
    }

    fn control(&self) {
        let (hub, clock, world) =
            (self.hub.client("controller"), self.world.clock().clone(), self.world.clone());
        let dial = move |config: Config, bearer: Option<&Bearer>| {
            let host = config.cluster_url.host().unwrap_or_default().to_owned();
            let cluster = world.cluster(&host).ok_or_else(|| format!("no cluster is called {host}"))?;
            let anonymous = cluster.client_as("controller", User::named("system:anonymous"));
            Ok(bearer.map_or(anonymous.clone(), |bearer| bearer.put_on(anonymous)))
        };
        let connect = Arc::new(Credentials::dialling(hub.clone(), Arc::new(dial)));
        tokio::spawn(run_with(hub, connect, clock, Seed::new(3), Term::alone("test"), Settings::default()));
    }

    fn member(&self, name: &str, party: &str) -> Client {
        self.world.cluster(name).unwrap().client(party)
    }

    /// Where the replicas of a workload are.
    async fn placements(&self, name: &str) -> BTreeMap<String, i32> {
        let api: Api<MultiClusterDeployment> = Api::namespaced(self.hub.client("user"), "shop");
        let status = api.get(name).await.unwrap().status.unwrap_or_default();
        assert_eq!(status.pending_replicas, 0, "{name}: {status:?}");
        status.placements.into_iter().map(|each| (each.cluster, each.ready_replicas)).collect()
    }

    /// Reads it, as somebody who may read all, or nothing of some members.
    async fn read(&self, forbidden: &[&str]) -> Converted {
        let hub = read_hub(&self.hub.client(READER)).await.unwrap();
        let mut members = BTreeMap::new();
        for name in ["paris", "rome"] {
            let cluster = self.world.cluster(name).unwrap();
            let client = match forbidden.contains(&name) {
                true => cluster.client_as(READER, User::named("nobody")),
                false => cluster.client(READER),
            };
            members.insert(name.to_owned(), read_member(&client, name).await);
        }
        convert(&FleetState { hub, members }, self.world.clock().now())
    }
}

fn in_shop(mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!("shop");
    object
}

async fn apply(client: &Client, object: &Value) {
    let text = |field: &str| object[field].as_str().unwrap();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    api.patch(name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await.unwrap();
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// A pod that Portolan has nothing to do with.
fn other_pod(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"containers": [{"name": "main", "image": "other:1", "resources": {"requests": {"cpu": cpu}}}]},
    })
}

/// Web is in paris, which had most room then; pods of others came later, and it would go to rome now. Api is in rome.
async fn busy() -> (Fleet, BTreeMap<&'static str, BTreeMap<String, i32>>) {
    let fleet = Fleet::start().await;
    pass(30).await;
    apply(&fleet.hub.client("user"), &in_shop(workload("web", 3))).await;
    pass(30).await;
    for (name, cpu) in [("a", "2"), ("b", "2"), ("c", "1")] {
        apply(&fleet.member("paris", "admin"), &other_pod(name, cpu)).await;
        pass(5).await;
    }
    apply(&fleet.hub.client("user"), &in_shop(workload("api", 1))).await;
    pass(60).await;
    let placed =
        BTreeMap::from([("web", fleet.placements("web").await), ("api", fleet.placements("api").await)]);
    assert_eq!(placed["web"], BTreeMap::from([("paris".to_owned(), 3)]));
    assert_eq!(placed["api"], BTreeMap::from([("rome".to_owned(), 1)]));
    (fleet, placed)
}

fn in_a_world<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

fn play(scenario: &Scenario) -> Record {
    simulate(scenario, &Options { label: "today".to_owned(), ..Options::default() }, &mut |_, _| ()).unwrap()
}

fn for_minutes(found: &Converted, minutes: u64) -> Scenario {
    Scenario { duration: portolan_api::duration::Duration::from_secs(60 * minutes), ..found.scenario.clone() }
}

fn ready(record: &Record, workload: &str, cluster: &str) -> Vec<f64> {
    record.series(&format!("workload.{workload}.ready.{cluster}")).unwrap().values.clone()
}

#[test]
fn a_what_if_begins_with_the_placements_of_the_fleet_and_writes_nothing_to_it() {
    let (found, placed) = in_a_world(async {
        let (fleet, placed) = busy().await;
        let revisions = || ["hub", "paris", "rome"].map(|name| fleet.world.cluster(name).unwrap().revision());
        let before = revisions();
        let found = fleet.read(&[]).await;
        assert_eq!(revisions(), before, "nothing was written meanwhile");
        let lines = fleet.world.log().lines();
        let asked: Vec<&String> = lines.iter().filter(|line| line.contains(&format!(" {READER} "))).collect();
        assert!(asked.len() >= 13, "{asked:?}");
        // When, where, who, which of their requests, and the method.
        let reads = |line: &&&String| line.split(' ').nth(4) == Some("GET");
        assert_eq!(asked.iter().filter(reads).count(), asked.len(), "{asked:?}");
        (found, placed)
    });
    assert_eq!(found.assumptions, []);
    let today = for_minutes(&found, 2);
    let record = play(&today);
    for (workload, clusters) in &placed {
        for cluster in ["paris", "rome"] {
            let expected = f64::from(clusters.get(cluster).copied().unwrap_or(0));
            let ready = ready(&record, workload, cluster);
            assert!(ready.iter().all(|each| *each == expected), "{workload} in {cluster}: {ready:?}");
        }
    }
    let requested =
        |cluster: &str| record.series(&format!("cluster.{cluster}.cpuRequested")).unwrap().values[0];
    assert_eq!((requested("paris"), requested("rome")), (8.0, 1.0), "3 of web and 5 of others; 1 of api");
    let again = play(&today);
    assert_eq!(record.series_csv(), again.series_csv(), "the same seed gives the same bytes");

    // What if paris is lost? As a variant, for --compare.
    let file = "
duration: 5m
variants:
  lost:
    title: Paris is lost
    patch: [{op: add, path: /faults/-, value: {at: 15s, event: {loseCluster: {cluster: paris}}}}]
";
    let text = join(&found.scenario, "mine", file).unwrap();
    let lost = play(&load("mine", &text, Some("lost")).unwrap());
    assert_eq!(ready(&lost, "web", "rome").last(), Some(&3.0), "{:?}", lost.summary);
}

#[test]
fn a_member_that_may_not_be_read_is_named_and_has_what_the_hub_reports() {
    let found = in_a_world(async { busy().await.0.read(&["paris"]).await });
    let told: Vec<String> = found.assumptions.iter().map(ToString::to_string).collect();
    assert!(told.iter().all(|each| each.starts_with("paris: cannot list ")), "{told:?}");
    assert!(told.iter().any(|each| each.contains("2 nodes that are alike")), "{told:?}");
    let hint = found.assumptions[0].hint.as_deref().unwrap();
    assert!(hint.contains("--member-context paris=CONTEXT"), "{hint}");
    let record = play(&for_minutes(&found, 1));
    assert_eq!(ready(&record, "web", "paris")[0], 3.0, "the hub says where the replicas are");
    let requested = record.series("cluster.paris.cpuRequested").unwrap().values[0];
    assert_eq!(requested, 8.0, "the hub says how much is taken");
}

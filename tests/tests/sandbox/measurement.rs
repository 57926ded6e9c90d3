//! Members that measure their distance to the others, and what placement makes of it.

use crate::stage::{asking, pass, status};
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::foreigncluster::ForeignClusterStatus;
use portolan_api::{ClusterReport, ForeignCluster};
use portolan_control::fleet::{Connect, ConnectError};
use portolan_control::measurement::{Handshake, measure};
use portolan_control::{Settings, run_with};
use portolan_core::report::Endpoint;
use portolan_runtime::{Seed, Term};
use portolan_sandbox::{NodeConfig, World, WorldConfig};
use portolan_tests::simulation::{Fleet, apply};
use portolan_tests::workload;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Hands out clients of sandbox clusters, whose addresses are their names.
struct ByName(World);

impl Connect for ByName {
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let client = self.0.cluster(name).map(|cluster| cluster.client("controller"));
        Box::pin(async { client.ok_or(ConnectError::NoCredentials) })
    }

    fn server(&self, cluster: &str) -> Option<String> {
        Some(format!("https://{cluster}:6443"))
    }
}

/// Connects to nobody.
struct ToNobody;

impl Connect for ToNobody {
    fn connect<'a>(&'a self, _: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
        Box::pin(async { Err(ConnectError::NoCredentials) })
    }
}

/// The links of one cluster to the others.
struct LinksOf {
    world: World,
    own: &'static str,
}

impl Handshake for LinksOf {
    fn time<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Duration, String>> {
        Box::pin(async move {
            let other = self.world.cluster(&endpoint.host).ok_or("no such cluster")?;
            let started = Instant::now();
            other.client(self.own).apiserver_version().await.map_err(|error| error.to_string())?;
            Ok(started.elapsed())
        })
    }
}

/// By way of the hub, c3 is nearer to c2 than c4 is; straight, it is the other way round.
async fn fleet() -> (Fleet, JoinHandle<()>) {
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let world = World::new(WorldConfig { seed: 1, start, ..WorldConfig::default() });
    let node = |cpu: &str| NodeConfig::new(cpu, "8Gi");
    let fleet = Fleet::new(world, &[("c2", 1, node("2")), ("c3", 1, node("3")), ("c4", 1, node("3"))]).await;
    let far = [("controller", "c4", 30), ("c2", "c3", 40)];
    for (party, cluster, milliseconds) in far.into_iter().chain([("controller", "c3", 6), ("c2", "c4", 2)]) {
        fleet.world.set_round_trip(party, cluster, Duration::from_millis(milliseconds));
    }
    let controller = control(&fleet, Arc::new(ByName(fleet.world.clone())), true);
    (fleet, controller)
}

/// The controller of the hub, where measuring is switched on or not.
fn control(fleet: &Fleet, connect: Arc<dyn Connect>, measure_latency: bool) -> JoinHandle<()> {
    let (client, clock) = (fleet.hub.client("controller"), fleet.world.clock().clone());
    let settings = Settings { measure_latency, ..Settings::default() };
    tokio::spawn(run_with(client, connect, clock, Seed::new(1), Term::alone("test"), settings))
}

/// What an installation of Portolan brings into a member, as far as it matters here.
async fn install(fleet: &Fleet, member: usize) {
    let client = fleet.members[member].client("user");
    apply(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "portolan"}})).await;
    let definitions = portolan_api::crds().into_iter().filter(|crd| crd.spec.names.kind == "ClusterReport");
    for definition in definitions {
        apply(&client, &serde_json::to_value(definition).unwrap()).await;
    }
}

/// The controller of c2, where measuring is switched on.
fn measuring(fleet: &Fleet) -> JoinHandle<()> {
    let handshake = Arc::new(LinksOf { world: fleet.world.clone(), own: "c2" });
    let (client, clock) = (fleet.members[0].client("portolan-c2"), fleet.world.clock().clone());
    tokio::spawn(measure(client, handshake, clock, Seed::new(2), Term::alone("test")))
}

fn reports(fleet: &Fleet, member: usize) -> Api<ClusterReport> {
    Api::namespaced(fleet.members[member].client("user"), "portolan")
}

/// The one report that the hub has made in a member.
async fn report(fleet: &Fleet, member: usize) -> ClusterReport {
    let mut all = reports(fleet, member).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

async fn seen(fleet: &Fleet, name: &str) -> ForeignClusterStatus {
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    api.get(name).await.unwrap().status.unwrap_or_default()
}

/// What a member reports, as its ForeignCluster tells it.
async fn reported(fleet: &Fleet, name: &str) -> Vec<(String, Duration)> {
    let latencies = seen(fleet, name).await.reported_latencies.into_iter();
    latencies.map(|each| (each.to, each.rtt.0)).collect()
}

/// A workload that is too large for c2.
fn large() -> Value {
    let mut large = workload("large", 4, json!({"locations": ["c2"], "enableSubstitution": true}));
    large["spec"]["template"]["spec"]["containers"] = asking("900m");
    large
}

async fn placed(fleet: &Fleet) -> Option<String> {
    apply(&fleet.hub.client("user"), &large()).await;
    pass(20).await;
    status(fleet, "large").await.locations_summary
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_goes_to_the_cluster_that_the_location_itself_finds_nearest() {
    let (fleet, _controller) = fleet().await;
    install(&fleet, 0).await;
    let _measuring = measuring(&fleet);
    pass(120).await;
    let times = reported(&fleet, "c2").await;
    let (c3, c4) = (Duration::from_millis(40), Duration::from_millis(2));
    assert_eq!(times, [("c3".to_owned(), c3), ("c4".to_owned(), c4)]);
    let report = report(&fleet, 0).await;
    let servers: Vec<&str> = report.spec.targets.iter().map(|target| target.server.as_str()).collect();
    assert_eq!(servers, ["https://c3:6443", "https://c4:6443"]);
    let conditions = report.status.unwrap().conditions;
    assert!(conditions::is_true(&conditions, ConditionType::Ready), "{conditions:?}");
    assert_eq!(placed(&fleet).await.as_deref(), Some("c2=2,c4=2"));
    for name in ["c2", "c3", "c4"] {
        let status = seen(&fleet, name).await;
        assert!(conditions::is_true(&status.conditions, ConditionType::Ready), "{name} is as well as before");
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_measure_learns_no_address_and_is_as_near_as_the_hub_says() {
    let (fleet, _controller) = fleet().await;
    install(&fleet, 0).await;
    pass(120).await;
    assert_eq!(report(&fleet, 0).await.spec.targets, []);
    assert_eq!(reported(&fleet, "c2").await, []);
    assert_eq!(placed(&fleet).await.as_deref(), Some("c2=2,c3=2"));
}

#[tokio::test(start_paused = true)]
async fn a_report_that_grows_old_is_not_believed_and_its_member_is_asked_for_nothing_more() {
    let (fleet, _controller) = fleet().await;
    install(&fleet, 0).await;
    let measuring = measuring(&fleet);
    pass(120).await;
    assert_eq!(reported(&fleet, "c2").await.len(), 2);
    measuring.abort();
    pass(180).await;
    assert_eq!(reported(&fleet, "c2").await.len(), 2, "a controller may be replaced");
    pass(240).await;
    assert_eq!(reported(&fleet, "c2").await, []);
    assert_eq!(report(&fleet, 0).await.spec.targets, []);
}

#[tokio::test(start_paused = true)]
async fn what_was_reported_does_not_outlive_a_hub_that_cannot_ask_any_more() {
    let (fleet, controller) = fleet().await;
    install(&fleet, 0).await;
    let _measuring = measuring(&fleet);
    pass(120).await;
    assert_eq!(reported(&fleet, "c2").await.len(), 2);
    controller.abort();
    fleet.world.partition("controller", "c2");
    let _controller = control(&fleet, Arc::new(ByName(fleet.world.clone())), true);
    pass(180).await;
    assert_eq!(reported(&fleet, "c2").await.len(), 2, "it may answer again");
    pass(180).await;
    assert_eq!(reported(&fleet, "c2").await, []);
}

#[tokio::test(start_paused = true)]
async fn what_was_reported_does_not_count_when_the_member_is_not_connected_to_or_not_asked() {
    for is_connected in [false, true] {
        let (fleet, controller) = fleet().await;
        install(&fleet, 0).await;
        let _measuring = measuring(&fleet);
        pass(120).await;
        assert_eq!(reported(&fleet, "c2").await.len(), 2);
        controller.abort();
        let _controller = if is_connected {
            control(&fleet, Arc::new(ByName(fleet.world.clone())), false)
        } else {
            control(&fleet, Arc::new(ToNobody), true)
        };
        pass(60).await;
        assert_eq!(reported(&fleet, "c2").await, [], "{is_connected}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_whose_operator_has_not_switched_it_on_tells_no_member_of_another() {
    let (fleet, controller) = fleet().await;
    controller.abort();
    install(&fleet, 0).await;
    let _controller = control(&fleet, Arc::new(ByName(fleet.world.clone())), false);
    let _measuring = measuring(&fleet);
    pass(120).await;
    assert_eq!(reports(&fleet, 0).list(&ListParams::default()).await.unwrap().items, []);
    assert_eq!(reported(&fleet, "c2").await, []);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_falls_silent_is_reported_no_more() {
    let (fleet, _controller) = fleet().await;
    install(&fleet, 0).await;
    let _measuring = measuring(&fleet);
    pass(120).await;
    fleet.world.partition("c2", "c3");
    pass(120).await;
    let names: Vec<String> = reported(&fleet, "c2").await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["c4"]);
}

#[tokio::test(start_paused = true)]
async fn of_what_a_member_says_only_what_can_be_is_believed() {
    let (fleet, _controller) = fleet().await;
    install(&fleet, 2).await;
    pass(40).await;
    let name = report(&fleet, 2).await.metadata.name.unwrap();
    let latencies = json!([
        {"to": "c2", "rtt": "0s"}, {"to": "c3", "rtt": "7ms"}, {"to": "c4", "rtt": "1ms"}, {"to": "hub", "rtt": "1ms"},
        {"to": "mooon", "rtt": "3ms"},
    ]);
    let tell = async |ahead: i64| {
        let at = fleet.world.clock().now() + jiff::SignedDuration::from_secs(ahead);
        let patch = Patch::Merge(json!({"status": {"observedAt": at, "latencies": latencies}}));
        reports(&fleet, 2).patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
        pass(60).await;
        reported(&fleet, "c4").await
    };
    assert_eq!(tell(0).await, [("c3".to_owned(), Duration::from_millis(7))]);
    assert_eq!(tell(3600).await, [], "nobody has measured what will be");
}

//! What placement measures or is told: round-trip times, the room of clusters, traffic.

use crate::stage::{asking, condition, pass, patch, replicas, start, status};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use portolan_api::ForeignCluster;
use portolan_api::conditions::ConditionType;
use portolan_api::foreigncluster::{ForeignClusterStatus, LatencySource};
use portolan_sandbox::Source;
use portolan_tests::simulation::{Fleet, apply};
use portolan_tests::{NAMESPACE, workload};
use serde_json::json;
use std::time::Duration;

async fn cluster(fleet: &Fleet, name: &str) -> ForeignCluster {
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    api.get(name).await.unwrap()
}

async fn seen(fleet: &Fleet, name: &str) -> ForeignClusterStatus {
    cluster(fleet, name).await.status.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn round_trip_times_are_measured_and_written_when_they_change() {
    let (fleet, _controller) = start().await;
    fleet.world.set_round_trip("controller", "c2", Duration::from_millis(20));
    pass(60).await;
    let first = seen(&fleet, "c2").await.latencies;
    assert_eq!((first[0].to.as_str(), first[0].source), ("hub", LatencySource::Measured));
    assert_eq!(first[0].rtt, portolan_api::Duration::from_millis(20));
    // Only when it was last seen moves by itself.
    let told = async || ForeignClusterStatus { last_seen: None, ..seen(&fleet, "c2").await };
    let before = told().await;
    fleet.world.set_round_trip("controller", "c2", Duration::from_millis(21));
    pass(300).await;
    assert_eq!(told().await, before, "nothing worth telling");
    fleet.world.set_round_trip("controller", "c2", Duration::from_millis(60));
    pass(120).await;
    let later = seen(&fleet, "c2").await.latencies;
    assert!(later[0].rtt > portolan_api::Duration::from_millis(45), "{later:?}");
    assert!(later[0].measured_at > first[0].measured_at);
}

#[tokio::test(start_paused = true)]
async fn measured_round_trips_bound_where_replicas_may_go() {
    let (fleet, _controller) = start().await;
    fleet.world.set_round_trip("controller", "c2", Duration::from_millis(5));
    fleet.world.set_round_trip("controller", "c3", Duration::from_millis(80));
    pass(60).await;
    let bound = json!({"placementPolicy": "worst-fit", "maxLatency": {"from": "c2", "rtt": "50ms"}});
    apply(&fleet.hub.client("user"), &workload("near", 1, bound)).await;
    pass(20).await;
    let near = status(&fleet, "near").await;
    assert_eq!(near.locations_summary.as_deref(), Some("c2=1"), "c3 has more room and is too far");
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_nobody_knows_is_told_whether_replicas_are_placed_or_pending() {
    let (fleet, _controller) = start().await;
    let unknown = json!({"maxLatency": {"from": "mooon", "rtt": "50ms"}});
    let mut new = workload("new", 1, json!({"placementPolicy": "worst-fit"}));
    new["spec"]["maxLatency"] = unknown["maxLatency"].clone();
    apply(&fleet.hub.client("user"), &new).await;
    apply(&fleet.hub.client("user"), &workload("old", 1, json!({"placementPolicy": "worst-fit"}))).await;
    pass(20).await;
    assert_eq!(condition(&fleet, "old", ConditionType::Placed).await.2, "every replica has a cluster");
    patch(&fleet, "old", unknown).await;
    pass(20).await;
    assert_eq!(status(&fleet, "old").await.ready_summary.as_deref(), Some("1/1"), "what runs stays");
    assert_eq!(status(&fleet, "new").await.pending_replicas, 1);
    for name in ["new", "old"] {
        let (_, _, message) = condition(&fleet, name, ConditionType::Placed).await;
        assert!(message.contains("mooon is no member"), "{name}: {message}");
        assert!(message.contains("Correct spec.maxLatency.from"), "{name}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_room_of_a_cluster_is_told_in_its_status() {
    let (fleet, _controller) = start().await;
    let mut web = workload("web", 3, json!({"locations": ["c2"]}));
    web["spec"]["template"]["spec"]["containers"] = asking("500m");
    apply(&fleet.hub.client("user"), &web).await;
    while status(&fleet, "web").await.ready_replicas < 3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Numbers are gathered for a second, then they are told.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let seen = seen(&fleet, "c2").await;
    let nodes = seen.nodes.unwrap();
    assert_eq!((nodes.total, nodes.ready), (1, 1));
    let milli = |quantities: &portolan_api::placement::Resources| {
        portolan_core::capacity::Amounts::parse(quantities).unwrap().get("cpu")
    };
    assert_eq!(milli(&seen.allocated), 1500);
    assert_eq!(milli(&seen.capacity) - milli(&seen.allocated), milli(&seen.available));
    assert_eq!(seen.pending_pods, Some(0));
}

/// Users in one member send requests to the service.
fn send(fleet: &Fleet, member: &str, per_second: u64) {
    let source = Source {
        cluster: member.to_owned(),
        namespace: NAMESPACE.to_owned(),
        service: "web".to_owned(),
        requests_per_1000s: per_second * 1000,
    };
    fleet.world.send_traffic(member, source);
}

/// What somebody who measures in each member would write: the requests of the users there. Sources are named by theirs.
async fn record(fleet: &Fleet) {
    let flows = fleet.world.traffic();
    for member in &fleet.members {
        let sent =
            flows.iter().filter(|flow| flow.source == member.name()).map(|flow| flow.requests_per_1000s);
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "web",
                "namespace": NAMESPACE,
                "labels": {"portolan.dev/traffic": "told"},
                "annotations": {
                    "io.cilium/global-service": "true",
                    "portolan.dev/requests-per-second": format!("{}m", sent.sum::<u64>()),
                    "portolan.dev/traffic-measured-at": fleet.world.clock().now().to_string(),
                },
            },
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        });
        apply(&member.client("user"), &service).await;
    }
}

async fn minutes(fleet: &Fleet, minutes: u64) -> Vec<String> {
    let mut places = Vec::new();
    for _ in 0..minutes * 4 {
        record(fleet).await;
        for _ in 0..15 {
            pass(1).await;
            let mut ready = 0;
            for member in &fleet.members {
                let api: Api<Deployment> = Api::namespaced(member.client("user"), NAMESPACE);
                let copy = api.get_opt("web").await.unwrap();
                ready += copy.and_then(|copy| copy.status?.ready_replicas).unwrap_or(0);
            }
            assert!(ready >= 2, "only {ready} replicas were ready");
        }
        let place = status(fleet, "web").await.locations_summary.unwrap_or_default();
        if places.last() != Some(&place) {
            places.push(place);
        }
    }
    places
}

#[tokio::test(start_paused = true)]
async fn replicas_follow_the_traffic_and_do_not_go_back_and_forth() {
    let (fleet, _controller) = start().await;
    let by_traffic = json!({"placementPolicy": "traffic-aware", "numberOfLocations": 1});
    apply(&fleet.hub.client("user"), &workload("web", 2, by_traffic)).await;
    pass(10).await;
    let waiting = status(&fleet, "web").await;
    let placed = waiting.conditions.iter().find(|each| each.type_ == "Placed").unwrap();
    assert_eq!((placed.status.as_str(), placed.reason.as_str()), ("True", "PolicyFallback"));
    assert_eq!(waiting.locations_summary.as_deref(), Some("c3=2"), "as worst-fit would have it");

    send(&fleet, "c2", 40);
    send(&fleet, "c3", 10);
    record(&fleet).await;
    pass(60).await;
    assert_eq!(status(&fleet, "web").await.locations_summary.as_deref(), Some("c2=2"));
    assert_eq!(minutes(&fleet, 2).await, ["c2=2"]);

    send(&fleet, "c3", 50);
    assert_eq!(minutes(&fleet, 3).await, ["c2=2"], "a little more elsewhere moves nothing");
    send(&fleet, "c2", 10);
    let places = minutes(&fleet, 4).await;
    assert_eq!(places.last().map(String::as_str), Some("c3=2"), "the users have moved");
    assert!(places.len() <= 2, "the replicas move once: {places:?}");
    assert_eq!(replicas(&fleet, 0, "web").await, None);
}

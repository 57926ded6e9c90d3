//! MultiClusterHorizontalPodAutoscalers on the sandbox, on virtual time and simulated traffic.

use super::stage::{contend, events, fleet_of, pass, patch, replicas, start, status, workloads};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use portolan_api::{MultiClusterHorizontalPodAutoscaler, MultiClusterHorizontalPodAutoscalerStatus};
use portolan_sandbox::{
    FaultAnswer, FaultPlan, HostileAnswer, HostileRule, PartialFault, RequestFilter, Source,
};
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply, try_apply};
use portolan_tests::{NAMESPACE, service, workload};
use serde_json::{Value, json};

/// A workload whose pods use 10m for each request a second, of 100m that they ask for.
fn web(replicas: i32, more: Value) -> Value {
    let mut web = workload("web", replicas, more);
    let template = &mut web["spec"]["template"];
    template["metadata"]["annotations"] =
        json!({"sandbox.portolan.dev/cpu-per-request": "10m", "sandbox.portolan.dev/cpu": "0m"});
    template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("100m");
    web
}

/// An autoscaler of `web`.
fn autoscaler(name: &str, least: i32, most: i32) -> Value {
    portolan_tests::autoscaler(name, "web", least, most)
}

fn autoscalers(fleet: &Fleet) -> Api<MultiClusterHorizontalPodAutoscaler> {
    Api::namespaced(fleet.hub.client("user"), NAMESPACE)
}

async fn seen(fleet: &Fleet, name: &str) -> MultiClusterHorizontalPodAutoscalerStatus {
    autoscalers(fleet).get(name).await.unwrap().status.unwrap_or_default()
}

async fn condition(fleet: &Fleet, name: &str, type_: &str) -> (String, String, String) {
    let status = seen(fleet, name).await;
    let found = status.conditions.iter().find(|each| each.type_ == type_).cloned();
    assert!(found.is_some(), "{name} has no condition {type_}: {status:?}");
    let found = found.unwrap();
    (found.status, found.reason, found.message)
}

async fn asked_for(fleet: &Fleet) -> i32 {
    workloads(fleet).get("web").await.unwrap().spec.replicas
}

/// So many requests a second from clients in a cluster.
fn send(fleet: &Fleet, cluster: &str, requests: u64) {
    let source = Source {
        cluster: cluster.into(),
        namespace: NAMESPACE.into(),
        service: "web".into(),
        requests_per_1000s: requests * 1000,
    };
    fleet.world.send_traffic(cluster, source);
}

async fn set_up(fleet: &Fleet, workload: &Value, autoscaler: &Value) {
    let user = fleet.hub.client("user");
    apply(&user, workload).await;
    apply(&user, &service("web", json!({"app": "web"}))).await;
    apply(&user, autoscaler).await;
    // The first minutes of a pod say nothing about its CPU.
    pass(400).await;
}

#[tokio::test(start_paused = true)]
async fn load_scales_up_at_once_and_down_after_ten_minutes() {
    let (fleet, _controller) = start().await;
    set_up(&fleet, &web(1, json!({"locations": ["c2", "c3"]})), &autoscaler("web", 1, 8)).await;
    assert_eq!(asked_for(&fleet).await, 1, "{:?}", seen(&fleet, "web").await);
    assert_eq!(condition(&fleet, "web", "Ready").await.0, "True");
    send(&fleet, "c2", 15);
    pass(20).await;
    assert_eq!(
        asked_for(&fleet).await,
        3,
        "150% of the request, half of it is the aim: {:?}",
        seen(&fleet, "web").await
    );
    pass(40).await;
    let told = seen(&fleet, "web").await;
    assert_eq!((told.current_replicas, told.desired_replicas), (3, 3));
    assert_eq!(told.metrics_summary.as_deref().map(|text| text.starts_with("cpu ")), Some(true));
    let of = |name: &str| told.clusters.iter().find(|each| each.cluster == name).unwrap().clone();
    assert_eq!((of("c2").desired_replicas, of("c2").average_utilization), (3, Some(50)));
    assert_eq!(of("c3").average_utilization, Some(0), "the load of each cluster is told");
    assert!(events(&fleet, "web").await.contains(&"SuccessfulRescale".to_owned()));
    let placed = status(&fleet, "web").await;
    assert_eq!(placed.locations_summary.as_deref(), Some("c2=3,c3=3"), "it drives replicas and nothing else");

    fleet.world.stop_traffic("c2");
    pass(540).await;
    assert_eq!(asked_for(&fleet).await, 3, "not before ten minutes have passed");
    assert_eq!(condition(&fleet, "web", "AbleToScale").await.1, "ScaleDownStabilized");
    pass(120).await;
    assert_eq!(asked_for(&fleet).await, 1);
    assert_eq!(condition(&fleet, "web", "ScalingLimited").await.0, "True", "less than the least was wanted");
}

#[tokio::test(start_paused = true)]
async fn a_total_goes_where_the_load_is() {
    let fleet = fleet_of(&[("c2", 1, "4"), ("c3", 1, "4")], FaultPlan::none()).await;
    let _controller = contend(&fleet, Contender::alone());
    let total = web(4, json!({"locations": ["c2", "c3"]}));
    let mut total = total;
    total["spec"]["replicasMode"] = json!("Total");
    set_up(&fleet, &total, &autoscaler("web", 2, 20)).await;
    send(&fleet, "c3", 40);
    pass(120).await;
    let placed = status(&fleet, "web").await;
    let told = seen(&fleet, "web").await;
    assert!(asked_for(&fleet).await >= 8, "{told:?}");
    let (here, there) =
        (replicas(&fleet, 0, "web").await.unwrap(), replicas(&fleet, 1, "web").await.unwrap());
    assert!(there >= 8 && here <= 2, "{:?} {told:?}", placed.locations_summary);
    assert_eq!(placed.pending_replicas, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_silent_or_not_measured_makes_nothing_fewer() {
    let (fleet, _controller) = start().await;
    set_up(&fleet, &web(1, json!({"locations": ["c2", "c3"]})), &autoscaler("web", 1, 8)).await;
    send(&fleet, "c3", 15);
    pass(60).await;
    assert_eq!(asked_for(&fleet).await, 3);
    fleet.world.partition("controller", "c3");
    fleet.world.stop_traffic("c3");
    pass(1200).await;
    assert_eq!(asked_for(&fleet).await, 3, "nobody knows the load of c3: {:?}", seen(&fleet, "web").await);
    let silent = seen(&fleet, "web").await;
    let silent = silent.clusters.iter().find(|each| each.cluster == "c3").unwrap();
    assert!(silent.message.as_deref().is_some_and(|text| text.contains("silent")), "{silent:?}");
    fleet.world.heal("controller", "c3");
    let metrics = RequestFilter::any().resource("pods.metrics.k8s.io").cluster("c3");
    fleet.world.add_fault(PartialFault::new("no metrics", metrics, FaultAnswer::Status(503)));
    pass(1200).await;
    assert_eq!(asked_for(&fleet).await, 3, "c3 answers, its metrics do not");
    fleet.world.end_fault("no metrics");
    pass(700).await;
    assert_eq!(asked_for(&fleet).await, 1);
}

#[tokio::test(start_paused = true)]
async fn without_any_metric_it_says_so_and_changes_nothing() {
    let (fleet, _controller) = start().await;
    let metrics = RequestFilter::any().resource("pods.metrics.k8s.io");
    fleet.world.add_fault(PartialFault::new("no metrics", metrics, FaultAnswer::Status(503)));
    set_up(&fleet, &web(2, json!({"locations": ["c2"]})), &autoscaler("web", 1, 8)).await;
    assert_eq!(asked_for(&fleet).await, 2);
    let (active, reason, message) = condition(&fleet, "web", "ScalingActive").await;
    assert_eq!((active.as_str(), reason.as_str()), ("False", "FailedGetResourceMetric"));
    assert!(message.contains("unable to get cpu resource utilization"), "{message}");
    patch(&fleet, "web", json!({"replicas": 0})).await;
    pass(60).await;
    assert_eq!(asked_for(&fleet).await, 0, "whoever asks for none has switched it off");
    assert_eq!(condition(&fleet, "web", "ScalingActive").await.1, "ScalingDisabled");
}

#[tokio::test(start_paused = true)]
async fn two_autoscalers_of_one_workload_are_refused_with_both_names() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &autoscaler("second", 5, 8)).await;
    set_up(&fleet, &web(1, json!({"locations": ["c2"]})), &autoscaler("first", 3, 8)).await;
    assert_eq!(asked_for(&fleet).await, 1, "neither of them scales");
    for name in ["first", "second"] {
        let (ready, reason, message) = condition(&fleet, name, "Ready").await;
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "AmbiguousTarget"));
        assert!(message.contains("first and second"), "{message}");
    }
    autoscalers(&fleet).delete("second", &DeleteParams::default()).await.unwrap();
    pass(60).await;
    assert_eq!(condition(&fleet, "first", "Ready").await.0, "True");
    assert_eq!(asked_for(&fleet).await, 3, "the other one does now");
}

#[tokio::test(start_paused = true)]
async fn a_second_autoscaler_moves_no_replica() {
    let fleet = fleet_of(&[("c2", 1, "4"), ("c3", 1, "4")], FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    let mut total = web(4, json!({"locations": ["c2", "c3"]}));
    total["spec"]["replicasMode"] = json!("Total");
    set_up(&fleet, &total, &autoscaler("web", 2, 20)).await;
    send(&fleet, "c3", 40);
    pass(120).await;
    let before = (replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await);
    assert!(before.0 < before.1, "{before:?}");
    apply(&fleet.hub.client("user"), &autoscaler("another", 2, 20)).await;
    pass(60).await;
    assert_eq!(condition(&fleet, "web", "Ready").await.1, "AmbiguousTarget");
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await), before);
    controller.abort();
    let _again = contend(&fleet, Contender::alone());
    pass(60).await;
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await), before, "a new leader");
}

#[tokio::test(start_paused = true)]
async fn mistakes_are_named() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    apply(&user, &autoscaler("web", 1, 8)).await;
    pass(5).await;
    let (_, reason, message) = condition(&fleet, "web", "Ready").await;
    assert_eq!(reason, "FailedGetScale");
    assert_eq!(message, "there is no MultiClusterDeployment shop/web, which scaleTargetRef names");
    let refused = try_apply(&user, &autoscaler("wrong", 9, 8)).await.unwrap_err().to_string();
    assert!(refused.contains("minReplicas must not be greater than maxReplicas"), "{refused}");
    let hours = |start: &str, zone: &str| {
        let day =
            json!({"name": "day", "start": start, "end": "0 18 * * *", "timeZone": zone, "minReplicas": 4});
        Patch::Merge(json!({"spec": {"schedules": [day]}}))
    };
    let (api, params) = (autoscalers(&fleet), PatchParams::default());
    let refused = api.patch("web", &params, &hours("0 25 * * *", "Etc/UTC")).await.unwrap_err().to_string();
    assert!(refused.contains("must be a cron expression"), "{refused}");
    api.patch("web", &params, &hours("0 8 * * *", "Europe/Nowhere")).await.unwrap();
    set_up(&fleet, &web(1, json!({"locations": ["c2"]})), &json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unrelated", "namespace": NAMESPACE},
    })).await;
    let (_, reason, message) = condition(&fleet, "web", "Ready").await;
    assert_eq!(reason, "InvalidSchedule");
    assert!(message.contains("Europe/Nowhere"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_forgets_no_window() {
    let fleet = super::stage::fleet(FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    set_up(&fleet, &web(1, json!({"locations": ["c2"]})), &autoscaler("web", 1, 8)).await;
    send(&fleet, "c2", 15);
    pass(60).await;
    assert_eq!(asked_for(&fleet).await, 3);
    fleet.world.stop_traffic("c2");
    pass(300).await;
    controller.abort();
    let _again = contend(&fleet, Contender::alone());
    pass(240).await;
    assert_eq!(asked_for(&fleet).await, 3, "nine minutes");
    pass(420).await;
    assert_eq!(asked_for(&fleet).await, 1, "ten minutes after the start at the latest");
}

/// The requests of controllers for the list of autoscalers.
fn lists_of_autoscalers() -> RequestFilter {
    RequestFilter::any().resource("multiclusterhorizontalpodautoscalers.portolan.dev").verb("list")
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_has_not_listed_autoscalers_divides_no_total_anew() {
    let fleet = fleet_of(&[("c2", 1, "4"), ("c3", 1, "4")], FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    let mut total = web(4, json!({"locations": ["c2", "c3"]}));
    total["spec"]["replicasMode"] = json!("Total");
    set_up(&fleet, &total, &autoscaler("web", 2, 20)).await;
    send(&fleet, "c3", 40);
    pass(120).await;
    let before = (replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await);
    assert!(before.0 < before.1, "{before:?}");
    controller.abort();
    let held = PartialFault::new("no list", lists_of_autoscalers(), FaultAnswer::Status(503));
    fleet.world.add_fault(held);
    let _again = contend(&fleet, Contender::alone());
    pass(30).await;
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await), before);
    fleet.world.end_fault("no list");
}

#[tokio::test(start_paused = true)]
async fn a_hub_without_the_kinds_of_autoscalers_and_reschedulers_places_all_the_same() {
    let fleet = super::stage::fleet(FaultPlan::none()).await;
    let reschedulers = RequestFilter::any().resource("multiclusterreschedulers.portolan.dev");
    for (name, filter) in [("no autoscalers", lists_of_autoscalers()), ("no reschedulers", reschedulers)] {
        fleet.world.add_fault(PartialFault::new(name, filter, FaultAnswer::Status(404)));
    }
    let _controller = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &web(2, json!({"locations": ["c2"]}))).await;
    pass(30).await;
    assert_eq!(replicas(&fleet, 0, "web").await, Some(2), "{:?}", status(&fleet, "web").await);
}

/// The Prometheus of the hub answers every query so.
fn prometheus(fleet: &Fleet, answer: HostileAnswer) {
    let queries = RequestFilter::any()
        .party(CONTROLLER)
        .resource("services/proxy/api/v1/query")
        .namespace("monitoring")
        .name("prometheus:9090");
    fleet.world.hostile("hub", vec![HostileRule::new(queries, answer)]);
}

/// Series with these values.
fn series(values: &[&str]) -> HostileAnswer {
    let series: Vec<Value> =
        values.iter().map(|value| json!({"metric": {}, "value": [1_800_000_000, value]})).collect();
    let answer = json!({"status": "success", "data": {"resultType": "vector", "result": series}});
    HostileAnswer::body(200, answer.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_query_to_the_prometheus_of_the_hub_sets_replicas_and_without_the_right_none_go() {
    let fleet = super::stage::fleet(FaultPlan::none()).await;
    let mut contender = Contender::alone();
    contender.settings.prometheus = Some("monitoring/prometheus:9090".parse().unwrap());
    prometheus(&fleet, series(&["100", "20"]));
    let _controller = contend(&fleet, contender);
    let mut orders = autoscaler("web", 1, 8);
    orders["spec"]["metrics"] = json!([{"type": "External", "external": {
        "metric": {"name": "orders"}, "query": "sum by (site) (rate(orders[1m]))",
        "target": {"type": "AverageValue", "averageValue": "30"},
    }}]);
    set_up(&fleet, &web(1, json!({"locations": ["c2"]})), &orders).await;
    assert_eq!(asked_for(&fleet).await, 4, "30 of 120 each: {:?}", seen(&fleet, "web").await);
    assert_eq!(condition(&fleet, "web", "ScalingActive").await.1, "ValidMetricFound");
    assert_eq!(seen(&fleet, "web").await.metrics_summary.as_deref(), Some("orders 30/30"));
    let asked = "/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/api/v1/query?query=sum%20by%20%28site%29";
    assert!(fleet.world.log().lines().iter().any(|line| line.contains(asked)));

    let forbidden = "services \"prometheus:9090\" is forbidden: User \"system:serviceaccount:portolan:portolan-controller\" cannot \
                     get resource \"services/proxy\" in API group \"\" in the namespace \"monitoring\"";
    prometheus(&fleet, HostileAnswer::refusal(403, forbidden));
    pass(1200).await;
    assert_eq!(asked_for(&fleet).await, 4, "nobody knows how many orders there are");
    let (active, reason, message) = condition(&fleet, "web", "ScalingActive").await;
    assert_eq!((active.as_str(), reason.as_str()), ("False", "FailedGetExternalMetric"));
    for words in
        ["ask Prometheus monitoring/prometheus", "cannot get resource \"services/proxy\"", "\"monitoring\""]
    {
        assert!(message.contains(words), "{words}: {message}");
    }
    prometheus(&fleet, series(&["6"]));
    pass(700).await;
    assert_eq!(asked_for(&fleet).await, 1, "{:?}", seen(&fleet, "web").await);
    assert_eq!(condition(&fleet, "web", "ScalingActive").await.0, "True");
}

/// The requests that set the replicas of a workload.
fn scales() -> RequestFilter {
    RequestFilter::any().resource("multiclusterdeployments.portolan.dev/scale").verb("update")
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_is_told_and_does_not_flap() {
    let (fleet, _controller) = start().await;
    set_up(&fleet, &web(1, json!({"locations": ["c2"]})), &autoscaler("web", 1, 8)).await;
    fleet.world.add_fault(PartialFault::new("no scale", scales(), FaultAnswer::Status(403)));
    send(&fleet, "c2", 15);
    pass(60).await;
    for type_ in ["Ready", "AbleToScale"] {
        let (status, reason, _) = condition(&fleet, "web", type_).await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "FailedUpdateScale"), "{type_}");
    }
    let since = |status: &MultiClusterHorizontalPodAutoscalerStatus| {
        let each = status.conditions.iter();
        each.map(|each| (each.type_.clone(), each.last_transition_time.clone())).collect::<Vec<_>>()
    };
    let before = since(&seen(&fleet, "web").await);
    pass(300).await;
    assert_eq!(since(&seen(&fleet, "web").await), before, "no condition has changed");
    fleet.world.end_fault("no scale");
    pass(300).await;
    assert_eq!(asked_for(&fleet).await, 3);
    assert_eq!(condition(&fleet, "web", "Ready").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_lost_to_another_writer_is_soon_made_again() {
    let (fleet, _controller) = start().await;
    set_up(&fleet, &web(1, json!({"locations": ["c2"]})), &autoscaler("web", 1, 8)).await;
    fleet.world.add_fault(PartialFault::new("lost", scales(), FaultAnswer::Status(409)));
    send(&fleet, "c2", 15);
    for _ in 0..60 {
        pass(1).await;
        if seen(&fleet, "web").await.desired_replicas == 3 {
            break;
        }
    }
    assert_eq!((seen(&fleet, "web").await.desired_replicas, asked_for(&fleet).await), (3, 1));
    fleet.world.end_fault("lost");
    pass(3).await;
    assert_eq!(asked_for(&fleet).await, 3);
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_that_cannot_be_read_is_told_so() {
    let fleet = super::stage::fleet(FaultPlan::none()).await;
    apply(&fleet.hub.client("user"), &autoscaler("web", 1, 8)).await;
    let lists = RequestFilter::any()
        .party("controller")
        .resource("multiclusterhorizontalpodautoscalers.portolan.dev");
    let unreadable = HostileAnswer::edit(|object| object["spec"]["maxReplicas"] = json!("many"));
    fleet.world.hostile("hub", vec![HostileRule::new(lists, unreadable)]);
    let _controller = contend(&fleet, Contender::alone());
    pass(30).await;
    assert!(events(&fleet, "web").await.contains(&"Invalid".to_owned()));
}

//! Faults of a part of a cluster, and clusters that answer whatever they like.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{cluster, code, config_map};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::Api;
use kube::api::{PostParams, WatchParams};
use portolan_sandbox::{FaultAnswer, HostileAnswer, HostileRule, PartialFault, RequestFilter};
use serde_json::json;
use std::time::Duration;

fn lists() -> RequestFilter {
    RequestFilter::any().party("a").cluster("c1").verb("list").resource("configmaps")
}

#[tokio::test(start_paused = true)]
async fn one_verb_on_one_resource_fails_for_one_party() {
    let (world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("a"), "default");
    let others: Api<ConfigMap> = Api::namespaced(cluster.client("b"), "default");
    let secrets: Api<Secret> = Api::namespaced(cluster.client("a"), "default");
    for status in [401, 403, 404, 409, 410, 500, 503] {
        world.add_fault(PartialFault::new("f", lists(), FaultAnswer::Status(status)));
        assert_eq!(code(&maps.list(&Default::default()).await.unwrap_err()), status);
        assert!(maps.get_opt("x").await.unwrap().is_none(), "another verb");
        assert!(secrets.list(&Default::default()).await.is_ok(), "another resource");
        assert!(others.list(&Default::default()).await.is_ok(), "another party");
    }
    world.end_fault("f");
    assert!(maps.list(&Default::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_hang_lasts_as_long_as_the_fault_and_no_answer_may_have_been_done() {
    let (world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("a"), "default");
    let begin = tokio::time::Instant::now();
    world.add_fault(PartialFault::new("f", lists(), FaultAnswer::Hang).until(Duration::from_secs(90)));
    assert!(maps.list(&Default::default()).await.is_err());
    assert_eq!(begin.elapsed().as_secs(), 90);
    assert!(maps.list(&Default::default()).await.is_ok(), "over");
    let writes = RequestFilter::any().party("a").verb("create");
    world.add_fault(PartialFault::new("w", writes, FaultAnswer::NoAnswer));
    let (params, made) = (PostParams::default(), config_map("made", "x"));
    let asked = tokio::time::timeout(Duration::from_secs(100), maps.create(&params, &made));
    assert!(asked.await.is_err(), "nobody answers");
    assert!(maps.get_opt("made").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_may_say_that_it_is_not_ready() {
    let (world, cluster) = cluster();
    let client = cluster.client("a");
    let readiness = RequestFilter::any().party("a").resource("/readyz");
    world.add_fault(PartialFault::new("f", readiness, FaultAnswer::FailedCheck("etcd")));
    let ready = || http::Request::get("/readyz").body(kube::client::Body::empty()).unwrap();
    let answer = client.send(ready()).await.unwrap();
    assert_eq!(answer.status(), 500);
    let text = answer.into_body().collect_bytes().await.unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    assert!(text.contains("[-]etcd failed: reason withheld\nreadyz check failed"), "{text}");
    assert!(client.apiserver_version().await.is_ok(), "the version is told all the same");
    world.end_fault("f");
    assert_eq!(client.send(ready()).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn watches_are_ended() {
    let (world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("a"), "default");
    let mut watch = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    maps.create(&PostParams::default(), &config_map("one", "x")).await.unwrap();
    assert!(watch.try_next().await.unwrap().is_some());
    world.end_watches("a", "c1");
    while watch.try_next().await.unwrap().is_some() {}
}

#[tokio::test(start_paused = true)]
async fn a_hostile_cluster_answers_what_its_rules_say() {
    let (world, cluster) = cluster();
    let nodes: Api<Node> = Api::all(cluster.client("a"));
    let asked = || RequestFilter::any().party("a").resource("nodes");
    let invented = HostileAnswer::edit(|node| node["status"]["allocatable"]["cpu"] = json!("1e30"));
    world.hostile("c1", vec![HostileRule::new(asked(), invented)]);
    let listed = nodes.list(&Default::default()).await.unwrap();
    assert!(
        listed
            .iter()
            .all(|node| node.status.as_ref().unwrap().allocatable.as_ref().unwrap()["cpu"].0 == "1e30")
    );
    let mut watch = nodes.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let event = watch.try_next().await.unwrap().unwrap();
    let kube::core::WatchEvent::Added(node) = event else { panic!("not an added node: {event:?}") };
    assert_eq!(node.status.unwrap().allocatable.unwrap()["cpu"].0, "1e30");
    world.hostile("c1", vec![HostileRule::new(asked(), HostileAnswer::refusal(403, "no \u{1b}[2J"))]);
    assert_eq!(common::message(&nodes.list(&Default::default()).await.unwrap_err()), "no \u{1b}[2J");
    let endless =
        HostileAnswer::Endless { head: "{\"items\":[".into(), chunk: " ".repeat(1024), limit: 10_240 };
    world.hostile("c1", vec![HostileRule::new(asked(), endless)]);
    let answer = tokio::time::timeout(Duration::from_secs(3600), nodes.list(&Default::default())).await;
    assert!(answer.is_err(), "the body never ends");
    world.hostile("c1", Vec::new());
    assert!(nodes.list(&Default::default()).await.is_ok());
}

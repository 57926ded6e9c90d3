//! Protobuf in requests, JSON in answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::cluster;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// `ConfigMap` x of version v1.
const MAP: &[u8] = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01x\x1a\x00\x22\x00";

async fn send(client: &kube::Client, path: &str, accept: &str, body: &[u8]) -> (u16, String, Value) {
    let request = http::Request::builder()
        .method(if body.is_empty() { "GET" } else { "POST" })
        .uri(path)
        .header("content-type", PROTOBUF)
        .header("accept", accept)
        .body(Body::from(body.to_vec()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let (code, kind) =
        (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap().to_owned());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, kind, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test(start_paused = true)]
async fn protobuf_is_read_and_json_is_answered() {
    let (_world, cluster) = cluster();
    let client = cluster.client("typed");
    let (code, kind, made) = send(&client, MAPS, BOTH, MAP).await;
    assert_eq!(
        (code, kind.as_str(), made["metadata"]["name"].as_str()),
        (201, "application/json", Some("x"))
    );
    assert!(made["metadata"]["creationTimestamp"].is_string(), "{made}");
    let (code, kind, _) = send(&client, MAPS, BOTH, b"").await;
    assert_eq!((code, kind.as_str()), (200, "application/json"));
}

#[tokio::test(start_paused = true)]
async fn who_reads_only_protobuf_is_refused() {
    let (_world, cluster) = cluster();
    let client = cluster.client("typed");
    for body in [b"".as_slice(), MAP] {
        let (code, kind, told) = send(&client, MAPS, PROTOBUF, body).await;
        assert_eq!(
            (code, kind.as_str(), &told["reason"]),
            (406, "application/json", &"NotAcceptable".into())
        );
        let message = "only the following media types are accepted: application/json, application/yaml";
        assert_eq!(told["message"], message);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_named() {
    let (_world, cluster) = cluster();
    let client = cluster.client("typed");
    let refused = async |path: &str, body: &[u8]| {
        let (code, _, told) = send(&client, path, BOTH, body).await;
        assert_eq!(told["code"], code);
        (code, told["message"].as_str().unwrap().to_owned())
    };
    let truncated = refused(MAPS, &MAP[..MAP.len() - 5]).await;
    let shown = "6b3873000a0f0a0276311209436f6e6669674d617012050a030a01";
    let told =
        format!("the object provided is unrecognized (must be of type ConfigMap): unexpected EOF ({shown})");
    assert_eq!(truncated, (400, told));
    let mut damaged = MAP.to_vec();
    let inner = damaged.len() - 6;
    damaged[inner] = 9;
    let told = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF";
    assert_eq!(refused(MAPS, &damaged).await, (400, told.to_owned()));
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(refused(definitions, MAP).await.0, 415);
    let (code, told) = refused("/api/v1/namespaces/default/pods", MAP).await;
    assert_eq!(code, 400, "{told}");
}

//! Any bytes at any path give a proper answer. Seeded, so that what fails can be repeated.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod fuzzing;

use common::{cluster, eventually};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::client::Body;
use portolan_runtime::Seed;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

const PARTS: &[&str] = &[
    "api",
    "apis",
    "v1",
    "apps",
    "namespaces",
    "default",
    "pods",
    "deployments",
    "x",
    "status",
    "scale",
    "binding",
    "token",
    "eviction",
    "%2f",
    "%00",
    "..",
    "watch",
    "openapi",
    "v3",
    "events.k8s.io",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
    "rbac.authorization.k8s.io",
    "clusterroles",
    "authorization.k8s.io",
    "selfsubjectaccessreviews",
    "nodes",
    "c1-1",
    "services",
    "serviceaccounts",
    "jobs",
    "batch",
    "\u{e4}",
];
const QUERIES: &[&str] = &[
    "limit=1",
    "limit=x",
    "continue=abc",
    "continue=e30%3D",
    "resourceVersion=0",
    "resourceVersion=99999999999999999999",
    "fieldSelector=a%3Db",
    "fieldSelector=metadata.name%3Dx",
    "labelSelector=a%20in%20(b",
    "labelSelector=%21",
    "dryRun=All",
    "dryRun=x",
    "fieldManager=m",
    "force=true",
    "fieldValidation=Strict",
    "propagationPolicy=Foreground",
    "timeoutSeconds=1",
    "sendInitialEvents=true",
    "allowWatchBookmarks=1",
    "includeObject=None",
];
const BODIES: &[&str] = &[
    "",
    "null",
    "[]",
    "{}",
    "1",
    "\"x\"",
    "{",
    "{\"metadata\":null}",
    "{\"metadata\":[]}",
    "{\"metadata\":{\"name\":1}}",
    "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicas\":-1}}",
    "{\"metadata\":{\"name\":\"x\",\"labels\":{\"a\":null}},\"spec\":null}",
    "{\"metadata\":{\"name\":\"x\",\"managedFields\":[{\"manager\":1,\"operation\":\"Apply\",\"fieldsV1\":3}]}}",
    "[{\"op\":\"remove\",\"path\":\"/metadata\"}]",
    "[{\"op\":\"replace\",\"path\":\"\",\"value\":3}]",
    "{\"$patch\":\"replace\"}",
    "{\"spec\":{\"containers\":[{\"$patch\":\"x\"}]}}",
    "{\"spec\":{\"containers\":[1,null]}}",
    "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"9e999\"}}}]}}",
    "{\"metadata\":{\"name\":\"x\",\"ownerReferences\":[1]}}",
    "{\"target\":{\"name\":\"c1-1\"}}",
    "{\"spec\":{\"expirationSeconds\":-5}}",
    "{\"metadata\":{\"name\":\"a.b\"},\"spec\":{\"group\":\"b\",\"names\":{\"plural\":\"a\",\"kind\":\"A\"},\"scope\":\"Namespaced\",\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\"}}}}}]}}",
];
const TYPES: &[&str] = &[
    "application/json",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
];

fn pick<'a>(random: &mut ChaCha8Rng, from: &[&'a str]) -> &'a str {
    from[random.next_u32() as usize % from.len()]
}

fn request(random: &mut ChaCha8Rng) -> Option<http::Request<Body>> {
    let mut method = pick(random, &["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
    let mut kind = pick(random, TYPES);
    let depth = 1 + random.next_u32() % 8;
    let mut path: String = (0..depth).map(|_| format!("/{}", pick(random, PARTS))).collect();
    if !random.next_u32().is_multiple_of(4) {
        path = pick(
            random,
            &[
                "/api/v1/namespaces/default/pods",
                "/api/v1/namespaces/default/pods/x",
                "/api/v1/nodes/c1-1",
                "/apis/apps/v1/namespaces/default/deployments/x",
                "/apis/apps/v1/namespaces/default/deployments/x/scale",
                "/api/v1/namespaces/default/serviceaccounts/default/token",
                "/api/v1/namespaces/x",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                "/api/v1/namespaces/default/services",
                "/api/v1/namespaces/default/pods/x/status",
                "/api/v1/namespaces/default/pods/x/binding",
                "/api/v1/namespaces/default/pods/x/eviction",
                "/api/v1/namespaces/default/configmaps",
                "/api/v1/namespaces/default/configmaps/x",
                "/api/v1/namespaces",
                "/apis/batch/v1/namespaces/default/jobs",
                "/apis/events.k8s.io/v1/namespaces/default/events",
                "/apis/b/v1/namespaces/default/a",
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            ],
        )
        .to_owned();
    }
    // Most requests are almost right: only those get far.
    if !random.next_u32().is_multiple_of(4) {
        let named = ["/x", "/scale", "/status", "/c1-1"].iter().any(|end| path.ends_with(end));
        method = if named {
            pick(random, &["GET", "PUT", "PATCH", "PATCH", "DELETE"])
        } else {
            pick(random, &["GET", "POST", "POST"])
        };
        kind = if method == "PATCH" { TYPES[1 + random.next_u32() as usize % 4] } else { "application/json" };
    }
    let queries = random.next_u32() % 3;
    let query: Vec<&str> = (0..queries).map(|_| pick(random, QUERIES)).collect();
    let mut body = pick(random, BODIES).as_bytes().to_vec();
    if random.next_u32().is_multiple_of(4) && !body.is_empty() {
        let index = random.next_u32() as usize % body.len();
        body[index] = random.next_u32() as u8;
    }
    http::Request::builder()
        .method(method)
        .uri(format!("{path}?{}", query.join("&")))
        .header("content-type", kind)
        .header(
            "accept",
            pick(random, &["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "*/*", ""]),
        )
        .body(Body::from(body))
        .ok()
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_sent_breaks_it() {
    let (world, cluster) = cluster();
    let client = cluster.client("fuzz");
    let mut random = Seed::new(11).rng();
    let mut codes = std::collections::BTreeMap::<u16, usize>::new();
    for number in 0..20_000 {
        let Some(request) = request(&mut random) else { continue };
        let described = format!("request {number}: {} {}", request.method(), request.uri());
        let response = client.send(request).await.unwrap_or_else(|error| panic!("{described}: {error}"));
        let code = response.status().as_u16();
        assert!(matches!(code, 200..=299 | 400..=499 | 504) || code == 500, "{described}: {code}");
        let watching = described.contains("watch=");
        if !watching {
            let body = response.into_body().collect().await.unwrap().to_bytes();
            if code >= 400 && !body.starts_with(b"404") {
                let status: serde_json::Value =
                    serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{described}: {body:?}"));
                assert_eq!(
                    (status["kind"].as_str(), status["code"].as_u64()),
                    (Some("Status"), Some(u64::from(code))),
                    "{described}"
                );
            }
        }
        *codes.entry(code).or_default() += 1;
    }
    assert!(codes.len() >= 9, "too few kinds of answers: {codes:?}");
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("after"), "default");
    eventually("it still works", async || maps.get_opt("kube-root-ca.crt").await.unwrap().is_some()).await;
    assert_eq!(world.check(), []);
}

/// What `cargo xtask fuzz` found and what it begins with.
#[test]
fn the_corpus_is_answered_properly() {
    fuzzing::listen_for_panics();
    let mut wrong = Vec::new();
    let corpus = fuzzing::corpus();
    assert!(corpus.len() >= 20, "the corpus is gone");
    for (file, case) in corpus {
        assert_eq!(fuzzing::Case::parse(&case.to_string()).as_ref(), Ok(&case), "{}", file.display());
        let outcome = fuzzing::check(&case);
        wrong.extend(outcome.wrong.iter().map(|told| format!("{}: {told}", file.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

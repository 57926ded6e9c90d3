//! Custom resources: defaults, pruning, schema, rules, scale; held against the examples that a real API server judges.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use common::{cluster, code, eventually, message};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use portolan_api::examples::{Example, Verdict, load};
use portolan_sandbox::Cluster;
use serde_json::{Value, json};

async fn install(cluster: &Cluster) {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client("test"));
    for crd in portolan_api::crds() {
        let name = crd.metadata.name.clone().unwrap();
        definitions.patch(&name, &PatchParams::apply("test"), &Patch::Apply(&crd)).await.unwrap();
        eventually("it is established", async || {
            let found = definitions.get(&name).await.unwrap();
            let conditions = found.status.unwrap_or_default().conditions.unwrap_or_default();
            conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
        })
        .await;
    }
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(
            "content-type",
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" },
        )
        .body(if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() })
        .unwrap();
    client.request::<Value>(request).await
}

fn collection(object: &Value) -> String {
    let crds = portolan_api::crds();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == object["kind"].as_str().unwrap()).unwrap();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    let scope =
        if crd.spec.scope == "Namespaced" { format!("namespaces/{namespace}/") } else { String::new() };
    format!("/apis/portolan.dev/v1alpha1/{scope}{}", crd.spec.names.plural)
}

/// The answer to the last step of an example.
async fn judge(client: &Client, example: &Example) -> Result<Value, kube::Error> {
    let mut stored: Option<Value> = None;
    for (index, step) in example.steps.iter().enumerate() {
        let namespace =
            json!({"metadata": {"name": step["metadata"]["namespace"].as_str().unwrap_or("default")}});
        send(client, "POST", "/api/v1/namespaces", &namespace).await.ok();
        let path = collection(step);
        let object = format!("{path}/{}", step["metadata"]["name"].as_str().unwrap());
        let answer = match &stored {
            None => send(client, "POST", &format!("{path}?fieldValidation=Strict"), step).await,
            Some(before) => {
                let mut update = step.clone();
                update["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
                send(client, "PUT", &format!("{object}?fieldValidation=Strict"), &update).await
            }
        };
        let last = index + 1 == example.steps.len();
        if last {
            send(client, "DELETE", &object, &Value::Null).await.ok();
            return answer;
        }
        stored = Some(answer?);
    }
    panic!("{} has no steps", example.name);
}

#[tokio::test(start_paused = true)]
async fn every_example_is_judged_as_a_real_api_server_judges_it() {
    let (_world, cluster) = cluster();
    install(&cluster).await;
    let client = cluster.client("test");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/fixtures");
    let (mut accepted, mut refused) = (0, 0);
    for example in load(&fixtures).unwrap() {
        match (judge(&client, &example).await, &example.verdict) {
            (Ok(_), Verdict::Accepted) => accepted += 1,
            (Err(error), Verdict::Refused(expected)) if message(&error).contains(expected.as_str()) => {
                refused += 1
            }
            (outcome, verdict) => panic!("{}: expected {verdict:?}, got {outcome:?}", example.name),
        }
    }
    assert!(accepted >= 20 && refused >= 90, "{accepted} accepted, {refused} refused");
}

fn definition(schema: &Value) -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "shortNames": ["th"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            }],
        },
    }))
    .unwrap()
}

fn thing_schema() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1},
            "replicas": {"type": "integer", "default": 1},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}}}},
        }, "x-kubernetes-validations": [
            {"rule": "self.size >= oldSelf.size", "message": "size never shrinks"},
            {"rule": "self.replicas <= 10", "message": "too many replicas"}]},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    }})
}

const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

async fn install_things(cluster: &Cluster) {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client("test"));
    definitions.create(&PostParams::default(), &definition(&thing_schema())).await.unwrap();
    let client = cluster.client("test");
    eventually("things are served", async || send(&client, "GET", THINGS, &Value::Null).await.is_ok()).await;
}

#[tokio::test(start_paused = true)]
async fn a_custom_object_is_pruned_defaulted_and_checked() {
    let (_world, cluster) = cluster();
    install_things(&cluster).await;
    let client = cluster.client("test");
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"size": 2, "typo": 1, "free": {"any": {"thing": true}}}, "status": {"replicas": 5}});
    let error = send(&client, "POST", &format!("{THINGS}?fieldValidation=Strict"), &thing).await.unwrap_err();
    assert_eq!(code(&error), 400);
    assert_eq!(
        message(&error),
        "Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: unknown field \"spec.typo\""
    );
    let made = send(&client, "POST", THINGS, &thing).await.unwrap();
    assert_eq!(made["spec"], json!({"size": 2, "replicas": 1, "free": {"any": {"thing": true}}}));
    assert_eq!((made.get("status"), &made["metadata"]["generation"]), (None, &json!(1)));
    let patch = async |body: Value| send(&client, "PATCH", &format!("{THINGS}/a"), &body).await;
    let error = patch(json!({"spec": {"size": 1}})).await.unwrap_err();
    assert_eq!(code(&error), 422);
    assert_eq!(
        message(&error),
        "Thing.example.com \"a\" is invalid: spec: Invalid value: size never shrinks"
    );
    let error = patch(json!({"spec": {"size": "big"}})).await.unwrap_err();
    assert!(
        message(&error).starts_with(
            "Thing.example.com \"a\" is invalid: [spec.size: Invalid value: \"string\": spec.size in body must be of type \
             integer: \"string\", <nil>: Invalid value: null: some validation rules were not checked"
        ),
        "{}",
        message(&error)
    );
    let scaled = send(&client, "PATCH", &format!("{THINGS}/a/scale"), &json!({"spec": {"replicas": 11}}))
        .await
        .unwrap_err();
    assert!(message(&scaled).contains("too many replicas"));
    let scaled = send(&client, "PATCH", &format!("{THINGS}/a/scale"), &json!({"spec": {"replicas": 3}}))
        .await
        .unwrap();
    assert_eq!(scaled["spec"]["replicas"], json!(3));
    let status = send(
        &client,
        "PATCH",
        &format!("{THINGS}/a/status"),
        &json!({"status": {"replicas": 3}, "spec": {"size": 9}}),
    )
    .await
    .unwrap();
    assert_eq!(
        (&status["status"]["replicas"], &status["spec"]["size"], &status["metadata"]["generation"]),
        (&json!(3), &json!(2), &json!(2))
    );
    let scale = send(&client, "GET", &format!("{THINGS}/a/scale"), &Value::Null).await.unwrap();
    assert_eq!(scale["status"]["replicas"], json!(3));
}

#[tokio::test(start_paused = true)]
async fn lists_of_custom_objects_merge_by_the_declared_keys() {
    let (_world, cluster) = cluster();
    install_things(&cluster).await;
    let client = cluster.client("test");
    let apply = async |manager: &str, parts: Value| {
        let body = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1, "parts": parts}});
        let request = http::Request::patch(format!("{THINGS}/a?fieldManager={manager}"))
            .header("content-type", "application/apply-patch+yaml")
            .body(serde_json::to_vec(&body).unwrap())
            .unwrap();
        client.request::<Value>(request).await
    };
    apply("one", json!([{"name": "x", "weight": 1}])).await.unwrap();
    let both = apply("two", json!([{"name": "y", "weight": 2}])).await.unwrap();
    assert_eq!(both["spec"]["parts"], json!([{"name": "x", "weight": 1}, {"name": "y", "weight": 2}]));
    let one = apply("one", json!([])).await.unwrap();
    assert_eq!(one["spec"]["parts"], json!([{"name": "y", "weight": 2}]));
    let error = apply("one", json!([{"name": "y", "typo": 2}])).await.unwrap_err();
    assert!(
        message(&error).contains(".spec.parts[0].typo: field not declared in schema"),
        "{}",
        message(&error)
    );
}

#[tokio::test(start_paused = true)]
async fn a_bad_definition_is_refused_and_a_deleted_one_takes_its_objects() {
    let (_world, cluster) = cluster();
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client("test"));
    let mut bad = definition(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": "self.("}]}}}),
    );
    let error = definitions.create(&PostParams::default(), &bad).await.unwrap_err();
    assert!(message(&error).contains("compilation failed"), "{}", message(&error));
    bad.metadata.name = Some("other.example.com".into());
    let error = definitions.create(&PostParams::default(), &bad).await.unwrap_err();
    assert!(message(&error).contains("must be spec.names.plural+\".\"+spec.group"));
    install_things(&cluster).await;
    let client = cluster.client("test");
    let thing = json!({"metadata": {"name": "a"}, "spec": {"size": 2}});
    send(&client, "POST", THINGS, &thing).await.unwrap();
    definitions.delete("things.example.com", &DeleteParams::default()).await.unwrap();
    eventually("all is gone", async || {
        definitions.get_opt("things.example.com").await.unwrap().is_none()
            && cluster.count("example.com", "things") == 0
    })
    .await;
    assert_eq!(code(&send(&client, "GET", THINGS, &Value::Null).await.unwrap_err()), 404);
}

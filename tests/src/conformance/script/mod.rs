//! The script: every call that the sandbox and a real API server are held against each other by.

mod apply;
mod bad_input;
mod certificates;
mod custom;
mod deletes;
mod discovery;
mod lists;
mod patches;
mod subresources;
mod watches;
mod writes;

use super::step::Scenario;
use serde_json::{Value, json};

/// All scenarios.
#[must_use]
pub fn script() -> Vec<Scenario> {
    [
        lists::scenarios(),
        watches::scenarios(),
        writes::scenarios(),
        patches::scenarios(),
        apply::scenarios(),
        deletes::scenarios(),
        subresources::scenarios(),
        custom::scenarios(),
        discovery::scenarios(),
        certificates::scenarios(),
        bad_input::scenarios(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The path of the namespace's config maps, with what follows.
fn maps(rest: &str) -> String {
    format!("/api/v1/namespaces/{{ns}}/configmaps{rest}")
}

fn secrets(rest: &str) -> String {
    format!("/api/v1/namespaces/{{ns}}/secrets{rest}")
}

fn pods(rest: &str) -> String {
    format!("/api/v1/namespaces/{{ns}}/pods{rest}")
}

/// The path of resources of apps/v1, with what follows.
fn apps(rest: &str) -> String {
    format!("/apis/apps/v1/namespaces/{{ns}}/{rest}")
}

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn labelled(mut object: Value, labels: Value) -> Value {
    object["metadata"]["labels"] = labels;
    object
}

/// A pod that nobody schedules.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "schedulerName": "nobody",
            "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "main:1"}],
        },
    })
}

/// A StatefulSet: of the workloads, the one whose controller is off in the sandbox while the script runs.
fn stateful_set(name: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "main:1"}]},
            },
        },
    })
}

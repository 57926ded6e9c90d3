//! Discovery, OpenAPI, version, and tables of built-in kinds.

use super::{apps, map, maps, pod, pods, stateful_set};
use crate::conformance::step::{Scenario, get, post};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![discovery(), tables()]
}

/// What the sandbox has of a real server's groups and resources.
const GROUPS: [&str; 6] =
    ["apps", "batch", "policy", "coordination.k8s.io", "rbac.authorization.k8s.io", "autoscaling"];
const RESOURCES: [&str; 12] = [
    "configmaps",
    "namespaces",
    "namespaces/status",
    "pods",
    "pods/status",
    "pods/binding",
    "pods/eviction",
    "services",
    "deployments",
    "deployments/scale",
    "deployments/status",
    "jobs",
];

fn pick(list: &Value, key: &str, wanted: &[&str]) -> Value {
    let items = list.as_array().into_iter().flatten();
    items.filter(|each| each[key].as_str().is_some_and(|name| wanted.contains(&name))).cloned().collect()
}

fn some_resources(body: &Value) -> Value {
    json!([
        body["kind"],
        body["apiVersion"],
        body["groupVersion"],
        pick(&body["resources"], "name", &RESOURCES)
    ])
}

fn aggregated(body: &Value) -> Value {
    let items = body["items"].as_array().into_iter().flatten();
    let groups: Vec<Value> = items
        .filter(|group| GROUPS.contains(&group["metadata"]["name"].as_str().unwrap_or_default()))
        .map(|group| {
            let version = &group["versions"][0];
            json!([
                group["metadata"]["name"],
                version["version"],
                version["freshness"],
                pick(&version["resources"], "resource", &RESOURCES)
            ])
        })
        .collect();
    json!([body["kind"], body["apiVersion"], groups])
}

fn discovery() -> Scenario {
    let new = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let paths = |body: &Value| {
        let known = [
            "/api",
            "/api/v1",
            "/apis",
            "/apis/apps",
            "/apis/apps/v1",
            "/healthz",
            "/version",
            "/openapi/v3",
        ];
        let paths = body["paths"].as_array().into_iter().flatten();
        paths.filter(|path| known.contains(&path.as_str().unwrap_or_default())).cloned().collect()
    };
    Scenario::new(
        "discovery",
        vec![
            get("root", "/").only(paths),
            get("core versions", "/api").only(|body| json!([body["kind"], body["versions"]])),
            get("groups", "/apis").only(|body| {
                json!([
                    body["kind"],
                    body["apiVersion"],
                    pick(&body["groups"], "name", &["apps", "batch", "policy"])
                ])
            }),
            get("one group", "/apis/apps"),
            get("core resources", "/api/v1").only(some_resources),
            get("resources of apps", "/apis/apps/v1").only(some_resources),
            get("resources of batch", "/apis/batch/v1").only(some_resources),
            get("aggregated core", "/api").accepts(new).only(aggregated),
            get("aggregated groups", "/apis").accepts(new).only(aggregated),
            get("OpenAPI index", "/openapi/v3").only(|body| {
                let known = ["api/v1", "apis/apps/v1", "apis/batch/v1"];
                let paths = body["paths"].as_object().into_iter().flatten();
                paths
                    .filter(|(path, _)| known.contains(&path.as_str()))
                    .map(|(path, value)| (path.clone(), value.clone()))
                    .collect()
            }),
            get("OpenAPI of a group", "/openapi/v3/apis/apps/v1").only(|body| {
                let schema = &body["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
                let fields: Vec<&String> =
                    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
                json!([body["openapi"], schema["x-kubernetes-group-version-kind"], fields])
            }),
            get("OpenAPI of an unknown group", "/openapi/v3/apis/nonsense/v1"),
            get("version", "/version").only(|body| {
                let fields: Vec<&String> =
                    body.as_object().into_iter().flatten().map(|(name, _)| name).collect();
                json!([body["major"], body["minor"], fields])
            }),
        ],
    )
}

fn tables() -> Scenario {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let core = |rest: &str| format!("/api/v1/namespaces/{{ns}}/{rest}");
    let cells = |body: &Value| {
        let rows = body["rows"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|row| json!({"cells": row["cells"]}))
            .collect::<Value>();
        let columns = body["columnDefinitions"].as_array().into_iter().flatten();
        let columns: Value =
            columns.map(|c| json!([c["name"], c["type"], c["format"], c["priority"]])).collect();
        json!([body["kind"], body["apiVersion"], columns, rows])
    };
    Scenario::new(
        "tables",
        vec![
            post("pod", pods(""), &pod("one")),
            post("map", maps(""), &super::labelled(map("one", json!({"a": "b"})), json!({"a": "b"}))),
            post("set", apps("statefulsets"), &stateful_set("set", 2)),
            post(
                "service",
                core("services"),
                &json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                "spec": {"selector": {"app": "nobody-has-it"}, "ports": [{"port": 80}]}}),
            ),
            post(
                "secret",
                core("secrets"),
                &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"}, "stringData": {"a": "b"}}),
            ),
            get("pods", pods("")).accepts(table).only(cells),
            get("maps", maps("?labelSelector=a")).accepts(table).only(cells),
            get("sets", apps("statefulsets")).accepts(table).only(cells),
            get("services", core("services")).accepts(table).only(cells),
            get("secrets", core("secrets")).accepts(table).only(cells),
            get("service accounts", core("serviceaccounts/default")).accepts(table).only(cells),
            get("namespace", "/api/v1/namespaces/{ns}").accepts(table).only(cells),
            get("no deployments", apps("deployments")).accepts(table).only(cells),
            get("no daemon sets", apps("daemonsets")).accepts(table).only(cells),
            get("no revisions", apps("controllerrevisions")).accepts(table).only(cells),
            get("no claims", core("persistentvolumeclaims")).accepts(table).only(cells),
            get("no jobs", "/apis/batch/v1/namespaces/{ns}/jobs").accepts(table).only(cells),
            get("no leases", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases")
                .accepts(table)
                .only(cells),
            get("no roles", "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles")
                .accepts(table)
                .only(cells),
            get("no events", core("events")).accepts(table).only(cells),
            get("a missing one", pods("/missing")).accepts(table),
            get("rows with whole objects", core("secrets?includeObject=Object"))
                .accepts(table)
                .only(|body| body["rows"][0]["object"].clone()),
            get("rows with metadata", core("secrets"))
                .accepts(table)
                .only(|body| body["rows"][0]["object"].clone()),
            get("rows without objects", core("secrets?includeObject=None"))
                .accepts(table)
                .only(|body| body["rows"][0]["object"].clone()),
            get("metadata of a list", core("secrets"))
                .accepts("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
            get("unknown form", core("secrets")).accepts("application/json;as=Sculpture;v=v1;g=meta.k8s.io"),
        ],
    )
}

//! Answers that are worked out, not stored: metrics and logs.

use serde_json::{Value, json};

use super::path::ResourcePath;
use super::query::Query;
use super::{Reply, Server};
use crate::error::{About, ApiError};
use crate::registry::Resource;
use crate::store::{ObjectKey, at};
use crate::usage::{node_metrics, pod_metrics};

/// The use of pods or nodes.
pub(super) fn metrics(
    server: &Server,
    row: &Resource,
    target: &ResourcePath,
    query: &Query,
) -> Result<Reply, ApiError> {
    let cluster = server.api().cluster.clone();
    let loads = server.traffic.loads(&cluster);
    let api = server.api();
    let selector = query.selector(row)?;
    let now = api.now();
    let (table, nodes) = if row.namespaced { ("/pods", false) } else { ("/nodes", true) };
    let namespace = target.namespace.as_deref();
    if let Some(name) = &target.name {
        let key = ObjectKey::new(namespace.unwrap_or_default(), name);
        let missing = || ApiError::not_found(About { group: &row.group, resource: &row.plural, name });
        let found = api.store.get(table, &key).ok_or_else(missing)?;
        let value = if nodes {
            Some(node_metrics(&api, &found, &loads, now))
        } else {
            pod_metrics(&api, &found, &loads, now)
        };
        return Ok(Reply::value(200, &value.ok_or_else(missing)?));
    }
    let found =
        api.store.scan(table, namespace.filter(|_| !nodes), None).filter(|object| selector.matches(object));
    let items: Vec<Value> = if nodes {
        found.map(|node| node_metrics(&api, node, &loads, now)).collect()
    } else {
        found.filter_map(|pod| pod_metrics(&api, pod, &loads, now)).collect()
    };
    let list = json!({
        "kind": format!("{}List", row.kind), "apiVersion": row.api_version(), "metadata": {}, "items": items,
    });
    Ok(Reply::value(200, &list))
}

/// What a simulated container has said.
pub(super) fn logs(server: &Server, key: &ObjectKey, query: &Query) -> Result<Reply, ApiError> {
    let api = server.api();
    let row = api.row("", "pods")?;
    let pod = api.live(&row, &key.namespace, &key.name)?.value();
    let names: Vec<&str> = pod
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|container| container.get("name")?.as_str())
        .collect();
    let name = match (query.text("container"), names.as_slice()) {
        (Some(asked), _) => asked,
        (None, [only]) => only,
        (None, _) => {
            let listed = names.join(" ");
            let message =
                format!("a container name must be specified for pod {}, choose one of: [{listed}]", key.name);
            return Err(ApiError::bad_request(message));
        }
    };
    if !names.contains(&name) {
        return Err(ApiError::bad_request(format!("container {name} is not valid for pod {}", key.name)));
    }
    let statuses = at(&pod, "/status/containerStatuses").and_then(Value::as_array).into_iter().flatten();
    let status = statuses.into_iter().find(|status| status.get("name").and_then(Value::as_str) == Some(name));
    let Some(status) = status else {
        let message =
            format!("container {name:?} in pod {:?} is waiting to start: ContainerCreating", key.name);
        return Err(ApiError::bad_request(message));
    };
    let text = |pointer: &str| at(status, pointer).and_then(Value::as_str).unwrap_or_default();
    let image = text("/image");
    let mut out = String::new();
    let started = text("/state/running/startedAt").to_owned() + text("/state/terminated/startedAt");
    out.push_str(&format!("{started} {name} started from image {image} (simulated)\n"));
    if let Some(code) = at(status, "/state/terminated/exitCode") {
        out.push_str(&format!(
            "{} {name} ended with exit code {code}\n",
            text("/state/terminated/finishedAt")
        ));
    }
    Ok(Reply::plain(200, out))
}

//! All objects of a cluster by what is in them, so that one can tell whether a cluster is as it was.

use super::proof::eventually;
use anyhow::{Context, Result};
use portolan_lab::{Cluster, Seen};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is written all the time by the cluster itself, or says how it is at the moment.
const BUSY: [&str; 6] = ["events", "leases", "pods", "endpoints", "endpointslices", "componentstatuses"];

/// What every write moves, or only says who wrote.
const MOVED: [&str; 3] = ["resourceVersion", "managedFields", "generation"];

/// What the controllers of Kubernetes write on objects that they look after: how often a Deployment was rolled out.
const COUNTED: [&str; 1] = ["deployment.kubernetes.io/revision"];

/// The differences that are told of one object.
const TOLD: usize = 5;

/// Objects by kind, namespace and name.
#[derive(Debug)]
pub(super) struct Contents(BTreeMap<String, Value>);

impl Contents {
    /// Which objects are not those of `before`, and where.
    pub(super) fn differences(&self, before: &Self) -> Vec<String> {
        let gone = before.0.keys().filter(|name| !self.0.contains_key(*name));
        let mut all: Vec<String> = gone.map(|name| format!("{name} is gone")).collect();
        for (name, now) in &self.0 {
            let Some(was) = before.0.get(name) else {
                all.push(format!("{name} is new"));
                continue;
            };
            let mut paths = Vec::new();
            compare(was, now, String::new(), &mut paths);
            all.extend(paths.into_iter().take(TOLD).map(|path| format!("{name}: {path}")));
        }
        all
    }
}

/// All objects of a cluster that are not written all the time.
pub(super) async fn everything(cluster: &Cluster) -> Result<Contents> {
    let kinds = cluster.kubectl(&["api-resources", "--verbs=list", "-o", "name"]).await?;
    let is_busy = |kind: &str| BUSY.contains(&kind.split('.').next().unwrap_or_default());
    let kinds: Vec<&str> =
        kinds.lines().filter(|kind| !is_busy(kind) && !kind.contains("metrics.k8s.io")).collect();
    let text = cluster.kubectl(&["get", &kinds.join(","), "--all-namespaces", "-o", "json"]).await?;
    let list: Value = serde_json::from_str(&text)?;
    let mut all = BTreeMap::new();
    for object in list["items"].as_array().context("a list")? {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let name = [word(&object["kind"]), word(&metadata["namespace"]), word(&metadata["name"])].join("/");
        all.insert(name, lasting(object.clone()));
    }
    // A Deployment that was rolled out has had others before, which Kubernetes keeps.
    all.retain(|name, _| !name.starts_with("ReplicaSet/portolan/"));
    Ok(Contents(all))
}

/// Waits until a cluster has the objects that it had, with the same contents, and no others.
pub(super) async fn as_it_was(cluster: &Cluster, bare: &Contents) -> Result<()> {
    eventually(&format!("{} is as it was", cluster.name()), async || {
        let differs = everything(cluster).await?.differences(bare);
        Ok(if differs.is_empty() { Seen::Ready(()) } else { Seen::NotYet(format!("{differs:#?}")) })
    })
    .await
}

/// An object without what Kubernetes moves by itself.
fn lasting(mut object: Value) -> Value {
    let Some(fields) = object.as_object_mut() else { return object };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !MOVED.contains(&field.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !COUNTED.contains(&key.as_str()));
        }
        // None, and an empty list of them, are the same.
        for field in ["annotations", "labels", "finalizers", "ownerReferences"] {
            let is_empty = |value: &Value| {
                value.as_object().is_some_and(serde_json::Map::is_empty)
                    || value.as_array().is_some_and(Vec::is_empty)
            };
            if metadata.get(field).is_some_and(is_empty) {
                metadata.remove(field);
            }
        }
    }
    object
}

/// The paths at which two values differ. The values are not told: they may be secret.
fn compare(was: &Value, now: &Value, path: String, differs: &mut Vec<String>) {
    match (was, now) {
        (Value::Object(was), Value::Object(now)) => {
            for (key, was) in was {
                let path = format!("{path}.{key}");
                match now.get(key) {
                    Some(now) => compare(was, now, path, differs),
                    None => differs.push(format!("{path} is gone")),
                }
            }
            let new = now.keys().filter(|key| !was.contains_key(*key));
            differs.extend(new.map(|key| format!("{path}.{key} is new")));
        }
        (was, now) if was != now => differs.push(format!("{path} differs")),
        _ => {}
    }
}

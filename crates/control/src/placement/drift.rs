//! What somebody changed in a member, of what was placed there.

use super::memory::Applied;
use super::observe::Seen;
use super::{Controller, Workload};
use crate::fleet::Member;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::DynamicObject;
use kube::discovery::ApiResource;
use portolan_api::placement::DriftPolicy;
use portolan_core::capacity::milli;
use portolan_core::placement::Decision;
use portolan_runtime::{CallError, Key};
use serde_json::Value;
use std::collections::BTreeMap;

/// No more than so many differences of one copy are told.
const MOST: usize = 10;

/// A copy that was compared with what was placed: which state of it, and what differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    uid: String,
    generation: i64,
    digest: String,
    pub(super) differences: Vec<String>,
}

impl Controller {
    /// By cluster: what differs from what was placed, if that is to be reported and not corrected.
    pub(super) async fn drifts(
        &self,
        key: &Key,
        workload: &Workload,
        decision: &Decision,
        seen: &BTreeMap<String, Seen>,
    ) -> BTreeMap<String, Vec<String>> {
        let mut drifts = BTreeMap::new();
        if workload.object.spec.drift_policy != DriftPolicy::Report {
            return drifts;
        }
        for (cluster, placed) in &decision.placed {
            let Some(seen) = seen.get(cluster).filter(|seen| seen.answers) else { continue };
            let (Some(member), Some(copy)) = (&seen.member, &seen.copy) else { continue };
            let digest = self.digest(workload, placed.replicas);
            if copy.mark.digest.as_ref() != Some(&digest) {
                continue;
            }
            let as_applied =
                |applied: &Applied| applied.digest == digest && applied.generation == copy.generation;
            if self.memory.applied.get(key, cluster).as_ref().is_some_and(as_applied) {
                continue;
            }
            let known = self.memory.compared.get(key, cluster);
            let current = |known: &Compared| {
                known.uid == copy.mark.uid && known.generation == copy.generation && known.digest == digest
            };
            let compared = match known.filter(current) {
                Some(known) => known,
                None => match compare(member, key, &self.desired(workload, placed.replicas).object).await {
                    Ok(differences) => Compared {
                        uid: copy.mark.uid.clone(),
                        generation: copy.generation,
                        digest,
                        differences,
                    },
                    // A member that cannot be asked is told as such, and holds up nobody else.
                    Err(error) => {
                        self.failing(key, cluster, workload, &error);
                        continue;
                    }
                },
            };
            self.memory.compared.set(key, cluster, compared.clone());
            if !compared.differences.is_empty() {
                drifts.insert(cluster.clone(), compared.differences);
            }
        }
        drifts
    }
}

async fn compare(member: &Member, key: &Key, placed: &Value) -> Result<Vec<String>, CallError> {
    let resource = ApiResource::erase::<Deployment>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(member.client.clone(), &key.namespace, &resource);
    let what = format!("read Deployment {key} in {}", member.name);
    let live = match member.gate.ask(what, api.get_opt(&key.name)).await? {
        Some(live) => live.data,
        None => return Ok(Vec::new()),
    };
    Ok(differences(placed, &live))
}

/// The fields of the placed spec that are not so any more. What others added beside them is theirs.
fn differences(placed: &Value, live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk("spec", &placed["spec"], &live["spec"], &mut found);
    if found.len() > MOST {
        let more = found.len() - MOST;
        found.truncate(MOST);
        found.push(format!("and {more} more"));
    }
    found
}

/// The fields of the template and selector that a Deployment would get anew if it were applied: its pods would be replaced.
pub(super) fn template_differences(wanted: &Value, live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for field in ["selector", "template"] {
        walk(&format!("spec.{field}"), &wanted["spec"][field], &live["spec"][field], &mut found);
    }
    found.truncate(MOST);
    found
}

fn walk(path: &str, placed: &Value, live: &Value, found: &mut Vec<String>) {
    match (placed, live) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, value) in fields {
                walk(&format!("{path}.{name}"), value, others.get(name).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            for (index, item) in items.iter().enumerate() {
                // Items with names are known by them, wherever they stand.
                let (name, other) = match item["name"].as_str() {
                    Some(name) => (name.to_owned(), others.iter().find(|other| other["name"] == name)),
                    None => (index.to_string(), others.get(index)),
                };
                walk(&format!("{path}[{name}]"), item, other.unwrap_or(&Value::Null), found);
            }
        }
        // What was placed empty the API server leaves out.
        (Value::Null, _) => {}
        (Value::Object(fields), Value::Null) if fields.is_empty() => {}
        (Value::Array(items), Value::Null) if items.is_empty() => {}
        (placed, live) if placed == live || same_quantity(placed, live) => {}
        (_, Value::Null) => found.push(format!("{path} is gone")),
        // What an environment variable holds may be nobody's business.
        (placed, live) if is_plain(placed) && is_plain(live) && !path.contains(".env[") => {
            found.push(format!("{path} is {live}, placed was {placed}"));
        }
        _ => found.push(format!("{path} differs")),
    }
}

fn is_plain(value: &Value) -> bool {
    value.is_number() || value.is_boolean() || value.as_str().is_some_and(|text| text.len() <= 100)
}

/// Quantities are written in many ways: `1` and `1000m`.
fn same_quantity(one: &Value, other: &Value) -> bool {
    let read = |value: &Value| match value {
        Value::String(text) => milli(text).ok(),
        Value::Number(number) => milli(&number.to_string()).ok(),
        _ => None,
    };
    read(one).is_some_and(|one| read(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(placed: Value, live: Value) -> Vec<String> {
        differences(&json!({ "spec": placed }), &json!({ "spec": live }))
    }

    #[test]
    fn says_which_fields_differ_and_how() {
        let placed = json!({"replicas": 2, "template": {"spec": {"containers": [
            {"name": "a", "image": "x:1", "env": [{"name": "TOKEN", "value": "abc"}]},
            {"name": "b", "image": "y:1"},
        ]}}});
        let live = json!({"replicas": 5, "paused": true, "template": {"spec": {"containers": [
            {"name": "sidecar", "image": "s"},
            {"name": "a", "image": "x:2", "env": [{"name": "TOKEN", "value": "geheim"}]},
        ]}}});
        let found = told(placed, live);
        assert_eq!(
            found,
            [
                "spec.replicas is 5, placed was 2",
                "spec.template.spec.containers[a].env[TOKEN].value differs",
                "spec.template.spec.containers[a].image is \"x:2\", placed was \"x:1\"",
                "spec.template.spec.containers[b] is gone",
            ]
        );
    }

    #[test]
    fn what_the_api_server_writes_otherwise_is_no_difference() {
        let placed = json!({"cpu": "1000m", "memory": "1024Mi", "strategy": {}, "args": [], "none": null});
        let live = json!({"cpu": "1", "memory": "1Gi", "extra": 1});
        assert_eq!(told(placed, live), Vec::<String>::new());
    }
}

//! What somebody changed in a member, of what was placed there.

use super::facts::DeploymentFacts;
use super::observe::ClusterSnapshot;
use super::{Placement, Workload};
use crate::copies::Outcome;
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
use std::sync::{Mutex, PoisonError};

/// No more than so many differences of one copy are reported.
const MOST: usize = 10;

/// Copies that were compared with what was placed, by workload and cluster.
#[derive(Debug, Default)]
pub(super) struct Comparisons(Mutex<BTreeMap<Key, BTreeMap<String, Compared>>>);

/// Which state of a copy was compared, and what differs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Compared {
    uid: String,
    generation: i64,
    digest: String,
    differences: Vec<String>,
}

impl Comparisons {
    fn get(&self, key: &Key, cluster: &str, copy: &DeploymentFacts) -> Option<Compared> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(key)?.get(cluster)?;
        let current = known.uid == copy.meta.uid
            && known.generation == copy.meta.generation
            && copy.meta.digest.as_ref() == Some(&known.digest);
        current.then(|| known.clone())
    }

    fn set(&self, key: &Key, cluster: &str, compared: Compared) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key.clone()).or_default().insert(cluster.to_owned(), compared);
    }

    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl Placement {
    /// By cluster: what differs from what was placed, as far as that was compared, if it is to be reported and not
    /// corrected.
    pub(super) fn drifts(
        &self,
        key: &Key,
        workload: &Workload,
        decision: &Decision,
        seen: &BTreeMap<String, ClusterSnapshot>,
    ) -> BTreeMap<String, Vec<String>> {
        if workload.object.spec.drift_policy != DriftPolicy::Report {
            return BTreeMap::new();
        }
        let drift = |cluster: &String| {
            let copy = seen.get(cluster).filter(|seen| seen.is_known)?.copy.as_ref()?;
            let compared = self.comparisons.get(key, cluster, copy)?;
            Some(compared.differences).filter(|differences| !differences.is_empty())
        };
        let placed = decision.placed.keys();
        placed.filter_map(|cluster| Some((cluster.clone(), drift(cluster)?))).collect()
    }

    /// Compares a copy with what was placed, if its drift is to be reported and that state of it was not compared yet.
    pub(super) async fn compare(
        &self,
        key: &Key,
        workload: &Workload,
        member: &Member,
        copy: &DeploymentFacts,
    ) -> Result<Outcome, CallError> {
        let (cluster, replicas) = (&member.name, workload.held().find(|(name, _)| *name == member.name));
        let (Some(digest), Some((_, replicas))) = (&copy.meta.digest, replicas) else {
            return Ok(Outcome::AsDecided);
        };
        let is_reported = workload.object.spec.drift_policy == DriftPolicy::Report;
        if !is_reported || *digest != self.digest(workload, replicas) {
            return Ok(Outcome::AsDecided);
        }
        let applied = self.base.copies.memory.applied(key, cluster);
        let as_applied = applied
            .is_some_and(|applied| applied.digest == *digest && applied.generation == copy.meta.generation);
        if as_applied || self.comparisons.get(key, cluster, copy).is_some() {
            return Ok(Outcome::AsDecided);
        }
        let differences = read_differences(member, key, &self.desired(workload, replicas).object).await?;
        let (uid, generation) = (copy.meta.uid.clone(), copy.meta.generation);
        let compared = Compared { uid, generation, digest: digest.clone(), differences };
        self.comparisons.set(key, cluster, compared);
        Ok(Outcome::LookAgain)
    }
}

async fn read_differences(member: &Member, key: &Key, placed: &Value) -> Result<Vec<String>, CallError> {
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
        let path = format!("spec.{field}");
        walk(&path, &wanted["spec"][field], &live["spec"][field], &mut found);
        replaced_lists(&path, &wanted["spec"][field], &live["spec"][field], &mut found);
    }
    let labels =
        |of: &Value| of["spec"]["selector"]["matchLabels"].as_object().map_or(0, serde_json::Map::len);
    if labels(wanted) != labels(live) {
        found.push("spec.selector cannot be changed, and has other labels".to_owned());
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

/// Lists without names are replaced as a whole when they are applied: further items in the live one would go.
fn replaced_lists(path: &str, placed: &Value, live: &Value, found: &mut Vec<String>) {
    match (placed, live) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, value) in fields {
                replaced_lists(
                    &format!("{path}.{name}"),
                    value,
                    others.get(name).unwrap_or(&Value::Null),
                    found,
                );
            }
        }
        (Value::Array(items), Value::Array(others)) => {
            let is_named = |item: &Value| item["name"].is_string() || item["containerPort"].is_number();
            if !items.iter().chain(others).all(is_named) && items.len() < others.len() {
                found.push(format!("{path} has {} items, placed would be {}", others.len(), items.len()));
            }
            for item in items.iter().filter(|item| item["name"].is_string()) {
                if let Some(other) = others.iter().find(|other| other["name"] == item["name"]) {
                    let name = item["name"].as_str().unwrap_or_default();
                    replaced_lists(&format!("{path}[{name}]"), item, other, found);
                }
            }
        }
        _ => {}
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

    #[test]
    fn lists_without_names_and_selectors_are_compared_as_a_whole_before_an_adoption() {
        let deployment = |args: Value, labels: Value| {
            json!({"spec": {"selector": {"matchLabels": labels}, "template": {"spec": {
                "containers": [{"name": "a", "args": args, "env": [{"name": "X", "value": "1"}]}],
            }}}})
        };
        let (one, two) = (json!({"app": "x"}), json!({"app": "x", "tier": "y"}));
        let wanted = deployment(json!(["a"]), one.clone());
        assert_eq!(
            template_differences(&wanted, &deployment(json!(["a"]), one.clone())),
            Vec::<String>::new()
        );
        let longer = template_differences(&wanted, &deployment(json!(["a", "b"]), one));
        assert_eq!(longer, ["spec.template.spec.containers[a].args has 2 items, placed would be 1"]);
        let selector = template_differences(&wanted, &deployment(json!(["a"]), two));
        assert_eq!(selector, ["spec.selector cannot be changed, and has other labels"]);
        let mut sidecar = deployment(json!(["a"]), json!({"app": "x"}));
        sidecar["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "s"}));
        assert_eq!(
            template_differences(&wanted, &sidecar),
            Vec::<String>::new(),
            "it stays when ours is applied"
        );
    }
}

//! Why a Deployment is not Available, from what its cluster tells.

use serde_json::Value;

/// What is seen of a Deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The Deployment.
    pub deployment: Value,
    /// Its ReplicaSets.
    pub replica_sets: Vec<Value>,
    /// Its pods.
    pub pods: Vec<Value>,
}

/// Nothing if the Deployment is rolled out and Available; otherwise what it waits for: the nearest cause that is known.
#[must_use]
pub fn diagnose(seen: &Seen) -> Option<String> {
    let deployment = &seen.deployment;
    let count = |field: &str| deployment["status"][field].as_i64().unwrap_or(0);
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let current = count("observedGeneration") >= deployment["metadata"]["generation"].as_i64().unwrap_or(0);
    let rolled_out = current
        && count("updatedReplicas") >= wanted
        && count("availableReplicas") >= wanted
        && count("replicas") <= wanted;
    if rolled_out {
        return None;
    }
    let newest = seen.newest_replica_set();
    let refused = std::iter::once(deployment).chain(newest).find_map(failed_to_create);
    let mut pods = seen.pods.iter().filter(|pod| newest.is_none_or(|set| is_of(pod, set)));
    let because = refused.or_else(|| pods.find_map(pod_problem));
    Some(because.unwrap_or_else(|| {
        format!(
            "{} of {wanted} replicas are current and available",
            count("availableReplicas").min(count("updatedReplicas"))
        )
    }))
}

impl Seen {
    /// The ReplicaSet of the current template.
    fn newest_replica_set(&self) -> Option<&Value> {
        let revision = |set: &Value| {
            let text = set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str();
            text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
        };
        self.replica_sets.iter().max_by_key(|set| revision(set))
    }

    /// A pod of the current template whose container has ended by itself, by its name: its log may say why.
    #[must_use]
    pub fn crashed_pod(&self) -> Option<&str> {
        let newest = self.newest_replica_set();
        let mut pods = self.pods.iter().filter(|pod| newest.is_none_or(|set| is_of(pod, set)));
        let crashed = |pod: &&Value| containers(pod).any(|state| exit_code(state).is_some());
        pods.find(crashed)?["metadata"]["name"].as_str()
    }
}

fn is_of(pod: &Value, set: &Value) -> bool {
    let owners = pod["metadata"]["ownerReferences"].as_array();
    owners.is_none_or(|owners| owners.iter().any(|owner| owner["uid"] == set["metadata"]["uid"]))
}

/// Why no pod could be created: Pod Security, a quota, a webhook.
fn failed_to_create(object: &Value) -> Option<String> {
    let condition = condition(object, "ReplicaFailure").filter(|each| each["status"] == "True")?;
    Some(format!("no pod can be created: {}", condition["message"].as_str().unwrap_or_default()))
}

fn pod_problem(pod: &Value) -> Option<String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(unscheduled) = condition(pod, "PodScheduled").filter(|each| each["status"] == "False") {
        return Some(format!("pod {name} has no node: {}", text(&unscheduled["message"])));
    }
    for status in containers(pod) {
        let waiting = &status["state"]["waiting"];
        let reason = text(&waiting["reason"]);
        if let Some(code) = exit_code(status) {
            return Some(format!(
                "pod {name}: the controller ended with exit code {code}, {} times",
                restarts(status)
            ));
        }
        if !["", "ContainerCreating", "PodInitializing"].contains(&reason.as_str()) {
            return Some(format!("pod {name}: {reason}: {}", text(&waiting["message"])));
        }
    }
    None
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["status"]["containerStatuses"].as_array().into_iter().flatten()
}

/// The exit code of a container that has ended by itself.
fn exit_code(status: &Value) -> Option<i64> {
    let ended = [&status["state"]["terminated"], &status["lastState"]["terminated"]];
    ended.into_iter().find_map(|state| state["exitCode"].as_i64())
}

fn restarts(status: &Value) -> i64 {
    let running_anew = status["state"]["terminated"].is_object();
    status["restartCount"].as_i64().unwrap_or(0) + i64::from(running_anew)
}

fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|each| each["type"] == type_)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(available: i64) -> Value {
        json!({
            "metadata": {"generation": 2}, "spec": {"replicas": 1},
            "status": {
                "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available,
            },
        })
    }

    fn replica_set(uid: &str, revision: &str) -> Value {
        json!({"metadata": {"uid": uid, "annotations": {"deployment.kubernetes.io/revision": revision}}})
    }

    fn pod(of: &str, status: Value) -> Value {
        json!({"metadata": {"name": format!("pod-{of}"), "ownerReferences": [{"uid": of}]}, "status": status})
    }

    fn seen(pod_status: Value) -> Seen {
        let old = pod("old", json!({"containerStatuses": [{"state": {"waiting": {"reason": "Old"}}}]}));
        Seen {
            deployment: deployment(0),
            replica_sets: vec![replica_set("new", "10"), replica_set("old", "9")],
            pods: vec![old, pod("new", pod_status)],
        }
    }

    #[test]
    fn what_is_available_and_current_waits_for_nothing() {
        assert_eq!(diagnose(&Seen { deployment: deployment(1), ..Seen::default() }), None);
        let mut late = deployment(1);
        late["metadata"]["generation"] = json!(3);
        assert!(diagnose(&Seen { deployment: late, ..Seen::default() }).is_some());
        let waiting = diagnose(&seen(json!({}))).unwrap();
        assert_eq!(waiting, "0 of 1 replicas are current and available");
    }

    #[test]
    fn the_nearest_cause_is_told() {
        let unscheduled = json!({"conditions": [{
            "type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 2 Insufficient cpu.",
        }]});
        assert!(diagnose(&seen(unscheduled)).unwrap().contains("pod pod-new has no node: 0/2 nodes"));
        let pull = json!({"containerStatuses": [{
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image x"}},
        }]});
        assert!(
            diagnose(&seen(pull)).unwrap().contains("pod-new: ImagePullBackOff: Back-off pulling image x")
        );
        let crash = json!({"containerStatuses": [{
            "restartCount": 2, "lastState": {"terminated": {"exitCode": 1}},
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        }]});
        let crashed = seen(crash);
        assert!(diagnose(&crashed).unwrap().contains("ended with exit code 1, 2 times"));
        assert_eq!(crashed.crashed_pod(), Some("pod-new"));
        let mut refused = seen(json!({}));
        refused.replica_sets[0]["status"] = json!({"conditions": [{
            "type": "ReplicaFailure", "status": "True", "message": "violates PodSecurity \"restricted:latest\"",
        }]});
        assert!(diagnose(&refused).unwrap().contains("no pod can be created: violates PodSecurity"));
        assert_eq!(refused.crashed_pod(), None);
    }
}

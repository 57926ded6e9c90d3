//! The objects of a hub as objects of a scenario.

use super::{Assumption, template};
use crate::scenario::Step;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use portolan_api::duration::Duration;
use portolan_control::names::WORKLOAD_ID_ANNOTATION;
use portolan_core::capacity::{Amounts, PODS};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

const RUN_TIME: &str = "sandbox.portolan.dev/run-time";
const CPU_USE: &str = "sandbox.portolan.dev/cpu";

/// The shortest time that pods of a job are assumed to run.
const SHORTEST_RUN: i64 = 60;

/// Whether an object is part of the scenario: not if it is being deleted, or is a job that has ended.
pub(super) fn is_carried(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let ended = conditions.into_iter().flatten().any(|condition| {
        condition["status"] == "True" && matches!(condition["type"].as_str(), Some("Complete" | "Failed"))
    });
    object.pointer("/metadata/deletionTimestamp").is_none() && !(object["kind"] == "MultiClusterJob" && ended)
}

/// The identity that the pods of a workload carry.
pub(super) fn identity(object: &Value) -> Option<&str> {
    let metadata = &object["metadata"];
    metadata["annotations"][WORKLOAD_ID_ANNOTATION].as_str().or(metadata["uid"].as_str())
}

/// How many replicas, or pods of a job, each cluster has.
pub(super) fn placements(object: &Value) -> BTreeMap<String, u32> {
    let count = if object["kind"] == "MultiClusterJob" { "parallelism" } else { "replicas" };
    let all = object.pointer("/status/placements").and_then(Value::as_array).into_iter().flatten();
    let placed = all.filter_map(|each| {
        let replicas = each[count].as_u64().and_then(|replicas| u32::try_from(replicas).ok())?;
        Some((each["cluster"].as_str()?.to_owned(), replicas))
    });
    placed.filter(|(_, replicas)| *replicas > 0).collect()
}

/// What the pods of a workload in a cluster request together.
pub(super) fn requests(object: &Value, cluster: &str) -> Amounts {
    let replicas = placements(object).get(cluster).copied().unwrap_or(0);
    let one: BTreeMap<String, Quantity> =
        serde_json::from_value(object["status"]["resourceRequests"].clone()).unwrap_or_default();
    let mut one = Amounts::parse(&one).unwrap_or_default();
    one.set(PODS, 1000);
    let mut all = Amounts::default();
    all.add(&one, i64::from(replicas));
    all
}

/// The objects as steps at the beginning, and what is assumed about them.
pub(super) fn steps(
    objects: &[Value],
    members: &BTreeSet<String>,
    now: Timestamp,
) -> (Vec<Step>, Vec<Assumption>) {
    let mut assumptions = Vec::new();
    let mut steps = Vec::new();
    for object in objects.iter().filter(|object| is_carried(object)) {
        let mut manifest = manifest(object);
        let placed = match object["kind"].as_str() {
            Some("MultiClusterDeployment") => {
                assumptions.extend(unpaused(object, &mut manifest));
                assumptions.extend(use_of_cpu(object, objects, &mut manifest));
                placements(object).into_iter().filter(|(cluster, _)| members.contains(cluster)).collect()
            }
            Some("MultiClusterJob") => {
                assumptions.push(run_time(object, &mut manifest, now));
                BTreeMap::new()
            }
            _ => BTreeMap::new(),
        };
        steps.push(Step {
            at: Duration::default(),
            to: Vec::new(),
            manifest: Some(manifest),
            delete: None,
            placed,
        });
    }
    (steps, assumptions)
}

/// An object as a user writes it.
fn manifest(object: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "labels"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut spec = object["spec"].clone();
    if let Some(written) = spec.get("template") {
        spec["template"] = template::reduced(written);
    }
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata, "spec": spec})
}

/// The kind, namespace and name of an object.
fn called(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/metadata/namespace") {
        "" => format!("{} {}", text("/kind"), text("/metadata/name")),
        namespace => format!("{} {namespace}/{}", text("/kind"), text("/metadata/name")),
    }
}

/// A workload that is paused has copies that its controller would not make.
fn unpaused(object: &Value, manifest: &mut Value) -> Option<Assumption> {
    if object["spec"]["paused"] != true {
        return None;
    }
    manifest["spec"]["paused"] = json!(false);
    Some(Assumption::new(called(object), "it is paused", "it is not, so that its replicas run"))
}

/// Pods of an autoscaled workload use as much CPU as its autoscaler has read last; without that they would use none, and
/// the autoscaler would scale them down.
fn use_of_cpu(object: &Value, objects: &[Value], manifest: &mut Value) -> Option<Assumption> {
    let targets = |scaler: &&Value| {
        scaler["kind"] == "MultiClusterHorizontalPodAutoscaler"
            && scaler["spec"]["scaleTargetRef"]["name"] == object["metadata"]["name"]
            && scaler["metadata"]["namespace"] == object["metadata"]["namespace"]
    };
    let scaler = objects.iter().find(targets)?;
    if manifest["spec"]["template"]["metadata"]["annotations"].get(CPU_USE).is_some() {
        return None;
    }
    let metrics = scaler.pointer("/status/currentMetrics").and_then(Value::as_array).into_iter().flatten();
    let read = metrics
        .filter(|metric| metric["type"] == "Resource" && metric["name"] == "cpu")
        .find_map(|metric| metric["averageValue"].as_str());
    let hint = Some(format!(
        "give {CPU_USE} or sandbox.portolan.dev/cpu-per-request as an annotation of its template, and traffic"
    ));
    match read {
        Some(cpu) => {
            manifest["spec"]["template"]["metadata"]["annotations"][CPU_USE] = json!(cpu);
            let assumed = format!("each pod uses {cpu} of CPU, as its autoscaler has read last");
            Some(Assumption::new(called(object), "the load of its pods is not known", assumed).hint(hint))
        }
        None => {
            let problem = "the load of its pods is not known, and its autoscaler has read no use of CPU";
            Some(
                Assumption::new(called(object), problem, "its pods use nothing, and are scaled down")
                    .hint(hint),
            )
        }
    }
}

/// A job begins again, and its pods run for as long as it has run so far.
fn run_time(object: &Value, manifest: &mut Value, now: Timestamp) -> Assumption {
    let annotations = &mut manifest["spec"]["template"]["metadata"]["annotations"];
    let started = object.pointer("/status/startTime").and_then(Value::as_str);
    let started = started.and_then(|time| time.parse::<Timestamp>().ok());
    let seconds = started.map_or(0, |started| now.duration_since(started).as_secs()).max(SHORTEST_RUN);
    let problem = "the work that it has done, and how long its pods run, is not known";
    let assumed = match annotations.get(RUN_TIME).and_then(Value::as_str) {
        Some(given) => format!("it begins again, and each pod runs for {given}"),
        None => {
            annotations[RUN_TIME] = json!(format!("{seconds}s"));
            format!("it begins again, and each pod runs for {seconds}s, as long as the job so far")
        }
    };
    let hint = format!("give {RUN_TIME} as an annotation of its template");
    Assumption::new(called(object), problem, assumed).hint(Some(hint))
}

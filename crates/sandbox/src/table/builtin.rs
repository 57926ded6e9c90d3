//! The columns of built-in kinds.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Column, age, human, items, number, or_none, pods, text, volumes};
use crate::registry::Resource;
use crate::store::at;

/// Names and types of columns; a leading `+` is for wide output.
fn layout(row: &Resource) -> &'static [(&'static str, &'static str)] {
    match (row.group.as_str(), row.kind.as_str()) {
        ("", "Pod") => &[
            ("Name", "string"),
            ("Ready", "string"),
            ("Status", "string"),
            ("Restarts", "string"),
            ("Age", "string"),
            ("+IP", "string"),
            ("+Node", "string"),
            ("+Nominated Node", "string"),
            ("+Readiness Gates", "string"),
        ],
        ("", "Node") => &[
            ("Name", "string"),
            ("Status", "string"),
            ("Roles", "string"),
            ("Age", "string"),
            ("Version", "string"),
            ("+Internal-IP", "string"),
            ("+External-IP", "string"),
            ("+OS-Image", "string"),
            ("+Kernel-Version", "string"),
            ("+Container-Runtime", "string"),
        ],
        ("", "Namespace") => &[("Name", "string"), ("Status", "string"), ("Age", "string")],
        ("", "Service") => &[
            ("Name", "string"),
            ("Type", "string"),
            ("Cluster-IP", "string"),
            ("External-IP", "string"),
            ("Port(s)", "string"),
            ("Age", "string"),
            ("+Selector", "string"),
        ],
        ("", "ConfigMap") => &[("Name", "string"), ("Data", "string"), ("Age", "string")],
        ("", "Secret") => &[("Name", "string"), ("Type", "string"), ("Data", "string"), ("Age", "string")],
        ("", "ServiceAccount") => &[("Name", "string"), ("Secrets", "string"), ("Age", "string")],
        ("", "PersistentVolumeClaim") => &[
            ("Name", "string"),
            ("Status", "string"),
            ("Volume", "string"),
            ("Capacity", "string"),
            ("Access Modes", "string"),
            ("StorageClass", "string"),
            ("VolumeAttributesClass", "string"),
            ("Age", "string"),
            ("+VolumeMode", "string"),
        ],
        ("", "PersistentVolume") => &[
            ("Name", "string"),
            ("Capacity", "string"),
            ("Access Modes", "string"),
            ("Reclaim Policy", "string"),
            ("Status", "string"),
            ("Claim", "string"),
            ("StorageClass", "string"),
            ("VolumeAttributesClass", "string"),
            ("Reason", "string"),
            ("Age", "string"),
            ("+VolumeMode", "string"),
        ],
        (_, "Event") => &[
            ("Last Seen", "string"),
            ("Type", "string"),
            ("Reason", "string"),
            ("Object", "string"),
            ("+Subobject", "string"),
            ("+Source", "string"),
            ("Message", "string"),
            ("+First Seen", "string"),
            ("+Count", "string"),
            ("+Name", "string"),
        ],
        ("apps", "Deployment") => &[
            ("Name", "string"),
            ("Ready", "string"),
            ("Up-to-date", "string"),
            ("Available", "string"),
            ("Age", "string"),
            ("+Containers", "string"),
            ("+Images", "string"),
            ("+Selector", "string"),
        ],
        ("apps", "ReplicaSet") => &[
            ("Name", "string"),
            ("Desired", "integer"),
            ("Current", "integer"),
            ("Ready", "integer"),
            ("Age", "string"),
            ("+Containers", "string"),
            ("+Images", "string"),
            ("+Selector", "string"),
        ],
        ("apps", "StatefulSet") => &[
            ("Name", "string"),
            ("Ready", "string"),
            ("Age", "string"),
            ("+Containers", "string"),
            ("+Images", "string"),
        ],
        ("apps", "DaemonSet") => &[
            ("Name", "string"),
            ("Desired", "integer"),
            ("Current", "integer"),
            ("Ready", "integer"),
            ("Up-to-date", "integer"),
            ("Available", "integer"),
            ("Node Selector", "string"),
            ("Age", "string"),
            ("+Containers", "string"),
            ("+Images", "string"),
            ("+Selector", "string"),
        ],
        ("apps", "ControllerRevision") => {
            &[("Name", "string"), ("Controller", "string"), ("Revision", "string"), ("Age", "string")]
        }
        ("batch", "Job") => &[
            ("Name", "string"),
            ("Status", "string"),
            ("Completions", "string"),
            ("Duration", "string"),
            ("Age", "string"),
            ("+Containers", "string"),
            ("+Images", "string"),
            ("+Selector", "string"),
        ],
        ("policy", "PodDisruptionBudget") => &[
            ("Name", "string"),
            ("Min Available", "string"),
            ("Max Unavailable", "string"),
            ("Allowed Disruptions", "integer"),
            ("Age", "string"),
        ],
        ("discovery.k8s.io", "EndpointSlice") => &[
            ("Name", "string"),
            ("AddressType", "string"),
            ("Ports", "string"),
            ("Endpoints", "string"),
            ("Age", "string"),
        ],
        ("coordination.k8s.io", "Lease") => &[("Name", "string"), ("Holder", "string"), ("Age", "string")],
        ("certificates.k8s.io", "CertificateSigningRequest") => &[
            ("Name", "string"),
            ("Age", "string"),
            ("SignerName", "string"),
            ("Requestor", "string"),
            ("RequestedDuration", "string"),
            ("Condition", "string"),
        ],
        ("apiextensions.k8s.io" | "rbac.authorization.k8s.io", _) => {
            &[("Name", "string"), ("Created At", "date")]
        }
        _ => &[("Name", "string"), ("Age", "string")],
    }
}

pub(super) fn columns(row: &Resource) -> Vec<Column> {
    let column = |(name, kind): &(&str, &str)| match name.strip_prefix('+') {
        Some(name) => Column::new(name, kind, 1),
        None => Column::new(name, kind, 0),
    };
    layout(row).iter().map(column).collect()
}

pub(super) fn cells(row: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = json!(text(object, "/metadata/name"));
    let since = json!(age(object, "/metadata/creationTimestamp", now));
    let count = |pointer: &str| json!(number(object, pointer));
    let size = |pointers: &[&str]| {
        let sizes = pointers.iter().filter_map(|pointer| at(object, pointer)?.as_object());
        json!(sizes.map(serde_json::Map::len).sum::<usize>())
    };
    match (row.group.as_str(), row.kind.as_str()) {
        ("", "Pod") => pods::cells(object, now),
        ("", "Node") => node(object, name, since),
        ("", "Namespace") => vec![name, json!(text(object, "/status/phase")), since],
        ("", "Service") => service(object, name, since),
        ("", "ConfigMap") => vec![name, size(&["/data", "/binaryData"]), since],
        ("", "Secret") => vec![name, json!(text(object, "/type")), size(&["/data"]), since],
        ("", "ServiceAccount") => vec![name, json!(items(object, "/secrets").count()), since],
        ("", "PersistentVolumeClaim") => volumes::claim(object, name, since),
        ("", "PersistentVolume") => volumes::volume(object, name, since),
        (_, "Event") => event(object, name, now),
        ("apps", "Deployment") => {
            let ready =
                format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
            let told = |pointer: &str| json!(number(object, pointer).to_string());
            let mut out = vec![
                name,
                json!(ready),
                told("/status/updatedReplicas"),
                told("/status/availableReplicas"),
                since,
            ];
            out.extend(template(object));
            out
        }
        ("apps", "ReplicaSet") => {
            let mut out = vec![
                name,
                count("/spec/replicas"),
                count("/status/replicas"),
                count("/status/readyReplicas"),
                since,
            ];
            out.extend(template(object));
            out
        }
        ("apps", "StatefulSet") => {
            let ready =
                format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"));
            let mut out = vec![name, json!(ready), since];
            out.extend(template(object).into_iter().take(2));
            out
        }
        ("apps", "DaemonSet") => {
            let mut out = vec![name];
            out.extend(
                [
                    "desiredNumberScheduled",
                    "currentNumberScheduled",
                    "numberReady",
                    "updatedNumberScheduled",
                    "numberAvailable",
                ]
                .map(|field| count(&format!("/status/{field}"))),
            );
            out.extend([json!(labels(object, "/spec/template/spec/nodeSelector")), since]);
            out.extend(template(object));
            out
        }
        ("apps", "ControllerRevision") => {
            let owners = items(object, "/metadata/ownerReferences");
            let owner = owners.into_iter().find(|owner| owner["controller"] == json!(true));
            let named = owner.map(|owner| {
                let group = text(owner, "/apiVersion").split_once('/').map(|(group, _)| format!(".{group}"));
                let kind = text(owner, "/kind").to_lowercase();
                format!("{kind}{}/{}", group.unwrap_or_default(), text(owner, "/name"))
            });
            vec![name, json!(or_none(&named.unwrap_or_default())), count("/revision"), since]
        }
        ("batch", "Job") => job(object, name, since, now),
        ("policy", "PodDisruptionBudget") => {
            let told = |pointer: &str| match at(object, pointer) {
                Some(Value::String(text)) => json!(text),
                Some(number) => json!(number.to_string()),
                None => json!("N/A"),
            };
            vec![
                name,
                told("/spec/minAvailable"),
                told("/spec/maxUnavailable"),
                count("/status/disruptionsAllowed"),
                since,
            ]
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            let ports: Vec<String> =
                items(object, "/ports").map(|port| number(port, "/port").to_string()).collect();
            let addresses: Vec<&str> = items(object, "/endpoints")
                .flat_map(|endpoint| items(endpoint, "/addresses"))
                .filter_map(Value::as_str)
                .collect();
            let shown = match addresses.len() {
                0 => "<unset>".to_owned(),
                1..=3 => addresses.join(","),
                more => format!("{} + {} more...", addresses[..3].join(","), more - 3),
            };
            vec![
                name,
                json!(text(object, "/addressType")),
                json!(or_none(&ports.join(","))),
                json!(shown),
                since,
            ]
        }
        ("coordination.k8s.io", "Lease") => vec![name, json!(text(object, "/spec/holderIdentity")), since],
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            let asked = at(object, "/spec/expirationSeconds").and_then(Value::as_i64);
            let asked = asked.map(|seconds| human::duration(SignedDuration::from_secs(seconds)));
            vec![
                name,
                since,
                json!(or_none(text(object, "/spec/signerName"))),
                json!(text(object, "/spec/username")),
                json!(asked.unwrap_or_else(|| "<none>".to_owned())),
                json!(request_state(object)),
            ]
        }
        ("apiextensions.k8s.io" | "rbac.authorization.k8s.io", _) => {
            vec![name, json!(text(object, "/metadata/creationTimestamp"))]
        }
        _ => vec![name, since],
    }
}

fn joined<'a>(values: impl Iterator<Item = &'a str>) -> Value {
    json!(values.collect::<Vec<_>>().join(","))
}

/// Containers, images and selector of a workload.
fn template(object: &Value) -> Vec<Value> {
    let containers = items(object, "/spec/template/spec/containers");
    vec![
        joined(containers.clone().map(|container| text(container, "/name"))),
        joined(containers.map(|container| text(container, "/image"))),
        json!(labels(object, "/spec/selector/matchLabels")),
    ]
}

/// Labels as tables show them.
fn labels(object: &Value, pointer: &str) -> String {
    let labels = at(object, pointer).and_then(Value::as_object);
    let pairs = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    or_none(&pairs.collect::<Vec<_>>().join(",")).to_owned()
}

fn node(object: &Value, name: Value, since: Value) -> Vec<Value> {
    let ready = items(object, "/status/conditions").find(|condition| text(condition, "/type") == "Ready");
    let mut status = match ready.map(|ready| text(ready, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if at(object, "/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = at(object, "/metadata/labels").and_then(Value::as_object);
    let roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"))
        .collect();
    let address = |kind: &str| {
        let found = items(object, "/status/addresses").find(|address| text(address, "/type") == kind);
        json!(or_none(found.map_or("", |address| text(address, "/address"))))
    };
    let info = |field: &str| json!(text(object, &format!("/status/nodeInfo/{field}")));
    vec![
        name,
        json!(status),
        json!(or_none(&roles.join(","))),
        since,
        info("kubeletVersion"),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn service(object: &Value, name: Value, since: Value) -> Vec<Value> {
    let ports: Vec<String> = items(object, "/spec/ports")
        .map(|port| {
            let node = number(port, "/nodePort");
            let outside = if node == 0 { String::new() } else { format!(":{node}") };
            format!("{}{outside}/{}", number(port, "/port"), text(port, "/protocol"))
        })
        .collect();
    let kind = text(object, "/spec/type");
    let external = match kind {
        "ExternalName" => text(object, "/spec/externalName"),
        "LoadBalancer" => "<pending>",
        _ => "<none>",
    };
    vec![
        name,
        json!(kind),
        json!(or_none(text(object, "/spec/clusterIP"))),
        json!(external),
        json!(or_none(&ports.join(","))),
        since,
        json!(labels(object, "/spec/selector")),
    ]
}

fn event(object: &Value, name: Value, now: Timestamp) -> Vec<Value> {
    let about = if object.get("regarding").is_some() { "/regarding" } else { "/involvedObject" };
    let kind = text(object, &format!("{about}/kind")).to_lowercase();
    let subject = format!("{kind}/{}", text(object, &format!("{about}/name")));
    let last = ["/lastTimestamp", "/deprecatedLastTimestamp", "/series/lastObservedTime", "/eventTime"];
    let first = ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"];
    let told = |pointers: &[&str]| {
        let found = pointers.iter().find(|pointer| !text(object, pointer).is_empty());
        found.map_or_else(|| "<unknown>".to_owned(), |pointer| age(object, pointer, now))
    };
    let message = match text(object, "/message") {
        "" => text(object, "/note"),
        message => message,
    };
    let count = number(object, "/count").max(number(object, "/deprecatedCount")).max(1);
    vec![
        json!(told(&last)),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(subject),
        json!(text(object, &format!("{about}/fieldPath"))),
        json!(text(object, "/source/component")),
        json!(message.trim()),
        json!(told(&first)),
        json!(count.to_string()),
        name,
    ]
}

fn job(object: &Value, name: Value, since: Value, now: Timestamp) -> Vec<Value> {
    let has = |kind: &str| crate::kinds::condition_is_true(object, kind);
    let status = match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if !text(object, "/metadata/deletionTimestamp").is_empty() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let wanted = match at(object, "/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => wanted.to_string(),
        None => format!("1 of {}", number(object, "/spec/parallelism")),
    };
    let completions = format!("{}/{wanted}", number(object, "/status/succeeded"));
    let started = text(object, "/status/startTime").parse::<Timestamp>().ok();
    let ended = text(object, "/status/completionTime").parse::<Timestamp>().ok();
    let duration = started
        .map(|started| human::duration(ended.unwrap_or(now).duration_since(started)))
        .unwrap_or_default();
    let mut out = vec![name, json!(status), json!(completions), json!(duration), since];
    out.extend(template(object));
    out
}

fn request_state(object: &Value) -> String {
    let has = |kind: &str| items(object, "/status/conditions").any(|found| text(found, "/type") == kind);
    let mut state = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        state.push_str(",Issued");
    }
    state
}

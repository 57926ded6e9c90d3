//! Autoscalers, CloudProvisioners and reschedulers as a user meets them.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::{World, namespace, text};

/// An escape sequence, a line that looks like one of ours, and a mark that reverses what follows.
const HOSTILE: &str = "v1\u{1b}]0;x\u{7}\u{1b}[2J\nforged  True\u{202e}";

fn object(kind: &str, name: &str, namespace: Option<&str>, spec: Value) -> Value {
    let mut metadata = json!({"name": name, "labels": {"tier": name}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({"apiVersion": "portolan.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

fn autoscaler(name: &str) -> Value {
    let target = json!({"kind": "MultiClusterDeployment", "name": name});
    let spec = json!({"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 20});
    object("MultiClusterHorizontalPodAutoscaler", name, Some("shop"), spec)
}

fn provisioner() -> Value {
    let spec = json!({"cloudClusterName": "cloud1", "cloudProvider": "OpenStack"});
    object("CloudProvisioner", "burst", None, spec)
}

fn rescheduler() -> Value {
    object("MultiClusterRescheduler", "home", None, json!({}))
}

fn condition(status: &str, reason: &str, message: &str) -> Value {
    json!([{
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }])
}

/// The words of each line.
fn words(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect()).collect()
}

fn assert_harmless(what: &[&str], output: &str) {
    let odd = |each: char| each != '\n' && (each.is_control() || each == '\u{202e}');
    assert!(!output.contains(odd), "{what:?}: {output:?}");
    assert!(!output.lines().any(|line| line.starts_with("forged")), "{what:?}: {output}");
}

/// A hub without a controller: what its objects say is what a test has written.
fn written(name: &str) -> World {
    let world = World::start(name, 2);
    world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--timeout", "0s"]);
    world.apply("c1", &namespace("shop"));
    for object in [autoscaler("web"), autoscaler("api"), provisioner(), rescheduler()] {
        world.apply("c1", &object);
    }
    let clusters = json!([
        {"cluster": "c2", "currentReplicas": 3, "desiredReplicas": 5, "averageUtilization": 82, "message": HOSTILE},
    ]);
    let status = json!({
        "observedGeneration": 1, "currentReplicas": 3, "desiredReplicas": 5, "minReplicas": 2,
        "metricsSummary": "cpu 63%/75%", "clusters": clusters, "conditions": condition("True", "Ready", "well"),
    });
    world.set_status("multiclusterhorizontalpodautoscalers", Some("shop"), "web", &status);
    let status = json!({
        "observedGeneration": 1, "phase": "Failed", "readyNodes": 1, "desiredNodes": 2, "foreignCluster": "cloud1",
        "pools": [{"machineType": "m1.small", "ready": 1, "desired": 2, "pricePerHour": "0.05"}],
        "costPerHour": "0.05", "costSoFar": "1.4", "waiting": ["MultiClusterDeployment/shop/web"],
        "lastFailure": {"time": "2026-01-01T00:00:00Z", "reason": "QuotaExceeded", "message": HOSTILE},
        "conditions": condition("False", "ProvisionFailed", HOSTILE),
    });
    world.set_status("cloudprovisioners", None, "burst", &status);
    let staying = json!([{
        "kind": "MultiClusterDeployment", "namespace": "shop", "name": "web", "cluster": "cloud1",
        "reason": "NoRoom", "message": "1 more fit",
    }]);
    let status = json!({
        "observedGeneration": 1, "moving": 0, "moved": 4, "staying": staying,
        "conditions": condition("True", "Active", "at work"),
    });
    world.set_status("multiclusterreschedulers", None, "home", &status);
    world
}

#[test]
fn autoscalers_provisioners_and_reschedulers_are_listed() {
    let world = written("elastic-get");
    let table = world.succeeds(&["get", "mchpa", "-n", "shop"]);
    let header = ["NAME", "READY", "REASON", "TARGET", "METRICS", "MIN", "MAX", "REPLICAS", "AGE"];
    assert_eq!(words(&table)[0], header);
    assert_eq!(words(&table)[1][..4], ["api", "Unknown", "-", "api"], "no controller has seen it: {table}");
    assert_eq!(words(&table)[2][..9], ["web", "True", "Ready", "web", "cpu", "63%/75%", "2", "20", "3"]);
    let all =
        world.succeeds(&["get", "multiclusterhorizontalpodautoscalers.portolan.dev", "-A", "-l", "tier=web"]);
    assert_eq!((words(&all)[0][0], &words(&all)[1][..2]), ("NAMESPACE", &["shop", "web"][..]));
    assert_eq!(words(&all).len(), 2, "-l selects: {all}");

    let clouds = world.succeeds(&["get", "CloudProvisioner", "-A"]);
    let header = ["NAME", "READY", "REASON", "PHASE", "NODES", "CLUSTER", "COST/H", "COST", "AGE"];
    assert_eq!(words(&clouds)[0], header, "it is in no namespace");
    let cells = ["burst", "False", "ProvisionFailed", "Failed", "1/2", "cloud1", "0.05", "1.4"];
    assert_eq!(words(&clouds)[1][..8], cells);
    let home = world.succeeds(&["get", "mcr", "home", "--no-headers"]);
    assert_eq!(words(&home)[0][..7], ["home", "True", "Active", "0", "4", "1", "-"]);

    for kind in ["mchpa", "cp", "mcr"] {
        let command = ["get", kind, "-o", "wide", "-n", "shop"];
        let wide = world.succeeds(&command);
        assert_harmless(&command, &wide);
        assert!(wide.lines().next().unwrap().ends_with("MESSAGE"), "{wide}");
    }
    assert!(world.succeeds(&["get", "mchpa", "-n", "shop", "-o", "wide"]).contains("c2:3/5@82%?"));
    assert!(world.succeeds(&["get", "mcr", "-o", "wide"]).contains("cloud1:1"));
    assert_eq!(world.succeeds(&["get", "mcr", "-o", "name"]), "multiclusterrescheduler.portolan.dev/home\n");
    let data: Value = serde_json::from_str(&world.succeeds(&["get", "cp/burst", "-o", "json"])).unwrap();
    assert_eq!(data["status"]["lastFailure"]["message"], HOSTILE, "data stays the same data");
    let yaml = world.succeeds(&["get", "mcr", "home", "-o", "yaml"]);
    assert!(yaml.contains("kind: MultiClusterRescheduler"), "{yaml}");
    let missing = world.portolan(&["get", "cp", "nothing"]);
    assert_eq!(missing.status.code(), Some(1));
    let told = text(&missing.stderr);
    assert!(told.contains("cloudprovisioner \"nothing\" not found") && told.contains("get cp"), "{told}");
}

#[test]
fn autoscalers_provisioners_and_reschedulers_are_described() {
    let world = written("elastic-status");
    let tell = |arguments: &[&str]| {
        let output = world.portolan(arguments);
        assert_eq!(output.status.code(), Some(3), "no controller leads: {}", text(&output.stderr));
        assert_harmless(arguments, &text(&output.stdout));
        text(&output.stdout)
    };
    let web = tell(&["status", "mchpa/web", "-n", "shop"]);
    for words in [
        "✓ multiclusterhorizontalpodautoscaler shop/web  scales web: 3 replicas, 5 desired",
        "└─ c2  3/5 replicas",
    ] {
        assert!(web.contains(words), "{words}: {web}");
    }
    let burst = tell(&["status", "cp", "burst"]);
    for words in [
        "✗ cloudprovisioner burst  Failed, 1/2 nodes ready, cluster cloud1",
        "├─ m1.small  1/2 nodes ready, 0.05 per hour each",
        "│  └─ mcd/web in shop",
        "├─ last failure",
        ", QuotaExceeded: v1",
        "└─ costs 0.05 per hour, 1.4 so far",
        "\nConditions\n  Ready False",
    ] {
        assert!(burst.contains(words), "{words}: {burst}");
    }
    let home = tell(&["status", "mcr/home"]);
    for words in [
        "✓ multiclusterrescheduler home  0 moving, 4 moved, 1 staying, not run yet",
        "mcd/web in shop  on cloud1, NoRoom: 1 more fit",
    ] {
        assert!(home.contains(words), "{words}: {home}");
    }
    let fleet = tell(&["status"]);
    assert!(fleet.contains("2 MultiClusterHorizontalPodAutoscalers, 1 ready\n  ✗ shop/api  "), "{fleet}");
    assert!(
        !fleet.contains("shop/web") && !fleet.contains("Rescheduler"),
        "what is Ready has no line: {fleet}"
    );
    assert!(fleet.contains("1 CloudProvisioner, 0 ready\n  ✗ burst  v1"), "{fleet}");
    let elsewhere = tell(&["status", "-n", "other"]);
    assert!(!elsewhere.contains("shop/api") && elsewhere.contains("✗ burst"), "{elsewhere}");

    // Events of objects without a namespace are in the namespace default.
    let data: Value = serde_json::from_str(&world.succeeds(&["get", "cp/burst", "-o", "json"])).unwrap();
    let regarding = json!({"kind": "CloudProvisioner", "name": "burst", "uid": data["metadata"]["uid"]});
    world.apply("c1", &json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "burst.1", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "regarding": regarding, "type": "Warning", "action": "Provision",
        "reason": "ClusterFailed", "note": HOSTILE, "reportingController": "test", "reportingInstance": "test",
    }));
    assert!(tell(&["status", "cp/burst"]).contains("Warning  ClusterFailed: v1"));
    let events = world.succeeds(&["events", "cp", "burst"]);
    assert_harmless(&["events"], &events);
    assert!(events.contains("cloudprovisioner/burst") && events.contains(" hub "), "{events}");
    let none = world.portolan(&["events", "mchpa/web", "-n", "shop"]);
    assert_eq!(none.status.code(), Some(0), "{}", text(&none.stderr));
    assert!(text(&none.stderr).contains("No events found"), "{}", text(&none.stderr));
}

#[test]
fn the_exit_code_says_whether_they_are_ready() {
    let mut world = World::start("elastic-live", 2);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &rescheduler());
    world.until(&["get", "mcr"], &["True", "Active"]);
    let home = world.portolan(&["status", "mcr/home"]);
    assert_eq!(home.status.code(), Some(0), "{}{}", text(&home.stdout), text(&home.stderr));
    let fleet = world.portolan(&["status"]);
    assert_eq!(fleet.status.code(), Some(0), "{}{}", text(&fleet.stdout), text(&fleet.stderr));
    assert!(!text(&fleet.stdout).contains("Rescheduler"), "{}", text(&fleet.stdout));

    // The workload does not exist, and the hub has no Cluster API.
    world.apply("c1", &autoscaler("web"));
    world.apply("c1", &provisioner());
    world.until(&["get", "mchpa", "-n", "shop"], &["False", "FailedGetScale"]);
    world.until(&["get", "cp"], &["False", "ClusterApiNotFound"]);
    for object in ["mchpa/web", "cp/burst"] {
        let output = world.portolan(&["status", object, "-n", "shop"]);
        assert_eq!(output.status.code(), Some(3), "{object}: {}", text(&output.stderr));
        assert!(text(&output.stdout).starts_with('✗'), "{}", text(&output.stdout));
    }
    let fleet = world.portolan(&["status", "-o", "json"]);
    assert_eq!(fleet.status.code(), Some(3));
    let data: Value = serde_json::from_slice(&fleet.stdout).unwrap();
    let ready = |plural: &str| data[plural][0]["ready"].as_bool();
    assert_eq!(data["ready"], false);
    assert_eq!(ready("multiclusterhorizontalpodautoscalers"), Some(false), "{data}");
    assert_eq!(ready("cloudprovisioners"), Some(false), "{data}");
    assert_eq!(ready("multiclusterreschedulers"), Some(true), "{data}");
    world.until(&["events", "mchpa/web", "-n", "shop"], &["FailedGetScale", " hub "]);
}

#[test]
fn a_hub_without_these_kinds_has_a_status() {
    let world = World::start("elastic-old", 1);
    let elastic = ["MultiClusterHorizontalPodAutoscaler", "CloudProvisioner", "MultiClusterRescheduler"];
    for crd in portolan_api::served_crds() {
        if !elastic.contains(&crd.spec.names.kind.as_str()) {
            world.apply("c1", &serde_json::to_value(crd).unwrap());
        }
    }
    let fleet = world.portolan(&["status"]);
    assert_eq!(fleet.status.code(), Some(3), "no controller leads: {}", text(&fleet.stderr));
    assert!(text(&fleet.stdout).contains("0 members, 0 ready"), "{}", text(&fleet.stdout));
    let none = world.portolan(&["get", "cp"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("custom resource definitions"), "{}", text(&none.stderr));
}

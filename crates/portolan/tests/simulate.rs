//! `portolan simulate` as a user meets it: what it writes, and the fleet of a hub as its beginning.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use support::{World, namespace, text, workload};

/// Runs a command that needs no cluster.
fn alone(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portolan")).args(arguments).env_remove("KUBECONFIG").output().unwrap()
}

#[test]
fn a_fleet_is_written_played_and_compared_without_its_hub() {
    let mut world = World::start("from-fleet", 3);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    world.succeeds(&["peer", "--remote-context", "c3", "-n", "shop", "--name", "rome"]);
    world.apply("c1", &namespace("shop"));
    let spread = json!({
        "locations": ["c2"], "enableSubstitution": true, "onUnreachable": "ReplaceAfter", "replaceAfter": "1m",
    });
    world.apply("c1", &workload("web", 2, "500m", &spread));
    world.until(&["get", "mcd", "-n", "shop"], &["2/2"]);
    let file = world.write_text(
        "lose.yaml",
        "name: lose\ntitle: The first member is lost\nduration: 5m\nvariants:\n  lost:\n    title: It is lost\n    patch: \
         [{op: add, path: /faults/-, value: {at: 15s, event: {loseCluster: {cluster: c2}}}}]\n",
    );

    // Rome has no context of its name: what the hub reports takes the place of its nodes.
    let today = file.replace("lose.yaml", "today.yaml");
    let written = world.portolan(&["simulate", "--from-fleet", &file, "--write", &today]);
    let told = text(&written.stderr);
    assert_eq!(written.status.code(), Some(0), "{told}");
    for words in [
        "assumed: rome: the kubeconfig has no context \"rome\"",
        "2 nodes that are alike",
        "give --member-context rome=CONTEXT",
        "plays it without the hub",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let scenario = std::fs::read_to_string(&today).unwrap();
    let twice = world.portolan(&["simulate", "--from-fleet", &file, "--write", &today]);
    assert_eq!(twice.status.code(), Some(1), "what is there is not written over");
    assert_eq!(std::fs::read_to_string(&today).unwrap(), scenario);
    assert!(scenario.contains("# rome: the kubeconfig has no context"), "{scenario}");
    let read: Value = serde_saphyr::from_str(&scenario).unwrap();
    assert_eq!(
        (&read["name"], &read["objects"][0]["placed"]),
        (&json!("lose"), &json!({"c2": 2})),
        "{scenario}"
    );
    assert_eq!(read["clusters"][0]["nodeList"][0]["name"], "c2-1", "{scenario}");

    let context = ["--member-context", "rome=c3"];
    let all = world.portolan(&[&["simulate", "--from-fleet", &file, "--write", "-"][..], &context].concat());
    assert!(!text(&all.stderr).contains("assumed"), "{}", text(&all.stderr));
    let played = alone(&["simulate", &today, "--compare", "lost", "-o", "json"]);
    assert_eq!(played.status.code(), Some(0), "{}", text(&played.stderr));
    let records: Value = serde_json::from_slice(&played.stdout).unwrap();
    let ready = |run: usize, cluster: &str| {
        let series = records[run]["series"].as_array().unwrap().iter();
        let found = series.filter(|each| each["name"] == format!("workload.web.ready.{cluster}").as_str());
        let values: Vec<f64> = found
            .flat_map(|each| each["values"].as_array().unwrap())
            .map(|each| each.as_f64().unwrap())
            .collect();
        (values[0], *values.last().unwrap())
    };
    assert_eq!((ready(0, "c2"), ready(0, "rome")), ((2.0, 2.0), (0.0, 0.0)));
    assert_eq!(ready(1, "rome"), (0.0, 2.0), "the variant loses c2");
    let again = alone(&["simulate", &today, "--compare", "lost", "-o", "json"]);
    assert_eq!(played.stdout, again.stdout, "the same seed gives the same bytes");

    let wrong = world.write_text("wrong.yaml", "faults: [{at: 1m, event: {cutOff: {cluster: oslo}}}]");
    let wrong = world.portolan(&["simulate", "--from-fleet", &wrong]);
    assert_eq!(wrong.status.code(), Some(2));
    for words in ["there is no cluster \"oslo\"", "the clusters are: c2, rome"] {
        assert!(text(&wrong.stderr).contains(words), "{words}: {}", text(&wrong.stderr));
    }
}

/// A shop that two clusters cannot hold bursts to the cloud. In a variant it loses a node.
const SHOP: &str = r#"
name: shop
title: A shop bursts to the cloud
duration: 6m
clusters:
- {name: paris, site: paris, nodes: {count: 2, cpu: 2, memory: 4Gi}}
- {name: lyon, site: lyon, nodes: {count: 1, cpu: 2, memory: 4Gi}}
latencies:
- {between: [paris, lyon], rtt: 8ms}
cloud:
  site: paris
  infrastructure: {least: 5s, most: 5s}
  controlPlane: {boot: {least: 30s, most: 40s}, pricePerHour: "0.02"}
  machineTypes:
  - {name: m, cpu: 4, memory: 8Gi, pricePerHour: "0.1", boot: {least: 20s, most: 30s}}
objects:
- manifest:
    apiVersion: portolan.dev/v1alpha1
    kind: MultiClusterDeployment
    metadata: {name: shop}
    spec:
      locations: [paris]
      enableSubstitution: true
      enableBursting: true
      replicas: 8
      selector: {matchLabels: {app: shop}}
      template:
        metadata: {labels: {app: shop}}
        spec:
          containers:
          - {name: main, image: "example.org/shop:1", resources: {requests: {cpu: 900m, memory: 64Mi}}}
variants:
  lost:
    title: A node of paris is lost
    patch: [{op: add, path: /faults, value: [{at: 1m, event: {loseNode: {cluster: paris, node: 2}}}]}]
"#;

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let each = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    each.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn runs_that_are_compared_are_written_as_tables_and_figures_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("shop.yaml");
    std::fs::write(&scenario, SHOP).unwrap();
    let played = |name: &str| {
        let results = folder.path().join(name);
        let arguments = ["simulate", scenario.to_str().unwrap(), "--compare", "lost", "--output-dir"];
        let output = alone(&[&arguments[..], &[results.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        (text(&output.stdout), files(&results))
    };
    let (table, first) = played("first");
    let mut expected: Vec<String> = ["shop", "lost"]
        .iter()
        .flat_map(|run| [format!("{run}-series.csv"), format!("{run}-summary.csv")])
        .collect();
    let figures = [
        ("shop", &["allocation", "requested", "capacity", "replicas-shop", "cost"][..]),
        ("lost", &["allocation", "requested", "capacity", "replicas-shop", "cost"]),
        ("shop-beside-lost", &["pending", "allocated", "ready-shop", "cost"]),
    ];
    for (of, names) in figures {
        for name in names {
            expected.extend(["svg", "png", "dark.png"].map(|ending| format!("{of}-{name}.{ending}")));
        }
    }
    expected.sort();
    assert_eq!(first.keys().cloned().collect::<Vec<_>>(), expected);
    for (name, bytes) in &first {
        let begins: &[u8] = match name.rsplit('.').next().unwrap() {
            "svg" => b"<svg",
            "png" => b"\x89PNG",
            _ if name.ends_with("-series.csv") => b"seconds,cluster.paris.cpuRequested,",
            _ => b"name,value\n",
        };
        assert!(bytes.starts_with(begins), "{name}");
    }
    assert_ne!(first["shop-cost.png"], first["shop-cost.dark.png"]);
    let expected = [
        ("Clusters of shop, in their order", ["lyon, paris, cloud"; 2]),
        ("Ready replicas of shop lost without being asked for", ["0", "2 at "]),
    ];
    for (figure, values) in expected {
        let line = table.lines().find(|line| line.contains(figure)).unwrap_or_else(|| panic!("{table}"));
        assert!(values.iter().all(|value| line.contains(value)), "{line}");
    }
    let (again, second) = played("second");
    assert_eq!(table, again);
    let differ: Vec<&String> =
        first.iter().filter(|(name, bytes)| second.get(*name) != Some(bytes)).map(|(name, _)| name).collect();
    assert!(
        differ.is_empty() && first.len() == second.len(),
        "the same seed gives the same bytes: {differ:?}"
    );
}

#[test]
fn flags_of_a_hub_without_a_fleet_and_a_hub_without_members_are_refused() {
    let refused = alone(&["simulate", "paper-4", "--context", "hub"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("give --from-fleet"), "{}", text(&refused.stderr));
    assert_eq!(alone(&["simulate", "paper-4", "--write", "x.yaml"]).status.code(), Some(2));
    let world = World::start("no-fleet", 1);
    let none = world.portolan(&["simulate", "--from-fleet"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("custom resource definitions"), "{}", text(&none.stderr));
}

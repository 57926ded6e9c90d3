//! `portolan simulate --from-fleet` as a user meets it.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
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

//! `plan` and `explain` as a user meets them.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::{World, namespace, text, workload};

#[test]
fn what_would_happen_is_told_and_nothing_happens() {
    let mut world = World::start("plan", 3);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop", "--latency", "c3=9ms"]);
    world.succeeds(&["peer", "--remote-context", "c3", "-n", "shop"]);
    world.apply("c1", &namespace("shop"));

    // Each member has two nodes of two CPUs: room for four replicas of one.
    let five = workload("web", 5, "1", &json!({"locations": ["c2"], "enableSubstitution": true}));
    let file = world.write("five.yaml", &five);
    let planned = world.portolan(&["plan", "-f", &file]);
    let told = text(&planned.stdout);
    assert_eq!(planned.status.code(), Some(3), "{told}{}", text(&planned.stderr));
    assert!(
        told.contains("4 (+4)") && told.contains("1 (+1)") && told.contains("stands in for c2"),
        "{told}"
    );
    let none = world.portolan(&["get", "mcd", "-n", "shop"]);
    assert!(text(&none.stdout).is_empty(), "nothing was made: {}", text(&none.stdout));

    world.apply("c1", &five);
    world.until(&["get", "mcd", "-n", "shop"], &["5/5"]);
    let same = world.portolan(&["plan", "-f", &file]);
    assert_eq!(same.status.code(), Some(0), "{}{}", text(&same.stdout), text(&same.stderr));
    assert!(text(&same.stdout).contains("nothing changes"));
    let many = world.write("many.yaml", &workload("web", 9, "1", &json!({"locations": ["c2"]})));
    let pending = world.portolan(&["plan", "-f", &many, "-o", "json"]);
    assert_eq!(pending.status.code(), Some(4), "{}", text(&pending.stderr));
    let plan: serde_json::Value = serde_json::from_slice(&pending.stdout).unwrap();
    assert_eq!(plan["refusals"][0]["reason"], "NoRoom", "{plan}");
    let wrong = world.write("wrong.yaml", &workload("web", -1, "1", &json!({})));
    let refused = world.portolan(&["plan", "-f", &wrong]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));

    let why = world.succeeds(&["explain", "mcd/web", "-n", "shop"]);
    for words in ["4 replicas: it is one of the locations", "stands in for c2", "9.0ms from c2", "✓ room"] {
        assert!(why.contains(words), "{words}: {why}");
    }
    let missing = world.portolan(&["explain", "mcd/nothing", "-n", "shop"]);
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn a_rolling_update_that_waits_for_its_own_pods_is_named() {
    let mut world = World::start("stuck", 2);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &workload("web", 2, "2", &json!({"locations": ["c2"]})));
    world.until(&["get", "mcd", "-n", "shop"], &["2/2"]);
    let mut changed = workload("web", 2, "2", &json!({"locations": ["c2"]}));
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:2");
    world.apply("c1", &changed);
    world.until(&["explain", "mcd/web", "-n", "shop"], &["its rolling update waits", "maxUnavailable"]);
}

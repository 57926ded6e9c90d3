//! `plan` and `explain` as a user meets them.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::{World, job, namespace, text, workload};

#[test]
fn what_would_happen_is_told_and_nothing_happens() {
    let mut world = World::start("plan", 3);
    world.control();
    let peered = world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--latency", "c3=9ms"]);
    assert!(peered.status.success(), "{}", text(&peered.stderr));
    assert!(text(&peered.stderr).contains("there is no member c3 yet"), "{}", text(&peered.stderr));
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
    let many = world.write(
        "many.yaml",
        &workload("web", 9, "1", &json!({"locations": ["c2"], "enableSubstitution": true})),
    );
    let pending = world.portolan(&["plan", "-f", &many, "-o", "json"]);
    assert_eq!(pending.status.code(), Some(4), "{}", text(&pending.stderr));
    let plan: serde_json::Value = serde_json::from_slice(&pending.stdout).unwrap();
    assert_eq!(plan["refusals"][0]["reason"], "NoRoom", "{plan}");
    for (more, replicas, told) in [
        (json!({}), -1, "greater than or equal to 0"),
        (json!({"location": ["c2"]}), 1, "unknown field spec.location: did you mean locations?"),
    ] {
        let wrong = world.write("wrong.yaml", &workload("web", replicas, "1", &more));
        let refused = world.portolan(&["plan", "-f", &wrong]);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        assert!(text(&refused.stdout).contains(told), "{}", text(&refused.stdout));
        assert_eq!(text(&refused.stderr), "", "no line of a library");
    }
    let wrong_kind = json!({"apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterDeploymnet", "metadata": {"name": "x"}});
    let beside = world.write_text("beside.yaml", &format!("{wrong_kind}\n---\n{five}\n"));
    let refused = world.portolan(&["plan", "-f", &beside]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(
        text(&refused.stderr).contains("has no kind MultiClusterDeploymnet"),
        "{}",
        text(&refused.stderr)
    );
    assert!(text(&refused.stdout).contains("nothing changes"), "the others are planned");
    let known =
        json!({"apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "x"}});
    let beside = world.write_text("beside.yaml", &format!("{known}\n---\n{five}\n"));
    assert_eq!(world.portolan(&["plan", "-f", &beside]).status.code(), Some(0), "it is not planned");
    let cloud =
        json!({"apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner", "metadata": {"name": "x"}});
    let beside = world.write_text("beside.yaml", &format!("{cloud}\n---\n{five}\n"));
    let planned = world.portolan(&["plan", "-f", &beside]);
    assert_eq!(planned.status.code(), Some(0), "it does not count");
    assert!(text(&planned.stderr).contains("`portolan status cp/x`"), "{}", text(&planned.stderr));
    assert!(text(&planned.stdout).contains("nothing changes"), "the others are planned");
    let moved = world.write("moved.yaml", &workload("web", 4, "1", &json!({"locations": ["c3"]})));
    let fewer = world.portolan(&["plan", "-f", &moved]);
    let told = text(&fewer.stdout);
    assert_eq!(fewer.status.code(), Some(5), "{told}{}", text(&fewer.stderr));
    for words in ["0 (-4)", "4 (+3)", "1 running replica would go"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let mut image = five.clone();
    image["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:2");
    let image = world.write("image.yaml", &image);
    let rollout = world.portolan(&["plan", "-f", &image]);
    let told = text(&rollout.stdout);
    assert_eq!(rollout.status.code(), Some(3), "{told}{}", text(&rollout.stderr));
    assert!(told.contains("rolling update: 5 pods are replaced: main app:1 → app:2"), "{told}");

    let huge = workload("web", 5, "50", &json!({"locations": ["c2"], "enableSubstitution": true}));
    let huge = world.write("huge.yaml", &huge);
    let kept = world.portolan(&["plan", "-f", &huge]);
    let told = text(&kept.stdout);
    assert_eq!(kept.status.code(), Some(4), "{told}{}", text(&kept.stderr));
    for words in [
        "nothing changes, and not all of it can be done",
        "why not all of it can be placed:\n  c2: NoRoom: a replica needs cpu 50",
        "5 of 5 replicas stay where they run",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("maxUnavailable"), "{told}");
    let many = json!({"placementPolicy": "worst-fit", "numberOfLocations": 9});
    let many = world.write("locations.yaml", &workload("wide", 1, "0", &many));
    let wide = world.portolan(&["plan", "-f", &many]);
    let told = text(&wide.stdout);
    assert_eq!(wide.status.code(), Some(4), "{told}{}", text(&wide.stderr));
    let why = "7 replicas would be pending\n9 locations are asked for, and the fleet has 2 clusters";
    assert!(told.contains(why), "{told}");

    let why = world.succeeds(&["explain", "mcd/web", "-n", "shop"]);
    for words in ["4 replicas: it is one of the locations", "stands in for c2", "9.0ms from c2", "✓ room"] {
        assert!(why.contains(words), "{words}: {why}");
    }
    assert_eq!(world.succeeds(&["explain", "mcd", "web", "-n", "shop"]), why);
    let missing = world.portolan(&["explain", "mcd/nothing", "-n", "shop"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("multiclusterdeployment shop/nothing does not exist"));
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

#[test]
fn jobs_are_planned_and_explained_with_their_split() {
    let mut world = World::start("plan-jobs", 3);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop", "--latency", "c3=9ms"]);
    world.succeeds(&["peer", "--remote-context", "c3", "-n", "shop"]);
    world.apply("c1", &namespace("shop"));

    // Each member has two nodes of two CPUs: room for four pods of one.
    let more = json!({
        "locations": ["c2", "c3"], "countMode": "Total", "parallelism": 6, "suspend": false,
    });
    let sum = job("sum", 10, "1", &more);
    let file = world.write("sum.yaml", &sum);
    let planned = world.portolan(&["plan", "-f", &file]);
    let told = text(&planned.stdout);
    assert_eq!(planned.status.code(), Some(3), "{told}{}", text(&planned.stderr));
    for words in ["5 (+5)", "0 → 3", "5 completions, 3 at a time: it is one of the locations"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let none = world.portolan(&["get", "mcj", "-n", "shop"]);
    assert!(text(&none.stdout).is_empty(), "nothing was made: {}", text(&none.stdout));
    let yaml = world.portolan(&["plan", "-f", &file, "-o", "yaml"]);
    assert!(text(&yaml.stdout).contains("parallelismAfter: 3"), "{}", text(&yaml.stdout));

    // What one plan takes, the next one does not have.
    let full = json!({"items": [
        job("first", 4, "1", &json!({"locations": ["c2"], "parallelism": 4})),
        job("second", 2, "1", &json!({"locations": ["c2"]})),
    ], "kind": "List"});
    let both = world.write("both.yaml", &full);
    let pending = world.portolan(&["plan", "-f", &both, "-o", "json"]);
    assert_eq!(pending.status.code(), Some(4), "{}", text(&pending.stderr));
    let lines = text(&pending.stdout);
    let second: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&second["pending"], &second["refusals"][0]["reason"]),
        (&json!(2), &json!("NoRoom")),
        "{second}"
    );

    world.apply("c1", &sum);
    world.until(&["get", "mcj", "-n", "shop"], &["10/10"]);
    let same = world.portolan(&["plan", "-f", &file]);
    assert_eq!(same.status.code(), Some(0), "{}{}", text(&same.stdout), text(&same.stderr));
    let why = world.succeeds(&["explain", "mcj/sum", "-n", "shop"]);
    for words in ["10 of 10 completions finished", "It is complete", "5 completions, all finished", "✓ room"]
    {
        assert!(why.contains(words), "{words}: {why}");
    }

    world.apply("c1", &job("huge", 1, "3", &json!({"locations": ["c2"], "enableSubstitution": true})));
    world.until(
        &["explain", "mcj/huge", "-n", "shop"],
        &["0 placed and open, 1 pending", "✗ room      0 pods fit", "9.0ms from c2"],
    );
    let data = world.succeeds(&["explain", "mcj/sum", "-n", "shop", "-o", "json"]);
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    assert_eq!(data["clusters"][0]["job"]["succeeded"], 5, "{data}");
    let wrong = world.portolan(&["explain", "clusters/c2"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("mcj/NAME"), "{}", text(&wrong.stderr));
}

#[test]
fn a_service_is_planned_with_what_it_follows() {
    let mut world = World::start("plan-services", 3);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    world.succeeds(&["peer", "--remote-context", "c3", "-n", "shop"]);
    world.apply("c1", &namespace("shop"));
    let service = json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "MultiClusterService",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    let web = workload("web", 2, "1", &json!({"locations": ["c3"]}));
    let file = world.write("both.yaml", &json!({"kind": "List", "items": [service, web]}));
    let planned = world.portolan(&["plan", "-f", &file, "-o", "json"]);
    assert_eq!(planned.status.code(), Some(3), "{}", text(&planned.stderr));
    let lines = text(&planned.stdout);
    let plan: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    let clusters = plan["clusters"].as_array().unwrap();
    assert_eq!(clusters.len(), 1, "{plan}");
    assert_eq!((&clusters[0]["cluster"], &clusters[0]["after"]), (&json!("c3"), &json!(1)), "{plan}");

    world.apply("c1", &service);
    world.apply("c1", &web);
    world.until(
        &["explain", "mcs/web", "-n", "shop"],
        &[
            "follows web; 2 endpoints ready",
            "there: pods that it selects are placed there",
            "not there: no pods that it selects are placed there",
            "2 of 2 endpoints ready",
        ],
    );
}

#[test]
fn without_a_controller_that_is_said() {
    let world = World::start("plan-alone", 1);
    for crd in portolan_api::crds() {
        world.apply("c1", &serde_json::to_value(crd).unwrap());
    }
    world.apply("c1", &namespace("shop"));
    let alone = world.portolan(&["explain", "mcd/web", "-n", "shop", "--timeout", "1s"]);
    assert_eq!(alone.status.code(), Some(1));
    let told = text(&alone.stderr);
    assert!(told.contains("no controller answered within 1 s: is it running?"), "{told}");
}

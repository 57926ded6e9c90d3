//! Mistakes in scenarios are named: the file, the field, the rule, the number.

#![allow(clippy::unwrap_used)]

use portolan_simulator::{Options, load, shipped, simulate};
use serde_json::{Value, json};

fn good() -> Value {
    json!({
        "name": "small", "title": "A small one", "duration": "10m",
        "clusters": [
            {"name": "a", "site": "paris", "nodes": {"count": 2, "cpu": 2, "memory": "4Gi"}},
            {"name": "b", "site": "lyon", "nodes": {"count": 1, "cpu": 2, "memory": "4Gi"}},
        ],
        "latencies": [{"between": ["paris", "lyon"], "rtt": "8ms"}],
        "cloud": {
            "machineTypes": [
                {"name": "m", "cpu": 4, "memory": "8Gi", "pricePerHour": "0.1", "boot": {"least": "10s", "most": "20s"}},
            ],
        },
        "objects": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}}],
        "tasks": {"generator": {
            "during": "5m", "duration": {"always": "1m"}, "cpu": {"always": "100m"},
            "memory": {"quantiles": [{"percent": 0, "value": "1Mi"}, {"percent": 100, "value": "9Mi"}]},
            "locations": [{"cluster": "a", "tasks": 3}],
        }},
        "traffic": [{"name": "users", "from": "a", "service": "web", "load": {"steps": [{"at": "0s", "requestsPerSecond": 1}]}}],
        "faults": [{"at": "1m", "event": {"loseNode": {"cluster": "a", "node": 2}}}],
        "variants": {"more": {"title": "More", "patch": [{"op": "replace", "path": "/duration", "value": "20m"}]}},
    })
}

fn refused(scenario: &Value, variant: Option<&str>) -> String {
    load("my.yaml", &scenario.to_string(), variant).unwrap_err().to_string()
}

#[test]
fn a_scenario_without_a_mistake_is_taken_and_a_variant_changes_it() {
    let of = |variant| load("my.yaml", &good().to_string(), variant).unwrap().duration.to_string();
    assert_eq!((of(None).as_str(), of(Some("more")).as_str()), ("10m", "20m"));
}

#[test]
fn each_mistake_is_named_with_its_field() {
    let cases: Vec<(&str, Value, &str)> = vec![
        ("/name", json!("Small one"), "my.yaml: name: \"Small one\" is not a DNS label"),
        ("/duration", json!("soon"), "my.yaml: duration: \"soon\" is not a duration"),
        ("/duration", json!("0s"), "my.yaml: duration: it is 0"),
        ("/sampleEvery", json!("1us"), "my.yaml: sampleEvery: 1us in 10m are more than 200000 samples"),
        ("/clusters", json!([]), "my.yaml: clusters: there are none"),
        ("/clusters/1/name", json!("a"), "my.yaml: clusters[1].name: a is another cluster already"),
        ("/clusters/1/nodes/cpu", json!("two"), "my.yaml: clusters[1].nodes.cpu: "),
        ("/clusters/1/nodes/memory", json!("-1"), "my.yaml: clusters[1].nodes.memory: -1 is less than 0"),
        ("/clusters/1/nodes/cpus", json!(2), "my.yaml: clusters[1].nodes.cpus: unknown field `cpus`"),
        (
            "/latencies/0/between",
            json!(["paris", "rome"]),
            "my.yaml: latencies[0].between: no cluster is at \"rome\"",
        ),
        ("/cloud/name", json!("a"), "my.yaml: cloud.name: a is another cluster already"),
        ("/cloud/machineTypes", json!([]), "my.yaml: cloud.machineTypes: there are none"),
        ("/cloud/machineTypes/0/boot/most", json!("5s"), "my.yaml: cloud.machineTypes[0].boot: least is 10s"),
        (
            "/cloud/machineTypes/0/pricePerHour",
            json!("cheap"),
            "my.yaml: cloud.machineTypes[0].pricePerHour: \"cheap\"",
        ),
        (
            "/cloud/provisioner",
            json!({"machineTypes": []}),
            "my.yaml: cloud.provisioner.machineTypes: it follows",
        ),
        (
            "/clouds",
            json!([{"name": "cloud", "machineTypes": good()["cloud"]["machineTypes"]}]),
            "my.yaml: clouds[0].name: cloud is another cloud already",
        ),
        (
            "/clouds",
            json!([{"name": "other", "machineTypes": []}]),
            "my.yaml: clouds[0].machineTypes: there are none",
        ),
        (
            "/faults/0/event",
            json!({"refuseClusters": {"cloud": "moon", "reason": "No", "message": "no"}}),
            "my.yaml: faults[0].event.cloud: there is no cloud \"moon\"",
        ),
        ("/objects/0/at", json!("11m"), "my.yaml: objects[0].at: 11m is after the end, 10m"),
        ("/objects/0/to", json!(["c"]), "my.yaml: objects[0].to: there is no cluster \"c\""),
        ("/objects/0/manifest/kind", Value::Null, "my.yaml: objects[0].manifest.kind: it is missing"),
        ("/objects/0", json!({"at": "1m"}), "my.yaml: objects[0]: it must have either manifest or delete"),
        ("/tasks", json!({}), "my.yaml: tasks: it must have either generator or trace"),
        (
            "/tasks/generator/locations/0/tasks",
            json!(0),
            "my.yaml: tasks.generator.locations: they have 0 tasks",
        ),
        (
            "/tasks/generator/locations/0/cluster",
            json!("c"),
            "my.yaml: tasks.generator.locations[0].cluster: there is no",
        ),
        (
            "/tasks/generator/memory/quantiles/1/percent",
            json!(90),
            "my.yaml: tasks.generator.memory.quantiles: the first",
        ),
        (
            "/tasks/generator/memory/quantiles/1/value",
            json!("0"),
            "my.yaml: tasks.generator.memory.quantiles[1]: its value",
        ),
        ("/traffic/0/from", json!("c"), "my.yaml: traffic[0].from: there is no cluster \"c\""),
        ("/traffic/0/load/steps", json!([]), "my.yaml: traffic[0].load.steps: it has no points"),
        (
            "/faults/0/event/loseNode/node",
            json!(3),
            "my.yaml: faults[0].event.node: a has 2 nodes, and this is number 3",
        ),
        ("/faults/0/event", json!({"explode": {}}), "my.yaml: faults[0].event"),
        (
            "/variants/more/patch",
            json!([{"op": "remove", "path": "/nothing"}]),
            "my.yaml: variants.more.patch: it does not apply",
        ),
        ("/variants/more/patch/0/value", json!("0s"), "my.yaml: duration: with variant more: it is 0"),
    ];
    for (path, value, expected) in cases {
        let mut scenario = good();
        let (parent, field) = path.rsplit_once('/').unwrap();
        let parent = scenario.pointer_mut(parent).unwrap();
        match field.parse::<usize>() {
            Ok(index) if parent.is_array() => parent[index] = value,
            _ => parent[field] = value,
        }
        let error = refused(&scenario, path.starts_with("/variants").then_some("more"));
        assert!(error.starts_with(expected), "{path}: {error}");
    }
    let error = load("my.yaml", &good().to_string(), Some("less")).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.hint.as_deref()),
        ("my.yaml: variants: there is no variant less", Some("there are: more"))
    );
    assert!(refused(&json!("clusters: ["), None).starts_with("my.yaml: "));
}

#[test]
fn shipped_scenarios_and_all_their_variants_are_in_order() {
    for each in shipped() {
        let scenario = load(each.name, each.text, None).unwrap();
        assert_eq!(scenario.name, each.name);
        for variant in scenario.variants.keys() {
            load(each.name, each.text, Some(variant)).unwrap();
        }
    }
}

#[test]
fn an_object_that_a_cluster_refuses_and_a_trace_that_is_wrong_are_named() {
    let play = |scenario: &Value, folder: &std::path::Path| {
        let scenario = load("my.yaml", &scenario.to_string(), None).unwrap();
        let options = Options { folder: folder.to_owned(), ..Options::default() };
        simulate(&scenario, &options, &mut |_, _| ()).unwrap_err().to_string()
    };
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut scenario = good();
    scenario["objects"][0]["manifest"] = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterRescheduler", "metadata": {"name": "home"},
        "spec": {"margin": -1},
    });
    let error = play(&scenario, folder);
    assert!(
        error.starts_with("MultiClusterRescheduler home is refused: ") && error.contains("margin"),
        "{error}"
    );
    scenario["tasks"] = json!({"trace": {"file": "trace.csv"}});
    std::fs::write(folder.join("trace.csv"), "time,kind,cpu,memory,duration,location\n1,job,1,1Gi,30,c\n")
        .unwrap();
    let error = play(&scenario, folder);
    assert!(
        error.contains("trace.csv: the task of second 1, location: there is no cluster \"c\""),
        "{error}"
    );
    scenario["tasks"] = json!({"trace": {"file": "missing.csv"}});
    let error = play(&scenario, folder);
    assert!(error.contains("missing.csv: cannot read the trace"), "{error}");
}

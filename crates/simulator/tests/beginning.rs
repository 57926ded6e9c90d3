//! Scenarios that begin with a fleet at work: nodes one by one, the pods of others, and replicas that are placed already.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::workload;
use portolan_simulator::{Options, Record, load, simulate};
use serde_json::{Value, json};

fn scenario() -> Value {
    let node = |name: &str| json!({"name": name, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}});
    let mut busy = node("paris-b.example.org");
    busy["used"] = json!({"cpu": "3", "memory": "1Gi", "pods": "7"});
    let mut tainted = node("lyon-a");
    tainted["taints"] = json!([{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]);
    let mut cordoned = node("lyon-b");
    cordoned["unschedulable"] = json!(true);
    json!({
        "name": "today", "title": "A fleet at work", "duration": "5m", "namespace": "shop",
        "clusters": [
            {"name": "paris", "nodeList": [node("paris-a"), busy]},
            {"name": "lyon", "nodeList": [tainted, cordoned, node("lyon-c")]},
            {"name": "nice", "nodes": {"count": 2, "cpu": "4", "memory": "8Gi"}, "namespaces": [],
             "spec": {"taints": [{"key": "old", "effect": "NoSchedule"}]}},
        ],
        "objects": [
            {"manifest": workload("web", 3), "placed": {"lyon": 3}},
        ],
    })
}

fn play(scenario: &Value) -> Record {
    let scenario = load("today", &scenario.to_string(), None).unwrap();
    simulate(&scenario, &Options { label: "today".to_owned(), ..Options::default() }, &mut |_, _| ()).unwrap()
}

fn values(record: &Record, series: &str) -> Vec<f64> {
    record.series(series).unwrap().values.clone()
}

#[test]
fn replicas_that_are_placed_already_stay_where_they_are() {
    let everywhere = |record: &Record| {
        ["paris", "lyon", "nice"].map(|cluster| values(record, &format!("workload.web.ready.{cluster}")))
    };
    let record = play(&scenario());
    let [paris, lyon, nice] = everywhere(&record);
    assert!(lyon.iter().all(|ready| *ready == 3.0), "{lyon:?}");
    assert!(paris.iter().chain(&nice).all(|ready| *ready == 0.0), "{paris:?} {nice:?}");
    assert_eq!(values(&record, "cluster.paris.cpuRequested")[0], 3.0, "of others");
    assert_eq!(values(&record, "cluster.paris.nodes")[0], 2.0);
    assert_eq!(record.figure("dip.web"), Some("0"));
    let mut anew = scenario();
    anew["objects"][0]["placed"] = json!({});
    let [paris, lyon, _] = everywhere(&play(&anew));
    assert_eq!((paris.last(), lyon.last()), (Some(&3.0), Some(&0.0)), "paris has more room");
}

#[test]
fn nodes_take_what_their_room_taints_and_pods_of_others_leave() {
    let mut today = scenario();
    let mut many = workload("many", 40);
    many["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
    many["spec"]["locations"] = json!(["paris", "lyon"]);
    many["spec"]["enableBursting"] = json!(true);
    many["spec"]["numberOfLocations"] = Value::Null;
    many["spec"]["placementPolicy"] = Value::Null;
    today["objects"] = json!([{"manifest": many}]);
    let record = play(&today);
    let last = |series: &str| *values(&record, series).last().unwrap();
    assert_eq!(last("workload.many.ready.paris"), 13.0, "10 pods on one node, 3 beside the 7 of others");
    assert_eq!(last("workload.many.ready.lyon"), 10.0, "one node is tainted, one is cordoned");
    assert_eq!(last("workload.many.ready.nice"), 0.0, "it has a taint and opened no namespace");
}

#[test]
fn a_lost_cluster_is_replaced_by_others_and_a_node_is_lost_by_its_name() {
    let mut today = scenario();
    today["faults"] = json!([{"at": "1m", "event": {"loseNode": {"cluster": "lyon", "node": "lyon-c"}}}]);
    let record = play(&today);
    assert_ne!(record.figure("dip.web"), Some("0"), "its pods were on that node");
    today["faults"] = json!([{"at": "15s", "event": {"loseCluster": {"cluster": "lyon"}}}]);
    let ready = values(&play(&today), "workload.web.ready.paris");
    assert_eq!(ready.last(), Some(&3.0), "{ready:?}");
}

#[test]
fn mistakes_of_the_beginning_are_named() {
    let cases = [
        (
            "/clusters/0/nodeList/0/name",
            json!("Paris A"),
            "clusters[0].nodeList[0].name: \"Paris A\" cannot be",
        ),
        (
            "/clusters/0/nodeList/1/name",
            json!("paris-a"),
            "clusters[0].nodeList[1].name: paris-a is another node",
        ),
        (
            "/clusters/0/nodeList/0/allocatable",
            json!({"cpu": "1"}),
            "clusters[0].nodeList[0].allocatable.memory: it is missing",
        ),
        (
            "/clusters/0/nodeList/1/used/cpu",
            json!("5"),
            "clusters[0].nodeList[1].used.cpu: 5 is more than is allocatable, 4",
        ),
        (
            "/clusters/0/nodeList/1/used",
            json!({"nvidia.com/gpu": "1"}),
            "clusters[0].nodeList[1].used.nvidia.com/gpu: 1 is more than is allocatable, 0",
        ),
        (
            "/clusters/0/nodes",
            json!({"count": 1, "cpu": 1, "memory": "1Gi"}),
            "clusters[0].nodeList: nodes is given too",
        ),
        ("/clusters/2/nodes", Value::Null, "clusters[2].nodes: it is missing"),
        ("/clusters/2/nodes/count", json!(5001), "clusters[2].nodes.count: 5001 is more than 5000"),
        ("/clusters/2/namespaces", json!(["No"]), "clusters[2].namespaces[0]: \"No\" is not a DNS label"),
        ("/clusters/2/spec", json!({"latencies": []}), "clusters[2].spec.latencies: it follows from"),
        ("/objects/0/placed", json!({"rome": 1}), "objects[0].placed: there is no cluster \"rome\""),
        ("/objects/0/at", json!("1m"), "objects[0].placed: the object comes at 1m"),
        (
            "/objects/0/manifest/kind",
            json!("MultiClusterJob"),
            "objects[0].placed: only a MultiClusterDeployment",
        ),
        (
            "/faults",
            json!([{"at": "1m", "event": {"loseNode": {"cluster": "paris", "node": "nice-1"}}}]),
            "faults[0].event.node: paris has 2 nodes, and this is \"nice-1\"",
        ),
        (
            "/faults",
            json!([{"at": "1m", "event": {"loseCluster": {"cluster": "rome"}}}]),
            "faults[0].event.cluster: there is no",
        ),
    ];
    for (path, value, expected) in cases {
        let mut wrong = scenario();
        let (parent, field) = path.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[field] = value;
        let error = load("my.yaml", &wrong.to_string(), None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("my.yaml: {expected}")), "{path}: {error}");
    }
}

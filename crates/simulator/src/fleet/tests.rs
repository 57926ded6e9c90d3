//! The conversion, without any cluster.

#![allow(clippy::unwrap_used)]

use super::{Converted, FleetState, HubState, MemberState, Unread, convert, join};
use crate::scenario::{Event, load};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use portolan_api::{CloudProvisioner, ForeignCluster};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn cluster(name: &str, more: &Value) -> ForeignCluster {
    let mut object = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster",
        "metadata": {"name": name, "labels": {"tier": "edge"}},
        "spec": {"clusterIdentity": {"clusterID": name, "clusterName": name}},
    });
    json_patch::merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

fn node(name: &str, more: &Value) -> Node {
    let mut object = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "disk": "fast"}},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20", "hugepages-2Mi": "0"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    json_patch::merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

fn pod(name: &str, node: &str, cpu: &str, workload: Option<&str>, phase: &str) -> Pod {
    let labels = workload.map(|uid| json!({"portolan.dev/workload": uid}));
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": phase},
    }))
    .unwrap()
}

fn web(more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterDeployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7",
            "annotations": {"note": "mine"}, "finalizers": ["portolan.dev/placement"],
        },
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"token": "geheim", "sandbox.portolan.dev/start-up": "2s"}},
                "spec": {
                    "serviceAccountName": "web", "nodeSelector": {"disk": "fast"},
                    "volumes": [{"name": "v", "secret": {"secretName": "login"}}],
                    "containers": [{
                        "name": "main", "image": "web:1", "env": [{"name": "KEY", "value": "geheim"}],
                        "args": ["geheim"], "resources": {"requests": {"cpu": "1"}},
                    }],
                },
            },
        },
        "status": {
            "placements": [{"cluster": "paris", "replicas": 2}, {"cluster": "cloudy", "replicas": 1}],
            "resourceRequests": {"cpu": "1"},
        },
    });
    json_patch::merge(&mut object, more);
    object
}

fn converted(
    clusters: Vec<ForeignCluster>,
    members: Vec<(&str, MemberState)>,
    objects: Vec<Value>,
) -> Converted {
    let hub = HubState { clusters, objects, ..HubState::default() };
    let members = members.into_iter().map(|(name, state)| (name.to_owned(), state)).collect();
    convert(&FleetState { hub, members }, Timestamp::UNIX_EPOCH)
}

fn read(nodes: Vec<Node>, pods: Vec<Pod>) -> MemberState {
    MemberState { nodes: Ok(nodes), pods: Ok(pods), namespaces: Ok(vec!["shop".to_owned()]) }
}

#[test]
fn nodes_have_what_pods_of_others_request_and_workloads_stay_where_they_are() {
    let pods = vec![
        pod("web-1", "n1", "1", Some("u1"), "Running"),
        pod("orphan", "n1", "500m", Some("u9"), "Running"),
        pod("agent", "n1", "250m", None, "Running"),
        pod("done", "n1", "3", None, "Succeeded"),
        pod("waits", "", "3", None, "Pending"),
    ];
    let tainted = json!({
        "spec": {"unschedulable": true, "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, {"key": "db", "effect": "NoExecute"},
        ]},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    });
    let state = read(vec![node("n1", &json!({})), node("n2", &tainted)], pods);
    let found = converted(
        vec![cluster("paris", &json!({"spec": {"unschedulable": true}}))],
        vec![("paris", state)],
        vec![web(&json!({}))],
    );
    let paris = serde_json::to_value(&found.scenario.clusters[0]).unwrap();
    assert_eq!(
        paris,
        json!({
            "name": "paris", "labels": {"tier": "edge"}, "namespaces": ["shop", "simulation"], "spec": {"unschedulable": true},
            "nodeList": [
                {"name": "n1", "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}, "labels": {"disk": "fast"},
                 "used": {"cpu": "750m", "pods": "2"}},
                {"name": "n2", "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}, "labels": {"disk": "fast"},
                 "taints": [{"key": "db", "effect": "NoExecute"}], "unschedulable": true, "ready": false},
            ],
        })
    );
    let step = &found.scenario.objects[0];
    assert_eq!(
        step.placed,
        BTreeMap::from([("paris".to_owned(), 2)]),
        "a cluster that is no member has none"
    );
    assert_eq!(
        step.manifest.as_ref().unwrap(),
        &json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterDeployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}, "annotations": {"sandbox.portolan.dev/start-up": "2s"}},
                    "spec": {
                        "nodeSelector": {"disk": "fast"},
                        "containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}],
                    },
                },
            },
        })
    );
    assert!(
        !serde_json::to_string(&found.scenario).unwrap().contains("geheim"),
        "nothing that may be confidential"
    );
    assert_eq!(found.assumptions, []);
}

#[test]
fn what_cannot_be_read_is_named_and_what_the_hub_reports_takes_its_place() {
    let status = json!({"status": {
        "nodes": {"total": 2, "ready": 2}, "capacity": {"cpu": "8", "memory": "16Gi", "pods": "40"},
        "allocated": {"cpu": "3", "memory": "2Gi", "pods": "6"}, "available": {"cpu": "5", "memory": "14Gi", "pods": "34"},
    }});
    let why = Unread::new("no context").hint("give --member-context paris=CONTEXT");
    let silent = MemberState::unread(&why);
    let clusters = vec![cluster("paris", &status), cluster("unknown", &json!({}))];
    let members = vec![("paris", silent.clone()), ("unknown", silent)];
    let found = converted(clusters, members, vec![web(&json!({}))]);
    let paris = &found.scenario.clusters[0];
    assert_eq!(paris.namespaces, None);
    let nodes = serde_json::to_value(&paris.node_list).unwrap();
    // Of the 3 CPUs that are taken, web has 2.
    let like = |name: &str| json!({"name": name, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}});
    let mut first = like("paris-1");
    first["used"] = json!({"cpu": "1", "memory": "2Gi", "pods": "4"});
    let mut second = like("paris-2");
    second["used"] = json!({"cpu": "0", "memory": "0"});
    assert_eq!(nodes, json!([first, second]));
    assert_eq!(found.scenario.clusters[1].nodes.as_ref().unwrap().count, 0);
    let told: Vec<String> = found.assumptions.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "paris: no context. Assumed: 2 nodes that are alike, with the capacity that its ForeignCluster reports, filled \
             one after the other by what it reports as used; all namespaces of the scenario are open in it.",
            "unknown: no context. Assumed: no nodes, since its ForeignCluster reports no capacity either; all namespaces of \
             the scenario are open in it.",
        ]
    );
    assert_eq!(found.assumptions[0].hint.as_deref(), Some("give --member-context paris=CONTEXT"));
    let forbidden = MemberState { pods: Err(why), ..read(vec![node("n1", &json!({}))], Vec::new()) };
    let found = converted(vec![cluster("paris", &status)], vec![("paris", forbidden)], Vec::new());
    assert_eq!(found.scenario.clusters[0].node_list[0].used["cpu"].text, "3");
    assert!(found.assumptions[0].to_string().contains("what the hub reports"), "{:?}", found.assumptions);
}

#[test]
fn distances_silence_jobs_and_autoscalers_are_taken_over() {
    let away = json!({"status": {
        "conditions": [{"type": "Reachable", "status": "False", "reason": "Silent", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "latencies": [{"to": "hub", "rtt": "5ms", "source": "Measured"}, {"to": "rome", "rtt": "9ms", "source": "Measured"},
                      {"to": "gone", "rtt": "1ms", "source": "Measured"}],
    }});
    let given = json!({"spec": {"latencies": [{"to": "paris", "rtt": "8ms"}]}});
    let scaler = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterHorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"kind": "MultiClusterDeployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 9},
        "status": {"currentMetrics": [{"type": "Resource", "name": "cpu", "averageValue": "620m"}]},
    });
    let job = |name: &str, status: Value| {
        json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterJob",
            "metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": {"template": {}}, "status": status,
        })
    };
    let objects = vec![
        web(&json!({"spec": {"paused": true}})),
        scaler,
        job("runs", json!({"startTime": "1969-12-31T23:50:00Z"})),
        job("done", json!({"conditions": [{"type": "Complete", "status": "True"}]})),
        web(&json!({"metadata": {"name": "old", "deletionTimestamp": "2026-01-01T00:00:00Z"}})),
    ];
    let members = vec![("paris", read(Vec::new(), Vec::new())), ("rome", read(Vec::new(), Vec::new()))];
    let found = converted(vec![cluster("rome", &given), cluster("paris", &away)], members, objects);
    let scenario = &found.scenario;
    let latencies: Vec<String> = scenario
        .latencies
        .iter()
        .map(|each| format!("{} {} {}", each.between.0, each.between.1, each.rtt))
        .collect();
    assert_eq!(latencies, ["hub paris 5ms", "paris rome 8ms"]);
    assert_eq!(scenario.faults[0].event, Event::CutOff { cluster: "paris".to_owned() });
    let manifests: Vec<&Value> = scenario.objects.iter().filter_map(|step| step.manifest.as_ref()).collect();
    let names: Vec<&str> = manifests.iter().map(|each| each["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web", "web", "runs"]);
    let annotations = |index: usize| &manifests[index]["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations(0)["sandbox.portolan.dev/cpu"], "620m");
    assert_eq!(annotations(2)["sandbox.portolan.dev/run-time"], "600s");
    assert_eq!(manifests[0]["spec"]["paused"], false);
    for words in
        ["it is paused", "each pod uses 620m", "it begins again", "cut off from it from the beginning"]
    {
        assert!(
            found.assumptions.iter().any(|each| each.to_string().contains(words)),
            "{words}: {:?}",
            found.assumptions
        );
    }
}

#[test]
fn of_what_two_members_report_the_longer_time_is_taken_over_and_a_given_or_measured_one_before_it() {
    let reporting = |to: &str, rtt: &str, spec: Value| {
        let measured = json!([{"to": "hub", "rtt": "5ms", "source": "Measured"}]);
        let reported =
            json!([{"to": to, "rtt": rtt}, {"to": "hub", "rtt": "1ms"}, {"to": "gone", "rtt": "1ms"}]);
        json!({"spec": spec, "status": {"latencies": measured, "reportedLatencies": reported}})
    };
    let taken_over = |near: &Value, far: &Value| -> Vec<String> {
        let members = vec![("paris", read(Vec::new(), Vec::new())), ("rome", read(Vec::new(), Vec::new()))];
        let found = converted(vec![cluster("paris", near), cluster("rome", far)], members, Vec::new());
        let latencies = found.scenario.latencies.iter();
        latencies.map(|each| format!("{} {} {}", each.between.0, each.between.1, each.rtt)).collect()
    };
    let (near, far) = (reporting("rome", "1ms", json!({})), reporting("paris", "50ms", json!({})));
    assert_eq!(taken_over(&near, &far), ["hub paris 5ms", "hub rome 5ms", "paris rome 50ms"]);
    let (near, far) = (reporting("rome", "50ms", json!({})), reporting("paris", "1ms", json!({})));
    assert_eq!(taken_over(&near, &far), ["hub paris 5ms", "hub rome 5ms", "paris rome 50ms"]);
    let given = reporting("rome", "1ms", json!({"latencies": [{"to": "rome", "rtt": "9ms"}]}));
    assert_eq!(taken_over(&given, &far), ["hub paris 5ms", "hub rome 5ms", "paris rome 9ms"]);
}

#[test]
fn a_cloud_provisioner_becomes_the_cloud_without_its_cluster() {
    let provisioner = |name: &str, types: Value| -> CloudProvisioner {
        serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner", "metadata": {"name": name},
            "spec": {
                "cloudClusterName": "cloudy", "cloudProvider": "OpenStack", "region": "east", "maxNodes": 7,
                "credentialsSecretRef": {"namespace": "portolan", "name": "cloud"}, "machineTypes": types,
                "latencies": [{"to": "paris", "rtt": "20ms"}],
            },
        }))
        .unwrap()
    };
    let types = json!([{"name": "m1", "cpu": "4", "memory": "8Gi", "pricePerHour": "0.1"}]);
    let hub = HubState {
        clusters: vec![cluster("paris", &json!({})), cluster("cloudy", &json!({"spec": {"cloud": true}}))],
        provisioners: vec![
            provisioner("b", types.clone()),
            provisioner("a", types),
            provisioner("c", json!([])),
        ],
        ..HubState::default()
    };
    let members = BTreeMap::from([("paris".to_owned(), read(Vec::new(), Vec::new()))]);
    let found = convert(&FleetState { hub, members }, Timestamp::UNIX_EPOCH);
    let cloud = found.scenario.cloud.as_ref().unwrap();
    assert_eq!((cloud.name.as_str(), cloud.machine_types[0].name.as_str()), ("cloudy", "m1"));
    assert_eq!(cloud.provisioner["maxNodes"], 7);
    assert!(
        !cloud.provisioner.contains_key("credentialsSecretRef") && !cloud.provisioner.contains_key("region")
    );
    assert_eq!(found.scenario.clusters.len(), 1, "the cloud cluster is no member");
    assert_eq!(found.scenario.latencies.len(), 1);
    let about: Vec<&str> = found.assumptions.iter().map(|each| each.about.as_str()).collect();
    assert_eq!(about, ["CloudProvisioner b", "CloudProvisioner c", "CloudProvisioner a", "cloudy"]);
    let text =
        join(&found.scenario, "mine", "cloud: {machineTypes: [{name: m1, pricePerHour: '0.5'}]}").unwrap();
    let joined = load("mine", &text, None).unwrap().cloud.unwrap();
    assert_eq!(
        (joined.machine_types.len(), joined.machine_types[0].price_per_hour.to_string().as_str()),
        (1, "0.5")
    );
}

#[test]
fn several_cloud_provisioners_become_several_clouds() {
    let provisioner = |name: &str, cluster: &str| -> CloudProvisioner {
        serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner", "metadata": {"name": name},
            "spec": {
                "cloudClusterName": cluster, "cloudProvider": "OpenStack", "latencies": [{"to": "paris", "rtt": "20ms"}],
                "machineTypes": [{"name": "m1", "cpu": "4", "memory": "8Gi", "pricePerHour": "0.1"}],
            },
        }))
        .unwrap()
    };
    let hub = HubState {
        clusters: vec![cluster("paris", &json!({})), cluster("north", &json!({"spec": {"cloud": true}}))],
        provisioners: vec![provisioner("b", "south"), provisioner("a", "north")],
        ..HubState::default()
    };
    let members = BTreeMap::from([("paris".to_owned(), read(Vec::new(), Vec::new()))]);
    let found = convert(&FleetState { hub, members }, Timestamp::UNIX_EPOCH);
    let names: Vec<&str> = found.scenario.all_clouds().map(|cloud| cloud.name.as_str()).collect();
    assert_eq!(names, ["north", "south"]);
    assert_eq!((found.scenario.clusters.len(), found.scenario.latencies.len()), (1, 2));
    let text = join(&found.scenario, "mine", "clouds: [{name: south, maxMachines: 3}]").unwrap();
    let joined = load("mine", &text, None).unwrap();
    assert_eq!(joined.clouds.iter().map(|cloud| cloud.max_machines).collect::<Vec<_>>(), [None, Some(3)]);
}

#[test]
fn a_file_adds_to_a_fleet_and_changes_what_it_names() {
    let given = json!({"spec": {"latencies": [{"to": "rome", "rtt": "8ms"}]}});
    let members = vec![
        ("paris", read(vec![node("n1", &json!({}))], Vec::new())),
        ("rome", read(Vec::new(), Vec::new())),
    ];
    let fleet = converted(
        vec![cluster("paris", &given), cluster("rome", &json!({}))],
        members,
        vec![web(&json!({}))],
    )
    .scenario;
    let file = "
name: what-if
title: Paris is lost
duration: 1h
clusters:
- {name: rome, labels: {tier: core}}
- {name: paris, nodes: {count: 2, cpu: 1, memory: 1Gi}}
- {name: oslo, nodes: {count: 1, cpu: 1, memory: 1Gi}}
latencies:
- {between: [rome, paris], rtt: 30ms}
faults:
- {at: 5m, event: {loseCluster: {cluster: paris}}}
";
    let whole = load("mine", &join(&fleet, "mine", file).unwrap(), None).unwrap();
    assert_eq!(
        (whole.name.as_str(), whole.duration.to_string().as_str(), whole.objects.len()),
        ("what-if", "1h", 1)
    );
    let names: Vec<&str> = whole.clusters.iter().map(|each| each.name.as_str()).collect();
    assert_eq!(names, ["paris", "rome", "oslo"]);
    assert_eq!((whole.nodes_of("paris").len(), whole.clusters[1].labels["tier"].as_str()), (2, "core"));
    assert_eq!((whole.latencies.len(), whole.latencies[0].rtt.to_string().as_str()), (1, "30ms"));
    assert_eq!(
        load("mine", &join(&fleet, "mine", "").unwrap(), None).unwrap(),
        fleet,
        "an empty file changes nothing"
    );
    let text = serde_saphyr::to_string(&fleet).unwrap();
    assert_eq!(
        load("mine", &text, None).unwrap(),
        fleet,
        "it is the same when it was written and read: {text}"
    );
    for wrong in ["- a list", "a: [", "text"] {
        assert!(join(&fleet, "mine", wrong).is_err(), "{wrong}");
    }
    let error = load(
        "mine",
        &join(&fleet, "mine", "faults: [{at: 1m, event: {cutOff: {cluster: nice}}}]").unwrap(),
        None,
    );
    assert!(error.unwrap_err().to_string().contains("there is no cluster \"nice\""));
}

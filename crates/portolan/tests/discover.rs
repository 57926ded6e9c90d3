//! `discover` as a user meets it: contexts of the kubeconfig and ClusterProfiles of a hub.

#![allow(clippy::unwrap_used)]

mod support;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use std::net::TcpListener;
use support::{World, namespace, text};

/// The kubeconfig of all clusters, with a context of a cluster that does not answer and one whose credential nobody knows.
fn more_contexts(world: &World) -> String {
    let mut config: Value = serde_json::from_slice(&std::fs::read(world.file()).unwrap()).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut push = |list: &str, entry: Value| config[list].as_array_mut().unwrap().push(entry);
    push("clusters", json!({"name": "gone", "cluster": {"server": format!("http://{closed}")}}));
    push("users", json!({"name": "stranger", "user": {"token": "nobody-knows-it"}}));
    push("contexts", json!({"name": "gone", "context": {"cluster": "gone", "user": "stranger"}}));
    let of_c3 = config["contexts"].as_array().unwrap().iter().find(|each| each["name"] == "c3").cloned();
    let mut again = of_c3.unwrap();
    again["name"] = json!("admin@c3");
    config["contexts"].as_array_mut().unwrap().push(again.clone());
    again["name"] = json!("guest");
    again["context"]["user"] = json!("stranger");
    // A cluster of another entry, so that it is not recognised by its address.
    let of_c4 = config["clusters"].as_array().unwrap().iter().find(|each| each["name"] == "c4").cloned();
    again["context"]["cluster"] = of_c4.unwrap()["name"].clone();
    let contexts = config["contexts"].as_array_mut().unwrap();
    contexts.push(again);
    contexts.retain(|each| each["name"] != "c4");
    world.write("contexts", &config)
}

/// A ClusterProfile that another manager has put into the hub.
fn tell_profile(world: &World, name: &str, id: &str) {
    let profile = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
        "metadata": {"name": name, "namespace": "fleet"},
        "spec": {"clusterManager": {"name": "other"}},
    });
    world.apply("c1", &profile);
    let status = json!({
        "version": {"kubernetes": "v1.30.0"},
        "properties": [{"name": "clusterset.k8s.io/cluster-id", "value": id}],
    });
    world.with("c1", async |client| {
        let gvk = GroupVersionKind::gvk("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile");
        let api: Api<DynamicObject> = Api::namespaced_with(client, "fleet", &ApiResource::from_gvk(&gvk));
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    });
}

#[test]
fn clusters_are_listed_with_the_command_that_comes_next() {
    let world = World::start("discover", 4);
    world.succeeds(&["peer", "--remote-context", "c2", "--name", "rome", "-n", "shop", "--timeout", "0s"]);
    world.apply("c1", &namespace("fleet"));
    tell_profile(&world, "lyon", "lyon-id");
    let before = ["c1", "c2", "c3", "c4"].map(|context| world.everything(context));
    let file = more_contexts(&world);
    let discover = |more: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.args(["discover", "--context", "c1", "--kubeconfig", &file]).args(more);
        command.output().unwrap()
    };
    let output = discover(&["-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |each: &Value, field: &str| each[field].as_str().unwrap_or("-").to_owned();
    let items = list["items"].as_array().unwrap();
    let states: Vec<(String, String, String)> =
        items.iter().map(|each| (of(each, "name"), of(each, "state"), of(each, "peeredAs"))).collect();
    let expected = [
        ("c3", "Available", "-"),
        ("guest", "NotAllowed", "-"),
        ("lyon", "NoContext", "-"),
        ("gone", "Unreachable", "-"),
        ("c2", "Peered", "rome"),
        ("c1", "ThisCluster", "-"),
    ];
    assert_eq!(
        states,
        expected.map(|(name, state, peer)| (name.to_owned(), state.to_owned(), peer.to_owned()))
    );
    assert_eq!(items[0]["foundIn"], json!(["context c3", "context admin@c3"]), "one cluster is one line");
    assert_eq!(items[2]["foundIn"], json!(["ClusterProfile fleet/lyon"]));
    assert!(of(&items[1], "message").contains("401"), "{}", items[1]);
    assert_eq!(of(&items[2], "version"), "v1.30.0");
    assert_eq!(
        of(&items[4], "next"),
        format!("portolan status clusters/rome --context c1 --kubeconfig {file}")
    );

    let table = text(&discover(&[]).stdout);
    let first = table.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(first, ["CLUSTER", "STATE", "PEERED-AS", "VERSION", "FOUND-IN", "NEXT"]);
    assert_eq!(table.lines().count(), 7, "{table}");
    assert!(text(&discover(&["-o", "wide", "--no-headers"]).stdout).lines().count() == 6);
    let names = text(&discover(&["-o", "name"]).stdout);
    assert!(
        names.starts_with("context/c3\ncontext/guest\nclusterprofile.multicluster.x-k8s.io/lyon\n"),
        "{names}"
    );
    let yaml = text(&discover(&["-o", "yaml"]).stdout);
    assert!(yaml.contains("state: Available"), "{yaml}");
    assert_eq!(["c1", "c2", "c3", "c4"].map(|context| world.everything(context)), before, "it only reads");

    // The command that it names is one that works.
    let next = of(&items[0], "next").replace("NAMESPACE", "shop");
    let words: Vec<&str> = next.split(' ').skip(1).collect();
    let peered = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(&words)
        .args(["--timeout", "0s"])
        .output()
        .unwrap();
    assert!(peered.status.success(), "{next}: {}", text(&peered.stderr));
    let list: Value = serde_json::from_slice(&discover(&["-o", "json"]).stdout).unwrap();
    let c3 = list["items"].as_array().unwrap().iter().find(|each| each["name"] == "c3").cloned().unwrap();
    assert_eq!((of(&c3, "state"), of(&c3, "peeredAs")), ("Peered".to_owned(), "c3".to_owned()));
}

#[test]
fn a_hub_without_definitions_has_no_peers_and_one_that_is_silent_is_a_failure() {
    let world = World::start("discover-bare", 2);
    let names = world.succeeds(&["discover", "-o", "name"]);
    assert_eq!(names, "context/c2\ncontext/c1\n");
    let other = world.write_text("empty", "apiVersion: v1\nkind: Config\n");
    let none = world.portolan(&["discover", "--remote-kubeconfig", &other]);
    assert!(
        none.status.success() && text(&none.stderr).contains("No clusters found"),
        "{}",
        text(&none.stderr)
    );
    let missing = world.portolan(&["discover", "--remote-kubeconfig", "/no/such/file"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stderr));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = world.write(
        "silent",
        &json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": format!("http://{closed}")}}],
            "users": [{"name": "x", "user": {"token": "t"}}],
        }),
    );
    let failed = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["discover", "--kubeconfig", &silent])
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    // Whoever may not list ForeignClusters is told what is missing, and sees the rest.
    world.succeeds(&["peer", "--remote-context", "c2", "--timeout", "0s"]);
    world.apply("c1", &namespace("shop"));
    world.apply(
        "c1",
        &json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "look"},
            "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}],
        }),
    );
    world.apply("c1", &json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "look"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "look"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "shop", "name": "alice"}],
    }));
    let token = world.account("shop", "alice");
    let output = world.as_token(&token, &["discover", "-o", "name"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("not shown"), "{}", text(&output.stderr));
}

//! Server-side apply.

use super::{apps, map, maps, stateful_set};
use crate::conformance::step::{Scenario, apply, delete, get, merge_patch, post, put};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![ownership(), lists(), on_status(), refused()]
}

fn ownership() -> Scenario {
    let as_a = maps("/one?fieldManager=a");
    let as_b = maps("/one?fieldManager=b");
    let one = |data: Value| map("one", data);
    Scenario::new(
        "apply-ownership",
        vec![
            apply("creates", as_a.clone(), &one(json!({"x": "1", "y": "1"}))),
            apply("again", as_a.clone(), &one(json!({"x": "1", "y": "1"}))),
            apply("shares a field", as_b.clone(), &one(json!({"x": "1"}))),
            apply("conflict", as_b.clone(), &one(json!({"x": "2"}))),
            apply("conflict on two fields", as_b.clone(), &one(json!({"x": "2", "y": "2"}))),
            apply("force", format!("{as_b}&force=true"), &one(json!({"x": "2"}))),
            apply("gives a field up", as_a.clone(), &one(json!({}))),
            apply("adds labels", as_a.clone(), &super::labelled(one(json!({})), json!({"l": "1"}))),
            apply("drops labels", as_a.clone(), &one(json!({}))),
            put("update takes over", maps("/one?fieldManager=c"), &one(json!({"x": "3", "z": "3"}))),
            apply("conflict with an update", as_b.clone(), &one(json!({"x": "4"}))),
            merge_patch("a patch takes over", maps("/one?fieldManager=d"), &json!({"data": {"w": "1"}})),
            apply("the same value as another", as_b.clone(), &one(json!({"w": "1", "x": "3"}))),
            apply("dry run", format!("{as_b}&dryRun=All&force=true"), &one(json!({"x": "9"}))),
            get("as it is", maps("/one")),
            apply("an old version", as_b.clone(), &{
                let mut object = one(json!({"x": "3"}));
                object["metadata"]["resourceVersion"] = json!("1");
                object
            }),
            delete("delete", maps("/one")),
            apply("makes one with a version that none has", as_b.clone(), &{
                let mut object = one(json!({"x": "1"}));
                object["metadata"]["resourceVersion"] = json!("1");
                object
            }),
            apply("makes none where there is one", as_b.clone(), &{
                let mut object = one(json!({"x": "1"}));
                object["metadata"]["resourceVersion"] = json!("1");
                object
            }),
            delete("delete again", maps("/one")),
            apply("creates anew", as_b, &one(json!({"x": "1"}))),
            apply("conflict in another object of its own", as_a, &one(json!({"x": "8"}))),
        ],
    )
}

fn lists() -> Scenario {
    let set = |containers: Value| {
        let mut set = stateful_set("set", 1);
        set["spec"]["template"]["spec"]["containers"] = containers;
        set
    };
    let with = |ports: Value| json!([{"name": "main", "image": "main:1", "ports": ports}]);
    let path = |manager: &str| apps(&format!("statefulsets/set?fieldManager={manager}"));
    let service = |ports: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": ports}})
    };
    let services = |manager: &str| format!("/api/v1/namespaces/{{ns}}/services/web?fieldManager={manager}");
    let finalizers = |list: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "finals", "finalizers": list}})
    };
    let finals = |manager: &str| maps(&format!("/finals?fieldManager={manager}"));
    Scenario::new(
        "apply-lists",
        vec![
            apply("creates", path("a"), &set(with(json!([{"containerPort": 80}])))),
            apply(
                "adds a port",
                path("a"),
                &set(with(json!([{"containerPort": 80}, {"containerPort": 90, "protocol": "UDP"}]))),
            ),
            apply(
                "another adds a container",
                path("b"),
                &json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
                "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}),
            ),
            apply("removes a port", path("a"), &set(with(json!([{"containerPort": 90, "protocol": "UDP"}])))),
            apply(
                "another gives its container up",
                path("b"),
                &json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"}}),
            ),
            apply(
                "conflict in an element",
                path("c"),
                &json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
                "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "main:2"}]}}}}),
            ),
            apply(
                "conflict in an atomic map",
                path("c"),
                &json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
                "spec": {"selector": {"matchLabels": {"other": "x"}}}}),
            ),
            apply(
                "atomic list",
                path("a"),
                &set(json!([{"name": "main", "image": "main:1", "command": ["a", "b"]}])),
            ),
            apply(
                "atomic list conflict",
                path("c"),
                &json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
                "spec": {"template": {"spec": {"containers": [{"name": "main", "command": ["a"]}]}}}}),
            ),
            apply("service", services("a"), &service(json!([{"name": "http", "port": 80}]))),
            apply("another port", services("b"), &service(json!([{"name": "https", "port": 443}]))),
            apply(
                "a port without its default key",
                services("a"),
                &service(json!([{"name": "http", "port": 80, "targetPort": 8080}])),
            ),
            apply("a set", finals("a"), &finalizers(json!(["portolan.test/a"]))),
            apply("another's element", finals("b"), &finalizers(json!(["portolan.test/b"]))),
            apply("gives its element up", finals("a"), &finalizers(json!([]))),
            apply(
                "an element twice",
                finals("b"),
                &finalizers(json!(["portolan.test/b", "portolan.test/b"])),
            ),
            apply(
                "a key twice",
                path("a"),
                &set(json!([{"name": "main", "image": "1"}, {"name": "main", "image": "2"}])),
            ),
            merge_patch("lets go", maps("/finals"), &json!({"metadata": {"finalizers": null}})),
        ],
    )
}

fn on_status() -> Scenario {
    let status = |replicas: i32| {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
        "status": {"replicas": replicas, "conditions": [{"type": "Fine", "status": "True"}]}})
    };
    let sets = |rest: &str| apps(&format!("statefulsets{rest}"));
    Scenario::new(
        "apply-status",
        vec![
            post("create", sets(""), &stateful_set("set", 1)),
            apply("status", sets("/set/status?fieldManager=a"), &status(1)),
            apply("status by another", sets("/set/status?fieldManager=b"), &status(2)),
            apply("status by force", sets("/set/status?fieldManager=b&force=true"), &status(2)),
            apply("status in the main resource", sets("/set?fieldManager=a"), &status(7)),
            apply("spec in the status", sets("/set/status?fieldManager=c"), &stateful_set("set", 5)),
            apply(
                "of a missing one",
                sets("/missing/status?fieldManager=a"),
                &json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "missing"}, "status": {"replicas": 1}}),
            ),
            get("as it is", sets("/set")),
        ],
    )
}

fn refused() -> Scenario {
    let path = maps("/one?fieldManager=a");
    Scenario::new(
        "apply-refused",
        vec![
            apply("no manager", maps("/one"), &map("one", json!({}))),
            apply("no kind", path.clone(), &json!({"metadata": {"name": "one"}})),
            apply(
                "another kind",
                path.clone(),
                &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}}),
            ),
            apply("another name", path.clone(), &map("two", json!({}))),
            apply("no name", path.clone(), &json!({"apiVersion": "v1", "kind": "ConfigMap"})),
            apply(
                "managed fields",
                path.clone(),
                &json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "one", "managedFields": [{"manager": "x"}]}}),
            ),
            apply(
                "unknown field",
                path.clone(),
                &json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "one"}, "colour": "red"}),
            ),
            apply("wrong type", path.clone(), &map("one", json!({"a": 1}))),
            apply("not YAML", path.clone(), &json!({})).sends("application/apply-patch+yaml", "a: [b"),
            apply("YAML", path, &json!({})).sends(
                "application/apply-patch+yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: b\n",
            ),
        ],
    )
}

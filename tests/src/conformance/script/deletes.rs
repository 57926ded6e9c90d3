//! Delete: options, finalizers, collections.

use super::{labelled, map, maps, pod, pods};
use crate::conformance::step::{Scenario, delete, delete_with, get, merge_patch, post};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![one(), finalizers(), collections()]
}

fn options(more: Value) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    if let (Some(fields), Value::Object(more)) = (options.as_object_mut(), more) {
        fields.extend(more);
    }
    options
}

fn one() -> Scenario {
    let create = |name, object: &str| post(name, maps(""), &map(object, json!({})));
    let with =
        |name, object: &str, more: Value| delete_with(name, maps(&format!("/{object}")), &options(more));
    Scenario::new(
        "delete",
        vec![
            create("create a", "a"),
            delete("plain", maps("/a")),
            delete("again", maps("/a")),
            create("create b", "b"),
            with(
                "another uid",
                "b",
                json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000001"}}),
            ),
            with("another version", "b", json!({"preconditions": {"resourceVersion": "1"}})),
            with(
                "its uid and version",
                "b",
                json!({"preconditions": {
                "uid": "{create b|/metadata/uid}", "resourceVersion": "{create b|/metadata/resourceVersion}"}}),
            ),
            create("create c", "c"),
            delete("dry run", maps("/c?dryRun=All")),
            get("dry run kept it", maps("/c")),
            with("dry run in the options", "c", json!({"dryRun": ["All"]})),
            with("bad dry run", "c", json!({"dryRun": ["Some"]})),
            with("unknown policy", "c", json!({"propagationPolicy": "Sideways"})),
            with("policy and orphans", "c", json!({"propagationPolicy": "Orphan", "orphanDependents": true})),
            with("not options", "c", json!({"kind": "Pod"})),
            delete("policy in the query", maps("/c?propagationPolicy=Background")),
            post("pod", pods(""), &pod("pod")),
            delete("pod that nobody runs", pods("/pod")),
            get("pod is gone", pods("/pod")),
            post("bound pod", pods(""), &{
                let mut pod = pod("bound");
                pod["spec"]["nodeName"] = json!("c1-1");
                pod
            }),
            delete("bound pod with its grace", pods("/bound?gracePeriodSeconds=60")),
            delete("bound pod with less grace", pods("/bound?gracePeriodSeconds=5")),
            get("bound pod is going", pods("/bound")),
            delete("bound pod at once", pods("/bound?gracePeriodSeconds=0")),
            get("bound pod is gone", pods("/bound")),
            delete("negative grace", pods("/bound?gracePeriodSeconds=-5")),
        ],
    )
}

fn finalizers() -> Scenario {
    let object = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "finalizers": ["portolan.test/a", "portolan.test/b"]}})
    };
    let going = maps("/going");
    let set = |list: Value| json!({"metadata": {"finalizers": list}});
    Scenario::new(
        "finalizers",
        vec![
            post("create", maps(""), &object("going")),
            delete("begins", going.clone()),
            delete("begins again", going.clone()),
            get("is going", going.clone()),
            merge_patch("another label", going.clone(), &json!({"metadata": {"labels": {"a": "b"}}})),
            merge_patch(
                "a new finalizer",
                going.clone(),
                &set(json!(["portolan.test/a", "portolan.test/b", "portolan.test/c"])),
            ),
            merge_patch("one less", going.clone(), &set(json!(["portolan.test/b"]))),
            merge_patch("none", going.clone(), &set(json!(null))),
            get("is gone", going),
            post("create again", maps(""), &object("going")),
            delete_with("foreground", maps("/going"), &options(json!({"propagationPolicy": "Foreground"}))),
            post("create orphaning", maps(""), &object("orphaning")),
            delete_with("orphan", maps("/orphaning"), &options(json!({"propagationPolicy": "Orphan"}))),
        ],
    )
}

fn collections() -> Scenario {
    let object = |name: &str, tier: &str| labelled(map(name, json!({})), json!({"tier": tier}));
    Scenario::new(
        "delete-collection",
        vec![
            post("create a", maps(""), &object("a", "front")),
            post("create b", maps(""), &object("b", "front")),
            post("create c", maps(""), &object("c", "back")),
            delete("dry run", maps("?labelSelector=tier&dryRun=All")),
            delete("by label", maps("?labelSelector=tier%3Dfront")),
            get("what is left", maps("?labelSelector=tier")),
            delete("nothing there", maps("?labelSelector=tier%3Dfront")),
            delete_with(
                "with options",
                maps("?labelSelector=tier"),
                &options(json!({"propagationPolicy": "Background"})),
            ),
            get("nothing is left", maps("?labelSelector=tier")),
            delete("bad selector", maps("?labelSelector=%21%21")),
            delete("over all namespaces", "/api/v1/configmaps?labelSelector=tier%3Dnone"),
        ],
    )
}

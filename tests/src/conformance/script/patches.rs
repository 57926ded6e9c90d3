//! Patches that are not apply.

use super::{apps, map, maps, stateful_set};
use crate::conformance::step::{Scenario, call, get, json_patch, merge_patch, post, strategic_patch};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![json_patches(), merge_patches(), strategic_patches()]
}

fn json_patches() -> Scenario {
    let patch = |name, body: Value| json_patch(name, maps("/one"), &body);
    Scenario::new(
        "json-patch",
        vec![
            post("create", maps(""), &map("one", json!({"a": "1", "b": "2"}))),
            patch("add", json!([{"op": "add", "path": "/data/c", "value": "3"}])),
            patch("replace", json!([{"op": "replace", "path": "/data/a", "value": "4"}])),
            patch("remove", json!([{"op": "remove", "path": "/data/b"}])),
            patch(
                "test that holds",
                json!([
                {"op": "test", "path": "/data/a", "value": "4"}, {"op": "copy", "from": "/data/a", "path": "/data/d"}]),
            ),
            patch("test that fails", json!([{"op": "test", "path": "/data/a", "value": "5"}])),
            patch("move", json!([{"op": "move", "from": "/data/d", "path": "/data/e"}])),
            patch("remove what is not there", json!([{"op": "remove", "path": "/data/zzz"}])),
            patch("add into nothing", json!([{"op": "add", "path": "/nothing/here", "value": "3"}])),
            patch("replace what is not there", json!([{"op": "replace", "path": "/data/zzz", "value": "4"}])),
            patch("unknown operation", json!([{"op": "melt", "path": "/data/a"}])),
            patch("not a list", json!({"op": "add", "path": "/data/a", "value": "1"})),
            patch("changes the name", json!([{"op": "replace", "path": "/metadata/name", "value": "two"}])),
            patch(
                "escaped path",
                json!([{"op": "add", "path": "/metadata/annotations", "value": {"a.b/c": "x"}},
                {"op": "replace", "path": "/metadata/annotations/a.b~1c", "value": "y"}]),
            ),
            patch("nothing", json!([])),
            patch(
                "a test of the version",
                json!([
                {"op": "test", "path": "/metadata/uid", "value": "{create|/metadata/uid}"},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": "{create|/metadata/resourceVersion}"}]),
            ),
            json_patch("of a missing one", maps("/missing"), &json!([{"op": "remove", "path": "/data"}])),
            json_patch("dry run", maps("/one?dryRun=All"), &json!([{"op": "remove", "path": "/data"}])),
            get("as it is", maps("/one")),
        ],
    )
}

fn merge_patches() -> Scenario {
    let patch = |name, body: Value| merge_patch(name, maps("/one"), &body);
    Scenario::new(
        "merge-patch",
        vec![
            post("create", maps(""), &map("one", json!({"a": "1", "b": "2"}))),
            patch("add and change", json!({"data": {"a": "3", "c": "4"}})),
            patch("remove by null", json!({"data": {"b": null}})),
            patch("remove what is not there", json!({"data": {"zzz": null}})),
            patch("no change", json!({"data": {"a": "3"}})),
            patch("empty", json!({})),
            patch("finalizers", json!({"metadata": {"finalizers": ["portolan.test/a", "portolan.test/b"]}})),
            patch("other finalizers", json!({"metadata": {"finalizers": ["portolan.test/b"]}})),
            patch(
                "with an old version",
                json!({
                "metadata": {"resourceVersion": "{create|/metadata/resourceVersion}"}, "data": {"a": "9"}}),
            ),
            patch("with another uid", json!({"metadata": {"uid": "00000000-0000-4000-8000-000000000001"}})),
            patch("changes kind", json!({"kind": "Secret"})),
            patch("wrong type", json!({"data": {"a": {"b": "c"}}})),
            patch("unknown field", json!({"unknown": 1})),
            merge_patch(
                "unknown field, refused",
                maps("/one?fieldValidation=Strict"),
                &json!({"unknown": 1}),
            ),
            merge_patch("by another manager", maps("/one?fieldManager=other"), &json!({"data": {"a": "10"}})),
            merge_patch("with force", maps("/one?force=true"), &json!({"data": {"a": "11"}})),
            merge_patch("of a missing one", maps("/missing"), &json!({})),
            patch("not an object", json!([1, 2])),
            call("not JSON", "PATCH", maps("/one")).sends("application/merge-patch+json", "{nonsense"),
            call("no type said", "PATCH", maps("/one")),
            call("of an unknown type", "PATCH", maps("/one")).sends("application/json", "{}"),
            patch("clears finalizers", json!({"metadata": {"finalizers": null}})),
            get("as it is", maps("/one")),
        ],
    )
}

fn strategic_patches() -> Scenario {
    let sets = |rest: &str| apps(&format!("statefulsets{rest}"));
    let containers = |list: Value| json!({"spec": {"template": {"spec": {"containers": list}}}});
    let patch = |name, body: Value| strategic_patch(name, sets("/set"), &body);
    Scenario::new(
        "strategic-patch",
        vec![
            post("create", sets(""), &stateful_set("set", 1)),
            patch("merges a container", containers(json!([{"name": "main", "image": "main:2"}]))),
            patch("adds a container", containers(json!([{"name": "side", "image": "side:1"}]))),
            patch("deletes a container", containers(json!([{"name": "main", "$patch": "delete"}]))),
            patch(
                "replaces the containers",
                containers(json!([{"$patch": "replace"}, {"name": "new", "image": "new:1"}])),
            ),
            patch(
                "environment",
                containers(
                    json!([{"name": "new", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]),
                ),
            ),
            patch(
                "environment merged",
                containers(json!([{"name": "new", "env": [{"name": "B", "value": "3"}]}])),
            ),
            patch(
                "order of elements",
                containers(json!([{"name": "new", "$setElementOrder/env": [{"name": "B"}, {"name": "A"}],
                "env": [{"name": "A", "value": "5"}]}])),
            ),
            patch("atomic list replaced", containers(json!([{"name": "new", "command": ["a", "b"]}]))),
            patch("atomic list replaced again", containers(json!([{"name": "new", "command": ["c"]}]))),
            patch("finalizers are merged", json!({"metadata": {"finalizers": ["portolan.test/a"]}})),
            patch("finalizers are merged again", json!({"metadata": {"finalizers": ["portolan.test/b"]}})),
            patch(
                "one finalizer is deleted",
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["portolan.test/a"]}}),
            ),
            patch("map replaced", json!({"metadata": {"labels": {"$patch": "replace", "x": "y"}}})),
            patch("null", json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": null}}}})),
            patch("without a merge key", containers(json!([{"image": "nobody:1"}]))),
            patch("unknown directive", json!({"metadata": {"$patch": "melt"}})),
            strategic_patch("dry run", sets("/set?dryRun=All"), &json!({"spec": {"replicas": 4}})),
            patch("no change", json!({"spec": {"replicas": 1}})),
        ],
    )
}

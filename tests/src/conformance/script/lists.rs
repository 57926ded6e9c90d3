//! Lists: selectors, pages, versions.

use super::{labelled, map, maps, pod, pods, secrets};
use crate::conformance::step::{Scenario, delete, get, post};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![selectors(), pages(), versions()]
}

fn secret(name: &str, tier: &str) -> Value {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": name},
    });
    labelled(secret, json!({"tier": tier, name: "yes"}))
}

fn selectors() -> Scenario {
    let list = |name, query: &str| get(name, secrets(&format!("?{query}")));
    Scenario::new(
        "selectors",
        vec![
            get("nothing yet", secrets("")),
            post("create a", secrets(""), &secret("a", "front")),
            post("create b", secrets(""), &secret("b", "back")),
            post("create c", secrets(""), &secret("c", "back")),
            get("all", secrets("")),
            list("equal", "labelSelector=tier%3Dback"),
            list("double equal", "labelSelector=tier%3D%3Dfront"),
            list("not equal", "labelSelector=tier%21%3Dback"),
            list("in", "labelSelector=tier%20in%20%28front%2Cmiddle%29"),
            list("not in", "labelSelector=tier%20notin%20%28front%2Cmiddle%29"),
            list("exists", "labelSelector=b"),
            list("does not exist", "labelSelector=%21b"),
            list("two conditions", "labelSelector=tier%3Dback%2C%21b"),
            list("greater than text", "labelSelector=tier%3E3"),
            list("bad label selector", "labelSelector=tier%20near%20front"),
            list("bad label value", "labelSelector=tier%3D-x-"),
            list("by name", "fieldSelector=metadata.name%3Db"),
            list("by not name", "fieldSelector=metadata.name%21%3Db"),
            list("by type", "fieldSelector=type%3DOpaque"),
            list("by name and label", "fieldSelector=metadata.name%3Db&labelSelector=tier%3Dfront"),
            list("unknown field", "fieldSelector=data.key%3Db"),
            list("bad field selector", "fieldSelector=metadata.name"),
            get("over all namespaces", "/api/v1/secrets?fieldSelector=metadata.namespace%3D{ns}"),
            post("pod", pods(""), &pod("web")),
            get("pods by node", pods("?fieldSelector=spec.nodeName%3D")),
            get("pods by phase", pods("?fieldSelector=status.phase%3DPending")),
            get("pods by other phase", pods("?fieldSelector=status.phase%21%3DPending")),
        ],
    )
}

fn pages() -> Scenario {
    let first = format!("{}{}", secrets("?limit=2"), "");
    Scenario::new(
        "pages",
        vec![
            post("create a", secrets(""), &secret("a", "front")),
            post("create b", secrets(""), &secret("b", "front")),
            post("create c", secrets(""), &secret("c", "front")),
            post("create d", secrets(""), &secret("d", "front")),
            post("create e", secrets(""), &secret("e", "front")),
            get("page 1", first),
            get("page 2", secrets("?limit=2&continue={page 1|/metadata/continue}")),
            delete("an object goes", secrets("/e")),
            get("page 3", secrets("?limit=2&continue={page 2|/metadata/continue}")),
            get("limit above", secrets("?limit=10")),
            get("limit exact", secrets("?limit=4")),
            get("with selector", secrets("?limit=1&labelSelector=b")),
            get("limit zero", secrets("?limit=0")),
            get("bad limit", secrets("?limit=many")),
            get("bad continue", secrets("?limit=2&continue=nonsense")),
        ],
    )
}

fn versions() -> Scenario {
    let list = |name, query: &str| get(name, secrets(&format!("?{query}")));
    Scenario::new(
        "versions",
        vec![
            post("create a", secrets(""), &secret("a", "front")),
            get("first list", secrets("")),
            post("create b", secrets(""), &secret("b", "front")),
            list("not older", "resourceVersion={create b|/metadata/resourceVersion}"),
            // After it: any version may be one before b otherwise, from a cache that has not heard of b yet.
            list("any version", "resourceVersion=0"),
            list(
                "not older, said",
                "resourceVersion={create b|/metadata/resourceVersion}&resourceVersionMatch=NotOlderThan",
            ),
            list(
                "exact, of the past",
                "resourceVersion={first list|/metadata/resourceVersion}&resourceVersionMatch=Exact",
            ),
            list("exact, of zero", "resourceVersion=0&resourceVersionMatch=Exact"),
            list("match without version", "resourceVersionMatch=Exact"),
            list("unknown match", "resourceVersion=1&resourceVersionMatch=Nearly"),
            list("not a version", "resourceVersion=abc"),
            get("one of any version", secrets("/a?resourceVersion=0")),
            get("one not older", secrets("/b?resourceVersion={create b|/metadata/resourceVersion}")),
            get("one of a bad version", secrets("/a?resourceVersion=abc")),
            post("map", maps(""), &map("only", json!({"a": "b"}))),
            get("one", maps("/only")),
            get("none", maps("/missing")),
            get("none in no namespace", "/api/v1/namespaces/no-such-namespace/configmaps/missing"),
            get("list of no namespace", "/api/v1/namespaces/no-such-namespace/secrets"),
        ],
    )
}

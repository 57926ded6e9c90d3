//! Watches.

use super::{labelled, map, maps, secrets};
use crate::conformance::step::{Scenario, delete, get, merge_patch, post, put, watch};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![history(), initial(), gone(), refused(), forms()]
}

fn history() -> Scenario {
    let one = |value: &str, tier: &str| labelled(map("one", json!({"key": value})), json!({"tier": tier}));
    let from = "watch=1&timeoutSeconds=1&resourceVersion={start|/metadata/resourceVersion}";
    Scenario::new(
        "watch-history",
        vec![
            get("start", maps("?labelSelector=tier")),
            post("create", maps(""), &one("1", "a")),
            put("update", maps("/one"), &one("2", "a")),
            put("update without change", maps("/one"), &one("2", "a")),
            merge_patch(
                "leaves the selection",
                maps("/one"),
                &json!({"metadata": {"labels": {"tier": "b"}}}),
            ),
            merge_patch("comes back", maps("/one"), &json!({"metadata": {"labels": {"tier": "a"}}})),
            delete("delete", maps("/one")),
            watch("everything", maps(&format!("?{from}&labelSelector=tier"))),
            watch("by selection", maps(&format!("?{from}&labelSelector=tier%3Da"))),
            watch("by name", maps(&format!("?{from}&fieldSelector=metadata.name%3Done"))),
            watch("by another name", maps(&format!("?{from}&fieldSelector=metadata.name%3Dtwo"))),
            watch(
                "from the middle",
                maps(
                    "?watch=1&timeoutSeconds=1&labelSelector=tier&resourceVersion={update|/metadata/resourceVersion}",
                ),
            ),
            watch(
                "old form of the path",
                format!("/api/v1/watch/namespaces/{{ns}}/configmaps?labelSelector=tier&{from}"),
            ),
        ],
    )
}

/// Versions that are no longer remembered: a client has to list again.
fn gone() -> Scenario {
    Scenario::new(
        "watch-gone",
        vec![
            watch("from long ago", maps("?watch=1&timeoutSeconds=1&resourceVersion=1")),
            watch(
                "from long ago, by name",
                maps("?watch=1&timeoutSeconds=1&resourceVersion=1&fieldSelector=metadata.name%3Dx"),
            ),
            watch("from long ago, as a table", maps("?watch=1&timeoutSeconds=1&resourceVersion=1"))
                .accepts("application/json;as=Table;v=v1;g=meta.k8s.io"),
            get("list again", maps("?labelSelector=tier")),
            watch(
                "and go on",
                maps(
                    "?watch=1&timeoutSeconds=1&labelSelector=tier&resourceVersion={list again|/metadata/resourceVersion}",
                ),
            ),
        ],
    )
}

fn initial() -> Scenario {
    let object =
        |name: &str| -> Value { json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}) };
    Scenario::new(
        "watch-initial",
        vec![
            post("create a", secrets(""), &object("a")),
            post("create b", secrets(""), &object("b")),
            watch("no version", secrets("?watch=1&timeoutSeconds=1")),
            watch("version zero", secrets("?watch=true&timeoutSeconds=1&resourceVersion=0")),
            watch(
                "streaming list",
                secrets(
                    "?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true\
                     &resourceVersionMatch=NotOlderThan",
                ),
            ),
            watch(
                "streaming list of a selection",
                secrets(
                    "?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true\
                     &resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Db",
                ),
            ),
            watch(
                "streaming list without bookmarks",
                secrets("?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
            ),
            watch(
                "no initial events",
                secrets(
                    "?watch=1&timeoutSeconds=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan\
                     &resourceVersion={create b|/metadata/resourceVersion}",
                ),
            ),
        ],
    )
}

fn refused() -> Scenario {
    Scenario::new(
        "watch-refused",
        vec![
            watch("long ago", maps("?watch=1&timeoutSeconds=1&resourceVersion=1")),
            watch("too new", maps("?watch=1&timeoutSeconds=1&resourceVersion=99999999")),
            watch("not a version", maps("?watch=1&timeoutSeconds=1&resourceVersion=abc")),
            watch("initial events without a match", maps("?watch=1&timeoutSeconds=1&sendInitialEvents=true")),
            watch("a match alone", maps("?watch=1&timeoutSeconds=1&resourceVersionMatch=NotOlderThan")),
            get("initial events of a list", maps("?sendInitialEvents=true")),
            watch("with a bad selector", maps("?watch=1&timeoutSeconds=1&labelSelector=%3D%3D")),
            watch("of an unknown resource", "/api/v1/namespaces/{ns}/things?watch=1&timeoutSeconds=1"),
            watch("not a flag", maps("?watch=maybe&timeoutSeconds=1&labelSelector=none")),
        ],
    )
}

fn forms() -> Scenario {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    let all = secrets("?watch=1&timeoutSeconds=1");
    Scenario::new(
        "watch-forms",
        vec![
            post("create", secrets(""), &object),
            post(
                "create another",
                secrets(""),
                &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}),
            ),
            watch("as a table", all.clone()).accepts(table),
            watch("as metadata", all).accepts(partial),
        ],
    )
}

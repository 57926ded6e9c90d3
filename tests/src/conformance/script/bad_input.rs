//! What no server should take.

use super::{map, maps, secrets};
use crate::conformance::step::{Scenario, Step, call, get, post, put};
use serde_json::json;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![paths(), bodies()]
}

fn paths() -> Scenario {
    Scenario::new(
        "paths",
        vec![
            get("unknown root", "/nonsense"),
            get("unknown group", "/apis/nonsense.portolan.test/v1"),
            get("unknown version", "/apis/apps/v9"),
            get("unknown resource", "/apis/apps/v1/namespaces/{ns}/nonsenses"),
            get("unknown core version", "/api/v9"),
            get("unknown core resource", "/api/v1/nonsenses"),
            get("unknown subresource", maps("/one/nonsense")),
            get("cluster resource in a namespace", "/api/v1/namespaces/{ns}/nodes"),
            get("namespaced object without one", "/api/v1/configmaps/one"),
            get("too long a path", maps("/one/status/more/and/more")),
            get("double slash", "/api/v1//namespaces"),
            get("trailing slash", secrets("/")),
            call("unknown method", "BREW", maps("")),
            call("post to an object of a subresource", "POST", maps("/one/status")),
            call("put to the root", "PUT", "/api/v1"),
            call("delete of the root", "DELETE", "/apis"),
            call("head", "HEAD", maps("?labelSelector=none")),
            call("options", "OPTIONS", maps("")),
            get("health", "/healthz"),
            get("readiness", "/readyz"),
            get("liveness", "/livez"),
        ],
    )
}

fn bodies() -> Scenario {
    let send = |name, content_type, body: &str| -> Step {
        post(name, maps(""), &json!({})).sends(content_type, body.to_owned())
    };
    Scenario::new(
        "bodies",
        vec![
            send("empty", "application/json", ""),
            send("not JSON", "application/json", "{nonsense"),
            send("a list", "application/json", "[]"),
            send("a text", "application/json", "\"text\""),
            send("null", "application/json", "null"),
            send("a number", "application/json", "12"),
            send("no kind", "application/json", r#"{"apiVersion":"v1","metadata":{"name":"nokind"}}"#),
            send("no version", "application/json", r#"{"kind":"ConfigMap","metadata":{"name":"noversion"}}"#),
            send("neither", "application/json", r#"{"metadata":{"name":"neither"}}"#),
            send(
                "another kind",
                "application/json",
                r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}"#,
            ),
            send(
                "another version",
                "application/json",
                r#"{"apiVersion":"v9","kind":"ConfigMap","metadata":{"name":"a"}}"#,
            ),
            send(
                "unknown kind",
                "application/json",
                r#"{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}}"#,
            ),
            send(
                "metadata is a text",
                "application/json",
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":"a"}"#,
            ),
            send(
                "name is a number",
                "application/json",
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":1}}"#,
            ),
            send(
                "labels are a list",
                "application/json",
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":["x"]}}"#,
            ),
            send("YAML", "application/yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\n"),
            send("bad YAML", "application/yaml", "a: [b"),
            send("unknown type", "text/plain", "hello"),
            send(
                "type with charset",
                "application/json; charset=utf-8",
                &map("charset", json!({})).to_string(),
            ),
            send("unreadable type", "nonsense", "{}"),
            put("update without a body", maps("/a"), &json!({})).sends("application/json", ""),
            get("unacceptable answer", maps("?labelSelector=none")).accepts("image/png"),
            get("answer as YAML", maps("?labelSelector=none")).accepts("application/yaml"),
            get("any answer", maps("?labelSelector=none")).accepts("*/*"),
        ],
    )
}

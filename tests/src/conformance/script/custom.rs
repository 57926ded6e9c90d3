//! Custom resources: their definitions, and the resources.

use crate::conformance::step::{
    Scenario, Step, apply, delete, get, json_patch, merge_patch, post, put, strategic_patch, watch,
};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![definitions(), widgets(), portolan()]
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// A definition with something of everything: defaults, rules, lists by key, scale, columns.
fn definition(group: &str) -> Value {
    let name = format!("widgets.{group}");
    let schema = json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": properties(),
                "x-kubernetes-validations": [
                    {"rule": "!has(self.limits) || !has(self.limits.high) || self.limits.low <= self.limits.high",
                     "message": "low is above high"},
                    {"rule": "self.size >= oldSelf.size", "message": "size may not shrink"},
                ],
            },
            "status": {"type": "object", "properties": {
                "replicas": {"type": "integer"}, "ready": {"type": "boolean"}, "selector": {"type": "string"}}},
        },
    });
    let columns = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1, "description": "what it looks like"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    let scale = json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": scale},
                "additionalPrinterColumns": columns,
            }],
        },
    })
}

fn properties() -> Value {
    let part = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "count": {"type": "integer", "default": 1}}});
    json!({
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "title": {"type": "string", "maxLength": 8, "pattern": "^[a-z]*$"},
        "when": {"type": "string", "format": "date-time"},
        "port": {"x-kubernetes-int-or-string": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "maybe": {"type": "string", "nullable": true},
        "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": part},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "limits": {"type": "object", "properties": {"low": {"type": "integer", "default": 0}, "high": {"type": "integer"}}},
    })
}

fn established(code: u16, body: &Value) -> bool {
    let conditions = body["status"]["conditions"].as_array();
    code == 200
        && conditions
            .into_iter()
            .flatten()
            .any(|each| each["type"] == "Established" && each["status"] == "True")
}

fn wait_for(group: &str, plural: &str) -> Vec<Step> {
    let version = if group == "portolan.dev" { "v1alpha1" } else { "v1" };
    vec![
        get("established", format!("{DEFINITIONS}/{plural}.{group}")).until(established),
        get("served", format!("/apis/{group}/{version}/{plural}")).until(|code, _| code == 200),
        get("discovered", format!("/apis/{group}/{version}")).until(|code, _| code == 200),
    ]
}

/// Without what the controllers of definitions write in their own time.
fn without_status(body: &Value) -> Value {
    let mut body = body.clone();
    body.as_object_mut().map(|fields| fields.remove("status"));
    body["metadata"].as_object_mut().map(|fields| fields.remove("managedFields"));
    body["metadata"].as_object_mut().map(|fields| fields.remove("resourceVersion"));
    body
}

fn definitions() -> Scenario {
    let group = "definitions.portolan.test";
    let at = format!("{DEFINITIONS}/widgets.{group}");
    let changed = |pointer: &str, value: Value| {
        let mut object = definition(group);
        if let Some(place) = object.pointer_mut(pointer) {
            *place = value;
        }
        object
    };
    let version = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let mut steps = vec![
        post("wrong name", DEFINITIONS, &changed("/metadata/name", json!("things.portolan.test"))),
        post("no storage version", DEFINITIONS, &changed("/spec/versions/0/storage", json!(false))),
        post("unknown scope", DEFINITIONS, &changed("/spec/scope", json!("Everywhere"))),
        post("not structural", DEFINITIONS, &changed(&format!("{version}/size"), json!({"minimum": 1}))),
        post("bad default", DEFINITIONS, &changed(&format!("{version}/colour/default"), json!("green"))),
        post(
            "bad rule",
            DEFINITIONS,
            &changed(
                "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule",
                json!("self.nothing > 1"),
            ),
        ),
        post("no schema", DEFINITIONS, &changed("/spec/versions/0/schema", json!(null))),
        post("dry run", format!("{DEFINITIONS}?dryRun=All"), &definition(group)).only(without_status),
        post("create", DEFINITIONS, &definition(group)).only(without_status),
    ];
    steps.extend(wait_for(group, "widgets"));
    steps.extend([
        get("resource list", format!("/apis/{group}/v1")),
        get("conditions", at.clone()).only(|body| {
            let conditions = body["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let mut shown: Vec<Value> = conditions
                .iter()
                .map(|each| json!([each["type"], each["status"], each["reason"], each["message"]]))
                .collect();
            shown.sort_by_key(Value::to_string);
            json!([shown, body["status"]["acceptedNames"], body["status"]["storedVersions"]])
        }),
        merge_patch("change of scope", at.clone(), &json!({"spec": {"scope": "Cluster"}})),
        merge_patch("description", at.clone(), &json!({"metadata": {"labels": {"a": "b"}}}))
            .only(without_status),
        get("as a table", at).accepts(TABLE).only(|body| body["rows"][0]["cells"].clone()),
    ]);
    Scenario::new("definitions", steps)
}

fn widgets() -> Scenario {
    let group = "widgets.portolan.test";
    let at = |rest: &str| format!("/apis/{group}/v1/namespaces/{{ns}}/widgets{rest}");
    let widget = |name: &str, spec: Value| {
        json!({"apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": {"name": name}, "spec": spec})
    };
    let dry = |name, spec: Value| post(name, at("?dryRun=All"), &widget("dry", spec));
    let mut steps = vec![post("define", DEFINITIONS, &definition(group)).only(|_| Value::Null)];
    steps.extend(wait_for(group, "widgets"));
    steps.extend([
        get("empty list", at("")),
        post("create", at(""), &widget("one", json!({"size": 2}))),
        post("defaults in a list", at(""), &widget("two", json!({"size": 1, "parts": [{"name": "a"}], "limits": {}}))),
        post("pruned", at("?fieldValidation=Ignore"), &widget("three", json!({"size": 1, "other": 1, "free": {"any": [1]}, "parts": [{"name": "a", "x": 1}]}))),
        dry("unknown field, warned", json!({"size": 1, "other": 1})),
        post("unknown field, refused", at("?dryRun=All&fieldValidation=Strict"), &widget("dry", json!({"size": 1, "other": 1, "parts": [{"name": "a", "x": 1}]}))),
        dry("no size", json!({})),
        dry("size is a text", json!({"size": "big"})),
        dry("size is a fraction", json!({"size": 1.5})),
        dry("size too small", json!({"size": 0})),
        dry("size too big", json!({"size": 11})),
        dry("colour not known", json!({"size": 1, "colour": "green"})),
        dry("title too long", json!({"size": 1, "title": "abcdefghi"})),
        dry("title of other letters", json!({"size": 1, "title": "ABC"})),
        dry("two things wrong", json!({"size": 0, "title": "ABC"})),
        dry("not a time", json!({"size": 1, "when": "yesterday"})),
        dry("a number or a text", json!({"size": 1, "port": "http"})),
        dry("neither a number nor a text", json!({"size": 1, "port": true})),
        dry("null where it may be", json!({"size": 1, "maybe": null})),
        dry("null where it may not be", json!({"size": null})),
        dry("null with a default", json!({"size": 1, "colour": null})),
        dry("too many parts", json!({"size": 1, "parts": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]})),
        dry("a part twice", json!({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]})),
        dry("a part without its key", json!({"size": 1, "parts": [{"count": 1}]})),
        dry("a tag twice", json!({"size": 1, "tags": ["a", "a"]})),
        dry("a rule is broken", json!({"size": 1, "limits": {"low": 5, "high": 3}})),
        dry("spec is a list", json!([1])),
        post("no spec", at("?dryRun=All"), &json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "dry"}})),
        post("another version", at("?dryRun=All"), &json!({"apiVersion": format!("{group}/v2"), "kind": "Widget", "metadata": {"name": "dry"}, "spec": {"size": 1}})),
        post("bad name", at("?dryRun=All"), &widget("Not_A_Name", json!({"size": 1}))),
        post("generated name", at("?dryRun=All"), &json!({"apiVersion": format!("{group}/v1"), "kind": "Widget",
            "metadata": {"generateName": "w-"}, "spec": {"size": 1}})),
        put("update without a version", at("/one"), &widget("one", json!({"size": 3}))),
        put("update", at("/one"), &{
            let mut object = widget("one", json!({"size": 3}));
            object["metadata"]["resourceVersion"] = json!("{create|/metadata/resourceVersion}");
            object["status"] = json!({"ready": true});
            object
        }),
        merge_patch("shrinks", at("/one"), &json!({"spec": {"size": 1}})),
        merge_patch("grows", at("/one"), &json!({"spec": {"size": 4}})),
        merge_patch("labels", at("/one"), &json!({"metadata": {"labels": {"a": "b"}}})),
        merge_patch("status in the main resource", at("/one"), &json!({"status": {"ready": true}})),
        merge_patch("status", at("/one/status"), &json!({"status": {"ready": true, "replicas": 4, "selector": "a=b"}})),
        merge_patch("spec in the status", at("/one/status"), &json!({"spec": {"size": 9}})),
        merge_patch("bad status", at("/one/status"), &json!({"status": {"ready": "yes"}})),
        json_patch("JSON patch", at("/one"), &json!([{"op": "add", "path": "/spec/title", "value": "abc"}])),
        strategic_patch("strategic patch", at("/one"), &json!({"spec": {"size": 5}})),
        get("scale", at("/one/scale")),
        merge_patch("scaled", at("/one/scale"), &json!({"spec": {"replicas": 6}})),
        apply("apply", at("/four?fieldManager=a"), &widget("four", json!({"size": 1, "parts": [{"name": "a"}], "tags": ["x"]}))),
        apply("apply by another", at("/four?fieldManager=b"), &widget("four", json!({"size": 1, "parts": [{"name": "b", "count": 2}], "tags": ["y"]}))),
        apply("apply conflict", at("/four?fieldManager=b"), &widget("four", json!({"size": 2}))),
        apply("apply gives up", at("/four?fieldManager=a"), &widget("four", json!({"size": 1}))),
        apply("apply of an unknown field", at("/four?fieldManager=a"), &widget("four", json!({"size": 1, "other": 1}))),
        get("list", at("")),
        get("list by name", at("?fieldSelector=metadata.name%3Dtwo")),
        get("list by another field", at("?fieldSelector=spec.size%3D1")),
        get("page", at("?limit=1")).only(|body| body["metadata"].clone()),
        get("list as a table", at("")).accepts(TABLE),
        get("one as a table", at("/one")).accepts(TABLE),
        get("without objects", at("?includeObject=None")).accepts(TABLE),
        get("as metadata", at("/one")).accepts("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        watch("watch", at("?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Done&resourceVersion={create|/metadata/resourceVersion}")),
        delete("delete", at("/two")),
        delete("delete again", at("/two")),
        delete("delete all", at("")),
    ]);
    Scenario::new("widgets", steps)
}

/// Portolan's own resources: what its users get to read when they err.
fn portolan() -> Scenario {
    let at = "/apis/portolan.dev/v1alpha1/namespaces/{ns}/multiclusterdeployments";
    let crds: Vec<Value> =
        portolan_api::crds().iter().filter_map(|crd| serde_json::to_value(crd).ok()).collect();
    let chosen = crds.iter().find(|crd| crd["spec"]["names"]["plural"] == "multiclusterdeployments");
    let mut steps = vec![post("define", DEFINITIONS, chosen.unwrap_or(&Value::Null)).only(|_| Value::Null)];
    steps.extend(wait_for("portolan.dev", "multiclusterdeployments"));
    let object = |more: Value| {
        let mut object = crate::workload("web", 2, more);
        object["metadata"]["namespace"] = json!("{ns}");
        object
    };
    let dry = |name, more: Value| post(name, format!("{at}?dryRun=All"), &object(more));
    steps.extend([
        post("create", at, &object(json!({"locations": ["c1", "c2"]}))),
        dry("unknown policy", json!({"placementPolicy": "nonsense"})),
        dry("negative replicas", json!({"replicas": -1})),
        dry("no selector", json!({"selector": null})),
        dry("locations are a text", json!({"locations": "c1"})),
        dry("a location twice", json!({"locations": ["c1", "c1"]})),
        post(
            "unknown field",
            format!("{at}?dryRun=All&fieldValidation=Strict"),
            &object(json!({"colour": "red"})),
        ),
        get("as a table", at).accepts(TABLE),
        get("scale", format!("{at}/web/scale")),
        merge_patch("scaled", format!("{at}/web/scale"), &json!({"spec": {"replicas": 3}})),
        merge_patch("status", format!("{at}/web/status"), &json!({"status": {"readyReplicas": 1}})),
        delete("delete", format!("{at}/web")),
    ]);
    Scenario::new("portolan", steps)
}

//! Create and update.

use super::{apps, map, maps, pod, pods, stateful_set};
use crate::conformance::step::{Scenario, get, post, put};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![creates(), updates(), generations(), field_validation(), defaults(), deployments(), sets()]
}

fn creates() -> Scenario {
    let mut server_owned = map("owned", json!({}));
    server_owned["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000001");
    server_owned["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    server_owned["metadata"]["generation"] = json!(7);
    server_owned["metadata"]["selfLink"] = json!("/here");
    let mut versioned = map("versioned", json!({}));
    versioned["metadata"]["resourceVersion"] = json!("12");
    let mut elsewhere = map("elsewhere", json!({}));
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}});
    let long = "x".repeat(250);
    Scenario::new(
        "create",
        vec![
            post("plain", maps(""), &map("plain", json!({"key": "value"}))),
            post("again", maps(""), &map("plain", json!({"key": "value"}))),
            post("generated name", maps(""), &generated),
            get("by its generated name", maps("/{generated name|/metadata/name}")),
            post(
                "generated from a long prefix",
                maps(""),
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": long}}),
            ),
            post("no name", maps(""), &json!({"apiVersion": "v1", "kind": "ConfigMap"})),
            post("what the server owns", maps(""), &server_owned),
            post("with a version", maps(""), &versioned),
            post("another namespace in the body", maps(""), &elsewhere),
            post("in no namespace", "/api/v1/namespaces/no-such-namespace/configmaps", &map("a", json!({}))),
            post("without a namespace in the path", "/api/v1/configmaps", &map("a", json!({}))),
            post("onto a name", maps("/plain"), &map("plain", json!({}))),
            post("dry run", maps("?dryRun=All"), &map("dry", json!({"key": "value"}))),
            get("dry run kept nothing", maps("/dry")),
            post("dry run of an existing one", maps("?dryRun=All"), &map("plain", json!({}))),
            post("bad dry run", maps("?dryRun=Some"), &map("dry", json!({}))),
            post("manager said", maps("?fieldManager=me"), &map("managed", json!({"a": "b"}))),
            post(
                "manager too long",
                maps(&format!("?fieldManager={}", "m".repeat(129))),
                &map("m", json!({})),
            ),
            post("bad name", maps(""), &map("Not_A_Name", json!({}))),
            post("name too long", maps(""), &map(&"n".repeat(254), json!({}))),
            post("bad key", maps(""), &map("badkey", json!({"a b": "c"}))),
            post(
                "bad label",
                maps(""),
                &super::labelled(map("badlabel", json!({})), json!({"ok": "not ok", "-bad": "x"})),
            ),
            post(
                "bad annotation",
                maps(""),
                &json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "badannotation", "annotations": {"a/b/c": "x"}}}),
            ),
            post(
                "bad finalizer",
                maps(""),
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "f", "finalizers": ["plain"]}}),
            ),
            post(
                "bad owner",
                maps(""),
                &json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "o", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod"}]}}),
            ),
            post(
                "two controllers",
                maps(""),
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": true},
                    {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "2", "controller": true},
                ]}}),
            ),
            post(
                "null values",
                maps(""),
                &json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "nulls", "labels": null}, "data": null}),
            ),
            post(
                "immutable",
                maps(""),
                &json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "immutable"}, "data": {"a": "b"}, "immutable": true}),
            ),
            put(
                "change of an immutable one",
                maps("/immutable"),
                &json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "immutable"}, "data": {"a": "c"}, "immutable": true}),
            ),
        ],
    )
}

fn updates() -> Scenario {
    let versioned = |version: &str, value: &str| -> Value {
        let mut object = map("one", json!({"key": value}));
        object["metadata"]["resourceVersion"] = json!(version);
        object
    };
    let mut other_uid = map("one", json!({"key": "x"}));
    other_uid["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000001");
    Scenario::new(
        "update",
        vec![
            post("create", maps(""), &map("one", json!({"key": "1"}))),
            put("with its version", maps("/one"), &versioned("{create|/metadata/resourceVersion}", "2")),
            put("with an old version", maps("/one"), &versioned("{create|/metadata/resourceVersion}", "3")),
            put("without a version", maps("/one"), &map("one", json!({"key": "4"}))),
            put("the same again", maps("/one"), &map("one", json!({"key": "4"}))),
            put(
                "by another manager",
                maps("/one?fieldManager=other"),
                &map("one", json!({"key": "5", "more": "6"})),
            ),
            put("with another uid", maps("/one"), &other_uid),
            put("under another name", maps("/one"), &map("two", json!({}))),
            put("of a missing one", maps("/missing"), &map("missing", json!({}))),
            put("of a missing one, with a version", maps("/one-more"), &{
                let mut object = versioned("1", "1");
                object["metadata"]["name"] = json!("one-more");
                object
            }),
            put("with a bad version", maps("/one"), &versioned("abc", "3")),
            put("dry run", maps("/one?dryRun=All"), &map("one", json!({"key": "dry"}))),
            get("as it is", maps("/one")),
            put("onto the collection", maps(""), &map("one", json!({}))),
        ],
    )
}

fn generations() -> Scenario {
    let sets = |rest: &str| apps(&format!("statefulsets{rest}"));
    let mut labelled = stateful_set("set", 2);
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let mut with_status = stateful_set("set", 2);
    with_status["status"] = json!({"replicas": 5});
    let mut changed_selector = stateful_set("set", 2);
    changed_selector["spec"]["serviceName"] = json!("other");
    Scenario::new(
        "generation",
        vec![
            post("create", sets(""), &stateful_set("set", 1)),
            put("change of spec", sets("/set"), &stateful_set("set", 2)),
            put("no change", sets("/set"), &stateful_set("set", 2)),
            put("change of labels", sets("/set"), &labelled),
            put("change of status in the main resource", sets("/set"), &with_status),
            put("change of status", sets("/set/status"), &with_status),
            get("status is kept", sets("/set/status")),
            put("change of what may not change", sets("/set"), &changed_selector),
            post("pod", pods(""), &pod("one")),
            put("pod with another image", pods("/one"), &{
                let mut object = pod("one");
                object["spec"]["containers"][0]["image"] = json!("main:2");
                object
            }),
            put("pod with another command", pods("/one"), &{
                let mut object = pod("one");
                object["spec"]["containers"][0]["command"] = json!(["sh"]);
                object
            }),
        ],
    )
}

fn field_validation() -> Scenario {
    let unknown = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "colour": "red"}, "data": {"a": "b"}, "more": 1})
    };
    let twice =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}"#;
    let twice =
        |name, query: &str| post(name, maps(query), &json!({})).sends("application/json", twice.to_owned());
    let set = |name: &str| {
        let mut set = stateful_set(name, 1);
        set["spec"]["template"]["spec"]["containers"][0]["imagee"] = json!("typo");
        set
    };
    Scenario::new(
        "field-validation",
        vec![
            post("unknown, not said", maps(""), &unknown("a")),
            post("unknown, ignored", maps("?fieldValidation=Ignore"), &unknown("b")),
            post("unknown, warned", maps("?fieldValidation=Warn"), &unknown("c")),
            post("unknown, refused", maps("?fieldValidation=Strict"), &unknown("d")),
            post("unknown word", maps("?fieldValidation=Perhaps"), &unknown("e")),
            twice("twice, warned", "?fieldValidation=Warn&dryRun=All"),
            twice("twice, refused", "?fieldValidation=Strict&dryRun=All"),
            twice("twice, ignored", "?fieldValidation=Ignore&dryRun=All"),
            post("deep, refused", apps("statefulsets?fieldValidation=Strict"), &set("deep")),
            post("deep, warned", apps("statefulsets?fieldValidation=Warn&dryRun=All"), &set("deep")),
            post("wrong type", maps(""), &map("types", json!({"a": 1}))),
            post("wrong type deep", apps("statefulsets"), &{
                let mut object = stateful_set("types", 1);
                object["spec"]["replicas"] = json!("one");
                object
            }),
            post("wrong type of a map", maps(""), &map("types", json!(["a"]))),
        ],
    )
}

fn deployments() -> Scenario {
    let web = |strategy: Value, spec: Value| {
        let mut pod = json!({"containers": [{"name": "web", "image": "web"}]});
        for (field, value) in spec.as_object().into_iter().flatten() {
            pod[field] = value.clone();
        }
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"strategy": strategy, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod}},
        })
    };
    let tried = |name: &'static str, strategy: Value, spec: Value| {
        post(name, apps("deployments?dryRun=All"), &web(strategy, spec))
    };
    let stuck = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}});
    let pulled = json!({"containers": [{"name": "web", "image": "web", "imagePullPolicy": "Sometimes"}]});
    Scenario::new(
        "deployment-rules",
        vec![
            tried("a mistyped strategy", json!({"type": "RollingUpdates"}), json!({})),
            tried(
                "recreated bit by bit",
                json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
                json!({}),
            ),
            tried("recreated", json!({"type": "Recreate"}), json!({})),
            tried("neither more nor fewer", stuck, json!({})),
            tried("pods that end", json!({}), json!({"restartPolicy": "Never"})),
            tried("a mistyped pull policy", json!({}), pulled),
        ],
    )
}

/// The rules of StatefulSets and DaemonSets; nothing is kept, so that no controller acts.
fn sets() -> Scenario {
    let set = |kind: &str, spec: &Value| {
        let mut set = stateful_set("set", 1);
        set["kind"] = json!(kind);
        if kind == "DaemonSet"
            && let Some(fields) = set["spec"].as_object_mut()
        {
            fields.retain(|field, _| field != "replicas" && field != "serviceName");
        }
        for (field, value) in spec.as_object().into_iter().flatten() {
            set["spec"][field] = value.clone();
        }
        set
    };
    let stateful = |name: &'static str, spec: Value| {
        post(name, apps("statefulsets?dryRun=All"), &set("StatefulSet", &spec))
    };
    let daemon =
        |name: &'static str, spec: Value| post(name, apps("daemonsets?dryRun=All"), &set("DaemonSet", &spec));
    let rolling = |fields: Value| json!({"updateStrategy": {"rollingUpdate": fields}});
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    Scenario::new(
        "set-rules",
        vec![
            stateful("claims", json!({"volumeClaimTemplates": [claim]})),
            stateful(
                "half a retention",
                json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}),
            ),
            stateful(
                "unknown retention",
                json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Never"}}),
            ),
            stateful("unknown order", json!({"podManagementPolicy": "Any"})),
            stateful("negative start", json!({"ordinals": {"start": -1}})),
            stateful("negative partition", rolling(json!({"partition": -1}))),
            stateful("negative patience", json!({"minReadySeconds": -1})),
            stateful("on delete", json!({"updateStrategy": {"type": "OnDelete"}})),
            stateful(
                "rolled on delete",
                json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}}),
            ),
            stateful("unknown strategy", json!({"updateStrategy": {"type": "Any"}})),
            stateful("several at once", rolling(json!({"maxUnavailable": 2}))),
            stateful("no selector", json!({"selector": {}})),
            daemon("daemon set", json!({})),
            daemon("half a strategy", json!({"updateStrategy": {"type": "RollingUpdate"}})),
            daemon("daemons on delete", json!({"updateStrategy": {"type": "OnDelete"}})),
            daemon("more and fewer", rolling(json!({"maxUnavailable": 1, "maxSurge": 1}))),
            daemon("neither more nor fewer", rolling(json!({"maxUnavailable": 0}))),
            daemon("unknown strategy of daemons", json!({"updateStrategy": {"type": "Any"}})),
            daemon("no selector of daemons", json!({"selector": {}})),
            daemon("with a surge", rolling(json!({"maxUnavailable": 0, "maxSurge": "10%"}))),
        ],
    )
}

fn defaults() -> Scenario {
    let core = |rest: &str| format!("/api/v1/namespaces/{{ns}}/{rest}");
    Scenario::new(
        "defaults",
        vec![
            post("pod", pods(""), &pod("one")),
            post("stateful set", apps("statefulsets"), &stateful_set("set", 1)),
            post(
                "deployment, dry",
                apps("deployments?dryRun=All"),
                &json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web", "ports": [{"containerPort": 80}]}]}}}}),
            ),
            post(
                "job, dry",
                "/apis/batch/v1/namespaces/{ns}/jobs?dryRun=All",
                &json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"},
                "spec": {"template": {"spec": {"restartPolicy": "Never",
                    "containers": [{"name": "job", "image": "job:1"}]}}}}),
            ),
            post(
                "service",
                core("services"),
                &json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                "spec": {"selector": {"app": "nobody-has-it"}, "ports": [{"port": 80}]}}),
            ),
            post(
                "service without address",
                core("services"),
                &json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "headless"},
                "spec": {"clusterIP": "None", "ports": [{"name": "web", "port": 80, "targetPort": "http"}]}}),
            ),
            post(
                "service with node port",
                core("services"),
                &json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "outside"},
                "spec": {"type": "NodePort", "ports": [{"port": 80}]}}),
            ),
            post(
                "service by name",
                core("services"),
                &json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "named"},
                "spec": {"type": "ExternalName", "externalName": "portolan.test"}}),
            ),
            post(
                "secret of text",
                core("secrets"),
                &json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "text"}, "stringData": {"a": "b"}}),
            ),
            post(
                "role",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
                &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
            ),
            post(
                "role binding",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
                &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
                "subjects": [{"kind": "User", "name": "somebody"}],
                "roleRef": {"kind": "Role", "name": "reader"}}),
            ),
            post(
                "lease",
                "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
                &json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lease"},
                "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}}),
            ),
            post(
                "disruption budget",
                "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets?dryRun=All",
                &json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "pdb"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "one"}}}}),
            ),
            post(
                "endpoint slice",
                "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
                &json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "slice"},
                "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}],
                "ports": [{"port": 80}]}),
            ),
            post(
                "event",
                core("events"),
                &json!({
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": "event"},
                "involvedObject": {"kind": "Pod", "name": "one", "namespace": "{ns}"}, "reason": "Why",
                "message": "what", "type": "Normal"}),
            ),
            post(
                "persistent volume claim",
                core("persistentvolumeclaims"),
                &json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
            ),
            post(
                "autoscaler",
                "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
                &json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "hpa"},
                "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "set"}}}),
            ),
            post(
                "network policy",
                "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies",
                &json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "policy"},
                "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}}),
            ),
            post(
                "service account",
                core("serviceaccounts"),
                &json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "somebody"}}),
            ),
        ],
    )
}

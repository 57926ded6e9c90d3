//! Status, scale, binding, eviction, token, namespaces and reviews.

use super::{apps, map, maps, pod, pods, stateful_set};
use crate::conformance::step::{
    Scenario, apply, delete, get, json_patch, merge_patch, post, put, strategic_patch,
};
use serde_json::{Value, json};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![scale(), pod_parts(), tokens(), namespaces(), reviews()]
}

fn scale() -> Scenario {
    let at = |rest: &str| apps(&format!("statefulsets/set/scale{rest}"));
    let scale = |replicas: Value| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "set", "namespace": "{ns}"}, "spec": {"replicas": replicas}})
    };
    Scenario::new(
        "scale",
        vec![
            post("create", apps("statefulsets"), &stateful_set("set", 1)),
            get("get", at("")),
            put("put", at(""), &scale(json!(3))),
            put("put the same", at(""), &scale(json!(3))),
            put("put with an old version", at(""), &{
                let mut scale = scale(json!(4));
                scale["metadata"]["resourceVersion"] = json!("{create|/metadata/resourceVersion}");
                scale
            }),
            put("negative", at(""), &scale(json!(-1))),
            put("not a number", at(""), &scale(json!("many"))),
            put("another kind", at(""), &stateful_set("set", 1)),
            merge_patch("patch", at(""), &json!({"spec": {"replicas": 5}})),
            strategic_patch("strategic patch", at(""), &json!({"spec": {"replicas": 6}})),
            json_patch(
                "JSON patch",
                at(""),
                &json!([{"op": "replace", "path": "/spec/replicas", "value": 7}]),
            ),
            merge_patch("dry run", at("?dryRun=All"), &json!({"spec": {"replicas": 8}})),
            get("of a missing one", apps("statefulsets/missing/scale")),
            get("of what has none", maps("/one/scale")),
            get("the set", apps("statefulsets/set")),
        ],
    )
}

fn pod_parts() -> Scenario {
    let bind = |name: &str, node: &str| {
        json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
    };
    let evict = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "{ns}"}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "one"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "one"}}}});
    Scenario::new(
        "pod-parts",
        vec![
            post("create", pods(""), &pod("one")),
            post("create two", pods(""), &pod("two")),
            post(
                "bind without a target",
                pods("/one/binding"),
                &json!({"apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": "one"}, "target": {"kind": "Node", "name": ""}}),
            ),
            post("bind, dry run", pods("/one/binding?dryRun=All"), &bind("one", "c1-1")),
            post("bind", pods("/one/binding"), &bind("one", "c1-1")),
            get("is bound", pods("/one")).only(|body| body["spec"]["nodeName"].clone()),
            post("bind again", pods("/one/binding"), &bind("one", "c1-1")),
            post("bind a missing one", pods("/missing/binding"), &bind("missing", "c1-1")),
            get("status", pods("/two/status")).only(|body| body["status"].clone()),
            merge_patch(
                "patch status",
                pods("/two/status"),
                &json!({"status": {"phase": "Running", "podIP": "10.9.9.9"}}),
            )
            .only(|body| body["status"].clone()),
            strategic_patch(
                "conditions",
                pods("/two/status"),
                &json!({"status": {"conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
            )
            .only(|body| body["status"].clone()),
            strategic_patch(
                "conditions by key",
                pods("/two/status"),
                &json!({"status": {"conditions": [
                {"type": "Ready", "status": "False", "reason": "Why"}]}}),
            )
            .only(|body| body["status"].clone()),
            merge_patch(
                "patch spec through status",
                pods("/two/status"),
                &json!({"spec": {"activeDeadlineSeconds": 5}}),
            )
            .only(|body| body["spec"]["activeDeadlineSeconds"].clone()),
            post("evict a missing one", pods("/missing/eviction"), &evict("missing")),
            post("evict under another name", pods("/one/eviction"), &evict("two")),
            post("evict, dry run", pods("/two/eviction?dryRun=All"), &evict("two")),
            post("budget", "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets?dryRun=All", &budget),
            post("evict what is not running", pods("/two/eviction"), &evict("two")),
            get("is gone", pods("/two")),
        ],
    )
}

fn tokens() -> Scenario {
    let account = |rest: &str| format!("/api/v1/namespaces/{{ns}}/serviceaccounts/{rest}");
    let request =
        |spec: Value| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let review = |token: &str, spec: Value| {
        let mut body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        if let (Some(fields), Value::Object(more)) = (body["spec"].as_object_mut(), spec) {
            fields.extend(more);
        }
        body
    };
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    Scenario::new(
        "tokens",
        vec![
            post("plain", account("default/token"), &request(json!({}))),
            post(
                "for an audience",
                account("default/token"),
                &request(json!({"audiences": ["someone"], "expirationSeconds": 3600})),
            ),
            post("too short", account("default/token"), &request(json!({"expirationSeconds": 60}))),
            post("of a missing account", account("missing/token"), &request(json!({}))),
            post("review", reviews, &review("{plain|/status/token}", json!({}))),
            post(
                "review for another audience",
                reviews,
                &review("{plain|/status/token}", json!({"audiences": ["someone"]})),
            ),
            post("review of nonsense", reviews, &review("nonsense", json!({}))),
            post("review of nothing", reviews, &review("", json!({}))),
        ],
    )
}

fn namespaces() -> Scenario {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let own = "/api/v1/namespaces/{ns}-more";
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["portolan.test/a"]}});
    Scenario::new(
        "namespaces",
        vec![
            post("create", "/api/v1/namespaces", &namespace("{ns}-more")),
            post("again", "/api/v1/namespaces", &namespace("{ns}-more")),
            post("bad name", "/api/v1/namespaces", &namespace("Bad.Name")),
            post("name too long", "/api/v1/namespaces", &namespace(&"n".repeat(64))),
            get("get", own),
            merge_patch("label", own, &json!({"metadata": {"labels": {"a": "b"}}})),
            apply("apply", format!("{own}?fieldManager=me"), &{
                let mut object = namespace("{ns}-more");
                object["metadata"]["labels"] = json!({"c": "d"});
                object
            }),
            post("content that stays", format!("{own}/configmaps"), &held),
            delete("delete", own),
            get("is going", own).only(|body| json!([body["status"]["phase"], body["spec"]])),
            post("create in it", format!("{own}/configmaps"), &map("late", json!({}))),
            delete("delete again", own).only(|body| body["status"]["phase"].clone()),
            merge_patch(
                "content goes",
                format!("{own}/configmaps/held"),
                &json!({"metadata": {"finalizers": null}}),
            ),
            delete("delete a protected one", "/api/v1/namespaces/kube-system"),
        ],
    )
}

fn reviews() -> Scenario {
    let own = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let subject = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let attributes = json!({"namespace": "{ns}", "verb": "get", "resource": "pods"});
    Scenario::new(
        "reviews",
        vec![
            post(
                "may I",
                own,
                &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes}}),
            ),
            post(
                "may I a path",
                own,
                &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}}),
            ),
            post(
                "may I nothing",
                own,
                &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {}}),
            ),
            post(
                "what may I, nowhere",
                rules,
                &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {}}),
            ),
            post(
                "what may I",
                rules,
                &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
                "spec": {"namespace": "{ns}"}}),
            )
            .only(|body| {
                let status = &body["status"];
                let everything = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
                let all = status["resourceRules"].as_array().into_iter().flatten();
                let all = all.into_iter().any(|rule| *rule == everything);
                json!([body["kind"], body["spec"], status["incomplete"], all])
            }),
            post(
                "may somebody",
                subject,
                &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": "somebody", "resourceAttributes": attributes}}),
            ),
            post(
                "role",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
                &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
            ),
            post(
                "binding",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
                &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
                "subjects": [{"kind": "User", "name": "somebody", "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}}),
            ),
            // The real API server learns of a binding a moment later.
            post(
                "until it counts",
                subject,
                &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": "somebody", "resourceAttributes": attributes}}),
            )
            .until(|_, body| body["status"]["allowed"] == true),
            post(
                "may somebody now",
                subject,
                &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": "somebody", "resourceAttributes": attributes}}),
            ),
            post(
                "another role by the binding",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
                &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "bad"},
                "subjects": [], "roleRef": {"kind": "Nonsense", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}}),
            ),
            post(
                "who am I",
                "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                &json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}),
            )
            .only(|body| json!([body["kind"], body["apiVersion"], body["status"]["userInfo"]["groups"]])),
            get("list of reviews", own),
        ],
    )
}

//! What tenants try to write in a provider: on the sandbox and on the lab.

use k8s_openapi::ByteString;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

/// Something that a tenant writes.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What it is.
    pub what: &'static str,
    /// The object.
    pub object: Value,
    /// What the refusal must name.
    pub named: &'static str,
}

/// Who writes, and where.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// A namespace that is open to the tenant.
    pub open: &'a str,
    /// The namespace of the tenant.
    pub home: &'a str,
    /// The invitation that it came by.
    pub invitation: &'a str,
}

/// Tries to apply an object: it is checked like any other, and nothing is kept.
///
/// # Errors
/// The cluster refuses it.
pub async fn attempt(client: &Client, object: &Value) -> kube::Result<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams { dry_run: true, ..PatchParams::apply("tenant").force() };
    api.patch(object["metadata"]["name"].as_str().unwrap_or_default(), &params, &Patch::Apply(object)).await
}

/// What a tenant may write.
#[must_use]
pub fn accepted(place: &Place<'_>) -> Vec<Attempt> {
    let fine = |what, object| Attempt { what, object, named: "" };
    let ephemeral = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    vec![
        fine("a Deployment", deployment(place, json!({}))),
        fine("the default account", deployment(place, json!({"serviceAccountName": "default"}))),
        fine(
            "a node that goes for a while",
            deployment(
                place,
                json!({"tolerations": [
                    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
                ]}),
            ),
        ),
        fine("a node with what it asks for", asking_for_gpu(place)),
        fine("a volume of the default class", deployment(place, json!({"volumes": [volume(&ephemeral)]}))),
        fine("a Job", job(place, json!({}))),
        fine("a Service", service(place, json!({}))),
        fine("a ConfigMap", object(place, "v1", "ConfigMap", json!({"data": {"a": "b"}}))),
        fine("a Secret", object(place, "v1", "Secret", json!({"type": "Opaque", "data": {"a": "Yg=="}}))),
        fine("its Lease", lease(place, "consumer", json!({}), "portolan:tenant:somebody")),
        fine("its request", request(place, "kubernetes.io/kube-apiserver-client", true)),
    ]
}

/// What a tenant may not write, by its own roles.
#[must_use]
pub fn refused(place: &Place<'_>) -> Vec<Attempt> {
    let not = |what, object, named| Attempt { what, object, named };
    let finalizers = json!({"finalizers": ["example.com/stays"]});
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": "none", "uid": "3fa2bc91-1111-2222-3333-444455556666"});
    let mut kept_pods = deployment(place, json!({}));
    kept_pods["spec"]["template"]["metadata"]["finalizers"] = finalizers["finalizers"].clone();
    let mut owned = object(place, "v1", "ConfigMap", json!({}));
    owned["metadata"]["ownerReferences"] = json!([owner]);
    let mut kept = object(place, "v1", "ConfigMap", json!({}));
    kept["metadata"]["finalizers"] = finalizers["finalizers"].clone();
    let mut credential =
        object(place, "v1", "Secret", json!({"type": "kubernetes.io/service-account-token"}));
    credential["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "default"});
    let mut kept_request = request(place, "kubernetes.io/kube-apiserver-client", true);
    kept_request["metadata"]["finalizers"] = finalizers["finalizers"].clone();
    let mut refused = vec![
        not("a credential of an account", credential, "service-account-token"),
        not("addresses of others", service(place, json!({"externalIPs": ["192.0.2.1"]})), "externalIPs"),
        not("a ConfigMap that stays", kept, "finalizers"),
        not("a ConfigMap with an owner", owned, "ownerReferences"),
        not("pods that stay", kept_pods, "finalizers of the pod template"),
        not("a Lease that stays", lease(place, "consumer", finalizers, "me"), "finalizers"),
        not("a large Lease", lease(place, "consumer", json!({}), &"x".repeat(129)), "Lease consumer"),
        not(
            "a Lease with much to say",
            lease(place, "consumer", json!({"annotations": {"example.com/a": "x".repeat(1025)}}), "me"),
            "Lease consumer",
        ),
        not("a request that stays", kept_request, "finalizers"),
        not("another signer", request(place, "example.com/other", true), "signer"),
        not(
            "a request without label",
            request(place, "kubernetes.io/kube-apiserver-client", false),
            "signer",
        ),
    ];
    for (what, spec, named) in pods() {
        refused.push(not(what, deployment(place, spec.clone()), named));
        refused.push(not(what, job(place, spec), named));
    }
    refused
}

/// The same pods in kinds that no role of tenants gives.
#[must_use]
pub fn refused_whatever_the_role(place: &Place<'_>) -> Vec<Attempt> {
    pods()
        .into_iter()
        .flat_map(|(what, spec, named)| {
            let template = pod_template(spec);
            let mut pod = object(place, "v1", "Pod", json!({}));
            pod["spec"] = template["spec"].clone();
            let mut nightly = object(place, "batch/v1", "CronJob", json!({}));
            let mut of_job = template.clone();
            of_job["spec"]["restartPolicy"] = json!("Never");
            nightly["spec"] = json!({"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": of_job}}});
            let mut set = object(place, "apps/v1", "StatefulSet", json!({}));
            set["spec"] =
                json!({"serviceName": "a", "selector": {"matchLabels": {"app": "a"}}, "template": template});
            [pod, nightly, set].map(|object| Attempt { what, object, named })
        })
        .collect()
}

/// What may be written once the namespace has the annotations for it.
#[must_use]
pub fn accepted_if_allowed(place: &Place<'_>) -> Vec<Attempt> {
    let allowed = ["a priority", "another account", "a volume of a class"];
    let pods = pods().into_iter().filter(|(what, ..)| allowed.contains(what));
    pods.map(|(what, spec, named)| Attempt { what, object: deployment(place, spec), named }).collect()
}

/// The annotations for [`accepted_if_allowed`].
#[must_use]
pub fn allowing() -> Value {
    json!({
        "portolan.dev/tenant-priority-classes": "nightly,batch",
        "portolan.dev/tenant-service-accounts": "builder",
        "portolan.dev/tenant-storage-classes": "fast,slow",
    })
}

/// Pods that are refused, by more fields of their spec.
fn pods() -> Vec<(&'static str, Value, &'static str)> {
    let claim = |more: Value| {
        let mut spec =
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        json!({"volumes": [volume(&spec)]})
    };
    vec![
        (
            "a priority of the system",
            json!({"priorityClassName": "system-node-critical"}),
            "priorityClassName",
        ),
        ("a priority", json!({"priorityClassName": "batch"}), "priorityClassName"),
        ("a node", json!({"nodeName": "node-1"}), "nodeName"),
        ("all nodes", json!({"tolerations": [{"operator": "Exists"}]}), "tolerations"),
        (
            "control planes",
            json!({"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}]}),
            "tolerations",
        ),
        ("nodes of others", json!({"tolerations": [{"key": "dedicated", "value": "others"}]}), "tolerations"),
        ("another account", json!({"serviceAccountName": "builder"}), "serviceAccountName"),
        ("a volume of a class", claim(json!({"storageClassName": "fast"})), "storageClassName"),
        ("a volume of no class", claim(json!({"storageClassName": ""})), "storageClassName"),
        ("a volume of others", claim(json!({"volumeName": "theirs"})), "no volume may be chosen"),
    ]
}

fn volume(claim: &Value) -> Value {
    json!({"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}})
}

fn object(place: &Place<'_>, api_version: &str, kind: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "attempt", "namespace": place.open},
    });
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

fn pod_template(more: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "image": "portolan.test/busybox:1"}]});
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    json!({"metadata": {"labels": {"app": "a"}}, "spec": spec})
}

fn deployment(place: &Place<'_>, more: Value) -> Value {
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": pod_template(more)});
    object(place, "apps/v1", "Deployment", json!({ "spec": spec }))
}

fn asking_for_gpu(place: &Place<'_>) -> Value {
    let tolerations = json!([{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]);
    let mut deployment = deployment(place, json!({ "tolerations": tolerations }));
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"nvidia.com/gpu": "1"}});
    deployment
}

fn job(place: &Place<'_>, more: Value) -> Value {
    let mut template = pod_template(more);
    template["spec"]["restartPolicy"] = json!("Never");
    object(place, "batch/v1", "Job", json!({"spec": {"template": template}}))
}

/// A Service of the tenant, with more fields of its spec.
#[must_use]
pub fn service(place: &Place<'_>, more: Value) -> Value {
    let mut spec = json!({"selector": {"app": "a"}, "ports": [{"port": 80}]});
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    object(place, "v1", "Service", json!({ "spec": spec }))
}

fn lease(place: &Place<'_>, name: &str, metadata: Value, holder: &str) -> Value {
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": place.home}, "spec": {"holderIdentity": holder},
    });
    if let (Some(own), Value::Object(more)) = (lease["metadata"].as_object_mut(), metadata) {
        own.extend(more);
    }
    lease
}

/// A request for a new certificate.
fn request(place: &Place<'_>, signer: &str, labelled: bool) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "somebody");
    let made = KeyPair::generate().and_then(|key| params.serialize_request(&key)?.pem());
    let pem = made.unwrap_or_default().into_bytes();
    let labels = if labelled { json!({"portolan.dev/request-of": place.invitation}) } else { json!({}) };
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": format!("portolan-renewal-{}", place.invitation), "labels": labels},
        "spec": {
            "request": ByteString(pem), "signerName": signer, "usages": ["client auth", "digital signature"],
            "expirationSeconds": 3600,
        },
    })
}

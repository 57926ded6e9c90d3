//! A member that changes pods at admission: room is counted as the pods are, nothing is taken for drift, and the plan
//! comes true.

use super::fleet::{Fleet, is_true, list, uids};
use super::kubectl_apply;
use super::outlook::plan;
use super::webhook::Webhook;
use anyhow::{Context, Result, ensure};
use portolan_core::capacity::milli;
use portolan_lab::Cluster;
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

const NAME: &str = "sidecar.portolan.test";

/// Four pods of the template would fit, but only two with the sidecar that each of them gets.
pub(super) async fn prove(fleet: &Fleet) -> Result<()> {
    let member = fleet.member("c2")?;
    let fifth = milli(&offered(member).await?)? / 5;
    let webhook = Webhook::serve(fleet.lab.host_address()?, sidecar(fifth)).await?;
    kubectl_apply(member, &[limits(), configuration(&webhook)]).await?;

    fleet.apply(guarded(1, fifth)).await?;
    fleet.placed("guarded", "c2=1").await?;
    let first = list(member, "pods", "app=guarded").await?;
    let containers = first.first().context("no pod")?["spec"]["containers"].clone();
    let main = containers.as_array().into_iter().flatten().find(|each| each["name"] == "main");
    ensure!(
        containers.as_array().is_some_and(|all| all.len() == 2)
            && main.is_some_and(|main| main["resources"]["requests"]["memory"] == "24Mi"),
        "webhook and LimitRange made the pod other than its template: {containers}"
    );

    let (code, planned) = plan(fleet, &guarded(4, fifth)).await?;
    let step = planned["clusters"].as_array().into_iter().flatten().find(|each| each["cluster"] == "c2");
    let after = step.map(|step| step["after"].clone()).unwrap_or_default();
    ensure!(code == 4 && after == 2 && planned["pending"] == 2, "exit code {code}: {planned}");

    fleet.apply(guarded(4, fifth)).await?;
    let status = fleet
        .until("guarded", "what fits runs, and the rest is pending", |status| {
            status["locationsSummary"] == "c2=2"
                && status["readyReplicas"] == 2
                && status["pendingReplicas"] == 2
        })
        .await?;
    ensure!(!is_true(&status, "Drifted"), "admission is no drift: {status}");
    let pods = list(member, "pods", "app=guarded").await?;
    ensure!(pods.len() == 2 && pods.iter().all(|pod| pod["status"]["phase"] == "Running"), "{pods:?}");
    let kept = uids(&first).iter().all(|uid| uids(&pods).contains(uid));
    ensure!(kept, "the first pod was replaced: {pods:?}");
    // Made and scaled: nobody set anything back.
    let generation = ["-n", NAMESPACE, "get", "deployment/guarded", "-o", "jsonpath={.metadata.generation}"];
    let generation = member.kubectl(&generation).await?;
    ensure!(generation == "2", "the copy was written {generation} times");

    fleet.delete("guarded").await?;
    member.kubectl(&["delete", "mutatingwebhookconfiguration", NAME]).await?;
    member.kubectl(&["-n", NAMESPACE, "delete", "limitrange", "defaults"]).await.map(|_| ())
}

fn guarded(replicas: i32, cpu: i64) -> Value {
    let mut object = workload("guarded", replicas, json!({"locations": ["c2"], "driftPolicy": "Report"}));
    let requests = json!({"requests": {"cpu": format!("{cpu}m")}});
    object["spec"]["template"]["spec"]["containers"][0]["resources"] = requests;
    object
}

fn sidecar(cpu: i64) -> Value {
    json!({
        "name": "injected", "image": "portolan.test/busybox:1",
        "command": ["sh", "-c", "while true; do sleep 1; done"],
        "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": "16Mi"}},
    })
}

fn limits() -> Value {
    let limit =
        json!({"type": "Container", "defaultRequest": {"memory": "24Mi"}, "default": {"memory": "64Mi"}});
    json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "defaults", "namespace": NAMESPACE}, "spec": {"limits": [limit]},
    })
}

fn configuration(webhook: &Webhook) -> Value {
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [{
            "name": NAME, "clientConfig": webhook.client, "rules": [rule], "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 30,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        }],
    })
}

async fn offered(member: &Cluster) -> Result<String> {
    member.kubectl(&["get", "nodes", "-o", "jsonpath={.items[0].status.allocatable.cpu}"]).await
}

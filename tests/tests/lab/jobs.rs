//! Jobs over clusters on real Kubernetes.

use super::fleet::{Fleet, gone};
use super::following::{nothing_carried, object};
use super::outlook::explain;
use super::proof::TIMEOUT;
use super::services::status;
use anyhow::{Result, ensure};
use portolan_tests::{NAMESPACE, job};
use serde_json::json;

/// A job is divided, loses a Job in a member, and still every completion is brought once; a failure goes elsewhere, and what
/// the pods read goes with it.
pub(super) async fn prove(fleet: &Fleet) -> Result<()> {
    let hub = fleet.hub()?;
    let both = json!({"locations": ["c2", "c3"], "countMode": "Total", "ttlSecondsAfterFinished": 10});
    fleet.apply(job("sum", 7, 2, both)).await?;
    let halfway = |status: &serde_json::Value| status["placements"][0]["succeeded"].as_i64() >= Some(1);
    let begun = status(fleet, "mcj/sum", "c2 has finished something", halfway).await?;
    ensure!(begun["locationsSummary"] == "c2=4,c3=3", "{begun}");
    fleet.member("c2")?.kubectl(&["-n", NAMESPACE, "delete", "job/sum"]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Complete", "mcj/sum", TIMEOUT]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=delete", "mcj/sum", TIMEOUT]).await?;
    for member in fleet.members() {
        gone(member, "jobs", "portolan.dev/workload").await?;
    }

    let mut flaky =
        job("flaky", 2, 1, json!({"locations": ["c2"], "onFailure": "RetryElsewhere", "backoffLimit": 0}));
    // It works in one cluster only, where the nodes have that name, and only with what the hub says.
    let script = "test \"$shade $(cat /paint/shade)\" = 'green green' || exit 1; case $NODE in c3*) exit 0;; *) exit 1;; esac";
    let pod = &mut flaky["spec"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "paint", "configMap": {"name": "paint"}}]);
    let container = &mut pod["containers"][0];
    container["command"] = json!(["sh", "-c", script]);
    container["env"] = json!([{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]);
    container["envFrom"] = json!([{"configMapRef": {"name": "paint"}}]);
    container["volumeMounts"] = json!([{"name": "paint", "mountPath": "/paint"}]);
    fleet.apply(object("ConfigMap", "paint", json!({"data": {"shade": "green"}}))).await?;
    fleet.apply(flaky).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Complete", "mcj/flaky", TIMEOUT]).await?;
    let done = status(fleet, "mcj/flaky", "it is told", |status| status["succeeded"] == 2).await?;
    ensure!(done["retries"] == 1 && done["locationsSummary"] == "c3=2", "{done}");
    let told = explain(fleet, "mcj/flaky").await?;
    for expected in ["2 of 2 completions finished", "retried in another cluster 1 time", "its Job has failed"]
    {
        ensure!(told.contains(expected), "{expected:?} is not told in:\n{told}");
    }
    hub.kubectl(&["-n", NAMESPACE, "delete", "mcj/flaky", TIMEOUT]).await?;
    for member in fleet.members() {
        nothing_carried(member).await?;
    }
    hub.kubectl(&["-n", NAMESPACE, "delete", "configmap/paint"]).await.map(|_| ())
}

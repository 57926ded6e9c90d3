//! No edit loses what runs, with real pods.

use super::fleet::{Fleet, asking, list, uids};
use anyhow::{Result, ensure};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

/// A request that no node can fulfil and a location that nobody has: the same pods run on, the reason is told, and the
/// mended workload is rolled out.
pub(super) async fn prove(fleet: &Fleet) -> Result<()> {
    let mut object = workload("careful", 2, json!({"locations": ["c2"]}));
    object["spec"]["template"] = asking("careful", "10m");
    fleet.apply(object.clone()).await?;
    fleet.placed("careful", "c2=2").await?;
    let member = fleet.member("c2")?;
    let before = uids(&list(member, "pods", "app=careful").await?);

    for edit in [json!({"template": asking("careful", "5000")}), json!({"locations": ["c22"]})] {
        patch(fleet, edit).await?;
        let status = fleet
            .until("careful", "the replicas are kept", |status| reason(status) == "ReplicasKept")
            .await?;
        ensure!(status["readyReplicas"] == 2 && status["locationsSummary"] == "c2=2", "{status}");
        let pods = list(member, "pods", "app=careful").await?;
        ensure!(uids(&pods) == before, "other pods run than before: {pods:?}");
        patch(fleet, json!({"template": object["spec"]["template"], "locations": ["c2"]})).await?;
        fleet.placed("careful", "c2=2").await?;
    }
    let pods = list(member, "pods", "app=careful").await?;
    ensure!(uids(&pods) == before, "what was mended needs no other pods: {pods:?}");
    fleet.delete("careful").await
}

async fn patch(fleet: &Fleet, spec: Value) -> Result<()> {
    let patch = json!({ "spec": spec }).to_string();
    let arguments = ["-n", NAMESPACE, "patch", "mcd/careful", "--type=merge", "-p", &patch];
    fleet.hub()?.kubectl(&arguments).await.map(|_| ())
}

fn reason(status: &Value) -> &str {
    let conditions = status["conditions"].as_array();
    let placed = conditions.into_iter().flatten().find(|each| each["type"] == "Placed");
    placed.and_then(|each| each["reason"].as_str()).unwrap_or_default()
}

//! The walking skeleton: one MultiClusterDeployment from `kubectl apply` on a hub to real pods in two members, and back.

use super::fleet::{Fleet, list, uids};
use super::proof::{TIMEOUT, eventually};
use super::{can_run, edits, following, monitoring, outlook};
use anyhow::{Result, ensure};
use portolan_lab::{Component, Seen};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn from_apply_on_the_hub_to_pods_in_two_members_and_back() -> Result<()> {
    if !can_run("from_apply_on_the_hub_to_pods_in_two_members_and_back") {
        return Ok(());
    }
    Fleet::start(2, |_| json!({})).await?.prove(there_and_back).await
}

async fn there_and_back(fleet: &Fleet) -> Result<()> {
    fleet.apply(workload("affine", 2, json!({"locations": ["c2", "c3"]}))).await?;
    let status = fleet.placed("affine", "c2=2,c3=2").await?;
    ensure!(status["readyReplicas"] == 4 && status["pendingReplicas"] == 0, "{status}");
    for member in fleet.members() {
        let pods = list(member, "pods", "app=affine").await?;
        ensure!(pods.len() == 2 && pods.iter().all(|pod| pod["status"]["phase"] == "Running"), "{pods:?}");
    }

    monitoring::prove(fleet).await?;
    corrects_drift(fleet).await?;
    reports_drift(fleet).await?;
    edits::prove(fleet).await?;
    following::prove(fleet).await?;
    outlook::prove(fleet).await?;
    survives_a_silent_member(fleet).await?;
    survives_a_restart(fleet).await?;
    fleet.delete("affine").await
}

/// What somebody changes in a member is set back.
pub(super) async fn corrects_drift(fleet: &Fleet) -> Result<()> {
    let member = fleet.member("c2")?;
    member.kubectl(&["-n", NAMESPACE, "scale", "deployment/affine", "--replicas=0"]).await?;
    eventually("the member's drift is corrected", async || {
        let replicas = member
            .kubectl(&["-n", NAMESPACE, "get", "deployment/affine", "-o", "jsonpath={.spec.replicas}"])
            .await?;
        Ok(if replicas == "2" { Seen::Ready(()) } else { Seen::NotYet(replicas) })
    })
    .await?;
    member.kubectl(&["-n", NAMESPACE, "rollout", "status", "deployment/affine", TIMEOUT]).await.map(|_| ())
}

/// What somebody changes in a member is told and left alone, if the workload says so.
async fn reports_drift(fleet: &Fleet) -> Result<()> {
    let member = fleet.member("c2")?;
    fleet.apply(workload("watched", 2, json!({"locations": ["c2"], "driftPolicy": "Report"}))).await?;
    fleet.placed("watched", "c2=2").await?;
    member.kubectl(&["-n", NAMESPACE, "scale", "deployment/watched", "--replicas=1"]).await?;
    let drifted = |status: &Value| {
        let conditions = status["conditions"].as_array();
        let drifted = conditions.into_iter().flatten().find(|each| each["type"] == "Drifted");
        drifted.map(|each| (each["status"] == "True", each["message"].to_string())).unwrap_or_default()
    };
    let status = fleet.until("watched", "the drift is told", |status| drifted(status).0).await?;
    let (_, message) = drifted(&status);
    ensure!(message.contains("c2: spec.replicas is 1, placed was 2"), "{message}");
    let replicas = ["-n", NAMESPACE, "get", "deployment/watched", "-o", "jsonpath={.spec.replicas}"];
    let left = member.kubectl(&replicas).await?;
    ensure!(left == "1", "it was to be left alone, and has {left} replicas");
    fleet.delete("watched").await
}

/// A member whose API server is gone keeps its pods, stays on record, and is itself again afterwards.
pub(super) async fn survives_a_silent_member(fleet: &Fleet) -> Result<()> {
    let (hub, member) = (fleet.hub()?, fleet.member("c3")?);
    let before = uids(&list(member, "pods", "app=affine").await?);
    member.kill(Component::ApiServer).await?;
    hub.kubectl(&["wait", "--for=condition=Ready=Unknown", "foreigncluster/c3", TIMEOUT]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready=Unknown", "mcd/affine", TIMEOUT]).await?;
    let status = fleet.get("affine").await?["status"].clone();
    ensure!(status["locationsSummary"] == "c2=2,c3=2", "silence is not absence: {status}");
    monitoring::prove_silence(fleet).await?;
    member.start(Component::ApiServer).await?;
    fleet.placed("affine", "c2=2,c3=2").await?;
    ensure!(uids(&list(member, "pods", "app=affine").await?) == before, "the same pods are still there");
    Ok(())
}

/// Killed and started anew, the controller goes on from what the API says and follows what changed meanwhile.
pub(super) async fn survives_a_restart(fleet: &Fleet) -> Result<()> {
    fleet.kill_controller().await?;
    fleet.hub()?.kubectl(&["-n", NAMESPACE, "scale", "mcd/affine", "--replicas=1"]).await?;
    fleet.start_controller().await?;
    fleet.placed("affine", "c2=1,c3=1").await.map(|_| ())
}

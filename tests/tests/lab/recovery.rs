//! A hub that lost its objects gets them back, and a Deployment of nobody is adopted, with real pods that run on.

use super::fleet::{Fleet, asking, list, uids};
use super::proof::eventually;
use super::{can_run, kubectl_apply};
use anyhow::{Result, ensure};
use portolan_lab::{Cluster, Seen};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_recovered_keeps_every_pod() -> Result<()> {
    if !can_run("a_hub_that_is_recovered_keeps_every_pod") {
        return Ok(());
    }
    Fleet::start(2, |_| json!({})).await?.prove(keeps_every_pod).await
}

async fn keeps_every_pod(fleet: &Fleet) -> Result<()> {
    let (hub, member) = (fleet.hub()?, fleet.member("c2")?);
    fleet.apply(workload("web", 2, json!({"locations": ["c2"]}))).await?;
    fleet.placed("web", "c2=2").await?;
    let before = pods(member, "web").await?;

    // The object vanishes while nobody looks, as by a restore from an older backup.
    fleet.kill_controller().await?;
    let bare =
        ["-n", NAMESPACE, "patch", "mcd/web", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#];
    hub.kubectl(&bare).await?;
    hub.kubectl(&["-n", NAMESPACE, "delete", "mcd/web"]).await?;
    fleet.start_controller().await?;
    eventually("c2 tells of its orphan", async || {
        let object = hub.kubectl(&["get", "foreigncluster/c2", "-o", "json"]).await?;
        let object: Value = serde_json::from_str(&object)?;
        let told = object["status"]["conditions"].to_string();
        Ok(if told.contains("Deployment shop/web") { Seen::Ready(()) } else { Seen::NotYet(told) })
    })
    .await?;
    let (code, listed, problem) = fleet.portolan(&["adopt", "--list"]).await?;
    ensure!(code == 0 && listed.contains("c2: 1 object was placed"), "{listed}{problem}");
    ensure!(pods(member, "web").await? == before, "nothing of an orphan is deleted");

    // Made anew, with another uid, it takes its pods over.
    fleet.apply(workload("web", 2, json!({"locations": ["c2"]}))).await?;
    fleet.placed("web", "c2=2").await?;
    ensure!(pods(member, "web").await? == before, "other pods run than before");

    // A Deployment that a user made in a member.
    let mine = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mine", "namespace": NAMESPACE},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "mine"}}, "template": asking("mine", "10m")},
    });
    kubectl_apply(member, &[mine]).await?;
    member.kubectl(&["-n", NAMESPACE, "rollout", "status", "deployment/mine"]).await?;
    let before = pods(member, "mine").await?;
    hub.kubectl(&["annotate", "foreigncluster/c2", "portolan.dev/allow-adoption=unmanaged"]).await?;
    let mut object = workload("mine", 2, json!({"locations": ["c2"]}));
    object["spec"]["template"] = asking("mine", "10m");
    object["metadata"]["annotations"] = json!({"portolan.dev/adopt": "unmanaged"});
    fleet.apply(object).await?;
    fleet.placed("mine", "c2=2").await?;
    ensure!(pods(member, "mine").await? == before, "an adoption restarts no pod");
    ensure!(list(fleet.member("c3")?, "deployments", "app=mine").await?.is_empty(), "nothing is doubled");
    fleet.delete("web").await?;
    fleet.delete("mine").await
}

async fn pods(member: &Cluster, app: &str) -> Result<Vec<String>> {
    Ok(uids(&list(member, "pods", &format!("app={app}")).await?))
}

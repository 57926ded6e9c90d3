//! A link between the hub and a member that is cut and healed, with real packets lost.

use super::can_run;
use super::fleet::{Fleet, gone, list, uids};
use super::proof::{TIMEOUT, eventually};
use anyhow::{Result, ensure};
use portolan_lab::Seen;
use portolan_tests::{NAMESPACE, workload};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_cut_off_loses_nothing() -> Result<()> {
    if !can_run("a_member_that_is_cut_off_loses_nothing") {
        return Ok(());
    }
    Fleet::start(2, |_| json!({})).await?.prove(keeps_what_it_has).await
}

async fn keeps_what_it_has(fleet: &Fleet) -> Result<()> {
    let (hub, away) = (fleet.hub()?, fleet.member("c3")?);
    for name in ["keeper", "leaver"] {
        fleet.apply(workload(name, 2, json!({"locations": ["c2", "c3"]}))).await?;
        fleet.placed(name, "c2=2,c3=2").await?;
    }
    let mover = json!({"locations": ["c3"], "onUnreachable": "ReplaceAfter", "replaceAfter": "5s"});
    fleet.apply(workload("mover", 1, mover)).await?;
    fleet.placed("mover", "c3=1").await?;
    let before = uids(&list(away, "pods", "app=keeper").await?);

    fleet.lab.cut("c1", "c3").await?;
    hub.kubectl(&["wait", "--for=condition=Ready=Unknown", "foreigncluster/c3", TIMEOUT]).await?;
    let status = fleet
        .until("keeper", "its part in the silent cluster is Unknown", |status| {
            status["placements"][1]["state"] == "Unknown"
        })
        .await?;
    ensure!(status["locationsSummary"] == "c2=2,c3=2", "silence is not absence: {status}");

    // What is to be replaced starts elsewhere, and nobody touches what runs where nobody is heard.
    let status = fleet.placed("mover", "c2=1").await?;
    let placed = status["placements"].as_array().and_then(|all| all.first()).cloned().unwrap_or_default();
    ensure!(placed["cause"] == "Replacement" && placed["substituteFor"] == "c3", "{status}");
    ensure!(list(away, "pods", "app=mover").await?.len() == 1, "the silent cluster keeps its pod");

    // New work goes to the cluster that answers; what is deleted meanwhile waits for the silent one.
    fleet.apply(workload("newcomer", 1, json!({"placementPolicy": "worst-fit"}))).await?;
    fleet.placed("newcomer", "c2=1").await?;
    hub.kubectl(&["-n", NAMESPACE, "delete", "mcd/leaver", "--wait=false"]).await?;
    eventually("deletion waits for the member that is away", async || {
        let object = fleet.get("leaver").await?;
        let waits = object["status"]["conditions"].to_string().contains("AwaitingMember");
        Ok(if waits { Seen::Ready(()) } else { Seen::NotYet(object["status"].to_string()) })
    })
    .await?;
    gone(fleet.member("c2")?, "deployments", "app=leaver").await?;
    ensure!(list(away, "pods", "app=leaver").await?.len() == 2, "the silent cluster keeps its pods");
    // A controller that starts while the member is away knows no more than what is on record, and keeps it.
    fleet.kill_controller().await?;
    hub.kubectl(&["-n", NAMESPACE, "scale", "mcd/keeper", "--replicas=1"]).await?;
    fleet.lab.heal("c1", "c3").await?;
    fleet.start_controller().await?;

    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=delete", "mcd/leaver", TIMEOUT]).await?;
    gone(away, "deployments", "app=leaver").await?;
    fleet.placed("keeper", "c2=1,c3=1").await?;
    let after = uids(&list(away, "pods", "app=keeper").await?);
    ensure!(after.iter().any(|uid| before.contains(uid)), "a pod of before still runs: {before:?} {after:?}");
    // Home again: the surplus goes.
    fleet.placed("mover", "c3=1").await?;
    gone(fleet.member("c2")?, "deployments", "app=mover").await
}

//! A token that really ends: renewed in time the member is never lost, and otherwise it is back with the next token. The
//! copies never notice.

use super::fleet::{Fleet, list, uids};
use super::peered::Peered;
use super::proof::eventually;
use super::signing::token;
use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use portolan_lab::Seen;
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

/// How long a token of this test lives. The API server accepts it for a minute more, for clocks that differ.
const LIFE: i64 = 20;

pub(super) async fn prove(fleet: &Fleet, peered: &Peered<'_>) -> Result<()> {
    fleet.apply(workload("lasting", 2, json!({"locations": ["c2"]}))).await?;
    fleet.placed("lasting", "c2=2").await?;
    let before = uids(&list(peered.member, "pods", "app=lasting").await?);
    renewed_by_the_hub(peered).await?;
    fleet.placed("lasting", "c2=2").await?;
    given_too_late(fleet, peered).await?;
    fleet.placed("lasting", "c2=2").await?;
    let after = list(peered.member, "pods", "app=lasting").await?;
    ensure!(uids(&after) == before, "other pods run than before: {after:?}");
    // The credential is good for writes too.
    fleet.hub()?.kubectl(&["-n", NAMESPACE, "scale", "mcd/lasting", "--replicas=1"]).await?;
    fleet.placed("lasting", "c2=1").await?;
    fleet.delete("lasting").await
}

/// The hub asks for another token before the first one ends; nobody sees that it has ended.
async fn renewed_by_the_hub(peered: &Peered<'_>) -> Result<()> {
    let reachable = peered.condition("Reachable").await?;
    let short = token(peered.member, &peered.names.account, LIFE).await?;
    ensure!(accepts(peered, &short).await, "the member does not accept the token that was signed");
    let now = Timestamp::now();
    put(peered, &short, Some((now, now + SignedDuration::from_secs(LIFE)))).await?;
    eventually("the hub renews the token", async || {
        let held = held(peered).await?["users"][0]["user"]["token"].clone();
        Ok(if held == short.as_str() { Seen::NotYet("the first token".to_owned()) } else { Seen::Ready(()) })
    })
    .await?;
    ended(peered, &short).await?;
    let now = peered.condition("Reachable").await?;
    ensure!(now["status"] == "True", "{now}");
    ensure!(now["lastTransitionTime"] == reachable["lastTransitionTime"], "it was lost: {reachable}, {now}");
    Ok(())
}

/// A token that nobody renews ends, and is missed as soon as it has; the next one is used as soon as it is there.
async fn given_too_late(fleet: &Fleet, peered: &Peered<'_>) -> Result<()> {
    let short = token(peered.member, &peered.names.account, LIFE).await?;
    put(peered, &short, None).await?;
    ended(peered, &short).await?;
    eventually("the loss is noticed", async || {
        let reachable = peered.condition("Reachable").await?;
        let told = reachable["status"] == "Unknown";
        Ok(if told { Seen::Ready(()) } else { Seen::NotYet(reachable.to_string()) })
    })
    .await?;
    let status = fleet.get("lasting").await?["status"].clone();
    ensure!(status["locationsSummary"] == "c2=2", "silence is not absence: {status}");
    peered.join().await?;
    eventually("the member is back", async || {
        let reachable = peered.condition("Reachable").await?;
        let back = reachable["status"] == "True";
        Ok(if back { Seen::Ready(()) } else { Seen::NotYet(reachable.to_string()) })
    })
    .await
}

/// Waits until the member takes a token no more.
async fn ended(peered: &Peered<'_>, token: &str) -> Result<()> {
    eventually("the token has ended", async || {
        let accepted = accepts(peered, token).await;
        Ok(if accepted { Seen::NotYet("it is accepted".to_owned()) } else { Seen::Ready(()) })
    })
    .await
}

async fn accepts(peered: &Peered<'_>, token: &str) -> bool {
    // The same kubectl, without a credential of its own.
    let program = peered.member.kubectl_command(&[]).get_program().to_owned();
    let (server, token) = (format!("--server={}", peered.member.api_server()), format!("--token={token}"));
    let mut command = tokio::process::Command::new(program);
    command.args(["--kubeconfig=/dev/null", &server, &token, "--insecure-skip-tls-verify=true"]);
    let output = command.args(["get", "--raw", "/version"]).output().await;
    output.is_ok_and(|output| output.status.success())
}

/// The kubeconfig that the hub has.
async fn held(peered: &Peered<'_>) -> Result<Value> {
    let text = "go-template={{.data.kubeconfig | base64decode}}";
    let name = peered.member.name();
    Ok(serde_json::from_str(
        &peered.hub.kubectl(&["-n", "portolan", "get", "secret", name, "-o", text]).await?,
    )?)
}

/// Puts a token into the member's Secret, to be renewed at a time and ending at another one, or by nobody.
async fn put(peered: &Peered<'_>, token: &str, times: Option<(Timestamp, Timestamp)>) -> Result<()> {
    let mut kubeconfig = held(peered).await?;
    kubeconfig["users"][0]["user"]["token"] = json!(token);
    let (renew, ends) = match times {
        Some((renew, ends)) => (json!(renew.to_string()), json!(ends.to_string())),
        None => (Value::Null, Value::Null),
    };
    let annotations = json!({"portolan.dev/renew-at": renew, "portolan.dev/expires-at": ends});
    let patch = json!({
        "metadata": {"annotations": annotations},
        "stringData": {"kubeconfig": kubeconfig.to_string()},
    });
    let name = peered.member.name();
    let patch = patch.to_string();
    peered
        .hub
        .kubectl(&["-n", "portolan", "patch", "secret", name, "--type=merge", "-p", &patch])
        .await
        .map(|_| ())
}

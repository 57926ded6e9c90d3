//! The walking skeleton: one MultiClusterDeployment from `kubectl apply` on a hub to real pods in two members, and back.

use super::{can_run, kubectl_apply};
use anyhow::{Context, Result};
use jiff::Timestamp;
use portolan_control::fleet::Credentials;
use portolan_lab::{Cluster, Component, Lab, Seen, until};
use portolan_runtime::{Clock, Seed, Term};
use portolan_tests::{NAMESPACE, foreign_cluster, open_namespace, workload};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

const LONG: Duration = Duration::from_secs(90);
const OFTEN: Duration = Duration::from_millis(200);

#[tokio::test(flavor = "multi_thread")]
async fn from_apply_on_the_hub_to_pods_in_two_members_and_back() -> Result<()> {
    if !can_run("from_apply_on_the_hub_to_pods_in_two_members_and_back") {
        return Ok(());
    }
    let lab = Lab::builder().clusters(3).start().await?;
    let (hub, members) = (lab.cluster("c1")?, [lab.cluster("c2")?, lab.cluster("c3")?]);
    install(hub, &members).await?;
    let controller = start_controller(hub).await?;
    hub.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "foreigncluster/c2",
        "foreigncluster/c3",
        "--timeout=60s",
    ])
    .await?;

    // Cluster affinity: both members get all replicas.
    kubectl_apply(hub, &[workload("affine", 2, json!({"locations": ["c2", "c3"]}))]).await?;
    ready(hub, "affine").await?;
    for member in &members {
        let pods = list(member, "pods", "app=affine").await?;
        assert_eq!(pods.len(), 2, "{}", member.name());
        assert!(pods.iter().all(|pod| pod["status"]["phase"] == "Running"));
    }
    let status = get(hub, "affine").await?["status"].clone();
    assert_eq!(status["locationsSummary"], "c2=2,c3=2");
    assert_eq!((&status["readyReplicas"], &status["pendingReplicas"]), (&json!(4), &json!(0)));

    // Worst fit chooses one of them; kubectl scale changes it through the scale subresource.
    kubectl_apply(hub, &[workload("roomy", 1, json!({"placementPolicy": "worst-fit"}))]).await?;
    ready(hub, "roomy").await?;
    hub.kubectl(&["-n", NAMESPACE, "scale", "mcd/roomy", "--replicas=3"]).await?;
    until("three replicas are ready", LONG, OFTEN, async || {
        let status = get(hub, "roomy").await?["status"].clone();
        Ok(if status["readyReplicas"] == 3 { Seen::Ready(()) } else { Seen::NotYet(status.to_string()) })
    })
    .await?;
    let placed = list(members[0], "pods", "app=roomy").await?.len()
        + list(members[1], "pods", "app=roomy").await?.len();
    assert_eq!(placed, 3);

    // What somebody changes in a member is set back.
    members[0].kubectl(&["-n", NAMESPACE, "scale", "deployment/affine", "--replicas=0"]).await?;
    until("the member's drift is corrected", LONG, OFTEN, async || {
        let replicas = members[0]
            .kubectl(&["-n", NAMESPACE, "get", "deployment/affine", "-o", "jsonpath={.spec.replicas}"])
            .await?;
        Ok(if replicas == "2" { Seen::Ready(()) } else { Seen::NotYet(replicas) })
    })
    .await?;

    survives_a_silent_member(hub, members[1]).await?;
    let controller = survives_a_restart(hub, controller).await?;
    deletes_everywhere(hub, &members).await?;
    controller.abort();
    lab.down()
}

/// A member whose API server is gone keeps its pods, stays on record, and is itself again afterwards.
async fn survives_a_silent_member(hub: &Cluster, member: &Cluster) -> Result<()> {
    let before = uids(&list(member, "pods", "app=affine").await?);
    member.kill(Component::ApiServer).await?;
    hub.kubectl(&["wait", "--for=condition=Ready=Unknown", "foreigncluster/c3", "--timeout=60s"]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready=Unknown", "mcd/affine", "--timeout=60s"])
        .await?;
    let status = get(hub, "affine").await?["status"].clone();
    assert_eq!(status["locationsSummary"], "c2=2,c3=2", "silence is not absence");
    member.start(Component::ApiServer).await?;
    ready(hub, "affine").await?;
    assert_eq!(uids(&list(member, "pods", "app=affine").await?), before, "the same pods are still there");
    Ok(())
}

/// Killed and started anew, the controller finds everything as it was and changes nothing.
async fn survives_a_restart(hub: &Cluster, controller: JoinHandle<()>) -> Result<JoinHandle<()>> {
    controller.abort();
    let _ = controller.await;
    let before = get(hub, "affine").await?;
    hub.kubectl(&["-n", NAMESPACE, "scale", "mcd/affine", "--replicas=1"]).await?;
    let again = start_controller(hub).await?;
    until("the change made meanwhile is followed", LONG, OFTEN, async || {
        let status = get(hub, "affine").await?["status"].clone();
        let done = status["readyReplicas"] == 2 && status["locationsSummary"] == "c2=1,c3=1";
        Ok(if done { Seen::Ready(()) } else { Seen::NotYet(status.to_string()) })
    })
    .await?;
    assert_eq!(get(hub, "affine").await?["metadata"]["uid"], before["metadata"]["uid"]);
    Ok(again)
}

async fn deletes_everywhere(hub: &Cluster, members: &[&Cluster]) -> Result<()> {
    hub.kubectl(&["-n", NAMESPACE, "delete", "mcd", "--all", "--timeout=60s"]).await?;
    for member in members {
        let left = list(member, "deployments", "portolan.dev/workload").await?;
        assert!(left.is_empty(), "{}: {left:?}", member.name());
    }
    Ok(())
}

/// What an administrator does: definitions, credentials, ForeignClusters; and each member opens the namespace.
async fn install(hub: &Cluster, members: &[&Cluster]) -> Result<()> {
    let crds = portolan_api::crds().iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    kubectl_apply(hub, &crds).await?;
    hub.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).await?;
    hub.kubectl(&["create", "namespace", "portolan"]).await?;
    kubectl_apply(hub, &[open_namespace()]).await?;
    for member in members {
        kubectl_apply(member, &[open_namespace()]).await?;
        let path = member.kubeconfig_path();
        let path = path.to_str().context("the kubeconfig's path is text")?;
        let from = format!("--from-file=kubeconfig={path}");
        hub.kubectl(&["-n", "portolan", "create", "secret", "generic", member.name(), &from]).await?;
        kubectl_apply(hub, &[foreign_cluster(member.name())]).await?;
    }
    Ok(())
}

async fn start_controller(hub: &Cluster) -> Result<JoinHandle<()>> {
    let client = hub.client().await?;
    let connect = Arc::new(Credentials::from_hub(client.clone()));
    let clock = Clock::starting_at(Timestamp::now());
    Ok(tokio::spawn(portolan_control::run(client, connect, clock, Seed::new(1), Term::alone("test"))))
}

async fn ready(hub: &Cluster, name: &str) -> Result<()> {
    let object = format!("mcd/{name}");
    let waited =
        hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready", &object, "--timeout=90s"]).await;
    if waited.is_err() {
        eprintln!("{}", hub.kubectl(&["-n", NAMESPACE, "describe", &object]).await?);
    }
    waited.map(|_| ())
}

async fn get(hub: &Cluster, name: &str) -> Result<Value> {
    let text = hub.kubectl(&["-n", NAMESPACE, "get", &format!("mcd/{name}"), "-o", "json"]).await?;
    Ok(serde_json::from_str(&text)?)
}

async fn list(cluster: &Cluster, kind: &str, selector: &str) -> Result<Vec<Value>> {
    let text = cluster.kubectl(&["-n", NAMESPACE, "get", kind, "-l", selector, "-o", "json"]).await?;
    let list: Value = serde_json::from_str(&text)?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

fn uids(objects: &[Value]) -> Vec<String> {
    let mut uids: Vec<_> = objects.iter().map(|object| object["metadata"]["uid"].to_string()).collect();
    uids.sort();
    uids
}

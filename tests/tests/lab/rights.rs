//! A member in which the hub lacks one right: what needs it says so, everything else goes on, and it recovers by itself.

use super::fleet::Fleet;
use super::kubectl_with_input;
use super::peered::Peered;
use super::proof::{TIMEOUT, eventually};
use anyhow::{Context, Result, ensure};
use portolan_lab::{Cluster, Component, Seen};
use portolan_tests::{NAMESPACE, job, workload};
use serde_json::{Value, json};

pub(super) async fn prove(fleet: &Fleet, peered: &Peered<'_>) -> Result<()> {
    fleet.apply(workload("steady", 1, json!({"locations": ["c2", "c3"]}))).await?;
    fleet.placed("steady", "c2=1,c3=1").await?;
    without_list_and_watch_of_jobs(fleet, peered).await?;
    without_create_of_deployments(fleet, peered).await?;
    fleet.delete("steady").await
}

async fn without_list_and_watch_of_jobs(fleet: &Fleet, peered: &Peered<'_>) -> Result<()> {
    let (hub, member) = (peered.hub, peered.member);
    let whole = take(member, &peered.names.sight, "jobs", &["list", "watch"]).await?;
    // A watch is authorized when it begins: with the API server it ends.
    member.restart(Component::ApiServer).await?;
    eventually("the ForeignCluster names the right", async || {
        let ready = peered.condition("Ready").await?;
        let message = ready["message"].as_str().unwrap_or_default();
        let named = message.contains("resource \"jobs\" in API group \"batch\"");
        let told = ready["status"] == "False" && named && message.contains("forbidden");
        Ok(if told { Seen::Ready(()) } else { Seen::NotYet(ready.to_string()) })
    })
    .await?;
    checked(fleet, 1, &[("rights", "Problem", "list jobs.batch, watch jobs.batch")]).await?;
    fleet.apply(job("blind", 1, 1, json!({"locations": ["c2"]}))).await?;
    eventually("the job names the right", async || {
        let text = hub.kubectl(&["-n", NAMESPACE, "get", "mcj/blind", "-o", "json"]).await?;
        let status = serde_json::from_str::<Value>(&text)?["status"].clone();
        let told = status.to_string().contains("jobs.batch is forbidden") && status["succeeded"] != 1;
        Ok(if told { Seen::Ready(()) } else { Seen::NotYet(status.to_string()) })
    })
    .await?;
    // Neither Deployments of this member nor Jobs of the other one need it.
    scale(fleet, "steady", "2").await?;
    fleet.placed("steady", "c2=2,c3=2").await?;
    fleet.apply(job("elsewhere", 1, 1, json!({"locations": ["c3"]}))).await?;
    complete(hub, "elsewhere").await?;
    give_back(member, &whole).await?;
    complete(hub, "blind").await?;
    hub.kubectl(&["wait", "--for=condition=Ready", "foreigncluster/c2", TIMEOUT]).await?;
    let hops = ["dns", "tcp", "tls", "certificate", "api", "ready", "clock", "latency", "credential"];
    let healthy = hops.into_iter().chain(["condition", "last-seen", "kubernetes", "rights", "namespaces"]);
    checked(fleet, 0, &healthy.map(|check| (check, "Healthy", "")).collect::<Vec<_>>()).await?;
    hub.kubectl(&["-n", NAMESPACE, "delete", "mcj/blind", "mcj/elsewhere", TIMEOUT]).await.map(|_| ())
}

async fn without_create_of_deployments(fleet: &Fleet, peered: &Peered<'_>) -> Result<()> {
    let whole = take(peered.member, &peered.names.placement, "deployments", &["create"]).await?;
    fleet.apply(workload("fresh", 1, json!({"locations": ["c2", "c3"]}))).await?;
    let status = fleet
        .until("fresh", "the workload names the right, and the other member has its replica", |status| {
            let named = status.to_string().contains("cannot create resource \\\"deployments\\\"");
            named && status["readyReplicas"] == 1
        })
        .await?;
    ensure!(status.to_string().contains("c3"), "{status}");
    // What exists is not created: it is updated as before.
    scale(fleet, "steady", "1").await?;
    fleet.placed("steady", "c2=1,c3=1").await?;
    give_back(peered.member, &whole).await?;
    fleet.placed("fresh", "c2=1,c3=1").await?;
    fleet.delete("fresh").await
}

/// Asks `portolan doctor`: its exit code, and for some checks of c2 the verdict with words of the message.
async fn checked(fleet: &Fleet, code: i32, expected: &[(&str, &str, &str)]) -> Result<()> {
    let (exit, out, err) = fleet.portolan(&["doctor", "c2", "-o", "json"]).await?;
    let data: Value = serde_json::from_str(&out).with_context(|| err.clone())?;
    ensure!(exit == code, "exit code {exit}: {data:#}{err}");
    let of = |cluster: &str, check: &str| {
        let lines = data["checks"].as_array().into_iter().flatten();
        lines.into_iter().find(|line| line["cluster"] == cluster && line["check"] == check).cloned()
    };
    for (check, verdict, words) in expected {
        let line = of("c2", check).unwrap_or_default();
        let said = line["message"].as_str().unwrap_or_default();
        ensure!(line["verdict"] == *verdict && said.contains(words), "{check}: {line}");
    }
    // A real API server has APIServices, and definitions as it stores them.
    for check in ["webhooks", "api-services", "leader", "ready", "definitions", "controller-rights"] {
        let line = of("hub", check).unwrap_or_default();
        ensure!(line["verdict"] == "Healthy", "{check}: {line}");
    }
    Ok(())
}

/// Takes verbs on a resource out of a ClusterRole; answers the role as it was.
async fn take(member: &Cluster, role: &str, resource: &str, verbs: &[&str]) -> Result<Value> {
    let text = member.kubectl(&["get", "clusterrole", role, "-o", "json"]).await?;
    let mut whole: Value = serde_json::from_str(&text)?;
    whole["metadata"] = json!({"name": role, "labels": whole["metadata"]["labels"]});
    let mut less = whole.clone();
    let rules = less["rules"].as_array_mut().into_iter().flatten();
    for rule in rules.filter(|rule| rule["resources"] == json!([resource])) {
        if let Some(all) = rule["verbs"].as_array_mut() {
            all.retain(|verb| !verbs.iter().any(|taken| verb == taken));
        }
    }
    if let Some(rules) = less["rules"].as_array_mut() {
        rules.retain(|rule| rule["verbs"] != json!([]));
    }
    ensure!(less != whole, "{role} has no such right: {whole}");
    give_back(member, &less).await?;
    Ok(whole)
}

async fn give_back(member: &Cluster, role: &Value) -> Result<()> {
    kubectl_with_input(member, &["replace", "-f", "-"], &role.to_string()).await.map(|_| ())
}

async fn complete(hub: &Cluster, name: &str) -> Result<()> {
    let object = format!("mcj/{name}");
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Complete", &object, TIMEOUT]).await.map(|_| ())
}

async fn scale(fleet: &Fleet, name: &str, replicas: &str) -> Result<()> {
    let (object, replicas) = (format!("mcd/{name}"), format!("--replicas={replicas}"));
    fleet.hub()?.kubectl(&["-n", NAMESPACE, "scale", &object, &replicas]).await.map(|_| ())
}

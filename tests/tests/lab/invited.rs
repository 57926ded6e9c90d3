//! What a hub does with two members that it has peered with by invitation, where Portolan runs in all three clusters from its image.
//!
//! On the way every right is used that the controller of a hub has.

use super::fleet::{Fleet, list};
use super::following::object;
use super::outlook::plan;
use super::proof::{TIMEOUT, eventually, step};
use super::{kubectl_apply, kubectl_with_input, placement, services};
use anyhow::{Result, ensure};
use portolan_lab::Seen;
use portolan_tests::{NAMESPACE, autoscaler, job, service, workload};
use serde_json::{Value, json};

/// Places, keeps and updates in both members, and follows what users ask for.
pub(super) async fn prove(fleet: &Fleet) -> Result<()> {
    fleet.apply(workload("affine", 2, json!({"locations": ["c2", "c3"]}))).await?;
    step("placed in both members", fleet.placed("affine", "c2=2,c3=2")).await?;
    step("drift is corrected", placement::corrects_drift(fleet)).await?;
    step("an update is rolled out", updates(fleet)).await?;
    step("a service follows", services::follow(fleet)).await?;
    step("a job is divided", divides_a_job(fleet)).await?;
    step("plans", plans(fleet)).await?;
    step("an autoscaler and a rescheduler", follows_its_rules(fleet)).await
}

/// A member falls silent and comes back, and so does the controller of the hub.
pub(super) async fn prove_silence(fleet: &Fleet) -> Result<()> {
    step("a silent member", placement::survives_a_silent_member(fleet)).await?;
    step("a restart of the controller", placement::survives_a_restart(fleet)).await?;
    fleet.delete("affine").await
}

async fn updates(fleet: &Fleet) -> Result<()> {
    let label = json!({"spec": {"template": {"metadata": {"labels": {"changed": "yes"}}}}}).to_string();
    let patch = ["-n", NAMESPACE, "patch", "mcd/affine", "--type=merge", "-p", &label];
    fleet.hub()?.kubectl(&patch).await?;
    for member in fleet.members() {
        eventually(&format!("{} runs the new template", member.name()), async || {
            let pods = list(member, "pods", "app=affine").await?;
            let is_new = |pod: &&Value| {
                pod["metadata"]["labels"]["changed"] == "yes" && pod["status"]["phase"] == "Running"
            };
            let new = pods.iter().filter(is_new).count();
            Ok(if (new, pods.len()) == (2, 2) {
                Seen::Ready(())
            } else {
                Seen::NotYet(format!("{new} of {} pods", pods.len()))
            })
        })
        .await?;
    }
    fleet.placed("affine", "c2=2,c3=2").await.map(|_| ())
}

/// Both members bring a part of it, with what its pods read; it goes when it has been over for some seconds.
async fn divides_a_job(fleet: &Fleet) -> Result<()> {
    let hub = fleet.hub()?;
    fleet.apply(object("ConfigMap", "settings", json!({"data": {"colour": "red"}}))).await?;
    fleet.apply(object("Secret", "login", json!({"stringData": {"password": "geheim"}}))).await?;
    let both = json!({"locations": ["c2", "c3"], "countMode": "Total", "ttlSecondsAfterFinished": 5});
    let mut sum = job("sum", 4, 2, both);
    let container = &mut sum["spec"]["template"]["spec"]["containers"][0];
    container["command"] = json!(["sh", "-c", "test \"$colour $password\" = 'red geheim'"]);
    container["envFrom"] = json!([{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "login"}}]);
    fleet.apply(sum).await?;
    let is_divided = |status: &Value| status["locationsSummary"] == "c2=2,c3=2";
    services::status(fleet, "mcj/sum", "both members bring two completions", is_divided).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Complete", "mcj/sum", TIMEOUT]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=delete", "mcj/sum", TIMEOUT]).await?;
    hub.kubectl(&["-n", NAMESPACE, "delete", "configmap/settings", "secret/login"]).await.map(|_| ())
}

/// Of all kinds that can be planned: what is new, and what exists and was applied from the client's side.
async fn plans(fleet: &Fleet) -> Result<()> {
    let hub = fleet.hub()?;
    let here = json!({"locations": ["c2"]});
    let follows = service("planned", json!({"app": "planned"}));
    let wishes = [workload("planned", 1, here.clone()), job("planned", 1, 1, here), follows];
    for wish in &wishes {
        for _ in 0..2 {
            let (code, plan) = plan(fleet, wish).await?;
            // 3: something would change; 4: something has no cluster.
            ensure!(matches!(code, 0 | 3 | 4), "exit code {code}: {plan}");
            kubectl_with_input(hub, &["apply", "-f", "-"], &wish.to_string()).await?;
        }
    }
    let all = ["mcs/planned", "mcj/planned", "mcd/planned"];
    hub.kubectl(&[&["-n", NAMESPACE, "delete"], &all[..], &[TIMEOUT]].concat()).await.map(|_| ())
}

/// An autoscaler lifts a workload to its minimum, which takes no metrics, and a rescheduler says what it does.
async fn follows_its_rules(fleet: &Fleet) -> Result<()> {
    let hub = fleet.hub()?;
    let home = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterRescheduler", "metadata": {"name": "home"},
        "spec": {"interval": "2s"},
    });
    kubectl_apply(hub, &[autoscaler("grow", "affine", 3, 4), home]).await?;
    fleet.placed("affine", "c2=3,c3=3").await?;
    hub.kubectl(&["-n", NAMESPACE, "delete", "mchpa/grow", TIMEOUT]).await?;
    eventually("the rescheduler has looked", async || {
        let status =
            hub.kubectl(&["get", "multiclusterrescheduler/home", "-o", "jsonpath={.status}"]).await?;
        Ok(if status.is_empty() { Seen::NotYet("it has no status".to_owned()) } else { Seen::Ready(()) })
    })
    .await?;
    hub.kubectl(&["delete", "multiclusterrescheduler/home", TIMEOUT]).await?;
    hub.kubectl(&["-n", NAMESPACE, "scale", "mcd/affine", "--replicas=2"]).await?;
    fleet.placed("affine", "c2=2,c3=2").await.map(|_| ())
}

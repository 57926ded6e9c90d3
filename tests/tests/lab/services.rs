//! Services and jobs over clusters on real Kubernetes: pods answer through the Services that follow them, and Jobs bring
//! their parts.

use super::fleet::{Fleet, gone};
use super::proof::{TIMEOUT, eventually};
use super::{can_run, jobs};
use anyhow::{Result, ensure};
use portolan_lab::Seen;
use portolan_tests::{NAMESPACE, service, workload};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn services_follow_their_pods_and_jobs_bring_their_parts() -> Result<()> {
    if !can_run("services_follow_their_pods_and_jobs_bring_their_parts") {
        return Ok(());
    }
    let fleet = Fleet::start(2, |_| json!({})).await?;
    fleet
        .prove(async |fleet| {
            follow(fleet).await?;
            jobs::prove(fleet).await
        })
        .await
}

/// A Service follows its workload into the members, is kept there as it is in the hub, and leaves with it.
pub(super) async fn follow(fleet: &Fleet) -> Result<()> {
    let mut web = workload("web", 1, json!({"locations": ["c2", "c3"]}));
    let serve = "mkdir /www && hostname > /www/index.html && exec httpd -f -p 8080 -h /www";
    web["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["sh", "-c", serve]);
    let mut exposed = service("web", json!({"app": "web"}));
    exposed["spec"]["ports"] = json!([{"port": 80, "targetPort": 8080}]);
    exposed["metadata"]["annotations"] = json!({"io.cilium/global-service": "true"});
    fleet.apply(exposed).await?;
    fleet.apply(web).await?;
    fleet.placed("web", "c2=1,c3=1").await?;
    status(fleet, "mcs/web", "both clusters have an endpoint", |status| {
        status["locationsSummary"] == "c2=1,c3=1"
    })
    .await?;
    let hub = fleet.hub()?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcs/web", TIMEOUT]).await?;
    let annotation = "jsonpath={.metadata.annotations.io\\.cilium/global-service}";
    for member in fleet.members() {
        let carried = member.kubectl(&["-n", NAMESPACE, "get", "service/web", "-o", annotation]).await?;
        ensure!(carried == "true", "{}: {carried}", member.name());
        // The pod answers itself through the Service's name.
        let ask = [
            "-n",
            NAMESPACE,
            "exec",
            "deployment/web",
            "--",
            "wget",
            "-q",
            "-T",
            "2",
            "-O",
            "-",
            "http://web/",
        ];
        eventually("the Service answers", async || {
            let answer = member.kubectl(&ask).await?;
            Ok(if answer.starts_with("web-") { Seen::Ready(()) } else { Seen::NotYet(answer) })
        })
        .await?;
    }

    // What somebody changes in a member is set back; a Service has no generation to tell it by.
    let member = fleet.member("c2")?;
    let change = json!({"spec": {"selector": {"app": "other"}}}).to_string();
    member.kubectl(&["-n", NAMESPACE, "patch", "service/web", "-p", &change]).await?;
    eventually("the selector is set back", async || {
        let path = "jsonpath={.spec.selector.app}";
        let seen = member.kubectl(&["-n", NAMESPACE, "get", "service/web", "-o", path]).await?;
        Ok(if seen == "web" { Seen::Ready(()) } else { Seen::NotYet(seen) })
    })
    .await?;

    // The workload leaves a cluster, and the Service after it.
    let leave = json!({"spec": {"locations": ["c3"]}}).to_string();
    hub.kubectl(&["-n", NAMESPACE, "patch", "mcd/web", "--type=merge", "-p", &leave]).await?;
    status(fleet, "mcs/web", "it has left c2", |status| status["locationsSummary"] == "c3=1").await?;
    gone(member, "services", "portolan.dev/workload").await?;
    hub.kubectl(&["-n", NAMESPACE, "delete", "mcs/web", "mcd/web", TIMEOUT]).await?;
    gone(fleet.member("c3")?, "services", "portolan.dev/workload").await
}

/// Waits until the status of an object in the hub is as asked for, and answers it.
pub(super) async fn status(
    fleet: &Fleet,
    object: &str,
    what: &str,
    holds: impl Fn(&Value) -> bool,
) -> Result<Value> {
    eventually(&format!("{object}: {what}"), async || {
        let text = fleet.hub()?.kubectl(&["-n", NAMESPACE, "get", object, "-o", "json"]).await?;
        let status = serde_json::from_str::<Value>(&text)?["status"].clone();
        Ok(if holds(&status) { Seen::Ready(status) } else { Seen::NotYet(status.to_string()) })
    })
    .await
}

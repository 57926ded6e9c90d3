//! An autoscaler by the real load of real pods, as a real metrics-server measures it.

use super::fleet::{Fleet, asking};
use super::proof::{eventually, step};
use super::services::status;
use super::{can_run, kubectl_apply};
use anyhow::{Result, ensure};
use portolan_lab::{Cluster, Seen};
use portolan_tests::{NAMESPACE, autoscaler, service, workload};
use serde_json::{Value, json};

/// What a pod asks for; the autoscaler aims at half of it.
const REQUEST: &str = "100m";
const MOST: i64 = 3;

/// Each request takes the CPU for some dozens of milliseconds.
const SERVE: &str = r#"mkdir -p /www/cgi-bin
cat >/www/cgi-bin/work <<'END'
#!/bin/sh
i=0
while [ $i -lt 30000 ]; do i=$((i + 1)); done
printf 'Content-Type: text/plain\r\n\r\ndone\n'
END
chmod +x /www/cgi-bin/work
exec httpd -f -p 8080 -h /www"#;

/// One request after the other, with pauses, so that the load on a pod is less when there are more of them.
const ASK: &str = "while true; do wget -q -T 5 -O /dev/null http://web/cgi-bin/work; usleep 20000; done";

#[tokio::test(flavor = "multi_thread")]
async fn replicas_follow_the_measured_load() -> Result<()> {
    if !can_run("replicas_follow_the_measured_load") {
        return Ok(());
    }
    let fleet = Fleet::start(1, |_| json!({})).await?;
    fleet.prove(async |fleet| Box::pin(follow_the_load(fleet)).await).await
}

async fn follow_the_load(fleet: &Fleet) -> Result<()> {
    let member = fleet.member("c2")?;
    step("metrics-server has numbers", member.start_metrics_server()).await?;

    let mut web = workload("web", 1, json!({"locations": ["c2"]}));
    web["spec"]["template"] = asking("web", REQUEST);
    web["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["sh", "-c", SERVE]);
    let mut exposed = service("web", json!({"app": "web"}));
    exposed["spec"]["ports"] = json!([{"port": 80, "targetPort": 8080}]);
    let mut scaler = autoscaler("web", "web", 1, MOST as i32);
    scaler["spec"]["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": 15}});
    for object in [web, exposed, scaler] {
        fleet.apply(object).await?;
    }
    fleet.placed("web", "c2=1").await?;
    let measured = status(fleet, "mchpa/web", "an idle pod was measured", |status| {
        utilization(status).is_some_and(|percent| percent < 25)
    });
    let idle = step("an idle pod was measured", measured).await?;
    ensure!(idle["desiredReplicas"] == 1, "{idle}");

    generate(member, 1).await?;
    let grown = status(fleet, "mchpa/web", "the load asks for more", |status| {
        status["desiredReplicas"].as_i64() > Some(1) && utilization(status) > Some(50)
    });
    let loaded = step("the load asks for more", grown).await?;
    as_measured(member, &loaded).await?;
    fleet.placed("web", &format!("c2={MOST}")).await?;
    ensure!(loaded["metricsSummary"].as_str().is_some_and(|text| text.starts_with("cpu ")), "{loaded}");

    generate(member, 0).await?;
    let shrunk = status(fleet, "mchpa/web", "without load it shrinks to the least", |status| {
        status["currentReplicas"] == 1 && utilization(status).is_some_and(|percent| percent < 25)
    });
    let quiet = step("without load it shrinks to the least", shrunk).await?;
    ensure!(quiet["clusters"][0]["cluster"] == "c2", "{quiet}");
    fleet.placed("web", "c2=1").await?;
    fleet.delete("web").await
}

/// What the autoscaler says that pods in the member use, in percent of their requests.
fn utilization(status: &Value) -> Option<i64> {
    status["clusters"][0]["averageUtilization"].as_i64()
}

/// The utilization in the status is of the size that the member's own metrics API tells.
async fn as_measured(member: &Cluster, told: &Value) -> Result<()> {
    let told = utilization(told).unwrap_or_default();
    eventually("the member measures what the status says", async || {
        let pods =
            member.kubectl(&["-n", NAMESPACE, "get", "pods.metrics.k8s.io", "-l", "app=web", "-o", "json"]);
        let pods: Value = serde_json::from_str(&pods.await?)?;
        let uses = pods["items"].as_array().into_iter().flatten().map(|pod| {
            let cpu = pod["containers"][0]["usage"]["cpu"].as_str().unwrap_or_default();
            portolan_core::capacity::milli(cpu).unwrap_or_default()
        });
        // Each pod asks for 100m: thousandths are percents.
        let most = uses.max().unwrap_or_default();
        let alike = most > 50 && told <= most * 4 && most <= told * 4;
        Ok(if alike {
            Seen::Ready(())
        } else {
            Seen::NotYet(format!("{most}% is measured, {told}% is told"))
        })
    })
    .await
}

/// Has so many clients in the member ask the workload for work.
async fn generate(member: &Cluster, clients: i32) -> Result<()> {
    let mut template = asking("load", "10m");
    template["spec"]["containers"][0]["command"] = json!(["sh", "-c", ASK]);
    let load = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "load", "namespace": NAMESPACE},
        "spec": {"replicas": clients, "selector": {"matchLabels": {"app": "load"}}, "template": template},
    });
    kubectl_apply(member, &[load]).await.map(|_| ())
}

//! An autoscaler by the real load of real pods, as a real metrics-server measures it.

use super::fleet::{Fleet, asking};
use super::proof::{eventually, step};
use super::services::status;
use super::{can_run, kubectl_apply};
use anyhow::{Result, ensure};
use portolan_control::peering::{Names, identity};
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
    let fleet = Fleet::peered(1).await?;
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
    follow_custom_metrics(fleet).await?;
    fleet.delete("web").await
}

/// The other kinds of metrics, as a real adapter tells them, with no other rights than the documentation names.
async fn follow_custom_metrics(fleet: &Fleet) -> Result<()> {
    let member = fleet.member("c2")?;
    step("custom metrics are served", member.start_custom_metrics()).await?;
    let scale_by = async |metric: Value, told: &str, replicas: i64| {
        let mut scaler = autoscaler("web", "web", 1, MOST as i32);
        scaler["spec"]["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": 0}});
        scaler["spec"]["metrics"] = json!([metric]);
        fleet.apply(scaler).await?;
        let what = format!("{told} asks for {replicas}");
        let seen = status(fleet, "mchpa/web", &what, |status| {
            status["currentMetrics"][0]["type"] == metric["type"] && status["currentReplicas"] == replicas
        });
        step(&what, seen).await
    };
    let external = json!({"type": "External", "external": {
        "metric": {"name": "my-external-metric", "selector": {"matchLabels": {"foo": "bar"}}},
        "target": {"type": "AverageValue", "averageValue": "21"},
    }});
    let mut scaler = autoscaler("web", "web", 1, MOST as i32);
    scaler["spec"]["metrics"] = json!([external]);
    fleet.apply(scaler).await?;
    let refused = status(fleet, "mchpa/web", "a right that is missing is named", |status| {
        status["conditions"].to_string().contains("my-external-metric")
            && status["conditions"].to_string().contains("forbidden")
    });
    step("a right that is missing is named", refused).await?;
    kubectl_apply(member, &metric_rights(fleet).await?).await?;
    // The adapter tells 42.
    scale_by(external, "an external metric", 2).await?;
    member.write_custom_metric(&format!("namespaces/{NAMESPACE}/services/web/requests"), "90").await?;
    let object = json!({"type": "Object", "object": {
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"},
        "metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "30"},
    }});
    scale_by(object, "a metric of the Service", 3).await?;
    let pods = json!({"type": "Pods", "pods": {
        "metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"},
    }});
    for pod in super::fleet::list(member, "pods", "app=web").await? {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        member.write_custom_metric(&format!("namespaces/{NAMESPACE}/pods/{name}/queue"), "2").await?;
    }
    scale_by(pods, "a metric of the pods", 1).await.map(|_| ())
}

/// The rights of the hub's account to the metrics of the member, as the documentation has them.
async fn metric_rights(fleet: &Fleet) -> Result<Vec<Value>> {
    let hub = identity(&fleet.hub()?.client().await?, "the hub").await?;
    let account = Names::of(&hub).account;
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "metrics", "namespace": NAMESPACE},
        "rules": [
            {"apiGroups": ["custom.metrics.k8s.io"], "resources": ["pods/queue", "services/requests"], "verbs": ["get"]},
            {"apiGroups": ["external.metrics.k8s.io"], "resources": ["my-external-metric"], "verbs": ["list"]},
        ],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": "metrics", "namespace": NAMESPACE},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "metrics"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "portolan"}],
    });
    Ok(vec![role, binding])
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

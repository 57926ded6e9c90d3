//! Every policy with real pods: best-fit, worst-fit, spread, latency bound, a total shared out by weight, traffic,
//! substitution, bursting, an update.
//!
//! Requests are shares of what a node offers, which is what the machine has.

use super::fleet::{Fleet, asking, is_true, list};
use super::outlook::explain;
use super::proof::{TIMEOUT, eventually};
use super::{can_run, kubectl_apply};
use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use portolan_lab::{Cluster, Seen};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn each_policy_places_real_pods() -> Result<()> {
    if !can_run("each_policy_places_real_pods") {
        return Ok(());
    }
    let fleet = Fleet::start(3, |name| {
        let (region, latencies) = match name {
            "c2" => ("west", json!([{"to": "c3", "rtt": "5ms"}, {"to": "c4", "rtt": "50ms"}])),
            "c3" => ("west", json!([{"to": "c4", "rtt": "30ms"}])),
            _ => ("east", json!([])),
        };
        json!({"metadata": {"labels": {"region": region}}, "spec": {"latencies": latencies}})
    })
    .await?;
    fleet.prove(by_each_policy).await
}

async fn by_each_policy(fleet: &Fleet) -> Result<()> {
    // Ballast, so that c3 is the fullest and c2 the emptiest.
    let offers = cpu_offered(fleet.member("c2")?).await?;
    fleet.apply(app("ballast3", 1, &percent(25, offers), json!({"locations": ["c3"]}))).await?;
    fleet.apply(app("ballast4", 1, &percent(10, offers), json!({"locations": ["c4"]}))).await?;
    fleet.placed("ballast3", "c3=1").await?;
    fleet.placed("ballast4", "c4=1").await?;

    chooses(fleet).await?;
    follows_traffic(fleet).await?;
    substitutes_bursts_and_comes_back(fleet, &percent(60, offers)).await?;
    updates_everywhere(fleet).await
}

/// Where one replica goes by each policy.
async fn chooses(fleet: &Fleet) -> Result<()> {
    let by = |policy: &str| json!({"placementPolicy": policy});
    fleet.apply(app("roomy", 1, "10m", by("worst-fit"))).await?;
    fleet.apply(app("tight", 1, "10m", by("best-fit"))).await?;
    fleet.placed("roomy", "c2=1").await?;
    fleet.placed("tight", "c3=1").await?;

    let spread = json!({
        "placementPolicy": "worst-fit", "numberOfLocations": 2,
        "spread": [{"topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
    });
    fleet.apply(app("wide", 1, "10m", spread)).await?;
    fleet.placed("wide", "c2=1,c4=1").await?;

    let near = json!({
        "placementPolicy": "worst-fit", "numberOfLocations": 3, "maxLatency": {"from": "c2", "rtt": "10ms"},
    });
    fleet.apply(app("near", 1, "10m", near)).await?;
    let status = fleet
        .until("near", "the cluster that is too far gets nothing, and says why", |status| {
            status["locationsSummary"] == "c2=1,c3=1" && status["pendingReplicas"] == 1
        })
        .await?;
    let why = reason(&status, "c4");
    ensure!(why.contains("50ms") && why.contains("10ms"), "the reason has the numbers: {why}");

    let told = explain(fleet, "mcd/near").await?;
    for expected in ["c4", "50ms", "10ms"] {
        ensure!(told.contains(expected), "{expected:?} is not told in:\n{told}");
    }

    let selected = json!({"clusterSelector": {"matchLabels": {"region": "east"}}});
    fleet.apply(app("eastern", 1, "10m", selected)).await?;
    fleet.placed("eastern", "c4=1").await?;

    let shared = json!({
        "placementPolicy": "cluster-affinity", "locations": ["c2", "c3"], "replicasMode": "Total",
        "weights": [{"cluster": "c2", "weight": 2}, {"cluster": "c3", "weight": 1}],
    });
    fleet.apply(app("shared", 3, "10m", shared)).await?;
    fleet.placed("shared", "c2=2,c3=1").await?;
    scale(fleet, "shared", "6").await?;
    fleet.placed("shared", "c2=4,c3=2").await?;
    for name in ["roomy", "tight", "wide", "near", "eastern", "shared"] {
        fleet.delete(name).await?;
    }
    Ok(())
}

/// Replicas are where requests are received, as Services in the members tell, and move when the users do.
async fn follows_traffic(fleet: &Fleet) -> Result<()> {
    let now = Timestamp::now();
    let by_traffic = json!({"placementPolicy": "traffic-aware", "numberOfLocations": 1});
    fleet.apply(app("orders", 1, "10m", by_traffic)).await?;
    fleet
        .until("orders", "nobody tells traffic, so another policy decides, and that is said", |status| {
            status["conditions"].to_string().contains("PolicyFallback")
                && !status["locationsSummary"].is_null()
        })
        .await?;
    // Measured a while ago: the next number counts for nearly all then.
    let before = now - SignedDuration::from_secs(200);
    traffic(fleet.member("c2")?, "1", before).await?;
    traffic(fleet.member("c3")?, "40", before).await?;
    fleet.placed("orders", "c3=1").await?;
    traffic(fleet.member("c2")?, "40", now).await?;
    traffic(fleet.member("c3")?, "1", now).await?;
    fleet.placed("orders", "c2=1").await?;
    let told = explain(fleet, "mcd/orders").await?;
    ensure!(told.contains("requests/s"), "the traffic is not told in:\n{told}");
    fleet.delete("orders").await?;
    for member in ["c2", "c3"] {
        fleet.member(member)?.kubectl(&["-n", NAMESPACE, "delete", "service/orders"]).await?;
    }
    Ok(())
}

/// Tells requests per second of a service, as somebody who measures them in the member does.
async fn traffic(member: &Cluster, requests: &str, at: Timestamp) -> Result<()> {
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "orders",
            "namespace": NAMESPACE,
            "labels": {"portolan.dev/traffic": "told"},
            "annotations": {
                "portolan.dev/requests-per-second": requests,
                "portolan.dev/traffic-measured-at": at.to_string(),
            },
        },
        "spec": {"selector": {"app": "orders"}, "ports": [{"port": 80}]},
    });
    kubectl_apply(member, &[service]).await.map(|_| ())
}

/// What its cluster has no room for goes to the nearest that has; more replicas burst further, then ask for a cloud.
async fn substitutes_bursts_and_comes_back(fleet: &Fleet, most: &str) -> Result<()> {
    let wish = json!({"locations": ["c2"], "enableSubstitution": true, "enableBursting": true});
    fleet.apply(app("big", 2, most, wish)).await?;
    let status = fleet.placed("big", "c2=1,c3=1").await?;
    ensure!(status["placements"][1]["substituteFor"] == "c2", "c3 stands in for c2: {status}");
    eventually("one pod of it runs in c3", async || {
        let pods = list(fleet.member("c3")?, "pods", "app=big").await?;
        let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
        Ok(if running == 1 { Seen::Ready(()) } else { Seen::NotYet(json!(pods).to_string()) })
    })
    .await?;

    scale(fleet, "big", "3").await?;
    fleet.placed("big", "c2=1,c3=1,c4=1").await?;
    scale(fleet, "big", "4").await?;
    let status = fleet
        .until("big", "the fourth replica waits for a cloud cluster, and what fits runs on", |status| {
            status["pendingReplicas"] == 1 && is_true(status, "ToCloud") && status["readyReplicas"] == 3
        })
        .await?;
    for cluster in ["c2", "c3", "c4"] {
        let why = reason(&status, cluster);
        ensure!(
            why.contains("a replica needs cpu") && why.contains("the freest"),
            "{cluster} says what is missing: {why}"
        );
    }
    scale(fleet, "big", "1").await?;
    fleet.placed("big", "c2=1").await?;
    fleet.delete("big").await
}

/// A new template reaches every cluster; `kubectl wait` sees when it is there.
async fn updates_everywhere(fleet: &Fleet) -> Result<()> {
    let everywhere = json!({"locations": ["c2", "c3", "c4"]});
    fleet.apply(app("web", 2, "10m", everywhere.clone())).await?;
    fleet.placed("web", "c2=2,c3=2,c4=2").await?;
    let mut newer = app("web", 2, "10m", everywhere);
    newer["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "VERSION", "value": "2"}]);
    fleet.apply(newer).await?;
    let updated = |status: &Value| status["updatedReplicas"] == 6 && status["readyReplicas"] == 6;
    fleet.until("web", "all replicas are of the new template", updated).await?;
    fleet.hub()?.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcd/web", TIMEOUT]).await?;
    for member in fleet.members() {
        eventually(&format!("{} runs the new template alone", member.name()), async || {
            let versions = versions(member).await?;
            Ok(if versions == ["2", "2"] { Seen::Ready(()) } else { Seen::NotYet(versions.join(", ")) })
        })
        .await?;
    }
    fleet.delete("web").await
}

/// The environment of the pods that are to stay.
async fn versions(member: &Cluster) -> Result<Vec<String>> {
    let pods = list(member, "pods", "app=web").await?;
    let staying = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let version = |pod: &Value| pod["spec"]["containers"][0]["env"][0]["value"].as_str().map(str::to_owned);
    Ok(staying.map(|pod| version(pod).unwrap_or_default()).collect())
}

/// What the one node of a member offers, in thousandths of a CPU.
pub(super) async fn cpu_offered(member: &Cluster) -> Result<i64> {
    let offered =
        member.kubectl(&["get", "nodes", "-o", "jsonpath={.items[0].status.allocatable.cpu}"]).await?;
    Ok(portolan_core::capacity::milli(&offered)?)
}

fn percent(percent: i64, of: i64) -> String {
    format!("{}m", of * percent / 100)
}

pub(super) async fn scale(fleet: &Fleet, name: &str, replicas: &str) -> Result<()> {
    let (object, replicas) = (format!("mcd/{name}"), format!("--replicas={replicas}"));
    fleet.hub()?.kubectl(&["-n", NAMESPACE, "scale", &object, &replicas]).await.map(|_| ())
}

fn reason(status: &Value, cluster: &str) -> String {
    let all = status["pending"].as_array();
    let found = all.into_iter().flatten().find(|each| each["cluster"] == cluster);
    found.and_then(|each| each["message"].as_str()).unwrap_or_default().to_owned()
}

pub(super) fn app(name: &str, replicas: i32, cpu: &str, more: Value) -> Value {
    let mut object = workload(name, replicas, more);
    object["spec"]["template"] = asking(name, cpu);
    object
}

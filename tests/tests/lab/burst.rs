//! A burst to a cluster that real Cluster API makes of real nodes, from the first pod that waits to the last machine that goes.

use super::fleet::Fleet;
use super::granted::{Used, is_for_clouds};
use super::policies::{app, cpu_offered, scale};
use super::proof::{LONG, OFTEN, eventually, step};
use super::{can_run, kubectl_apply};
use anyhow::{Context, Result, ensure};
use portolan_control::peering::hub_needs;
use portolan_lab::{Cluster, ClusterApi, Lab, MachineSize, Seen, cluster_class, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where the objects of Cluster API are.
const CLOUDS: &str = "clouds";
/// What a pod asks for. Three of them fit on a machine.
const POD: &str = "300m";
const MACHINE: MachineSize = MachineSize { millicpus: 1000, memory: 2 << 30 };

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_becomes_a_real_cluster_and_comes_home_again() -> Result<()> {
    if !can_run("a_burst_becomes_a_real_cluster_and_comes_home_again") {
        return Ok(());
    }
    let lab = Lab::builder().clusters(2).audit();
    Box::pin(Fleet::start_on(lab, |_| json!({})).await?.prove(bursts_and_comes_home)).await
}

async fn bursts_and_comes_home(fleet: &Fleet) -> Result<()> {
    let machine_types = BTreeMap::from([("small".to_owned(), MACHINE)]);
    let install = ClusterApi::install(&fleet.lab, fleet.hub()?, machine_types);
    let cloud = step("Cluster API runs", install).await?;
    let proof = async {
        grows(fleet, &cloud).await?;
        step("there is room, and the pods come home", comes_home(fleet, &cloud)).await?;
        step("machines and cluster go", leaves_nothing(fleet, &cloud)).await?;
        step("a cluster is made from templates, and goes", from_templates(fleet, &cloud)).await?;
        Used::in_all([fleet.hub()?])?.covers(hub_needs().into_iter().filter(is_for_clouds))
    };
    let proved = proof.await;
    if proved.is_err() {
        show(fleet, &cloud).await?;
    }
    proved
}

/// What has no room at home runs in the cloud, on as many machines as it takes.
async fn grows(fleet: &Fleet, cloud: &ClusterApi<'_>) -> Result<()> {
    let hub = fleet.hub()?;
    fill_home(fleet).await?;
    kubectl_apply(hub, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLOUDS}})])
        .await?;
    kubectl_apply(hub, &cluster_class(CLOUDS, "quick", "small")).await?;
    fleet.apply(provisioner()).await?;
    fleet.apply(rescheduler()).await?;

    let wish = json!({"locations": ["c2"], "replicasMode": "Total", "enableBursting": true});
    fleet.apply(app("web", 2, POD, wish)).await?;
    step("a cluster is made, and the pods run there", fleet.placed("web", "cloud1=2")).await?;
    ensure!(ready_pods(&made(cloud)?).await? == 2, "the pods are in the cluster that was made");
    ensure!(machines(cloud)? == 1, "there are no more machines than are needed");

    scale(fleet, "web", "5").await?;
    step("another machine is made", fleet.placed("web", "cloud1=5")).await?;
    ensure!(machines(cloud)? == 2, "five pods take a second machine");
    let nodes = made(cloud)?.kubectl(&["get", "nodes", "-o", "name"]).await?;
    ensure!(nodes.lines().count() == 2, "a machine is a node: {nodes}");
    Ok(())
}

/// There is room again, and all of it comes home; at no time do fewer pods run than are wished for.
async fn comes_home(fleet: &Fleet, cloud: &ClusterApi<'_>) -> Result<()> {
    let (home, away) = (fleet.member("c2")?, made(cloud)?);
    fleet.delete("tenant").await?;
    until("all five pods are at home", LONG, OFTEN, async || {
        // The cluster that they leave is read first: a pod that is ready in both counts twice, and never not at all.
        let there = ready_pods(&away).await?;
        let here = ready_pods(home).await?;
        ensure!(there + here >= 5, "only {there} pods are ready in the cloud and {here} at home");
        Ok(if (there, here) == (0, 5) {
            Seen::Ready(())
        } else {
            Seen::NotYet(format!("{there} in the cloud, {here} at home"))
        })
    })
    .await?;
    fleet.placed("web", "c2=5").await.map(|_| ())
}

/// A machine that is little used goes, then the cluster that is not needed, and with it everything that was made for it.
async fn leaves_nothing(fleet: &Fleet, cloud: &ClusterApi<'_>) -> Result<()> {
    let hub = fleet.hub()?;
    eventually("one machine is left", async || {
        let left = machines(cloud)?;
        Ok(if left == 1 { Seen::Ready(()) } else { Seen::NotYet(format!("there are {left}")) })
    })
    .await?;
    let status = eventually("the cloud is not used", async || {
        let text = hub.kubectl(&["get", "cloudprovisioner/cloud", "-o", "json"]).await?;
        let status = serde_json::from_str::<Value>(&text)?["status"].clone();
        let idle = status["phase"] == "Idle" && status["nodes"] == 0;
        Ok(if idle { Seen::Ready(status) } else { Seen::NotYet(status.to_string()) })
    })
    .await?;
    ensure!(status["clusters"] == 1 && status["bursts"].as_array().map(Vec::len) == Some(1), "{status}");
    ensure!(status["bursts"][0]["mostNodes"] == 2 && status["failures"] == 0, "{status}");

    let kinds = "clusters.cluster.x-k8s.io,machines.cluster.x-k8s.io,labcontrolplanes,labmachines";
    let left = hub.kubectl(&["-n", CLOUDS, "get", kinds, "-o", "name"]).await?;
    ensure!(left.is_empty(), "Cluster API still has {left}");
    let members = hub.kubectl(&["get", "foreignclusters", "-o", "name"]).await?;
    ensure!(members.trim() == "foreigncluster.portolan.dev/c2", "the fleet still has {members}");
    ensure!(cloud.clusters().is_empty(), "the provider still has {:?}", cloud.clusters());
    let mut ports = fleet.lab.ports().await?;
    ports.sort();
    ensure!(ports == ["c1n1", "c2n1"], "nodes are still linked: {ports:?}");
    ensure!(!fleet.lab.state().dir()?.join("c3").exists(), "files of the cluster are left");
    fleet.delete("web").await
}

/// Takes all of the home but two thirds of a pod.
async fn fill_home(fleet: &Fleet) -> Result<()> {
    let tenant = format!("{}m", cpu_offered(fleet.member("c2")?).await? - 200);
    fleet.apply(app("tenant", 1, &tenant, json!({"locations": ["c2"]}))).await?;
    fleet.placed("tenant", "c2=1").await.map(|_| ())
}

/// The same without a ClusterClass. The templates of the user outlast the cluster.
async fn from_templates(fleet: &Fleet, cloud: &ClusterApi<'_>) -> Result<()> {
    let hub = fleet.hub()?;
    hub.kubectl(&["delete", "cloudprovisioner/cloud"]).await?;
    kubectl_apply(hub, &template_rights()).await?;
    fleet.apply(templated()).await?;
    let wish = json!({"locations": ["c2"], "replicasMode": "Total", "enableBursting": true});
    fill_home(fleet).await?;
    fleet.apply(app("web", 1, POD, wish)).await?;
    step("the pod runs there", fleet.placed("web", "cloud2=1")).await?;
    ensure!(ready_pods(&made(cloud)?).await? == 1, "the pod is in the cluster that was made");
    let made_of = "machinedeployments,labclusters,labcontrolplanes,labmachinetemplates";
    let parts = hub.kubectl(&["-n", CLOUDS, "get", made_of, "-o", "name"]).await?;
    ensure!(parts.lines().count() == 5, "with the template of the user, there are five: {parts}");
    fleet.delete("web").await?;
    fleet.delete("tenant").await?;
    eventually("the cluster is gone", async || {
        let all = format!("clusters.cluster.x-k8s.io,machines.cluster.x-k8s.io,labmachines,{made_of}");
        // The ClusterClass and its templates were the user's before.
        let left = hub.kubectl(&["-n", CLOUDS, "get", &all, "-o", "name"]).await?;
        let alone = left.trim() == "labmachinetemplate.infrastructure.cluster.x-k8s.io/quick";
        Ok(if alone && cloud.clusters().is_empty() { Seen::Ready(()) } else { Seen::NotYet(left) })
    })
    .await
}

/// What the controller needs to read the templates and to make what they describe.
fn template_rights() -> Vec<Value> {
    let rule = |group: &str, resources: &[&str]| json!({"apiGroups": [format!("{group}.cluster.x-k8s.io")], "resources": resources, "verbs": ["get", "create"]});
    let group = "rbac.authorization.k8s.io";
    let name = "portolan-cluster-templates";
    vec![
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [
                rule("infrastructure", &["labclustertemplates", "labmachinetemplates", "labclusters"]),
                rule("controlplane", &["labcontrolplanetemplates", "labcontrolplanes"]),
                rule("bootstrap", &["labbootstrapconfigtemplates"]),
            ],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "portolan-controller", "namespace": "portolan"}],
        }),
    ]
}

fn templated() -> Value {
    let reference = |group: &str, kind: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": "quick"});
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner", "metadata": {"name": "plain"},
        "spec": {
            "cloudClusterName": "cloud2", "cloudProvider": "Lab",
            "clusterTemplate": {
                "namespace": CLOUDS,
                "infrastructure": reference("infrastructure", "LabClusterTemplate"),
                "controlPlane": {"template": reference("controlplane", "LabControlPlaneTemplate")},
                "workers": [{
                    "machineType": "small",
                    "infrastructure": reference("infrastructure", "LabMachineTemplate"),
                    "bootstrap": reference("bootstrap", "LabBootstrapConfigTemplate"),
                }],
            },
            "machineTypes": [{"name": "small", "cpu": "1", "memory": "2Gi"}],
            "maxNodes": 3, "scaleInAfter": "5s", "decommissionAfter": "10s",
        },
    })
}

fn provisioner() -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner", "metadata": {"name": "cloud"},
        "spec": {
            "cloudClusterName": "cloud1", "cloudProvider": "Lab",
            "clusterClass": {"name": "quick", "namespace": CLOUDS},
            "machineTypes": [{"name": "small", "cpu": "1", "memory": "2Gi"}],
            "maxNodes": 3, "scaleInAfter": "5s", "decommissionAfter": "30s",
        },
    })
}

fn rescheduler() -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterRescheduler", "metadata": {"name": "home"},
        "spec": {"interval": "2s", "minimumStay": "5s", "roomStableFor": "2s", "margin": 0},
    })
}

/// The cluster that was made.
fn made(cloud: &ClusterApi<'_>) -> Result<Cluster> {
    cloud.clusters().into_iter().next().context("Cluster API has made no cluster")
}

/// How many machines there are, control planes not counted.
fn machines(cloud: &ClusterApi<'_>) -> Result<usize> {
    Ok(made(cloud)?.workers().len())
}

/// How many pods of the workload are ready in a cluster and stay.
async fn ready_pods(cluster: &Cluster) -> Result<usize> {
    let pods = super::fleet::list(cluster, "pods", "app=web").await?;
    let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
    Ok(pods.iter().filter(stays).filter(|pod| super::fleet::is_ready(&pod["status"])).count())
}

/// What Cluster API and the cluster that it made look like.
async fn show(fleet: &Fleet, cloud: &ClusterApi<'_>) -> Result<()> {
    let kinds = "cloudprovisioners,multiclusterreschedulers,clusters.cluster.x-k8s.io,machinedeployments,machines.cluster.x-k8s.io,labmachines";
    eprintln!("--- {}", fleet.hub()?.kubectl(&["get", kinds, "-A", "-o", "wide"]).await?);
    eprintln!("--- {}", fleet.hub()?.kubectl(&["get", "cloudprovisioners,mcr", "-o", "yaml"]).await?);
    for cluster in cloud.clusters() {
        eprintln!(
            "--- {}\n{}",
            cluster.name(),
            cluster.kubectl(&["get", "nodes,pods", "-A", "-o", "wide"]).await?
        );
    }
    eprintln!("--- the end of the log of Cluster API\n{}", cloud.log_tail(40));
    Ok(())
}

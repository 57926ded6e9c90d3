//! Clusters and machines come, scale and go.

use super::stage::*;
use std::time::Duration;

use super::common::{available, deployment};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_cluster_comes_phase_by_phase_and_its_kubeconfig_runs_a_pod() {
    let stage = Stage::new(1, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 2), pool("big", "large", 1)])).await.unwrap();
    let (mut phases, mut machine_phases, mut usable) = (Vec::new(), Vec::new(), Vec::new());
    stage
        .until("the cluster is available with three nodes", async || {
            let found = stage.get("Cluster", "burst").await;
            let phase = text(&found, "/status/phase").to_owned();
            if phases.last() != Some(&phase) {
                phases.push(phase);
            }
            for machine in stage.list("Machine").await {
                let phase = text(&machine, "/status/phase").to_owned();
                if !machine_phases.contains(&phase) {
                    machine_phases.push(phase);
                }
            }
            let secrets: Api<Secret> = Api::namespaced(stage.client(), NAMESPACE);
            for (what, seen) in [
                ("secret", secrets.get_opt("burst-kubeconfig").await.unwrap().is_some()),
                ("infrastructure", is_true(&found, "InfrastructureReady")),
                ("control plane", is_true(&found, "ControlPlaneAvailable")),
                (
                    "workers",
                    is_true(&found, "WorkersAvailable") && found["status"]["workers"]["replicas"] == 3,
                ),
            ] {
                if seen && !usable.contains(&what) {
                    usable.push(what);
                }
            }
            is_true(&found, "Available") && found["status"]["workers"]["availableReplicas"] == json!(3)
        })
        .await;
    phases.retain(|phase| !phase.is_empty());
    machine_phases.retain(|phase| !phase.is_empty());
    assert_eq!(phases.last().map(String::as_str), Some("Provisioned"));
    assert_eq!(phases[phases.len() - 2..], ["Provisioning", "Provisioned"]);
    assert_eq!(machine_phases, ["Pending", "Provisioning", "Provisioned", "Running"]);
    assert_eq!(usable, ["secret", "infrastructure", "control plane", "workers"]);

    let found = stage.get("Cluster", "burst").await;
    for (kind, reason) in [
        ("Available", "Available"),
        ("TopologyReconciled", "ReconcileSucceeded"),
        ("InfrastructureReady", "Ready"),
        ("ControlPlaneInitialized", "Initialized"),
        ("ControlPlaneAvailable", "Available"),
        ("RemoteConnectionProbe", "ProbeSucceeded"),
        ("WorkersAvailable", "Available"),
        ("WorkerMachinesReady", "Ready"),
        ("WorkerMachinesUpToDate", "UpToDate"),
    ] {
        assert_eq!(said(&found, kind), ("True".into(), reason.into(), String::new()), "{kind}");
        assert_eq!(condition(&found, kind)["observedGeneration"], found["metadata"]["generation"]);
    }
    for (kind, reason) in
        [("ScalingUp", "NotScalingUp"), ("RollingOut", "NotRollingOut"), ("Deleting", "NotDeleting")]
    {
        assert_eq!(said(&found, kind), ("False".into(), reason.into(), String::new()));
    }
    assert_eq!(found["spec"]["controlPlaneEndpoint"], json!({"host": "burst", "port": 6443}));

    let secrets: Api<Secret> = Api::namespaced(stage.client(), NAMESPACE);
    let secret = secrets.get("burst-kubeconfig").await.unwrap();
    let kubeconfig =
        Kubeconfig::from_yaml(std::str::from_utf8(&secret.data.unwrap()["value"].0).unwrap()).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    assert_eq!(config.cluster_url.host(), Some("burst"), "the host is the name of the cluster in the world");
    assert!(config.root_cert.is_some() && config.auth_info.token.is_some());
    let workload = stage.workload("burst").await;
    let nodes = Api::<Node>::all(workload.clone()).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(nodes.len(), 3);
    for node in &nodes {
        let machine = stage.get("Machine", &node.name_any()).await;
        let spec = node.spec.clone().unwrap();
        assert_eq!(spec.provider_id.as_deref(), machine["spec"]["providerID"].as_str());
        assert_eq!(machine["status"]["nodeRef"]["name"], node.name_any());
        let pool = &machine["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"];
        let kind = if pool == "big" { "large" } else { "small" };
        assert_eq!(node.labels()["node.kubernetes.io/instance-type"], kind);
        assert_eq!(node.labels()["node.cluster.x-k8s.io/pool"], *pool);
        assert!(!node.labels().contains_key("plain"), "only labels of Cluster API's domains reach nodes");
        assert_eq!(node.annotations()["cluster.x-k8s.io/machine"], node.name_any());
        let cpu = node.status.clone().unwrap().allocatable.unwrap()["cpu"].0.clone();
        assert_eq!(cpu, if kind == "large" { "8" } else { "2" });
        for (condition, reason) in
            [("Ready", "Ready"), ("NodeReady", "NodeReady"), ("InfrastructureReady", "Ready")]
        {
            assert_eq!(said(&machine, condition), ("True".into(), reason.into(), String::new()));
        }
    }
    let deployments: Api<Deployment> = Api::namespaced(workload, NAMESPACE);
    deployments.create(&PostParams::default(), &deployment("web", 4)).await.unwrap();
    stage.until("the pods run", async || available(&deployments, "web", 4).await).await;
}

#[tokio::test(start_paused = true)]
async fn scaling_in_takes_the_marked_machine_and_respects_budgets() {
    let stage = Stage::new(2, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 1)])).await.unwrap();
    stage.until_available("burst", 1).await;
    stage.scale("burst", 3).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let found = stage.get("Cluster", "burst").await;
    let (status, reason, message) = said(&found, "Available");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "NotAvailable"),
        "every scale-up looks like an outage"
    );
    assert!(message.contains("1 available replicas, at least 3 required"), "{message}");
    assert!(is_true(&found, "ControlPlaneAvailable") && is_true(&found, "RemoteConnectionProbe"));
    assert_eq!(said(&found, "ScalingUp").0, "False", "the objects exist, though they do not run");
    stage.until_available("burst", 3).await;

    let workload = stage.workload("burst").await;
    let deployments: Api<Deployment> = Api::namespaced(workload.clone(), NAMESPACE);
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap();
    stage.until("the pods run", async || available(&deployments, "web", 3).await).await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(workload.clone(), NAMESPACE);
    let budget = json!({
        "metadata": {"name": "web"}, "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
    });
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;

    let before = stage.machine_names().await;
    // Not the one that would go otherwise, which is the first by name.
    let marked = before.last().unwrap().clone();
    stage.mark(&marked).await;
    stage.scale("burst", 2).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    let machine = stage.get("Machine", &marked).await;
    assert_eq!(text(&machine, "/status/phase"), "Deleting");
    let (status, reason, message) = said(&machine, "Deleting");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "DrainingNode"));
    assert!(
        message.contains("The disruption budget web needs 3 healthy pods and has 3 currently"),
        "{message}"
    );
    assert!(!text(&machine, "/status/deletion/nodeDrainStartTime").is_empty());
    let nodes: Api<Node> = Api::all(workload);
    assert_eq!(nodes.get(&marked).await.unwrap().spec.unwrap().unschedulable, Some(true));
    let found = stage.get("Cluster", "burst").await;
    assert!(said(&found, "ScalingDown").2.contains("Scaling down from 3 to 2 replicas"));

    budgets.delete("web", &DeleteParams::default()).await.unwrap();
    stage.until_available("burst", 2).await;
    let after = stage.machine_names().await;
    assert_eq!(before.difference(&after).collect::<Vec<_>>(), [&marked]);
    assert!(nodes.get_opt(&marked).await.unwrap().is_none(), "its node is deleted");
    stage.until("the pods run elsewhere", async || available(&deployments, "web", 3).await).await;
    assert_eq!(stage.cloud.running().len(), 3, "two machines and the control plane");
    assert!(
        stage.list("SandboxMachine").await.len() == 2
            && stage.list("SandboxBootstrapConfig").await.len() == 2
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_takes_too_long_is_given_up_if_asked_for() {
    let stage = Stage::new(3, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 1)])).await.unwrap();
    stage.until_available("burst", 1).await;
    let workload = stage.workload("burst").await;
    let deployments: Api<Deployment> = Api::namespaced(workload.clone(), NAMESPACE);
    deployments.create(&PostParams::default(), &deployment("web", 1)).await.unwrap();
    let budget = json!({
        "metadata": {"name": "web"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    });
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(workload, NAMESPACE);
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    stage.until("the pod runs", async || available(&deployments, "web", 1).await).await;
    stage.scale("burst", 0).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.machine_names().await.len(), 1, "without a timeout it waits for ever");
    let mut impatient = pool("md-0", "small", 0);
    impatient["deletion"] = json!({"nodeDrainTimeoutSeconds": 60});
    let patch = json!({"spec": {"topology": {"workers": {"machineDeployments": [impatient]}}}});
    stage.api("Cluster").patch("burst", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(stage.machine_names().await.len(), 0, "it reaches machines that are being drained");
}

#[tokio::test(start_paused = true)]
async fn deletion_goes_in_order_and_leaves_nothing() {
    let stage = Stage::new(6, config()).await;
    let first = stage.world.log().count();
    stage.create(&cluster("burst", &[pool("md-0", "small", 2)])).await.unwrap();
    stage.until_available("burst", 2).await;
    assert!(stage.world.log().count() > first);
    let workload = stage.workload("burst").await;
    stage.api("Cluster").delete("burst", &DeleteParams::default()).await.unwrap();
    let mut reasons = Vec::new();
    stage
        .until("the cluster is gone", async || {
            let Some(found) = stage.api("Cluster").get_opt("burst").await.unwrap() else { return true };
            let found = serde_json::to_value(found).unwrap();
            let (_, reason, _) = said(&found, "Deleting");
            if reason != "NotDeleting" && reasons.last() != Some(&reason) {
                assert_eq!(text(&found, "/status/phase"), "Deleting");
                reasons.push(reason);
            }
            false
        })
        .await;
    let order =
        ["WaitingForWorkersDeletion", "WaitingForControlPlaneDeletion", "WaitingForInfrastructureDeletion"];
    assert_eq!(reasons, order);
    tokio::time::sleep(Duration::from_secs(5)).await;
    for kind in
        ["Cluster", "MachineDeployment", "Machine", "SandboxCluster", "SandboxControlPlane", "SandboxMachine"]
    {
        assert!(stage.list(kind).await.is_empty(), "{kind}");
    }
    assert_eq!(stage.list("SandboxMachineTemplate").await.len(), 1, "only that of the class is left");
    let secrets: Api<Secret> = Api::namespaced(stage.client(), NAMESPACE);
    assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert!(stage.world.cluster("burst").is_none() && stage.cloud.running().is_empty());
    let error = workload.apiserver_version().await.unwrap_err();
    assert!(format!("{error:?}").contains("cluster burst was removed"), "{error:?}");

    let records = stage.cloud.machines();
    let kinds: Vec<&str> = records.iter().map(|record| record.machine_type.as_str()).collect();
    assert_eq!(kinds, ["control-plane", "small", "small"]);
    let now = stage.world.clock().now();
    let seconds: u64 = records[1..].iter().map(|record| record.seconds(now)).sum();
    assert_eq!(stage.cloud.cost(), seconds * 40_000 / 3600);
    assert!(seconds > 80, "they took some time to boot: {seconds} s");

    // The name is free again.
    stage.create(&cluster("burst", &[pool("md-0", "small", 1)])).await.unwrap();
    stage.until_available("burst", 1).await;
    let nodes = Api::<Node>::all(stage.workload("burst").await).list(&ListParams::default()).await.unwrap();
    assert_eq!(nodes.items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn pools_come_go_and_change_their_machine_type() {
    let stage = Stage::new(9, config()).await;
    stage.create(&cluster("burst", &[pool("a", "small", 1)])).await.unwrap();
    stage.until_available("burst", 1).await;
    let set_pools = async |pools: Value| {
        let patch = json!({"spec": {"topology": {"workers": {"machineDeployments": pools}}}});
        stage.api("Cluster").patch("burst", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    };
    set_pools(json!([pool("a", "small", 1), pool("b", "large", 2)])).await;
    stage.until_available("burst", 3).await;
    set_pools(json!([pool("b", "large", 2)])).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.until_available("burst", 2).await;
    assert_eq!(stage.list("MachineDeployment").await.len(), 1);
    // Another machine type: new machines come before the old ones go.
    set_pools(json!([pool("b", "small", 2)])).await;
    let mut least = 2;
    stage
        .until("the machines are replaced", async || {
            let found = stage.get("Cluster", "burst").await;
            least = least.min(found["status"]["workers"]["availableReplicas"].as_u64().unwrap_or(0));
            let running = stage.cloud.running();
            running.iter().filter(|record| record.machine_type == "small").count() == 2
                && running.iter().all(|record| record.machine_type != "large")
        })
        .await;
    stage.until_available("burst", 2).await;
    assert_eq!(least, 2, "never fewer than asked for");
    assert!(!is_true(&stage.get("Cluster", "burst").await, "RollingOut"));
}

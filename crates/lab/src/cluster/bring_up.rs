//! Bringing up a cluster, with as much as possible at the same time.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node as NodeObject, ServiceAccount};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::Cluster;
use crate::addons;
use crate::component::{Component, write_control_plane_files, write_node_files};
use crate::kwok;
use crate::node::{Node, boot};
use crate::pki::Authority;
use crate::report::Timings;
use crate::wait::{Seen, until};

const READY_LIMIT: Duration = Duration::from_secs(300);

pub(super) async fn start(cluster: &Cluster, timings: &Timings) -> Result<()> {
    let started = Instant::now();
    try_join_all(cluster.nodes.iter().map(|node| boot_node(cluster, node, timings))).await?;
    write_files(cluster)?;

    let control_plane = async {
        let node = cluster.control_plane();
        up(cluster, Component::Etcd, node, timings).await?;
        up(cluster, Component::ApiServer, node, timings).await?;
        cluster.client().await
    };
    let real = cluster.workers();
    let runtimes = try_join_all(real.iter().map(|node| start_runtime(cluster, node, timings)));
    let (client, _) = futures::try_join!(control_plane, runtimes)?;

    let node = cluster.control_plane();
    futures::try_join!(
        up(cluster, Component::ControllerManager, node, timings),
        up(cluster, Component::Scheduler, node, timings),
        try_join_all(real.iter().map(|node| up(cluster, Component::Proxy, node, timings))),
        try_join_all(real.iter().map(|node| join(cluster, &client, node, timings))),
        serve_names(cluster, &client, timings),
        simulate_nodes(cluster, &client, timings),
        wait_for_service_account(&client),
    )?;
    timings.add(cluster.name(), "cluster", started.elapsed());
    Ok(())
}

async fn boot_node(cluster: &Cluster, node: &Node, timings: &Timings) -> Result<()> {
    let started = Instant::now();
    boot(&cluster.lab, &cluster.state, node).await?;
    timings.add(node.name(), "namespaces", started.elapsed());
    Ok(())
}

fn write_files(cluster: &Cluster) -> Result<()> {
    let ca = Authority::new(&cluster.authority_name())?;
    let kubeconfig = write_control_plane_files(&cluster.state, cluster.control_plane(), &ca)?;
    let path = cluster.kubeconfig_path();
    fs::write(&path, kubeconfig).with_context(|| format!("cannot write {}", path.display()))?;
    for (node, state) in cluster.nodes.iter().zip(&cluster.state.nodes) {
        write_node_files(&cluster.state, state, node, &cluster.api_server(), &ca)?;
    }
    Ok(())
}

/// Starts one more node of a cluster that runs, and waits until it is Ready.
pub(super) async fn start_node(cluster: &Cluster, node: &Node) -> Result<()> {
    let timings = Timings::default();
    boot_node(cluster, node, &timings).await?;
    let ca = cluster.authority()?;
    write_node_files(&cluster.state, node.state(), node, &cluster.api_server(), &ca)?;
    start_runtime(cluster, node, &timings).await?;
    up(cluster, Component::Proxy, node, &timings).await?;
    join(cluster, &cluster.client().await?, node, &timings).await
}

async fn up(cluster: &Cluster, component: Component, node: &Node, timings: &Timings) -> Result<()> {
    let started = Instant::now();
    cluster.spawn(component, node).await?;
    cluster.wait_until_up(component, node).await?;
    timings.add(node.name(), component.name(), started.elapsed());
    Ok(())
}

async fn start_runtime(cluster: &Cluster, node: &Node, timings: &Timings) -> Result<()> {
    up(cluster, Component::Containerd, node, timings).await?;
    let started = Instant::now();
    for image in ["pause", "busybox", "coredns"] {
        node.import_image(&format!("/opt/lab/images/{image}.tar")).await?;
    }
    timings.add(node.name(), "images", started.elapsed());
    Ok(())
}

/// Starts the kubelet, waits until its node is Ready, and tells the API what the lab decided about the node.
async fn join(cluster: &Cluster, client: &Client, node: &Node, timings: &Timings) -> Result<()> {
    let started = Instant::now();
    cluster.spawn(Component::Kubelet, node).await?;
    let nodes: Api<NodeObject> = Api::all(client.clone());
    let what = format!("node {} is Ready", node.name());
    until(&what, READY_LIMIT, Duration::from_millis(100), async || {
        let found = nodes.get_opt(node.name()).await.context("cannot read nodes")?;
        let ready = found.and_then(|found| {
            found.status?.conditions?.into_iter().find(|condition| condition.type_ == "Ready")
        });
        Ok(match ready {
            Some(ready) if ready.status == "True" => Seen::Ready(()),
            ready => {
                cluster.ensure_alive(Component::Kubelet, node)?;
                Seen::NotYet(match ready {
                    Some(ready) => ready.message.unwrap_or(ready.status),
                    None => {
                        format!("no node object; the kubelet says:\n{}", node.log_tail(Component::Kubelet, 5))
                    }
                })
            }
        })
    })
    .await?;
    timings.add(node.name(), Component::Kubelet.name(), started.elapsed());

    let pods = node.state().pods.to_string();
    let mut labels = json!({});
    if node.name() == cluster.control_plane().name() {
        labels["node-role.kubernetes.io/control-plane"] = json!("");
    }
    let patch = json!({ "metadata": { "labels": labels }, "spec": { "podCIDR": pods, "podCIDRs": [pods] } });
    nodes
        .patch(node.name(), &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .with_context(|| format!("cannot set the pods' addresses of node {}", node.name()))?;
    Ok(())
}

async fn serve_names(cluster: &Cluster, client: &Client, timings: &Timings) -> Result<()> {
    if cluster.state.only_simulated {
        return Ok(());
    }
    let applied = Instant::now();
    addons::apply_dns(client, &cluster.state).await?;
    if cluster.workers().is_empty() {
        return Ok(());
    }
    addons::wait_for_dns(client, &cluster.state, READY_LIMIT).await.with_context(|| {
        let node = cluster.control_plane();
        format!("the end of the kubelet's log:\n{}", node.log_tail(Component::Kubelet, 10))
    })?;
    timings.add(cluster.name(), "CoreDNS", applied.elapsed());
    Ok(())
}

/// Without it no pod is accepted in the namespace `default`.
async fn wait_for_service_account(client: &Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    until("the service account default/default exists", READY_LIMIT, Duration::from_millis(100), async || {
        let found = accounts.get_opt("default").await.context("cannot read service accounts")?;
        Ok(found.map_or(Seen::NotYet("none".to_owned()), |_| Seen::Ready(())))
    })
    .await
}

async fn simulate_nodes(cluster: &Cluster, client: &Client, timings: &Timings) -> Result<()> {
    if cluster.state.kwok == 0 {
        return Ok(());
    }
    up(cluster, Component::Kwok, cluster.control_plane(), timings).await?;
    let started = Instant::now();
    kwok::create_nodes(client, cluster.name(), cluster.state.kwok).await?;
    kwok::wait_until_ready(client, cluster.name(), cluster.state.kwok, READY_LIMIT).await?;
    timings.add(cluster.name(), "simulated nodes", started.elapsed());
    Ok(())
}

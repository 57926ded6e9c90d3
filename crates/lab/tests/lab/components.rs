//! Killing a component and starting it again loses no object and restarts no container.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, ListParams, PostParams};
use portolan_lab::{Cluster, Component, Seen};
use serde_json::json;

use crate::support::{LIMIT, exec_until, run_pod};

/// Of each pod its UID, its containers' ids and how often they were restarted.
type Pods = BTreeMap<String, (Option<String>, Vec<(Option<String>, i32)>)>;

pub(crate) async fn prove(cluster: &Cluster) -> Result<()> {
    let before = pods(cluster).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client().await?);
    let map = serde_json::from_value(json!({ "metadata": { "name": "kept" }, "data": { "a": "1" } }))?;
    maps.create(&PostParams::default(), &map).await?;

    let components = [
        Component::ApiServer,
        Component::Etcd,
        Component::Kubelet,
        Component::Containerd,
        Component::Proxy,
        Component::ControllerManager,
        Component::Scheduler,
    ];
    for component in components {
        cluster.kill(component).await?;
        ensure!(cluster.control_plane().pid_of(component).is_none(), "{component} survived being killed");
        ensure!(cluster.kill(component).await.is_err(), "{component} was killed twice");
        cluster.start(component).await.with_context(|| format!("{component} does not come back"))?;
    }
    cluster.restart(Component::ApiServer).await?;

    cluster
        .wait_until("all pods are as before", LIMIT, async || {
            let now = match pods(cluster).await {
                Ok(now) => now,
                Err(error) => return Ok(Seen::NotYet(format!("{error:#}"))),
            };
            Ok(if now == before {
                Seen::Ready(())
            } else {
                Seen::NotYet(format!("{now:?} instead of {before:?}"))
            })
        })
        .await?;
    ensure!(maps.get("kept").await?.data.is_some_and(|data| data["a"] == "1"), "the ConfigMap is lost");
    // It still works, from the API server through the scheduler and the kubelet to the proxy and DNS.
    run_pod(cluster, "afterwards", json!({}), &[("idle", "while :; do sleep 1; done")]).await?;
    exec_until(cluster, "afterwards", "wget -q -T 2 -O - http://pair/", "pair").await
}

/// A node that loses its power comes back with its pods.
pub(crate) async fn prove_power_cycle(cluster: &Cluster) -> Result<()> {
    let node = cluster.nodes()[1].name();
    let before = cluster.wait_for_pod("default", "pair", LIMIT).await?;
    ensure!(before.spec.and_then(|spec| spec.node_name).as_deref() == Some(node), "pair is not on {node}");
    cluster.power_off(node).await?;
    ensure!(
        !cluster.node(node)?.is_running() && cluster.node(node)?.exec(&["true"]).await.is_err(),
        "{node} is on"
    );
    cluster.power_on(node).await?;

    let pods: Api<Pod> = Api::default_namespaced(cluster.client().await?);
    cluster
        .wait_until("both containers were started again", LIMIT, async || {
            let now = Box::pin(pods.get("pair")).await?;
            ensure!(now.metadata.uid == before.metadata.uid, "it is another pod");
            let statuses = now.status.and_then(|status| status.container_statuses).unwrap_or_default();
            let started = statuses.iter().all(|status| status.ready && status.restart_count == 1);
            Ok(if started { Seen::Ready(()) } else { Seen::NotYet(format!("{statuses:?}")) })
        })
        .await?;
    exec_until(cluster, "client", "wget -q -T 2 -O - http://pair/", "pair").await
}

async fn pods(cluster: &Cluster) -> Result<Pods> {
    let pods: Api<Pod> = Api::all(cluster.client().await?);
    let mut found = Pods::new();
    for pod in pods.list(&ListParams::default()).await? {
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        let containers =
            statuses.into_iter().map(|status| (status.container_id, status.restart_count)).collect();
        found.insert(pod.metadata.name.unwrap_or_default(), (pod.metadata.uid, containers));
    }
    Ok(found)
}

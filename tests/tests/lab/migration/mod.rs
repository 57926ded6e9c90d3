//! A running pod of two containers moves from one cluster to another: through the agents on both nodes, with the coordinator in
//! this process.

mod agents;
mod certificates;
mod coordinator;
mod counters;

use crate::proof::{LONG, TIMEOUT, eventually, shown, step};
use crate::{can_run, kubectl_apply};
use agents::Agents;
use anyhow::{Context, Result, ensure};
use coordinator::Migration;
use counters::{CONTAINERS, Counters, Followed, POD};
use k8s_openapi::api::core::v1::Pod;
use portolan_agent::agent::RUNTIME_CLASS;
use portolan_core::migration::Outcome;
use portolan_lab::{Cluster, Component, Lab, Seen, portolan_runc_binary};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// What agents and runtime keep on a node lies here.
const FOLDER: &str = "/var/lib/portolan";

/// The handler of the RuntimeClass, as it is added to the configuration of containerd.
const HANDLER: &str = r#"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.portolan-restore]
      runtime_type = "io.containerd.runc.v2"
      pod_annotations = ["portolan.dev/*"]
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.portolan-restore.options]
        BinaryName = "/lab/portolan-runc"
        SystemdCgroup = false
"#;

/// Two dumps in one network namespace at the same time must not both lock it by iptables.
const CRIU_CONFIG: &str = "tcp-close\nskip-in-flight\nnetwork-lock skip\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_running_pod_goes_on_in_another_cluster() -> Result<()> {
    if !can_run("a_running_pod_goes_on_in_another_cluster") {
        return Ok(());
    }
    let lab = Lab::builder().clusters(2).start().await?;
    shown(&lab, async {
        let proved = Box::pin(prove(&lab)).await;
        if proved.is_err() {
            show(&lab).await;
        }
        proved
    })
    .await?;
    lab.down()
}

async fn prove(lab: &Lab) -> Result<()> {
    let (from, to) = (lab.cluster("c1")?, lab.cluster("c2")?);
    for cluster in [from, to] {
        step(&format!("prepare the node of {}", cluster.name()), Box::pin(prepare(cluster))).await?;
    }
    let pod = step("the pod runs", Box::pin(counters::run(from))).await?;
    if !can_checkpoint(from).await? {
        return Ok(());
    }
    let mut agents = step("both agents run", Box::pin(Agents::start(from, to))).await?;
    let mut told = Vec::new();
    for container in CONTAINERS {
        told.push(Followed::start(from, container)?);
    }
    step("an abort before the commit thaws the source", Box::pin(aborted(from, to, &mut agents, &pod)))
        .await?;
    step("the pod moves", Box::pin(moved(from, to, &mut agents, &pod, told))).await
}

/// Gives a node the runtime that restores.
async fn prepare(cluster: &Cluster) -> Result<()> {
    let node = cluster.control_plane();
    fs::copy(portolan_runc_binary().await?, node.dir().join("portolan-runc"))
        .context("cannot put the runtime into the node")?;
    let write = ["sh", "-c", "mkdir -p /etc/criu && cat >/etc/criu/runc.conf"];
    node.exec_with_input(&write, CRIU_CONFIG).await?;
    let file = node.dir().join("etc/containerd.toml");
    let config = fs::read_to_string(&file).context("cannot read the configuration of containerd")?;
    fs::write(&file, config + HANDLER).context("cannot write the configuration of containerd")?;
    cluster.restart(Component::Containerd).await?;
    let class = json!({
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": { "name": RUNTIME_CLASS },
        "handler": "portolan-restore",
    });
    kubectl_apply(cluster, &[class]).await?;
    cluster.kubectl(&["wait", "--for=condition=Ready", "node", "--all", TIMEOUT]).await.map(|_| ())
}

/// Whether CRIU can run here, by a checkpoint of the kubelet. Where it cannot, that is said loudly, and is a failure in CI.
async fn can_checkpoint(cluster: &Cluster) -> Result<bool> {
    let (node, container) = (cluster.control_plane().name(), CONTAINERS[0]);
    let path = format!("/api/v1/nodes/{node}/proxy/checkpoint/default/{POD}/{container}");
    let request = http::Request::post(path).body(Vec::new())?;
    let client = cluster.client().await?;
    let Err(error) = Box::pin(client.request_text(request)).await else { return Ok(true) };
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    ensure!(!ci, "no container can be checkpointed here, and CI may not skip that: {error}");
    eprintln!("!!! SKIPPED live migration: no container can be checkpointed here: {error}");
    Ok(false)
}

async fn aborted(from: &Cluster, to: &Cluster, agents: &mut Agents, pod: &Pod) -> Result<()> {
    let mut migration = Migration::begin(agents, "given-up", pod).await?;
    migration.until_verified().await?;
    let frozen = stand_still(from, to).await?;
    let took = migration.abort().await?;
    eprintln!("the source was thawed {} ms after the decision", took.as_millis());
    let record = migration.finish().await?;
    ensure!(record.outcome == Some(Outcome::Aborted), "{record:?}");

    let goes_on = eventually("the pod counts on at the source", async || {
        let now = Counters::of(from).await?;
        let on = CONTAINERS
            .iter()
            .all(|name| now.first(name) == frozen.first(name) && now.is_after(name, &frozen));
        Ok(if on { Seen::Ready(()) } else { Seen::NotYet(format!("{now:?} after {frozen:?}")) })
    });
    goes_on.await?;
    was_never_restarted(from).await?;
    ensure!(names(to).await?.is_empty(), "the pod at the destination is left");
    is_left(from, &[]).await?;
    is_left(to, &[]).await
}

async fn moved(
    from: &Cluster,
    to: &Cluster,
    agents: &mut Agents,
    pod: &Pod,
    told: Vec<Followed>,
) -> Result<()> {
    let mut migration = Migration::begin(agents, "moved", pod).await?;
    migration.until_verified().await?;
    let frozen = stand_still(from, to).await?;
    let record = migration.finish().await?;
    ensure!(record.outcome == Some(Outcome::Succeeded), "{record:?}");

    let restored = to.wait_for_pod("default", POD, LONG).await?;
    let goes_on = eventually("the pod counts on at the destination", async || {
        let now = Counters::of(to).await?;
        let on = CONTAINERS.iter().all(|name| now.is_after(name, &frozen));
        Ok(if on { Seen::Ready(now) } else { Seen::NotYet(format!("{now:?} after {frozen:?}")) })
    });
    let now = goes_on.await?;
    for name in CONTAINERS {
        ensure!(now.first(name) == frozen.last(name).map(|last| last + 1), "{now:?} after {frozen:?}");
    }
    was_never_restarted(to).await?;

    // The source has said nothing more, as long as there was anything of it.
    is_gone(from, pod).await?;
    for followed in told {
        let (name, said) = followed.end().await?;
        ensure!(said.last == frozen.last(name).unwrap_or(0), "container {name}: {said:?} after {frozen:?}");
    }
    let uid = restored.metadata.uid.context("the pod has a UID")?;
    let files = format!("cat /var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/shared/*");
    let files = to.control_plane().exec(&["sh", "-c", &files]).await?;
    ensure!(files == CONTAINERS.map(|name| format!("{name}\n")).concat(), "the volume came with {files:?}");
    is_left(from, &[]).await?;
    // Which pod it is stays as long as the pod does: one that dies later is started afresh.
    is_left(to, &["restore/moved/.live", "restore/moved/.pod"]).await
}

/// Neither the source nor the destination does anything. What the source has counted to.
async fn stand_still(from: &Cluster, to: &Cluster) -> Result<Counters> {
    let frozen = Counters::of(from).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let later = Counters::of(from).await?;
    ensure!(later == frozen, "the source runs on before the commit: {later:?} after {frozen:?}");
    let script = format!("cat /var/log/pods/default_{POD}_*/*/*.log 2>/dev/null || true");
    let said = to.control_plane().exec(&["sh", "-c", &script]).await?;
    ensure!(said.is_empty(), "the destination ran before the commit: {said}");
    was_never_restarted(from).await?;
    Ok(frozen)
}

async fn was_never_restarted(cluster: &Cluster) -> Result<()> {
    let text = cluster.kubectl(&["get", "pod", POD, "-o", "json"]).await?;
    let pod: Value = serde_json::from_str(&text)?;
    let statuses = pod["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
    let unharmed = statuses.len() == CONTAINERS.len()
        && statuses.iter().all(|status| status["restartCount"] == 0 && status["lastState"] == json!({}));
    ensure!(unharmed, "a container was restarted in {}: {statuses:#?}", cluster.name());
    Ok(())
}

/// Waits until nothing is left of the pod, neither its object nor its processes.
async fn is_gone(cluster: &Cluster, pod: &Pod) -> Result<()> {
    let uid = pod.metadata.uid.as_deref().context("the pod has a UID")?;
    let cgroup = format!("pod{uid}");
    eventually("nothing is left of the pod at the source", async || {
        let mut left = names(cluster).await?;
        left += &cluster.control_plane().exec(&["find", "/sys/fs/cgroup", "-name", &cgroup]).await?;
        Ok(if left.is_empty() { Seen::Ready(()) } else { Seen::NotYet(left) })
    })
    .await
}

async fn names(cluster: &Cluster) -> Result<String> {
    cluster.kubectl(&["get", "pods", "-o", "name"]).await
}

/// No file of a migration is left on the node but these.
async fn is_left(cluster: &Cluster, more: &[&str]) -> Result<()> {
    let mut expected: Vec<String> =
        ["journal/sessions.json"].iter().chain(more).map(|file| format!("{FOLDER}/{file}")).collect();
    expected.sort();
    let found = cluster.control_plane().exec(&["find", FOLDER, "-type", "f"]).await?;
    let mut found: Vec<&str> = found.lines().collect();
    found.sort_unstable();
    ensure!(found == expected, "on the node of {} there are {found:#?}", cluster.name());
    Ok(())
}

/// What agents, CRIU and containerd have said.
async fn show(lab: &Lab) {
    let script = format!(
        "find {FOLDER} -type f; find {FOLDER} -name '*.log' -exec sh -c 'echo \"== $1\"; tail -n 25 \"$1\"' sh {{}} \\;"
    );
    for cluster in lab.clusters() {
        let node = cluster.control_plane();
        eprintln!("--- {}: the end of the agent's log\n{}", node.name(), agents::log_tail(node));
        match node.exec(&["sh", "-c", &script]).await {
            Ok(files) => eprintln!("--- {}: files and the logs of CRIU\n{files}", node.name()),
            Err(error) => eprintln!("--- {}: {error:#}", node.name()),
        }
        eprintln!(
            "--- {}: the end of containerd's log\n{}",
            node.name(),
            node.log_tail(Component::Containerd, 20)
        );
    }
}

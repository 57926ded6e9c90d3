//! The pod that is moved: each container counts aloud, in its memory alone.

use crate::kubectl_apply;
use crate::proof::LONG;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use portolan_lab::Cluster;
use portolan_lab::parts::BUSYBOX_IMAGE;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::{Child, Command};
use tokio::time::timeout;

pub(super) const POD: &str = "pair";
pub(super) const CONTAINERS: [&str; 2] = ["a", "b"];

/// By how many a counter goes on before that is believed.
const ENOUGH: u64 = 10;

/// A container that is started afresh counts from one again.
const SCRIPT: &str = "echo $NAME >/shared/$NAME; i=0; while :; do i=$((i+1)); echo count $i; sleep 0.1; done";

/// Creates the pod, and waits until it is Ready.
pub(super) async fn run(cluster: &Cluster) -> Result<Pod> {
    let containers: Vec<Value> = CONTAINERS.iter().map(|name| container(name)).collect();
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": POD, "namespace": "default", "labels": { "app": POD } },
        "spec": { "containers": containers, "volumes": [{ "name": "shared", "emptyDir": {} }] },
    });
    kubectl_apply(cluster, &[pod]).await?;
    cluster.wait_for_pod("default", POD, LONG).await
}

fn container(name: &str) -> Value {
    json!({
        "name": name,
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", SCRIPT],
        "env": [{ "name": "NAME", "value": name }],
        "volumeMounts": [{ "name": "shared", "mountPath": "/shared" }],
    })
}

/// What a container has counted, without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Counted {
    fn read(log: &str) -> Result<Self> {
        let mut counted: Option<Self> = None;
        for line in log.lines() {
            let count = line.strip_prefix("count ").and_then(|count| count.parse::<u64>().ok());
            let count = count.with_context(|| format!("{line:?} is no count"))?;
            let first = counted.map_or(count, |counted| counted.first);
            if let Some(counted) = counted {
                ensure!(count == counted.last + 1, "{count} comes after {}", counted.last);
            }
            counted = Some(Self { first, last: count });
        }
        counted.context("nothing was counted")
    }
}

/// What all containers have counted in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counters(BTreeMap<&'static str, Counted>);

impl Counters {
    pub(super) async fn of(cluster: &Cluster) -> Result<Self> {
        let mut all = BTreeMap::new();
        for name in CONTAINERS {
            let log = cluster.kubectl(&["logs", POD, "-c", name]).await?;
            let counted = Counted::read(&log);
            all.insert(name, counted.with_context(|| format!("container {name} in {}", cluster.name()))?);
        }
        Ok(Self(all))
    }

    pub(super) fn first(&self, name: &str) -> Option<u64> {
        self.0.get(name).map(|counted| counted.first)
    }

    pub(super) fn last(&self, name: &str) -> Option<u64> {
        self.0.get(name).map(|counted| counted.last)
    }

    /// Whether a container has gone on counting for a while since then.
    pub(super) fn is_after(&self, name: &str, before: &Self) -> bool {
        self.last(name) >= before.last(name).map(|last| last + ENOUGH)
    }
}

/// All that a container says until its end.
pub(super) struct Followed {
    container: &'static str,
    process: Child,
    file: PathBuf,
}

impl Followed {
    pub(super) fn start(cluster: &Cluster, container: &'static str) -> Result<Self> {
        let file = cluster.control_plane().dir().join("log").join(format!("{POD}-{container}.log"));
        let mut command = Command::from(cluster.kubectl_command(&["logs", "-f", POD, "-c", container]));
        command.stdin(Stdio::null()).stdout(File::create(&file)?).stderr(Stdio::null()).kill_on_drop(true);
        Ok(Self { container, process: command.spawn().context("cannot run kubectl")?, file })
    }

    /// Waits for the end of the container. Its name, and what it has counted.
    pub(super) async fn end(mut self) -> Result<(&'static str, Counted)> {
        let name = self.container;
        let ended = timeout(LONG, self.process.wait()).await;
        ended.with_context(|| format!("kubectl still follows container {name}"))??;
        let log = fs::read_to_string(&self.file).context("cannot read what kubectl has followed")?;
        Ok((name, Counted::read(&log)?))
    }
}

#[test]
fn counts_follow_each_other() {
    let counted = Counted::read("count 7\ncount 8\ncount 9\n").unwrap();
    assert_eq!(counted, Counted { first: 7, last: 9 });
    for wrong in ["", "count 7\ncount 9\n", "count 7\ncount 7\n", "count 7\ncount 1\n", "cannot\n"] {
        assert!(Counted::read(wrong).is_err(), "{wrong:?}");
    }
}

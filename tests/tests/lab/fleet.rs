//! A hub and members on the lab, with Portolan installed in the hub from its image.

use super::proof::{TIMEOUT, eventually, shown};
use super::{install_kinds, kubectl_apply};
use anyhow::{Context, Result, ensure};
use kube::config::Kubeconfig;
use portolan_lab::{Cluster, Lab, LabBuilder, PORTOLAN_IMAGE, Seen, portolan_binary, portolan_image};
use portolan_tests::{NAMESPACE, foreign_cluster, open_namespace};
use serde_json::{Value, json};
use std::process::Stdio;

/// Stops the controllers of a node where they are, so that they do nothing more, and ends them later as a crash does.
const SIGNAL: &str =
    "for p in /proc/[0-9]*; do [ \"$(readlink $p/exe)\" = /portolan ] && kill -$0 ${p#/proc/}; done; true";

/// The pods of the controller.
pub(super) const CONTROLLER: &str = "app.kubernetes.io/name=portolan,app.kubernetes.io/component=controller";

/// Cluster `c1` is the hub; the others are its members.
pub(super) struct Fleet {
    pub(super) lab: Lab,
}

impl Fleet {
    /// Starts the clusters and makes the members known to the hub; more of each ForeignCluster by `describe`.
    pub(super) async fn start(members: u32, describe: impl Fn(&str) -> Value) -> Result<Self> {
        Self::start_on(Lab::builder().clusters(members + 1), describe).await
    }

    /// The same on clusters of this description.
    pub(super) async fn start_on(lab: LabBuilder, describe: impl Fn(&str) -> Value) -> Result<Self> {
        let fleet = Self { lab: lab.start().await? };
        let hub = fleet.hub()?;
        install_kinds(hub).await?;
        hub.kubectl(&["create", "namespace", "portolan"]).await?;
        kubectl_apply(hub, &[open_namespace()]).await?;
        for member in fleet.members() {
            kubectl_apply(member, &[open_namespace()]).await?;
            let path = member.kubeconfig_path();
            let path = path.to_str().context("the kubeconfig's path is text")?;
            let from = format!("--from-file=kubeconfig={path}");
            hub.kubectl(&["-n", "portolan", "create", "secret", "generic", member.name(), &from]).await?;
            let mut foreign = foreign_cluster(member.name());
            merge(&mut foreign, describe(member.name()));
            kubectl_apply(hub, &[foreign]).await?;
        }
        Ok(fleet)
    }

    /// Runs a proof on a fresh fleet with the controller at work; if it fails, the clusters are shown and the failure is
    /// the last that is said.
    pub(super) async fn prove(self, proof: impl AsyncFnOnce(&Self) -> Result<()>) -> Result<()> {
        shown(&self.lab, async {
            self.start_controller().await?;
            proof(&self).await
        })
        .await?;
        self.lab.down()
    }

    pub(super) fn hub(&self) -> Result<&Cluster> {
        self.lab.cluster("c1")
    }

    pub(super) fn member(&self, name: &str) -> Result<&Cluster> {
        self.lab.cluster(name)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Cluster> {
        self.lab.clusters().iter().skip(1)
    }

    /// Installs Portolan in the hub from its image, or starts it again, and waits until it knows all members.
    pub(super) async fn start_controller(&self) -> Result<()> {
        let hub = self.hub()?;
        if hub.control_plane().dir().join("portolan").exists() {
            scale_controller(hub, "--replicas=1").await?;
        } else {
            self.provide_commands().await?;
            hub.load_image(&portolan_image().await?).await?;
            let image = image_values()?;
            let (code, out, err) = self.portolan(&["install", "--set", &image]).await?;
            ensure!(code == 0, "portolan install: {out}{err}");
        }
        let names: Vec<String> =
            self.members().map(|each| format!("foreigncluster/{}", each.name())).collect();
        let mut wait = vec!["wait", "--for=condition=Ready", TIMEOUT];
        wait.extend(names.iter().map(String::as_str));
        hub.kubectl(&wait).await.map(|_| ())
    }

    /// Puts Portolan's binary and the hub's kubeconfig into the hub's node, for [`portolan`](Self::portolan).
    pub(super) async fn provide_commands(&self) -> Result<()> {
        let (hub, binary) = (self.hub()?, portolan_binary().await?);
        let dir = hub.control_plane().dir();
        std::fs::copy(binary, dir.join("portolan")).context("cannot put the binary into the node")?;
        std::fs::copy(hub.kubeconfig_path(), dir.join("hub.kubeconfig"))?;
        Ok(())
    }

    /// Applies an account and its roles to the hub, and writes a kubeconfig with its token into the hub's node.
    pub(super) async fn account(
        &self,
        file: &str,
        namespace: &str,
        account: &str,
        objects: &[Value],
    ) -> Result<()> {
        let hub = self.hub()?;
        kubectl_apply(hub, objects).await?;
        let create = ["-n", namespace, "create", "token", account, "--duration=4h"];
        let token = hub.kubectl(&create).await?;
        let dir = hub.control_plane().dir();
        let admin = Kubeconfig::read_from(dir.join("hub.kubeconfig"))?;
        let context = json!({"cluster": admin.clusters[0].name, "user": account});
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": account, "clusters": admin.clusters,
            "users": [{"name": account, "user": {"token": token.trim()}}],
            "contexts": [{"name": account, "context": context}],
        });
        std::fs::write(dir.join(format!("{file}.kubeconfig")), kubeconfig.to_string()).map_err(Into::into)
    }

    /// Runs Portolan's binary in the hub's network with the hub's kubeconfig; answers its exit code and what it printed on
    /// both streams.
    pub(super) async fn portolan(&self, arguments: &[&str]) -> Result<(i32, String, String)> {
        self.portolan_as("/lab/hub.kubeconfig", arguments).await
    }

    /// The same with another kubeconfig, by its path in the node.
    pub(super) async fn portolan_as(
        &self,
        kubeconfig: &str,
        arguments: &[&str],
    ) -> Result<(i32, String, String)> {
        let mut command = vec!["/lab/portolan"];
        command.extend(arguments);
        command.extend(["--kubeconfig", kubeconfig]);
        let command = self.hub()?.control_plane().command(&command)?;
        let output = tokio::process::Command::from(command).stdin(Stdio::null()).output().await?;
        let code = output.status.code().with_context(|| format!("portolan was ended: {}", output.status))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((code, text(&output.stdout), text(&output.stderr)))
    }

    /// Ends the controller as a crash does, and keeps it away until it is started again.
    pub(super) async fn kill_controller(&self) -> Result<()> {
        let hub = self.hub()?;
        let signal = async |signal: &str| {
            for node in hub.workers() {
                node.exec(&["sh", "-c", SIGNAL, signal]).await?;
            }
            anyhow::Ok(())
        };
        signal("STOP").await?;
        scale_controller(hub, "--replicas=0").await?;
        signal("KILL").await?;
        hub.kubectl(&["-n", "portolan", "wait", "--for=delete", "pod", "-l", CONTROLLER, TIMEOUT])
            .await
            .map(|_| ())
    }

    /// Applies objects to the hub.
    pub(super) async fn apply(&self, object: Value) -> Result<()> {
        kubectl_apply(self.hub()?, &[object]).await.map(|_| ())
    }

    /// Waits until a MultiClusterDeployment is Ready with these locations, such as `c2=1,c3=2`.
    pub(super) async fn placed(&self, name: &str, locations: &str) -> Result<Value> {
        self.until(name, &format!("it is ready in {locations}"), |status| {
            is_ready(status) && status["locationsSummary"] == locations
        })
        .await
    }

    /// Waits until the status of a MultiClusterDeployment is as asked for, and answers it.
    pub(super) async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let what = format!("mcd/{name}: {what}");
        eventually(&what, async || {
            let object = self.get(name).await?;
            let current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            let status = object["status"].clone();
            Ok(if current && holds(&status) { Seen::Ready(status) } else { Seen::NotYet(status.to_string()) })
        })
        .await
    }

    pub(super) async fn get(&self, name: &str) -> Result<Value> {
        let text =
            self.hub()?.kubectl(&["-n", NAMESPACE, "get", &format!("mcd/{name}"), "-o", "json"]).await?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Deletes a MultiClusterDeployment and waits until it is gone; nothing of it is left in any member.
    pub(super) async fn delete(&self, name: &str) -> Result<()> {
        self.hub()?.kubectl(&["-n", NAMESPACE, "delete", &format!("mcd/{name}"), TIMEOUT]).await?;
        for member in self.members() {
            gone(member, "deployments", &format!("app={name}")).await?;
        }
        Ok(())
    }
}

/// The values of an installation that runs the image which the tests have loaded.
pub(super) fn image_values() -> Result<String> {
    let (repository, tag) = PORTOLAN_IMAGE.rsplit_once(':').context("the image has a tag")?;
    Ok(format!("image.repository={repository},image.tag={tag},image.pullPolicy=Never"))
}

async fn scale_controller(hub: &Cluster, replicas: &str) -> Result<()> {
    let scale = ["-n", "portolan", "scale", "deployment/portolan-controller", replicas];
    hub.kubectl(&scale).await.map(|_| ())
}

/// Waits until a member has none of these.
pub(super) async fn gone(member: &Cluster, kind: &str, selector: &str) -> Result<()> {
    eventually(&format!("{} has no {kind} with {selector}", member.name()), async || {
        let left = list(member, kind, selector).await?;
        Ok(if left.is_empty() { Seen::Ready(()) } else { Seen::NotYet(json!(left).to_string()) })
    })
    .await
}

pub(super) fn is_ready(status: &Value) -> bool {
    is_true(status, "Ready")
}

pub(super) fn is_true(status: &Value, condition: &str) -> bool {
    let conditions = status["conditions"].as_array();
    conditions.into_iter().flatten().any(|each| each["type"] == condition && each["status"] == "True")
}

pub(super) async fn list(cluster: &Cluster, kind: &str, selector: &str) -> Result<Vec<Value>> {
    let text = cluster.kubectl(&["-n", NAMESPACE, "get", kind, "-l", selector, "-o", "json"]).await?;
    let list: Value = serde_json::from_str(&text)?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

/// The uids of objects, in order: the same ones are still there if these are the same.
pub(super) fn uids(objects: &[Value]) -> Vec<String> {
    let mut uids: Vec<_> = objects.iter().map(|object| object["metadata"]["uid"].to_string()).collect();
    uids.sort();
    uids
}

/// The template of a workload with a request of CPU.
pub(super) fn asking(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main",
                "image": "portolan.test/busybox:1",
                "command": ["sh", "-c", "while true; do sleep 1; done"],
                "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}},
            }],
        },
    })
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

//! Clusters on which Portolan is installed by its own command, and runs as pods from its image.

use super::fleet::{Fleet, image_values, uids};
use super::granted::of_controller;
use super::proof::step;
use anyhow::{Context, Result, ensure};
use portolan_lab::{Cluster, Lab, portolan_binary};
use portolan_tests::NAMESPACE;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub(super) struct Installed {
    /// Its first cluster is the hub, and the others are its members as soon as they have peered.
    pub(super) fleet: Fleet,
    /// Portolan's binary in the tree.
    pub(super) binary: PathBuf,
    kubeconfig: PathBuf,
}

impl Installed {
    /// Starts clusters with an audit log. Nothing is installed yet.
    pub(super) async fn start(clusters: u32) -> Result<Self> {
        let binary = portolan_binary().await?;
        let lab = Lab::builder().clusters(clusters).audit().start().await?;
        let kubeconfig = lab.kubeconfig_path()?;
        Ok(Self { fleet: Fleet { lab }, binary, kubeconfig })
    }

    pub(super) fn lab(&self) -> &Lab {
        &self.fleet.lab
    }

    /// Loads an image into all nodes.
    pub(super) async fn load(&self, image: &Path) -> Result<()> {
        step("load the image", self.lab().load_image(image)).await
    }

    /// Installs Portolan in a cluster from the image that the tests have loaded, and has it call itself like its context.
    pub(super) async fn install(&self, context: &str) -> Result<()> {
        let image = image_values()?;
        let install = ["install", "--context", context, "--cluster-name", context, "--set", &image];
        step(&format!("install in {context}"), self.portolan(&install)).await.map(|_| ())
    }

    /// Runs a command of Portolan that must succeed; what it prints as data.
    pub(super) async fn portolan(&self, arguments: &[&str]) -> Result<String> {
        self.by(&self.binary, arguments).await
    }

    /// The same by another build of the program.
    pub(super) async fn by(&self, binary: &Path, arguments: &[&str]) -> Result<String> {
        let kubeconfig = self.kubeconfig.to_str().context("the path of the kubeconfig is text")?;
        succeed(binary, &[arguments, &["--kubeconfig", kubeconfig]].concat()).await
    }

    /// Runs a command of Portolan; whether it succeeded, and what it told.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<(bool, String)> {
        let mut command = tokio::process::Command::new(&self.binary);
        command.args(arguments).arg("--kubeconfig").arg(&self.kubeconfig).stdin(Stdio::null());
        let output = command.output().await?;
        Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

pub(super) async fn succeed(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = tokio::process::Command::new(program).args(arguments).stdin(Stdio::null()).output().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let told = || format!("{}{}", text(&output.stdout), text(&output.stderr));
    ensure!(output.status.success(), "{} {}: {}", program.display(), arguments.join(" "), told());
    Ok(text(&output.stdout))
}

/// The pods of the workload in the member, and how often they were restarted.
pub(super) async fn running(member: &Cluster) -> Result<(Vec<String>, Vec<String>)> {
    let text = member.kubectl(&["-n", NAMESPACE, "get", "pods", "-l", "app=web", "-o", "json"]).await?;
    let list: Value = serde_json::from_str(&text)?;
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    let restarts = pods.iter().map(|pod| pod["status"]["containerStatuses"][0]["restartCount"].to_string());
    Ok((uids(&pods), restarts.collect()))
}

/// What was refused to the controller's account.
pub(super) fn refused(log: &str) -> Result<BTreeSet<String>> {
    let own = of_controller(log)?;
    let forbidden =
        own.iter().filter(|event| event["annotations"]["authorization.k8s.io/decision"] == "forbid");
    Ok(forbidden.map(|event| format!("{} {}", event["verb"], event["requestURI"])).collect())
}

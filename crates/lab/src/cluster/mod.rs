//! A cluster: a control plane and nodes that run pods.

mod bring_up;
mod control;
mod growth;
mod waiting;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::command::run;
use crate::component::{AUDIT_LOG, Component};
use crate::node::Node;
use crate::pki::Authority;
use crate::report::Timings;
use crate::state::{ClusterState, LabState};
use crate::wait::{Seen, until};

/// How long a single component may take to come up on a busy machine.
const UP_LIMIT: Duration = Duration::from_secs(300);

/// A cluster of a lab.
#[derive(Clone, Debug)]
pub struct Cluster {
    dir: PathBuf,
    lab: LabState,
    state: ClusterState,
    nodes: Vec<Node>,
}

impl Cluster {
    pub(crate) fn new(lab: &LabState, state: &ClusterState) -> Result<Self> {
        let nodes =
            state.nodes.iter().map(|node| Node::new(lab, &state.name, node)).collect::<Result<_>>()?;
        Ok(Cluster { dir: lab.dir()?.join(&state.name), lab: lab.clone(), state: state.clone(), nodes })
    }

    pub(crate) async fn bring_up(&self, timings: &Timings) -> Result<()> {
        bring_up::start(self, timings).await.with_context(|| format!("cannot start cluster {}", self.name()))
    }

    /// Name of the cluster, also of its context in kubeconfigs.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Its ranges and nodes as written down.
    pub fn state(&self) -> &ClusterState {
        &self.state
    }

    /// Its nodes; the first one runs the control plane. Simulated nodes are not among them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes that run pods.
    pub fn workers(&self) -> &[Node] {
        &self.nodes[self.state.nodes_without_pods()..]
    }

    /// A node by its name.
    pub fn node(&self, name: &str) -> Result<&Node> {
        self.nodes.iter().find(|node| node.name() == name).with_context(|| {
            let known: Vec<&str> = self.nodes.iter().map(Node::name).collect();
            format!("cluster {} has no node {name:?}; it has {}", self.name(), known.join(", "))
        })
    }

    /// The node that runs the control plane.
    pub fn control_plane(&self) -> &Node {
        // A cluster without nodes is refused by the builder.
        &self.nodes[0]
    }

    /// URL of the API server, valid on the host and in all clusters.
    pub fn api_server(&self) -> String {
        format!("https://{}:6443", self.control_plane().address())
    }

    /// File with the administrator's kubeconfig.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> Result<Kubeconfig> {
        let path = self.kubeconfig_path();
        Kubeconfig::read_from(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// The authority that signs the cluster's certificates.
    pub(crate) fn authority(&self) -> Result<Authority> {
        let etc = self.control_plane().dir().join("etc");
        let read = |name: &str| {
            let path = etc.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        Authority::load(&self.authority_name(), read("ca.crt")?, &read("ca.key")?)
    }

    fn authority_name(&self) -> String {
        format!("{}-ca", self.name())
    }

    /// A client with the administrator's rights.
    pub async fn client(&self) -> Result<Client> {
        let config = kube::Config::from_custom_kubeconfig(self.kubeconfig()?, &KubeConfigOptions::default())
            .await
            .with_context(|| format!("cannot use the kubeconfig of cluster {}", self.name()))?;
        Client::try_from(config).with_context(|| format!("cannot make a client for cluster {}", self.name()))
    }

    /// Runs kubectl on the host and returns what it printed.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        run(self.kubectl_command(args)).await
    }

    /// A kubectl command for this cluster, for those who want to hold its streams themselves.
    pub fn kubectl_command(&self, args: &[&str]) -> Command {
        let mut kubectl = Command::new(self.lab.bin.join("kubectl"));
        kubectl.arg("--kubeconfig").arg(self.kubeconfig_path()).args(args);
        kubectl
    }

    /// The API server's audit log so far, one event of `audit.k8s.io/v1` a line. The lab must be built with `audit()`.
    pub fn audit_log(&self) -> Result<String> {
        let file = self.control_plane().dir().join(AUDIT_LOG.trim_start_matches("/lab/"));
        std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}: was the lab built with audit()?", file.display()))
    }

    /// Imports an image archive into containerd of every node.
    pub async fn load_image(&self, archive: &Path) -> Result<()> {
        futures::future::try_join_all(self.workers().iter().map(|node| node.load_image(archive))).await?;
        Ok(())
    }

    async fn spawn(&self, component: Component, node: &Node) -> Result<()> {
        node.spawn(component, &component.command_line(&self.state, node)?).await
    }

    /// Waits until a component listens; the API server must also say that it is ready.
    async fn wait_until_up(&self, component: Component, node: &Node) -> Result<()> {
        let what = format!("{component} on node {} is up", node.name());
        until(&what, UP_LIMIT, Duration::from_millis(20), async || {
            Ok(match node.listens(component).await {
                Ok(()) => Seen::Ready(()),
                Err(error) => {
                    self.ensure_alive(component, node)?;
                    Seen::NotYet(format!("{error:#}"))
                }
            })
        })
        .await?;
        if component == Component::ApiServer { self.wait_until_api_ready().await } else { Ok(()) }
    }

    async fn wait_until_api_ready(&self) -> Result<()> {
        let client = self.client().await?;
        let what = format!("the API server of cluster {} is ready", self.name());
        until(&what, UP_LIMIT, Duration::from_millis(50), async || {
            let request = http::Request::get("/readyz").body(Vec::new())?;
            Ok(match client.request_text(request).await {
                Ok(_) => Seen::Ready(()),
                Err(error) => {
                    self.ensure_alive(Component::ApiServer, self.control_plane())?;
                    self.ensure_alive(Component::Etcd, self.control_plane())?;
                    Seen::NotYet(error.to_string())
                }
            })
        })
        .await
    }

    fn ensure_alive(&self, component: Component, node: &Node) -> Result<()> {
        ensure!(
            node.pid_of(component).is_some(),
            "{component} on node {} has ended; the end of its log:\n{}",
            node.name(),
            node.log_tail(component, 15)
        );
        Ok(())
    }
}

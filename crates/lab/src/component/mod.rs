//! The programs a cluster is made of: their command lines and configuration files.

mod control_plane;
mod worker;

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};

pub(crate) use control_plane::{AUDIT_LOG, write_control_plane_files, write_identity};
pub(crate) use worker::{CONTAINERD_SOCKET, dns_address, write_node_files};

use crate::node::Node;
use crate::state::ClusterState;

/// A program that runs on a node and can be stopped and started by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The store, on the control-plane node.
    Etcd,
    /// The API server, on the control-plane node.
    ApiServer,
    /// The controllers of Kubernetes, on the control-plane node.
    ControllerManager,
    /// The scheduler, on the control-plane node.
    Scheduler,
    /// The simulator of nodes, on the control-plane node if there are any.
    Kwok,
    /// The container runtime, on every node.
    Containerd,
    /// The node agent, on every node.
    Kubelet,
    /// The service proxy, on every node.
    Proxy,
}

impl Component {
    /// All components, in the order in which they are started.
    pub const ALL: [Component; 8] = [
        Component::Etcd,
        Component::ApiServer,
        Component::Containerd,
        Component::ControllerManager,
        Component::Scheduler,
        Component::Kubelet,
        Component::Proxy,
        Component::Kwok,
    ];

    /// Name of the program, its log and its row in reports.
    pub fn name(self) -> &'static str {
        match self {
            Component::Etcd => "etcd",
            Component::ApiServer => "kube-apiserver",
            Component::ControllerManager => "kube-controller-manager",
            Component::Scheduler => "kube-scheduler",
            Component::Kwok => "kwok",
            Component::Containerd => "containerd",
            Component::Kubelet => "kubelet",
            Component::Proxy => "kube-proxy",
        }
    }

    /// Whether it belongs to the control plane and so runs on the first node only.
    pub fn is_control_plane(self) -> bool {
        !matches!(self, Component::Containerd | Component::Kubelet | Component::Proxy)
    }

    /// The port of the node on which it listens when it is up; containerd has a socket instead.
    pub(crate) fn port(self) -> Option<u16> {
        match self {
            Component::Etcd => Some(2381),
            Component::ApiServer => Some(6443),
            Component::ControllerManager => Some(10257),
            Component::Scheduler => Some(10259),
            Component::Kwok => Some(10247),
            Component::Kubelet => Some(10250),
            Component::Proxy => Some(10256),
            Component::Containerd => None,
        }
    }

    pub(crate) fn command_line(self, cluster: &ClusterState, node: &Node) -> Result<Vec<String>> {
        Ok(match self {
            Component::Etcd => control_plane::etcd(node),
            Component::ApiServer => control_plane::api_server(cluster, node),
            Component::ControllerManager => control_plane::controller_manager(cluster),
            Component::Scheduler => control_plane::scheduler(),
            Component::Kwok => control_plane::kwok(node)?,
            Component::Containerd => worker::containerd(),
            Component::Kubelet => worker::kubelet(node),
            Component::Proxy => worker::proxy(),
        })
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Component {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let wanted = text.trim_start_matches("kube-");
        match Component::ALL.into_iter().find(|known| known.name().trim_start_matches("kube-") == wanted) {
            Some(component) => Ok(component),
            None => {
                let known: Vec<&str> = Component::ALL.iter().map(|each| each.name()).collect();
                bail!("no component is named {text:?}; there are {}", known.join(", "))
            }
        }
    }
}

fn words(program: &str, flags: &[String]) -> Vec<String> {
    let mut words = vec![format!("/opt/lab/bin/{program}")];
    words.extend_from_slice(flags);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_and_without_their_prefix() {
        assert_eq!("kube-apiserver".parse::<Component>().unwrap(), Component::ApiServer);
        assert_eq!("proxy".parse::<Component>().unwrap(), Component::Proxy);
        let error = "dockerd".parse::<Component>().unwrap_err().to_string();
        assert!(error.contains("containerd, kube-controller-manager"), "{error}");
    }
}

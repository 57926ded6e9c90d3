//! containerd, kubelet and kube-proxy, and the pod network's plugins.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;

use super::control_plane::{write, write_identity};
use super::words;
use crate::host;
use crate::node::Node;
use crate::parts::PAUSE_IMAGE;
use crate::pki::Authority;
use crate::state::{ClusterState, NodeState};

/// Where containerd listens in a node.
pub(crate) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// Writes keys, certificates and configuration of what runs on every node.
pub(crate) fn write_node_files(
    cluster: &ClusterState,
    state: &NodeState,
    node: &Node,
    api_server: &str,
    ca: &Authority,
) -> Result<()> {
    let etc = node.dir().join("etc");
    fs::create_dir_all(etc.join("cni")).with_context(|| format!("cannot make {}/cni", etc.display()))?;
    let kubelet = ca.server(
        &format!("system:node:{}", state.name),
        Some("system:nodes"),
        &[&state.name],
        &[state.address],
    )?;
    write(&etc.join("ca.crt"), &ca.certificate)?;
    write_identity(&etc, "kubelet", &kubelet)?;
    write(&etc.join("kubelet.kubeconfig"), &ca.kubeconfig(&cluster.name, api_server, &kubelet)?)?;
    let proxy = ca.client("system:kube-proxy", None)?;
    write(&etc.join("kube-proxy.kubeconfig"), &ca.kubeconfig(&cluster.name, api_server, &proxy)?)?;
    write(&etc.join("kubelet.json"), &kubelet_config(cluster, state)?.to_string())?;
    write(&etc.join("kube-proxy.json"), &proxy_config(cluster, state).to_string())?;
    write(&etc.join("containerd.toml"), &containerd_config())?;
    write(&etc.join("cni/10-lab.conflist"), &cni_config(state).to_string())
}

pub(super) fn containerd() -> Vec<String> {
    words("containerd", &["--config=/lab/etc/containerd.toml".to_owned(), "--log-level=info".to_owned()])
}

pub(super) fn kubelet(node: &Node) -> Vec<String> {
    words(
        "kubelet",
        &[
            "--config=/lab/etc/kubelet.json".to_owned(),
            "--kubeconfig=/lab/etc/kubelet.kubeconfig".to_owned(),
            format!("--node-ip={}", node.address()),
            format!("--hostname-override={}", node.name()),
        ],
    )
}

pub(super) fn proxy() -> Vec<String> {
    words("kube-proxy", &["--config=/lab/etc/kube-proxy.json".to_owned()])
}

fn kubelet_config(cluster: &ClusterState, node: &NodeState) -> Result<serde_json::Value> {
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "0.0.0.0",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": "/lab/etc/ca.crt" },
        },
        "authorization": { "mode": "Webhook" },
        "tlsCertFile": "/lab/etc/kubelet.crt",
        "tlsPrivateKeyFile": "/lab/etc/kubelet.key",
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "clusterDNS": [dns_address(cluster)?],
        "clusterDomain": "cluster.local",
        // The lab reaches nothing outside, so pods get no name server but the cluster's.
        "resolvConf": "/dev/null",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "failSwapOn": false,
        // Lowering one's score takes a capability that containers and small machines lack.
        "oomScoreAdj": 0,
        "localStorageCapacityIsolation": false,
        "evictionHard": {
            "memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": false,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        "eventRecordQPS": 100,
        // A lease is renewed four times in its duration: well within the silence that is allowed.
        "nodeLeaseDurationSeconds": cluster.silence.unwrap_or(40),
    });
    if let Some(machine) = &node.machine {
        config["providerID"] = json!(machine.provider_id);
        // A kubelet takes the whole host for its machine: what goes beyond the machine's size is reserved.
        let beyond = host::size()?.beyond(&machine.size)?;
        config["systemReserved"] =
            json!({ "cpu": format!("{}m", beyond.millicpus), "memory": beyond.memory.to_string() });
    }
    Ok(config)
}

fn proxy_config(cluster: &ClusterState, state: &NodeState) -> serde_json::Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": { "kubeconfig": "/lab/etc/kube-proxy.kubeconfig", "qps": 100, "burst": 200 },
        "clusterCIDR": cluster.pods,
        "hostnameOverride": state.name,
        "healthzBindAddress": "0.0.0.0:10256",
        "oomScoreAdj": 0,
        // These limits are the machine's, not the node's.
        "conntrack": { "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s" },
        "nftables": { "minSyncPeriod": "0s", "syncPeriod": "30s" },
    })
}

fn containerd_config() -> String {
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
  enable_experimental_restore_via_create = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "/lab/etc/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        SystemdCgroup = false
"#
    )
}

fn cni_config(state: &NodeState) -> serde_json::Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                // Not ipMasq: it would also hide a pod from the pods of other nodes.
                "ipMasq": false,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{ "subnet": state.pods }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
            // Go listens on MPTCP by default, and CRIU cannot dump such a socket.
            { "type": "tuning", "sysctl": { "net.mptcp.enabled": "0" } },
        ],
    })
}

/// Address of the cluster's DNS service.
pub(crate) fn dns_address(cluster: &ClusterState) -> Result<std::net::Ipv4Addr> {
    cluster.services.address(10)
}

//! metrics-server, as a program on the node of the control plane, behind the cluster's own API.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::addons;
use crate::cluster::Cluster;
use crate::component::write_identity;
use crate::parts;
use crate::wait::Seen;

const NAME: &str = "metrics-server";
const NAMESPACE: &str = "kube-system";
const PORT: u16 = 4443;
/// The shortest time between two readings that it allows.
const RESOLUTION: &str = "10s";
const LIMIT: Duration = Duration::from_secs(300);

impl Cluster {
    /// Starts metrics-server and waits until the API has numbers of every node that runs pods.
    pub async fn start_metrics_server(&self) -> Result<()> {
        let program =
            tokio::task::spawn_blocking(|| parts::metrics_server(&mut |step| eprintln!("lab: {step}")));
        let node = self.control_plane();
        node.provide(&program.await??, NAME)?;
        let ca = self.authority()?;
        let identity = ca.server(NAME, None, &[&format!("{NAME}.{NAMESPACE}.svc")], &[node.address()])?;
        write_identity(&node.dir().join("etc"), NAME, &identity)?;
        let kubeconfig = "/lab/etc/admin.kubeconfig";
        let flags = [
            format!("/lab/{NAME}"),
            format!("--secure-port={PORT}"),
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--tls-cert-file=/lab/etc/{NAME}.crt"),
            format!("--tls-private-key-file=/lab/etc/{NAME}.key"),
            "--kubelet-certificate-authority=/lab/etc/ca.crt".to_owned(),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--metric-resolution={RESOLUTION}"),
            // It must be shorter than the time between two readings.
            "--kubelet-request-timeout=5s".to_owned(),
        ];
        node.spawn_program(NAME, &flags).await?;
        let groups = [("metrics.k8s.io", "v1beta1")];
        let objects = aggregated(NAME, (node.address(), PORT), &groups, &ca.certificate);
        addons::apply(&self.client().await?, &objects).await?;
        let wanted = self.workers().len();
        self.wait_until("there are numbers of every node", LIMIT, async || {
            let numbers = self.kubectl(&["get", "nodes.metrics.k8s.io", "-o", "name"]).await;
            node.ensure_program_runs(NAME)?;
            let log = node.program_log_tail(NAME, 5);
            Ok(match numbers {
                Ok(numbers) if numbers.lines().count() == wanted => Seen::Ready(()),
                Ok(numbers) => Seen::NotYet(format!("{numbers}; {log}")),
                Err(error) => Seen::NotYet(format!("{error:#}; {log}")),
            })
        })
        .await
        .with_context(|| format!("{NAME} does not work"))
    }
}

/// A Service of what is no pod, and groups of the API behind it.
pub(crate) fn aggregated(
    name: &str,
    (address, port): (Ipv4Addr, u16),
    groups: &[(&str, &str)],
    authority: &str,
) -> String {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]},
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": name}},
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
    });
    let groups = groups.iter().map(|(group, version)| {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("{version}.{group}")},
            "spec": {
                "group": group, "version": version, "service": metadata,
                "groupPriorityMinimum": 100, "versionPriority": 100, "caBundle": STANDARD.encode(authority),
            },
        })
    });
    let all: Vec<String> =
        [service, slice].into_iter().chain(groups).map(|object| object.to_string()).collect();
    all.join("\n---\n")
}

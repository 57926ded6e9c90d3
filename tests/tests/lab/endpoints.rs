//! Other ways to an API server than its own address: a NodePort, and something that hands TLS on as it comes, as a load balancer
//! does, or an Ingress that passes TLS through.

use super::kubectl_apply;
use super::proof::eventually;
use anyhow::Result;
use portolan_lab::{Cluster, Seen};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The port of the API server of a lab's cluster, on the node of its control plane.
const SERVER: u16 = 6443;
/// The port of the Service on all nodes.
const NODE_PORT: u16 = 30443;
/// A name that the certificate of each API server has.
pub(super) const TLS_NAME: &str = "kubernetes";

const NAME: &str = "api-outside";
const NAMESPACE: &str = "default";

/// Makes a Service with a NodePort that leads to the API server of a cluster; answers the URL.
pub(super) async fn open_node_port(cluster: &Cluster) -> Result<String> {
    let address = cluster.control_plane().address();
    let ports = json!([{"name": "https", "port": 443, "targetPort": SERVER, "nodePort": NODE_PORT}]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"type": "NodePort", "ports": ports},
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address.to_string()], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": SERVER, "protocol": "TCP"}],
    });
    kubectl_apply(cluster, &[service, slice]).await?;
    let outside = format!("{address}:{NODE_PORT}");
    eventually("the NodePort answers", async || {
        Ok(match TcpStream::connect(&outside).await {
            Ok(_) => Seen::Ready(()),
            Err(error) => Seen::NotYet(error.to_string()),
        })
    })
    .await?;
    Ok(format!("https://{outside}"))
}

/// Deletes that Service.
pub(super) async fn close_node_port(cluster: &Cluster) -> Result<()> {
    let objects = [format!("service/{NAME}"), format!("endpointslice/{NAME}")];
    let delete = ["-n", NAMESPACE, "delete", &objects[0], &objects[1]];
    cluster.kubectl(&delete).await.map(|_| ())
}

/// Hands connections on to an API server as they come, for as long as it is there.
pub(super) struct Passthrough {
    /// The URL by which the API server is reached.
    pub(super) url: String,
    task: JoinHandle<()>,
}

impl Passthrough {
    /// Listens at an address of the host.
    pub(super) async fn start(at: Ipv4Addr, cluster: &Cluster) -> Result<Self> {
        let listener = TcpListener::bind((at, 0)).await?;
        let url = format!("https://{}", listener.local_addr()?);
        let to: SocketAddr = format!("{}:{SERVER}", cluster.control_plane().address()).parse()?;
        let task = tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                tokio::spawn(async move {
                    // One of both ends it, now or later.
                    if let Ok(mut onward) = TcpStream::connect(to).await {
                        let _ = copy_bidirectional(&mut from, &mut onward).await;
                    }
                });
            }
        });
        Ok(Self { url, task })
    }
}

impl Drop for Passthrough {
    fn drop(&mut self) {
        self.task.abort();
    }
}

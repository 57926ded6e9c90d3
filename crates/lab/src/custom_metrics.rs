//! An adapter of custom and external metrics, as a program on the node of the control plane, behind the cluster's own API.
//!
//! It is the one that `sigs.k8s.io/custom-metrics-apiserver` has for tests: an aggregated API server like every adapter that
//! is built on that library, whose custom metrics are what was written to it last. Its external metrics are fixed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::addons;
use crate::cluster::Cluster;
use crate::component::write_identity;
use crate::metrics::aggregated;
use crate::parts;
use crate::wait::Seen;

const NAME: &str = "custom-metrics";
const PORT: u16 = 6444;
/// Where values are written to; the program does not let it be chosen.
const WRITE_PORT: u16 = 8080;
const LIMIT: Duration = Duration::from_secs(120);
/// Group and version that it serves.
const GROUPS: [(&str, &str); 2] =
    [("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1")];

impl Cluster {
    /// Starts the adapter and waits until the API serves both kinds of metrics.
    pub async fn start_custom_metrics(&self) -> Result<()> {
        let program = tokio::task::spawn_blocking(|| {
            parts::custom_metrics_adapter(&mut |step| eprintln!("lab: {step}"))
        });
        let node = self.control_plane();
        node.provide(&program.await??, NAME)?;
        let ca = self.authority()?;
        let identity = ca.server(NAME, None, &[&format!("{NAME}.kube-system.svc")], &[node.address()])?;
        write_identity(&node.dir().join("etc"), NAME, &identity)?;
        let kubeconfig = "/lab/etc/admin.kubeconfig";
        let flags = [
            format!("/lab/{NAME}"),
            format!("--secure-port={PORT}"),
            format!("--lister-kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--tls-cert-file=/lab/etc/{NAME}.crt"),
            format!("--tls-private-key-file=/lab/etc/{NAME}.key"),
        ];
        node.spawn_program(NAME, &flags).await?;
        let objects = aggregated(NAME, (node.address(), PORT), &GROUPS, &ca.certificate);
        addons::apply(&self.client().await?, &objects).await?;
        self.wait_until("custom and external metrics are served", LIMIT, async || {
            node.ensure_program_runs(NAME)?;
            for (group, version) in GROUPS {
                if let Err(error) = self.kubectl(&["get", "--raw", &format!("/apis/{group}/{version}")]).await
                {
                    return Ok(Seen::NotYet(format!("{error:#}; {}", node.program_log_tail(NAME, 5))));
                }
            }
            Ok(Seen::Ready(()))
        })
        .await
        .with_context(|| format!("{NAME} does not work"))
    }

    /// Writes the value of a metric of an object, such as `namespaces/shop/services/web/requests`.
    pub async fn write_custom_metric(&self, path: &str, value: &str) -> Result<()> {
        let address = (self.control_plane().address(), WRITE_PORT);
        let mut stream = TcpStream::connect(address).await.context("cannot reach the adapter of metrics")?;
        let body = format!("{value:?}");
        let request = format!(
            "POST /write-metrics/{path} HTTP/1.0\r\nHost: {NAME}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let first = answer.lines().next().unwrap_or_default();
        ensure!(first.contains(" 200 "), "the adapter of metrics refuses {path}: {answer}");
        Ok(())
    }
}

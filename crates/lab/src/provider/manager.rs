//! The core controllers of Cluster API, as a program on the node of the management cluster's control plane.
//!
//! No webhook is registered: what they would set by default, the ClusterClass of the lab says itself.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpStream;

use super::kinds;
use crate::cluster::Cluster;
use crate::parts::ClusterApiParts;
use crate::pki::Authority;
use crate::wait::{Seen, until};

const NAME: &str = "cluster-api";
const HEALTH_PORT: u16 = 9440;
const LIMIT: Duration = Duration::from_secs(120);

/// Makes the kinds of Cluster API and of the lab's provider known to the cluster, and starts the controllers.
pub(super) async fn start(cluster: &Cluster, parts: &ClusterApiParts) -> Result<()> {
    let node = cluster.control_plane();
    let own = node.dir().join("etc/provider-definitions.json");
    write(&own, &kinds::definitions().to_string())?;
    for file in [&parts.definitions, &own] {
        let file = file.to_str().context("the path of the definitions is text")?;
        cluster.kubectl(&["apply", "--server-side", "-f", file]).await?;
        cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=120s", "-f", file]).await?;
    }

    node.provide(&parts.program, NAME)?;
    // It does not start without a certificate for the webhooks that nobody calls.
    let identity = Authority::new(NAME)?.server(NAME, None, &["localhost"], &[])?;
    let certificates = node.dir().join("etc").join(NAME);
    fs::create_dir_all(&certificates).with_context(|| format!("cannot make {}", certificates.display()))?;
    write(&certificates.join("tls.crt"), &identity.certificate)?;
    write(&certificates.join("tls.key"), &identity.key)?;
    let flags = [
        format!("/lab/{NAME}"),
        "--kubeconfig=/lab/etc/admin.kubeconfig".to_owned(),
        // At most one look at an object per second would make each step of a cluster take one.
        "--feature-gates=ClusterTopology=true,ReconcilerRateLimiting=false".to_owned(),
        format!("--webhook-cert-dir=/lab/etc/{NAME}"),
        format!("--health-addr=0.0.0.0:{HEALTH_PORT}"),
        "--diagnostics-address=127.0.0.1:8445".to_owned(),
        "--insecure-diagnostics".to_owned(),
    ];
    node.spawn_program(NAME, &flags).await?;
    until("the controllers of Cluster API run", LIMIT, Duration::from_millis(100), async || {
        Ok(match TcpStream::connect((node.address(), HEALTH_PORT)).await {
            Ok(_) => Seen::Ready(()),
            Err(error) => {
                node.ensure_program_runs(NAME)?;
                Seen::NotYet(error.to_string())
            }
        })
    })
    .await
}

/// The end of the controllers' log.
pub(super) fn log(cluster: &Cluster, lines: usize) -> String {
    cluster.control_plane().program_log_tail(NAME, lines)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

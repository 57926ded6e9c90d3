//! The core controllers of Cluster API, as a program on the node of the management cluster's control plane.
//!
//! Its webhooks are registered too, so that what is written is defaulted and checked as in production. The API server is on
//! the same node, and calls them by the address of the node.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::kinds;
use crate::cluster::Cluster;
use crate::parts::ClusterApiParts;
use crate::pki::Authority;
use crate::wait::{Seen, until};

const NAME: &str = "cluster-api";
const HEALTH_PORT: u16 = 9440;
const WEBHOOK_PORT: u16 = 9443;
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
    let authority = Authority::new(NAME)?;
    let identity = authority.server(NAME, None, &[], &[node.address()])?;
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
        format!("--webhook-port={WEBHOOK_PORT}"),
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
    .await?;
    register_webhooks(cluster, parts, &authority).await
}

/// Has the API server call the webhooks of the controllers, once they answer.
async fn register_webhooks(cluster: &Cluster, parts: &ClusterApiParts, authority: &Authority) -> Result<()> {
    let node = cluster.control_plane();
    until("the webhooks of Cluster API answer", LIMIT, Duration::from_millis(100), async || {
        Ok(match TcpStream::connect((node.address(), WEBHOOK_PORT)).await {
            Ok(_) => Seen::Ready(()),
            Err(error) => {
                node.ensure_program_runs(NAME)?;
                Seen::NotYet(error.to_string())
            }
        })
    })
    .await?;
    let path = &parts.webhooks;
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut list: Value = serde_json::from_str(&text).context("cannot read the webhooks of Cluster API")?;
    let server = format!("https://{}:{WEBHOOK_PORT}", node.address());
    let configurations = list["items"].as_array_mut().into_iter().flatten();
    let mut count = 0;
    for webhook in configurations.flat_map(|each| each["webhooks"].as_array_mut().into_iter().flatten()) {
        let service = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
        let bundle = STANDARD.encode(&authority.certificate);
        webhook["clientConfig"] = json!({ "url": format!("{server}{service}"), "caBundle": bundle });
        count += 1;
    }
    ensure!(count > 0, "the module of Cluster API has no webhooks in {}", path.display());
    let file = node.dir().join("etc/cluster-api-webhooks.json");
    write(&file, &list.to_string())?;
    let file = file.to_str().context("the path of the webhooks is text")?;
    cluster.kubectl(&["apply", "--server-side", "-f", file]).await.map(|_| ())
}

/// The end of the controllers' log.
pub(super) fn log(cluster: &Cluster, lines: usize) -> String {
    cluster.control_plane().program_log_tail(NAME, lines)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

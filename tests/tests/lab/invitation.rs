//! Invitations between two clusters in both of which Portolan runs as pods, from its image, with the rights of its account and
//! by no command but those that two administrators run.

use super::fleet::{CONTROLLER, image_values};
use super::installed::{Installed, refused, running};
use super::proof::{TIMEOUT, eventually, shown, step};
use super::{can_run, kubectl_apply};
use anyhow::{Context, Result, ensure};
use portolan_core::tenancy::InvitationLine;
use portolan_lab::{Cluster, Component, Seen, portolan_image};
use portolan_tests::{NAMESPACE, open_namespace, workload};
use serde_json::json;

/// The provider; the consumer is c2.
const PROVIDER: &str = "c1";
const CONSUMER: &str = "c2";

#[tokio::test(flavor = "multi_thread")]
async fn pods_in_both_clusters_peer_by_invitation_renew_and_part() -> Result<()> {
    if !can_run("pods_in_both_clusters_peer_by_invitation_renew_and_part") {
        return Ok(());
    }
    let installed = Installed::start().await?;
    shown(&installed.lab, async {
        installed.load(&portolan_image().await?).await?;
        let image = image_values()?;
        for context in [PROVIDER, CONSUMER] {
            let install = ["install", "--context", context, "--cluster-name", context, "--set", &image];
            step(&format!("install in {context}"), installed.portolan(&install)).await?;
        }
        let proof = Invited {
            installed: &installed,
            provider: installed.lab.cluster(PROVIDER)?,
            consumer: installed.lab.cluster(CONSUMER)?,
        };
        step("peered", proof.peers()).await?;
        step("survives its controllers", proof.outlives_its_controllers()).await?;
        step("renewed", proof.renews("portolan.dev/renew-certificate-at")).await?;
        step("parted", proof.parts()).await?;
        step("peered by token", proof.peers_by_token()).await?;
        proof.was_refused_nothing()
    })
    .await?;
    installed.lab.down()
}

struct Invited<'a> {
    installed: &'a Installed,
    provider: &'a Cluster,
    consumer: &'a Cluster,
}

impl Invited<'_> {
    /// An invitation, and what becomes of it.
    async fn invite(&self, more: &[&str]) -> Result<String> {
        let line = self.installed.portolan(&[&["invite", "--context", PROVIDER][..], more].concat()).await?;
        Ok(line.trim().to_owned())
    }

    async fn peer(&self, line: &str) -> Result<()> {
        self.installed.portolan(&["peer", line, "--context", CONSUMER]).await.map(|_| ())
    }

    async fn is_used(&self, line: &str) -> Result<()> {
        let id = InvitationLine::decode(line)?.invitation;
        let name = format!("invitation/{id}");
        let phase = ["-n", "portolan", "get", &name, "-o", "jsonpath={.status.phase}"];
        eventually("the invitation is used", async || {
            let found = self.provider.kubectl(&phase).await?;
            Ok(if found == "Used" { Seen::Ready(()) } else { Seen::NotYet(found) })
        })
        .await?;
        let (succeeded, told) = self.installed.run(&["peer", line, "--context", PROVIDER]).await?;
        ensure!(!succeeded, "a cluster peers with itself: {told}");
        Ok(())
    }

    async fn peers(&self) -> Result<()> {
        let line = self.invite(&["--namespace", NAMESPACE, "--sharing", "100%"]).await?;
        self.peer(&line).await?;
        self.is_used(&line).await?;
        let incoming = ["wait", "--for=condition=IncomingPeering", "foreigncluster/c2", TIMEOUT];
        self.provider.kubectl(&incoming).await?;
        kubectl_apply(self.consumer, &[open_namespace()]).await?;
        kubectl_apply(self.consumer, &[workload("web", 2, json!({"locations": [PROVIDER]}))]).await?;
        self.is_ready().await
    }

    async fn is_ready(&self) -> Result<()> {
        let ready = ["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcd/web", TIMEOUT];
        self.consumer.kubectl(&ready).await.map(|_| ())
    }

    /// All controllers of both sides are killed: others take their place, and no pod of the workload is touched.
    async fn outlives_its_controllers(&self) -> Result<()> {
        let pods = running(self.provider).await?;
        ensure!(pods.0.len() == 2, "{pods:?}");
        for cluster in [self.provider, self.consumer] {
            let kill = ["-n", "portolan", "delete", "pod", "-l", CONTROLLER, "--grace-period=0", "--force"];
            cluster.kubectl(&kill).await?;
        }
        for cluster in [self.provider, self.consumer] {
            let rollout = ["-n", "portolan", "rollout", "status", "deployment/portolan-controller", TIMEOUT];
            cluster.kubectl(&rollout).await?;
        }
        ensure!(running(self.provider).await? == pods, "pods were restarted");
        self.consumer.kubectl(&["-n", NAMESPACE, "scale", "mcd/web", "--replicas=1"]).await?;
        eventually("one replica is left", async || {
            let left = running(self.provider).await?.0;
            Ok(if left.len() == 1 { Seen::Ready(()) } else { Seen::NotYet(format!("{left:?}")) })
        })
        .await?;
        self.is_ready().await
    }

    /// The credential is due at once: another one takes its place, and the peering stays as it is.
    async fn renews(&self, due: &str) -> Result<()> {
        let before = self.held().await?;
        let due = format!("{due}={}", jiff::Timestamp::now());
        let annotate = ["-n", "portolan", "annotate", "secret/c1", "--overwrite", &due];
        self.consumer.kubectl(&annotate).await?;
        eventually("the credential is another one", async || {
            let now = self.held().await?;
            Ok(if now == before { Seen::NotYet("the old one".to_owned()) } else { Seen::Ready(()) })
        })
        .await?;
        self.consumer
            .kubectl(&["wait", "--for=condition=Ready", "foreigncluster/c1", TIMEOUT])
            .await
            .map(|_| ())
    }

    async fn held(&self) -> Result<String> {
        let path = "jsonpath={.data.kubeconfig}";
        let held = self.consumer.kubectl(&["-n", "portolan", "get", "secret/c1", "-o", path]).await?;
        ensure!(!held.is_empty(), "the Secret holds nothing");
        Ok(held)
    }

    /// The consumer leaves, and nothing of it is left in the provider.
    async fn parts(&self) -> Result<()> {
        self.consumer.kubectl(&["-n", NAMESPACE, "delete", "mcd/web", TIMEOUT]).await?;
        self.installed.portolan(&["unpeer", "c1", "--context", CONSUMER]).await?;
        self.nothing_is_left().await
    }

    async fn nothing_is_left(&self) -> Result<()> {
        eventually("the provider has nothing of the tenant", async || {
            let kinds = "foreignclusters,namespaces,clusterroles,clusterrolebindings,rolebindings,serviceaccounts,\
                         certificatesigningrequests";
            let selector = "portolan.dev/tenant";
            let mut left = self.provider.kubectl(&["get", kinds, "-A", "-l", selector, "-o", "name"]).await?;
            left += &self.provider.kubectl(&["get", "foreignclusters", "-o", "name"]).await?;
            Ok(if left.trim().is_empty() { Seen::Ready(()) } else { Seen::NotYet(left) })
        })
        .await
    }

    /// While the provider's signer does not run. The controllers are pods that run on.
    async fn peers_by_token(&self) -> Result<()> {
        self.provider.kill(Component::ControllerManager).await?;
        let line = self.invite(&[]).await?;
        let (peered, told) = self.installed.run(&["peer", &line, "--context", CONSUMER]).await?;
        self.provider.start(Component::ControllerManager).await?;
        ensure!(peered && told.contains("its token is valid until"), "{told}");
        self.is_used(&line).await?;
        self.renews("portolan.dev/renew-at").await?;
        let unpeer = ["unpeer", "c2", "--context", PROVIDER];
        self.installed.portolan(&unpeer).await?;
        self.nothing_is_left().await
    }

    /// Both controllers had all rights that they asked for.
    fn was_refused_nothing(&self) -> Result<()> {
        for cluster in [self.provider, self.consumer] {
            let log = cluster.audit_log().context("the audit log")?;
            let refused = refused(&log)?;
            ensure!(refused.is_empty(), "refused to the controller in {}: {refused:#?}", cluster.name());
        }
        Ok(())
    }
}

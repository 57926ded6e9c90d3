//! Invitations between clusters in all of which Portolan runs as pods, from its image, with the rights of its account and by no
//! command but those that administrators run; and the fleet of a hub and two members that comes of it.

use super::contents::{as_it_was, everything};
use super::endpoints::{Passthrough, TLS_NAME, close_node_port, open_node_port};
use super::fleet::CONTROLLER;
use super::granted::{Used, are_those_of_the_table, is_for_clouds};
use super::installed::{Installed, refused, running};
use super::proof::{TIMEOUT, eventually, shown, step};
use super::{can_run, invited, kubectl_apply};
use anyhow::{Context, Result, ensure};
use portolan_control::peering::hub_needs;
use portolan_core::tenancy::InvitationLine;
use portolan_lab::{Cluster, Component, Seen, portolan_image};
use portolan_tests::{NAMESPACE, open_namespace, workload};
use serde_json::{Value, json};

/// The hub.
const CONSUMER: &str = "c1";
/// The provider that everything is tried with.
const PROVIDER: &str = "c2";
/// The one that is reached by a NodePort, and falls silent.
const OTHER: &str = "c3";

#[tokio::test(flavor = "multi_thread")]
async fn pods_in_all_clusters_peer_by_invitation_place_renew_and_part() -> Result<()> {
    if !can_run("pods_in_all_clusters_peer_by_invitation_place_renew_and_part") {
        return Ok(());
    }
    let installed = Installed::start(3).await?;
    shown(installed.lab(), Box::pin(prove(&installed))).await?;
    installed.fleet.lab.down()
}

async fn prove(installed: &Installed) -> Result<()> {
    let lab = installed.lab();
    installed.load(&portolan_image().await?).await?;
    let mut bare = Vec::new();
    for cluster in lab.clusters() {
        bare.push(everything(cluster).await?);
    }
    for cluster in lab.clusters() {
        installed.install(cluster.name()).await?;
        are_those_of_the_table(cluster).await?;
    }
    let proof = Invited {
        installed,
        consumer: lab.cluster(CONSUMER)?,
        provider: lab.cluster(PROVIDER)?,
        other: lab.cluster(OTHER)?,
    };
    step("peered", proof.peers()).await?;
    step("peered through a NodePort", proof.peers_through_a_node_port()).await?;
    installed.fleet.provide_commands().await?;
    step("the fleet", invited::prove(&installed.fleet)).await?;
    // An API server that has just started refuses what it does not know yet.
    was_refused_nothing(proof.other)?;
    step("the fleet, with a member that is silent", invited::prove_silence(&installed.fleet)).await?;
    step("survives its controllers", proof.outlives_its_controllers()).await?;
    step("renewed", proof.renews("portolan.dev/renew-certificate-at")).await?;
    step("an offer changes", proof.shares_less()).await?;
    step("parted from a provider that is dead", proof.parts_from_the_dead()).await?;
    step("parted", proof.parts()).await?;
    step("peered by token through a passthrough", proof.peers_by_token()).await?;
    was_refused_nothing(proof.consumer)?;
    was_refused_nothing(proof.provider)?;
    let needed = hub_needs().into_iter().filter(|right| !is_for_clouds(right));
    Used::in_all(lab.clusters())?.covers(needed)?;
    for (cluster, bare) in lab.clusters().iter().zip(&bare) {
        let name = cluster.name();
        let uninstall = ["uninstall", "--context", name, "--purge"];
        step(&format!("uninstall from {name}"), installed.portolan(&uninstall)).await?;
        // The namespace that the administrators have shared is theirs.
        let shared = ["delete", "namespace", NAMESPACE, "--ignore-not-found", TIMEOUT];
        cluster.kubectl(&shared).await?;
        as_it_was(cluster, bare).await?;
    }
    Ok(())
}

struct Invited<'a> {
    installed: &'a Installed,
    consumer: &'a Cluster,
    provider: &'a Cluster,
    other: &'a Cluster,
}

impl Invited<'_> {
    /// An invitation of a provider, and what becomes of it.
    async fn invite(&self, provider: &str, more: &[&str]) -> Result<String> {
        let line = self.installed.portolan(&[&["invite", "--context", provider][..], more].concat()).await?;
        Ok(line.trim().to_owned())
    }

    async fn peer(&self, line: &str) -> Result<()> {
        self.installed.portolan(&["peer", line, "--context", CONSUMER]).await.map(|_| ())
    }

    /// The provider has its consumer, and no second cluster can use the line.
    async fn is_used(&self, provider: &Cluster, line: &str) -> Result<()> {
        let id = InvitationLine::decode(line)?.invitation;
        let name = format!("invitation/{id}");
        let phase = ["-n", "portolan", "get", &name, "-o", "jsonpath={.status.phase}"];
        eventually("the invitation is used", async || {
            let found = provider.kubectl(&phase).await?;
            Ok(if found == "Used" { Seen::Ready(()) } else { Seen::NotYet(found) })
        })
        .await?;
        let incoming = ["wait", "--for=condition=IncomingPeering", "foreigncluster/c1", TIMEOUT];
        provider.kubectl(&incoming).await?;
        let (succeeded, told) = self.installed.run(&["peer", line, "--context", provider.name()]).await?;
        ensure!(!succeeded, "a cluster peers with itself: {told}");
        Ok(())
    }

    async fn peers(&self) -> Result<()> {
        let class = json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "SharingClass", "metadata": {"name": "gold"},
            "spec": {"percentage": 100},
        });
        kubectl_apply(self.provider, &[class]).await?;
        let more = ["--namespace", NAMESPACE, "--sharing", "100%", "--show-cluster"];
        let line = self.invite(PROVIDER, &more).await?;
        self.peer(&line).await?;
        self.is_used(self.provider, &line).await?;
        kubectl_apply(self.consumer, &[open_namespace()]).await.map(|_| ())
    }

    /// The address in the line is that of a Service, and what the certificate is to name is given beside.
    async fn peers_through_a_node_port(&self) -> Result<()> {
        let url = open_node_port(self.other).await?;
        let more = ["--namespace", NAMESPACE, "--sharing", "100%", "--show-cluster"];
        let way = ["--server", &url, "--tls-server-name", TLS_NAME];
        let line = self.invite(OTHER, &[&more[..], &way].concat()).await?;
        self.peer(&line).await?;
        self.is_used(self.other, &line).await?;
        self.goes_by(OTHER, &url).await
    }

    /// The credential of a provider leads there.
    async fn goes_by(&self, provider: &str, url: &str) -> Result<()> {
        let secret = format!("secret/{provider}");
        let plain = "go-template={{.data.kubeconfig|base64decode}}";
        let kubeconfig = self.consumer.kubectl(&["-n", "portolan", "get", &secret, "-o", plain]).await?;
        ensure!(kubeconfig.contains(url), "the credential of {provider} does not lead to {url}");
        Ok(())
    }

    async fn is_ready(&self) -> Result<()> {
        let ready = ["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcd/web", TIMEOUT];
        self.consumer.kubectl(&ready).await.map(|_| ())
    }

    /// All controllers of both sides are killed: others take their place, and no pod of the workload is touched.
    async fn outlives_its_controllers(&self) -> Result<()> {
        kubectl_apply(self.consumer, &[workload("web", 2, json!({"locations": [PROVIDER]}))]).await?;
        self.is_ready().await?;
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
        let annotate = ["-n", "portolan", "annotate", "secret/c2", "--overwrite", &due];
        self.consumer.kubectl(&annotate).await?;
        eventually("the credential is another one", async || {
            let now = self.held().await?;
            Ok(if now == before { Seen::NotYet("the old one".to_owned()) } else { Seen::Ready(()) })
        })
        .await?;
        self.consumer
            .kubectl(&["wait", "--for=condition=Ready", "foreigncluster/c2", TIMEOUT])
            .await
            .map(|_| ())
    }

    async fn held(&self) -> Result<String> {
        let path = "jsonpath={.data.kubeconfig}";
        let held = self.consumer.kubectl(&["-n", "portolan", "get", "secret/c2", "-o", path]).await?;
        ensure!(!held.is_empty(), "the Secret holds nothing");
        Ok(held)
    }

    /// The provider shares less from now on, and its quota follows.
    async fn shares_less(&self) -> Result<()> {
        let before = self.quota().await?;
        let less = json!({"spec": {"incoming": {"sharing": {"percentage": 50}}}}).to_string();
        self.provider.kubectl(&["patch", "foreigncluster/c1", "--type=merge", "-p", &less]).await?;
        eventually("the quota follows what is shared", async || {
            let now = self.quota().await?;
            Ok(if now == before { Seen::NotYet(now.to_string()) } else { Seen::Ready(()) })
        })
        .await
    }

    async fn quota(&self) -> Result<Value> {
        let arguments = ["-n", NAMESPACE, "get", "resourcequota/portolan", "-o", "json"];
        let quota: Value = serde_json::from_str(&self.provider.kubectl(&arguments).await?)?;
        Ok(quota["spec"]["hard"].clone())
    }

    /// The provider does not answer: the consumer is told so, and leaves. What the provider has of it goes when somebody there says
    /// so.
    async fn parts_from_the_dead(&self) -> Result<()> {
        self.other.kill(Component::ApiServer).await?;
        let (parted, told) = self.installed.run(&["unpeer", OTHER, "--context", CONSUMER]).await?;
        ensure!(parted && told.contains("c3 was not told that the peering ends"), "{told}");
        let left =
            ["-n", "portolan", "get", "foreigncluster/c3", "secret/c3", "--ignore-not-found", "-o", "name"];
        let left = self.consumer.kubectl(&left).await?;
        ensure!(left.trim().is_empty(), "the consumer still has {left}");
        self.other.start(Component::ApiServer).await?;
        self.installed.portolan(&["unpeer", CONSUMER, "--context", OTHER]).await?;
        nothing_is_left(self.other).await?;
        close_node_port(self.other).await
    }

    /// The consumer leaves, and nothing of it is left in the provider.
    async fn parts(&self) -> Result<()> {
        self.consumer.kubectl(&["-n", NAMESPACE, "delete", "mcd/web", TIMEOUT]).await?;
        self.installed.portolan(&["unpeer", PROVIDER, "--context", CONSUMER]).await?;
        nothing_is_left(self.provider).await
    }

    /// While the provider's signer does not run. The controllers are pods that run on.
    async fn peers_by_token(&self) -> Result<()> {
        let passthrough = Passthrough::start(self.installed.lab().host_address()?, self.provider).await?;
        let way = ["--server", &passthrough.url, "--tls-server-name", TLS_NAME];
        self.provider.kill(Component::ControllerManager).await?;
        let line = self.invite(PROVIDER, &way).await?;
        let (peered, told) = self.installed.run(&["peer", &line, "--context", CONSUMER]).await?;
        self.provider.start(Component::ControllerManager).await?;
        ensure!(peered && told.contains("its token is valid until"), "{told}");
        self.is_used(self.provider, &line).await?;
        self.goes_by(PROVIDER, &passthrough.url).await?;
        self.renews("portolan.dev/renew-at").await?;
        self.installed.portolan(&["unpeer", CONSUMER, "--context", PROVIDER]).await?;
        nothing_is_left(self.provider).await?;
        self.installed.portolan(&["unpeer", PROVIDER, "--context", CONSUMER]).await.map(|_| ())
    }
}

async fn nothing_is_left(provider: &Cluster) -> Result<()> {
    eventually(&format!("{} has nothing of the tenant", provider.name()), async || {
        let kinds = "foreignclusters,namespaces,clusterroles,clusterrolebindings,rolebindings,serviceaccounts,\
                     certificatesigningrequests";
        let selector = "portolan.dev/tenant";
        let mut left = provider.kubectl(&["get", kinds, "-A", "-l", selector, "-o", "name"]).await?;
        left += &provider.kubectl(&["get", "foreignclusters", "-o", "name"]).await?;
        Ok(if left.trim().is_empty() { Seen::Ready(()) } else { Seen::NotYet(left) })
    })
    .await
}

/// The controller of a cluster had all rights that it asked for.
fn was_refused_nothing(cluster: &Cluster) -> Result<()> {
    let log = cluster.audit_log().context("the audit log")?;
    let refused = refused(&log)?;
    ensure!(refused.is_empty(), "refused to the controller in {}: {refused:#?}", cluster.name());
    Ok(())
}

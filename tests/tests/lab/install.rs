//! Portolan in the cluster: installed from its image, peered, its leader killed, upgraded under workloads, and uninstalled
//! without a trace; by its own commands and by Helm.

use super::contents::{as_it_was, everything};
use super::fleet::{image_values, is_ready};
use super::installed::{Installed, refused, running, succeed};
use super::proof::{TIMEOUT, eventually, shown, step};
use super::{can_run, kubectl_apply};
use anyhow::{Context, Result, ensure};
use portolan_install::{parse, render, set};
use portolan_lab::parts::helm;
use portolan_lab::{Cluster, Seen, portolan_image};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};
use std::path::Path;

#[tokio::test(flavor = "multi_thread")]
async fn portolan_is_installed_from_its_image_works_and_leaves_no_trace() -> Result<()> {
    if !can_run("portolan_is_installed_from_its_image_works_and_leaves_no_trace") {
        return Ok(());
    }
    let installed = Installed::start(2).await?;
    shown(installed.lab(), async {
        installed.load(&portolan_image().await?).await?;
        installed.life().await?;
        installed.by_helm().await
    })
    .await?;
    installed.fleet.lab.down()
}

impl Installed {
    async fn life(&self) -> Result<()> {
        let (hub, member) = (self.lab().cluster("c1")?, self.lab().cluster("c2")?);
        let bare = [everything(hub).await?, everything(member).await?];
        let image = image_values()?;
        for context in ["c1", "c2"] {
            step(
                &format!("install in {context}"),
                self.portolan(&["install", "--context", context, "--set", &image]),
            )
            .await?;
        }
        self.refuses_an_image_that_is_not_there().await?;
        kubectl_apply(
            hub,
            &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})],
        )
        .await?;
        let peer = ["peer", "--context", "c1", "--remote-context", "c2", "--namespace", NAMESPACE];
        step("peer", self.portolan(&peer)).await?;
        kubectl_apply(hub, &[workload("web", 1, json!({"locations": ["c2"]}))]).await?;
        self.replicas("1").await?;
        eprintln!("resident memory of the controller in c1: {}", resident(hub).await?);

        let leader =
            ["-n", "portolan", "get", "lease/portolan-controller", "-o", "jsonpath={.spec.holderIdentity}"];
        let first = hub.kubectl(&leader).await?;
        let (pod, _) = first.rsplit_once('_').context("the holder is named after its pod")?;
        let kill = ["-n", "portolan", "delete", "pod", pod, "--grace-period=0", "--force", TIMEOUT];
        hub.kubectl(&kill).await?;
        hub.kubectl(&["-n", NAMESPACE, "scale", "mcd/web", "--replicas=2"]).await?;
        step("another controller leads and places", self.replicas("2")).await?;
        ensure!(hub.kubectl(&leader).await? != first, "the killed one still leads");

        let pods = running(member).await?;
        let restart = ["upgrade", "--context", "c1", "--enable-ha", "--set", "controller.podLabels.next=yes"];
        step("upgrade", self.portolan(&restart)).await?;
        hub.kubectl(&["-n", "portolan", "get", "poddisruptionbudget/portolan-controller"]).await?;
        self.replicas("2").await?;
        ensure!(running(member).await? == pods, "an upgrade of the hub restarted pods of a workload");
        let refused = refused(&hub.audit_log()?)?;
        ensure!(refused.is_empty(), "refused to the controller in the cluster: {refused:#?}");

        let in_use = self.run(&["uninstall", "--context", "c1", "--purge"]).await?;
        let used = "ForeignCluster c2, MultiClusterDeployment shop/web";
        ensure!(!in_use.0 && in_use.1.contains(used), "{}", in_use.1);
        hub.kubectl(&["-n", NAMESPACE, "delete", "mcd/web", TIMEOUT]).await?;
        self.portolan(&["unpeer", "c2", "--context", "c1", "--remote-context", "c2"]).await?;
        hub.kubectl(&["delete", "namespace", NAMESPACE, TIMEOUT]).await?;
        for (cluster, bare) in [hub, member].into_iter().zip(bare) {
            let context = cluster.name();
            step(
                &format!("uninstall from {context}"),
                self.portolan(&["uninstall", "--context", context, "--purge"]),
            )
            .await?;
            as_it_was(cluster, &bare).await?;
        }
        Ok(())
    }

    async fn refuses_an_image_that_is_not_there(&self) -> Result<()> {
        let hub = self.lab().cluster("c1")?;
        let before = everything(hub).await?;
        let upgrade = ["upgrade", "--context", "c1", "--set", "image.tag=none", "--timeout", "20s"];
        let (succeeded, told) = self.run(&upgrade).await?;
        ensure!(!succeeded && told.contains("ErrImageNeverPull"), "{told}");
        ensure!(told.contains("everything is as it was before"), "{told}");
        let differs = everything(hub).await?.differences(&before);
        ensure!(differs.is_empty(), "{differs:#?}");
        hub.kubectl(&["-n", "portolan", "rollout", "status", "deployment/portolan-controller", TIMEOUT])
            .await
            .map(|_| ())
    }

    /// The chart is linted, renders what Portolan renders, and is installed, upgraded and uninstalled by Helm itself.
    async fn by_helm(&self) -> Result<()> {
        let helm = tokio::task::spawn_blocking(|| helm(&mut |_| ())).await??;
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/portolan");
        let chart = chart.to_str().context("the path of the chart is text")?;
        step("lint", succeed(&helm, &["lint", "--strict", chart, "--namespace", "portolan"])).await?;
        for flags in [
            &[][..],
            &["highAvailability=true,crds.experimental=true,controller.hubAsMember=true"],
            &[
                "cluster.name=paris,cluster.sharing=50%,cluster.labels.tier=edge",
                "crds.clusterProfiles=false",
            ],
            &["image.pullSecrets={a,b},controller.extraArgs={--verbose},controller.podLabels.x=y"],
            &["image.digest=sha256:0123456789012345678901234567890123456789012345678901234567890123"],
            &[
                "controller.prometheus=monitoring/prometheus:9090,controller.nodeSelector.disk=ssd",
                "controller.measureLatency=true,controller.reportCapacity=true",
            ],
            &["monitoring.enabled=true,monitoring.labels.release=prometheus"],
            &[
                "monitoring.enabled=true,monitoring.dashboardLabels.grafana_dashboard=null,highAvailability=true",
            ],
            &["controller.tolerations[0].key=edge,controller.resources.limits=null,crds.install=false"],
        ] {
            let sets: Vec<&str> = flags.iter().flat_map(|flag| ["--set", flag]).collect();
            let template = ["template", "portolan", chart, "--namespace", "portolan"];
            let by_helm = succeed(&helm, &[&template[..], &sets].concat()).await?;
            let mut values = json!({});
            for flag in flags {
                set(&mut values, flag)?;
            }
            let own = render(&parse(&values)?)?;
            let (by_helm, own) = (serde_saphyr::from_multiple(&by_helm)?, [own.crds, own.objects].concat());
            let (by_helm, own) = (normalised(by_helm), normalised(own));
            ensure!(by_helm == own, "{flags:?}: by Helm {by_helm:#?}, by Portolan {own:#?}");
        }

        let hub = self.lab().cluster("c1")?;
        let bare = everything(hub).await?;
        let image = image_values()?;
        let kubeconfig = hub.kubeconfig_path();
        let kubeconfig = kubeconfig.to_str().context("the path of the kubeconfig is text")?;
        let at = ["--kubeconfig", kubeconfig, "--namespace", "portolan", "--wait", "--timeout", "5m"];
        let install = ["install", "portolan", chart, "--create-namespace", "--set", &image];
        step("helm install", succeed(&helm, &[&install[..], &at].concat())).await?;
        let (succeeded, told) = self.run(&["uninstall", "--context", "c1"]).await?;
        ensure!(!succeeded && told.contains("helm uninstall portolan"), "{told}");
        let upgrade = ["upgrade", "portolan", chart, "--reuse-values", "--set", "highAvailability=true"];
        step("helm upgrade", succeed(&helm, &[&upgrade[..], &at].concat())).await?;
        hub.kubectl(&["-n", "portolan", "get", "poddisruptionbudget/portolan-controller"]).await?;
        step("helm uninstall", succeed(&helm, &[&["uninstall", "portolan"][..], &at].concat())).await?;
        let crds = hub.kubectl(&["get", "crd", "-o", "name"]).await?;
        ensure!(crds.contains("foreignclusters.portolan.dev"), "workloads would go with the release: {crds}");
        let crds: Vec<&str> = crds
            .lines()
            .filter(|name| name.contains("portolan.dev") || name.contains("clusterprofiles"))
            .collect();
        hub.kubectl(&[&["delete"][..], &crds, &[TIMEOUT]].concat()).await?;
        hub.kubectl(&["delete", "namespace", "portolan", TIMEOUT]).await?;
        as_it_was(hub, &bare).await
    }

    /// Waits until the workload is ready with so many replicas.
    async fn replicas(&self, count: &str) -> Result<()> {
        let hub = self.lab().cluster("c1")?;
        eventually("the workload is ready", async || {
            let text = hub.kubectl(&["-n", NAMESPACE, "get", "mcd/web", "-o", "json"]).await?;
            let object: Value = serde_json::from_str(&text)?;
            let status = &object["status"];
            let current = status["observedGeneration"] == object["metadata"]["generation"];
            let ready =
                status["readyReplicas"].as_u64().map(|ready| ready.to_string()).as_deref() == Some(count);
            Ok(if current && ready && is_ready(status) {
                Seen::Ready(())
            } else {
                Seen::NotYet(status.to_string())
            })
        })
        .await
    }
}

/// Objects of a manifest in an order of their own, without what only one of the two has: the namespace, which Helm makes by
/// itself, and Helm's own annotation.
fn normalised(mut objects: Vec<Value>) -> Vec<Value> {
    objects.retain(|object| object.is_object() && object["kind"] != "Namespace");
    for object in &mut objects {
        if object["kind"] == "CustomResourceDefinition"
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
    }
    objects.sort_by_key(|object| format!("{}{}", object["kind"], object["metadata"]["name"]));
    objects
}

/// The resident memory of the controllers on the nodes of a cluster, as the kernel says it.
async fn resident(cluster: &Cluster) -> Result<String> {
    let script = "for p in /proc/[0-9]*; do [ \"$(readlink $p/exe)\" = /portolan ] && grep VmRSS $p/status; done; true";
    let mut told = Vec::new();
    for node in cluster.workers() {
        told.push(node.exec(&["sh", "-c", script]).await?.trim().to_owned());
    }
    Ok(told.join(" "))
}

//! An upgrade from an installation of an earlier version: another image, older definitions and roles, and workloads that run.
//!
//! What is earlier is the program of the commit that `PORTOLAN_UPGRADE_FROM` names, which has installed itself. Without that it is the
//! tag of the image, the version on record and on all objects, and parts of definitions and roles that are taken out of them; the
//! program in both images is the same one then, since no test builds that of an earlier commit unasked.

use super::fleet::image_values;
use super::installed::{Installed, refused, running};
use super::proof::{TIMEOUT, eventually, shown, step};
use super::{can_run, kubectl_apply, kubectl_with_input};
use anyhow::{Context, Result, ensure};
use portolan_api::PROGRAM_VERSION;
use portolan_lab::{Cluster, Seen, earlier_binary, portolan_image, portolan_image_as, portolan_image_of};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};
use std::path::Path;

/// The image that is there before the upgrade.
const EARLIER_IMAGE: &str = "localhost/portolan:earlier";
/// Its version.
const EARLIER: &str = "0.0.9";

const VERSION: &str = "app.kubernetes.io/version";
const CRD: &str = "crd/multiclusterdeployments.portolan.dev";
const DEPLOYMENT: &str = "deployment/portolan-controller";
const ROLE: &str = "clusterrole/portolan-controller";

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_installation_is_upgraded_while_workloads_run() -> Result<()> {
    if !can_run("an_earlier_installation_is_upgraded_while_workloads_run") {
        return Ok(());
    }
    let installed = Installed::start(2).await?;
    shown(installed.lab(), async {
        let built = earlier_binary().await?;
        let image = match &built {
            Some(binary) => portolan_image_of(binary, EARLIER_IMAGE).await?,
            None => portolan_image_as(EARLIER_IMAGE).await?,
        };
        installed.load(&image).await?;
        let earlier = built.as_deref().unwrap_or(&installed.binary);
        step("an earlier installation", installed.install_earlier(earlier)).await?;
        if built.is_none() {
            installed.make_earlier().await?;
        }
        let pods = step("workloads", installed.places(earlier)).await?;
        installed.load(&portolan_image().await?).await?;
        step("upgrade", installed.upgrades(&pods)).await
    })
    .await?;
    installed.fleet.lab.down()
}

impl Installed {
    async fn install_earlier(&self, program: &Path) -> Result<()> {
        let image = "image.repository=localhost/portolan,image.tag=earlier,image.pullPolicy=Never";
        for context in ["c1", "c2"] {
            self.by(program, &["install", "--context", context, "--set", image]).await?;
        }
        Ok(())
    }

    /// Makes of an installation what an earlier version would have left.
    async fn make_earlier(&self) -> Result<()> {
        let hub = self.lab().cluster("c1")?;
        let mut definition = object(hub, CRD).await?;
        let versions = definition["spec"]["versions"].as_array_mut().context("versions")?;
        for version in versions {
            if let Some(version) = version.as_object_mut() {
                version.remove("additionalPrinterColumns");
            }
        }
        replace(hub, definition).await?;
        let mut role = object(hub, ROLE).await?;
        let rules = role["rules"].as_array_mut().context("rules")?;
        rules.retain(|rule| rule["resources"] != json!(["placementreviews/status"]));
        replace(hub, role).await?;
        let kinds = "crd,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings";
        let (selector, version) = (format!("{VERSION}={PROGRAM_VERSION}"), format!("{VERSION}={EARLIER}"));
        hub.kubectl(&["label", kinds, "-l", &selector, &version, "--overwrite"]).await?;
        let kinds = "deployments,serviceaccounts,roles,rolebindings,services,configmaps";
        let label = ["-n", "portolan", "label", kinds, "-l", &selector, &version, "--overwrite"];
        hub.kubectl(&label).await?;
        let mut record = own_object(hub, "configmap/portolan-install").await?;
        let text = record["data"]["record"].as_str().context("the record")?;
        let mut noted: Value = serde_json::from_str(text)?;
        noted["version"] = json!(EARLIER);
        record["data"] = json!({"version": EARLIER, "record": noted.to_string()});
        replace(hub, record).await
    }

    /// A member with a workload that runs; answers its pods.
    async fn places(&self, program: &Path) -> Result<(Vec<String>, Vec<String>)> {
        let (hub, member) = (self.lab().cluster("c1")?, self.lab().cluster("c2")?);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        kubectl_apply(hub, &[namespace]).await?;
        let peer = ["peer", "--context", "c1", "--remote-context", "c2", "--namespace", NAMESPACE];
        self.by(program, &peer).await?;
        kubectl_apply(hub, &[workload("web", 3, json!({"locations": ["c2"]}))]).await?;
        hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcd/web", TIMEOUT]).await?;
        let pods = running(member).await?;
        ensure!(pods.0.len() == 3, "{pods:?}");
        Ok(pods)
    }

    /// The installation is of this version, and the workload has seen nothing of it.
    async fn upgrades(&self, pods: &(Vec<String>, Vec<String>)) -> Result<()> {
        let (hub, member) = (self.lab().cluster("c1")?, self.lab().cluster("c2")?);
        let before = own_object(hub, DEPLOYMENT).await?;
        ensure!(before.to_string().contains(EARLIER_IMAGE), "{before}");
        self.portolan(&["upgrade", "--context", "c1", "--set", &image_values()?]).await?;
        let rollout = ["-n", "portolan", "rollout", "status", "deployment/portolan-controller", TIMEOUT];
        hub.kubectl(&rollout).await?;
        let after = own_object(hub, DEPLOYMENT).await?;
        ensure!(!after.to_string().contains(EARLIER_IMAGE), "{after}");
        let definition = object(hub, CRD).await?;
        let columns = &definition["spec"]["versions"][0]["additionalPrinterColumns"];
        ensure!(columns.as_array().is_some_and(|columns| !columns.is_empty()), "{columns}");
        let role = object(hub, ROLE).await?;
        ensure!(role["rules"].to_string().contains("placementreviews/status"), "{role}");
        let kinds = "crd,clusterroles,clusterrolebindings,validatingadmissionpolicies";
        let old = hub.kubectl(&["get", kinds, "-l", &format!("{VERSION}={EARLIER}"), "-o", "name"]).await?;
        ensure!(old.trim().is_empty(), "these are of the earlier version: {old}");
        ensure!(running(member).await? == *pods, "the upgrade has restarted pods of a workload");
        let kept = &pods.0;
        hub.kubectl(&["-n", NAMESPACE, "scale", "mcd/web", "--replicas=4"]).await?;
        eventually("the new controller places one more pod and leaves the others", async || {
            let now = running(member).await?.0;
            let all_kept = kept.iter().all(|pod| now.contains(pod));
            Ok(if now.len() == 4 && all_kept { Seen::Ready(()) } else { Seen::NotYet(format!("{now:?}")) })
        })
        .await?;
        hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcd/web", TIMEOUT]).await?;
        // The earlier role lacked a right: what was refused before the upgrade does not count.
        let refused = refused(&hub.audit_log()?)?;
        let others: Vec<_> = refused.iter().filter(|each| !each.contains("placementreviews")).collect();
        ensure!(others.is_empty(), "refused to the controller in the cluster: {others:#?}");
        Ok(())
    }
}

/// An object of the whole cluster.
async fn object(cluster: &Cluster, name: &str) -> Result<Value> {
    Ok(serde_json::from_str(&cluster.kubectl(&["get", name, "-o", "json"]).await?)?)
}

/// An object of Portolan's own namespace.
async fn own_object(cluster: &Cluster, name: &str) -> Result<Value> {
    Ok(serde_json::from_str(&cluster.kubectl(&["-n", "portolan", "get", name, "-o", "json"]).await?)?)
}

/// Puts an object in the place of the one that is there, whoever owns its fields.
async fn replace(cluster: &Cluster, mut object: Value) -> Result<()> {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
    }
    kubectl_with_input(cluster, &["replace", "-f", "-"], &object.to_string()).await.map(|_| ())
}

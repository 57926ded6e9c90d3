//! What a tenant may write on real Kubernetes: the admission policy and the quotas of a provider, on its API server.

use super::proof::eventually;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Config};
use portolan_control::names::SERVICE_ACCOUNTS_ANNOTATION as ACCOUNTS;
use portolan_lab::{Cluster, Seen};
use portolan_tests::NAMESPACE;
use portolan_tests::tenants::{self, Attempt, Place, attempt};
use serde_json::{Value, json};

/// A tenant writes what workloads need, and nothing that reaches further. Others are not bound.
pub(super) async fn are_bounded(
    provider: &Cluster,
    admin: &Client,
    tenant: &Client,
    invitation: &str,
) -> Result<()> {
    let place = Place { open: NAMESPACE, home: "portolan-tenant-rome", invitation };
    accepted(tenant, tenants::accepted(&place)).await?;
    refused(tenant, tenants::refused(&place)).await?;
    // What no role of tenants gives: by somebody of the group who may do everything.
    let mut config = Config::from_custom_kubeconfig(provider.kubeconfig()?, &Default::default()).await?;
    config.auth_info.impersonate = Some("somebody".to_owned());
    config.auth_info.impersonate_groups =
        Some(vec!["portolan:tenants".to_owned(), "system:masters".to_owned()]);
    // A pod whose class or account does not exist is refused before any policy is asked.
    let is_refused_before = |each: &Attempt| {
        each.object["kind"] == "Pod" && ["a priority", "another account"].contains(&each.what)
    };
    let mut others = tenants::refused_whatever_the_role(&place);
    others.retain(|each| !is_refused_before(each));
    refused(&Client::try_from(config)?, others).await?;
    accepted(admin, tenants::refused(&place)).await
}

/// A class opens what the policy and the quotas refuse otherwise, by words that Kubernetes knows.
pub(super) async fn are_offered_so_much(provider: &Cluster, admin: &Client, tenant: &Client) -> Result<()> {
    let place = Place { open: NAMESPACE, home: "portolan-tenant-rome", invitation: "" };
    let outside = tenants::service(&place, json!({"type": "NodePort"}));
    let balanced =
        tenants::service(&place, json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false}));
    for (object, word) in [(&outside, "services.nodeports"), (&balanced, "services.loadbalancers")] {
        let refused = attempt(tenant, object).await.err().context("what no class offers")?.to_string();
        ensure!(refused.contains("exceeded quota: portolan") && refused.contains(word), "{refused}");
    }
    let class = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "SharingClass", "metadata": {"name": "gold"},
        "spec": {
            "percentage": 100, "storageClasses": ["fast"], "priorityClasses": ["batch"],
            "quota": {"services.loadbalancers": "1", "limits.cpu": "100"},
            "defaultLimits": {"cpu": "1", "ephemeral-storage": "1Gi"},
        },
    });
    let storage = |name: &str| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "example.com/none",
        })
    };
    super::kubectl_apply(provider, &[class, storage("fast"), storage("slow")]).await?;
    share(provider, json!({"className": "gold", "percentage": null})).await?;
    let zero = "slow.storageclass.storage.k8s.io/requests.storage";
    let is_gold =
        |hard: &Value| hard["limits.cpu"] == "100" && hard[zero] == "0" && hard["count/secrets"] == "200";
    quota_in_force(provider, is_gold).await?;
    attempt(tenant, &balanced).await.context("the one load balancer of the class")?;
    let path = "jsonpath={.spec.limits[0].defaultRequest}";
    let range = provider.kubectl(&["-n", NAMESPACE, "get", "limitrange/portolan", "-o", path]).await?;
    let requests: Value = serde_json::from_str(&range)?;
    ensure!(requests["ephemeral-storage"] == "0", "{requests}");
    // The priority and the storage by the class, the account by the administrator.
    annotate(admin, json!({ACCOUNTS: "builder"})).await?;
    for each in tenants::accepted_if_allowed(&place) {
        eventually(each.what, async || match attempt(tenant, &each.object).await {
            Ok(_) => Ok(Seen::Ready(())),
            Err(error) => Ok(Seen::NotYet(error.to_string())),
        })
        .await?;
    }
    annotate(admin, json!({ACCOUNTS: null})).await?;
    share(provider, json!({"className": null, "percentage": 100})).await?;
    quota_in_force(provider, |hard| hard["limits.cpu"].is_null() && hard["services.loadbalancers"] == "0")
        .await?;
    provider
        .kubectl(&["delete", "sharingclass/gold", "storageclass/fast", "storageclass/slow"])
        .await
        .map(|_| ())
}

async fn share(provider: &Cluster, sharing: Value) -> Result<()> {
    let patch = json!({"spec": {"incoming": {"sharing": sharing}}}).to_string();
    provider.kubectl(&["patch", "foreigncluster/rome", "--type=merge", "-p", &patch]).await.map(|_| ())
}

/// Waits until the quota of the open namespace is as it is to be, and Kubernetes enforces it.
async fn quota_in_force(provider: &Cluster, is_wanted: impl Fn(&Value) -> bool) -> Result<()> {
    let arguments = ["-n", NAMESPACE, "get", "resourcequota/portolan", "-o", "json"];
    eventually("the quota is in force", async || {
        let quota: Value = serde_json::from_str(&provider.kubectl(&arguments).await?)?;
        let (hard, in_force) = (&quota["spec"]["hard"], &quota["status"]["hard"]);
        Ok(if is_wanted(hard) && hard == in_force {
            Seen::Ready(())
        } else {
            Seen::NotYet(quota.to_string())
        })
    })
    .await
}

async fn annotate(admin: &Client, annotations: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    Api::<Namespace>::all(admin.clone()).patch(NAMESPACE, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn accepted(client: &Client, attempts: Vec<Attempt>) -> Result<()> {
    for each in attempts {
        let what = || format!("{} in a {}", each.what, each.object["kind"]);
        attempt(client, &each.object).await.with_context(what)?;
    }
    Ok(())
}

async fn refused(client: &Client, attempts: Vec<Attempt>) -> Result<()> {
    for each in attempts {
        let what = format!("{} in a {}", each.what, each.object["kind"]);
        match attempt(client, &each.object).await {
            Err(kube::Error::Api(status)) => {
                let by_policy = status.message.contains("ValidatingAdmissionPolicy 'portolan-tenants'");
                ensure!(by_policy && status.message.contains(each.named), "{what}: {}", status.message);
            }
            Err(error) => return Err(error).context(what),
            Ok(_) => anyhow::bail!("{what} is not refused"),
        }
    }
    Ok(())
}

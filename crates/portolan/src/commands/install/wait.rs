//! Waiting until Portolan runs.

use super::cluster::{SOON, api, read};
use crate::cli::LeaseArgs;
use crate::commands::leader;
use crate::failure::Failure;
use crate::progress::Progress;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, Client};
use portolan_install::{CONTROLLER, Identity, NAMESPACE, Seen, diagnose};
use portolan_runtime::call;
use serde_json::{Value, json};
use std::sync::Mutex;

const SELECTOR: &str = "app.kubernetes.io/name=portolan,app.kubernetes.io/component=controller";

/// So many lines of the log of a controller that ended say why.
const LOG_LINES: i64 = 3;

/// What is waited for now, for whoever gives up.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Option<String>>);

impl Waiting {
    pub(super) fn last(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn tell(&self, progress: &Progress, text: String) {
        progress.step(&format!("waiting: {text}"));
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(text);
    }
}

/// Waits until the definitions are served.
pub(super) async fn established(client: &Client, crds: &[Value]) -> Result<(), Failure> {
    for crd in crds.iter().map(Identity::of) {
        let is_served = |found: &Value| {
            let conditions = found["status"]["conditions"].as_array();
            let holds = |each: &Value| each["type"] == "Established" && each["status"] == "True";
            conditions.is_some_and(|all| all.iter().any(holds))
        };
        while !read(client, &crd).await?.as_ref().is_some_and(is_served) {
            tokio::time::sleep(SOON).await;
        }
    }
    Ok(())
}

/// Waits until the Deployment is rolled out and a controller leads.
pub(super) async fn running(client: &Client, progress: &Progress, waiting: &Waiting) -> Result<(), Failure> {
    let before = lease_version(client).await?;
    let deployment = identity("apps/v1", "Deployment", CONTROLLER);
    loop {
        let found = read(client, &deployment)
            .await?
            .ok_or_else(|| Failure::other(format!("{deployment} has been deleted meanwhile")))?;
        let mut seen = Seen { deployment: found, ..Seen::default() };
        if diagnose(&seen).is_none() {
            break;
        }
        seen.replica_sets = list(client, "apps/v1", "ReplicaSet").await?;
        seen.pods = pods(client).await?;
        if let Some(mut why) = diagnose(&seen) {
            if let Some(pod) = seen.crashed_pod() {
                why.push_str(&last_words(client, pod).await);
            }
            waiting.tell(progress, why);
        }
        tokio::time::sleep(SOON).await;
    }
    // A Lease that was there before may be of a controller that is gone: one at work renews it.
    while lease_version(client).await?.is_none_or(|version| before.as_ref() == Some(&version)) {
        waiting.tell(progress, format!("no controller leads: Lease {NAMESPACE}/{CONTROLLER} is not renewed"));
        tokio::time::sleep(SOON).await;
    }
    Ok(())
}

/// Which object of Portolan's namespace it is.
pub(crate) fn identity(api_version: &str, kind: &str, name: &str) -> Identity {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    Identity::of(&json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}))
}

/// The pods of the controller.
pub(crate) async fn pods(client: &Client) -> Result<Vec<Value>, Failure> {
    list(client, "v1", "Pod").await
}

/// The version of the Lease of the controllers while one of them holds it.
async fn lease_version(client: &Client) -> Result<Option<String>, Failure> {
    let args = LeaseArgs { lease_namespace: NAMESPACE.to_owned(), lease_name: CONTROLLER.to_owned() };
    let lease = leader::lease(client, &args).await.map_err(|error| Failure::call(&error))?;
    let held = lease.filter(|lease| {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        holder.is_some_and(|holder| !holder.is_empty())
    });
    Ok(held.and_then(|lease| lease.metadata.resource_version))
}

async fn list(client: &Client, api_version: &str, kind: &str) -> Result<Vec<Value>, Failure> {
    let api = api(client, &identity(api_version, kind, ""));
    let listed = call(format!("list {kind}s"), api.list(&ListParams::default().labels(SELECTOR))).await;
    let listed = listed.map_err(|error| Failure::call(&error))?;
    let values = listed.items.into_iter().map(serde_json::to_value).collect::<Result<_, _>>();
    values.map_err(Failure::other)
}

/// The end of the log of a controller that ended; nothing if it cannot be read, since its exit code is told already.
async fn last_words(client: &Client, pod: &str) -> String {
    let api: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    for previous in [true, false] {
        let params = LogParams { previous, tail_lines: Some(LOG_LINES), ..LogParams::default() };
        if let Ok(log) = call(format!("read the log of pod {pod}"), api.logs(pod, &params)).await
            && !log.trim().is_empty()
        {
            return format!("; its log ends in: {}", log.trim());
        }
    }
    String::new()
}

//! Waiting for things in a cluster.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;

use super::Cluster;
use crate::component::Component;
use crate::wait::{Seen, until};

const PAUSE: Duration = Duration::from_millis(100);

impl Cluster {
    /// [`until`] for a condition of this cluster; a failure also shows the logs of components that have ended.
    pub async fn wait_until<T>(
        &self,
        what: &str,
        limit: Duration,
        look: impl AsyncFnMut() -> Result<Seen<T>>,
    ) -> Result<T> {
        until(what, limit, PAUSE, look)
            .await
            .with_context(|| format!("cluster {}{}", self.name(), self.dead_components()))
    }

    /// Waits until a pod is Ready and returns it.
    pub async fn wait_for_pod(&self, namespace: &str, name: &str, limit: Duration) -> Result<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client().await?, namespace);
        self.wait_until(&format!("pod {namespace}/{name} is Ready"), limit, async || {
            let Some(pod) = Box::pin(pods.get_opt(name)).await? else {
                return Ok(Seen::NotYet("there is no such pod".to_owned()));
            };
            Ok(if is_ready(&pod) { Seen::Ready(pod) } else { Seen::NotYet(describe(&pod)) })
        })
        .await
    }

    /// Waits until all replicas of a deployment are available and up to date.
    pub async fn wait_for_deployment(
        &self,
        namespace: &str,
        name: &str,
        limit: Duration,
    ) -> Result<Deployment> {
        let deployments: Api<Deployment> = Api::namespaced(self.client().await?, namespace);
        self.wait_until(&format!("deployment {namespace}/{name} is complete"), limit, async || {
            let Some(found) = Box::pin(deployments.get_opt(name)).await? else {
                return Ok(Seen::NotYet("there is no such deployment".to_owned()));
            };
            let wanted = found.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
            let status = found.status.clone().unwrap_or_default();
            let complete = status.observed_generation >= found.metadata.generation
                && [status.updated_replicas, status.available_replicas, status.replicas]
                    .iter()
                    .all(|count| count.unwrap_or(0) == wanted);
            Ok(if complete { Seen::Ready(found) } else { Seen::NotYet(format!("{status:?}")) })
        })
        .await
    }

    /// The components that were started and run no longer, with the ends of their logs.
    fn dead_components(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            for component in Component::ALL {
                if node.log_file(component).exists() && node.pid_of(component).is_none() {
                    let log = node.log_tail(component, 10);
                    // Writing to a string cannot fail.
                    let _ = write!(text, "; {component} on {} has ended:\n{log}\n", node.name());
                }
            }
        }
        text
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// What keeps a pod from being Ready, in one line.
fn describe(pod: &Pod) -> String {
    let Some(status) = &pod.status else { return "no status".to_owned() };
    let mut seen = vec![format!("phase {}", status.phase.as_deref().unwrap_or("unknown"))];
    for condition in status.conditions.iter().flatten().filter(|condition| condition.status != "True") {
        let why = [&condition.reason, &condition.message].into_iter().flatten().cloned().collect::<Vec<_>>();
        seen.push(format!("not {} ({})", condition.type_, why.join(": ")));
    }
    for container in status.container_statuses.iter().flatten().filter(|container| !container.ready) {
        seen.push(format!("container {} {:?}", container.name, container.state.clone().unwrap_or_default()));
    }
    seen.join(", ")
}

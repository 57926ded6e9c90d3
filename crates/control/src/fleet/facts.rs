//! What placement keeps of the objects in members.

use super::Mark;
use crate::names::{OPT_IN, OPT_IN_LABEL};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;

/// What placement needs to know of a Deployment in a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentFacts {
    /// Whose it is.
    pub mark: Mark,
    /// The generation of its spec.
    pub generation: i64,
    /// Whether its numbers reflect its spec.
    pub settled: bool,
    /// Replicas asked for.
    pub replicas: i32,
    /// Replicas that are ready.
    pub ready: i32,
    /// Replicas of the present template.
    pub updated: i32,
    /// Replicas of an older template that are still there.
    pub outdated: i32,
    /// Replicas that are available.
    pub available: i32,
    /// The images of its template.
    pub images: Vec<String>,
}

impl DeploymentFacts {
    /// Whether so many replicas of the present template are ready, as far as the numbers tell: Kubernetes counts ready
    /// ones of any template, so none of an older one may be left.
    #[must_use]
    pub fn rolled_out(&self, replicas: i32) -> bool {
        self.settled && self.updated >= replicas && self.outdated <= 0 && self.ready >= replicas
    }

    pub(crate) fn of(deployment: &Deployment) -> Self {
        let meta = &deployment.metadata;
        let status = deployment.status.clone().unwrap_or_default();
        let spec = deployment.spec.as_ref();
        let generation = meta.generation.unwrap_or_default();
        let containers = spec.and_then(|spec| spec.template.spec.as_ref()).map(|pod| &pod.containers);
        Self {
            mark: Mark::of(meta),
            generation,
            settled: status.observed_generation.is_some_and(|observed| observed >= generation),
            replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            ready: status.ready_replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            outdated: status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            images: containers
                .into_iter()
                .flatten()
                .filter_map(|container| container.image.clone())
                .collect(),
        }
    }
}

/// Whether a namespace lets workloads be placed in it.
pub(crate) fn is_open(namespace: &Namespace) -> bool {
    let label = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(OPT_IN_LABEL));
    label.is_some_and(|value| value == OPT_IN) && namespace.metadata.deletion_timestamp.is_none()
}

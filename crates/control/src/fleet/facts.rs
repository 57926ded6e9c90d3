//! What placement keeps of the objects in members.

use crate::copy::Sight;
use crate::names::{
    DIGEST_ANNOTATION, EPOCH_ANNOTATION, OPT_IN, OPT_IN_LABEL, OWNER_ANNOTATION, WORKLOAD_LABEL,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use portolan_runtime::Key;

/// What placement needs to know of a Deployment in a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentFacts {
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: String,
    /// The uid of the workload it belongs to, if it is ours.
    pub workload: Option<String>,
    /// The workload in the hub, if it is ours.
    pub owner: Option<Key>,
    /// The digest of what was applied.
    pub digest: Option<String>,
    /// The epoch of the leader that last applied it.
    pub epoch: Option<i64>,
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
    /// Which object this is, and which state of it.
    #[must_use]
    pub fn sight(&self) -> Sight<'_> {
        Sight { uid: &self.uid, version: &self.version }
    }

    /// Whether so many replicas of the present template are ready, as far as the numbers tell: Kubernetes counts ready
    /// ones of any template, so none of an older one may be left.
    #[must_use]
    pub fn rolled_out(&self, replicas: i32) -> bool {
        self.settled && self.updated >= replicas && self.outdated <= 0 && self.ready >= replicas
    }

    pub(crate) fn of(deployment: &Deployment) -> Self {
        let meta = &deployment.metadata;
        let annotation = |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name).cloned());
        let status = deployment.status.clone().unwrap_or_default();
        let spec = deployment.spec.as_ref();
        let generation = meta.generation.unwrap_or_default();
        let containers = spec.and_then(|spec| spec.template.spec.as_ref()).map(|pod| &pod.containers);
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone().unwrap_or_default(),
            workload: meta.labels.as_ref().and_then(|labels| labels.get(WORKLOAD_LABEL).cloned()),
            owner: annotation(OWNER_ANNOTATION)
                .and_then(|owner| owner.split_once('/').map(|(namespace, name)| Key::new(namespace, name))),
            digest: annotation(DIGEST_ANNOTATION),
            epoch: annotation(EPOCH_ANNOTATION).and_then(|epoch| epoch.parse().ok()),
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

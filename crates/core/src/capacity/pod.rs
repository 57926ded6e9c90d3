//! What capacity keeps of a pod.

use super::pod_shape::requests;
use super::{Amounts, Shape, TemplateHash};
use k8s_openapi::api::core::v1::Pod;

/// What capacity needs to know of a running pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodFacts {
    /// The node it is bound to, if any.
    pub node: Option<String>,
    /// What it requests of that node; nothing once it has finished.
    pub requests: Amounts,
    /// Whether it has run to its end and holds no room any more.
    pub finished: bool,
    /// Whether it is being deleted: it goes as soon as its node has stopped it.
    pub leaving: bool,
    /// The workload of ours that it belongs to, if any.
    pub workload: Option<String>,
    /// Which template of that workload made it, if its label says so.
    pub template: Option<TemplateHash>,
    /// The version of the object as a number, which API servers count up.
    pub version: Option<u64>,
}

impl PodFacts {
    /// Keeps of a pod what capacity needs. A request that the API server accepted and we cannot read counts as zero.
    #[must_use]
    pub fn of(pod: &Pod, workload_label: &str) -> Self {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let spec = pod.spec.as_ref();
        let labels = pod.metadata.labels.as_ref();
        Self {
            node: spec.and_then(|spec| spec.node_name.clone()).filter(|name| !name.is_empty()),
            requests: spec.and_then(|spec| requests(spec).ok()).unwrap_or_default(),
            finished: matches!(phase, Some("Succeeded" | "Failed")),
            leaving: pod.metadata.deletion_timestamp.is_some(),
            workload: labels.and_then(|labels| labels.get(workload_label).cloned()),
            template: labels.and_then(|labels| TemplateHash::parse(labels.get(TemplateHash::LABEL)?)),
            version: pod.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()),
        }
    }
}

impl PodFacts {
    /// Whether the workload's template with this shape made the pod. A pod that does not say which template made it is
    /// known by its requests.
    #[must_use]
    pub fn is_of(&self, workload: &str, shape: &Shape) -> bool {
        let made = match self.template {
            Some(template) => template == shape.template_hash(),
            None => self.requests == shape.requests,
        };
        self.workload.as_deref() == Some(workload) && made
    }
}

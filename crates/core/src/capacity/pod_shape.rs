//! What a pod asks of a node.

use super::{Amounts, NotAQuantity, PODS};
use k8s_openapi::api::core::v1::{
    Affinity, Container, NodeSelectorTerm, PodSpec, PodTemplateSpec, Toleration,
};
use std::collections::BTreeMap;

/// A resource request that is not a quantity.
#[derive(Debug, thiserror::Error)]
#[error("{container}: the amount of {resource} cannot be read: {source}")]
pub struct ShapeError {
    /// The container, as a path in the pod's spec.
    pub container: String,
    /// The name of the resource.
    pub resource: String,
    /// What is wrong with it.
    #[source]
    pub source: NotAQuantity,
}

/// What decides on which nodes a pod fits, and how much it takes there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodShape {
    /// What it requests of a node, one pod included.
    pub requests: Amounts,
    /// The labels a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity: one of these terms must match, if there are any.
    pub node_terms: Vec<NodeSelectorTerm>,
    /// The taints it tolerates.
    pub tolerations: Vec<Toleration>,
}

impl PodShape {
    /// The shape of the pods that a template makes.
    ///
    /// # Errors
    /// A request that is not a quantity.
    pub fn of_template(template: &PodTemplateSpec) -> Result<Self, ShapeError> {
        template.spec.as_ref().map_or_else(|| Ok(Self::default()), Self::of_spec)
    }

    /// The shape of a pod.
    ///
    /// # Errors
    /// A request that is not a quantity.
    pub fn of_spec(spec: &PodSpec) -> Result<Self, ShapeError> {
        let required = spec.affinity.as_ref().and_then(required_node_terms);
        Ok(Self {
            requests: requests(spec)?,
            node_selector: spec.node_selector.clone().unwrap_or_default(),
            node_terms: required.unwrap_or_default(),
            tolerations: spec.tolerations.clone().unwrap_or_default(),
        })
    }
}

fn required_node_terms(affinity: &Affinity) -> Option<Vec<NodeSelectorTerm>> {
    let node = affinity.node_affinity.as_ref()?;
    let required = node.required_during_scheduling_ignored_during_execution.as_ref()?;
    Some(required.node_selector_terms.clone())
}

/// The larger of what runs for good (containers and sidecars together) and of the largest moment of the start-up (an
/// init container beside the sidecars started before it), plus overhead; pod-level requests override per resource.
pub(super) fn requests(spec: &PodSpec) -> Result<Amounts, ShapeError> {
    let mut running = Amounts::default();
    for container in &spec.containers {
        running.add(&container_requests("spec.containers", container)?, 1);
    }
    let mut sidecars = Amounts::default();
    let mut starting = Amounts::default();
    for container in spec.init_containers.iter().flatten() {
        let own = container_requests("spec.initContainers", container)?;
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&own, 1);
            starting.raise_to(&sidecars);
        } else {
            let mut moment = sidecars.clone();
            moment.add(&own, 1);
            starting.raise_to(&moment);
        }
    }
    running.add(&sidecars, 1);
    running.raise_to(&starting);
    if let Some(pod_level) = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()) {
        for (name, milli) in parse("spec.resources", pod_level)?.iter() {
            running.set(name, milli);
        }
    }
    if let Some(overhead) = &spec.overhead {
        running.add(&parse("spec.overhead", overhead)?, 1);
    }
    running.set(PODS, 1000);
    Ok(running.not_below_zero())
}

/// A request that is not given equals the limit, as the API server defaults it.
fn container_requests(list: &str, container: &Container) -> Result<Amounts, ShapeError> {
    let place = format!("{list}[{}].resources", container.name);
    let Some(resources) = &container.resources else { return Ok(Amounts::default()) };
    let mut requests = match &resources.limits {
        Some(limits) => parse(&place, limits)?,
        None => Amounts::default(),
    };
    if let Some(given) = &resources.requests {
        for (name, milli) in parse(&place, given)?.iter() {
            requests.set(name, milli);
        }
    }
    Ok(requests)
}

fn parse(
    container: &str,
    quantities: &BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
) -> Result<Amounts, ShapeError> {
    Amounts::parse(quantities).map_err(|(resource, source)| ShapeError {
        container: container.to_owned(),
        resource,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{CPU, MEMORY};
    use serde_json::json;

    fn shape(spec: serde_json::Value) -> PodShape {
        PodShape::of_spec(&serde_json::from_value(spec).unwrap()).unwrap()
    }

    fn container(cpu: &str) -> serde_json::Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn all_containers_count_and_the_pod_itself() {
        let shape = shape(json!({"containers": [container("200m"), container("1")]}));
        assert_eq!(shape.requests.get(CPU), 1200);
        assert_eq!(shape.requests.get(PODS), 1000);
    }

    #[test]
    fn init_containers_count_by_their_largest_moment_and_sidecars_for_good() {
        let mut sidecar = container("100m");
        sidecar["restartPolicy"] = json!("Always");
        let cases = [
            (json!([container("3")]), 3000),
            (json!([container("500m")]), 1000),
            (json!([sidecar, container("500m")]), 1100),
            (json!([sidecar, container("2")]), 2100),
            (json!([container("2"), sidecar]), 2000),
        ];
        for (init, expected) in cases {
            let shape = shape(json!({"containers": [container("1")], "initContainers": init}));
            assert_eq!(shape.requests.get(CPU), expected, "{init}");
        }
    }

    #[test]
    fn limits_stand_for_absent_requests_and_overhead_is_added() {
        let shape = shape(json!({
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "250m"}}}],
            "overhead": {"cpu": "50m"},
        }));
        assert_eq!(shape.requests.get(CPU), 300);
        assert_eq!(shape.requests.get(MEMORY), 1_073_741_824_000);
    }

    #[test]
    fn requests_of_the_whole_pod_override_those_of_its_containers() {
        let shape =
            shape(json!({"containers": [container("200m")], "resources": {"requests": {"cpu": "2"}}}));
        assert_eq!(shape.requests.get(CPU), 2000);
    }

    #[test]
    fn a_bad_quantity_names_its_container_and_resource() {
        let spec = serde_json::from_value(json!({"containers": [container("half")]})).unwrap();
        let error = PodShape::of_spec(&spec).unwrap_err().to_string();
        assert!(
            error.starts_with("spec.containers[c].resources: the amount of cpu cannot be read"),
            "{error}"
        );
    }
}

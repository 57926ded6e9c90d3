//! What a pod asks of a node.

use super::amount::EPHEMERAL_STORAGE;
use super::{Amounts, CPU, MEMORY, NotAQuantity, PODS};
use k8s_openapi::api::core::v1::{
    Affinity, Container, NodeSelectorTerm, PodSpec, PodTemplateSpec, Toleration,
};
use std::collections::BTreeMap;
use std::fmt;

/// A resource request that no pod can have.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// Its amount is not a quantity.
    #[error("{field}: {source}")]
    Quantity {
        /// The field of the object.
        field: String,
        /// What is wrong with it.
        #[source]
        source: NotAQuantity,
    },
    /// Its name is not one that Kubernetes knows for containers.
    #[error(
        "{field}: containers have no resource {resource:?}; it must be cpu, memory, ephemeral-storage or hugepages-<size>, \
         or be qualified with a domain, such as example.com/gpu"
    )]
    Resource {
        /// The field of the object.
        field: String,
        /// The name of the resource.
        resource: String,
    },
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
    /// A request that is not a quantity, or of a resource that no container can have. Fields are named as in the object that
    /// has the template.
    pub fn of_template(template: &PodTemplateSpec) -> Result<Self, ShapeError> {
        let Some(spec) = &template.spec else { return Ok(Self::default()) };
        check_resource_names("spec.template.spec", spec)?;
        Self::of_spec_at("spec.template.spec", spec)
    }

    /// The shape of a pod.
    ///
    /// # Errors
    /// A request that is not a quantity.
    pub fn of_spec(spec: &PodSpec) -> Result<Self, ShapeError> {
        Self::of_spec_at("spec", spec)
    }

    fn of_spec_at(field: &str, spec: &PodSpec) -> Result<Self, ShapeError> {
        let required = spec.affinity.as_ref().and_then(required_node_terms);
        Ok(Self {
            requests: requests_at(field, spec)?,
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

/// The field that a container is in. It is written only if something is wrong there: every pod of a fleet is read.
struct ContainerField<'a> {
    spec: &'a str,
    list: &'a str,
    index: usize,
}

impl fmt::Display for ContainerField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}[{}]", self.spec, self.list, self.index)
    }
}

/// The containers of a list, each with the field it is in.
fn containers<'a>(
    spec: &'a str,
    list: &'a str,
    containers: &'a [Container],
) -> impl Iterator<Item = (ContainerField<'a>, &'a Container)> {
    let each = move |(index, container)| (ContainerField { spec, list, index }, container);
    containers.iter().enumerate().map(each)
}

/// Whether the resources are those that an API server lets containers have.
fn check_resource_names(field: &str, spec: &PodSpec) -> Result<(), ShapeError> {
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let all = containers(field, "containers", &spec.containers);
    let all = all.chain(containers(field, "initContainers", init));
    let all = all.map(|(field, container)| (field.to_string(), container.resources.as_ref()));
    for (field, resources) in all.chain([(field.to_owned(), spec.resources.as_ref())]) {
        let Some(resources) = resources else { continue };
        for (list, quantities) in [("requests", &resources.requests), ("limits", &resources.limits)] {
            let mut names = quantities.iter().flatten().map(|(name, _)| name);
            if let Some(unknown) = names.find(|name| !is_container_resource(name)) {
                let field = format!("{field}.resources.{list}");
                return Err(ShapeError::Resource { field, resource: unknown.clone() });
            }
        }
    }
    Ok(())
}

fn is_container_resource(name: &str) -> bool {
    [CPU, MEMORY, EPHEMERAL_STORAGE].contains(&name) || name.starts_with("hugepages-") || name.contains('/')
}

/// What a pod requests.
pub(super) fn requests(spec: &PodSpec) -> Result<Amounts, ShapeError> {
    requests_at("spec", spec)
}

/// The larger of what runs for good (containers and sidecars together) and of the largest moment of the start-up (an
/// init container beside the sidecars started before it), plus overhead; pod-level requests override per resource.
fn requests_at(field: &str, spec: &PodSpec) -> Result<Amounts, ShapeError> {
    let mut running = Amounts::default();
    for (field, container) in containers(field, "containers", &spec.containers) {
        running.add(&container_requests(&field, container)?, 1);
    }
    let mut sidecars = Amounts::default();
    let mut starting = Amounts::default();
    let init = spec.init_containers.as_deref().unwrap_or_default();
    for (field, container) in containers(field, "initContainers", init) {
        let own = container_requests(&field, container)?;
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
        for (name, milli) in parse(field, "resources.requests", pod_level)?.iter() {
            running.set(name, milli);
        }
    }
    if let Some(overhead) = &spec.overhead {
        running.add(&parse(field, "overhead", overhead)?, 1);
    }
    running.set(PODS, 1000);
    Ok(running.not_below_zero())
}

/// A request that is not given equals the limit, as the API server defaults it.
fn container_requests(field: &ContainerField<'_>, container: &Container) -> Result<Amounts, ShapeError> {
    let Some(resources) = &container.resources else { return Ok(Amounts::default()) };
    let mut requests = match &resources.limits {
        Some(limits) => parse(field, "resources.limits", limits)?,
        None => Amounts::default(),
    };
    if let Some(given) = &resources.requests {
        for (name, milli) in parse(field, "resources.requests", given)?.iter() {
            requests.set(name, milli);
        }
    }
    Ok(requests)
}

fn parse(
    field: impl fmt::Display,
    list: &str,
    quantities: &BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
) -> Result<Amounts, ShapeError> {
    Amounts::parse(quantities).map_err(|(resource, source)| ShapeError::Quantity {
        field: format!("{field}.{list}.{resource}"),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn a_bad_quantity_names_its_field() {
        let bad = json!({"name": "c", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "half"}}});
        let spec: PodSpec = serde_json::from_value(json!({"containers": [container("1"), bad]})).unwrap();
        let error = PodShape::of_spec(&spec).unwrap_err().to_string();
        assert!(
            error.starts_with("spec.containers[1].resources.requests.cpu: \"half\" is not a quantity"),
            "{error}"
        );
        let template = PodTemplateSpec { spec: Some(spec), ..PodTemplateSpec::default() };
        let error = PodShape::of_template(&template).unwrap_err().to_string();
        assert!(error.starts_with("spec.template.spec.containers[1].resources.requests.cpu: "), "{error}");
    }

    #[test]
    fn a_template_asks_only_for_resources_that_containers_can_have() {
        let shape = |list: &str, resource: &str| {
            let container = json!({"name": "c", "resources": {list: {resource: "1"}}});
            let template = json!({"spec": {"containers": [{"name": "b"}], "initContainers": [container]}});
            PodShape::of_template(&serde_json::from_value(template).unwrap())
        };
        for fine in ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"] {
            assert!(shape("requests", fine).is_ok() && shape("limits", fine).is_ok(), "{fine}");
        }
        for (list, odd) in [("requests", "memmory"), ("limits", "gpu"), ("requests", "pods")] {
            let error = shape(list, odd).unwrap_err().to_string();
            let field = format!("spec.template.spec.initContainers[0].resources.{list}: ");
            assert!(error.starts_with(&field) && error.contains(odd), "{error}");
            assert!(error.contains("example.com/gpu"), "{error}");
        }
        let running = json!({"containers": [{"name": "c", "resources": {"requests": {"memmory": "1"}}}]});
        let running = serde_json::from_value(running).unwrap();
        assert!(PodShape::of_spec(&running).is_ok(), "its API server has taken it");
    }
}

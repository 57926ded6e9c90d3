//! What a Cluster with a topology is made of, by its ClusterClass.

use serde_json::{Value, json};

use super::access::Objects;
use super::json::{list, name, namespace, number, suffix, text};
use super::kinds::{
    AUTOSCALER_MIN, CLUSTER_CLASS, Kind, SANDBOX_BOOTSTRAP_TEMPLATE, SANDBOX_CLUSTER_TEMPLATE,
    SANDBOX_CONTROL_PLANE_TEMPLATE, SANDBOX_MACHINE_TEMPLATE,
};
use super::patches::{Target, Variables, patched, variables};

/// The objects that a topology asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Desired {
    /// The spec of the infrastructure of the cluster.
    pub(super) infrastructure: Value,
    /// The spec of the control plane.
    pub(super) control_plane: Value,
    /// The MachineDeployments.
    pub(super) pools: Vec<Pool>,
}

/// A MachineDeployment that a topology asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pool {
    /// Its name in the topology.
    pub(super) topology_name: String,
    /// The name of the MachineDeployment.
    pub(super) name: String,
    /// How many machines there are at first.
    pub(super) initial: i64,
    /// How many machines there have to be; somebody else scales it if there is no number.
    pub(super) replicas: Option<i64>,
    /// The template of its machines' infrastructure, with its name.
    pub(super) machine_template: (String, Value),
    /// The template of its machines' bootstrap configuration, with its name.
    pub(super) bootstrap_template: (String, Value),
    /// Labels of the MachineDeployment and its machines.
    pub(super) labels: Value,
    /// Annotations of the MachineDeployment and its machines.
    pub(super) annotations: Value,
    /// How machines are deleted.
    pub(super) deletion: Value,
}

/// The class of a Cluster.
pub(super) fn class_of<'a>(cluster: &Value, objects: &'a Objects) -> Result<&'a Value, String> {
    let reference = cluster.pointer("/spec/topology/classRef").unwrap_or(&Value::Null);
    let space = reference.get("namespace").and_then(Value::as_str).unwrap_or(namespace(cluster));
    let class = text(reference, "/name");
    let found = objects.get(CLUSTER_CLASS, space, class);
    found.ok_or_else(|| format!("failed to retrieve ClusterClass {space}/{class}: it does not exist"))
}

/// What the topology of a Cluster asks for.
pub(super) fn desired(cluster: &Value, class: &Value, objects: &Objects) -> Result<Desired, String> {
    let given = list(cluster, "/spec/topology/variables");
    let mut values = variables(class, &[given])?;
    values.insert("builtin".to_owned(), builtin(cluster));
    let whole = |place: &str, kind: Kind, target: Target<'_>| {
        template(class, class.pointer(place), kind, target, &values, objects)
    };
    let mut control_plane =
        whole("/spec/controlPlane/templateRef", SANDBOX_CONTROL_PLANE_TEMPLATE, Target::ControlPlane)?;
    control_plane["version"] = json!(text(cluster, "/spec/topology/version"));
    if let Some(replicas) = number(cluster, "/spec/topology/controlPlane/replicas") {
        control_plane["replicas"] = json!(replicas);
    }
    let infrastructure =
        whole("/spec/infrastructure/templateRef", SANDBOX_CLUSTER_TEMPLATE, Target::Infrastructure)?;
    let pools = list(cluster, "/spec/topology/workers/machineDeployments").iter();
    let pools = pools.map(|declared| pool(cluster, class, declared, objects)).collect::<Result<_, _>>()?;
    Ok(Desired { infrastructure, control_plane, pools })
}

fn builtin(cluster: &Value) -> Value {
    json!({"cluster": {
        "name": name(cluster),
        "namespace": namespace(cluster),
        "uid": text(cluster, "/metadata/uid"),
        "topology": {"version": text(cluster, "/spec/topology/version"), "class": text(cluster, "/spec/topology/classRef/name")},
    }})
}

fn pool(cluster: &Value, class: &Value, declared: &Value, objects: &Objects) -> Result<Pool, String> {
    let (topology_name, wanted) = (text(declared, "/name"), text(declared, "/class"));
    let mut classes = list(class, "/spec/workers/machineDeployments").iter();
    let of_class = classes.find(|each| text(each, "/class") == wanted).ok_or_else(|| {
        format!(
            "MachineDeployment {topology_name:?} is of class {wanted:?}, which ClusterClass {} does not have",
            name(class)
        )
    })?;
    let given = [list(cluster, "/spec/topology/variables"), list(declared, "/variables/overrides")];
    let mut values = variables(class, &given)?;
    let mut about = builtin(cluster);
    about["machineDeployment"] = json!({"topologyName": topology_name, "class": wanted});
    values.insert("builtin".to_owned(), about);
    let part = |place: &str, kind: Kind| {
        template(class, of_class.pointer(place), kind, Target::Workers(wanted), &values, objects)
    };
    let machine = part("/infrastructure/templateRef", SANDBOX_MACHINE_TEMPLATE)?;
    let bootstrap = part("/bootstrap/templateRef", SANDBOX_BOOTSTRAP_TEMPLATE)?;
    let end = suffix(&[text(cluster, "/metadata/uid"), topology_name]);
    let pool_name = format!("{}-{topology_name}-{end}", name(cluster));
    let named = |spec: Value| (format!("{pool_name}-{}", suffix(&[&spec.to_string()])), spec);
    let annotations = merged(of_class, declared, "/metadata/annotations");
    let least = annotations.get(AUTOSCALER_MIN).and_then(Value::as_str).and_then(|least| least.parse().ok());
    let replicas = number(declared, "/replicas");
    Ok(Pool {
        topology_name: topology_name.to_owned(),
        initial: replicas.or(least).unwrap_or(1),
        replicas: replicas.or(if least.is_some() { None } else { Some(1) }),
        machine_template: named(machine),
        bootstrap_template: named(bootstrap),
        labels: merged(of_class, declared, "/metadata/labels"),
        annotations,
        deletion: merged(of_class, declared, "/deletion"),
        name: pool_name,
    })
}

/// The fields of an object in the class and in the topology, which goes before.
fn merged(of_class: &Value, declared: &Value, place: &str) -> Value {
    let mut out = json!({});
    for part in [of_class, declared] {
        for (key, value) in part.pointer(place).and_then(Value::as_object).into_iter().flatten() {
            out[key] = value.clone();
        }
    }
    out
}

/// The spec that objects made from a template of the class have.
fn template(
    class: &Value,
    reference: Option<&Value>,
    kind: Kind,
    target: Target<'_>,
    values: &Variables,
    objects: &Objects,
) -> Result<Value, String> {
    let reference = reference.unwrap_or(&Value::Null);
    let (named, space) = (text(reference, "/name"), namespace(class));
    if text(reference, "/kind") != kind.name {
        return Err(format!(
            "ClusterClass {} refers to {} {named:?}, where the sandbox's Cluster API needs a {}",
            name(class),
            text(reference, "/kind"),
            kind.name
        ));
    }
    let found = objects.get(kind, space, named);
    let found = found.ok_or_else(|| format!("{} {space}/{named} does not exist", kind.name))?;
    let mut out = patched(class, kind, target, found, values)?;
    let spec = out.pointer_mut("/spec/template/spec").map(Value::take);
    Ok(spec.filter(Value::is_object).unwrap_or_else(|| json!({})))
}

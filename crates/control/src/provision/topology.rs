//! The Cluster that is asked of Cluster API: a ClusterClass with its variables, and a pool of machines for each machine type.

use super::cluster_api::{ClassSpec, clusters};
use crate::names::{CLUSTER_NUMBER_LABEL, MACHINE_TYPE_ANNOTATION, PROVISIONER_LABEL};
use portolan_api::CloudProvisioner;
use portolan_api::cloudprovisioner::ClusterClassRef;
use portolan_core::provision::Failure;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The variable of a class that says which machines a pool is of.
const MACHINE_TYPE: &str = "machineType";

/// The namespace of a class that is not named.
const CLASS_NAMESPACE: &str = "portolan";

/// The longest part of a pool's name that is that of its machine type.
const POOL_NAME_AT_MOST: usize = 20;

/// The namespace in which the clusters of a CloudProvisioner are made: that of its class or of its templates.
pub(super) fn home_of(provisioner: &CloudProvisioner) -> String {
    match &provisioner.spec.cluster_template {
        Some(template) => template.namespace.clone(),
        None => class_of(provisioner).namespace,
    }
}

/// The class that the clusters of a CloudProvisioner are made from.
pub(super) fn class_of(provisioner: &CloudProvisioner) -> ClusterClassRef {
    let spec = &provisioner.spec;
    spec.cluster_class.clone().unwrap_or_else(|| ClusterClassRef {
        name: spec.cloud_provider.to_lowercase(),
        namespace: CLASS_NAMESPACE.to_owned(),
        variables: None,
    })
}

/// A Cluster.
///
/// # Errors
/// What the class lacks.
pub(super) fn cluster(
    provisioner: &CloudProvisioner,
    class: &ClassSpec,
    version: &str,
    (name, number): (&str, u32),
    pools: &BTreeMap<String, u32>,
) -> Result<Value, Failure> {
    let reference = class_of(provisioner);
    let pools: Vec<Value> = pools
        .iter()
        .map(|(machine_type, replicas)| pool(provisioner, class, machine_type, *replicas))
        .collect::<Result<_, _>>()?;
    let mut cluster = empty_cluster(provisioner, (name, number));
    cluster["spec"] = json!({ "topology": {
        "classRef": { "name": reference.name, "namespace": reference.namespace },
        "version": version,
        "workers": { "machineDeployments": pools },
    }});
    // Cluster API refuses an empty list.
    let variables = variables(provisioner, class)?;
    if !variables.is_empty() {
        cluster["spec"]["topology"]["variables"] = json!(variables);
    }
    Ok(cluster)
}

/// A Cluster without a spec, with the labels by which it is known again.
pub(super) fn empty_cluster(provisioner: &CloudProvisioner, (name, number): (&str, u32)) -> Value {
    let kind = clusters();
    let uid = provisioner.metadata.uid.as_deref().unwrap_or_default();
    json!({
        "apiVersion": kind.api_version, "kind": kind.kind,
        "metadata": {
            "name": name, "namespace": home_of(provisioner),
            "labels": { PROVISIONER_LABEL: uid, CLUSTER_NUMBER_LABEL: number.to_string() },
        },
    })
}

/// A pool of machines of one type, as an entry of `spec.topology.workers.machineDeployments`.
///
/// # Errors
/// What the class lacks.
pub(super) fn pool(
    provisioner: &CloudProvisioner,
    class: &ClassSpec,
    machine_type: &str,
    replicas: u32,
) -> Result<Value, Failure> {
    let named = class.workers().iter().find(|worker| worker.class == machine_type);
    let variable = class.variables.iter().any(|variable| variable.name == MACHINE_TYPE);
    let (worker, overrides) = match (named, class.workers().first()) {
        (Some(worker), _) => (worker, json!([])),
        (None, Some(worker)) if variable => {
            (worker, json!([{ "name": MACHINE_TYPE, "value": machine_type }]))
        }
        (None, _) => {
            let called = class_of(provisioner);
            return Err(lacking(format!(
                "ClusterClass {}/{} has neither a worker class {machine_type} nor a worker class with the variable \
                 {MACHINE_TYPE}: declare one of them",
                called.namespace, called.name
            )));
        }
    };
    let mut pool = json!({
        "class": worker.class, "name": pool_name(machine_type), "replicas": replicas,
        "metadata": { "annotations": { MACHINE_TYPE_ANNOTATION: machine_type } },
    });
    if overrides.as_array().is_some_and(|overrides| !overrides.is_empty()) {
        pool["variables"] = json!({ "overrides": overrides });
    }
    Ok(pool)
}

/// The variables of the class: those of the spec, and what the spec has fields for.
fn variables(provisioner: &CloudProvisioner, class: &ClassSpec) -> Result<Vec<Value>, Failure> {
    let spec = &provisioner.spec;
    let reference = class_of(provisioner);
    let mut values: Map<String, Value> =
        reference.variables.as_ref().and_then(|given| given.0.as_object().cloned()).unwrap_or_default();
    if let Some(secret) = &spec.credentials_secret_ref
        && secret.namespace != reference.namespace
    {
        return Err(lacking(format!(
            "spec.credentialsSecretRef names a Secret in namespace {}, and objects of Cluster API use Secrets of their own \
             namespace: put it into {}",
            secret.namespace, reference.namespace
        )));
    }
    let secret = spec.credentials_secret_ref.as_ref().map(|secret| &secret.name);
    let fields = [
        ("region", "spec.region", spec.region.as_ref()),
        ("floatingIP", "spec.floatingIP", spec.floating_ip.as_ref()),
        ("credentialsSecretName", "spec.credentialsSecretRef", secret),
    ];
    for (variable, field, value) in fields {
        let (Some(value), false) = (value, values.contains_key(variable)) else { continue };
        if !class.variables.iter().any(|declared| declared.name == variable) {
            return Err(lacking(format!(
                "{field} is given, and ClusterClass {}/{} has no variable {variable} for it: declare it there",
                reference.namespace, reference.name
            )));
        }
        values.insert(variable.to_owned(), json!(value));
    }
    Ok(values.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect())
}

fn lacking(message: String) -> Failure {
    Failure { reason: "InvalidClusterClass".to_owned(), message }
}

/// The name of a pool: that of its machine type, as far as that can be the name of an object.
pub(super) fn pool_name(machine_type: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = machine_type.chars().map(plain).take(POOL_NAME_AT_MOST).collect();
    let name = name.trim_matches('-');
    if name == machine_type {
        return name.to_owned();
    }
    let digest = Sha256::digest(machine_type);
    let hex: String = digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
    if name.is_empty() { format!("pool-{hex}") } else { format!("{name}-{hex}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provisioner(spec: Value) -> CloudProvisioner {
        let mut all = json!({"cloudClusterName": "cloud1", "cloudProvider": "OpenStack"});
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner",
            "metadata": {"name": "cp1", "uid": "0b1c"}, "spec": all,
        }))
        .unwrap()
    }

    fn class(variables: &[&str], workers: &[&str]) -> ClassSpec {
        let variables: Vec<Value> = variables.iter().map(|name| json!({"name": name})).collect();
        let workers: Vec<Value> = workers.iter().map(|class| json!({"class": class})).collect();
        serde_json::from_value(json!({"variables": variables, "workers": {"machineDeployments": workers}}))
            .unwrap()
    }

    #[test]
    fn fields_of_the_spec_become_variables_and_machine_types_become_pools() {
        let spec = json!({
            "region": "rennes", "floatingIP": "203.0.113.7",
            "credentialsSecretRef": {"namespace": "clouds", "name": "openstack"},
            "clusterClass": {"name": "quick", "namespace": "clouds", "variables": {"image": "ubuntu", "region": "nantes"}},
        });
        let class =
            class(&["machineType", "region", "floatingIP", "credentialsSecretName", "image"], &["worker"]);
        let pools = BTreeMap::from([("m1.large".to_owned(), 2), ("small".to_owned(), 1)]);
        let made = cluster(&provisioner(spec), &class, "v1.36.3", ("cloud1-ab", 3), &pools).unwrap();
        assert_eq!(made["metadata"]["labels"], json!({PROVISIONER_LABEL: "0b1c", CLUSTER_NUMBER_LABEL: "3"}));
        let topology = &made["spec"]["topology"];
        assert_eq!(topology["classRef"], json!({"name": "quick", "namespace": "clouds"}));
        assert_eq!(
            topology["variables"],
            json!([
                {"name": "credentialsSecretName", "value": "openstack"},
                {"name": "floatingIP", "value": "203.0.113.7"},
                {"name": "image", "value": "ubuntu"},
                {"name": "region", "value": "nantes"},
            ]),
            "what the user gives goes before"
        );
        let first = &topology["workers"]["machineDeployments"][0];
        assert_eq!((&first["class"], &first["replicas"]), (&json!("worker"), &json!(2)));
        assert_eq!(first["variables"]["overrides"], json!([{"name": "machineType", "value": "m1.large"}]));
        assert!(first["name"].as_str().unwrap().starts_with("m1-large-"));
        assert_eq!(topology["workers"]["machineDeployments"][1]["name"], "small");
    }

    #[test]
    fn what_the_class_lacks_is_named() {
        let pools = BTreeMap::from([("small".to_owned(), 1)]);
        let made =
            |spec: Value, class: &ClassSpec| cluster(&provisioner(spec), class, "v1.36.3", ("c", 1), &pools);
        let error = made(json!({}), &class(&[], &["worker"])).unwrap_err();
        assert!(
            error.message.contains("portolan/openstack") && error.message.contains("machineType"),
            "{}",
            error.message
        );
        let error = made(json!({"region": "rennes"}), &class(&["machineType"], &["worker"])).unwrap_err();
        assert!(error.message.contains("no variable region"), "{}", error.message);
        let error = made(
            json!({"credentialsSecretRef": {"namespace": "other", "name": "s"}}),
            &class(&["machineType"], &["worker"]),
        );
        assert!(error.unwrap_err().message.contains("namespace other"));
        let plain = made(json!({}), &class(&[], &["small"])).unwrap();
        assert_eq!(plain["spec"]["topology"]["workers"]["machineDeployments"][0]["class"], "small");
        assert_eq!(plain["spec"]["topology"].get("variables"), None, "an empty list would be refused");
    }
}

//! Makes the objects that a topology asks for.

use portolan_runtime::CallError;
use serde_json::{Value, json};

use super::access::Objects;
use super::conditions::{Verdict, no, yes};
use super::json::{label, name, namespace, owner_reference, suffix, text};
use super::kinds::{
    CLUSTER, CLUSTER_NAME, DEPLOYMENT_FINALIZER, Kind, MACHINE, MACHINE_DEPLOYMENT,
    SANDBOX_BOOTSTRAP_TEMPLATE, SANDBOX_CLUSTER, SANDBOX_CONTROL_PLANE, SANDBOX_MACHINE_TEMPLATE,
    TOPOLOGY_DEPLOYMENT, TOPOLOGY_OWNED,
};
use super::run::{Controllers, control_plane_of};
use super::topology::{Pool, class_of, desired};

const CLASS_NOT_RECONCILED: &str = "ClusterClass not reconciled. If this condition persists please check ClusterClass \
     status. A ClusterClass is reconciled if .status.observedGeneration == .metadata.generation is true.";

impl Controllers {
    /// Makes the objects of a Cluster with a topology what they should be, and says how far that is.
    pub(super) async fn build(&mut self, cluster: &Value, objects: &Objects) -> Result<Verdict, CallError> {
        let class = match class_of(cluster, objects) {
            Ok(class) => class,
            Err(problem) => return Ok(no("ReconcileFailed", problem)),
        };
        if class.pointer("/status/observedGeneration") != class.pointer("/metadata/generation") {
            return Ok(no("ClusterClassNotReconciled", CLASS_NOT_RECONCILED));
        }
        let desired = match desired(cluster, class, objects) {
            Ok(desired) => desired,
            Err(problem) => {
                let said = format!("error computing the desired state of the Cluster topology: {problem}");
                return Ok(no("ReconcileFailed", said));
            }
        };
        self.build_part(cluster, objects, SANDBOX_CLUSTER, &desired.infrastructure).await?;
        self.build_part(cluster, objects, SANDBOX_CONTROL_PLANE, &desired.control_plane).await?;
        let wanted = json!({
            "metadata": {"labels": {TOPOLOGY_OWNED: "", CLUSTER_NAME: name(cluster)}},
            "spec": {
                "infrastructureRef": reference(SANDBOX_CLUSTER, &part_name(cluster)),
                "controlPlaneRef": reference(SANDBOX_CONTROL_PLANE, &part_name(cluster)),
            },
        });
        if !contains(cluster, &wanted) {
            self.access.patch(CLUSTER, cluster, &wanted).await?;
        }
        let version = text(cluster, "/spec/topology/version");
        let control_plane = control_plane_of(cluster, objects);
        let runs = control_plane.map_or("", |found| text(found, "/status/version"));
        for pool in &desired.pools {
            self.build_pool(cluster, objects, pool, runs == version).await?;
        }
        for other in objects.of_cluster(MACHINE_DEPLOYMENT, cluster) {
            let owned = label(other, TOPOLOGY_OWNED).is_some();
            if owned && !desired.pools.iter().any(|pool| pool.name == name(other)) {
                self.access.delete(MACHINE_DEPLOYMENT, other).await?;
            }
        }
        let behind = |machine: &Value| text(machine, "/spec/version") != version;
        if !runs.is_empty() && (runs != version || objects.of_cluster(MACHINE, cluster).any(behind)) {
            return Ok(no("ClusterUpgrading", format!("Cluster is upgrading to {version}")));
        }
        Ok(yes("ReconcileSucceeded"))
    }

    /// The infrastructure or the control plane of a Cluster.
    async fn build_part(
        &self,
        cluster: &Value,
        objects: &Objects,
        kind: Kind,
        spec: &Value,
    ) -> Result<(), CallError> {
        let part = part_name(cluster);
        match objects.get(kind, namespace(cluster), &part) {
            Some(found) if !contains(found, &json!({ "spec": spec })) => {
                self.access.patch(kind, found, &json!({ "spec": spec })).await
            }
            Some(_) => Ok(()),
            None => self.access.create(kind, owned(cluster, &part, spec)).await,
        }
    }

    /// A MachineDeployment with its templates. Machines of another version wait for the control plane.
    async fn build_pool(
        &self,
        cluster: &Value,
        objects: &Objects,
        pool: &Pool,
        upgraded: bool,
    ) -> Result<(), CallError> {
        let found = objects.get(MACHINE_DEPLOYMENT, namespace(cluster), &pool.name);
        for (kind, (template, spec)) in [
            (SANDBOX_MACHINE_TEMPLATE, &pool.machine_template),
            (SANDBOX_BOOTSTRAP_TEMPLATE, &pool.bootstrap_template),
        ] {
            if objects.get(kind, namespace(cluster), template).is_none() {
                let template = owned(cluster, template, &json!({"template": {"spec": spec}}));
                self.access.create(kind, template).await?;
            }
        }
        let current = found.map(|found| text(found, "/spec/template/spec/version")).filter(|_| !upgraded);
        let version = current.unwrap_or(text(cluster, "/spec/topology/version"));
        let mut wanted = deployment(cluster, pool, version);
        let Some(found) = found else {
            wanted["spec"]["replicas"] = json!(pool.initial);
            wanted["metadata"]["finalizers"] = json!([DEPLOYMENT_FINALIZER]);
            return self.access.create(MACHINE_DEPLOYMENT, wanted).await;
        };
        if let Some(replicas) = pool.replicas {
            wanted["spec"]["replicas"] = json!(replicas);
        }
        if contains(found, &wanted) {
            Ok(())
        } else {
            self.access.patch(MACHINE_DEPLOYMENT, found, &wanted).await
        }
    }
}

fn deployment(cluster: &Value, pool: &Pool, version: &str) -> Value {
    let own = json!({
        CLUSTER_NAME: name(cluster),
        TOPOLOGY_OWNED: "",
        TOPOLOGY_DEPLOYMENT: pool.topology_name,
    });
    let mut labels = pool.labels.clone();
    for (key, value) in own.as_object().into_iter().flatten() {
        labels[key] = value.clone();
    }
    let mut deletion = pool.deletion.clone();
    let order = deletion.as_object_mut().and_then(|fields| fields.remove("order")).unwrap_or(json!("Random"));
    let mut out = owned(
        cluster,
        &pool.name,
        &json!({
            "clusterName": name(cluster),
            "selector": {"matchLabels": own},
            "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
            "deletion": {"order": order},
            "template": {
                "metadata": {"labels": labels.clone(), "annotations": pool.annotations},
                "spec": {
                    "clusterName": name(cluster),
                    "version": version,
                    "bootstrap": {"configRef": reference(SANDBOX_BOOTSTRAP_TEMPLATE, &pool.bootstrap_template.0)},
                    "infrastructureRef": reference(SANDBOX_MACHINE_TEMPLATE, &pool.machine_template.0),
                    "deletion": deletion,
                },
            },
        }),
    );
    out["metadata"]["labels"] = labels;
    out["metadata"]["annotations"] = pool.annotations.clone();
    out
}

/// An object of a topology, which goes with its Cluster.
fn owned(cluster: &Value, part: &str, spec: &Value) -> Value {
    json!({
        "metadata": {
            "name": part,
            "namespace": namespace(cluster),
            "labels": {CLUSTER_NAME: name(cluster), TOPOLOGY_OWNED: ""},
            "ownerReferences": [owner_reference(&CLUSTER.api_version(), CLUSTER.name, cluster, true)],
        },
        "spec": spec,
    })
}

/// The name of the infrastructure and of the control plane of a Cluster.
fn part_name(cluster: &Value) -> String {
    format!("{}-{}", name(cluster), suffix(&[text(cluster, "/metadata/uid")]))
}

pub(super) fn reference(kind: Kind, name: &str) -> Value {
    json!({"apiGroup": kind.group, "kind": kind.name, "name": name})
}

/// Whether an object has all that is wanted; nothing is as good as an empty object.
pub(super) fn contains(found: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(fields) => {
            fields.iter().all(|(key, wanted)| contains(found.get(key).unwrap_or(&Value::Null), wanted))
        }
        wanted => found == wanted,
    }
}

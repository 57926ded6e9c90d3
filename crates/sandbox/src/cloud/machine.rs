//! The life of a Machine: it boots, its node registers; in the end it is drained and removed.

use std::time::Duration;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use portolan_runtime::CallError;
use serde_json::{Value, json};

use super::access::{NOT_FOUND, Objects, unless};
use super::build::contains;
use super::cluster::provider_status;
use super::conditions::{Verdict, yes};
use super::deployment::{deployment_of, is_up_to_date};
use super::drain::{Drain, drain};
use super::json::{annotation, deleting, flag, name, namespace, number, text};
use super::kinds::{
    CLUSTER_NAME, EXCLUDE_DRAINING, MACHINE, MACHINE_FINALIZER, SANDBOX_BOOTSTRAP, SANDBOX_MACHINE,
};
use super::machine_status::{MachineView, machine_status};
use super::provider::Progress;
use super::run::{Controllers, key};
use crate::cluster::node_object;
use crate::world::NodeConfig;

/// How long until a drain is tried again.
const DRAIN_AGAIN: Duration = Duration::from_secs(20);
/// How long the deletion of a node is tried, if the Machine does not say.
const DELETE_NODE: i64 = 10;
/// Annotations that begin so hold up the deletion.
const PRE_DRAIN_HOOK: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";

impl Controllers {
    /// Brings a Machine closer to what it should be.
    pub(super) async fn machine(
        &mut self,
        machine: &Value,
        cluster: &Value,
        objects: &Objects,
    ) -> Result<(), CallError> {
        let space = namespace(machine);
        let infrastructure = objects.referenced(space, machine.pointer("/spec/infrastructureRef"));
        let bootstrap = objects.referenced(space, machine.pointer("/spec/bootstrap/configRef"));
        if !deleting(machine) {
            self.access.set_finalizer(MACHINE, machine, MACHINE_FINALIZER, true).await?;
            self.boot(machine, infrastructure, bootstrap).await?;
        }
        self.fill_in(machine, infrastructure, bootstrap, objects).await?;
        let workload = self.workloads.get(&key(cluster)).cloned();
        let owner = deployment_of(machine, objects);
        let mut view = MachineView {
            machine,
            cluster,
            infrastructure,
            bootstrap,
            workload: workload.as_ref(),
            up_to_date: owner.is_none_or(|owner| is_up_to_date(machine, owner, objects)),
            deleting: None,
            now: self.now(),
        };
        if deleting(machine) {
            view.deleting = self.remove(&view).await?;
            if view.deleting.is_none() {
                self.deletions.remove(&key(machine));
                self.registered.remove(&key(machine));
                return self.access.set_finalizer(MACHINE, machine, MACHINE_FINALIZER, false).await;
            }
        }
        let mut status = machine_status(&view, &self.time());
        let draining = view.deleting.as_ref().is_some_and(|deleting| deleting.reason == "DrainingNode");
        if draining && machine.pointer("/status/deletion/nodeDrainStartTime").is_none() {
            status["deletion"] = json!({"nodeDrainStartTime": self.time()});
        }
        self.access.set_status(MACHINE, machine, &status).await
    }

    /// Has the cloud make the machine, and shows how far it is.
    async fn boot(
        &mut self,
        machine: &Value,
        infrastructure: Option<&Value>,
        bootstrap: Option<&Value>,
    ) -> Result<(), CallError> {
        let started = bootstrap.is_none_or(|found| flag(found, "/status/initialization/dataSecretCreated"));
        if let Some(bootstrap) = bootstrap.filter(|_| !started) {
            let status = json!({
                "dataSecretName": name(machine),
                "initialization": {"dataSecretCreated": true},
            });
            self.access.set_status(SANDBOX_BOOTSTRAP, bootstrap, &status).await?;
        }
        let Some(infrastructure) = infrastructure.filter(|_| started) else { return Ok(()) };
        let (kind, cluster) = (text(infrastructure, "/spec/machineType"), text(machine, "/spec/clusterName"));
        let now = self.now();
        let progress = self.provider().machine((namespace(machine), name(machine)), cluster, kind, now);
        if progress == Progress::Done && !self.registered.contains(&key(machine)) {
            self.register(machine, kind);
        }
        let mut status = provider_status(infrastructure, SANDBOX_MACHINE.name, &progress, &self.time());
        if matches!(progress, Progress::Provisioned | Progress::Done) {
            status["addresses"] = json!([{"type": "Hostname", "address": name(machine)}]);
            if infrastructure.pointer("/spec/providerID").is_none() {
                let id = json!({"spec": {"providerID": provider_id(machine)}});
                self.access.patch(SANDBOX_MACHINE, infrastructure, &id).await?;
            }
        }
        self.access.set_status(SANDBOX_MACHINE, infrastructure, &status).await
    }

    /// The node of the machine comes up.
    fn register(&mut self, machine: &Value, machine_type: &str) {
        let Some(cluster) = self.world.cluster(text(machine, "/spec/clusterName")) else { return };
        let index = self.registered.len();
        let Some(offered) = self.provider().config.machine_types.get(machine_type).cloned() else { return };
        let node = node(machine, machine_type, &offered.node, index, &self.time());
        let node = with_resources(node, &offered.resources);
        match cluster.register_node(node) {
            Ok(()) => {
                self.note(&format!("machine {} of type {machine_type} is a node", name(machine)));
                self.registered.insert(key(machine));
                self.changed.notify_one();
            }
            Err(problem) => self.note(&format!("node of machine {}: {problem}", name(machine))),
        }
    }

    /// Takes over what the parts of a Machine say, and how its MachineDeployment has it deleted.
    async fn fill_in(
        &self,
        machine: &Value,
        infrastructure: Option<&Value>,
        bootstrap: Option<&Value>,
        objects: &Objects,
    ) -> Result<(), CallError> {
        let mut wanted = json!({});
        let id = infrastructure.and_then(|found| found.pointer("/spec/providerID"));
        if id.is_some() && machine.pointer("/spec/providerID") != id {
            wanted["providerID"] = json!(id);
        }
        let secret = bootstrap.and_then(|found| found.pointer("/status/dataSecretName"));
        if secret.is_some() && machine.pointer("/spec/bootstrap/dataSecretName") != secret {
            wanted["bootstrap"] = json!({"dataSecretName": secret});
        }
        // This reaches machines that exist already, also those that are being drained.
        let owner = deployment_of(machine, objects);
        let deletion = owner.and_then(|owner| owner.pointer("/spec/template/spec/deletion"));
        let current = machine.pointer("/spec/deletion").unwrap_or(&Value::Null);
        if let Some(deletion) = deletion.filter(|deletion| !contains(current, deletion)) {
            wanted["deletion"] = deletion.clone();
        }
        if wanted == json!({}) {
            return Ok(());
        }
        self.access.patch(MACHINE, machine, &json!({ "spec": wanted })).await
    }

    /// Removes a Machine step by step; answers what is waited for, and nothing when nothing is left.
    async fn remove(&mut self, view: &MachineView<'_>) -> Result<Option<Verdict>, CallError> {
        let machine = view.machine;
        let known = self.deletions.get(&key(machine));
        if let Some((verdict, _)) = known.filter(|(_, again)| *again > view.now) {
            return Ok(Some(verdict.clone()));
        }
        let hooks = machine.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
        if let Some((hook, _)) = hooks.into_iter().find(|(hook, _)| hook.starts_with(PRE_DRAIN_HOOK)) {
            let message = format!("Waiting for pre-drain hooks to succeed (hooks: {hook})");
            return Ok(Some(yes("WaitingForPreDrainHook").with(message)));
        }
        // In a cluster that goes as a whole nobody has to move, and no node has to be deleted.
        let keep_order = !deleting(view.cluster);
        if keep_order && let Some(verdict) = self.drain_node(view).await {
            let again = self.provider().wake(view.now, DRAIN_AGAIN);
            self.deletions.insert(key(machine), (verdict.clone(), again));
            return Ok(Some(verdict));
        }
        let now = self.now();
        if self.provider().remove_machine((namespace(machine), name(machine)), now)
            && let Some(cluster) = self.world.cluster(text(machine, "/spec/clusterName"))
            && self.registered.contains(&key(machine))
        {
            self.note(&format!("machine {} is removed", name(machine)));
            cluster.fail_node(name(machine));
        }
        if let Some(infrastructure) = view.infrastructure {
            self.access.delete(SANDBOX_MACHINE, infrastructure).await?;
            return Ok(Some(yes("WaitingForInfrastructureDeletion")));
        }
        if let Some(bootstrap) = view.bootstrap {
            self.access.delete(SANDBOX_BOOTSTRAP, bootstrap).await?;
            return Ok(Some(yes("WaitingForBootstrapDeletion")));
        }
        if keep_order { Ok(self.delete_node(view).await) } else { Ok(None) }
    }

    /// Empties the node; answers why it is not empty yet.
    async fn drain_node(&self, view: &MachineView<'_>) -> Option<Verdict> {
        let machine = view.machine;
        let node = view.node().filter(|_| view.infrastructure.is_some())?;
        if annotation(machine, EXCLUDE_DRAINING).is_some() || is_over(view, "nodeDrainTimeoutSeconds", 0) {
            return None;
        }
        let failed =
            || yes("DrainingNode").with("Error draining Node, please check controller logs for errors");
        if !view.is_connected() {
            return Some(failed());
        }
        let access = self.workload(text(machine, "/spec/clusterName"))?;
        match drain(&access, node).await {
            Ok(Drain::Done) => None,
            Ok(Drain::Waiting(message)) => Some(yes("DrainingNode").with(message)),
            Err(error) => {
                self.note(&format!("drain of node {}: {error}", name(node)));
                Some(failed())
            }
        }
    }

    /// Deletes the node; answers why it is not deleted yet. After some time it is left behind.
    async fn delete_node(&self, view: &MachineView<'_>) -> Option<Verdict> {
        let node = view.node()?;
        let access = self.workload(text(view.machine, "/spec/clusterName"))?;
        if view.is_connected() {
            let path = format!("/api/v1/nodes/{}", name(node));
            let deleted = access.send(Method::DELETE, &path, None).await;
            let Err(error) = unless(deleted, NOT_FOUND) else { return None };
            self.note(&format!("deletion of node {}: {error}", name(node)));
        }
        if is_over(view, "nodeDeletionTimeoutSeconds", DELETE_NODE) {
            return None;
        }
        self.provider().wake(view.now, Duration::from_secs(1));
        Some(yes("DeletingNode").with("Error deleting Node, please check controller logs for errors"))
    }
}

/// Whether a time that the Machine sets for a step of its deletion is over. Zero is for ever.
fn is_over(view: &MachineView<'_>, field: &str, default: i64) -> bool {
    let seconds = number(view.machine, &format!("/spec/deletion/{field}")).unwrap_or(default);
    let began = match field {
        "nodeDrainTimeoutSeconds" => text(view.machine, "/status/deletion/nodeDrainStartTime"),
        _ => text(view.machine, "/metadata/deletionTimestamp"),
    };
    let began: Option<Timestamp> = began.parse().ok();
    seconds > 0
        && began.is_some_and(|began| view.now.duration_since(began) >= SignedDuration::from_secs(seconds))
}

fn provider_id(machine: &Value) -> String {
    format!("sandbox:///{}/{}", namespace(machine), name(machine))
}

/// The node that a machine becomes.
fn node(machine: &Value, machine_type: &str, offered: &NodeConfig, index: usize, time: &Value) -> Value {
    let mut labelled = offered.clone().label("node.kubernetes.io/instance-type", machine_type);
    let labels = machine.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let mut from_machine = Vec::new();
    for (key, value) in labels.filter(|(key, _)| reaches_node(key)) {
        labelled = labelled.label(key, value.as_str().unwrap_or_default());
        from_machine.push(key.as_str());
    }
    let mut node = node_object(name(machine), index, &labelled, time);
    node["spec"]["providerID"] = json!(provider_id(machine));
    node["status"]["nodeInfo"]["kubeletVersion"] = json!(text(machine, "/spec/version"));
    let owner = |field: &str| text(machine, &format!("/metadata/ownerReferences/0/{field}"));
    for (key, value) in [
        (CLUSTER_NAME, text(machine, "/spec/clusterName")),
        ("cluster.x-k8s.io/cluster-namespace", namespace(machine)),
        ("cluster.x-k8s.io/machine", name(machine)),
        ("cluster.x-k8s.io/owner-kind", owner("kind")),
        ("cluster.x-k8s.io/owner-name", owner("name")),
        ("cluster.x-k8s.io/labels-from-machine", &from_machine.join(",")),
        ("cluster.x-k8s.io/annotations-from-machine", ""),
    ] {
        node["metadata"]["annotations"][key] = json!(value);
    }
    node
}

/// Whether a label of a Machine is one of its node too.
fn reaches_node(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let of = |parent: &str| domain == parent || domain.ends_with(&format!(".{parent}"));
    domain == "node-role.kubernetes.io" || of("node-restriction.kubernetes.io") || of("node.cluster.x-k8s.io")
}

fn with_resources(mut node: Value, resources: &std::collections::BTreeMap<String, String>) -> Value {
    for (resource, amount) in resources {
        for part in ["capacity", "allocatable"] {
            node["status"][part][resource] = json!(amount);
        }
    }
    node
}

//! MachineDeployments: as many machines as asked for, of the template that holds now.

use portolan_runtime::CallError;
use serde_json::{Value, json};

use super::access::Objects;
use super::build::reference;
use super::cluster_status::of_machines;
use super::conditions::{Conditions, no, yes};
use super::json::{
    annotation, deleting, holds, list, name, namespace, number, owner_reference, suffix, text,
};
use super::kinds::{
    CLONED_FROM, CLUSTER, CLUSTER_NAME, DELETE_MACHINE, DEPLOYMENT_FINALIZER, DEPLOYMENT_NAME, Kind, MACHINE,
    MACHINE_DEPLOYMENT, MACHINE_FINALIZER, SANDBOX_BOOTSTRAP, SANDBOX_BOOTSTRAP_TEMPLATE, SANDBOX_MACHINE,
    SANDBOX_MACHINE_TEMPLATE,
};
use super::run::{Controllers, control_plane_of};

/// How many machines there may be beyond those asked for while they are replaced.
const SURGE: usize = 1;

impl Controllers {
    /// Brings a MachineDeployment closer to what it should be.
    pub(super) async fn deployment(
        &mut self,
        deployment: &Value,
        cluster: &Value,
        objects: &Objects,
    ) -> Result<(), CallError> {
        let machines = machines_of(deployment, objects);
        if deleting(deployment) {
            for machine in &machines {
                self.access.delete(MACHINE, machine).await?;
            }
            if machines.is_empty() {
                return self
                    .access
                    .set_finalizer(MACHINE_DEPLOYMENT, deployment, DEPLOYMENT_FINALIZER, false)
                    .await;
            }
        } else {
            self.access.set_finalizer(MACHINE_DEPLOYMENT, deployment, DEPLOYMENT_FINALIZER, true).await?;
            if !deleting(cluster) {
                self.own_templates(deployment, cluster, objects).await?;
                self.scale(deployment, cluster, &machines, objects).await?;
            }
        }
        let status = status(deployment, &machines, objects, &self.time());
        self.access.set_status(MACHINE_DEPLOYMENT, deployment, &status).await
    }

    /// Cluster API takes ownership of the templates that a MachineDeployment refers to, so that they go with the Cluster.
    async fn own_templates(
        &self,
        deployment: &Value,
        cluster: &Value,
        objects: &Objects,
    ) -> Result<(), CallError> {
        let uid = text(cluster, "/metadata/uid");
        for (kind, place) in [
            (SANDBOX_MACHINE_TEMPLATE, "/spec/template/spec/infrastructureRef"),
            (SANDBOX_BOOTSTRAP_TEMPLATE, "/spec/template/spec/bootstrap/configRef"),
        ] {
            let Some(found) = objects.referenced(namespace(deployment), deployment.pointer(place)) else {
                continue;
            };
            let mut owners = list(found, "/metadata/ownerReferences").to_vec();
            if owners.iter().any(|owner| text(owner, "/uid") == uid) {
                continue;
            }
            owners.push(json!({
                "apiVersion": CLUSTER.api_version(), "kind": CLUSTER.name, "name": name(cluster), "uid": uid,
            }));
            self.access.patch(kind, found, &json!({"metadata": {"ownerReferences": owners}})).await?;
        }
        Ok(())
    }

    async fn scale(
        &mut self,
        deployment: &Value,
        cluster: &Value,
        machines: &[&Value],
        objects: &Objects,
    ) -> Result<(), CallError> {
        let steps = steps(deployment, machines, |machine| is_up_to_date(machine, deployment, objects));
        for machine in steps.delete {
            self.access.delete(MACHINE, machine).await?;
        }
        // New machines wait for a control plane that runs the version it should.
        let stable = control_plane_of(cluster, objects).is_some_and(|found| {
            let runs = text(found, "/status/version");
            !runs.is_empty() && runs == text(found, "/spec/version")
        });
        for _ in 0..if stable { steps.create } else { 0 } {
            self.create_machine(deployment, objects).await?;
        }
        Ok(())
    }

    async fn create_machine(&mut self, deployment: &Value, objects: &Objects) -> Result<(), CallError> {
        let uid = text(deployment, "/metadata/uid");
        let number = self.provider().next_number(uid);
        let machine = format!("{}-{}", name(deployment), suffix(&[uid, &number.to_string()]));
        let template = deployment.pointer("/spec/template").unwrap_or(&Value::Null);
        let mut labels = template.pointer("/metadata/labels").cloned().unwrap_or(json!({}));
        labels[CLUSTER_NAME] = json!(text(deployment, "/spec/clusterName"));
        labels[DEPLOYMENT_NAME] = json!(name(deployment));
        let mut spec = template.get("spec").cloned().unwrap_or(json!({}));
        for (kind, place) in
            [(SANDBOX_MACHINE, "/infrastructureRef"), (SANDBOX_BOOTSTRAP, "/bootstrap/configRef")]
        {
            let from = spec.pointer(place).cloned();
            let Some(found) = objects.referenced(namespace(deployment), from.as_ref()) else {
                let said = from.map(|from| from.to_string()).unwrap_or_default();
                self.note(&format!("MachineDeployment {}: template {said} does not exist", name(deployment)));
                return Ok(());
            };
            self.access.create(kind, cloned(kind, found, deployment, &machine, &labels)).await?;
            if let Some(place) = spec.pointer_mut(place) {
                *place = reference(kind, &machine);
            }
        }
        let object = json!({
            "metadata": {
                "name": machine,
                "namespace": namespace(deployment),
                "labels": labels,
                "annotations": template.pointer("/metadata/annotations"),
                "finalizers": [MACHINE_FINALIZER],
                "ownerReferences": [owner(deployment, true)],
            },
            "spec": spec,
        });
        self.access.create(MACHINE, object).await?;
        self.provider().use_number(uid);
        Ok(())
    }
}

/// What is to be done with the machines of a MachineDeployment.
struct Steps<'a> {
    create: usize,
    delete: Vec<&'a Value>,
}

fn steps<'a>(
    deployment: &Value,
    machines: &[&'a Value],
    is_up_to_date: impl Fn(&Value) -> bool,
) -> Steps<'a> {
    let wanted = usize::try_from(number(deployment, "/spec/replicas").unwrap_or(1)).unwrap_or(0);
    let live: Vec<&Value> = machines.iter().copied().filter(|machine| !deleting(machine)).collect();
    let (new, old): (Vec<&Value>, Vec<&Value>) =
        live.iter().copied().partition(|machine| is_up_to_date(machine));
    // Machines that are being deleted count until they are gone.
    let most = if old.is_empty() { wanted } else { wanted + SURGE };
    let create = most.saturating_sub(machines.len()).min(wanted.saturating_sub(new.len()));
    let surplus = live.len().saturating_sub(most);
    let available = live.iter().filter(|machine| holds(machine, "Available")).count();
    let outdated = usize::from(available > wanted).min(old.len());
    let mut order: Vec<&Value> = if surplus == 0 { old } else { live };
    order.sort_by_key(|machine| (first_to_go(machine), tie(deployment, machine)));
    Steps { create, delete: order.into_iter().take(surplus.max(outdated)).collect() }
}

/// Marked machines go first, then those that are not healthy.
fn first_to_go(machine: &Value) -> u8 {
    if annotation(machine, DELETE_MACHINE).is_some() {
        0
    } else if machine.pointer("/status/nodeRef").is_none() || !holds(machine, "NodeHealthy") {
        1
    } else {
        2
    }
}

/// Among equals: by age if that is asked for, else by name.
fn tie(deployment: &Value, machine: &Value) -> (i64, String) {
    let created = text(machine, "/metadata/creationTimestamp").parse().map_or(0, jiff::Timestamp::as_second);
    let age = match text(deployment, "/spec/deletion/order") {
        "Newest" => -created,
        "Oldest" => created,
        _ => 0,
    };
    (age, name(machine).to_owned())
}

/// The machines that a MachineDeployment owns.
fn machines_of<'a>(deployment: &Value, objects: &'a Objects) -> Vec<&'a Value> {
    let uid = text(deployment, "/metadata/uid");
    let is_owned = |machine: &&Value| {
        list(machine, "/metadata/ownerReferences").iter().any(|owner| text(owner, "/uid") == uid)
    };
    objects.all(MACHINE).filter(is_owned).collect()
}

/// The MachineDeployment that owns a machine.
pub(super) fn deployment_of<'a>(machine: &Value, objects: &'a Objects) -> Option<&'a Value> {
    let owner = list(machine, "/metadata/ownerReferences").first()?;
    let found = objects.get(MACHINE_DEPLOYMENT, namespace(machine), text(owner, "/name"))?;
    (text(found, "/metadata/uid") == text(owner, "/uid")).then_some(found)
}

/// Whether a machine is of the template and version that its MachineDeployment has now.
pub(super) fn is_up_to_date(machine: &Value, deployment: &Value, objects: &Objects) -> bool {
    let wanted = deployment.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    let made = objects.referenced(namespace(machine), machine.pointer("/spec/infrastructureRef"));
    let from = made.and_then(|made| annotation(made, CLONED_FROM));
    text(machine, "/spec/version") == text(wanted, "/version")
        && from.is_none_or(|from| from == text(wanted, "/infrastructureRef/name"))
}

/// An object made from a template for a machine.
fn cloned(kind: Kind, template: &Value, deployment: &Value, machine: &str, labels: &Value) -> Value {
    json!({
        "metadata": {
            "name": machine,
            "namespace": namespace(deployment),
            "labels": labels,
            "annotations": {
                CLONED_FROM: name(template),
                "cluster.x-k8s.io/cloned-from-groupkind": format!("{}Template.{}", kind.name, kind.group),
            },
            "ownerReferences": [owner(deployment, false)],
        },
        "spec": template.pointer("/spec/template/spec").cloned().unwrap_or(json!({})),
    })
}

fn owner(deployment: &Value, controller: bool) -> Value {
    owner_reference(&MACHINE_DEPLOYMENT.api_version(), MACHINE_DEPLOYMENT.name, deployment, controller)
}

fn status(deployment: &Value, machines: &[&Value], objects: &Objects, time: &Value) -> Value {
    let wanted = number(deployment, "/spec/replicas").unwrap_or(1);
    let having = |kind: &str| machines.iter().filter(|machine| holds(machine, kind)).count();
    let current = i64::try_from(machines.len()).unwrap_or(i64::MAX);
    let available = having("Available");
    let outdated = machines.iter().filter(|machine| !is_up_to_date(machine, deployment, objects)).count();
    let mut conditions = Conditions::of(deployment, time);
    let enough = i64::try_from(available).unwrap_or(i64::MAX) >= wanted;
    let shortage =
        || no("NotAvailable", format!("{available} available replicas, at least {wanted} required"));
    conditions.set("Available", &if enough { yes("Available") } else { shortage() });
    conditions.set("MachinesReady", &of_machines(machines, "Ready", ["Ready", "NotReady", "ReadyUnknown"]));
    let up_to_date = of_machines(machines, "UpToDate", ["UpToDate", "NotUpToDate", "UpToDateUnknown"]);
    conditions.set("MachinesUpToDate", &up_to_date);
    let going_on = |kind: &str, is_so: bool, message: String| {
        if is_so { yes(kind).with(message) } else { no(format!("Not{kind}"), "") }
    };
    let rolling = format!("Rolling out {outdated} not up-to-date replicas");
    conditions.set("RollingOut", &going_on("RollingOut", outdated > 0, rolling));
    let (up, down) = (current < wanted, current > wanted);
    let change = |way: &str| format!("Scaling {way} from {current} to {wanted} replicas");
    conditions.set("ScalingUp", &going_on("ScalingUp", up, change("up")));
    conditions.set("ScalingDown", &going_on("ScalingDown", down, change("down")));
    conditions.set("Remediating", &no("NotRemediating", ""));
    conditions.set("Deleting", &if deleting(deployment) { yes("Deleting") } else { no("NotDeleting", "") });
    conditions.set("Paused", &no("NotPaused", ""));
    let labels = deployment.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let selector = labels.into_iter().flatten();
    let selector = selector.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    json!({
        "observedGeneration": deployment.pointer("/metadata/generation"),
        "phase": if up { "ScalingUp" } else if down { "ScalingDown" } else { "Running" },
        "selector": selector.collect::<Vec<_>>().join(","),
        "replicas": current,
        "readyReplicas": having("Ready"),
        "availableReplicas": available,
        "upToDateReplicas": having("UpToDate"),
        "conditions": conditions.into_value(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, annotations: Value, healthy: bool) -> Value {
        let status = if healthy { "True" } else { "False" };
        let condition = |kind: &str| json!({"type": kind, "status": status});
        json!({
            "metadata": {"name": name, "annotations": annotations},
            "status": {
                "nodeRef": healthy.then(|| json!({"name": name})),
                "conditions": [condition("NodeHealthy"), condition("Available")],
            },
        })
    }

    fn names(deployment: &Value, machines: &[&Value], old: &[&str]) -> (usize, Vec<String>) {
        let steps = steps(deployment, machines, |machine| !old.contains(&name(machine)));
        (steps.create, steps.delete.iter().map(|machine| name(machine).to_owned()).collect())
    }

    #[test]
    fn a_marked_machine_goes_first_then_one_that_is_not_healthy() {
        let deployment = |replicas: i64| json!({"spec": {"replicas": replicas}});
        let (a, b) = (machine("a", json!({}), true), machine("b", json!({}), false));
        let c = machine("c", json!({DELETE_MACHINE: ""}), true);
        let all = [&a, &b, &c];
        assert_eq!(names(&deployment(2), &all, &[]), (0, vec!["c".to_owned()]));
        assert_eq!(names(&deployment(1), &all, &[]).1, ["c", "b"]);
        assert_eq!(names(&deployment(0), &all, &[]).1, ["c", "b", "a"]);
        assert_eq!(names(&deployment(5), &all, &[]), (2, Vec::new()));
    }

    #[test]
    fn a_machine_that_is_being_deleted_counts_until_it_is_gone_and_is_not_deleted_twice() {
        let mut going = machine("a", json!({}), true);
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let b = machine("b", json!({}), true);
        let deployment = json!({"spec": {"replicas": 1}});
        assert_eq!(names(&deployment, &[&going, &b], &[]), (0, Vec::new()));
        let deployment = json!({"spec": {"replicas": 2}});
        assert_eq!(names(&deployment, &[&going, &b], &[]), (0, Vec::new()));
    }

    #[test]
    fn machines_of_an_old_template_are_replaced_one_by_one() {
        let deployment = json!({"spec": {"replicas": 2}});
        let (a, b) = (machine("a", json!({}), true), machine("b", json!({}), true));
        assert_eq!(names(&deployment, &[&a, &b], &["a", "b"]), (1, Vec::new()), "a new one comes first");
        let (booting, ready) = (machine("c", json!({}), false), machine("c", json!({}), true));
        assert_eq!(names(&deployment, &[&a, &b, &booting], &["a", "b"]), (0, Vec::new()));
        assert_eq!(names(&deployment, &[&a, &b, &ready], &["a", "b"]), (0, vec!["a".to_owned()]));
    }
}

//! What the status of a Cluster says.

use serde_json::{Value, json};

use super::conditions::{Conditions, Reasons, Verdict, no, summary, unknown, yes};
use super::json::{condition, deleting, flag, holds, name, number, text};

/// What is known of a Cluster.
pub(super) struct ClusterView<'a> {
    pub(super) cluster: &'a Value,
    pub(super) infrastructure: Option<&'a Value>,
    pub(super) control_plane: Option<&'a Value>,
    pub(super) deployments: Vec<&'a Value>,
    pub(super) machines: Vec<&'a Value>,
    /// How the connection stands; none before the control plane was there.
    pub(super) connection: Option<Verdict>,
    pub(super) topology: Option<Verdict>,
    /// How far the deletion is, if it is being deleted.
    pub(super) deleting: Option<Verdict>,
}

const READY: Reasons = ["Ready", "NotReady", "ReadyUnknown"];
const AVAILABLE: Reasons = ["Available", "NotAvailable", "AvailableUnknown"];
const UP_TO_DATE: Reasons = ["UpToDate", "NotUpToDate", "UpToDateUnknown"];

/// The whole status.
pub(super) fn cluster_status(view: &ClusterView<'_>, time: &Value) -> Value {
    let infrastructure = mirrored(
        view,
        "/spec/infrastructureRef",
        view.infrastructure,
        ("Ready", "infrastructureProvisioned"),
    );
    let control_plane =
        mirrored(view, "/spec/controlPlaneRef", view.control_plane, ("Available", "controlPlaneInitialized"));
    let initialized = holds(view.cluster, "ControlPlaneInitialized")
        || view
            .control_plane
            .is_some_and(|found| flag(found, "/status/initialization/controlPlaneInitialized"));
    let connection = view.connection.clone();
    let connection = connection.unwrap_or_else(|| no("ProbeFailed", "Remote connection not established yet"));
    let workers = of_deployments(view, "Available", AVAILABLE, "NoWorkers");
    let available = available(view, [&connection, &infrastructure, &control_plane, &workers]);
    let mut conditions = Conditions::of(view.cluster, time);
    conditions.set("Available", &available);
    if let Some(topology) = &view.topology {
        conditions.set("TopologyReconciled", topology);
    }
    conditions.set("InfrastructureReady", &infrastructure);
    conditions.set("ControlPlaneInitialized", &initialized_verdict(view, initialized));
    conditions.set("ControlPlaneAvailable", &control_plane);
    conditions.set("ControlPlaneMachinesReady", &yes("NoReplicas"));
    conditions.set("ControlPlaneMachinesUpToDate", &yes("NoReplicas"));
    conditions.set("WorkersAvailable", &workers);
    conditions.set("WorkerMachinesReady", &of_machines(&view.machines, "Ready", READY));
    conditions.set("WorkerMachinesUpToDate", &of_machines(&view.machines, "UpToDate", UP_TO_DATE));
    conditions.set("RemoteConnectionProbe", &connection);
    for kind in ["RollingOut", "ScalingUp", "ScalingDown"] {
        conditions.set(kind, &any_deployment(view, kind));
    }
    conditions.set("Remediating", &no("NotRemediating", ""));
    let deleting = view.deleting.clone().unwrap_or_else(|| no("NotDeleting", ""));
    conditions.set("Deleting", &deleting);
    conditions.set("Paused", &no("NotPaused", ""));
    let provisioned =
        flag(view.cluster, "/status/initialization/infrastructureProvisioned") || infrastructure.holds();
    let sum = |field: &str| view.deployments.iter().filter_map(|found| number(found, field)).sum::<i64>();
    json!({
        "observedGeneration": view.cluster.pointer("/metadata/generation"),
        "phase": phase(view.cluster, provisioned),
        "initialization": {"infrastructureProvisioned": provisioned, "controlPlaneInitialized": initialized},
        "conditions": conditions.into_value(),
        "workers": {
            "desiredReplicas": sum("/spec/replicas"),
            "replicas": sum("/status/replicas"),
            "readyReplicas": sum("/status/readyReplicas"),
            "availableReplicas": sum("/status/availableReplicas"),
            "upToDateReplicas": sum("/status/upToDateReplicas"),
        },
    })
}

fn phase(cluster: &Value, provisioned: bool) -> &'static str {
    let endpoint = cluster.pointer("/spec/controlPlaneEndpoint/host").is_some();
    if deleting(cluster) {
        "Deleting"
    } else if provisioned && endpoint {
        "Provisioned"
    } else if cluster.pointer("/spec/infrastructureRef").is_some() {
        "Provisioning"
    } else {
        "Pending"
    }
}

/// What an object that the Cluster refers to says of itself.
fn mirrored(
    view: &ClusterView<'_>,
    place: &str,
    found: Option<&Value>,
    (kind, field): (&str, &str),
) -> Verdict {
    let Some(reference) = view.cluster.pointer(place) else {
        let waits = if deleting(view.cluster) { "" } else { "Waiting for cluster topology to be reconciled" };
        return unknown("DoesNotExist", waits);
    };
    let of_kind = text(reference, "/kind");
    match found {
        Some(found) => match condition(found, kind) {
            Some(said) => Verdict::of(said),
            None => no(format!("Not{kind}"), format!("{of_kind} status.initialization is not set")),
        },
        None if flag(view.cluster, &format!("/status/initialization/{field}")) => {
            unknown("Deleted", format!("{of_kind} has been deleted"))
        }
        None => unknown("DoesNotExist", format!("{of_kind} does not exist")),
    }
}

fn initialized_verdict(view: &ClusterView<'_>, initialized: bool) -> Verdict {
    let reference = view.cluster.pointer("/spec/controlPlaneRef");
    match (initialized, reference) {
        (true, _) => yes("Initialized"),
        (false, Some(reference)) => {
            let kind = text(reference, "/kind");
            let field = "status.initialization.controlPlaneInitialized";
            no("NotInitialized", format!("Waiting for the {kind} to have {field} set to true"))
        }
        (false, None) => unknown("DoesNotExist", "Waiting for cluster topology to be reconciled"),
    }
}

/// The condition of all MachineDeployments together.
fn of_deployments(view: &ClusterView<'_>, kind: &str, reasons: Reasons, none: &str) -> Verdict {
    if view.deployments.is_empty() {
        return yes(none);
    }
    let verdicts: Vec<(String, Verdict)> = view
        .deployments
        .iter()
        .map(|found| (format!("MachineDeployment {}", name(found)), verdict(found, kind)))
        .collect();
    summary(verdicts.iter().map(|(name, verdict)| (name.clone(), verdict)), reasons)
}

/// The condition of all Machines together.
pub(super) fn of_machines(machines: &[&Value], kind: &str, reasons: Reasons) -> Verdict {
    if machines.is_empty() {
        return yes("NoReplicas");
    }
    let verdicts: Vec<(String, Verdict)> = machines
        .iter()
        .map(|machine| (format!("Machine {}", name(machine)), verdict(machine, kind)))
        .collect();
    summary(verdicts.iter().map(|(name, verdict)| (name.clone(), verdict)), reasons)
}

/// Whether something is going on with any MachineDeployment.
fn any_deployment(view: &ClusterView<'_>, kind: &str) -> Verdict {
    let going_on = view.deployments.iter().filter(|found| holds(found, kind));
    let lines: Vec<String> = going_on
        .map(|found| format!("* MachineDeployment {}: {}", name(found), verdict(found, kind).message))
        .collect();
    if lines.is_empty() { no(format!("Not{kind}"), "") } else { yes(kind).with(lines.join("\n")) }
}

fn verdict(object: &Value, kind: &str) -> Verdict {
    let absent = || unknown("NotYetReported", format!("Condition {kind} not yet reported"));
    condition(object, kind).map_or_else(absent, Verdict::of)
}

/// Whether the Cluster is available. A topology that is only not done yet is no obstacle.
fn available(view: &ClusterView<'_>, parts: [&Verdict; 4]) -> Verdict {
    let names = ["RemoteConnectionProbe", "InfrastructureReady", "ControlPlaneAvailable", "WorkersAvailable"];
    let mut all: Vec<(String, &Verdict)> = names.iter().map(ToString::to_string).zip(parts).collect();
    let failed = ["ReconcileFailed", "ClusterClassNotReconciled"];
    if let Some(topology) =
        view.topology.as_ref().filter(|topology| failed.contains(&topology.reason.as_str()))
    {
        all.push(("TopologyReconciled".to_owned(), topology));
    }
    let gone = view.deleting.as_ref().map(|deleting| no(deleting.reason.clone(), deleting.reason.clone()));
    if let Some(gone) = &gone {
        all.insert(0, ("Deleting".to_owned(), gone));
    }
    summary(all, AVAILABLE)
}

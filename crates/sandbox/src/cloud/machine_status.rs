//! What the status of a Machine says.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conditions::{Conditions, Verdict, no, summary, unknown, yes};
use super::json::{condition, deleting, flag, holds, list, name, text};
use super::workload::Workload;

/// What is known of a Machine.
pub(super) struct MachineView<'a> {
    pub(super) machine: &'a Value,
    pub(super) cluster: &'a Value,
    pub(super) infrastructure: Option<&'a Value>,
    pub(super) bootstrap: Option<&'a Value>,
    /// Its cluster as it was seen last; none before the control plane was there.
    pub(super) workload: Option<&'a Workload>,
    pub(super) up_to_date: bool,
    /// How far the deletion is, if it is being deleted.
    pub(super) deleting: Option<Verdict>,
    pub(super) now: Timestamp,
}

impl MachineView<'_> {
    /// Whether its cluster answered the last time.
    pub(super) fn is_connected(&self) -> bool {
        self.workload.is_some_and(|workload| workload.connected)
    }

    /// Its node, as it was seen last.
    pub(super) fn node(&self) -> Option<&Value> {
        let id = text(self.machine, "/spec/providerID");
        self.workload.filter(|_| !id.is_empty())?.nodes.get(id)
    }
}

/// The whole status.
pub(super) fn machine_status(view: &MachineView<'_>, time: &Value) -> Value {
    let bootstrap = bootstrap(view);
    let infrastructure = infrastructure(view);
    let (healthy, ready_node) = node(view);
    let deleting = view.deleting.clone().unwrap_or_else(|| no("NotDeleting", ""));
    let ready = ready(view, [&bootstrap, &infrastructure, &healthy]);
    let available = if ready.holds() { yes("Available") } else { no("NotReady", "Not ready") };
    let mut conditions = Conditions::of(view.machine, time);
    conditions.set("Available", &available);
    conditions.set("Ready", &ready);
    let stale = || no("NotUpToDate", "* SandboxMachine is not up-to-date");
    conditions.set("UpToDate", &if view.up_to_date { yes("UpToDate") } else { stale() });
    conditions.set("BootstrapConfigReady", &bootstrap);
    conditions.set("InfrastructureReady", &infrastructure);
    // A connection that was lost a moment ago leaves what was known of the node in place.
    let lost = view.workload.is_some_and(|workload| !workload.connected && !workload.is_down(view.now));
    if !lost || condition(view.machine, "NodeHealthy").is_none() {
        conditions.set("NodeHealthy", &healthy);
        conditions.set("NodeReady", &ready_node);
    }
    conditions.set("Deleting", &deleting);
    conditions.set("Paused", &no("NotPaused", ""));
    let provisioned =
        infrastructure.holds() || flag(view.machine, "/status/initialization/infrastructureProvisioned");
    let started =
        bootstrap.holds() || flag(view.machine, "/status/initialization/bootstrapDataSecretCreated");
    let mut status = json!({
        "observedGeneration": view.machine.pointer("/metadata/generation"),
        "initialization": {"infrastructureProvisioned": provisioned, "bootstrapDataSecretCreated": started},
        "conditions": conditions.into_value(),
    });
    let known = |field: &str| view.machine.pointer(&format!("/status/{field}")).cloned();
    let reference = view.node().map(|node| json!({"name": name(node)})).or_else(|| known("nodeRef"));
    let facts =
        view.node().and_then(|node| node.pointer("/status/nodeInfo").cloned()).or_else(|| known("nodeInfo"));
    let addresses = view.infrastructure.and_then(|found| found.pointer("/status/addresses").cloned());
    let phase = phase(view, reference.is_some(), provisioned, started);
    let since = known("lastUpdated").filter(|_| text(view.machine, "/status/phase") == phase);
    status["phase"] = json!(phase);
    status["lastUpdated"] = since.unwrap_or_else(|| time.clone());
    let parts = [
        ("nodeRef", reference),
        ("nodeInfo", facts),
        ("addresses", addresses.or_else(|| known("addresses"))),
    ];
    for (field, value) in parts.into_iter().chain([("deletion", known("deletion"))]) {
        if let Some(value) = value {
            status[field] = value;
        }
    }
    status
}

fn phase(view: &MachineView<'_>, has_node: bool, provisioned: bool, started: bool) -> &'static str {
    if deleting(view.machine) {
        "Deleting"
    } else if has_node {
        "Running"
    } else if provisioned && !text(view.machine, "/spec/providerID").is_empty() {
        "Provisioned"
    } else if started {
        "Provisioning"
    } else {
        "Pending"
    }
}

fn bootstrap(view: &MachineView<'_>) -> Verdict {
    let Some(reference) = view.machine.pointer("/spec/bootstrap/configRef") else {
        return yes("DataSecretProvided");
    };
    let kind = text(reference, "/kind");
    let started = flag(view.machine, "/status/initialization/bootstrapDataSecretCreated");
    match view.bootstrap {
        Some(found) if flag(found, "/status/initialization/dataSecretCreated") => yes("Ready"),
        Some(_) => no("NotReady", format!("{kind} status.initialization.dataSecretCreated is false")),
        None if deleting(view.machine) && started => no("Deleted", format!("{kind} has been deleted")),
        None => no("DoesNotExist", format!("{kind} does not exist")),
    }
}

fn infrastructure(view: &MachineView<'_>) -> Verdict {
    let kind = text(view.machine, "/spec/infrastructureRef/kind");
    let made = flag(view.machine, "/status/initialization/infrastructureProvisioned");
    match view.infrastructure {
        Some(found) => {
            let waits = || no("NotReady", format!("{kind} status.initialization.provisioned is false"));
            condition(found, "Ready").map_or_else(waits, Verdict::of)
        }
        None if made && deleting(view.machine) => no("Deleted", format!("{kind} has been deleted")),
        None if made => no("Deleted", format!("{kind} has been deleted while the Machine still exists")),
        None => no("DoesNotExist", format!("{kind} does not exist")),
    }
}

/// Whether the node is healthy, and whether it is ready.
fn node(view: &MachineView<'_>) -> (Verdict, Verdict) {
    let both = |verdict: Verdict| (verdict.clone(), verdict);
    let waits = |message: &str| both(unknown("InspectionFailed", message));
    if !flag(view.cluster, "/status/initialization/infrastructureProvisioned") {
        return waits("Waiting for Cluster status.initialization.infrastructureProvisioned to be true");
    }
    let Some(workload) = view.workload.filter(|_| holds(view.cluster, "ControlPlaneInitialized")) else {
        return waits("Waiting for Cluster control plane to be initialized");
    };
    if workload.is_down(view.now) {
        return both(unknown("ConnectionDown", workload.verdict(view.now).message));
    }
    if let Some(node) = view.node() {
        return (health(node), readiness(node));
    }
    let known = text(view.machine, "/status/nodeRef/name");
    let id = text(view.machine, "/spec/providerID");
    match (known, deleting(view.machine), id) {
        ("", true, _) => both(unknown("NodeDoesNotExist", "Node does not exist")),
        (node, true, _) => both(no("NodeDeleted", format!("Node {node} has been deleted"))),
        ("", false, "") => {
            let kind = text(view.machine, "/spec/infrastructureRef/kind");
            waits(&format!("Waiting for {kind} to report spec.providerID"))
        }
        ("", false, id) => waits(&format!("Waiting for a Node with spec.providerID {id} to exist")),
        (node, false, _) => {
            both(no("NodeDeleted", format!("Node {node} has been deleted while the Machine still exists")))
        }
    }
}

fn readiness(node: &Value) -> Verdict {
    let Some(ready) = condition(node, "Ready") else {
        return unknown("NodeReadyUnknown", "* Node.Ready: Condition not yet reported");
    };
    let message = format!("* Node.Ready: {}", text(ready, "/message"));
    match text(ready, "/status") {
        "True" => yes("NodeReady"),
        "False" => no("NodeNotReady", message),
        _ => unknown("NodeReadyUnknown", message),
    }
}

/// Ready, and under no pressure.
fn health(node: &Value) -> Verdict {
    let (mut bad, mut open) = (Vec::new(), Vec::new());
    for kind in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
        let found = list(node, "/status/conditions").iter().find(|found| text(found, "/type") == kind);
        let status = found.map_or("Unknown", |found| text(found, "/status"));
        let message = found.map_or("Condition not yet reported", |found| text(found, "/message"));
        let well = if kind == "Ready" { "True" } else { "False" };
        if status == "Unknown" {
            open.push(format!("* Node.{kind}: {message}"));
        } else if status != well {
            bad.push(format!("* Node.{kind}: {message}"));
        }
    }
    if !bad.is_empty() {
        bad.append(&mut open);
        no("NodeNotHealthy", bad.join("\n"))
    } else if !open.is_empty() {
        unknown("NodeHealthyUnknown", open.join("\n"))
    } else {
        yes("NodeHealthy")
    }
}

fn ready(view: &MachineView<'_>, parts: [&Verdict; 3]) -> Verdict {
    let names = ["BootstrapConfigReady", "InfrastructureReady", "NodeHealthy"];
    let mut all: Vec<(String, &Verdict)> = names.iter().map(ToString::to_string).zip(parts).collect();
    let going = no("Deleting", "Machine deletion in progress");
    if view.deleting.is_some() {
        // What is already removed is no issue of its own.
        all.retain(|(_, verdict)| {
            !["Deleted", "DoesNotExist", "NodeDeleted"].contains(&verdict.reason.as_str())
        });
        all.insert(0, ("Deleting".to_owned(), &going));
    }
    summary(all, ["Ready", "NotReady", "ReadyUnknown"])
}

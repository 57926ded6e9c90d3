//! The columns of CloudProvisioners.

use super::{Cell, dash, joined, shown};
use serde_json::Value;

pub(super) fn cells(object: &Value) -> Vec<Cell> {
    let status = &object["status"];
    let (ready, desired) = (&status["readyNodes"], &status["desiredNodes"]);
    let is_known = ready.is_number() && desired.is_number();
    vec![
        ("PHASE", shown(&status["phase"])),
        ("NODES", if is_known { format!("{ready}/{desired}") } else { dash() }),
        ("CLUSTER", shown(&status["foreignCluster"])),
        ("COST/H", shown(&status["costPerHour"])),
        ("COST", shown(&status["costSoFar"])),
    ]
}

/// The nodes of each machine type, and how many workloads wait for more.
pub(super) fn wide(object: &Value) -> Vec<Cell> {
    let status = &object["status"];
    let pools = status["pools"].as_array().into_iter().flatten();
    let waiting = status["waiting"].as_array().map_or(0, Vec::len);
    vec![("POOLS", joined(pools.map(pool).collect())), ("WAITING", waiting.to_string())]
}

fn pool(each: &Value) -> String {
    let number = |field: &str| each[field].as_i64().unwrap_or(0);
    let name = each["machineType"].as_str().unwrap_or_default();
    format!("{name}:{}/{}", number("ready"), number("desired"))
}

//! Autoscalers, CloudProvisioners and reschedulers as a table, one row each.

mod autoscaler;
mod provisioner;
mod rescheduler;

use super::workloads::Columns;
use crate::human::age;
use crate::kind::Kind;
use comfy_table::Table;
use jiff::Timestamp;
use serde_json::Value;

/// The heading of a column, and what an object has in it.
type Cell = (&'static str, String);

/// One row per object.
pub(super) fn table(kind: Kind, objects: &[Value], columns: Columns, now: Timestamp) -> Table {
    // An object without any field has the same columns as the others.
    let header: Vec<&str> =
        row(kind, &Value::Null, columns, now).into_iter().map(|(heading, _)| heading).collect();
    let mut table = crate::table::table(&header);
    for object in objects {
        let cells = row(kind, object, columns, now).into_iter().map(|(_, cell)| cell);
        table.add_row(cells.collect::<Vec<String>>());
    }
    table
}

fn row(kind: Kind, object: &Value, columns: Columns, now: Timestamp) -> Vec<Cell> {
    let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|each| each["type"] == "Ready");
    let ready = |field: &str| ready.and_then(|each| each[field].as_str()).map(str::to_owned);
    let mut cells = Vec::new();
    if columns.namespace {
        cells.push(("NAMESPACE", meta("namespace")));
    }
    cells.push(("NAME", meta("name")));
    cells.push(("READY", ready("status").unwrap_or_else(|| "Unknown".to_owned())));
    cells.push(("REASON", ready("reason").unwrap_or_else(dash)));
    cells.extend(match kind {
        Kind::Provisioner => provisioner::cells(object),
        Kind::Rescheduler => rescheduler::cells(object, now),
        _ => autoscaler::cells(object),
    });
    cells.push(("AGE", age(meta("creationTimestamp").parse().ok(), now)));
    if columns.wide {
        cells.extend(match kind {
            Kind::Provisioner => provisioner::wide(object),
            Kind::Rescheduler => rescheduler::wide(object),
            _ => autoscaler::wide(object),
        });
        cells.push(("MESSAGE", ready("message").unwrap_or_default()));
    }
    cells
}

fn dash() -> String {
    "-".to_owned()
}

/// A text or a number; a dash where there is none.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => dash(),
    }
}

/// The parts of a list, in one cell.
fn joined(parts: Vec<String>) -> String {
    if parts.is_empty() { dash() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The headings, then the cells.
    fn shown(kind: Kind, object: &Value, namespace: bool, wide: bool) -> Vec<Vec<String>> {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let columns = Columns { namespace, wide, one_column: false };
        let table = table(kind, std::slice::from_ref(object), columns, now);
        let rows = table.header().into_iter().chain(table.row_iter());
        rows.map(|row| row.cell_iter().map(|cell| cell.content()).collect()).collect()
    }

    fn object(spec: Value, mut status: Value) -> Value {
        status["conditions"] = json!([
            {"type": "AbleToScale", "status": "True", "reason": "Other", "message": "other"},
            {"type": "Ready", "status": "False", "reason": "Because", "message": "in words"},
        ]);
        let created = "2026-01-01T00:00:00Z";
        json!({
            "metadata": {"name": "one", "namespace": "shop", "creationTimestamp": created},
            "spec": spec, "status": status,
        })
    }

    #[test]
    fn an_autoscaler_has_its_bounds_and_what_each_cluster_needs() {
        let spec = json!({"scaleTargetRef": {"name": "web"}, "minReplicas": 2, "maxReplicas": 20});
        let clusters = json!([
            {"cluster": "paris", "currentReplicas": 3, "desiredReplicas": 5, "averageUtilization": 82},
            {"cluster": "rome", "currentReplicas": 3, "desiredReplicas": 0, "message": "it is silent"},
        ]);
        let status = json!({
            "metricsSummary": "cpu 63%/75%", "currentReplicas": 6, "clusters": clusters, "minReplicas": 4,
        });
        let object = object(spec, status);
        let lines = shown(Kind::Autoscaler, &object, false, false);
        let header = ["NAME", "READY", "REASON", "TARGET", "METRICS", "MIN", "MAX", "REPLICAS", "AGE"];
        assert_eq!(lines[0], header);
        assert_eq!(lines[1], ["one", "False", "Because", "web", "cpu 63%/75%", "4", "20", "6", "60m"]);
        let lines = shown(Kind::Autoscaler, &object, true, true);
        assert_eq!((lines[0][0].as_str(), lines[1][0].as_str()), ("NAMESPACE", "shop"));
        assert_eq!(lines[0][10..], ["CLUSTERS", "MESSAGE"]);
        assert_eq!(
            lines[1][10..],
            ["paris:3/5@82% rome:3/0?", "in words"],
            "what contributes nothing is marked"
        );
    }

    #[test]
    fn a_provisioner_has_its_nodes_and_what_they_cost() {
        let pools = json!([
            {"machineType": "m1.small", "ready": 2, "desired": 3},
            {"machineType": "m1.large", "ready": 0, "desired": 1},
        ]);
        let status = json!({
            "phase": "Scaling", "readyNodes": 2, "desiredNodes": 4, "foreignCluster": "cloud1", "pools": pools,
            "costPerHour": "0.23", "costSoFar": "1.4", "waiting": ["MultiClusterDeployment/shop/web"],
        });
        let lines = shown(Kind::Provisioner, &object(json!({}), status), false, true);
        let header = ["NAME", "READY", "REASON", "PHASE", "NODES", "CLUSTER", "COST/H", "COST", "AGE"];
        assert_eq!(lines[0][..9], header);
        let cells = ["one", "False", "Because", "Scaling", "2/4", "cloud1", "0.23", "1.4", "60m"];
        assert_eq!(lines[1][..9], cells);
        assert_eq!(lines[0][9..], ["POOLS", "WAITING", "MESSAGE"]);
        assert_eq!(lines[1][9..], ["m1.small:2/3 m1.large:0/1", "1", "in words"]);
    }

    #[test]
    fn a_rescheduler_has_its_moves_and_where_the_rest_stays() {
        let staying = json!([
            {"name": "web", "cluster": "cloud1, rome"}, {"name": "db", "cluster": "cloud1"},
        ]);
        let status = json!({
            "moving": 1, "moved": 4, "staying": staying, "lastRunTime": "2026-01-01T00:59:48Z",
        });
        let lines = shown(Kind::Rescheduler, &object(json!({}), status), false, true);
        assert_eq!(
            lines[0][..8],
            ["NAME", "READY", "REASON", "MOVING", "MOVED", "STAYING", "LAST RUN", "AGE"]
        );
        assert_eq!(lines[1][..8], ["one", "False", "Because", "1", "4", "2", "12s", "60m"]);
        assert_eq!(lines[0][8..], ["CLUSTERS", "MESSAGE"]);
        assert_eq!(lines[1][8..], ["cloud1:2 rome:1", "in words"]);
    }

    #[test]
    fn an_object_that_no_controller_has_seen_is_unknown() {
        let fresh = json!({"metadata": {"name": "one", "creationTimestamp": "2026-01-01T00:00:00Z"}});
        for kind in Kind::ELASTIC {
            let lines = shown(kind, &fresh, false, true);
            assert_eq!(lines[1][..3], ["one", "Unknown", "-"], "{kind:?}");
            let age = lines[0].iter().position(|heading| heading == "AGE").unwrap();
            assert!(lines[1][3..age].iter().all(|cell| cell == "-"), "{kind:?}: {lines:?}");
        }
    }
}

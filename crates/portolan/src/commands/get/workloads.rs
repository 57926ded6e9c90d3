//! Workloads as a table, one column per cluster.

use crate::human::age;
use crate::kind::Kind;
use comfy_table::Table;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

/// More clusters than this share one column.
const MOST_COLUMNS: usize = 8;

/// What one cluster has of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct Part {
    /// The cluster.
    pub(in crate::commands) cluster: String,
    /// How much it is to have.
    pub(in crate::commands) wanted: i64,
    /// How much of that is ready, or finished.
    pub(in crate::commands) ready: i64,
    /// How far it is, as in the status; empty for kinds without.
    pub(in crate::commands) state: String,
    /// Why it is there.
    pub(in crate::commands) cause: String,
    /// The cluster that it stands in for.
    pub(in crate::commands) stands_in_for: String,
    /// What is to be said about it.
    pub(in crate::commands) message: String,
}

/// What each cluster has of a workload.
pub(in crate::commands) fn parts(kind: Kind, object: &Value) -> Vec<Part> {
    let status = &object["status"];
    let (list, wanted, ready) = match kind {
        Kind::Job => (&status["placements"], "completions", "succeeded"),
        Kind::Service => (&status["placements"], "notReadyEndpoints", "readyEndpoints"),
        _ => (&status["placements"], "replicas", "readyReplicas"),
    };
    let part = |entry: &Value| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let number = |field: &str| entry[field].as_i64().unwrap_or(0);
        // A Service has no number that is wanted: what there is of endpoints is.
        let more = if kind == Kind::Service { number(ready) } else { 0 };
        Part {
            cluster: text("cluster"),
            wanted: number(wanted) + more,
            ready: number(ready),
            state: text("state"),
            cause: text("cause"),
            stands_in_for: text("substituteFor"),
            message: text("message"),
        }
    };
    list.as_array().into_iter().flatten().map(part).collect()
}

/// The ready out of those asked for, and how many have no cluster.
pub(in crate::commands) fn summary(kind: Kind, object: &Value) -> (String, i64) {
    let status = &object["status"];
    let text = |field: &str| status[field].as_str().map(str::to_owned);
    match kind {
        Kind::Job => (
            text("completionsSummary").unwrap_or_else(|| "-".to_owned()),
            status["pendingCompletions"].as_i64().unwrap_or(0),
        ),
        Kind::Service => {
            (status["readyEndpoints"].as_i64().map_or("-".to_owned(), |count| count.to_string()), 0)
        }
        _ => (
            text("readySummary").unwrap_or_else(|| "-".to_owned()),
            status["pendingReplicas"].as_i64().unwrap_or(0),
        ),
    }
}

/// Which columns the table has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    /// The namespace.
    pub(super) namespace: bool,
    /// Those of the wide form.
    pub(super) wide: bool,
    /// One column for all clusters, whatever they are.
    pub(super) one_column: bool,
}

/// One row per workload, one column per cluster that has something of one of them.
pub(super) fn table(kind: Kind, objects: &[Value], columns: Columns, now: Timestamp) -> Table {
    let Columns { namespace: namespaces, wide, one_column } = columns;
    let clusters: BTreeSet<String> =
        objects.iter().flat_map(|object| parts(kind, object)).map(|part| part.cluster).collect();
    let one_each = clusters.len() <= MOST_COLUMNS && !one_column;
    let mut header: Vec<String> = Vec::new();
    if namespaces {
        header.push("NAMESPACE".to_owned());
    }
    let ready = match kind {
        Kind::Job => "COMPLETIONS",
        Kind::Service => "ENDPOINTS",
        _ => "READY",
    };
    header.push("NAME".to_owned());
    if kind == Kind::Job {
        header.push("STATUS".to_owned());
    }
    header.push(ready.to_owned());
    if kind != Kind::Service {
        header.push("PENDING".to_owned());
    }
    if one_each {
        header.extend(clusters.iter().map(|name| name.to_uppercase()));
    } else {
        header.push("CLUSTERS".to_owned());
    }
    header.push("AGE".to_owned());
    if wide {
        header.extend(["POLICY", "MESSAGE"].map(str::to_owned));
    }
    let mut table = crate::table::table(&header);
    for object in objects {
        table.add_row(row(kind, object, namespaces, wide, one_each.then_some(&clusters), now));
    }
    table
}

fn row(
    kind: Kind,
    object: &Value,
    namespaces: bool,
    wide: bool,
    columns: Option<&BTreeSet<String>>,
    now: Timestamp,
) -> Vec<String> {
    let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (ready, pending) = summary(kind, object);
    let parts = parts(kind, object);
    let mut cells = Vec::new();
    if namespaces {
        cells.push(meta("namespace"));
    }
    cells.push(meta("name"));
    if kind == Kind::Job {
        cells.push(job_state(object));
    }
    cells.push(ready);
    if kind != Kind::Service {
        cells.push(pending.to_string());
    }
    match columns {
        Some(clusters) => cells.extend(clusters.iter().map(|cluster| {
            let part = parts.iter().find(|part| part.cluster == *cluster);
            part.map_or_else(|| "-".to_owned(), |part| cell(kind, part))
        })),
        None => {
            let all: Vec<_> =
                parts.iter().map(|part| format!("{}:{}", part.cluster, cell(kind, part))).collect();
            cells.push(if all.is_empty() { "-".to_owned() } else { all.join(" ") });
        }
    }
    cells.push(age(meta("creationTimestamp").parse().ok(), now));
    if wide {
        let policy = object["spec"]["placementPolicy"].as_str();
        let affine = object["spec"]["locations"].as_array().is_some_and(|all| !all.is_empty());
        cells.push(policy.unwrap_or(if affine { "cluster-affinity" } else { "-" }).to_owned());
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let bad = conditions.into_iter().find(|each| each["type"] == "Ready" && each["status"] != "True");
        cells.push(bad.and_then(|each| each["message"].as_str()).unwrap_or_default().to_owned());
    }
    cells
}

/// The state of a job in one word, as `kubectl get jobs` shows it: the reason of its Ready condition.
fn job_state(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|each| each["type"] == "Ready");
    ready.and_then(|each| each["reason"].as_str()).unwrap_or("-").to_owned()
}

/// Ready out of wanted, with a mark where that is not the whole truth.
fn cell(kind: Kind, part: &Part) -> String {
    let mark = match part.state.as_str() {
        "Unknown" => "?",
        "Failed" => "!",
        "Removing" => "-",
        _ => "",
    };
    match kind {
        Kind::Service => format!("{}{mark}", part.ready),
        _ => format!("{}/{}{mark}", part.ready, part.wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workload(name: &str, placements: Value) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"locations": ["paris"]},
            "status": {"readySummary": "3/4", "pendingReplicas": 1, "placements": placements},
        })
    }

    fn shown(objects: &[Value], wide: bool) -> String {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let columns = Columns { namespace: true, wide, one_column: false };
        crate::table::text(&table(Kind::Deployment, objects, columns, now))
    }

    #[test]
    fn every_cluster_that_has_something_is_a_column() {
        let web = workload(
            "web",
            json!([{"cluster": "paris", "replicas": 2, "readyReplicas": 2, "state": "Ready"}]),
        );
        let db = workload(
            "db",
            json!([{"cluster": "rome", "replicas": 2, "readyReplicas": 1, "state": "Unknown"}]),
        );
        let text = shown(&[web, db], false);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["NAMESPACE", "NAME", "READY", "PENDING", "PARIS", "ROME", "AGE"]);
        assert_eq!(lines[1], ["shop", "web", "3/4", "1", "2/2", "-", "60m"]);
        assert_eq!(lines[2], ["shop", "db", "3/4", "1", "-", "1/2?", "60m"], "what is silent is marked");
    }

    #[test]
    fn many_clusters_share_a_column() {
        let entry =
            |number: usize| json!({"cluster": format!("c{number}"), "replicas": 1, "readyReplicas": 1});
        let many = workload("web", (0..9).map(entry).collect());
        let text = shown(&[many], true);
        assert!(text.contains("CLUSTERS") && text.contains("c0:1/1 c1:1/1"), "{text}");
        assert!(text.contains("cluster-affinity"));
    }
}

//! A CloudProvisioner: its nodes, what waits for more, what failed, and what it costs.

use super::tree::Branch;
use super::{ago, list, number, text, workload};
use crate::human::age;
use jiff::Timestamp;
use serde_json::Value;

/// How many clusters are shown with their cost, the newest first.
const BURSTS: usize = 5;

/// How far the cloud cluster is, in one line.
pub(super) fn summary(object: &Value) -> String {
    let status = &object["status"];
    let mut line = text(status, "phase").unwrap_or("Unknown").to_owned();
    let (ready, desired) = (number(status, "readyNodes"), number(status, "desiredNodes"));
    line.push_str(&format!(", {ready}/{desired} nodes ready"));
    if let Some(cluster) = text(status, "foreignCluster") {
        line.push_str(&format!(", cluster {cluster}"));
    }
    if object["spec"]["paused"] == true {
        line.push_str(", paused");
    }
    line
}

/// All that it has made, and all that it has not.
pub(super) fn branches(object: &Value, now: Timestamp) -> Vec<Branch> {
    let status = &object["status"];
    let mut branches: Vec<Branch> =
        list(status, "pools").iter().map(|each| Branch::leaf(pool(each, now))).collect();
    let silent = ago(status, "silentSince", now);
    branches.extend(
        silent.map(|time| Branch::leaf(format!("silent for {time}: nothing is added or removed meanwhile"))),
    );
    branches
        .extend(ago(status, "idleSince", now).map(|time| Branch::leaf(format!("without work for {time}"))));
    let waiting: Vec<String> =
        list(status, "waiting").iter().filter_map(Value::as_str).map(waiting).collect();
    branches.extend(Branch::list(counted(waiting.len(), "workload waits", "workloads wait"), waiting));
    let left_out: Vec<String> = list(status, "leftOut").iter().map(left_out).collect();
    branches.extend(Branch::list("pods that get no node".to_owned(), left_out));
    branches.extend(failure(status, now).map(Branch::leaf));
    branches.extend(cost(status).map(Branch::leaf));
    let bursts = list(status, "bursts").iter().take(BURSTS).map(|each| burst(each, now)).collect();
    branches.extend(Branch::list("last clusters".to_owned(), bursts));
    let orphans: Vec<String> =
        list(status, "orphans").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let title = "clusters of Cluster API that no CloudProvisioner knows; they are not deleted";
    branches.extend(Branch::list(title.to_owned(), orphans));
    branches
}

fn pool(each: &Value, now: Timestamp) -> String {
    let (ready, desired) = (number(each, "ready"), number(each, "desired"));
    let mut line =
        format!("{}  {ready}/{desired} nodes ready", text(each, "machineType").unwrap_or_default());
    if let Some(price) = price(each, "pricePerHour") {
        line.push_str(&format!(", {price} per hour each"));
    }
    let removing = list(each, "removing").len();
    if removing > 0 {
        line.push_str(&format!(", {removing} being removed"));
    }
    if let Some(time) = ago(each, "failingSince", now) {
        line.push_str(&format!(", failing for {time}"));
    }
    if let Some(time) = text(each, "retryAt") {
        line.push_str(&format!(", no further nodes before {time}"));
    }
    line
}

/// A workload that is written as kind/namespace/name.
fn waiting(written: &str) -> String {
    match written.split('/').collect::<Vec<_>>().as_slice() {
        [kind, namespace, name] => workload(kind, namespace, name),
        _ => written.to_owned(),
    }
}

fn left_out(each: &Value) -> String {
    let pods = usize::try_from(number(each, "pods")).unwrap_or(0);
    reasoned(&counted(pods, "pod", "pods"), each)
}

fn failure(status: &Value, now: Timestamp) -> Option<String> {
    let failure = Some(&status["lastFailure"]).filter(|failure| failure.is_object())?;
    let time = ago(failure, "time", now).unwrap_or_else(|| "some time".to_owned());
    let mut line = reasoned(&format!("last failure {time} ago"), failure);
    let failures = number(status, "failures");
    if failures > 1 {
        line.push_str(&format!("; {failures} failures in a row"));
    }
    if let Some(time) = text(status, "retryAt") {
        line.push_str(&format!("; tried again at {time}"));
    }
    Some(line)
}

/// A subject, the reason, and the message if there is one.
fn reasoned(subject: &str, each: &Value) -> String {
    let reason = text(each, "reason").unwrap_or("Unknown");
    let message = text(each, "message").map(|message| format!(": {message}")).unwrap_or_default();
    format!("{subject}, {reason}{message}")
}

fn cost(status: &Value) -> Option<String> {
    let (per_hour, so_far) = (price(status, "costPerHour"), price(status, "costSoFar"));
    let is_free = per_hour.is_none() && so_far.is_none();
    let line = format!("costs {} per hour, {} so far", per_hour.unwrap_or("0"), so_far.unwrap_or("0"));
    (!is_free).then_some(line)
}

fn burst(each: &Value, now: Timestamp) -> String {
    let time = |field: &str| text(each, field).and_then(|time| time.parse::<Timestamp>().ok());
    let when = match (time("startedAt"), time("endedAt")) {
        (started, Some(ended)) => {
            format!("ended {} ago after {}", age(Some(ended), now), age(started, ended))
        }
        (started, None) => format!("since {}", age(started, now)),
    };
    let nodes = counted(usize::try_from(number(each, "mostNodes")).unwrap_or(0), "node", "nodes");
    let cost = price(each, "cost").map(|cost| format!(", cost {cost}")).unwrap_or_default();
    format!("cluster {}, {when}, at most {nodes}{cost}", number(each, "number"))
}

/// An amount of money; nothing where it is absent or 0.
fn price<'a>(each: &'a Value, field: &str) -> Option<&'a str> {
    text(each, field).filter(|amount| *amount != "0")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use crate::commands::status::elastic::description;
    use crate::kind::Kind;
    use serde_json::{Value, json};

    fn shown(status: Value) -> String {
        let object = json!({
            "metadata": {"name": "burst", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"paused": true}, "status": status,
        });
        description(Kind::Provisioner, &object, "2026-01-01T01:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_provisioner_is_described_with_its_nodes_its_failure_and_its_cost() {
        let text = shown(json!({
            "phase": "Scaling", "readyNodes": 2, "desiredNodes": 4, "foreignCluster": "cloud1",
            "pools": [
                {"machineType": "m1.small", "ready": 2, "desired": 3, "pricePerHour": "0.05", "removing": ["a"]},
                {"machineType": "m1.large", "ready": 0, "desired": 1, "pricePerHour": "0",
                    "failingSince": "2026-01-01T00:55:00Z", "retryAt": "2026-01-01T01:05:00Z"},
            ],
            "waiting": ["MultiClusterDeployment/shop/web", "odd"],
            "leftOut": [{"pods": 4, "reason": "NodeLimit", "message": "maxNodes is 4"}, {"pods": 1, "reason": "CostLimit"}],
            "lastFailure": {"time": "2026-01-01T00:50:00Z", "reason": "QuotaExceeded", "message": "no quota"},
            "failures": 2, "retryAt": "2026-01-01T01:10:00Z",
            "costPerHour": "0.23", "costSoFar": "1.4",
            "bursts": [
                {"number": 2, "startedAt": "2026-01-01T00:30:00Z", "mostNodes": 4, "cost": "0.9"},
                {"number": 1, "startedAt": "2026-01-01T00:05:00Z", "endedAt": "2026-01-01T00:15:00Z", "mostNodes": 1,
                    "cost": "0.5"},
            ],
            "orphans": ["clouds/burst-9"],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Scaling", "message": "2 of 4 nodes are ready"}],
        }));
        let headline = "cloudprovisioner burst  Scaling, 2/4 nodes ready, cluster cloud1, paused, 60m old\n  2 of 4 nodes";
        assert!(text.contains('✓') && text.contains(headline), "{text}");
        let tree = [
            "├─ m1.small  2/3 nodes ready, 0.05 per hour each, 1 being removed",
            "├─ m1.large  0/1 nodes ready, failing for 5m, no further nodes before 2026-01-01T01:05:00Z",
            "├─ 2 workloads wait",
            "│  ├─ mcd/web in shop",
            "│  └─ odd",
            "├─ pods that get no node",
            "│  ├─ 4 pods, NodeLimit: maxNodes is 4",
            "│  └─ 1 pod, CostLimit",
            "├─ last failure 10m ago, QuotaExceeded: no quota; 2 failures in a row; tried again at 2026-01-01T01:10:00Z",
            "├─ costs 0.23 per hour, 1.4 so far",
            "├─ last clusters",
            "│  ├─ cluster 2, since 30m, at most 4 nodes, cost 0.9",
            "│  └─ cluster 1, ended 45m ago after 10m, at most 1 node, cost 0.5",
            "└─ clusters of Cluster API that no CloudProvisioner knows; they are not deleted",
            "   └─ clouds/burst-9",
        ];
        assert!(text.contains(&tree.join("\n")), "{text}");
    }

    #[test]
    fn a_provisioner_without_prices_says_nothing_of_costs() {
        let idle = json!({"phase": "Idle", "costPerHour": "0", "costSoFar": "0", "idleSince": "2026-01-01T00:50:00Z"});
        let text = shown(idle);
        assert!(text.contains("└─ without work for 10m\n") && !text.contains("cost"), "{text}");
        let fresh = shown(Value::Null);
        assert!(fresh.contains('✗') && fresh.contains("no controller has looked at it yet"), "{fresh}");
    }
}

//! Rolling updates that wait for room which their own old pods hold.

use super::super::Workload;
use super::Previews;
use crate::capacity::Book;
use crate::driver::Declared;
use k8s_openapi::api::apps::v1::Deployment;
use portolan_core::placement::Decision;
use portolan_runtime::Key;
use serde_json::Value;

impl Previews {
    /// The clusters where a rolling update to this template would wait for room that the old pods hold, and how many of these
    /// have a node.
    pub(super) fn full_ahead(&self, book: &mut Book, key: &Key, workload: &Workload) -> Vec<(String, i32)> {
        let Ok(shape) = &workload.shape else { return Vec::new() };
        let Some(live) = self.get(key) else { return Vec::new() };
        if live.object.spec.template == workload.object.spec.template {
            return Vec::new();
        }
        let held = workload.held().filter(|(_, held)| *held > 0);
        let held = held.filter(|(cluster, _)| book.view(cluster, "", shape).room.max_replicas == 0);
        let held: Vec<&str> = held.map(|(cluster, _)| cluster).collect();
        let old =
            held.into_iter().map(|cluster| (cluster.to_owned(), self.bound(book, key, workload, cluster)));
        old.filter(|(_, old)| *old > 0).collect()
    }

    /// How many pods of a workload have a node in a cluster.
    pub(super) fn bound(&self, book: &Book, key: &Key, workload: &Workload, cluster: &str) -> i32 {
        if !workload.is_unlabelled() {
            return i32::try_from(book.bound(cluster, workload.uid())).unwrap_or(i32::MAX);
        }
        // The ledger takes its pods for those of others.
        let member = self.0.base.context.fleet.member(cluster);
        let copy = member.and_then(|member| member.index::<Deployment>().get(key));
        copy.map_or(0, |copy| copy.ready)
    }
}

/// Whether the copy of a cluster is brought to the present template, and not left as it is for want of room.
pub(super) fn updates(decision: &Decision, cluster: &str) -> bool {
    decision.placed.get(cluster).is_some_and(|placed| placed.kept.is_none_or(|kept| !kept.as_they_are))
}

/// How many pods a Deployment does without while it is updated, as Kubernetes counts: a quarter, rounded down, unless the
/// strategy says otherwise.
pub(super) fn spared(strategy: Option<&Value>, replicas: i32) -> i32 {
    if strategy.is_some_and(|strategy| strategy["type"] == "Recreate") {
        return replicas;
    }
    let given = strategy.map(|strategy| &strategy["rollingUpdate"]["maxUnavailable"]);
    let percent = |text: &str| text.strip_suffix('%').and_then(|number| number.parse::<i32>().ok());
    match given {
        Some(Value::Number(number)) => {
            number.as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or(0)
        }
        Some(Value::String(text)) => {
            percent(text).map_or(0, |percent| replicas.saturating_mul(percent) / 100)
        }
        _ => replicas / 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_an_update_does_without_is_counted_as_kubernetes_does() {
        assert_eq!((spared(None, 2), spared(None, 9)), (0, 2));
        let rolling = |most: Value| json!({"rollingUpdate": {"maxUnavailable": most}});
        assert_eq!(spared(Some(&rolling(json!(1))), 2), 1);
        assert_eq!(spared(Some(&rolling(json!("50%"))), 3), 1);
        assert_eq!(spared(Some(&json!({"type": "Recreate"})), 3), 3);
    }
}

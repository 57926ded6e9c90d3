//! Rolling updates that wait for room which their own old pods hold.

use super::super::Workload;
use super::Previews;
use crate::capacity::Book;
use crate::driver::Declared;
use k8s_openapi::api::apps::v1::Deployment;
use portolan_core::placement::Decision;
use portolan_runtime::Key;
use serde_json::Value;

/// A rolling update in a cluster.
pub(super) struct Update {
    pub(super) cluster: String,
    /// How many old pods have a node.
    pub(super) old: i32,
    /// How many new pods find room beside them.
    pub(super) beside: i32,
}

impl Update {
    /// Whether it comes to a stop on its way to so many replicas: Kubernetes takes old pods away only down to what must be
    /// available, and there is no room for the new ones that would make up for more.
    pub(super) fn waits(&self, strategy: Option<&Value>, after: i32) -> bool {
        let least = after.saturating_sub(spared(strategy, after));
        self.beside < after && self.beside.saturating_add(self.old) <= least
    }
}

impl Previews {
    /// The clusters where a rolling update to this template replaces pods that have a node.
    pub(super) fn updates_ahead(&self, book: &mut Book, key: &Key, workload: &Workload) -> Vec<Update> {
        let Ok(shape) = &workload.shape else { return Vec::new() };
        let Some(live) = self.get(key) else { return Vec::new() };
        if live.object.spec.template == workload.object.spec.template {
            return Vec::new();
        }
        let held = workload.held().filter(|(_, held)| *held > 0).map(|(cluster, _)| cluster.to_owned());
        let update = |cluster: String| {
            let beside = book.view(&cluster, "", shape).room.max_replicas;
            let old = self.bound(book, key, workload, &cluster);
            Update { cluster, old, beside: i32::try_from(beside).unwrap_or(i32::MAX) }
        };
        held.map(update).filter(|update| update.old > 0).collect()
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
    fn an_update_waits_if_old_pods_hold_the_room_of_those_that_would_let_them_go() {
        let waits = |old: i32, beside: i32, after: i32, strategy: &Value| {
            Update { cluster: "a".to_owned(), old, beside }.waits(Some(strategy), after)
        };
        let none = json!({"rollingUpdate": {"maxUnavailable": 0}});
        assert!(waits(2, 0, 2, &none), "there is no room for a third");
        assert!(!waits(2, 1, 2, &none), "one by one");
        assert!(waits(1, 2, 3, &none), "two new ones and the old one are the three that must be available");
        assert!(!waits(1, 3, 3, &none));
        assert!(!waits(1, 2, 3, &json!({"rollingUpdate": {"maxUnavailable": 1}})));
        assert!(!waits(4, 0, 2, &none), "there are more than are asked for");
    }

    #[test]
    fn what_an_update_does_without_is_counted_as_kubernetes_does() {
        assert_eq!((spared(None, 2), spared(None, 9)), (0, 2));
        let rolling = |most: Value| json!({"rollingUpdate": {"maxUnavailable": most}});
        assert_eq!(spared(Some(&rolling(json!(1))), 2), 1);
        assert_eq!(spared(Some(&rolling(json!("50%"))), 3), 1);
        assert_eq!(spared(Some(&json!({"type": "Recreate"})), 3), 3);
    }
}

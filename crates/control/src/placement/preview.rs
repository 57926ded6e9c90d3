//! What would be decided about a workload, by the decision of the controller.

use super::reconcile::Considered;
use super::{KIND, Placement, Workload};
use crate::capacity::Owner;
use crate::preview::{NOT_KNOWN, planned, reserved};
use portolan_api::MultiClusterDeployment;
use portolan_api::placement::PlacementStatus;
use portolan_core::placement::{Account, Decision, Placed, explain};
use portolan_runtime::{Change, Key};
use serde_json::Value;
use std::collections::BTreeMap;

/// What would be decided about a workload, and why.
#[derive(Debug)]
pub struct Outlook {
    /// How many replicas each cluster holds by what is recorded.
    pub before: BTreeMap<String, u32>,
    /// What was asked for, which is more than what is placed if some are pending.
    pub decision: Result<Decision, String>,
    /// Every cluster's part in it.
    pub accounts: Vec<Account>,
    /// What other workloads hold in each cluster.
    pub reserved: BTreeMap<String, BTreeMap<String, u32>>,
    /// What is to be known beside the decision, by cluster: a rolling update that cannot go on, say.
    pub notes: BTreeMap<String, String>,
    /// Whether the workload is paused, so that nothing is done about it.
    pub paused: bool,
}

impl Placement {
    /// What would be decided now about a workload of the hub; nothing if it is not there.
    pub(crate) fn explain(&self, key: &Key) -> Option<Outlook> {
        let workload = self.controller.workloads.get(key)?;
        Some(self.outlook(key, &workload))
    }

    /// What would be decided if this object were applied, which need not be there yet. From then on it counts as placed so,
    /// for what is planned next.
    pub(crate) fn plan(&self, mut object: MultiClusterDeployment) -> Outlook {
        let key = Key::of(&object);
        let existing = self.controller.workloads.get(&key);
        planned(&mut object.metadata, existing.as_ref().map(|known| &known.object.metadata));
        object.status = existing.and_then(|known| known.object.status.clone());
        let mut workload = Workload::of(object);
        let outlook = self.outlook(&key, &workload);
        if let Ok(decision) = &outlook.decision {
            let placed = |(cluster, placed): (&String, &Placed)| PlacementStatus {
                cluster: cluster.clone(),
                replicas: i32::try_from(placed.replicas).unwrap_or(i32::MAX),
                cause: Some(placed.cause),
                ..PlacementStatus::default()
            };
            let status = workload.object.status.get_or_insert_default();
            status.placements = decision.placed.iter().map(placed).collect();
            workload.object.metadata.resource_version = None;
            let change = Change::Set(key, workload);
            self.controller.fleet.ledger.transact(|book| book.take(KIND, &change, Workload::claim));
            self.controller.workloads.take(change);
        }
        outlook
    }

    /// Whether all workloads of the hub are known.
    pub(crate) fn synced(&self) -> bool {
        self.controller.workloads.synced()
    }

    fn outlook(&self, key: &Key, workload: &Workload) -> Outlook {
        let before = workload.held().filter(|(_, count)| *count > 0);
        let before: BTreeMap<String, u32> = before.map(|(name, count)| (name.to_owned(), count)).collect();
        let mut outlook = Outlook {
            before,
            decision: Err(NOT_KNOWN.to_owned()),
            accounts: Vec::new(),
            reserved: BTreeMap::new(),
            notes: BTreeMap::new(),
            paused: workload.object.spec.paused,
        };
        self.controller.fleet.ledger.transact(|book| {
            outlook.reserved = reserved(book, &Owner::new(KIND, key));
            match self.controller.consider(book, key, workload) {
                Considered::NotYet => {}
                Considered::Not(_, why) => outlook.decision = Err(why),
                Considered::So { seen, wanted, decision, .. } => {
                    let candidates: Vec<_> = seen.values().map(|each| each.candidate.clone()).collect();
                    outlook.accounts = explain(&wanted, &candidates, &decision);
                    let placed = |cluster: &String| decision.placed.contains_key(cluster);
                    for (cluster, sight) in seen.iter().filter(|(cluster, _)| placed(cluster)) {
                        // Somebody without pods there has no room: what the new pods need, the old ones hold.
                        let others = book.view(cluster, "", &wanted.shape).room.fits;
                        let strategy = workload.object.spec.strategy.as_ref().map(|strategy| &strategy.0);
                        let updating = sight.copy.as_ref().filter(|copy| copy.updated < copy.replicas);
                        let stands =
                            updating.filter(|copy| others == 0 && spared(strategy, copy.replicas) == 0);
                        let note = stands.map(|_| WAITS.to_owned());
                        outlook.notes.extend(note.map(|note| (cluster.clone(), note)));
                    }
                    outlook.decision = Ok(decision);
                }
            }
        });
        outlook
    }
}

/// What is to be said of a rolling update whose new pods wait for the room that its old ones hold.
const WAITS: &str = "its rolling update waits: pods of the former template hold the room that new ones need, and go only \
                     when new ones are ready. Allow spec.strategy.rollingUpdate.maxUnavailable of 1 or more, or make room \
                     for one more pod";

/// How many pods a Deployment does without while it is updated, as Kubernetes counts: a quarter, rounded down, unless the
/// strategy says otherwise.
fn spared(strategy: Option<&Value>, replicas: i32) -> i32 {
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

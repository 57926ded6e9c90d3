//! Decisions that are only looked at: the same watches and the same decision as the controller's, and not one write.

use super::reconcile::Considered;
use super::{Controller, KIND, Placement, Workload};
use crate::capacity::Claim;
use crate::claims::Claims;
use crate::dependencies::Sources;
use crate::fleet::{Connect, Fleet, Hub, look};
use crate::jobs::Jobs;
use kube::Client;
use portolan_api::MultiClusterDeployment;
use portolan_core::placement::{Account, Decision, explain};
use portolan_runtime::{Change, Clock, Key, Seed, Term};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often to look whether all is known.
const OFTEN: Duration = Duration::from_millis(50);

/// The fleet, watched to be asked what would be decided.
pub struct Preview {
    controller: Controller,
    _tasks: JoinSet<()>,
}

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

impl Preview {
    /// Watches the fleet of a hub until it is known, but no longer than `limit`. Clusters that do not answer by then are
    /// named; about the others nothing can be decided without them.
    ///
    /// # Errors
    /// The names of the clusters that are not known.
    pub async fn open(
        hub: Client,
        connect: Arc<dyn Connect>,
        clock: Clock,
        seed: Seed,
        limit: Duration,
    ) -> Result<Self, Vec<String>> {
        let deadline = Instant::now() + limit;
        let Ok(hub) = tokio::time::timeout(limit, Hub::identify(hub, seed)).await else {
            return Err(vec!["the hub".to_owned()]);
        };
        let fleet = Fleet::default();
        // What follows a workload makes no difference to where it goes.
        let (sources, term) = (Sources::default(), Term::alone("preview"));
        let claims = Claims::new(&term);
        let placement = Placement::new(&hub, &fleet, &sources, &clock, seed, &claims, &term);
        // Jobs hold room too.
        let jobs = Jobs::new(&hub, &fleet, &sources, &clock, seed.child("jobs"), &claims, &term);
        let mut tasks = JoinSet::new();
        tasks.spawn(jobs.watch());
        tasks.spawn(look(hub, fleet, connect, clock, seed.child("fleet")));
        tasks.spawn(placement.watch(|_| ()));
        let preview = Self { controller: placement.into_controller(), _tasks: tasks };
        loop {
            let unknown = preview.controller.unknown();
            match unknown {
                Some(names) if names.is_empty() => return Ok(preview),
                Some(names) if Instant::now() >= deadline => return Err(names),
                None if Instant::now() >= deadline => return Err(vec!["the hub".to_owned()]),
                _ => tokio::time::sleep(OFTEN).await,
            }
        }
    }

    /// What would be decided now about a workload of the hub; nothing if it is not there.
    #[must_use]
    pub fn explain(&self, namespace: &str, name: &str) -> Option<Outlook> {
        let key = Key::new(namespace, name);
        let workload = self.controller.workloads.get(&key)?;
        Some(self.outlook(&key, &workload))
    }

    /// What would be decided if this object were applied, which need not be there yet. From then on its replicas count
    /// as placed here, for what is planned next.
    #[must_use]
    pub fn plan(&self, mut object: MultiClusterDeployment) -> Outlook {
        let key = Key::of(&object);
        let existing = self.controller.workloads.get(&key);
        let (uid, status, version) = match &existing {
            Some(known) => (
                known.object.metadata.uid.clone(),
                known.object.status.clone(),
                known.object.metadata.resource_version.clone(),
            ),
            None => (Some(format!("planned {key}")), None, None),
        };
        object.metadata.uid = uid;
        object.metadata.resource_version = version;
        object.status = status;
        let workload = Workload::of(object);
        let outlook = self.outlook(&key, &workload);
        if let (Ok(decision), Ok(shape)) = (&outlook.decision, &workload.shape) {
            let held = decision.placed.iter().map(|(name, placed)| (name.clone(), placed.replicas)).collect();
            let claim = Claim {
                uid: workload.uid().to_owned(),
                version: None,
                shape: Some(shape.clone()),
                held,
                waits: false,
            };
            let change = Change::Set(key, claim);
            self.controller.fleet.ledger.transact(|book| book.take(KIND, &change, Claim::clone));
        }
        outlook
    }

    fn outlook(&self, key: &Key, workload: &Workload) -> Outlook {
        let before = workload.held().filter(|(_, count)| *count > 0);
        let before: BTreeMap<String, u32> = before.map(|(name, count)| (name.to_owned(), count)).collect();
        let mut reserved: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
        self.controller.workloads.for_each(|other, holder| {
            for (cluster, count) in holder.held().filter(|(_, count)| *count > 0 && other != key) {
                reserved.entry(cluster.to_owned()).or_default().insert(other.to_string(), count);
            }
        });
        let mut outlook = Outlook {
            before,
            decision: Err("a cluster is not known well enough yet".to_owned()),
            accounts: Vec::new(),
            reserved,
            notes: BTreeMap::new(),
            paused: workload.object.spec.paused,
        };
        self.controller.fleet.ledger.transact(|book| match self.controller.consider(book, key, workload) {
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
                    let stands = updating.filter(|copy| others == 0 && spared(strategy, copy.replicas) == 0);
                    let note = stands.map(|_| WAITS.to_owned());
                    outlook.notes.extend(note.map(|note| (cluster.clone(), note)));
                }
                outlook.decision = Ok(decision);
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

impl Controller {
    /// The clusters of which not enough is known to decide; nothing if not even which clusters there are.
    fn unknown(&self) -> Option<Vec<String>> {
        let complete = self.fleet.ledger.transact(|book| book.is_complete());
        if !self.fleet.clusters.synced() || !self.workloads.synced() || !complete {
            return None;
        }
        let unknown = |name: &String| match self.fleet.member(name) {
            Some(member) => member.reach.silence().is_none() && !(member.reach.answers() && member.known()),
            None => !self.fleet.is_unconnected(name),
        };
        Some(self.fleet.clusters.all().into_iter().map(|(key, _)| key.name).filter(unknown).collect())
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

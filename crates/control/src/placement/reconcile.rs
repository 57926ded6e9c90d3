//! One look at one workload.

use super::apply::BUSY_FOR;
use super::dry_run::{REFUSED_FOR, Trial};
use super::memory::Failure;
use super::observe::{Seen, wanted};
use super::status::{status, undecided};
use super::{Controller, Workload};
use crate::capacity::Book;
use crate::dependencies::References;
use crate::{copy, declared};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{MultiClusterDeployment, MultiClusterDeploymentStatus};
use portolan_core::placement::{Decision, Order, Placed, Wanted, decide, transition};
use portolan_runtime::{CallError, Key, Next, Weight};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How soon to look again while a cluster is still being got to know.
const GETTING_TO_KNOW: Duration = Duration::from_millis(250);

/// How soon to look again at a workload that somebody else changed; usually the change itself brings us back earlier.
const CHANGED_MEANWHILE: Duration = Duration::from_secs(1);

/// What came of deciding.
enum Decided {
    /// Not enough is known yet.
    NotYet,
    /// It was decided on a version of the workload that is not the last one.
    OnWhatWas,
    /// What was seen, the decision on it, and when it is due to be taken anew.
    So(BTreeMap<String, Seen>, Decision, Option<Duration>),
    /// Nothing can be decided: the reason, in a word and in a sentence.
    Not(&'static str, String),
}

/// What came of looking.
pub(super) enum Considered {
    /// Not enough is known yet.
    NotYet,
    /// What was seen and wanted, the decision on it, and when it is due to be taken anew.
    So { seen: BTreeMap<String, Seen>, wanted: Box<Wanted>, decision: Decision, due: Option<Duration> },
    /// Nothing can be decided: the reason, in a word and in a sentence.
    Not(&'static str, String),
}

/// What there is to say beside numbers, by cluster.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// What was refused.
    pub(super) failures: BTreeMap<String, Failure>,
    /// What somebody changed there.
    pub(super) drifts: BTreeMap<String, Vec<String>>,
    /// What is done there on the way to the decision.
    pub(super) orders: BTreeMap<String, Order>,
    /// The clusters that are to keep a copy of a former template.
    pub(super) outdated: BTreeSet<String>,
    /// What the template refers to and the hub does not have; nothing if that is not known yet.
    pub(super) missing: Option<References>,
    /// Why nothing of silent clusters is replaced although the workload asks for it.
    pub(super) doubt: Option<String>,
}

impl Controller {
    pub(super) async fn reconcile(&self, key: Key) -> Result<Next, CallError> {
        if !self.workloads.synced() {
            return Ok(Next::After(GETTING_TO_KNOW));
        }
        if let Some(next) = self.claim(&key).await? {
            return Ok(next);
        }
        let Some(workload) = self.workloads.get(&key) else {
            if declared::is_unreadable::<MultiClusterDeployment, _>(&self.workloads, &key, &self.recorder)
                .await
            {
                return Ok(Next::Done);
            }
            return Ok(self.sweep(&key, None).await);
        };
        if workload.object.metadata.deletion_timestamp.is_some() {
            return self.remove(&key, &workload).await;
        }
        if !declared::is_kept(&workload.object) {
            declared::keep(&self.term, &self.hub.client, &workload.object).await?;
            return Ok(Next::Done);
        }
        if let Some(next) = self.adopt(&key, &workload).await? {
            return Ok(next);
        }
        if let Some(next) = self.identify(&key, &workload).await? {
            return Ok(next);
        }
        let swept = self.sweep(&key, Some(workload.uid())).await;
        let (seen, decision, due) = match self.decide(&key, &workload) {
            Decided::NotYet => return Ok(Next::After(GETTING_TO_KNOW)),
            // The workload has changed meanwhile, and the change brings us back.
            Decided::OnWhatWas => return Ok(Next::Done),
            Decided::So(seen, decision, due) => (seen, decision, due),
            Decided::Not(reason, message) => {
                let told = undecided(&workload, reason, &message, &self.clock.time());
                let written = self.write_status(&workload, told).await?;
                return Ok(if written.is_some() { Next::Done } else { Next::After(CHANGED_MEANWHILE) });
            }
        };
        let paused = workload.object.spec.paused;
        if !paused {
            let trial = match self.try_template(&key, &workload, &decision, &seen).await {
                Ok(trial) => trial,
                Err(error) => {
                    self.fleet.ledger.transact(|book| book.retract(workload.uid()));
                    return if error.is_busy() { Ok(Next::After(BUSY_FOR)) } else { Err(error) };
                }
            };
            match trial {
                Trial::Passed => {}
                Trial::AnotherCluster => {
                    self.fleet.ledger.transact(|book| book.retract(workload.uid()));
                    return Ok(Next::After(Duration::ZERO));
                }
                Trial::Refused(problem) => {
                    let told = undecided(&workload, "InvalidTemplate", &problem, &self.clock.time());
                    self.write_status(&workload, told).await?;
                    return Ok(Next::After(REFUSED_FOR));
                }
            }
        }
        let copies = self.snapshots(&workload, &decision, &seen);
        let orders = transition(&decision, &copies);
        let notes = Notes {
            failures: self.failures(&key, &workload),
            drifts: self.drifts(&key, &workload, &decision, &seen).await,
            outdated: outdated(&orders, &decision),
            doubt: self.doubts(&workload, &seen),
            orders,
            missing: self
                .sources
                .synced()
                .then(|| self.sources.missing(&key.namespace, &workload.references)),
        };
        let mut new = status(&workload, &decision, &seen, &notes, &self.clock.time());
        new.reservation = self.reservation(&workload, &new);
        let told_in = self.may_wait(&key, &workload, &new);
        let reserved = match told_in {
            Some(_) => {
                self.fleet.ledger.transact(|book| book.retract(workload.uid()));
                None
            }
            None => match self.write_status(&workload, new).await? {
                Some(reserved) => Some(reserved),
                None => return Ok(Next::After(CHANGED_MEANWHILE)),
            },
        };
        let told_in = told_in.map(Next::After);
        let tell = async {
            if let Some(reserved) = &reserved {
                self.tell(&workload, reserved).await;
            }
        };
        if paused {
            tell.await;
            return Ok(told_in.unwrap_or(Next::Done));
        }
        let effect = self.effect(&key, &workload, &decision, &seen, &notes.orders);
        let ((), next) = futures::future::join(tell, effect).await;
        let refused = self.refusals_end(&key).map(Next::After);
        let times = [Some(next?), Some(swept), refused, due.map(Next::After), told_in];
        Ok(earliest(times.into_iter().flatten()))
    }

    /// Observes, decides and holds what was decided, in one step: no other decision counts the same room.
    fn decide(&self, key: &Key, workload: &Workload) -> Decided {
        self.fleet.ledger.transact(|book| {
            let (seen, wanted, decision, due) = match self.consider(book, key, workload) {
                Considered::NotYet => return Decided::NotYet,
                Considered::Not(reason, message) => return Decided::Not(reason, message),
                Considered::So { seen, wanted, decision, due } => (seen, wanted, decision, due),
            };
            let placed = decision.placed.iter().map(|(cluster, placed)| {
                let ready =
                    seen.get(cluster).and_then(|seen| seen.copy.as_ref()).map_or(0, |copy| copy.ready);
                (cluster.clone(), workload.reserves(placed.replicas, ready))
            });
            let version = workload.object.metadata.resource_version.as_deref();
            match book.assume(workload.uid(), version, &wanted.shape, placed.collect()) {
                true => Decided::So(seen, decision, due),
                false => Decided::OnWhatWas,
            }
        })
    }

    /// Observes and decides; nothing is held.
    pub(super) fn consider(&self, book: &mut Book, key: &Key, workload: &Workload) -> Considered {
        let Some(mut seen) = self.observe(book, key, workload) else { return Considered::NotYet };
        self.count_what_runs(workload, &mut seen);
        let due = self.mark_lost(workload, &mut seen);
        self.mark_refusing(key, workload, &mut seen);
        let wanted = match wanted(workload) {
            Ok(wanted) => Box::new(wanted),
            Err(problem) => return Considered::Not("InvalidTemplate", problem),
        };
        let decided = decide(&wanted, &candidates(&seen), |cluster, more| {
            book.shortage(cluster, workload.uid(), &wanted.shape, more)
        });
        match decided {
            Ok(decision) => {
                let decision = if workload.object.spec.paused { held(workload, &decision) } else { decision };
                Considered::So { seen, wanted, decision, due }
            }
            Err(why) => Considered::Not("PolicyUnavailable", why.to_string()),
        }
    }

    /// Writes the status if it says anything new, by compare-and-swap on the version that the decision was taken on.
    ///
    /// Nothing means that the workload has changed meanwhile: whoever changed it brings us back.
    pub(super) async fn write_status(
        &self,
        workload: &Workload,
        status: MultiClusterDeploymentStatus,
    ) -> Result<Option<MultiClusterDeployment>, CallError> {
        if workload.object.status.as_ref() == Some(&status) {
            self.fleet.ledger.transact(|book| book.retract(workload.uid()));
            return Ok(Some(workload.object.clone()));
        }
        match copy::replace_status(&self.term, &self.hub.client, &workload.object, &status).await {
            Ok(None) => {
                self.fleet.ledger.transact(|book| book.retract(workload.uid()));
                Ok(None)
            }
            Ok(written) => Ok(written),
            Err(error) => {
                // The write may have taken effect although the answer was lost: until the index tells, the room counts.
                if error.code().is_some() {
                    self.fleet.ledger.transact(|book| book.retract(workload.uid()));
                }
                Err(error)
            }
        }
    }

    /// Tells the user, as an event, when replicas got another place, and when something calls for attention.
    async fn tell(&self, before: &Workload, now: &MultiClusterDeployment) {
        let summary = |object: &MultiClusterDeployment| {
            object.status.as_ref().and_then(|s| s.locations_summary.clone())
        };
        let (old, new) = (summary(&before.object), summary(now));
        if old != new {
            let note = format!("placed {}", new.as_deref().unwrap_or("nothing"));
            self.recorder.record(now, Weight::Normal, "Placed", &note).await;
        }
        let pending =
            |object: &MultiClusterDeployment| object.status.as_ref().map_or(0, |s| s.pending_replicas);
        if pending(now) > 0 && pending(&before.object) != pending(now) {
            let conditions = now.status.iter().flat_map(|status| &status.conditions);
            let why =
                conditions.filter(|each| each.type_ == "Placed").map(|each| each.message.as_str()).next();
            self.recorder.record(now, Weight::Warning, "Pending", why.unwrap_or_default()).await;
        }
        for (type_, bad) in [
            (ConditionType::Placed, "False"),
            (ConditionType::Drifted, "True"),
            (ConditionType::Unreachable, "True"),
            (ConditionType::DependenciesReady, "False"),
        ] {
            let find = |object: &MultiClusterDeployment| {
                let conditions = object.status.as_ref().map(|status| status.conditions.as_slice());
                conditions::find(conditions.unwrap_or_default(), type_).cloned()
            };
            let (old, new) = (find(&before.object), find(now));
            let news =
                |old: &Condition, new: &Condition| old.status != new.status || old.reason != new.reason;
            // That replicas are pending is told above, with every number.
            if let Some(new) = new.filter(|new| new.status == bad && new.reason != "Pending")
                && old.is_none_or(|old| news(&old, &new))
            {
                self.recorder.record(now, Weight::Warning, &new.reason, &new.message).await;
            }
        }
    }
}

/// The earliest of several times to look again.
fn earliest(times: impl Iterator<Item = Next>) -> Next {
    let waits = times.filter_map(|next| match next {
        Next::After(wait) => Some(wait),
        Next::Done => None,
    });
    waits.min().map_or(Next::Done, Next::After)
}

fn candidates(seen: &BTreeMap<String, Seen>) -> Vec<portolan_core::placement::Candidate> {
    seen.values().map(|each| each.candidate.clone()).collect()
}

/// The clusters that hold replicas and keep a copy of a former template.
fn outdated(orders: &BTreeMap<String, Order>, decision: &Decision) -> BTreeSet<String> {
    let kept = orders
        .iter()
        .filter(|(cluster, order)| **order == Order::Keep && decision.placed.contains_key(*cluster));
    kept.map(|(cluster, _)| cluster.clone()).collect()
}

/// While paused, the last decision stands, whatever would be decided now.
fn held(workload: &Workload, decision: &Decision) -> Decision {
    let asked = decision.placed.values().map(|placed| placed.replicas).sum::<u32>() + decision.pending;
    let last = workload.object.status.iter().flat_map(|status| &status.placements);
    let place = |placed: &portolan_api::placement::PlacementStatus| {
        let replicas = u32::try_from(placed.replicas).ok().filter(|replicas| *replicas > 0)?;
        let stands_in_for = placed.substitute_for.iter().cloned().collect();
        Some((placed.cluster.clone(), Placed { replicas, stands_in_for, ..Placed::new(placed.cause?) }))
    };
    let placed: BTreeMap<String, Placed> = last.filter_map(place).collect();
    let pending = asked.saturating_sub(placed.values().map(|placed| placed.replicas).sum());
    Decision { placed, pending, ..Decision::default() }
}

//! One look at one workload.

use super::notes::Notes;
use super::observe::{ClusterSnapshot, wanted};
use super::refusals::suppose_refusing;
use super::status::{status, undecided};
use super::trial::{REFUSED_FOR, Verdict};
use super::{Placement, Workload};
use crate::capacity::Book;
use crate::copies::Round;
use crate::driver::{CHANGED_MEANWHILE, Declared, RESYNC_PERIOD, SYNC_POLL_INTERVAL, Write, earlier};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use portolan_api::MultiClusterDeployment;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionType};
use portolan_core::placement::{
    Decision, Order, PlacementRequest, Refusal, decide, hold_while_paused, transition,
};
use portolan_runtime::{Action, CallError, EventType, Key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How soon to look again at replicas that may not leave a cluster yet.
const LEAVES_AGAIN: Duration = Duration::from_secs(5);

/// What came of deciding.
enum Decided {
    /// A cluster is not listed yet.
    CacheNotSynced,
    /// The workload has changed since it was read.
    StaleObject,
    /// What was seen, the decision on it, and when it is due to be taken again.
    Made(BTreeMap<String, ClusterSnapshot>, Decision, Option<Duration>),
    /// Nothing can be decided: what was seen, and the reason, in a word and in a sentence.
    Impossible(BTreeMap<String, ClusterSnapshot>, Reason, String),
}

/// What came of deciding without holding room.
pub(super) enum Evaluated {
    /// A cluster is not listed yet.
    CacheNotSynced,
    /// What was seen and wanted, the decision on it, and when it is due to be taken again.
    Made {
        seen: BTreeMap<String, ClusterSnapshot>,
        wanted: Box<PlacementRequest>,
        decision: Decision,
        due: Option<Duration>,
    },
    /// Nothing can be decided: what was seen, and the reason, in a word and in a sentence.
    Impossible(BTreeMap<String, ClusterSnapshot>, Reason, String),
}

impl Placement {
    pub(super) async fn look(
        self: &Arc<Self>,
        key: &Key,
        workload: &Arc<Workload>,
        round: Round,
    ) -> Result<Action, CallError> {
        let base = &self.base;
        let now = || base.context.clock.time();
        let paused = workload.object.spec.paused;
        // What may not be placed holds no room: to give it up again would wake those who wait for room, this one too.
        let passed = paused || self.has_passed(key, workload);
        let mut decided = self.decide(key, workload, passed);
        if let Decided::Made(seen, decision, _) = &decided
            && !passed
        {
            match self.try_template(key, workload, decision, seen, round) {
                Verdict::Passed => decided = self.decide(key, workload, true),
                Verdict::Pending(wait) => return Ok(Action::RequeueAfter(wait)),
                Verdict::Refused(problem) => {
                    self.claim_copies(key, seen, round);
                    let new = undecided(workload, Reason::InvalidTemplate, &problem, &now());
                    base.write_status(workload, new, Write::IfChanged).await?;
                    return Ok(Action::RequeueAfter(REFUSED_FOR));
                }
            }
        }
        let (seen, decision, due) = match decided {
            Decided::CacheNotSynced => return Ok(Action::RequeueAfter(SYNC_POLL_INTERVAL)),
            // The change brings us back.
            Decided::StaleObject => return Ok(Action::AwaitChange),
            Decided::Made(seen, decision, due) => {
                base.decisions.made(decision.pending > 0);
                (seen, decision, due)
            }
            Decided::Impossible(seen, reason, message) => {
                base.decisions.impossible();
                self.claim_copies(key, &seen, round);
                let new = undecided(workload, reason, &message, &now());
                let written = base.write_status(workload, new, Write::IfChanged).await?;
                return Ok(if written.is_some() {
                    Action::AwaitChange
                } else {
                    Action::RequeueAfter(CHANGED_MEANWHILE)
                });
            }
        };
        let copies = self.snapshots(key, workload, &decision, &seen);
        let orders = transition(&decision, &copies);
        let sources = &base.context.sources;
        let notes = Notes {
            failures: self.failures(key, workload),
            drifts: self.drifts(key, workload, &decision, &seen),
            outdated: outdated(&orders, &decision),
            doubt: self.doubts(workload, &seen),
            orders,
            missing: sources.synced().then(|| sources.missing(&key.namespace, &workload.references)),
        };
        let new = status(workload, &decision, &seen, &notes, &now());
        let written_in = self.may_wait(key, workload, &new);
        let written = if written_in.is_some() {
            base.retract(workload);
            None
        } else {
            let Some(written) = base.write_status(workload, new, Write::IfChanged).await? else {
                return Ok(Action::RequeueAfter(CHANGED_MEANWHILE));
            };
            Some(written)
        };
        if paused {
            self.claim_copies(key, &seen, round);
        } else {
            self.submit(key, workload, &decision, &seen, &notes.orders, round);
        }
        if let Some(written) = written {
            self.tell(workload, &written).await;
        }
        let mut next = written_in.map_or(Action::AwaitChange, Action::RequeueAfter);
        if paused {
            return Ok(next);
        }
        let stays = copies.values().any(|copy| copy.stays).then_some(LEAVES_AGAIN);
        let changes = self.lately_ready.changes(key);
        let waits = [Some(RESYNC_PERIOD), base.copies.memory.refusals_end(key), changes, due, stays];
        for wait in waits.into_iter().flatten() {
            next = earlier(next, Action::RequeueAfter(wait));
        }
        Ok(next)
    }

    /// Observes, decides and, if asked, holds what was decided, in one step: no other decision counts the same room.
    fn decide(&self, key: &Key, workload: &Workload, hold: bool) -> Decided {
        self.base.context.fleet.ledger.transact(|book| {
            let (seen, wanted, decision, due) = match self.consider(book, key, workload, &BTreeMap::new()) {
                Evaluated::CacheNotSynced => return Decided::CacheNotSynced,
                Evaluated::Impossible(seen, reason, why) => return Decided::Impossible(seen, reason, why),
                Evaluated::Made { seen, wanted, decision, due } => (seen, wanted, decision, due),
            };
            if !hold {
                return Decided::Made(seen, decision, due);
            }
            let placed = decision.placed.iter().map(|(cluster, placed)| {
                let ready =
                    seen.get(cluster).and_then(|seen| seen.copy.as_ref()).map_or(0, |copy| copy.ready);
                (cluster.clone(), workload.reserves(placed.replicas, ready))
            });
            let version = workload.object.metadata.resource_version.as_deref();
            if book.assume(workload.uid(), version, &wanted.shape, placed.collect()) {
                Decided::Made(seen, decision, due)
            } else {
                Decided::StaleObject
            }
        })
    }

    /// Observes and decides; nothing is held. Clusters may be supposed to refuse the workload beside those that do.
    pub(super) fn consider(
        &self,
        book: &mut Book,
        key: &Key,
        workload: &Workload,
        refusing: &BTreeMap<String, Refusal>,
    ) -> Evaluated {
        let Some(mut seen) = self.observe(book, key, workload) else { return Evaluated::CacheNotSynced };
        self.count_what_runs(workload, &mut seen);
        let due = self.mark_lost(workload, &mut seen);
        self.mark_refusing(key, workload, &mut seen);
        suppose_refusing(&mut seen, refusing);
        let Some(shares) = self.shares.of(key) else { return Evaluated::CacheNotSynced };
        let wanted = match wanted(workload, shares) {
            Ok(wanted) => Box::new(wanted),
            Err(problem) => return Evaluated::Impossible(seen, Reason::InvalidTemplate, problem),
        };
        let mut candidates = candidates(&seen);
        if self.confine(key, workload, &wanted, &mut candidates).is_none() {
            return Evaluated::CacheNotSynced;
        }
        let decided = decide(&wanted, &candidates, |cluster, more| {
            book.shortage(cluster, workload.uid(), &wanted.shape, more)
        });
        match decided {
            Ok(decision) => {
                let decision = if workload.object.spec.paused {
                    let recorded = workload.object.status.iter().flat_map(|status| &status.placements);
                    hold_while_paused(&decision, recorded, &self.unrecorded(workload, &seen))
                } else {
                    decision
                };
                Evaluated::Made { seen, wanted, decision, due }
            }
            Err(why) => Evaluated::Impossible(seen, Reason::PolicyUnavailable, why.to_string()),
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
            self.base.recorder.record(now, EventType::Normal, Reason::Placed, &note).await;
        }
        let pending =
            |object: &MultiClusterDeployment| object.status.as_ref().map_or(0, |s| s.pending_replicas);
        if pending(now) > 0 && pending(&before.object) != pending(now) {
            let conditions = now.status.iter().flat_map(|status| &status.conditions);
            let why = conditions
                .filter(|each| each.type_ == ConditionType::Placed.as_str())
                .map(|each| each.message.as_str())
                .next();
            self.base
                .recorder
                .record(now, EventType::Warning, Reason::Pending, why.unwrap_or_default())
                .await;
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
            if let Some(new) = new.filter(|new| new.status == bad)
                && let Some(reason) = Reason::parse(&new.reason).filter(|reason| *reason != Reason::Pending)
                && old.is_none_or(|old| news(&old, &new))
            {
                self.base.recorder.record(now, EventType::Warning, reason, &new.message).await;
            }
        }
    }
}

fn candidates(seen: &BTreeMap<String, ClusterSnapshot>) -> Vec<portolan_core::placement::Candidate> {
    seen.values().map(|each| each.candidate.clone()).collect()
}

/// The clusters that hold replicas and keep a copy of a former template.
fn outdated(orders: &BTreeMap<String, Order>, decision: &Decision) -> BTreeSet<String> {
    let kept = orders
        .iter()
        .filter(|(_, order)| matches!(order, Order::Keep | Order::Scale { .. }))
        .filter(|(cluster, _)| decision.placed.contains_key(*cluster));
    kept.map(|(cluster, _)| cluster.clone()).collect()
}

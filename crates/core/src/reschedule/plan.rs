//! The plan itself: who comes home, and why the others stay.

use super::follow::follow;
use super::room::{arrivals, away};
use super::{Home, Move, Plan, Record, Settings, Stay, StayReason, WorkloadKey, WorkloadSnapshot};
use crate::time::{after, whole_seconds};
use k8s_openapi::jiff::Timestamp;
use portolan_api::multiclusterrescheduler::MovePhase;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Plans which workloads come home. `workloads` has all that have replicas away, and all that move.
///
/// Those in the cloud come before those in substitutes, and those that have been away for longest first.
#[must_use]
pub fn plan(
    settings: &Settings,
    record: &Record,
    workloads: &BTreeMap<WorkloadKey, WorkloadSnapshot>,
    now: Timestamp,
) -> Plan {
    let now = whole_seconds(now);
    let mut plan = Plan { record: record.clone(), ..Plan::default() };
    plan.record.last_run = Some(now);
    plan.next = Some(after(now, settings.interval));
    follow(settings, workloads, now, &mut plan);
    let mut waiting: Vec<(&WorkloadKey, &WorkloadSnapshot)> = workloads
        .iter()
        .filter(|(_, workload)| away(workload) > 0 && settings.selects(&workload.labels))
        .filter(|(key, _)| !plan.record.moves.contains_key(*key))
        .collect();
    plan.record.stays.retain(|key, _| waiting.iter().any(|(other, _)| *other == key));
    for (key, workload) in &waiting {
        take_note(settings, key, workload, now, &mut plan.record);
    }
    let stays = plan.record.stays.clone();
    let since = |key: &WorkloadKey| stays.get(key).map_or(now, |stay| stay.since);
    let in_cloud = |workload: &WorkloadSnapshot| workload.held.values().any(|held| held.away && held.cloud);
    waiting.sort_by_key(|(key, workload)| (Reverse(in_cloud(workload)), since(key), (*key).clone()));
    let mut busy = unreserved(&plan.record, workloads);
    for (key, workload) in waiting {
        let stay = stays.get(key).copied().unwrap_or(Stay { since: now, room_since: None, retry_at: None });
        match decide(settings, &plan.record, workload, stay, &busy, now) {
            Ok(arrivals) => {
                busy.extend(arrivals.keys().cloned());
                plan.record.stays.remove(key);
                plan.record.moves.insert(key.clone(), begin(workload, &arrivals, now));
                plan.decide.push(key.clone());
            }
            Err(reason) => {
                let passes = reason.until().filter(|until| *until > now);
                plan.next = [plan.next, passes].into_iter().flatten().min();
                let clusters = workload.held.iter().filter(|(_, held)| held.away);
                let clusters = clusters.map(|(name, _)| name.clone()).collect();
                plan.staying.insert(key.clone(), (clusters, reason));
            }
        }
    }
    plan
}

/// Since when the workload has been away, and since when there has been room for it.
fn take_note(
    settings: &Settings,
    key: &WorkloadKey,
    workload: &WorkloadSnapshot,
    now: Timestamp,
    record: &mut Record,
) {
    let stay =
        record.stays.entry(key.clone()).or_insert(Stay { since: now, room_since: None, retry_at: None });
    let mut unbudgeted = workload.clone();
    unbudgeted.held.values_mut().for_each(|held| held.budget = None);
    let room = !arrivals(settings, &unbudgeted, &BTreeSet::new()).is_empty();
    stay.room_since = stay.room_since.filter(|_| room).or(room.then_some(now));
    stay.retry_at = stay.retry_at.filter(|at| *at > now);
}

/// The homes whose room a move is about to use and has not reserved yet: it still counts as free.
fn unreserved(record: &Record, workloads: &BTreeMap<WorkloadKey, WorkloadSnapshot>) -> BTreeSet<String> {
    let mut busy = BTreeSet::new();
    for (key, moving) in &record.moves {
        let held = |home: &str| {
            workloads.get(key).and_then(|each| each.held.get(home)).map_or(0, |held| held.replicas)
        };
        let open = moving.targets.iter().filter(|(home, target)| held(home) < **target);
        busy.extend(open.map(|(home, _)| home.clone()));
    }
    busy
}

/// How many replicas come to which home, or why none does.
fn decide(
    settings: &Settings,
    record: &Record,
    workload: &WorkloadSnapshot,
    stay: Stay,
    busy: &BTreeSet<String>,
    now: Timestamp,
) -> Result<BTreeMap<String, u32>, StayReason> {
    let mut stand_ins = workload.held.iter().filter(|(_, held)| held.away);
    if settings.paused {
        return Err(StayReason::ReschedulerPaused);
    }
    if workload.paused {
        return Err(StayReason::WorkloadPaused);
    }
    if let Some((cluster, _)) = workload.held.iter().find(|(_, held)| !held.reachable) {
        return Err(StayReason::Unreachable { cluster: cluster.clone() });
    }
    if !workload.settled {
        return Err(StayReason::NotSettled);
    }
    if let Some(until) = stay.retry_at {
        return Err(StayReason::RetryLater { until });
    }
    let until = after(stay.since, settings.minimum_stay);
    if now < until {
        return Err(StayReason::MinimumStay { until });
    }
    let Some(room_since) = stay.room_since else {
        let fits =
            workload.homes.values().map(|home: &Home| home.fits.min(home.lacks)).fold(0, u32::saturating_add);
        return Err(StayReason::NoRoom { replicas: away(workload), fits, margin: settings.margin });
    };
    let until = after(room_since, settings.room_stable_for);
    if now < until {
        return Err(StayReason::RoomNotStable { until });
    }
    if let Some((cluster, _)) = workload.held.iter().find(|(_, held)| held.away && held.budgets_unknown) {
        return Err(StayReason::BudgetsUnknown { cluster: cluster.clone() });
    }
    let forbids = |(cluster, held): (&String, &super::Held)| match &held.budget {
        Some((budget, 0)) => Some((cluster.clone(), budget.clone())),
        _ => None,
    };
    if let Some((cluster, budget)) = stand_ins.find_map(forbids) {
        return Err(StayReason::DisruptionBudget { cluster, budget });
    }
    let arrivals = arrivals(settings, workload, busy);
    if arrivals.is_empty() {
        return Err(StayReason::HomeBusy);
    }
    let moves = u32::try_from(record.moves.len()).unwrap_or(u32::MAX);
    if moves >= settings.max_concurrent {
        return Err(StayReason::MaxConcurrentMoves { moves });
    }
    if settings.dry_run {
        let to = arrivals.keys().cloned().collect();
        return Err(StayReason::DryRun { replicas: arrivals.values().sum(), to });
    }
    Ok(arrivals)
}

fn begin(workload: &WorkloadSnapshot, arrivals: &BTreeMap<String, u32>, now: Timestamp) -> Move {
    let before: BTreeMap<String, u32> =
        workload.held.iter().map(|(name, held)| (name.clone(), held.replicas)).collect();
    let target =
        |(name, comes): (&String, &u32)| (name.clone(), before.get(name).copied().unwrap_or(0) + comes);
    Move {
        phase: MovePhase::Surging,
        started_at: now,
        finished_at: None,
        replicas: arrivals.values().sum(),
        from: workload.held.iter().filter(|(_, held)| held.away).map(|(name, _)| name.clone()).collect(),
        targets: arrivals.iter().map(target).collect(),
        before,
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

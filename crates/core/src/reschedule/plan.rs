//! The plan itself: who comes home, and why the others stay.

use super::budgets::Taken;
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
    let mut taken = follow(settings, workloads, now, &mut plan);
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
        let stay = stays.get(key).cloned().unwrap_or_else(|| Stay::beginning(workload, now));
        let allowed = allowed(&taken, key, workload);
        match decide(settings, &plan.record, workload, &stay, &busy, allowed, now) {
            Ok(arrivals) => {
                busy.extend(arrivals.keys().cloned());
                plan.record.stays.remove(key);
                let moving = begin(workload, &arrivals, now);
                taken.take(key, &moving, workload);
                plan.record.moves.insert(key.clone(), moving);
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
    let stay = record.stays.entry(key.clone()).or_insert_with(|| Stay::beginning(workload, now));
    if stay.uid.as_ref().is_some_and(|uid| *uid != workload.uid) {
        // Another one had its name.
        *stay = Stay::beginning(workload, now);
    }
    stay.uid = Some(workload.uid.clone());
    let room = !arrivals(settings, workload, &BTreeSet::new(), u32::MAX).is_empty();
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

/// How many replicas budgets let go where they stand in, or why none.
fn allowed(taken: &Taken, key: &WorkloadKey, workload: &WorkloadSnapshot) -> Result<u32, StayReason> {
    let mut all = u32::MAX;
    for (cluster, held) in workload.held.iter().filter(|(_, held)| held.away) {
        match taken.rest(key, cluster, workload)? {
            Some((budget, 0)) => {
                let (cluster, leaves) = (cluster.clone(), held.replicas);
                return Err(StayReason::DisruptionBudget { cluster, budget, allows: 0, leaves });
            }
            rest => all = rest.map_or(all, |(_, pods)| all.min(pods)),
        }
    }
    Ok(all)
}

/// How many replicas come to which home, or why none does.
fn decide(
    settings: &Settings,
    record: &Record,
    workload: &WorkloadSnapshot,
    stay: &Stay,
    busy: &BTreeSet<String>,
    allowed: Result<u32, StayReason>,
    now: Timestamp,
) -> Result<BTreeMap<String, u32>, StayReason> {
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
    let arrivals = arrivals(settings, workload, busy, allowed?);
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
        uid: Some(workload.uid.clone()),
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

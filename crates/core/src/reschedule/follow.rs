//! The moves under way: are the replicas at home ready, is it too late, is it over?

use super::{Move, Plan, Settings, Stay, WorkloadKey, WorkloadSnapshot};
use crate::time::{after, has_passed};
use k8s_openapi::jiff::Timestamp;
use portolan_api::multiclusterrescheduler::MovePhase;
use std::collections::BTreeMap;

/// So many moves that ended are remembered.
const ENDED_AT_MOST: usize = 20;

/// Takes every move a step further.
pub(super) fn follow(
    settings: &Settings,
    workloads: &BTreeMap<WorkloadKey, WorkloadSnapshot>,
    now: Timestamp,
    plan: &mut Plan,
) {
    for (key, mut moving) in std::mem::take(&mut plan.record.moves) {
        let Some(workload) = workloads.get(&key) else { continue };
        let before = moving.phase;
        moving.phase = next(settings, &moving, workload, now);
        if moving.phase != before {
            plan.decide.push(key.clone());
        }
        if moving.is_under_way() {
            let late = after(moving.started_at, settings.move_timeout);
            plan.next = [plan.next, Some(late).filter(|late| *late > now)].into_iter().flatten().min();
            plan.record.moves.insert(key, moving);
            continue;
        }
        // It had stayed for long enough when the move began: replicas that are still away need not do so again.
        let since = moving.started_at.checked_sub(settings.minimum_stay).unwrap_or(moving.started_at);
        let mut stay = Stay { since, room_since: None, retry_at: None };
        if moving.phase == MovePhase::Done {
            plan.record.moved = plan.record.moved.saturating_add(1);
        } else {
            stay.retry_at = Some(after(now, settings.minimum_stay));
        }
        plan.record.stays.insert(key.clone(), stay);
        moving.finished_at = Some(now);
        plan.record.ended.insert(0, (key, moving));
        plan.record.ended.truncate(ENDED_AT_MOST);
    }
}

fn next(settings: &Settings, moving: &Move, workload: &WorkloadSnapshot, now: Timestamp) -> MovePhase {
    let replicas = |cluster: &str| workload.held.get(cluster).map_or(0, |held| held.replicas);
    let ready = |cluster: &str| workload.held.get(cluster).map_or(0, |held| held.ready);
    let had = |cluster: &str| moving.before.get(cluster).copied().unwrap_or(0);
    let arrived = moving.targets.iter().all(|(home, target)| replicas(home) >= *target);
    let home_is_ready = moving.targets.keys().all(|home| ready(home) >= replicas(home));
    let gone = !workload.held.values().any(|held| held.away);
    let late = has_passed(Some(moving.started_at), settings.move_timeout, now);
    match moving.phase {
        MovePhase::Surging | MovePhase::Draining if workload.settled && (arrived || gone) => MovePhase::Done,
        // What runs in the cloud may be silent; its replacements are ready, so nothing hurries.
        MovePhase::Surging | MovePhase::Draining if arrived && home_is_ready => MovePhase::Draining,
        MovePhase::Surging | MovePhase::Draining if late => {
            let some = moving.targets.keys().any(|home| replicas(home) > had(home));
            match (some, workload.settled) {
                // Less room was found than there was, and what came is ready.
                (true, true) => MovePhase::Done,
                (true, false) => MovePhase::Returning,
                (false, _) => MovePhase::Failed,
            }
        }
        MovePhase::Surging | MovePhase::Draining => MovePhase::Surging,
        MovePhase::Returning if workload.settled && arrived => MovePhase::Done,
        MovePhase::Returning => {
            let returned = moving.targets.keys().all(|home| replicas(home) <= had(home));
            let twice = after(moving.started_at, settings.move_timeout.saturating_mul(2));
            if returned || now >= twice { MovePhase::Failed } else { MovePhase::Returning }
        }
        ended @ (MovePhase::Done | MovePhase::Failed) => ended,
    }
}

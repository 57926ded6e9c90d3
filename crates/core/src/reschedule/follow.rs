//! The moves under way: are the replicas at home ready, is it too late, is it over?

use super::budgets::Taken;
use super::{Move, Plan, Settings, Stay, WorkloadKey, WorkloadSnapshot};
use crate::time::{after, has_passed};
use k8s_openapi::jiff::Timestamp;
use portolan_api::multiclusterrescheduler::MovePhase;
use std::collections::BTreeMap;

/// So many moves that ended are remembered.
const ENDED_AT_MOST: usize = 20;

/// Takes every move a step further; answers what those under way take of budgets.
pub(super) fn follow(
    settings: &Settings,
    workloads: &BTreeMap<WorkloadKey, WorkloadSnapshot>,
    now: Timestamp,
    plan: &mut Plan,
) -> Taken {
    let mut taken = Taken::default();
    let mut moves: Vec<(WorkloadKey, Move)> = std::mem::take(&mut plan.record.moves).into_iter().collect();
    // Those whose replicas leave already come first: what they take of a budget is not given to others.
    moves.sort_by_key(|(_, moving)| moving.phase != MovePhase::Draining);
    for (key, mut moving) in moves {
        let Some(workload) = workloads.get(&key).filter(|each| moving.is_of(&each.uid)) else { continue };
        moving.uid = Some(workload.uid.clone());
        let before = moving.phase;
        let let_go = taken.let_go(&key, &moving, workload);
        moving.phase = next(settings, &moving, workload, let_go.is_ok(), now);
        match (moving.phase, let_go) {
            (MovePhase::Draining, _) => taken.take(&key, &moving, workload),
            (MovePhase::Surging, Err(why)) if is_ready(&moving, workload) => {
                plan.waiting.insert(key.clone(), why);
            }
            _ => {}
        }
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
        let mut stay = Stay::beginning(workload, since);
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
    for (key, moving) in plan.record.moves.iter().filter(|(_, moving)| moving.phase == MovePhase::Surging) {
        if let Some(workload) = workloads.get(key) {
            taken.take(key, moving, workload);
        }
    }
    taken
}

/// Whether all replicas that were decided for the homes of a move are ready.
fn is_ready(moving: &Move, workload: &WorkloadSnapshot) -> bool {
    let at = |home: &String| workload.held.get(home).map_or((0, 0), |held| (held.replicas, held.ready));
    moving.targets.keys().map(at).all(|(replicas, ready)| ready >= replicas)
}

fn next(
    settings: &Settings,
    moving: &Move,
    workload: &WorkloadSnapshot,
    let_go: bool,
    now: Timestamp,
) -> MovePhase {
    let replicas = |cluster: &str| workload.held.get(cluster).map_or(0, |held| held.replicas);
    let had = |cluster: &str| moving.before.get(cluster).copied().unwrap_or(0);
    let arrived = moving.targets.iter().all(|(home, target)| replicas(home) >= *target);
    let leaves = moving.from.iter().any(|from| workload.leaving.contains_key(from));
    let drains = (arrived || leaves) && is_ready(moving, workload) && let_go;
    let gone = !workload.held.values().any(|held| held.away);
    let late = has_passed(Some(moving.started_at), settings.move_timeout, now);
    match moving.phase {
        MovePhase::Surging | MovePhase::Draining if workload.settled && (arrived || gone) => MovePhase::Done,
        // What runs in the cloud may be silent; its replacements are ready, so nothing hurries.
        MovePhase::Surging | MovePhase::Draining if drains => MovePhase::Draining,
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

//! The record as it stands in the status of the MultiClusterRescheduler.

use super::{Move, Plan, Record, Stay, StayReason, WorkloadKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use portolan_api::MultiClusterReschedulerStatus;
use portolan_api::multiclusterrescheduler::{Move as Shown, MovePhase, Staying};
use std::collections::BTreeMap;

/// So many workloads that stay are listed; the stay of others begins again with the next leader.
const STAYING_AT_MOST: usize = 1000;

/// So many moves are listed, those under way first; no more are allowed at the same time.
const MOVES_AT_MOST: usize = 100;

impl Record {
    /// Reads the record from the status.
    #[must_use]
    pub fn of(status: &MultiClusterReschedulerStatus) -> Self {
        let mut record = Self {
            moved: u64::try_from(status.moved).unwrap_or(0),
            last_run: read(&status.last_run_time),
            ..Self::default()
        };
        for shown in &status.moves {
            let key = key(&shown.kind, &shown.namespace, &shown.name);
            let Some(moving) = move_of(shown) else { continue };
            if moving.is_under_way() {
                record.moves.insert(key, moving);
            } else {
                record.ended.push((key, moving));
            }
        }
        for staying in &status.staying {
            if let Some(since) = read(&staying.since) {
                let (room_since, retry_at) = (read(&staying.room_since), read(&staying.retry_at));
                let key = key(&staying.kind, &staying.namespace, &staying.name);
                record.stays.insert(key, Stay { uid: staying.uid.clone(), since, room_since, retry_at });
            }
        }
        record
    }
}

impl Record {
    /// With the stays that this process remembers and the status does not list, since there are too many.
    #[must_use]
    pub fn recalling(mut self, stays: &BTreeMap<WorkloadKey, Stay>) -> Self {
        for (key, stay) in stays {
            if !self.moves.contains_key(key) {
                self.stays.entry(key.clone()).or_insert_with(|| stay.clone());
            }
        }
        self
    }
}

impl Plan {
    /// Writes the record and why workloads stay into the status. Conditions are not touched.
    pub fn write(&self, status: &mut MultiClusterReschedulerStatus) {
        let record = &self.record;
        status.last_run_time = record.last_run.map(Time);
        status.moving = i32::try_from(record.moves.len()).unwrap_or(i32::MAX);
        status.moved = i64::try_from(record.moved).unwrap_or(i64::MAX);
        let ended = record.ended.iter().map(|(key, moving)| (key, moving));
        let moves = record.moves.iter().chain(ended).take(MOVES_AT_MOST);
        status.moves = moves.map(|(key, moving)| shown(key, moving, self.waiting.get(key))).collect();
        let staying = self.staying.iter().take(STAYING_AT_MOST);
        status.staying = staying
            .map(|(key, (clusters, reason))| {
                let stay = record.stays.get(key);
                Staying {
                    kind: key.kind.clone(),
                    namespace: key.namespace.clone(),
                    name: key.name.clone(),
                    uid: stay.and_then(|stay| stay.uid.clone()),
                    cluster: clusters.join(", "),
                    since: stay.map(|stay| Time(stay.since)),
                    room_since: stay.and_then(|stay| stay.room_since).map(Time),
                    retry_at: stay.and_then(|stay| stay.retry_at).map(Time),
                    reason: reason.reason().into(),
                    message: Some(reason.to_string()),
                }
            })
            .collect();
    }
}

fn move_of(shown: &Shown) -> Option<Move> {
    let unsigned = |numbers: &BTreeMap<String, i32>| {
        numbers.iter().map(|(name, number)| (name.clone(), u32::try_from(*number).unwrap_or(0))).collect()
    };
    Some(Move {
        uid: shown.uid.clone(),
        phase: shown.phase,
        started_at: read(&shown.started_at)?,
        finished_at: read(&shown.finished_at),
        replicas: u32::try_from(shown.replicas).unwrap_or(0),
        from: shown.from.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        before: unsigned(&shown.before),
        targets: unsigned(&shown.targets),
    })
}

fn shown(key: &WorkloadKey, moving: &Move, waits: Option<&StayReason>) -> Shown {
    let signed = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let all = |numbers: &BTreeMap<String, u32>| {
        numbers.iter().map(|(name, number)| (name.clone(), signed(*number))).collect()
    };
    Shown {
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: moving.uid.clone(),
        from: moving.from.join(", "),
        to: moving.targets.keys().cloned().collect::<Vec<_>>().join(", "),
        before: all(&moving.before),
        targets: all(&moving.targets),
        replicas: signed(moving.replicas),
        phase: moving.phase,
        started_at: Some(Time(moving.started_at)),
        finished_at: moving.finished_at.map(Time),
        message: Some(message(moving, waits)),
    }
}

/// What happens, or happened, in a move.
fn message(moving: &Move, waits: Option<&StayReason>) -> String {
    let Move { replicas, from, .. } = moving;
    let (from, to) = (from.join(", "), moving.targets.keys().cloned().collect::<Vec<_>>().join(", "));
    match (moving.phase, waits) {
        (MovePhase::Surging, Some(why)) => {
            format!("the replicas in {to} are ready; those in {from} still run: {why}")
        }
        (MovePhase::Surging, None) => format!("{replicas} replicas start in {to}; those in {from} still run"),
        (MovePhase::Draining, _) => {
            format!("the replicas in {to} are ready; those in {from} are being removed")
        }
        (MovePhase::Returning, _) => {
            format!("the move was not over within spec.moveTimeout; the replicas in {to} are given back")
        }
        (MovePhase::Done, _) => format!("{replicas} replicas came from {from} to {to}"),
        (MovePhase::Failed, _) => {
            format!(
                "the move of {replicas} replicas to {to} was not over within spec.moveTimeout; those in {from} still run"
            )
        }
    }
}

fn key(kind: &str, namespace: &str, name: &str) -> WorkloadKey {
    WorkloadKey { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

fn read(time: &Option<Time>) -> Option<Timestamp> {
    time.as_ref().map(|time| time.0)
}

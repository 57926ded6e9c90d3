//! One look at one rescheduler.

use super::known::workload_key;
use super::status::{is_news, status};
use super::{Rescheduler, Rescheduling};
use crate::driver::{
    CHANGED_MEANWHILE, Controller, Declared, SYNC_POLL_INTERVAL, is_unreadable, replace_status_by,
};
use crate::jobs;
use kube::{Api, ResourceExt};
use portolan_api::multiclusterrescheduler::MovePhase;
use portolan_api::{MultiClusterRescheduler, MultiClusterReschedulerStatus, Reason};
use portolan_core::reschedule::{Plan, StayReason, WorkloadKey, WorkloadSnapshot, plan};
use portolan_runtime::{Action, CallError, EventType, Key};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

impl Rescheduling {
    pub(super) async fn look(&self, key: Key) -> Result<Action, CallError> {
        let known = self.context.reschedulers.index();
        let Some(rescheduler) = known.get(&key) else {
            self.stays().remove(&key);
            is_unreadable::<MultiClusterRescheduler, _>(known, &key, &self.recorder).await;
            return Ok(Action::AwaitChange);
        };
        if rescheduler.is_leaving() {
            return Ok(Action::AwaitChange);
        }
        let Some(workloads) = self.workloads(&rescheduler) else {
            return Ok(Action::RequeueAfter(SYNC_POLL_INTERVAL));
        };
        let now = self.context.clock.now();
        let uid = rescheduler.object.metadata.uid.clone();
        let stays = self.stays().get(&key).filter(|(of, _)| *of == uid).map(|(_, stays)| stays.clone());
        let record = rescheduler.record.clone().recalling(&stays.unwrap_or_default());
        let mut plan = plan(&rescheduler.settings, &record, &workloads, now);
        plan.staying.extend(self.jobs_away(&rescheduler));
        let new = status(&rescheduler, &plan, now);
        if is_news(rescheduler.object.status.as_ref(), &new, rescheduler.settings.interval) {
            let api = Api::all(self.context.hub.client.clone());
            let written = replace_status_by(&self.context.term, &api, &rescheduler.object, &new).await?;
            if written.is_none() {
                return Ok(Action::RequeueAfter(CHANGED_MEANWHILE));
            }
            self.tell(&rescheduler, &plan, &new).await;
        }
        self.stays().insert(key, (uid, plan.record.stays.clone()));
        let wait = plan.next.and_then(|next| Duration::try_from(next.duration_since(now)).ok());
        Ok(Action::RequeueAfter(wait.unwrap_or(rescheduler.settings.interval)))
    }

    /// The workloads that are left to this rescheduler and are away from home, or move. Nothing while a cluster is not known
    /// well enough.
    fn workloads(&self, rescheduler: &Arc<Rescheduler>) -> Option<BTreeMap<WorkloadKey, WorkloadSnapshot>> {
        let mut found = BTreeMap::new();
        for (key, workload) in self.placement.base().objects.all_if_synced()? {
            let left_to = self.context.reschedulers.of(&key, workload.object.labels())?;
            if left_to.is_none_or(|each| each.name() != rescheduler.name()) {
                continue;
            }
            let moves = rescheduler.move_of(&key).is_some();
            if let Some(snapshot) = self.placement.whereabouts(&key, &workload, moves).ok()? {
                found.insert(workload_key(&key), snapshot);
            }
        }
        Some(found)
    }

    /// The jobs that it selects and that run in cloud clusters.
    fn jobs_away(&self, rescheduler: &Rescheduler) -> BTreeMap<WorkloadKey, (Vec<String>, StayReason)> {
        let clusters = &self.context.fleet.clusters;
        let is_cloud = |name: &String| clusters.get(&Key::cluster(name)).is_some_and(|each| each.spec.cloud);
        let mut found = BTreeMap::new();
        self.jobs.base().objects.for_each(|key, job| {
            if rescheduler.settings.selects(job.object().labels()) {
                let away: Vec<String> = job.runs_in().into_iter().filter(is_cloud).collect();
                if !away.is_empty() {
                    let key = WorkloadKey { kind: jobs::KIND.to_owned(), ..workload_key(key) };
                    found.insert(key, (away, StayReason::JobRunsToEnd));
                }
            }
        });
        found
    }

    /// Tells users, as events on their workloads, which moves began and ended.
    async fn tell(&self, before: &Rescheduler, plan: &Plan, new: &MultiClusterReschedulerStatus) {
        let (old, now) = (&before.record.moves, &plan.record.moves);
        let begun = now.keys().filter(|key| !old.contains_key(*key));
        let ended = old.keys().filter(|key| !now.contains_key(*key));
        for key in begun.chain(ended) {
            let is_of = |name: &str, namespace: &str| name == key.name && namespace == key.namespace;
            let told = new.moves.iter().find(|each| is_of(&each.name, &each.namespace));
            let workload = self.placement.base().objects.get(&Key::new(&key.namespace, &key.name));
            let (Some(told), Some(workload)) = (told, workload) else { continue };
            let (type_, reason) = match told.phase {
                MovePhase::Surging | MovePhase::Draining | MovePhase::Returning => {
                    (EventType::Normal, Reason::MoveStarted)
                }
                MovePhase::Done => (EventType::Normal, Reason::MoveDone),
                MovePhase::Failed => (EventType::Warning, Reason::MoveFailed),
            };
            let message = told.message.as_deref().unwrap_or_default();
            let note = format!("{message} (MultiClusterRescheduler {})", before.name());
            // A workload may move as often as it is away.
            let occasion = told.started_at.as_ref().map(|time| time.0.to_string()).unwrap_or_default();
            self.recorder.on(&occasion).record(&workload.object, type_, reason, &note).await;
        }
    }
}

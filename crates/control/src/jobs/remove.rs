//! Taking Jobs away from members.

use super::{Controller, Declared};
use crate::copies::AWAITING_DELETION;
use crate::declared;
use crate::dependencies::References;
use k8s_openapi::api::batch::v1::Job;
use portolan_api::conditions;
use portolan_runtime::{CallError, Key, Next};

impl Controller {
    /// Deletes the Jobs of what is being deleted, with their pods and what was carried for them, and lets it go when the
    /// last one is gone.
    pub(super) async fn remove(&self, key: &Key, job: &Declared) -> Result<Next, CallError> {
        if !declared::is_kept(&job.object) {
            return Ok(Next::Done);
        }
        if !self.fleet.clusters.synced() {
            return Ok(Next::After(AWAITING_DELETION));
        }
        let on_record = |cluster: &str| job.is_in(cluster);
        let memory = &self.memory;
        let mut remaining =
            memory.withdraw::<Job>(&self.term, &self.fleet, key, job.uid(), on_record).await?;
        for member in &remaining.clear {
            if self.release(key, job, member, &References::new()).await? {
                remaining.left += 1;
            }
        }
        if remaining.left == 0 && !remaining.away.is_empty() {
            self.tell_awaited(job, &remaining.away).await?;
        }
        if let Some(next) = remaining.next() {
            return Ok(next);
        }
        self.memory.forget(key);
        declared::let_go(&self.term, &self.hub.client, &job.object).await?;
        Ok(Next::Done)
    }

    async fn tell_awaited(&self, job: &Declared, away: &[String]) -> Result<(), CallError> {
        let mut status = job.object.status.clone().unwrap_or_default();
        let finding = declared::awaiting(away, "Job");
        let generation = job.object.metadata.generation;
        if conditions::set(&mut status.conditions, finding, generation, self.clock.time().0) {
            self.write(job, status, false).await?;
        }
        Ok(())
    }
}

//! Taking Jobs away from members.

use super::{Controller, Declared};
use crate::copies::{AWAITING_DELETION, Remaining};
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
        for member in std::mem::take(&mut remaining.clear) {
            match self.release(key, job, &member, &References::new()).await {
                Ok(false) => {}
                Ok(true) => remaining.left += 1,
                Err(error) => remaining.fail(&member, error)?,
            }
        }
        if remaining.is_held_up() {
            self.tell_awaited(job, &remaining).await?;
        }
        if let Some(next) = remaining.next() {
            return Ok(next);
        }
        self.memory.forget(key);
        declared::let_go(&self.term, &self.hub.client, &job.object).await?;
        Ok(Next::Done)
    }

    async fn tell_awaited(&self, job: &Declared, remaining: &Remaining) -> Result<(), CallError> {
        let mut status = job.object.status.clone().unwrap_or_default();
        let finding = declared::held_up(&remaining.away, &remaining.failing, "Job");
        let generation = job.object.metadata.generation;
        if conditions::set(&mut status.conditions, finding, generation, self.clock.time().0) {
            self.write(job, status, false).await?;
        }
        Ok(())
    }
}

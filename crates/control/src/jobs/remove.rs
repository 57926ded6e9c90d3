//! Taking Jobs away from members.

use super::{Controller, Declared};
use crate::declared;
use crate::dependencies::References;
use k8s_openapi::api::batch::v1::Job;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_runtime::{CallError, Key, Next};
use std::time::Duration;

/// How often to look whether a member that holds up a deletion is back; its return is told anyway.
const AWAITING_RETURN: Duration = Duration::from_secs(30);

/// How often to look whether Jobs are gone; that they are is told anyway.
const AWAITING_DELETION: Duration = Duration::from_secs(5);

impl Controller {
    /// Deletes the Jobs of what is being deleted, with their pods, and lets it go when the last one is gone.
    ///
    /// A member that is away holds the deletion up until it returns, so that no Job is orphaned.
    pub(super) async fn remove(&self, key: &Key, job: &Declared) -> Result<Next, CallError> {
        if !declared::is_kept(&job.object) {
            return Ok(Next::Done);
        }
        if !self.fleet.clusters.synced() {
            return Ok(Next::After(AWAITING_DELETION));
        }
        let (mut away, mut left) = (Vec::new(), 0);
        for (name, _) in self.fleet.clusters.all() {
            let holds = job.is_in(&name.name);
            let member = self.fleet.member(&name.name);
            let there = member.as_ref().and_then(|member| member.jobs.get(key));
            let there = there.filter(|there| there.mark.is_of(job.uid()));
            let asked = member.filter(|member| member.reach.answers() && member.jobs.synced());
            match (asked, there) {
                (Some(member), Some(there)) => {
                    left += 1;
                    self.memory.delete::<Job>(&self.term, &member, key, &there.mark).await?;
                }
                (Some(member), None) => {
                    if self.release(key, job, &member, &References::new()).await? {
                        left += 1;
                    }
                }
                (None, there) => away.extend((holds || there.is_some()).then_some(name.name)),
            }
        }
        if left > 0 {
            return Ok(Next::After(AWAITING_DELETION));
        }
        if !away.is_empty() {
            self.tell_awaited(job, &away).await?;
            return Ok(Next::After(AWAITING_RETURN));
        }
        self.memory.forget(key);
        declared::let_go(&self.term, &self.hub.client, &job.object).await?;
        Ok(Next::Done)
    }

    /// Deletes Jobs of this name that belong to nothing in the hub any more.
    pub(super) async fn sweep(&self, key: &Key, uid: Option<&str>) -> Result<Next, CallError> {
        if uid.is_none() {
            self.memory.forget(key);
        }
        for (name, _) in self.fleet.clusters.all() {
            let member = self.fleet.member(&name.name).filter(|member| member.reach.answers());
            let Some(member) = member else { continue };
            let stray = member.jobs.get(key);
            if let Some(stray) = stray.filter(|there| there.mark.workload.as_deref() != uid) {
                self.memory.delete::<Job>(&self.term, &member, key, &stray.mark).await?;
            }
        }
        Ok(Next::Done)
    }

    async fn tell_awaited(&self, job: &Declared, away: &[String]) -> Result<(), CallError> {
        let mut status = job.object.status.clone().unwrap_or_default();
        let message = format!(
            "deletion waits for {}, which cannot be reached: its Job goes when it returns, or with its ForeignCluster",
            away.join(", ")
        );
        let finding = Finding::new(ConditionType::Ready, false, "AwaitingMember", message);
        let generation = job.object.metadata.generation;
        if conditions::set(&mut status.conditions, finding, generation, self.clock.time().0) {
            self.write(job, status, false).await?;
        }
        Ok(())
    }
}

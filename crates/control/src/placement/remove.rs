//! Taking copies away from members.

use super::apply::SEEN_WITHIN;
use super::memory::Deleted;
use super::observe::{Seen, is_ours};
use super::{Controller, Workload};
use crate::dependencies::{References, release_recorded, release_seen};
use crate::fleet::{DeploymentFacts, Member};
use crate::recovery::DEPLOYMENT;
use crate::{copy, declared};
use k8s_openapi::api::apps::v1::Deployment;
use portolan_api::conditions;
use portolan_runtime::{CallError, Key, Next, chain, foreign_text};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often to look whether a member that holds up a deletion is back; its return is told anyway.
const AWAITING_RETURN: Duration = Duration::from_secs(30);

/// How often to look whether copies are gone; that they are is told anyway.
const AWAITING_DELETION: Duration = Duration::from_secs(5);

impl Controller {
    /// Deletes the copies of a workload that is being deleted, and lets it go when the last one is gone.
    ///
    /// A member that is away holds the deletion up until it returns, so that no copy is orphaned.
    pub(super) async fn remove(&self, key: &Key, workload: &Workload) -> Result<Next, CallError> {
        if !declared::is_kept(&workload.object) {
            return Ok(Next::Done);
        }
        if !self.fleet.clusters.synced() {
            return Ok(Next::After(AWAITING_DELETION));
        }
        let (mut away, mut left, mut failed) = (Vec::new(), 0, None);
        for (name, _) in self.fleet.clusters.all() {
            let holds = workload.held().any(|(cluster, _)| cluster == name.name);
            let Some(member) = self.fleet.member(&name.name) else {
                away.extend(holds.then_some(name.name));
                continue;
            };
            let copy = copy_of(&member, key, |copy| is_ours(copy, key, workload.uid()));
            if !(member.reach.answers() && member.known()) {
                away.extend((holds || copy.is_some()).then_some(name.name));
                continue;
            }
            let removed = match &copy {
                Some(copy) => self.delete(key, &member, copy).await.map(|()| true),
                None => self.release(key, workload, &member, &References::new()).await,
            };
            match removed {
                Ok(waits) => left += usize::from(waits),
                // A member that refuses holds up its own copy only.
                Err(error) => {
                    away.push(format!("{} ({})", name.name, foreign_text(&chain(&error))));
                    failed = Some(error);
                }
            }
        }
        if left > 0 && failed.is_none() {
            return Ok(Next::After(AWAITING_DELETION));
        }
        if !away.is_empty() {
            self.tell_awaited(workload, &away).await?;
            return match failed {
                Some(error) => Err(error),
                None => Ok(Next::After(AWAITING_RETURN)),
            };
        }
        self.memory.forget(key);
        declared::let_go(&self.term, &self.hub.client, &workload.object).await?;
        Ok(Next::Done)
    }

    /// Lets go of the ConfigMaps and Secrets that the workload needed in a member, but for some; answers whether any may
    /// be left. Where none are expected, what is known to be there is let go all the same.
    pub(super) async fn release(
        &self,
        key: &Key,
        workload: &Workload,
        member: &Member,
        kept: &References,
    ) -> Result<bool, CallError> {
        let (namespace, uid) = (&key.namespace, workload.uid());
        let on_record = workload.held().any(|(cluster, _)| cluster == member.name);
        match workload.has_dependencies() && on_record {
            true => release_recorded(&self.term, member, namespace, uid, kept).await,
            false => release_seen(&self.term, member, namespace, uid, kept).await,
        }
    }

    /// Deletes copies of this name that belong to no workload of the hub any more, such as those of a namesake that was
    /// deleted and made anew while a late request was still on its way. A member that refuses that keeps nobody from
    /// deciding: it is tried again.
    pub(super) async fn sweep(&self, key: &Key, uid: Option<&str>) -> Next {
        if uid.is_none() {
            self.memory.forget(key);
        }
        let mut next = Next::Done;
        for (name, _) in self.fleet.clusters.all() {
            let Some(member) = self.fleet.member(&name.name).filter(|member| member.reach.answers()) else {
                continue;
            };
            let stray = |copy: &DeploymentFacts| {
                copy.mark.workload.is_some()
                    && copy.mark.workload.as_deref() != uid
                    && self.fleet.may_sweep(&member, DEPLOYMENT, &copy.mark)
            };
            let Some(copy) = copy_of(&member, key, stray) else { continue };
            next = Next::After(AWAITING_DELETION);
            if let Err(error) = self.delete(key, &member, &copy).await {
                let why = foreign_text(&chain(&error));
                tracing::warn!(cluster = member.name, workload = %key, why, "a copy that belongs to no workload stays");
                next = Next::After(AWAITING_RETURN);
            }
        }
        next
    }

    /// Deletes the copy that was seen in a cluster, if there is one.
    pub(super) async fn delete_copy(&self, key: &Key, seen: &Seen) -> Result<(), CallError> {
        match (&seen.member, &seen.copy) {
            (Some(member), Some(copy)) => self.delete(key, member, copy).await,
            _ => Ok(()),
        }
    }

    async fn delete(&self, key: &Key, member: &Member, copy: &DeploymentFacts) -> Result<(), CallError> {
        let on_its_way =
            |deleted: &Deleted| deleted.uid == copy.mark.uid && deleted.at.elapsed() < SEEN_WITHIN;
        if self.memory.deleted.get(key, &member.name).as_ref().is_some_and(on_its_way) {
            return Ok(());
        }
        self.memory.applied.remove(key, &member.name);
        copy::take_away::<Deployment>(&self.term, member, key, copy.mark.sight()).await?;
        let deleted = Deleted { uid: copy.mark.uid.clone(), at: Instant::now() };
        self.memory.deleted.set(key, &member.name, deleted);
        Ok(())
    }

    async fn tell_awaited(&self, workload: &Workload, away: &[String]) -> Result<(), CallError> {
        let mut status = workload.object.status.clone().unwrap_or_default();
        let (finding, generation) = (declared::awaiting(away, "copy"), workload.object.metadata.generation);
        if conditions::set(&mut status.conditions, finding, generation, self.clock.time().0) {
            self.write_status(workload, status).await?;
        }
        Ok(())
    }
}

fn copy_of(
    member: &Member,
    key: &Key,
    belongs: impl Fn(&DeploymentFacts) -> bool,
) -> Option<Arc<DeploymentFacts>> {
    member.deployments.get(key).filter(|copy| belongs(copy))
}

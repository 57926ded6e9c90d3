//! Taking Services away from members.

use super::Controller;
use crate::{copy, declared};
use k8s_openapi::api::core::v1::Service;
use portolan_api::MultiClusterService;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_runtime::{CallError, Key, Next};
use std::time::Duration;

/// How often to look whether a member that holds up a deletion is back; its return is told anyway.
const AWAITING_RETURN: Duration = Duration::from_secs(30);

/// How often to look whether Services are gone; that they are is told anyway.
const AWAITING_DELETION: Duration = Duration::from_secs(5);

impl Controller {
    /// Deletes the Services of what is being deleted, and lets it go when the last one is gone.
    ///
    /// A member that is away holds the deletion up until it returns, so that no Service is orphaned.
    pub(super) async fn remove(&self, key: &Key, service: &MultiClusterService) -> Result<Next, CallError> {
        if !declared::is_kept(service) {
            return Ok(Next::Done);
        }
        if !self.fleet.clusters.synced() {
            return Ok(Next::After(AWAITING_DELETION));
        }
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let on_record = service.status.iter().flat_map(|status| &status.clusters);
        let on_record: Vec<&str> = on_record.map(|each| each.cluster.as_str()).collect();
        let (mut away, mut left) = (Vec::new(), 0);
        for (name, _) in self.fleet.clusters.all() {
            let holds = on_record.contains(&name.name.as_str());
            let member = self.fleet.member(&name.name);
            let copy = member.as_ref().and_then(|member| member.services.get(key));
            let copy = copy.filter(|copy| copy.mark.is_of(uid));
            let asked = member.filter(|member| member.reach.answers() && member.services.synced());
            match (asked, copy) {
                (Some(member), Some(copy)) => {
                    left += 1;
                    self.memory.delete::<Service>(&self.term, &member, key, &copy.mark).await?;
                }
                (Some(_), None) => {}
                (None, copy) => away.extend((holds || copy.is_some()).then_some(name.name)),
            }
        }
        if left > 0 {
            return Ok(Next::After(AWAITING_DELETION));
        }
        if !away.is_empty() {
            self.tell_awaited(service, &away).await?;
            return Ok(Next::After(AWAITING_RETURN));
        }
        self.memory.forget(key);
        declared::let_go(&self.term, &self.hub.client, service).await?;
        Ok(Next::Done)
    }

    /// Deletes Services of this name that belong to nothing in the hub any more.
    pub(super) async fn sweep(&self, key: &Key, uid: Option<&str>) -> Result<Next, CallError> {
        if uid.is_none() {
            self.memory.forget(key);
        }
        for (name, _) in self.fleet.clusters.all() {
            let member = self.fleet.member(&name.name).filter(|member| member.reach.answers());
            let Some(member) = member else { continue };
            let stray = member.services.get(key);
            if let Some(stray) = stray.filter(|copy| copy.mark.workload.as_deref() != uid) {
                self.memory.delete::<Service>(&self.term, &member, key, &stray.mark).await?;
            }
        }
        Ok(Next::Done)
    }

    async fn tell_awaited(&self, service: &MultiClusterService, away: &[String]) -> Result<(), CallError> {
        let mut status = service.status.clone().unwrap_or_default();
        let message = format!(
            "deletion waits for {}, which cannot be reached: its Service goes when it returns, or with its ForeignCluster",
            away.join(", ")
        );
        let finding = Finding::new(ConditionType::Ready, false, "AwaitingMember", message);
        let generation = service.metadata.generation;
        if conditions::set(&mut status.conditions, finding, generation, self.clock.time().0) {
            let update = MultiClusterService { status: Some(status), ..service.clone() };
            copy::replace_status(&self.term, &self.hub.client, &update).await?;
        }
        Ok(())
    }
}

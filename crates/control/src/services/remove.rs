//! Taking Services away from members.

use super::Controller;
use crate::copies::{AWAITING_DELETION, Remaining};
use crate::{copy, declared};
use k8s_openapi::api::core::v1::Service;
use portolan_api::{MultiClusterService, conditions};
use portolan_runtime::{CallError, Key, Next};

impl Controller {
    /// Deletes the Services of what is being deleted, and lets it go when the last one is gone.
    pub(super) async fn remove(&self, key: &Key, service: &MultiClusterService) -> Result<Next, CallError> {
        if !declared::is_kept(service) {
            return Ok(Next::Done);
        }
        if !self.fleet.clusters.synced() {
            return Ok(Next::After(AWAITING_DELETION));
        }
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let on_record = |cluster: &str| {
            service.status.iter().flat_map(|status| &status.clusters).any(|each| each.cluster == cluster)
        };
        let memory = &self.memory;
        let remaining = memory.withdraw::<Service>(&self.term, &self.fleet, key, uid, on_record).await?;
        if remaining.is_held_up() {
            self.tell_awaited(service, &remaining).await?;
        }
        if let Some(next) = remaining.next() {
            return Ok(next);
        }
        self.memory.forget(key);
        declared::let_go(&self.term, &self.hub.client, service).await?;
        Ok(Next::Done)
    }

    async fn tell_awaited(
        &self,
        service: &MultiClusterService,
        remaining: &Remaining,
    ) -> Result<(), CallError> {
        let mut status = service.status.clone().unwrap_or_default();
        let finding = declared::held_up(&remaining.away, &remaining.failing, "Service");
        if conditions::set(&mut status.conditions, finding, service.metadata.generation, self.clock.time().0)
        {
            copy::replace_status(&self.term, &self.hub.client, service, &status).await?;
        }
        Ok(())
    }
}

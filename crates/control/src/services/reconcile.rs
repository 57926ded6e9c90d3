//! One look at one service.

use super::Services;
use super::desired::{desired, holds, unchangeable};
use super::facts::ServiceFacts;
use super::follow::{Following, follow};
use super::observe::{ClusterSnapshot, Observed, answered_elsewhere};
use super::status::{Situation, status};
use crate::copies::{Copies, Desired, Outcome, REFUSAL_HOLDS, Round};
use crate::driver::{CHANGED_MEANWHILE, RESYNC_PERIOD, SYNC_POLL_INTERVAL, Write, earlier};
use crate::fleet::Member;
use k8s_openapi::api::core::v1::Service;
use portolan_api::MultiClusterService;
use portolan_api::Reason;
use portolan_runtime::{Action, CallError, EventType, Key};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Services {
    pub(super) async fn look(
        &self,
        key: &Key,
        service: &MultiClusterService,
        round: Round,
    ) -> Result<Action, CallError> {
        let context = &self.base.context;
        let seen = match self.observe(key, service) {
            Observed::NotSynced => return Ok(Action::RequeueAfter(SYNC_POLL_INTERVAL)),
            // The workload that is followed brings us back when it can be read.
            Observed::WorkloadUnreadable => return Ok(Action::AwaitChange),
            Observed::Clusters(seen) => seen,
        };
        let following = follow(service, key, &self.workloads);
        let desired = Arc::new(desired(service, key, &context.hub.id, context.term.epoch()));
        let failures = self.failures(key, &following, &seen, &desired);
        let refused = !failures.is_empty();
        let situation =
            Situation { service, following: &following, seen: &seen, desired: &desired, failures };
        let new = status(&situation, &context.clock.time());
        // Where the service is going to be is on record before a member is touched, so that it is found there again.
        let Some(written) = self.base.write_status(service, new, Write::IfChanged).await? else {
            return Ok(Action::RequeueAfter(CHANGED_MEANWHILE));
        };
        if written.status != service.status {
            self.tell(service, &written).await;
        }
        self.submit(key, round, &desired, &following, &seen);
        let closed = seen.iter().any(|(name, seen)| following.wanted.contains(name) && seen.closed.is_some());
        let next = Action::RequeueAfter(if closed || refused { REFUSAL_HOLDS } else { RESYNC_PERIOD });
        Ok(earlier(
            next,
            self.base.copies.memory.refusals_end(key).map_or(Action::AwaitChange, Action::RequeueAfter),
        ))
    }

    /// Why the Service is not in a cluster where it is to be, by cluster.
    fn failures(
        &self,
        key: &Key,
        following: &Following,
        seen: &BTreeMap<String, ClusterSnapshot>,
        desired: &Desired,
    ) -> BTreeMap<String, (Reason, String)> {
        let failures = self.base.copies.memory.failures(key);
        let failure = |cluster: &String| {
            let copy = seen.get(cluster).and_then(|seen| seen.copy.as_ref());
            if let Some(message) = copy.and_then(|copy| unchangeable(copy, desired)) {
                return Some((Reason::Immutable, message));
            }
            let failure = failures.get(cluster)?;
            let current = failure.template == desired.template && failure.is_reported();
            current.then(|| (failure.reason, failure.message.clone()))
        };
        let wanted = following.wanted.iter();
        wanted.filter_map(|cluster| Some((cluster.clone(), failure(cluster)?))).collect()
    }

    /// Has the Service applied where pods are, and deleted where they are gone.
    fn submit(
        &self,
        key: &Key,
        round: Round,
        desired: &Arc<Desired>,
        following: &Following,
        seen: &BTreeMap<String, ClusterSnapshot>,
    ) {
        let elsewhere = answered_elsewhere(following, seen);
        for (cluster, seen) in seen {
            let Some(member) = &seen.member else { continue };
            let (copies, there, name) = (Arc::clone(&self.base.copies), Arc::clone(member), key.clone());
            if following.wanted.contains(cluster) {
                if seen.closed.is_none() {
                    let (copy, desired) = (seen.copy.clone(), Arc::clone(desired));
                    let template = desired.template.clone();
                    self.base.copies.submit(round, member, key, &template, move || async move {
                        apply(&copies, &name, &there, copy.as_deref(), &desired).await
                    });
                }
            } else if elsewhere
                && !following.lingering.contains(cluster)
                && !following.kept.contains(cluster)
                && let Some(copy) = &seen.copy
            {
                let mark = copy.meta.clone();
                self.base.copies.submit(round, member, key, "", move || async move {
                    copies.delete(&there, &name, &mark).await
                });
            }
        }
    }

    /// Tells the user, as an event, when the service is in other clusters than before.
    async fn tell(&self, before: &MultiClusterService, now: &MultiClusterService) {
        let clusters = |service: &MultiClusterService| {
            let clusters = service.status.iter().flat_map(|status| &status.clusters);
            clusters.map(|each| each.cluster.clone()).collect::<Vec<_>>().join(", ")
        };
        let (old, new) = (clusters(before), clusters(now));
        if old != new {
            let note = if new.is_empty() { "in no cluster".to_owned() } else { format!("in {new}") };
            self.base.recorder.record(now, EventType::Normal, Reason::Placed, &note).await;
        }
        let clusters = now.status.iter().flat_map(|status| &status.clusters);
        for refused in clusters.filter(|each| {
            matches!(
                each.reason.as_deref().and_then(Reason::parse),
                Some(Reason::NameTaken | Reason::Refused | Reason::Immutable)
            )
        }) {
            let why = refused.message.as_deref().unwrap_or_default();
            let note = format!("{}: {why}", refused.cluster);
            self.base.recorder.record(now, EventType::Warning, Reason::Refused, &note).await;
        }
    }
}

/// Applies the Service in one member, if it does not hold it already.
async fn apply(
    copies: &Copies<Service>,
    key: &Key,
    member: &Member,
    copy: Option<&ServiceFacts>,
    desired: &Desired,
) -> Result<Outcome, CallError> {
    let as_made = |copy: &ServiceFacts| {
        holds(copy, desired) || copies.memory.made(key, &member.name, &desired.digest, &copy.meta.version)
    };
    match copy {
        Some(copy) if unchangeable(copy, desired).is_some() => Ok(Outcome::AsDecided),
        Some(copy) if as_made(copy) => copies.confirm(member, key, &copy.meta).await,
        _ => Ok(copies.apply(member, key, copy.map(|copy| &copy.meta), desired).await?.0),
    }
}

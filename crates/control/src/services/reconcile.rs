//! One look at one service.

use super::desired::{desired, holds, unchangeable};
use super::follow::{Following, follow};
use super::observe::Seen;
use super::status::{Situation, status};
use super::{Controller, KIND, claimant};
use crate::claims::{Step, reservation};
use crate::copies::{
    Desired, FAILING, FAILING_AGAIN, Outcome, REFUSAL_HOLDS, SEEN_WITHIN, earlier, is_superseded,
};
use crate::fleet::{Member, ServiceFacts};
use crate::{copy, declared};
use k8s_openapi::api::core::v1::Service;
use portolan_api::Reason;
use portolan_api::placement::Reservation;
use portolan_api::{MultiClusterService, MultiClusterServiceStatus};
use portolan_runtime::{CallError, Key, Next, Weight};
use std::collections::BTreeMap;
use std::time::Duration;

/// How soon to look again while a cluster is still being got to know.
const GETTING_TO_KNOW: Duration = Duration::from_millis(250);

/// How soon to look again at what somebody else changed; usually the change itself brings us back earlier.
const CHANGED_MEANWHILE: Duration = Duration::from_secs(1);

/// How often a service is looked at without any news, in case some were missed.
const FULL_LOOK: Duration = Duration::from_secs(300);

impl Controller {
    pub(super) async fn reconcile(&self, key: Key) -> Result<Next, CallError> {
        if !self.services.synced() {
            return Ok(Next::After(GETTING_TO_KNOW));
        }
        let service = self.services.get(&key);
        match (self.claims.step(KIND, &key, service.as_deref().map(claimant)).await, &service) {
            (Step::Claim, Some(service)) => return self.claim(service).await,
            (Step::Wait(next), _) => return Ok(next),
            _ => {}
        }
        let Some(service) = service else {
            if declared::is_unreadable::<MultiClusterService, _>(&self.services, &key, &self.recorder).await {
                return Ok(Next::Done);
            }
            return self.memory.sweep::<Service>(&self.term, &self.fleet, &key, None).await;
        };
        if service.metadata.deletion_timestamp.is_some() {
            return self.remove(&key, &service).await;
        }
        if !declared::is_kept(&*service) {
            declared::keep(&self.term, &self.hub.client, &*service).await?;
            return Ok(Next::Done);
        }
        let uid = service.metadata.uid.clone().unwrap_or_default();
        let swept = self.memory.sweep::<Service>(&self.term, &self.fleet, &key, Some(&uid)).await?;
        let Some(seen) = self.observe(&key, &uid) else { return Ok(Next::After(GETTING_TO_KNOW)) };
        let following = follow(&service, &key, &self.workloads);
        let desired = desired(&service, &key, &self.hub.id, self.term.epoch());
        let troubles = self.memory.troubles(&key);
        let failures = following.wanted.iter().filter_map(|cluster| {
            let copy = seen.get(cluster).and_then(|seen| seen.copy.as_ref());
            if let Some(message) = copy.and_then(|copy| unchangeable(copy, &desired)) {
                return Some((cluster.clone(), (Reason::Immutable, message)));
            }
            if let Some(failure) = self.memory.failure(cluster, &key, &desired.digest) {
                return Some((cluster.clone(), (failure.reason, failure.message)));
            }
            let trouble = troubles.get(cluster)?;
            Some((cluster.clone(), (FAILING, trouble.clone())))
        });
        let situation = Situation {
            service: &service,
            following: &following,
            seen: &seen,
            desired: &desired,
            failures: failures.collect(),
        };
        let mut new = status(&situation, &self.clock.time());
        new.reservation = self.reservation(&service, &new);
        let refused = !situation.failures.is_empty();
        // Where the service is going to be is on record before a member is touched, so that it is found there again.
        if service.status.as_ref() != Some(&new) {
            let Some(written) = copy::replace_status(&self.term, &self.hub.client, &*service, &new).await?
            else {
                return Ok(Next::After(CHANGED_MEANWHILE));
            };
            self.tell(&service, &written).await;
        }
        let next = earlier(self.effect(&key, &desired, &following, &seen).await?, swept);
        Ok(if refused { earlier(next, Next::After(REFUSAL_HOLDS)) } else { next })
    }

    /// Makes a service this leader's own, and leaves all else as it is.
    async fn claim(&self, service: &MultiClusterService) -> Result<Next, CallError> {
        let mut status = service.status.clone().unwrap_or_default();
        status.reservation = self.reservation(service, &status);
        let written = copy::replace_status(&self.term, &self.hub.client, service, &status).await.map(|_| ());
        self.claims.written(KIND, service, &self.recorder, written).await
    }

    /// Who stands for what a status says: this leader, since the service last changed hands or places.
    fn reservation(
        &self,
        service: &MultiClusterService,
        new: &MultiClusterServiceStatus,
    ) -> Option<Reservation> {
        let old = service.status.as_ref();
        let places = |status: &MultiClusterServiceStatus| {
            status.clusters.iter().map(|each| each.cluster.clone()).collect::<Vec<_>>()
        };
        let last = old.and_then(|status| status.reservation.as_ref());
        Some(reservation(&self.term, &self.clock, last, old.map(places) != Some(places(new))))
    }

    /// Applies the Service where pods are, in all clusters at once, and takes it away where they are gone.
    async fn effect(
        &self,
        key: &Key,
        desired: &Desired,
        following: &Following,
        seen: &BTreeMap<String, Seen>,
    ) -> Result<Next, CallError> {
        let applies = following.wanted.iter().filter_map(|cluster| {
            let seen = seen.get(cluster)?;
            let member = seen.member.as_ref().filter(|_| seen.closed.is_none())?;
            let applied = self.apply(key, member, seen.copy.as_deref(), desired);
            Some(async move { self.memory.kept(member, key, applied.await) })
        });
        let outcomes = futures::future::join_all(applies).await;
        let closed = seen.iter().any(|(name, seen)| following.wanted.contains(name) && seen.closed.is_some());
        let mut next = Next::After(if closed { REFUSAL_HOLDS } else { FULL_LOOK });
        let mut refused = false;
        for outcome in outcomes {
            match outcome? {
                Some(Outcome::AsDecided) => {}
                Some(Outcome::NotSeenYet) => next = Next::After(SEEN_WITHIN),
                Some(Outcome::Refused) => refused = true,
                None => next = earlier(next, Next::After(FAILING_AGAIN)),
            }
        }
        if answered_elsewhere(following, seen) {
            for (cluster, seen) in seen {
                let here = following.wanted.contains(cluster) || following.lingering.contains(cluster);
                if let (false, Some(member), Some(copy)) = (here, &seen.member, &seen.copy) {
                    let deleted = self.memory.delete::<Service>(&self.term, member, key, &copy.mark).await;
                    let again =
                        self.memory.kept(member, key, deleted)?.map_or(FAILING_AGAIN, |()| SEEN_WITHIN);
                    next = earlier(next, Next::After(again));
                }
            }
        }
        Ok(if refused { Next::After(Duration::ZERO) } else { next })
    }

    /// Applies the Service in one member, if it does not hold it already.
    async fn apply(
        &self,
        key: &Key,
        member: &Member,
        copy: Option<&ServiceFacts>,
        desired: &Desired,
    ) -> Result<Outcome, CallError> {
        let as_made = |copy: &ServiceFacts| {
            holds(copy, desired) || self.memory.made(&member.name, key, &desired.digest, &copy.mark.version)
        };
        if copy.is_some_and(|copy| unchangeable(copy, desired).is_some()) {
            return Ok(Outcome::AsDecided);
        }
        match copy.filter(|copy| as_made(copy)) {
            Some(copy) => {
                if self.term.epoch().is_some_and(|epoch| copy.mark.epoch != Some(epoch)) {
                    if is_superseded(&self.term, member, key, Some(&copy.mark)).await {
                        return Ok(Outcome::NotSeenYet);
                    }
                    copy::stamp::<Service>(&self.term, member, key, copy.mark.sight()).await?;
                }
                Ok(Outcome::AsDecided)
            }
            None => {
                let seen = copy.map(|copy| &copy.mark);
                self.memory.apply::<Service>(&self.term, member, key, seen, desired).await
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
            self.recorder.record(now, Weight::Normal, Reason::Placed, &note).await;
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
            self.recorder.record(now, Weight::Warning, Reason::Refused, &note).await;
        }
    }
}

/// Whether users that come through a Service which is to be taken away are served elsewhere, or nowhere for good.
pub(super) fn answered_elsewhere(following: &Following, seen: &BTreeMap<String, Seen>) -> bool {
    let ready = |cluster: &String| {
        seen.get(cluster).is_some_and(|seen| seen.member.is_some() && seen.copy.is_some() && seen.ready > 0)
    };
    following.wanted.is_empty() || following.wanted.iter().any(ready)
}

//! A round: what waits is divided over all CloudProvisioners, and each of them takes its next step.

use super::Provision;
use super::cluster_api::{Served, not_served_any_more, owner};
use super::object::has_finalizer;
use super::observe::Observed;
use super::open::namespaces;
use super::order_error::OrderError;
use super::status::{self, COST_PERIOD, Report};
use super::visit::{Errand, TRIED_AGAIN, Visit};
use crate::driver::{CHANGED_MEANWHILE, RESYNC_PERIOD, SYNC_POLL_INTERVAL, is_unreadable};
use crate::names::PROVISIONER_LABEL;
use futures::future::join_all;
use k8s_openapi::jiff::Timestamp;
use portolan_api::CloudProvisioner;
use portolan_api::cloudprovisioner::CloudPhase;
use portolan_core::provision::{
    Assignment, Claim, Event, MemberState, Order, Plan, Settings, Waiting, assign, plan, preference, rivals,
};
use portolan_runtime::{Action, CallError, EventType, Key, Unreadable, chain};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How soon to look again while a cluster or its nodes are being made or removed; usually a watch tells earlier.
const UNDER_WAY: Duration = Duration::from_secs(5);

/// How soon a CloudProvisioner is looked at again that the hub refuses something.
const REFUSED_AGAIN: Duration = Duration::from_secs(30);

/// What all CloudProvisioners of a round share.
struct Round {
    now: Timestamp,
    waiting: Vec<(Key, Waiting)>,
    /// The namespaces of what waits.
    namespaces: BTreeSet<String>,
    assignment: Assignment,
    /// Clusters without a CloudProvisioner.
    orphans: Vec<String>,
}

impl Provision {
    /// Makes a round.
    ///
    /// # Errors
    /// The hub does not answer.
    pub(super) async fn round(&self) -> Result<Action, CallError> {
        let Some(all) = self.provisioners.all_if_synced() else {
            return Ok(Action::RequeueAfter(SYNC_POLL_INTERVAL));
        };
        self.tell_unreadable().await;
        // Of one that cannot be read any more, only the past is known.
        let all = all.into_iter().filter(|(key, _)| self.provisioners.health().unreadable(key).is_none());
        let all: Vec<Arc<CloudProvisioner>> = all.map(|(_, object)| object).collect();
        let served = self.state().served.clone();
        match served {
            Served::Unknown => return Ok(Action::AwaitChange),
            Served::No(why) => return self.without_cluster_api(&all, &why).await,
            Served::Yes if self.has_lost_cluster_api() => {
                self.without_cluster_api(&all, &not_served_any_more()).await?;
                return Ok(Action::RequeueAfter(REFUSED_AGAIN));
            }
            Served::Yes => {}
        }
        let listed = self.clusters.synced()
            && (self.deployments.synced() || all.iter().all(|each| each.spec.cluster_template.is_none()))
            && self.machines.synced()
            && self.context.fleet.clusters.synced();
        if !listed || !self.context.fleet.ledger.transact(|book| book.is_complete()) {
            return Ok(Action::RequeueAfter(SYNC_POLL_INTERVAL));
        }
        let mut uids: BTreeSet<String> =
            all.iter().filter_map(|object| object.metadata.uid.clone()).collect();
        // One that cannot be read exists all the same, and its cluster is no orphan.
        uids.extend(self.provisioners.health().unreadable_uids());
        let orphans = self.labelled(&uids);
        self.log_orphans(&orphans);
        // What is refused to one CloudProvisioner does not stop the others, nor make them wait: it is tried again with the
        // next round. If the hub does not answer, none is served: what one has begun would be begun by another one.
        let mut refused = false;
        let looks = all.into_iter().map(|object| async move { self.look(&object).await });
        let looks = join_all(looks).await;
        let mut observed = Vec::new();
        for look in looks {
            match look {
                Ok(seen) => observed.extend(seen),
                Err(error) if error.is_final() => {
                    tracing::warn!(error = %chain(&error), "the hub refuses what a CloudProvisioner needs");
                    refused = true;
                }
                Err(error) => return Err(error),
            }
        }
        if !refused {
            self.forget_all_but(&observed);
        }
        find_rivals(&mut observed);
        let objects: Vec<Arc<CloudProvisioner>> =
            observed.iter().map(|each| Arc::clone(&each.object)).collect();
        let (now, waiting) = (self.context.clock.now(), self.waiting(&objects));
        let demanded: Vec<Waiting> = waiting.iter().map(|(_, waiting)| waiting.clone()).collect();
        let offers: Vec<_> = observed.iter().map(|each| each.offer(now)).collect();
        let assignment =
            assign(preference(objects.iter().map(|each| each.spec.preference)), &demanded, &offers);
        let round = Round { now, namespaces: namespaces(&waiting), waiting, assignment, orphans };
        let steps = observed.into_iter().map(|each| self.step(each, &round));
        let mut next = if refused { REFUSED_AGAIN } else { RESYNC_PERIOD };
        let mut failed = None;
        for step in join_all(steps).await {
            match step {
                Ok(again) => next = next.min(again),
                Err(error) if error.is_final() => {
                    tracing::warn!(error = %chain(&error), "the hub refuses what a CloudProvisioner needs");
                    next = next.min(REFUSED_AGAIN);
                }
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(Action::RequeueAfter(next)), Err)
    }

    /// Whether the hub does not serve the kinds of Cluster API any more that it served before.
    fn has_lost_cluster_api(&self) -> bool {
        let watches = [self.clusters.health(), self.deployments.health(), self.machines.health()];
        watches.into_iter().filter_map(|watch| watch.failure()).any(|failure| failure.is_not_served)
    }

    /// Tells the users of CloudProvisioners that cannot be read, once.
    async fn tell_unreadable(&self) {
        let all: BTreeMap<Key, Unreadable> =
            self.provisioners.health().all_unreadable().into_iter().collect();
        let told = std::mem::replace(&mut self.state().unreadable, all.clone());
        for (key, _) in all.into_iter().filter(|(key, each)| told.get(key) != Some(each)) {
            is_unreadable::<CloudProvisioner, _>(&self.provisioners, &key, &self.recorder).await;
        }
    }

    /// Looks at one CloudProvisioner, if it can be planned for.
    async fn look(&self, object: &Arc<CloudProvisioner>) -> Result<Option<Observed>, CallError> {
        match self.settings(object).await? {
            Some(settings) => self.observe(object, settings).await.map(Some),
            None => Ok(None),
        }
    }

    /// What a CloudProvisioner asks for, if it can be planned for: its finalizer is on it, and its numbers can be read.
    async fn settings(&self, object: &CloudProvisioner) -> Result<Option<Settings>, CallError> {
        match (object.metadata.deletion_timestamp.is_some(), has_finalizer(object)) {
            (true, false) => return Ok(None),
            (false, false) => {
                self.set_finalizer(object, true).await?;
                return Ok(None);
            }
            (_, true) => {}
        }
        match Settings::of(object) {
            Ok(settings) => Ok(Some(settings)),
            Err(_) if object.metadata.deletion_timestamp.is_some() && self.has_made_nothing(object) => {
                self.set_finalizer(object, false).await?;
                Ok(None)
            }
            Err((resource, why)) => {
                let report =
                    Report::Invalid(format!("the quantity of resource {resource} cannot be read: {why}"));
                self.report(object, &report).await?;
                Ok(None)
            }
        }
    }

    /// Whether nothing exists that was made for a CloudProvisioner, by its record and by the labels of what there is.
    fn has_made_nothing(&self, object: &CloudProvisioner) -> bool {
        let uid = object.metadata.uid.as_deref();
        let mut made = object.status.as_ref().is_some_and(|status| status.cluster.is_some());
        self.clusters.for_each(|_, cluster| made |= owner(cluster).0 == uid);
        self.context.fleet.clusters.for_each(|_, cluster| {
            let labels = cluster.metadata.labels.as_ref();
            made |= labels.and_then(|labels| labels.get(PROVISIONER_LABEL)).map(String::as_str) == uid;
        });
        !made && self.outdated(object).is_none()
    }

    /// Plans for one CloudProvisioner, writes the record, and carries out the orders; answers when to look again.
    async fn step(&self, mut observed: Observed, round: &Round) -> Result<Duration, CallError> {
        let object = Arc::clone(&observed.object);
        let (name, uid) = (object.metadata.name.clone().unwrap_or_default(), observed.settings.uid.clone());
        observed.snapshot.demand = round.assignment.demands.get(&name).cloned().unwrap_or_default();
        let mut plan = plan(&observed.settings, &observed.record, &observed.snapshot, round.now);
        plan.left.extend(round.assignment.refusals.get(&name).cloned().unwrap_or_default());
        let problem = self.problem(&uid);
        let before = object.status.clone().unwrap_or_default();
        let mut status = before.clone();
        plan.write(&observed.settings, &observed.snapshot, &mut status);
        status::list(&mut status, &round.waiting, orphans(&observed, &plan, &round.orphans));
        let report = Report::Planned { plan: &plan, observed: &observed, problem: problem.as_deref() };
        status::tell(&mut status, &report, object.metadata.generation, round.now);
        if status::says_nothing_new(&before, &status, round.now) {
            status = before.clone();
        }
        let is_idle = plan.orders.is_empty() && plan.events.is_empty();
        if (status != before || !is_idle) && !self.write_status(&object, &status).await? {
            return Ok(CHANGED_MEANWHILE);
        }
        self.record(&object, &plan.events, round.now).await;
        if plan.done {
            self.set_finalizer(&object, false).await?;
            return Ok(RESYNC_PERIOD);
        }
        let carried_out = self.carry_out_all(&Arc::new(observed), &plan, round).await;
        self.note(&object, &uid, &carried_out).await;
        Ok(if carried_out.is_err() { TRIED_AGAIN } else { next(&plan, &status.phase, round.now) })
    }

    async fn carry_out_all(
        &self,
        observed: &Arc<Observed>,
        plan: &Plan,
        round: &Round,
    ) -> Result<(), OrderError> {
        for order in &plan.orders {
            self.carry_out(observed, order, &round.namespaces).await?;
        }
        let closed = self.closed(observed, &round.namespaces);
        let own = observed.snapshot.clusters.iter().find(|(_, cluster)| {
            plan.record
                .cluster
                .as_ref()
                .is_some_and(|record| record.number == cluster.number && record.ending.is_none())
                && cluster.untouchable.is_none()
        });
        match own {
            Some((cluster, _)) if !closed.is_empty() && !observed.settings.paused => {
                let (observed, cluster) = (Arc::clone(observed), cluster.clone());
                self.send(Visit { errand: Errand::Open, observed, cluster, namespaces: closed });
            }
            _ if plan.orders.iter().any(|order| matches!(order, Order::Peer { .. })) => {}
            _ => self.stay_home(&observed.settings.uid),
        }
        Ok(())
    }

    /// Why the last orders of a CloudProvisioner, or the last visit to its cluster, failed.
    fn problem(&self, uid: &str) -> Option<String> {
        let state = self.state();
        let visit = || state.visits.get(uid).and_then(|visits| visits.problem.clone());
        state.problems.get(uid).cloned().or_else(visit)
    }

    /// Remembers why orders could not be carried out, and says so once.
    async fn note(&self, object: &CloudProvisioner, uid: &str, carried_out: &Result<(), OrderError>) {
        let problem = carried_out.as_ref().err().map(|error| chain(error));
        let before = match &problem {
            Some(problem) => self.state().problems.insert(uid.to_owned(), problem.clone()),
            None => self.state().problems.remove(uid),
        };
        if let Some(problem) = problem.filter(|problem| before.as_ref() != Some(problem)) {
            let reason = portolan_api::Reason::CloudRequestFailed;
            self.recorder.record(object, EventType::Warning, reason, &problem).await;
        }
    }

    /// Records what has happened. The same may happen again soon: each time is an event of its own.
    async fn record(&self, object: &CloudProvisioner, events: &[Event], now: Timestamp) {
        let recorder = self.recorder.on(&now.to_string());
        for event in events {
            let type_ = if event.is_warning() { EventType::Warning } else { EventType::Normal };
            recorder.record(object, type_, event.reason(), &event.to_string()).await;
        }
    }

    /// A hub without Cluster API can make nothing. What was never begun can be deleted all the same.
    async fn without_cluster_api(
        &self,
        all: &[Arc<CloudProvisioner>],
        why: &str,
    ) -> Result<Action, CallError> {
        for object in all {
            let begun = object.status.as_ref().is_some_and(|status| status.cluster.is_some());
            if object.metadata.deletion_timestamp.is_some() && !begun {
                if has_finalizer(object) {
                    self.set_finalizer(object, false).await?;
                }
                continue;
            }
            self.report(object, &Report::NoClusterApi(why)).await?;
        }
        Ok(Action::RequeueAfter(RESYNC_PERIOD))
    }

    /// Writes what stands in the way of any plan.
    async fn report(&self, object: &CloudProvisioner, report: &Report<'_>) -> Result<(), CallError> {
        let before = object.status.clone().unwrap_or_default();
        let mut status = before.clone();
        status::tell(&mut status, report, object.metadata.generation, self.context.clock.now());
        if status != before {
            self.write_status(object, &status).await?;
        }
        Ok(())
    }

    /// Forgets what is remembered of CloudProvisioners that are gone, and stops watching nodes of members that are.
    fn forget_all_but(&self, observed: &[Observed]) {
        let mut state = self.state();
        state.problems.retain(|uid, _| observed.iter().any(|each| each.settings.uid == *uid));
        state.visits.retain(|uid, _| observed.iter().any(|each| each.settings.uid == *uid));
        state.nodes.retain(|name, _| {
            let joined = |each: &&Observed| matches!(each.snapshot.member, MemberState::Joined { .. });
            observed.iter().filter(joined).any(|each| each.settings.cluster_name == *name)
        });
        state.refused.retain(|name, _| {
            observed.iter().any(|each| {
                let status = each.object.status.as_ref();
                status.and_then(|status| status.cluster.as_ref()).is_some_and(|cluster| cluster.name == *name)
            })
        });
    }

    fn log_orphans(&self, orphans: &[String]) {
        let mut state = self.state();
        if state.orphans != orphans {
            state.orphans = orphans.to_vec();
            if !orphans.is_empty() {
                let clusters = orphans.join(", ");
                tracing::warn!(
                    clusters,
                    "clusters were created for CloudProvisioners that do not exist, and cost money: delete them in Cluster API"
                );
            }
        }
    }
}

/// Tells each CloudProvisioner whose `cloudClusterName` another one has.
fn find_rivals(observed: &mut [Observed]) {
    let name = |each: &Observed| each.object.metadata.name.clone().unwrap_or_default();
    let claim = |each: &Observed| Claim {
        provisioner: name(each),
        cluster_name: each.settings.cluster_name.clone(),
        begun: each.record.cluster.is_some(),
        created_at: each.object.metadata.creation_timestamp.as_ref().map(|time| time.0),
    };
    let mut rivals = rivals(&observed.iter().map(claim).collect::<Vec<_>>());
    for each in observed {
        each.snapshot.rival = rivals.remove(&name(each));
    }
}

/// The Clusters that no CloudProvisioner knows: those without one, and those of this one that are not on its record.
fn orphans(observed: &Observed, plan: &Plan, without: &[String]) -> Vec<String> {
    let strays = plan.strays.iter().map(|name| format!("{}/{name}", observed.namespace_of(name)));
    let mut all: Vec<String> =
        without.iter().cloned().chain(strays).chain(observed.foreign.iter().cloned()).collect();
    all.sort();
    all
}

/// When to look again if nothing changes before.
fn next(plan: &Plan, phase: &CloudPhase, now: Timestamp) -> Duration {
    let planned = plan.next.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    let again = match phase {
        CloudPhase::Provisioning | CloudPhase::Scaling | CloudPhase::Deprovisioning => UNDER_WAY,
        CloudPhase::Ready => COST_PERIOD,
        CloudPhase::Idle | CloudPhase::Failed => RESYNC_PERIOD,
    };
    planned.map_or(again, |planned| planned.max(Duration::from_secs(1)).min(again))
}

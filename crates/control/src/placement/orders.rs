//! Handing what is to be done about a workload to the members.

use super::facts::{DeploymentFacts, RECREATE};
use super::observe::ClusterSnapshot;
use super::{Placement, Workload};
use crate::copies::Copied;
use crate::copies::{Desired, Outcome, Round};
use crate::driver::Declared;
use crate::fleet::{Member, Reachability};
use k8s_openapi::api::apps::v1::Deployment;
use portolan_api::Reason;
use portolan_api::placement::DriftPolicy;
use portolan_core::placement::{Candidate, Decision, Order, transition};
use portolan_runtime::{CallError, EventType, Key};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is to be done about a workload in one member.
struct Task {
    key: Key,
    workload: Arc<Workload>,
    member: Arc<Member>,
    copy: Option<Arc<DeploymentFacts>>,
    order: Option<Order>,
    decision: Arc<Decision>,
    /// Whether replicas are placed there.
    used: bool,
    /// Whether all pods of the copy are of the present template.
    current: bool,
}

impl Task {
    /// Whether the order takes replicas away.
    fn gives_up(&self) -> bool {
        let running = self.copy.as_ref().map_or(0, |copy| u32::try_from(copy.replicas).unwrap_or(0));
        match self.order {
            Some(Order::Delete) => true,
            Some(Order::Apply { replicas } | Order::Scale { replicas }) => replicas < running,
            Some(Order::Keep) | None => false,
        }
    }
}

impl Placement {
    /// Hands what is to be done on the way to the decision to the actuators of the members.
    pub(super) fn submit(
        self: &Arc<Self>,
        key: &Key,
        workload: &Arc<Workload>,
        decision: &Decision,
        seen: &BTreeMap<String, ClusterSnapshot>,
        orders: &BTreeMap<String, Order>,
        round: Round,
    ) {
        let (template, decision) = (self.template(workload), Arc::new(decision.clone()));
        for (cluster, seen) in seen.iter().filter(|(_, seen)| seen.is_known) {
            let Some(member) = &seen.member else { continue };
            let order = orders.get(cluster).copied();
            let used = decision.placed.contains_key(cluster);
            if order.is_none() && seen.copy.is_none() && !used {
                let releases = self.base.release(round, key, workload, member);
                if !releases && self.is_to_be_probed(key, &template, cluster, seen) {
                    self.submit_probe(key, workload, member, &template, round);
                }
                continue;
            }
            let current = seen.copy.as_ref().is_some_and(|copy| {
                copy.rolled_out(copy.replicas) && self.is_current(workload, &decision, cluster, copy)
            });
            let task = Task {
                key: key.clone(),
                workload: Arc::clone(workload),
                member: Arc::clone(member),
                copy: seen.copy.clone(),
                order,
                decision: Arc::clone(&decision),
                used,
                current,
            };
            let placement = Arc::clone(self);
            let work = move || async move { placement.carry_out(&task).await };
            self.base.copies.submit(round, member, key, &template, work);
        }
    }

    /// Has the copies of a workload about which nothing is done claimed for this leader: what an earlier one still has on its
    /// way is refused then.
    pub(super) fn claim_copies(
        self: &Arc<Self>,
        key: &Key,
        seen: &BTreeMap<String, ClusterSnapshot>,
        round: Round,
    ) {
        let epoch = self.base.context.term.epoch();
        for seen in seen.values().filter(|seen| seen.is_known) {
            let (Some(member), Some(copy)) = (&seen.member, &seen.copy) else { continue };
            if epoch.is_none() || copy.meta.epoch == epoch {
                continue;
            }
            let (copies, there) = (Arc::clone(&self.base.copies), Arc::clone(member));
            let (name, meta) = (key.clone(), copy.meta.clone());
            let work = move || async move { copies.keep(&there, &name, &meta).await };
            self.base.copies.submit(round, member, key, "", work);
        }
    }

    /// Does what is to be done in one member, and releases the ConfigMaps and Secrets that are not needed there any more.
    async fn carry_out(&self, task: &Task) -> Result<Outcome, CallError> {
        let Task { key, workload, member, copy, order, .. } = task;
        let copies = &self.base.copies;
        if task.gives_up() && !self.is_still_due(task) {
            return Ok(Outcome::NotSeenYet);
        }
        let outcome = match (order, copy) {
            (Some(Order::Apply { replicas }), _) => self.apply(task, *replicas).await?,
            (Some(Order::Keep), Some(copy)) => copies.keep(member, key, &copy.meta).await?,
            (Some(Order::Scale { replicas }), Some(copy)) => {
                copies.scale(member, key, &copy.meta, *replicas).await?
            }
            (Some(Order::Delete), Some(copy)) => copies.delete(member, key, &copy.meta).await?,
            _ => Outcome::AsDecided,
        };
        let outcome = match (outcome, copy) {
            (Outcome::AsDecided, Some(copy)) => self.compare(key, workload, member, copy).await?,
            _ => outcome,
        };
        let propagation = self.base.propagation(key, workload, member);
        match copy {
            // Pods of a former template still need what the present one does not refer to.
            Some(_) if !task.current || matches!(order, Some(Order::Keep | Order::Scale { .. })) => {
                Ok(outcome)
            }
            None if !task.used => propagation.release_all(outcome).await,
            _ => propagation.release_others(outcome).await,
        }
    }

    /// Whether replicas may still be given up in a member: since that was decided, those elsewhere may have failed.
    fn is_still_due(&self, task: &Task) -> bool {
        let Task { key, workload, decision, member: own, .. } = task;
        let fleet = &self.base.context.fleet;
        let placed = decision.placed.keys().map(String::as_str);
        let names: BTreeSet<&str> =
            placed.chain(workload.held().map(|(name, _)| name)).chain([own.name.as_str()]).collect();
        let see = |name: &str| {
            let Reachability { member, is_known, .. } =
                fleet.reachability_of::<Deployment>(name, None, Deployment::NEEDS, key);
            let changing = member.as_ref().is_some_and(|member| self.base.copies.is_changing(member, key));
            let copy = member.as_ref().and_then(|member| member.index::<Deployment>().get(key));
            let copy = copy.filter(|copy| copy.meta.is_of(workload.uid()));
            let memory = &self.base.copies.memory;
            let outdated = copy.as_ref().is_some_and(|copy| memory.is_outdated(key, name, &copy.meta));
            let changing = name != own.name && (changing || outdated);
            (
                name.to_owned(),
                ClusterSnapshot { candidate: Candidate::default(), member, copy, is_known, changing },
            )
        };
        let seen = names.into_iter().map(see).collect();
        let order =
            transition(decision, &self.snapshots(&task.key, workload, decision, &seen)).remove(&own.name);
        match (task.order, order) {
            (Some(Order::Apply { replicas }), Some(Order::Apply { replicas: now }))
            | (Some(Order::Scale { replicas }), Some(Order::Scale { replicas: now })) => now <= replicas,
            (due, now) => due == now,
        }
    }

    /// Applies one copy, if the member does not hold it already.
    async fn apply(&self, task: &Task, replicas: u32) -> Result<Outcome, CallError> {
        let Task { key, workload, member, copy, .. } = task;
        let (copies, digest) = (&self.base.copies, self.digest(workload, replicas));
        let template = self.template(workload);
        if copies.is_refused(member, key, &template) {
            return Ok(Outcome::AsDecided);
        }
        let propagation = self.base.propagation(key, workload, member);
        if let Some(outcome) = propagation.bring(copies, &template).await? {
            return Ok(outcome);
        }
        if let Some(copy) = copy {
            // A copy whose label somebody removed gets it back: it has no digest.
            let as_applied = copy.meta.digest.as_deref() == Some(&digest);
            let applied = copies.memory.applied(key, &member.name).filter(|applied| applied.digest == digest);
            // A generation that we did not make is somebody's change; after a restart we apply once to be sure.
            let drifted = applied.is_none_or(|applied| applied.generation < copy.meta.generation);
            let correct = workload.object.spec.drift_policy == DriftPolicy::Correct;
            if as_applied && !(drifted && correct) {
                return copies.confirm(member, key, &copy.meta).await;
            }
        }
        let desired = self.desired(workload, replicas);
        let recreates = desired.object.pointer("/spec/strategy/type").is_some_and(|type_| type_ == RECREATE);
        if let Some(copy) = copy.as_ref().filter(|copy| recreates && !copy.recreates) {
            // The API server filled in numbers for rolling updates, which nobody owns: what is applied cannot take them away,
            // and with them another strategy is refused.
            let strategy = json!({"spec": {"strategy": {"type": RECREATE, "rollingUpdate": null}}});
            return copies.patch(member, key, &copy.meta, "set the strategy of", strategy).await;
        }
        let seen = copy.as_ref().map(|copy| &copy.meta);
        let (outcome, applied) = copies.apply(member, key, seen, &desired).await?;
        if let (Some(copy), Some(applied)) = (copy, applied) {
            self.report_correction(task, copy, &desired, &applied).await;
        }
        Ok(outcome)
    }

    /// Reports, as an event, when somebody's change in a member was undone.
    async fn report_correction(
        &self,
        task: &Task,
        copy: &DeploymentFacts,
        desired: &Desired,
        applied: &Deployment,
    ) {
        let before = copy.meta.generation;
        let undone = copy.meta.digest.as_ref() == Some(&desired.digest)
            && applied.metadata.generation.is_some_and(|generation| generation > before);
        if undone {
            let cluster = &task.member.name;
            let note =
                format!("somebody changed the copy in {cluster}: it was set back (generation {before})");
            let object = &task.workload.object;
            self.base.recorder.record(object, EventType::Normal, Reason::DriftCorrected, &note).await;
        }
    }
}

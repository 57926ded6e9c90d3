//! One look at one autoscaler.

use super::known::Known;
use super::queries::answer;
use super::read::{Wanted, read};
use super::{Autoscalers, LOOK_AGAIN, target};
use crate::driver::{CHANGED_MEANWHILE, Context, SYNC_POLL_INTERVAL, is_unreadable, replace_status};
use crate::names::FIELD_MANAGER;
use crate::placement::Workload;
use k8s_openapi::api::autoscaling::v1::{Scale, ScaleSpec};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::{
    MultiClusterDeployment, MultiClusterHorizontalPodAutoscaler, MultiClusterHorizontalPodAutoscalerStatus,
    Reason,
};
use portolan_core::autoscale::{
    self, ClusterSnapshot, Conflict, Decision, MemberClock, Memory, Reading, effective_metrics,
};
use portolan_runtime::{Action, CallError, EventType, Key, chain};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

impl Autoscalers {
    /// Looks at one autoscaler.
    pub(super) async fn look(&self, key: Key) -> Result<Action, CallError> {
        let fleet = &self.context.fleet;
        if !(self.objects.synced() && self.workloads.synced() && fleet.clusters.synced()) {
            return Ok(Action::RequeueAfter(SYNC_POLL_INTERVAL));
        }
        let Some(object) = self.objects.get(&key) else {
            self.known().remove(&key);
            is_unreadable::<MultiClusterHorizontalPodAutoscaler, _>(&self.objects, &key, &self.recorder)
                .await;
            return Ok(Action::AwaitChange);
        };
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Action::AwaitChange);
        }
        if let Some(findings) = self.conflict(&object) {
            return self.report(&object, findings).await;
        }
        let workload = self.workloads.get(&target(&object));
        let Some(workload) = workload.filter(|each| each.object.metadata.deletion_timestamp.is_none()) else {
            let message =
                format!("there is no MultiClusterDeployment {}, which scaleTargetRef names", target(&object));
            let of = |type_| Finding::new(type_, false, Reason::FailedGetScale, message.clone());
            return self
                .report(&object, vec![of(ConditionType::Ready), of(ConditionType::AbleToScale)])
                .await;
        };
        self.scale(&key, &object, &workload).await
    }

    /// Decides about a workload, writes that down, and then carries it out.
    async fn scale(
        &self,
        key: &Key,
        object: &MultiClusterHorizontalPodAutoscaler,
        workload: &Workload,
    ) -> Result<Action, CallError> {
        let spec = &workload.object.spec;
        let replicas = u32::try_from(spec.replicas).unwrap_or(0);
        let Known { memory, clusters: last, .. } = {
            let mut all = self.known();
            let known = all.entry(key.clone()).or_default();
            known.follow(object, replicas, self.context.clock.now());
            known.clone()
        };
        let (clusters, readings) =
            futures::future::join(self.clusters(key, object, workload, &last), self.answers(object)).await;
        let now = self.context.clock.now();
        let mut decision = autoscale::decide(&autoscale::Known {
            spec: &object.spec,
            replicas,
            mode: spec.replicas_mode,
            locations: u32::try_from(spec.placement.effective_locations()).unwrap_or(u32::MAX),
            clusters: &clusters,
            readings: &readings,
            memory: &memory,
            now,
        });
        let mut status = object.status.clone().unwrap_or_default();
        decision.write_to(&mut status, &clusters, object.metadata.generation, now);
        if let Some(known) = self.known().get_mut(key) {
            known.clusters = clusters.into_iter().map(|each| (each.name.clone(), each)).collect();
        }
        let written = if is_news(object, &status, &decision) {
            let hub = &self.context.hub.client;
            match replace_status(&self.context.term, hub, object, &status).await? {
                Some(written) => written,
                // Somebody has changed it: it is decided about again, with what was remembered before.
                None => return Ok(Action::RequeueAfter(CHANGED_MEANWHILE)),
            }
        } else {
            object.clone()
        };
        self.remember(key, &decision);
        if decision.desired != decision.current {
            if !self.set_replicas(&written, workload, &decision).await? {
                return Ok(Action::RequeueAfter(CHANGED_MEANWHILE));
            }
            decision.carried_out(&mut status, object.metadata.generation, self.context.clock.now());
            self.remember(key, &decision);
            // If somebody has changed it meanwhile, the next look writes it.
            replace_status(&self.context.term, &self.context.hub.client, &written, &status).await?;
        }
        let wait = decision.look_again_at.duration_since(self.context.clock.now());
        Ok(Action::RequeueAfter(Duration::try_from(wait).unwrap_or_default()))
    }

    fn remember(&self, key: &Key, decision: &Decision) {
        if let Some(known) = self.known().get_mut(key) {
            known.memory = decision.memory.clone();
        }
    }

    /// Writes the replicas of a workload, unless it was changed since it was decided about; answers whether that was done.
    async fn set_replicas(
        &self,
        object: &MultiClusterHorizontalPodAutoscaler,
        workload: &Workload,
        decision: &Decision,
    ) -> Result<bool, CallError> {
        let meta = &workload.object.metadata;
        let (key, desired) = (Key::of(&workload.object), decision.desired);
        let api: Api<MultiClusterDeployment> =
            Api::namespaced(self.context.hub.client.clone(), &key.namespace);
        let scale = Scale {
            metadata: ObjectMeta {
                name: meta.name.clone(),
                namespace: meta.namespace.clone(),
                uid: meta.uid.clone(),
                resource_version: meta.resource_version.clone(),
                ..ObjectMeta::default()
            },
            spec: Some(ScaleSpec { replicas: i32::try_from(desired).ok() }),
            status: None,
        };
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let what = format!("set the replicas of MultiClusterDeployment {key} to {desired}");
        let written = self.context.term.call(what, api.replace_scale(&key.name, &params, &scale)).await;
        match written {
            Ok(_) => {
                let cause = decision.cause.as_deref().unwrap_or_default();
                let note = format!("New size: {desired}, from {}; reason: {cause}", decision.current);
                let occasion = self.context.clock.now().to_string();
                let recorder = self.recorder.on(&occasion);
                recorder.record(object, EventType::Normal, Reason::SuccessfulRescale, &note).await;
                Ok(true)
            }
            // The workload has changed: it is decided about again, from what it is now.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(false),
            Err(error) => {
                self.report(object, autoscale::update_failed(&chain(&error))).await?;
                Err(error)
            }
        }
    }

    /// What is known of each cluster that holds replicas of the workload or is to: read now, or what it told last.
    async fn clusters(
        &self,
        key: &Key,
        object: &MultiClusterHorizontalPodAutoscaler,
        workload: &Workload,
        last: &BTreeMap<String, ClusterSnapshot>,
    ) -> Vec<ClusterSnapshot> {
        let held: BTreeMap<&str, u32> = workload.held().collect();
        let named = workload.object.spec.placement.locations.iter().map(String::as_str);
        let names: BTreeSet<&str> = held.keys().copied().chain(named).collect();
        let metrics = effective_metrics(&object.spec.metrics);
        let selector = workload.pod_selector();
        let wanted = Wanted { namespace: &key.namespace, selector: &selector, metrics: &metrics };
        let each = names.into_iter().map(|name| {
            let (wanted, last) = (&wanted, last.get(name));
            let replicas = held.get(name).copied().unwrap_or(0);
            async move { self.cluster(name, replicas, wanted, last).await }
        });
        futures::future::join_all(each).await
    }

    /// What the Prometheus of the hub answers to the queries of an autoscaler, by the position of the metric.
    async fn answers(&self, object: &MultiClusterHorizontalPodAutoscaler) -> BTreeMap<usize, Reading> {
        let metrics = object.spec.metrics.iter().enumerate();
        let queries =
            metrics.filter_map(|(index, metric)| Some((index, metric.external.as_ref()?.query.as_ref()?)));
        let answers = queries.map(async |(index, query)| (index, self.answer(query).await));
        futures::future::join_all(answers).await.into_iter().collect()
    }

    async fn answer(&self, query: &str) -> Reading {
        let Some(prometheus) = &self.context.settings.prometheus else {
            let told = "the controller was not told which Prometheus to ask: start it with --prometheus NAMESPACE/SERVICE:PORT";
            return Reading::Failed(told.to_owned());
        };
        let Context { hub, clock, .. } = &self.context;
        answer(&self.hung, &hub.client, &prometheus.with(query), clock).await
    }

    async fn cluster(
        &self,
        name: &str,
        replicas: u32,
        wanted: &Wanted<'_>,
        last: Option<&ClusterSnapshot>,
    ) -> ClusterSnapshot {
        let member = self.context.fleet.member(name).filter(|member| member.health.is_reachable());
        let mut error = None;
        if let Some(member) = member {
            let clock = last.map(|last| last.clock).unwrap_or_default();
            match read(&member, wanted, replicas, &self.hung, clock, self.context.clock.now()).await {
                Ok(read) => return read,
                Err(why) => error = Some(why),
            }
        }
        match last {
            Some(last) => ClusterSnapshot { replicas, reachable: false, error, ..last.clone() },
            None => ClusterSnapshot {
                name: name.to_owned(),
                replicas,
                reachable: false,
                error,
                observed_at: None,
                clock: MemberClock::default(),
                pods: Vec::new(),
                readings: Vec::new(),
            },
        }
    }

    /// What an autoscaler is told that is not the only one of its workload.
    fn conflict(&self, object: &MultiClusterHorizontalPodAutoscaler) -> Option<Vec<Finding>> {
        let workload = target(object);
        let all = self.shares.autoscalers_of(&workload);
        let name = format!("{} {workload}", object.spec.scale_target_ref.kind);
        Some(Conflict::between(name, all)?.findings())
    }

    /// Writes conditions into the status, and nothing else.
    async fn report(
        &self,
        object: &MultiClusterHorizontalPodAutoscaler,
        findings: Vec<Finding>,
    ) -> Result<Action, CallError> {
        let mut status = object.status.clone().unwrap_or_default();
        let (generation, now) = (object.metadata.generation, self.context.clock.now());
        let mut news = status.observed_generation != generation;
        status.observed_generation = generation;
        let warning = findings.first().map(|finding| (finding.reason, finding.message.clone()));
        for finding in findings {
            news |= conditions::set(&mut status.conditions, finding, generation, now);
        }
        if news {
            replace_status(&self.context.term, &self.context.hub.client, object, &status).await?;
            if let Some((reason, message)) = warning {
                self.recorder.record(object, EventType::Warning, reason, &message).await;
            }
        }
        Ok(Action::RequeueAfter(LOOK_AGAIN))
    }
}

/// Whether a status says something that the one on record does not. Times of what was recommended or measured move all the
/// while, and are written now and then.
fn is_news(
    object: &MultiClusterHorizontalPodAutoscaler,
    status: &MultiClusterHorizontalPodAutoscalerStatus,
    decision: &Decision,
) -> bool {
    let Some(before) = &object.status else { return true };
    if decision.memory.differs_from(&Memory::of_status(before)) {
        return true;
    }
    let timeless = |status: &MultiClusterHorizontalPodAutoscalerStatus| {
        let mut status = status.clone();
        status.recommendations.clear();
        for each in &mut status.clusters {
            (each.observed_at, each.recommendations) = (None, Vec::new());
        }
        status
    };
    timeless(before) != timeless(status)
}

//! A job in every cluster of the fleet, as the indexes know it. No requests.

use super::facts::JobFacts;
use super::record::seen;
use super::{DeclaredJob, Jobs};
use crate::capacity::Book;
use crate::copies::Copied;
use crate::driver::Declared;
use crate::fleet::{Member, Reachability, Silence};
use crate::placement::candidate;
use k8s_openapi::api::batch::v1::Job;
use portolan_api::ForeignCluster;
use portolan_api::placement::{OnUnreachable, PlacementState};
use portolan_core::capacity::View;
use portolan_core::jobs::MemberJobState;
use portolan_core::placement::Candidate;
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A cluster, as one job sees it.
pub(super) struct ClusterSnapshot {
    pub(super) candidate: Candidate,
    /// The member, once it is connected.
    pub(super) member: Option<Arc<Member>>,
    /// The Job there that is ours, as last seen.
    pub(super) job: Option<Arc<JobFacts>>,
    /// Whether the member answers now.
    pub(super) is_known: bool,
    /// Whether a Job was made there that the watch does not show yet.
    pub(super) awaited: bool,
    /// Whether a Job was seen there before that the watch does not show any more, and nobody knows why.
    pub(super) missing: bool,
    /// What that means for the plan.
    pub(super) state: MemberJobState,
    /// For a silent cluster: how long until its open completions are given to others.
    pub(super) patience: Option<Duration>,
}

impl Jobs {
    /// Looks at all clusters for one job; nothing if a cluster is not known well enough yet to plan.
    pub(super) fn observe(
        &self,
        book: &mut Book,
        key: &Key,
        job: &DeclaredJob,
    ) -> Option<BTreeMap<String, ClusterSnapshot>> {
        if !self.base.context.fleet.clusters.synced() || !book.is_complete() {
            return None;
        }
        let clusters = self.base.context.fleet.clusters.all();
        clusters
            .into_iter()
            .map(|(name, cluster)| Some((name.name.clone(), self.see(book, key, job, &name.name, &cluster)?)))
            .collect()
    }

    fn see(
        &self,
        book: &mut Book,
        key: &Key,
        job: &DeclaredJob,
        name: &str,
        cluster: &ForeignCluster,
    ) -> Option<ClusterSnapshot> {
        let reached = self.base.context.fleet.reachability_of::<Job>(name, Some(book), Job::NEEDS, key);
        let recorded = job.object.status.iter().flat_map(|status| &status.placements);
        let is_there = || recorded.into_iter().any(|placed| placed.cluster == name);
        if reached.joining && (self.base.context.fleet.is_starting() || is_there()) {
            return None;
        }
        let Reachability { member, unknown, is_known, .. } = reached;
        // Asked before the index: what ends in between is seen there.
        let copies = &self.base.copies;
        let changing = member.as_ref().is_some_and(|member| copies.is_changing(member, key));
        let facts = member.as_ref().and_then(|member| member.index::<Job>().get(key));
        let facts = facts.filter(|facts| facts.meta.is_of(job.uid()));
        let view = match &job.shape {
            Ok(shape) => book.view(name, job.uid(), shape),
            Err(_) => View::default(),
        };
        let outdated = facts.as_ref().is_some_and(|facts| copies.memory.is_outdated(key, name, &facts.meta));
        let awaited = changing
            || outdated
            || member.as_ref().is_some_and(|member| copies.memory.is_awaited(member, key, facts.is_some()));
        let unexplained = |member: &Arc<Member>| !copies.memory.is_absent(member, key);
        let missing = is_known && !awaited && facts.is_none() && had_job(job, name);
        let missing = missing && member.as_ref().is_some_and(unexplained);
        let awaited = awaited || missing;
        let patience = if is_known { None } else { self.patience(job, cluster) };
        let state = match (&facts, is_known) {
            (_, false) => MemberJobState::Unreachable { too_long: patience == Some(Duration::ZERO) },
            // It may be at work: what it is to bring stays there until it is known what it does.
            (_, true) if awaited => MemberJobState::Unreachable { too_long: false },
            (None, true) => MemberJobState::NoJob,
            (Some(facts), true) => MemberJobState::Job(seen(facts, &job.object)),
        };
        let candidate =
            candidate(&self.base.context.fleet, cluster, member.as_deref(), unknown, &key.namespace, view);
        Some(ClusterSnapshot { candidate, member, job: facts, is_known, awaited, missing, state, patience })
    }

    /// How long the job still waits for a silent cluster; nothing if for ever.
    fn patience(&self, job: &DeclaredJob, cluster: &ForeignCluster) -> Option<Duration> {
        let placement = &job.object.spec.placement;
        if placement.on_unreachable != OnUnreachable::ReplaceAfter {
            return None;
        }
        let limit = placement.replace_after.as_ref()?.0;
        // The time stands in the API, so that it goes on over a restart.
        let context = &self.base.context;
        let silence: Silence = context.fleet.silence(cluster, context.clock.now());
        silence.left(limit)
    }

    /// Why nothing of the silent clusters is given to others although the job asks for it, if so.
    pub(super) fn doubts(
        &self,
        job: &DeclaredJob,
        seen: &BTreeMap<String, ClusterSnapshot>,
    ) -> Option<String> {
        let asked = job.object.spec.placement.on_unreachable == OnUnreachable::ReplaceAfter;
        let silent = |(name, seen): (&String, &ClusterSnapshot)| !seen.is_known && job.is_in(name);
        if !asked || !seen.iter().any(silent) {
            return None;
        }
        let doubt = self.base.context.fleet.doubt()?;
        seen.keys().any(|name| job.is_in(name) && doubt.is_about(name)).then(|| doubt.message())
    }
}

/// Whether a cluster has open completions on record, and had a Job for them when it was last looked at.
fn had_job(job: &DeclaredJob, cluster: &str) -> bool {
    let mut placements = job.object.status.iter().flat_map(|status| &status.placements);
    let placed = placements.find(|placed| placed.cluster == cluster);
    placed.is_some_and(|placed| {
        let brought = placed.succeeded > placed.finished_before;
        let seen = placed.state == PlacementState::Applied || placed.active > 0;
        placed.completions > placed.succeeded && (brought || seen)
    })
}

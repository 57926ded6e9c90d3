//! Whether the silence of members is believed, and since when; see [`portolan_core::brake`] for the rule.
//!
//! That a silence is doubted is on record in the condition `SilenceDoubted` of its ForeignCluster. When a cut ends, the
//! members answer again one after the other, and the last ones have been silent for long by then. So the time until a
//! cluster is replaced counts from the moment in which its silence was last doubted; the record lets that survive a
//! restart.

use super::Fleet;
use super::sites::is_confirmed_lost;
use jiff::Timestamp;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::foreigncluster::ClusterType;
use portolan_api::{ForeignCluster, Reason};
use portolan_core::brake::{Doubt, MemberSnapshot, doubt};
use std::time::Duration;

/// What is known of the silence of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// It is not on record: the record brings everybody back.
    NotRecorded,
    /// It is not believed.
    Doubted,
    /// It is believed, and has lasted so long.
    Believed(Duration),
}

impl Fleet {
    /// Whether so many members are silent that the hub suspects itself.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let mut members = Vec::new();
        self.clusters.for_each(|key, cluster| {
            if counts(cluster) && !self.is_unconnected(&key.name) {
                // One that is being connected has not answered either.
                let answers = self.member(&key.name).is_some_and(|member| member.health.is_reachable());
                let (name, confirmed_lost) = (key.name.clone(), is_confirmed_lost(cluster));
                members.push(MemberSnapshot { name, silent: !answers, confirmed_lost });
            }
        });
        doubt(members)
    }

    /// For how long the silence of a cluster has been believed.
    pub(crate) fn silence(&self, cluster: &ForeignCluster, now: Timestamp) -> Silence {
        let found = |type_| {
            let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice());
            conditions::find(conditions.unwrap_or_default(), type_)
        };
        let Some(reachable) = found(ConditionType::Reachable).filter(|found| found.status != "True") else {
            return Silence::NotRecorded;
        };
        let mut since = reachable.last_transition_time.0;
        if !is_confirmed_lost(cluster) {
            let name = cluster.metadata.name.as_deref().unwrap_or_default();
            if let Some(recorded) = found(ConditionType::SilenceDoubted) {
                if recorded.status == "True" {
                    return Silence::Doubted;
                }
                since = since.max(recorded.last_transition_time.0);
            }
            if self.doubt().is_some_and(|doubt| doubt.is_about(name)) {
                return Silence::Doubted;
            }
        }
        Silence::Believed(Duration::try_from(now.duration_since(since)).unwrap_or_default())
    }
}

/// What is told of the silence of a ForeignCluster: that it is doubted, or that it is not any more.
pub(super) fn finding(fleet: &Fleet, cluster: &ForeignCluster, silent: bool) -> Option<Finding> {
    let told = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let recorded = conditions::find(told, ConditionType::SilenceDoubted).is_some();
    if !silent && !recorded {
        return None;
    }
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let found = |doubted: bool, reason, message: String| {
        Some(Finding::new(ConditionType::SilenceDoubted, doubted, reason, message))
    };
    match fleet.doubt().filter(|doubt| silent && doubt.is_about(name)) {
        Some(doubt) => found(true, Reason::ManyMembersSilent, doubt.message()),
        None if !recorded => None,
        None if !silent => found(false, Reason::ClusterReachable, "it answers".to_owned()),
        None => found(
            false,
            Reason::SilenceBelieved,
            "its silence is believed: replaceAfter counts from now on".to_owned(),
        ),
    }
}

/// Whether a cluster tells anything about the network of the hub: one that leaves may be switched off, and the hub itself
/// answers whatever becomes of its network.
fn counts(cluster: &ForeignCluster) -> bool {
    // One that has never answered is still being built, or was never right.
    let was_seen = cluster.status.as_ref().is_some_and(|status| status.last_seen.is_some());
    was_seen && cluster.metadata.deletion_timestamp.is_none() && cluster.spec.type_ != ClusterType::Local
}

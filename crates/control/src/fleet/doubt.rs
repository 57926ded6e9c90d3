//! Whether the silence of members is believed, and since when; see [`portolan_core::brake`] for the rule.
//!
//! That a silence is doubted is on record in the condition `SilenceDoubted` of its ForeignCluster. When a cut ends, the
//! members answer again one after the other, and the last ones have been silent for long by then. So the time until a
//! cluster is replaced counts from the moment in which its silence was last doubted; the record lets that survive a
//! restart.
//!
//! Silence is that an API server does not answer. A cluster to which no connection can be made, because of its Secret say,
//! is not silent: it goes on with what it holds. The condition `Reachable` is `Unknown` for both, and keeps its time when
//! one follows the other; the moment in which silence begins then is on record in `SilenceDoubted`.

use super::Fleet;
use super::sites::is_confirmed_lost;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::foreigncluster::ClusterType;
use portolan_api::{ForeignCluster, Reason};
use portolan_core::brake::{Doubt, MemberSnapshot, doubt};
use std::time::Duration;

/// What is known of the silence of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// There is none, or it is not on record: the record brings everybody back.
    NotRecorded,
    /// It is not believed.
    Doubted,
    /// It is believed.
    Believed {
        /// How long it has lasted by the record.
        lasted: Duration,
        /// For how long this process has known of it.
        known: Duration,
    },
}

/// The record may be of a machine whose clock was wrong: no process replaces anything before it has known of a silence itself
/// for so long.
const KNOWN_AT_LEAST: Duration = Duration::from_secs(60);

impl Silence {
    /// How much longer what the cluster holds is waited for by whoever has this much patience; nothing if for ever.
    pub(crate) fn left(&self, patience: Duration) -> Option<Duration> {
        match self {
            Self::Believed { lasted, known } => {
                let first = KNOWN_AT_LEAST.min(patience).saturating_sub(*known);
                Some(patience.saturating_sub(*lasted).max(first))
            }
            // Whatever changes that brings everybody back.
            Self::NotRecorded | Self::Doubted => None,
        }
    }
}

impl Fleet {
    /// Whether a cluster is connected, and its API server does not answer.
    pub(crate) fn is_silent(&self, name: &str) -> bool {
        self.member(name).is_some_and(|member| member.health.is_silent())
    }

    /// Whether so many members are silent that the hub suspects itself. Members whose connection is lost count with them:
    /// what takes many connections at once is in the hub.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let mut members = Vec::new();
        self.clusters.for_each(|key, cluster| {
            if counts(cluster) {
                // One that is not connected, or is being connected, has not answered either.
                let answers = self.member(&key.name).is_some_and(|member| member.health.is_reachable());
                let (name, confirmed_lost) = (key.name.clone(), is_confirmed_lost(cluster));
                members.push(MemberSnapshot { name, silent: !answers, confirmed_lost });
            }
        });
        doubt(members)
    }

    /// For how long the silence of a cluster has been believed.
    pub(crate) fn silence(&self, cluster: &ForeignCluster, now: Timestamp) -> Silence {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let reachable = told(cluster, ConditionType::Reachable).filter(|found| is_silence(found));
        let Some(reachable) = reachable.filter(|_| self.is_silent(name)) else {
            return Silence::NotRecorded;
        };
        // A time before the cluster was there is of a hub whose clock was wrong.
        let made = cluster.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |made| made.0);
        let mut since = reachable.last_transition_time.0.max(made);
        if !is_confirmed_lost(cluster) {
            if let Some(recorded) = told(cluster, ConditionType::SilenceDoubted) {
                if recorded.status == "True" {
                    return Silence::Doubted;
                }
                since = since.max(recorded.last_transition_time.0);
            }
            if self.doubt().is_some_and(|doubt| doubt.is_about(name)) {
                return Silence::Doubted;
            }
        }
        let known = self.member(name).map_or(Duration::ZERO, |member| member.health.silent_for());
        // A time that is still to come is of a hub whose clock was wrong, too.
        let lasted = Duration::try_from(now.duration_since(since)).unwrap_or(known);
        Silence::Believed { lasted, known }
    }
}

/// What is told of the silence of a ForeignCluster: that it is doubted, or that it is not any more.
pub(super) fn finding(fleet: &Fleet, cluster: &ForeignCluster, silent: bool) -> Option<Finding> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let doubt = fleet.doubt().filter(|doubt| silent && doubt.is_about(name));
    let (status, reason, message) = match doubt {
        Some(doubt) => (ConditionStatus::True, Reason::ManyMembersSilent, doubt.message()),
        None => {
            let status = undoubted(cluster, silent)?;
            let (reason, message) = match silent {
                true => (Reason::SilenceBelieved, "its silence is believed: replaceAfter counts from now on"),
                false => (Reason::ClusterReachable, "it answers"),
            };
            (status, reason, message.to_owned())
        }
    };
    Some(Finding::new(ConditionType::SilenceDoubted, status, reason, message))
}

/// The status of the condition `SilenceDoubted` of a cluster whose silence is not doubted; nothing if it needs none. A
/// silence that begins where `Reachable` was `Unknown` gets another status than the recorded one, which has the time with
/// it from which `replaceAfter` counts.
fn undoubted(cluster: &ForeignCluster, silent: bool) -> Option<ConditionStatus> {
    // `False` is another cluster that answers: the time moves by itself when silence follows.
    let begins = told(cluster, ConditionType::Reachable)
        .is_some_and(|found| silent && found.status == "Unknown" && !is_silence(found));
    let recorded = told(cluster, ConditionType::SilenceDoubted).map(|found| found.status.as_str());
    match (recorded, silent, begins) {
        (Some("False"), true, true) | (Some("Unknown"), true, false) => Some(ConditionStatus::Unknown),
        (None, _, false) => None,
        _ => Some(ConditionStatus::False),
    }
}

/// Whether a condition `Reachable` says that the API server does not answer.
fn is_silence(reachable: &Condition) -> bool {
    reachable.status != "True" && reachable.reason == Reason::Unreachable.as_str()
}

fn told(cluster: &ForeignCluster, type_: ConditionType) -> Option<&Condition> {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice());
    conditions::find(conditions.unwrap_or_default(), type_)
}

/// Whether a cluster tells anything about the network of the hub: one that leaves may be switched off, and the hub itself
/// answers whatever becomes of its network.
fn counts(cluster: &ForeignCluster) -> bool {
    // One that has never answered is still being built, or was never right.
    let was_seen = cluster.status.as_ref().is_some_and(|status| status.last_seen.is_some());
    was_seen && cluster.metadata.deletion_timestamp.is_none() && cluster.spec.type_ != ClusterType::Local
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A cluster with the reason of its condition Reachable, and the status of its condition SilenceDoubted.
    fn cluster(reason: Reason, doubted: Option<&str>) -> ForeignCluster {
        let status = match reason {
            Reason::ClusterReachable => "True",
            Reason::ClusterIdentityMismatch => "False",
            _ => "Unknown",
        };
        let condition = |type_: &str, status: &str, reason: &str| {
            let time = "2026-01-01T00:00:00Z";
            json!({
                "type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": time,
            })
        };
        let mut conditions = vec![condition("Reachable", status, reason.as_str())];
        conditions.extend(
            doubted.map(|status| condition("SilenceDoubted", status, Reason::SilenceBelieved.as_str())),
        );
        let mut cluster: ForeignCluster = serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "c2"},
            "spec": {"type": "Remote", "clusterIdentity": {"clusterID": "c2", "clusterName": "c2"}},
        }))
        .unwrap();
        cluster.status = serde_json::from_value(json!({ "conditions": conditions })).unwrap();
        cluster
    }

    #[test]
    fn a_silence_on_record_replaces_nothing_before_this_process_knows_of_it() {
        let seconds = Duration::from_secs;
        let left = |lasted, known| {
            Silence::Believed { lasted: seconds(lasted), known: seconds(known) }.left(seconds(300))
        };
        assert_eq!(left(0, 0), Some(seconds(300)));
        assert_eq!(left(7200, 9), Some(seconds(51)), "a clock that was wrong may have written it");
        assert_eq!(left(7200, 60), Some(seconds(0)));
        assert_eq!(left(250, 250), Some(seconds(50)));
        let hasty = Silence::Believed { lasted: seconds(9), known: seconds(9) };
        assert_eq!(hasty.left(seconds(10)), Some(seconds(1)), "nobody waits longer than was asked for");
    }

    #[test]
    fn a_silence_that_follows_a_lost_connection_has_its_own_time_on_record() {
        use Reason::{ClusterIdentityMismatch, ClusterReachable, ConnectionFailed, Unreachable};
        let told = |reason, doubted, silent| undoubted(&cluster(reason, doubted), silent);
        assert_eq!(told(ClusterReachable, None, true), None, "the time of the condition Reachable counts");
        assert_eq!(told(ConnectionFailed, None, true), Some(ConditionStatus::False));
        assert_eq!(told(ConnectionFailed, Some("False"), true), Some(ConditionStatus::Unknown), "a new time");
        assert_eq!(told(ConnectionFailed, Some("Unknown"), true), Some(ConditionStatus::False), "a new time");
        assert_eq!(told(Unreachable, Some("Unknown"), true), Some(ConditionStatus::Unknown), "the same time");
        assert_eq!(
            told(Unreachable, Some("True"), true),
            Some(ConditionStatus::False),
            "the doubt has ended"
        );
        assert_eq!(told(Unreachable, Some("Unknown"), false), Some(ConditionStatus::False));
        assert_eq!(told(Unreachable, None, false), None);
        assert_eq!(told(ClusterIdentityMismatch, None, true), None);
        assert_eq!(
            told(ClusterIdentityMismatch, Some("False"), true),
            Some(ConditionStatus::False),
            "no new time"
        );
    }
}

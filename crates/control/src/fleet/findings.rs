//! What is told of a member in the conditions and events of its ForeignCluster.

use super::identity::Identity;
use super::{Member, Readable};
use portolan_api::ForeignClusterStatus;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_runtime::EventType;

/// What a member that is connected shows; nothing while it has neither answered nor been silent for long.
pub(super) fn connected(
    member: &Member,
    identity: Option<&Identity>,
    expected: &str,
) -> Option<Vec<Finding>> {
    if let Some(found) = identity.and_then(Identity::other) {
        let message = format!(
            "another cluster answers: its namespace kube-system has uid {found}, spec.clusterIdentity.clusterID is \
             {expected}; nothing is placed there. Let the credential lead to the right cluster, or delete this \
             ForeignCluster and make the other one a member by `portolan peer`"
        );
        return Some(both(ConditionStatus::False, Reason::ClusterIdentityMismatch, message));
    }
    match (member.health.unreachable_reason(), member.health.version()) {
        (Some(problem), _) if member.health.is_refused() => {
            let message = format!(
                "its API server refuses the hub's credential: {problem}. What runs there goes on; `portolan peer` grants a \
                 new one"
            );
            Some(both(ConditionStatus::Unknown, Reason::CredentialRefused, message))
        }
        (Some(problem), _) => {
            let message = format!("its API server does not answer: {problem}");
            Some(both(ConditionStatus::Unknown, Reason::Unreachable, message))
        }
        (None, Some(version)) => {
            let message = format!("its API server answers: {version}");
            let reachable = Finding::new(
                ConditionType::Reachable,
                ConditionStatus::True,
                Reason::ClusterReachable,
                message.clone(),
            );
            Some(match member.all_readable() {
                Readable::Known => match member.missing_rights.text() {
                    Some(missing) => {
                        let ready = ConditionType::Ready;
                        vec![
                            Finding::new(ready, ConditionStatus::False, Reason::RightsMissing, missing),
                            reachable,
                        ]
                    }
                    None => both(ConditionStatus::True, Reason::ClusterReachable, message),
                },
                // What is on record stands until the member is known, or known not to be.
                Readable::Joining => vec![reachable],
                Readable::Not(problem) => {
                    let ready = Finding::new(
                        ConditionType::Ready,
                        ConditionStatus::False,
                        Reason::ListFailed,
                        problem,
                    );
                    vec![ready, reachable]
                }
            })
        }
        (None, None) => None,
    }
}

/// What is told of a member before it was heard for the first time.
pub(super) fn not_heard_yet() -> Vec<Finding> {
    both(ConditionStatus::Unknown, Reason::ProbePending, "it has not answered yet".to_owned())
}

/// What is told of a cluster that no connection can be made to: whether it could be reached is not known.
pub(super) fn cannot_connect(message: String) -> Vec<Finding> {
    let reachable = Finding::new(
        ConditionType::Reachable,
        ConditionStatus::Unknown,
        Reason::ConnectionFailed,
        "no connection can be made to it: see the condition Ready",
    );
    vec![
        Finding::new(ConditionType::Ready, ConditionStatus::False, Reason::ConnectionFailed, message),
        reachable,
    ]
}

fn both(status: ConditionStatus, reason: Reason, message: String) -> Vec<Finding> {
    [ConditionType::Ready, ConditionType::Reachable]
        .into_iter()
        .map(|type_| Finding::new(type_, status, reason, message.clone()))
        .collect()
}

/// An event that a change of status is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct News {
    pub(super) weight: EventType,
    pub(super) reason: Reason,
    pub(super) note: String,
}

/// What users are told of the change from one status to the next. The time is part of it, since the same may happen again.
pub(super) fn news(before: &ForeignClusterStatus, after: &ForeignClusterStatus) -> Vec<News> {
    let doubted = alarm(ConditionType::SilenceDoubted, Reason::SilenceDoubted, before, after);
    let orphaned = alarm(ConditionType::Orphaned, Reason::Orphaned, before, after);
    ready_news(before, after).into_iter().chain(doubted).chain(orphaned).collect()
}

/// That a condition has come true which calls for attention.
fn alarm(
    type_: ConditionType,
    reason: Reason,
    before: &ForeignClusterStatus,
    after: &ForeignClusterStatus,
) -> Option<News> {
    let is = conditions::find(&after.conditions, type_).filter(|found| found.status == "True")?;
    if conditions::is_true(&before.conditions, type_) {
        return None;
    }
    let note = format!("{} (since {})", is.message, is.last_transition_time.0);
    Some(News { weight: EventType::Warning, reason, note })
}

fn ready_news(before: &ForeignClusterStatus, after: &ForeignClusterStatus) -> Option<News> {
    let was = conditions::find(&before.conditions, ConditionType::Ready);
    let is = conditions::find(&after.conditions, ConditionType::Ready)?;
    if was.is_some_and(|was| was.reason == is.reason && was.status == is.status) {
        return None;
    }
    let (weight, reason) = match (is.status.as_str(), Reason::parse(&is.reason)?) {
        ("True", _) if before.last_seen.is_none() => (EventType::Normal, Reason::Joined),
        ("True", _) => (EventType::Normal, Reason::Reachable),
        (_, Reason::ProbePending) => return None,
        (_, other) => (EventType::Warning, other),
    };
    let note = format!("{} (since {})", is.message, is.last_transition_time.0);
    Some(News { weight, reason, note })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn after(before: &ForeignClusterStatus, findings: Vec<Finding>, second: i64) -> ForeignClusterStatus {
        let mut status = before.clone();
        let now = Timestamp::from_second(second).unwrap();
        for finding in findings {
            conditions::set(&mut status.conditions, finding, Some(1), now);
        }
        status
    }

    #[test]
    fn what_changes_is_told_once_and_again_when_it_comes_again() {
        let unknown = ForeignClusterStatus::default();
        let new = after(&unknown, not_heard_yet(), 1);
        assert_eq!(news(&unknown, &new), [], "nothing has happened yet");
        let mut joined = after(&new, both(ConditionStatus::True, Reason::ClusterReachable, "v1".into()), 2);
        assert_eq!(news(&new, &joined)[0].reason, Reason::Joined);
        joined.last_seen = Some(Time(Timestamp::from_second(2).unwrap()));
        let silent =
            after(&joined, both(ConditionStatus::Unknown, Reason::Unreachable, "no answer".into()), 3);
        let told = news(&joined, &silent).remove(0);
        assert_eq!((told.weight, told.reason), (EventType::Warning, Reason::Unreachable));
        let back = after(&silent, both(ConditionStatus::True, Reason::ClusterReachable, "v1".into()), 4);
        assert_eq!(news(&silent, &back)[0].reason, Reason::Reachable);
        assert_eq!(news(&back, &back), []);
        let again = after(&back, both(ConditionStatus::Unknown, Reason::Unreachable, "no answer".into()), 5);
        assert_ne!(news(&back, &again)[0].note, told.note, "it is told with its time");
    }

    #[test]
    fn a_cluster_without_a_connection_is_not_called_reachable() {
        let joined = after(
            &ForeignClusterStatus::default(),
            both(ConditionStatus::True, Reason::ClusterReachable, "v1".into()),
            1,
        );
        let refused = after(&joined, cannot_connect("Secret portolan/x has no key kubeconfig".into()), 2);
        assert!(!conditions::is_true(&refused.conditions, ConditionType::Reachable));
        let ready = conditions::find(&refused.conditions, ConditionType::Ready).unwrap();
        assert_eq!(
            (ready.status.as_str(), ready.reason.as_str()),
            ("False", Reason::ConnectionFailed.as_str())
        );
    }
}

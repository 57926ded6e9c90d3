//! The conditions that a Deployment has too: Available and Progressing. Pure, from what the members hold.

use super::replace::is_replaced;
use portolan_api::Reason;
use portolan_api::conditions::{ConditionStatus, ConditionType, Finding};
use portolan_api::placement::{PlacementState, PlacementStatus};
use serde_json::Value;

/// What a rolling update may leave unavailable unless the strategy says otherwise, in percent.
const MAX_UNAVAILABLE: i64 = 25;

/// Whether enough replicas are available, and whether the workload is on its way to what was asked for.
pub(super) fn findings(
    placements: &[PlacementStatus],
    pending: i32,
    paused: bool,
    strategy: Option<&Value>,
) -> [Finding; 2] {
    let wanted = || placements.iter().filter(|each| each.replicas > 0 && !is_replaced(each));
    let least: i32 = wanted().map(|each| minimum(each.replicas, strategy)).sum();
    let available: i32 = wanted().map(|each| each.available_replicas.min(each.replicas)).sum();
    let missing: i32 =
        wanted().map(|each| (minimum(each.replicas, strategy) - each.available_replicas).max(0)).sum();
    // Until a move is done, the copies that are left serve.
    let left = placements.iter().filter(|each| each.state == PlacementState::Removing);
    let short = missing > left.map(|each| each.available_replicas).sum();
    let silent = wanted().any(|each| each.state == PlacementState::Unknown);
    let told = format!("{available} replicas are available, at least {least} must be");
    let available = |status: ConditionStatus, reason| {
        Finding::new(ConditionType::Available, status, reason, told.clone())
    };
    let available = if pending > 0 {
        let message = format!("{told}; {pending} more have no cluster");
        Finding::new(ConditionType::Available, false, Reason::Pending, message)
    } else if silent {
        available(ConditionStatus::Unknown, Reason::Unreachable)
    } else if short {
        available(ConditionStatus::False, Reason::MinimumReplicasUnavailable)
    } else {
        available(ConditionStatus::True, Reason::MinimumReplicasAvailable)
    };
    let progressing = |holds: bool, reason, message: &str| {
        Finding::new(ConditionType::Progressing, holds, reason, message.to_owned())
    };
    let failed = placements.iter().find(|each| each.state == PlacementState::Failed);
    let done = placements.iter().all(|each| each.state == PlacementState::Ready || is_replaced(each));
    let progressing = if paused {
        progressing(false, Reason::Paused, "spec.paused is true: nothing is placed, moved or rolled out")
    } else if let Some(failed) = failed {
        let why = failed.message.as_deref().unwrap_or_default();
        progressing(false, Reason::Failed, &format!("{}: {why}", failed.cluster))
    } else if pending > 0 {
        progressing(false, Reason::Pending, "replicas wait for a cluster with room")
    } else if done {
        progressing(
            true,
            Reason::RolloutComplete,
            "every cluster runs the present template with all its replicas",
        )
    } else {
        progressing(true, Reason::RollingOut, "replicas are being started, moved or replaced")
    };
    [available, progressing]
}

/// How many of these replicas must be available, by the rule of a Deployment.
fn minimum(replicas: i32, strategy: Option<&Value>) -> i32 {
    if strategy.is_some_and(|strategy| strategy["type"] == "Recreate") {
        return replicas;
    }
    let given = strategy.map(|strategy| &strategy["rollingUpdate"]["maxUnavailable"]);
    let share = |percent: i64| i64::from(replicas) * percent / 100;
    let percent = |text: &str| text.strip_suffix('%').and_then(|number| number.parse().ok());
    let may_miss = match given {
        Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
        Some(Value::String(text)) => share(percent(text).unwrap_or(MAX_UNAVAILABLE)),
        _ => share(MAX_UNAVAILABLE),
    };
    replicas - i32::try_from(may_miss.clamp(0, i64::from(replicas))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn in_cluster(replicas: i32, available: i32, state: PlacementState) -> PlacementStatus {
        PlacementStatus {
            cluster: "c2".into(),
            replicas,
            available_replicas: available,
            state,
            ..PlacementStatus::default()
        }
    }

    fn reasons(placements: &[PlacementStatus], pending: i32, paused: bool) -> [(&'static str, Reason); 2] {
        findings(placements, pending, paused, None).map(|each| (each.status.as_str(), each.reason))
    }

    #[test]
    fn available_means_what_it_means_for_a_deployment() {
        let (ready, applied) = (PlacementState::Ready, PlacementState::Applied);
        let all = [in_cluster(4, 4, ready)];
        assert_eq!(reasons(&all, 0, false)[0], ("True", Reason::MinimumReplicasAvailable));
        assert_eq!(reasons(&all, 0, false)[1], ("True", Reason::RolloutComplete));
        let rolling = [in_cluster(4, 3, applied)];
        assert_eq!(reasons(&rolling, 0, false)[0].0, "True", "a quarter may be missing");
        assert_eq!(reasons(&rolling, 0, false)[1], ("True", Reason::RollingOut));
        let short = [in_cluster(4, 4, ready), in_cluster(4, 2, applied)];
        assert_eq!(reasons(&short, 0, false)[0], ("False", Reason::MinimumReplicasUnavailable));
        assert_eq!(reasons(&all, 1, false), [("False", Reason::Pending), ("False", Reason::Pending)]);
        assert_eq!(reasons(&all, 0, true)[1], ("False", Reason::Paused));
        let moving = [in_cluster(4, 0, applied), in_cluster(0, 4, PlacementState::Removing)];
        assert_eq!(reasons(&moving, 0, false)[0].0, "True", "the old copy serves until the new one does");
        let silent = [in_cluster(4, 4, PlacementState::Unknown)];
        assert_eq!(reasons(&silent, 0, false)[0], ("Unknown", Reason::Unreachable));
    }

    #[test]
    fn the_strategy_says_how_many_may_be_missing() {
        let may_miss = |value: Value| json!({"rollingUpdate": {"maxUnavailable": value}});
        assert_eq!(minimum(3, None), 3, "a quarter of three is none");
        assert_eq!(minimum(10, Some(&may_miss(json!("50%")))), 5);
        assert_eq!(minimum(10, Some(&may_miss(json!(2)))), 8);
        assert_eq!(minimum(10, Some(&json!({"type": "Recreate"}))), 10);
    }
}

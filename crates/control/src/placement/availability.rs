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
    let sum = |counts: &mut dyn Iterator<Item = i32>| counts.fold(0, i32::saturating_add);
    let missing = |each: &PlacementStatus| {
        (minimum(each.replicas, strategy) - each.available_replicas.min(each.replicas)).max(0)
    };
    let asked = sum(&mut wanted().map(|each| each.replicas));
    let least = sum(&mut wanted().map(|each| minimum(each.replicas, strategy)));
    let in_place = sum(&mut wanted().map(|each| each.available_replicas.min(each.replicas)));
    // Until a move is done, the replicas that are left behind serve.
    let surplus = sum(&mut placements.iter().map(surplus));
    let short = sum(&mut wanted().map(missing)) > surplus;
    let silent = wanted().any(|each| each.state == PlacementState::Unknown);
    let available = in_place.saturating_add(surplus).min(asked);
    let mut told = format!("{available} replicas are available, at least {least} must be");
    if let Some(each) = wanted().find(|each| short && missing(each) > 0) {
        let (cluster, least) = (&each.cluster, minimum(each.replicas, strategy));
        told.push_str(&format!("; {cluster} has {} of at least {least}", each.available_replicas));
    }
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

/// How many replicas serve in a cluster beyond those that it is to hold: they are to run elsewhere, and do not yet.
fn surplus(placement: &PlacementStatus) -> i32 {
    match placement.state {
        PlacementState::Unknown => 0,
        _ => (placement.available_replicas - placement.replicas).max(0),
    }
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
        let reduced = [in_cluster(4, 0, applied), in_cluster(2, 6, applied)];
        assert_eq!(reasons(&reduced, 0, false)[0].0, "True", "so do the replicas that are to go");
        let silent = [in_cluster(4, 4, PlacementState::Unknown)];
        assert_eq!(reasons(&silent, 0, false)[0], ("Unknown", Reason::Unreachable));
    }

    #[test]
    fn the_sentence_agrees_with_the_status() {
        let (ready, applied) = (PlacementState::Ready, PlacementState::Applied);
        let told = |placements: &[PlacementStatus]| {
            let [available, _] = findings(placements, 0, false, None);
            format!("{}: {}", available.status.as_str(), available.message)
        };
        let moving = [in_cluster(3, 0, applied), in_cluster(0, 3, PlacementState::Removing)];
        assert_eq!(told(&moving), "True: 3 replicas are available, at least 3 must be");
        let half = [in_cluster(3, 2, applied), in_cluster(0, 3, PlacementState::Removing)];
        assert_eq!(told(&half), "True: 3 replicas are available, at least 3 must be");
        let reduced = [in_cluster(4, 0, applied), in_cluster(2, 6, applied)];
        assert_eq!(told(&reduced), "True: 6 replicas are available, at least 5 must be");
        let short = [in_cluster(4, 4, ready), in_cluster(4, 2, applied)];
        assert_eq!(
            told(&short),
            "False: 6 replicas are available, at least 6 must be; c2 has 2 of at least 3"
        );
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

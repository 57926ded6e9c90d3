//! The conditions of an autoscaler, with the reasons of the HorizontalPodAutoscaler.

use super::assess::Assessment;
use super::metric::unknown;
use super::schedule::Minimum;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use portolan_api::Reason;
use portolan_api::autoscaling::MetricType;
use portolan_api::conditions::{ConditionStatus, ConditionType, Finding};

/// How many clusters a message names.
const NAMED_AT_MOST: usize = 4;

/// The replicas of the workload were changed.
pub(super) fn updated(replicas: u32) -> Finding {
    let message = format!("the autoscaler set the replicas of its target to {replicas}");
    Finding::new(ConditionType::AbleToScale, true, Reason::SucceededRescale, message)
}

/// The replicas of the workload could not be changed.
#[must_use]
pub fn update_failed(error: &str) -> Vec<Finding> {
    let message = format!("the autoscaler could not change the replicas of its target: {error}");
    let of = |type_: &ConditionType| Finding::new(*type_, false, Reason::FailedUpdateScale, message.clone());
    UPDATED.iter().map(of).collect()
}

/// The conditions that tell whether replicas can be changed.
const UPDATED: [ConditionType; 2] = [ConditionType::Ready, ConditionType::AbleToScale];

/// Whether a finding says less than a change that was refused before, and is tried again.
pub(super) fn is_outdone(finding: &Finding, conditions: &[Condition]) -> bool {
    let able = conditions.iter().find(|each| each.type_ == ConditionType::AbleToScale.as_str());
    UPDATED.contains(&finding.type_)
        && able.is_some_and(|able| able.reason == Reason::FailedUpdateScale.as_ref())
}

/// Whether the windows hold a change back.
pub(super) fn able_to_scale(current: u32, desired: u32, stabilized: u32) -> Finding {
    let (reason, message) = if stabilized == desired {
        (Reason::ReadyForNewScale, "recommended size matches current size")
    } else if desired >= current {
        (
            Reason::ScaleUpStabilized,
            "recent recommendations were lower than current one, applying the lowest recent recommendation",
        )
    } else {
        (
            Reason::ScaleDownStabilized,
            "recent recommendations were higher than current one, applying the highest recent recommendation",
        )
    };
    Finding::new(ConditionType::AbleToScale, true, reason, message)
}

/// The target was read, and that is all that can be told.
pub(super) fn target_found() -> Finding {
    let message = "the autoscaler was able to get the target's current scale";
    Finding::new(ConditionType::AbleToScale, true, Reason::SucceededGetScale, message)
}

/// The target has no replicas, and the autoscaler may not give it some.
pub(super) fn disabled() -> Finding {
    let message = "scaling is disabled since the replica count of the target is zero";
    Finding::new(ConditionType::ScalingActive, false, Reason::ScalingDisabled, message)
}

/// Whether the metrics give a number. They do not if a metric is known nowhere and fewer replicas would be enough for the
/// others.
pub(super) fn scaling_active(assessment: &Assessment<'_>, grows: bool) -> Finding {
    let inactive = |reason, message| Finding::new(ConditionType::ScalingActive, false, reason, message);
    let problem = assessment.unknown_everywhere().filter(|_| !grows || !assessment.is_active());
    if let Some(problem) = problem {
        let message = format!("the autoscaler was unable to compute the replica count: {}", problem.message);
        return inactive(problem.reason, message);
    }
    let Some((source, _)) = assessment.leading().filter(|_| assessment.is_active()) else {
        // No cluster answers, or none holds replicas.
        let told: Vec<String> = notes(assessment);
        let why = if told.is_empty() { "no replicas are placed".to_owned() } else { told.join("; ") };
        let message = format!("the autoscaler was unable to compute the replica count: {why}");
        let type_ = assessment.sources.values().next().map_or(MetricType::Resource, |source| source.type_);
        return Finding::new(ConditionType::ScalingActive, ConditionStatus::Unknown, unknown(type_), message);
    };
    let mut message = format!(
        "the autoscaler was able to successfully calculate a replica count from {}",
        source.describe()
    );
    for note in notes(assessment) {
        message.push_str("; ");
        message.push_str(&note);
    }
    Finding::new(ConditionType::ScalingActive, true, Reason::ValidMetricFound, message)
}

/// What is to be told of single clusters.
fn notes(assessment: &Assessment<'_>) -> Vec<String> {
    let told = assessment.wishes.iter().filter_map(|wish| Some((&wish.cluster, wish.message.as_ref()?)));
    let mut notes: Vec<String> = told.map(|(cluster, message)| format!("{cluster}: {message}")).collect();
    if notes.len() > NAMED_AT_MOST {
        let more = notes.len() - NAMED_AT_MOST;
        notes.truncate(NAMED_AT_MOST);
        notes.push(format!("and {more} more clusters"));
    }
    notes
}

/// Whether bounds hold a number back.
pub(super) fn limited(reason: Reason) -> Finding {
    let message = match reason {
        Reason::ScaleUpLimit => "the desired replica count is increasing faster than the maximum scale rate",
        Reason::ScaleDownLimit => {
            "the desired replica count is decreasing faster than the maximum scale rate"
        }
        Reason::TooManyReplicas => "the desired replica count is more than the maximum replica count",
        Reason::TooFewReplicas => "the desired replica count is less than the minimum replica count",
        _ => "the desired count is within the acceptable range",
    };
    Finding::new(ConditionType::ScalingLimited, reason != Reason::DesiredWithinRange, reason, message)
}

/// Whether all is in order, given whether the autoscaler is active.
pub(super) fn ready(active: &Finding, minimum: &Minimum) -> Finding {
    if active.status != ConditionStatus::True {
        return Finding { type_: ConditionType::Ready, ..active.clone() };
    }
    if !minimum.invalid.is_empty() {
        let told: Vec<String> = minimum.invalid.iter().map(ToString::to_string).collect();
        return Finding::new(ConditionType::Ready, false, Reason::InvalidSchedule, told.join("; "));
    }
    Finding::new(ConditionType::Ready, true, Reason::Ready, active.message.clone())
}

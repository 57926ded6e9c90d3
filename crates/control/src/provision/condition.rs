//! What the conditions of Cluster API say.
//!
//! Infrastructure providers choose their own reasons, and Cluster API mirrors them; its contract v1beta2 has no other field
//! for a failure. A condition that is not met may be on its way or may have failed, and only the word tells: it is read once,
//! here, into an [`Unmet`]. A word that is not known to name a failure is taken for progress: then `spec.provisionTimeout`
//! decides, and nothing that works is given up.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use portolan_core::provision::Failure;
use portolan_runtime::foreign_text;
use serde::{Deserialize, Serialize};

/// Parts of reasons that name a failure, in small letters and without separators: some providers pass on words of their
/// cloud, such as `ZONE_RESOURCE_POOL_EXHAUSTED`.
const FAILURES: &[&str] = &[
    "denied",
    "error",
    "exceeded",
    "exhausted",
    "fail",
    "forbidden",
    "insufficient",
    "invalid",
    "nocapacity",
    "notfound",
    "outofcapacity",
    "quota",
    "refused",
    "rejected",
    "skunotavailable",
    "terminated",
    "unauthorized",
    "unsupported",
];

/// What it means that a condition is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unmet {
    /// It will be met, as far as is known.
    UnderWay,
    /// It will not be met by itself.
    Failed,
}

/// A condition, as far as it is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ApiCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: String,
    message: String,
    last_transition_time: Option<Time>,
}

impl ApiCondition {
    fn find<'a>(all: &'a [Self], type_: &str) -> Option<&'a Self> {
        all.iter().find(|each| each.type_ == type_)
    }

    /// Whether a condition holds.
    pub(super) fn is_true(all: &[Self], type_: &str) -> bool {
        Self::find(all, type_).is_some_and(|each| each.status == "True")
    }

    /// Whether a condition is known not to hold.
    pub(super) fn is_false(all: &[Self], type_: &str) -> bool {
        Self::find(all, type_).is_some_and(|each| each.status == "False")
    }

    /// Since when a condition holds, if it does.
    pub(super) fn true_since(all: &[Self], type_: &str) -> Option<Timestamp> {
        let found = Self::find(all, type_).filter(|each| each.status == "True")?;
        Some(found.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0))
    }

    /// Since when a condition has been there that does not hold, if that is known.
    pub(super) fn not_true_since(all: &[Self], type_: &str) -> Option<Timestamp> {
        let found = Self::find(all, type_).filter(|each| each.status != "True")?;
        found.last_transition_time.as_ref().map(|time| time.0)
    }

    /// What has failed, in the words of the first of these conditions that names a failure.
    pub(super) fn failure(all: &[Self], types: &[&str]) -> Option<Failure> {
        let failed = |each: &&Self| each.status == "False" && unmet(&each.reason) == Unmet::Failed;
        types.iter().filter_map(|type_| Self::find(all, type_)).find(failed).map(Self::words)
    }

    /// How far it is, in the words of the first of these conditions that does not hold.
    pub(super) fn progress(all: &[Self], types: &[&str]) -> Option<Failure> {
        types
            .iter()
            .filter_map(|type_| Self::find(all, type_))
            .find(|each| each.status != "True")
            .map(Self::words)
    }

    fn words(&self) -> Failure {
        let message = match self.message.as_str() {
            "" => format!("condition {} is {}", self.type_, self.status),
            message => foreign_text(message),
        };
        Failure { reason: foreign_text(&self.reason), message }
    }
}

fn unmet(reason: &str) -> Unmet {
    let plain: String = reason
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let failed = FAILURES.iter().any(|part| plain.contains(part));
    if failed { Unmet::Failed } else { Unmet::UnderWay }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(type_: &str, status: &str, reason: &str) -> ApiCondition {
        ApiCondition {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            ..ApiCondition::default()
        }
    }

    #[test]
    fn a_reason_that_names_a_failure_is_one_and_any_other_is_progress() {
        for failed in [
            "QuotaExceeded",
            "InstanceCreateFailed",
            "ReconcileFailed",
            "InsufficientCapacity",
            "OutOfCapacity",
            "ImageNotFound",
            "InstanceTerminated",
            "VMProvisionFailed",
            "AllocationFailed",
            "SkuNotAvailable",
            "ZONE_RESOURCE_POOL_EXHAUSTED",
            "quota-exceeded",
        ] {
            let all = [condition("InfrastructureReady", "False", failed)];
            assert_eq!(ApiCondition::failure(&all, &["InfrastructureReady"]).unwrap().reason, failed);
        }
        for working in [
            "NotReady",
            "NotAvailable",
            "NotInitialized",
            "WaitingForControlPlane",
            "WaitingForBootstrapData",
            "Provisioning",
            "InstanceNotReady",
            "ScalingUp",
            "SomethingNew",
        ] {
            let all = [condition("InfrastructureReady", "False", working)];
            assert_eq!(ApiCondition::failure(&all, &["InfrastructureReady"]), None, "{working}");
            assert_eq!(ApiCondition::progress(&all, &["InfrastructureReady"]).unwrap().reason, working);
        }
        let unknown = [condition("InfrastructureReady", "Unknown", "QuotaExceeded")];
        assert_eq!(
            ApiCondition::failure(&unknown, &["InfrastructureReady"]),
            None,
            "it is not known to have failed"
        );
    }
}

//! Autoscalers that would scale the same workload.

use portolan_api::Reason;
use portolan_api::conditions::{ConditionType, Finding};

/// Several autoscalers of one workload: none of them may scale it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The workload, such as MultiClusterDeployment shop/web.
    pub workload: String,
    /// The names of all its autoscalers, in order.
    pub autoscalers: Vec<String>,
}

impl Conflict {
    /// The conflict between all autoscalers of a workload; none if there is only one.
    #[must_use]
    pub fn between(workload: String, mut autoscalers: Vec<String>) -> Option<Self> {
        autoscalers.sort();
        (autoscalers.len() > 1).then_some(Self { workload, autoscalers })
    }

    /// What users are told.
    #[must_use]
    pub fn message(&self) -> String {
        let (last, others) =
            self.autoscalers.split_last().map_or(("", &[][..]), |(last, others)| (last, others));
        format!(
            "{} is the scaleTargetRef of {} autoscalers, {} and {last}: none of them scales it. Delete all but one",
            self.workload,
            self.autoscalers.len(),
            others.join(", "),
        )
    }

    /// The conditions of each of the autoscalers.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let types = [ConditionType::Ready, ConditionType::ScalingActive];
        types.map(|type_| Finding::new(type_, false, Reason::AmbiguousTarget, self.message())).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_share_a_target_are_refused_with_all_names() {
        let between = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Conflict::between("MultiClusterDeployment shop/web".to_owned(), names)
        };
        assert_eq!(between(&["day"]), None);
        let conflict = between(&["night", "day"]).unwrap();
        assert!(conflict.findings().iter().all(|finding| finding.reason == Reason::AmbiguousTarget));
        assert_eq!(
            conflict.message(),
            "MultiClusterDeployment shop/web is the scaleTargetRef of 2 autoscalers, day and night: none of them scales \
             it. Delete all but one"
        );
    }
}

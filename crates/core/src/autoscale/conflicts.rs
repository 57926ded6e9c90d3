//! Autoscalers that would scale the same workload.

use portolan_api::Reason;
use portolan_api::conditions::{ConditionType, Finding};
use std::collections::BTreeMap;

/// An autoscaler and what it scales, in one namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AutoscalerTarget {
    /// The namespace of both.
    pub namespace: String,
    /// The name of the autoscaler.
    pub name: String,
    /// The kind of the workload.
    pub kind: String,
    /// The name of the workload.
    pub target: String,
}

/// Several autoscalers of one workload: none of them may scale it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The workload, such as MultiClusterDeployment shop/web.
    pub workload: String,
    /// The names of all its autoscalers, in order.
    pub autoscalers: Vec<String>,
}

impl Conflict {
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

/// The conflicts of all autoscalers that are in one, by namespace and name.
#[must_use]
pub fn conflicts(
    autoscalers: impl IntoIterator<Item = AutoscalerTarget>,
) -> BTreeMap<(String, String), Conflict> {
    let mut by_target: BTreeMap<(String, String, String), Vec<String>> = BTreeMap::new();
    for each in autoscalers {
        by_target.entry((each.namespace, each.kind, each.target)).or_default().push(each.name);
    }
    let mut found = BTreeMap::new();
    for ((namespace, kind, target), mut names) in by_target {
        names.sort();
        names.dedup();
        if names.len() < 2 {
            continue;
        }
        let conflict =
            Conflict { workload: format!("{kind} {namespace}/{target}"), autoscalers: names.clone() };
        found.extend(names.into_iter().map(|name| ((namespace.clone(), name), conflict.clone())));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn autoscaler(namespace: &str, name: &str, target: &str) -> AutoscalerTarget {
        let kind = "MultiClusterDeployment".to_owned();
        AutoscalerTarget { namespace: namespace.into(), name: name.into(), kind, target: target.into() }
    }

    #[test]
    fn all_that_share_a_target_are_refused_with_all_names() {
        let found = conflicts([
            autoscaler("shop", "night", "web"),
            autoscaler("shop", "day", "web"),
            autoscaler("shop", "other", "api"),
            autoscaler("test", "day", "web"),
        ]);
        let names: Vec<&str> = found.keys().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["day", "night"]);
        assert!(found.keys().all(|(namespace, _)| namespace == "shop"));
        let conflict = found.values().next().unwrap();
        assert!(conflict.findings().iter().all(|finding| finding.reason == Reason::AmbiguousTarget));
        assert_eq!(
            conflict.message(),
            "MultiClusterDeployment shop/web is the scaleTargetRef of 2 autoscalers, day and night: none of them scales \
             it. Delete all but one"
        );
    }

    #[test]
    fn one_autoscaler_is_no_conflict_however_often_it_is_listed() {
        assert!(conflicts([autoscaler("shop", "day", "web"), autoscaler("shop", "day", "web")]).is_empty());
    }
}

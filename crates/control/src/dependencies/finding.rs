//! What a status tells of dependencies.

use super::References;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};

/// Whether ConfigMaps or Secrets were propagated for a workload, or are to be: as long as its condition says so, some may be
/// left.
#[must_use]
pub fn has_dependencies(references: &References, conditions: Option<&[Condition]>) -> bool {
    let told = conditions::find(conditions.unwrap_or_default(), ConditionType::DependenciesReady);
    !references.is_empty() || told.is_some()
}

/// Whether all that a template refers to is there to follow it. Nothing missing is known before the hub has been listed.
#[must_use]
pub fn finding(namespace: &str, references: &References, missing: Option<&References>) -> Finding {
    let found = |status: ConditionStatus, reason, message| {
        Finding::new(ConditionType::DependenciesReady, status, reason, message)
    };
    let Some(missing) = missing else {
        let message = "the ConfigMaps and Secrets of the hub are not listed yet".to_owned();
        return found(ConditionStatus::Unknown, Reason::CacheNotSynced, message);
    };
    let list = |optional: bool| {
        let names = missing.iter().filter(|(_, each)| **each == optional).map(|(each, _)| each.to_string());
        names.collect::<Vec<_>>().join(", ")
    };
    match (list(false).as_str(), list(true).as_str()) {
        ("", "") => {
            let message = format!("{} ConfigMaps and Secrets follow the workload", references.len());
            found(ConditionStatus::True, Reason::DependenciesPropagated, message)
        }
        ("", optional) => {
            let message = format!(
                "what is needed follows; namespace {namespace} of the hub lacks, optional: {optional}"
            );
            found(ConditionStatus::True, Reason::DependenciesPropagated, message)
        }
        (needed, _) => {
            let message =
                format!("namespace {namespace} of the hub lacks {needed}: pods wait until it is made there");
            found(ConditionStatus::False, Reason::DependencyNotFound, message)
        }
    }
}

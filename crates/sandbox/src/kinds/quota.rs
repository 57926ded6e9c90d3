//! The resources that a ResourceQuota can bound, worded as the API server words it.

use serde_json::{Value, json};

use super::names;
use crate::error::Cause;
use crate::store::at;

/// Names without a domain that are resources of something.
const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "requests.storage",
];

/// Names without a domain that are resources and that no quota takes.
const NOT_BOUND: &[&str] = &["storage"];

const HUGE_PAGES: [&str; 2] = ["hugepages-", "requests.hugepages-"];

/// What is wrong with the words of a quota.
pub(super) fn validate_quota(object: &Value) -> Vec<Cause> {
    let hard = at(object, "/spec/hard").and_then(Value::as_object);
    hard.into_iter().flatten().flat_map(|(word, _)| validate_word(word)).collect()
}

fn validate_word(word: &str) -> Vec<Cause> {
    let field = format!("spec.hard[{word}]");
    let wrong = |told: &str| Cause::invalid(field.clone(), &json!(word), told);
    let unqualified = names::qualified(word);
    if !unqualified.is_empty() {
        return unqualified.iter().map(|told| wrong(told)).collect();
    }
    if word.contains('/') {
        return Vec::new();
    }
    let is_standard = STANDARD.contains(&word) || HUGE_PAGES.iter().any(|prefix| word.starts_with(prefix));
    let mut causes = Vec::new();
    if !is_standard && !NOT_BOUND.contains(&word) {
        causes.push(wrong("must be a standard resource type or fully qualified"));
    }
    if !is_standard {
        causes.push(wrong("must be a standard resource for quota"));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_bounds_what_kubernetes_knows_and_what_has_a_domain() {
        let of = |word: &str| {
            let hard = json!({ word: "1" });
            validate_quota(&json!({ "spec": { "hard": hard } })).len()
        };
        for word in
            ["pods", "requests.cpu", "requests.nvidia.com/gpu", "count/jobs.batch", "requests.hugepages-2Mi"]
        {
            assert_eq!(of(word), 0, "{word}");
        }
        for word in ["requests.gpu", "requests.services", "requests.limits.cpu", "requests.pods"] {
            assert_eq!(of(word), 2, "{word}");
        }
        assert_eq!(of("storage"), 1);
        assert!(of("requests.a/b/c") > 0);
    }
}

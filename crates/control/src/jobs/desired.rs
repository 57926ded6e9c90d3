//! The Job that a member is to hold for its part.

use crate::copies::{Ownership, digest, insert, insert_template_hash, propagated_annotations};
use crate::names::{ATTEMPT_ANNOTATION, FINISHED_BEFORE_ANNOTATION, TEMPLATE_ANNOTATION, WORKLOAD_LABEL};
use portolan_api::MultiClusterJob;
use serde_json::{Value, json};

/// The numbers of one Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) attempt: u32,
    pub(super) finished_before: u32,
    pub(super) completions: u32,
    pub(super) parallelism: u32,
}

/// Builds a Job: the fields as they were written, the numbers of the part, marked as ours. It has no time to live: what
/// it says of itself is needed until the whole job goes.
pub(super) fn desired(job: &MultiClusterJob, numbers: Numbers, ownership: &Ownership<'_>) -> (Value, String) {
    let spec = &job.spec;
    let mut template = spec.template.0.clone();
    insert(&mut template, &["metadata", "labels"], WORKLOAD_LABEL, json!(ownership.workload));
    insert_template_hash(&mut template, &spec.template);
    let mut body = json!({
        "completions": numbers.completions,
        "parallelism": numbers.parallelism,
        "completionMode": spec.completion_mode,
        "suspend": false,
        "template": template,
    });
    let optional = [
        ("backoffLimit", spec.backoff_limit.map(Value::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds.map(Value::from)),
        ("podFailurePolicy", spec.pod_failure_policy.as_ref().map(|policy| policy.0.clone())),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            body[field] = value;
        }
    }
    let mut annotations = propagated_annotations(&job.metadata);
    annotations.extend([
        (ATTEMPT_ANNOTATION.to_owned(), numbers.attempt.to_string()),
        (FINISHED_BEFORE_ANNOTATION.to_owned(), numbers.finished_before.to_string()),
        (TEMPLATE_ANNOTATION.to_owned(), template_digest(job)),
    ]);
    let mut object = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": ownership.owner.name,
            "namespace": ownership.owner.namespace,
            "labels": job.metadata.labels.clone().unwrap_or_default(),
            "annotations": annotations,
        },
        "spec": body,
    });
    let digest = ownership.mark(&mut object);
    (object, digest)
}

/// A digest of everything in the spec that a Job does not let be changed.
pub(super) fn template_digest(job: &MultiClusterJob) -> String {
    let spec = &job.spec;
    let fixed = json!([spec.template.0, spec.pod_failure_policy, spec.backoff_limit]);
    digest(&fixed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_core::capacity::TemplateHash;
    use portolan_runtime::Key;

    fn job() -> MultiClusterJob {
        serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1",
            "kind": "MultiClusterJob",
            "metadata": {"name": "sum", "namespace": "batch", "uid": "u1"},
            "spec": {
                "locations": ["a"],
                "completions": 9,
                "ttlSecondsAfterFinished": 60,
                "podFailurePolicy": {"rules": [{"action": "FailJob", "fieldOfTomorrow": 1}]},
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
            },
        }))
        .unwrap()
    }

    #[test]
    fn asks_for_its_numbers_and_carries_the_rest_as_written() {
        let owner = Key::new("batch", "sum");
        let ownership = Ownership { hub: "h", workload: "u1", owner: &owner, epoch: None };
        let numbers = Numbers { attempt: 2, finished_before: 5, completions: 4, parallelism: 3 };
        let (object, digest) = desired(&job(), numbers, &ownership);
        let spec = &object["spec"];
        assert_eq!((&spec["completions"], &spec["parallelism"]), (&json!(4), &json!(3)));
        assert_eq!(spec["podFailurePolicy"]["rules"][0]["fieldOfTomorrow"], 1);
        assert_eq!(spec["template"]["metadata"]["labels"][WORKLOAD_LABEL], "u1");
        let hash = spec["template"]["metadata"]["labels"][TemplateHash::LABEL].as_str();
        assert!(hash.and_then(TemplateHash::parse).is_some(), "its pods say which template made them");
        assert!(spec.get("ttlSecondsAfterFinished").is_none(), "the hub needs its numbers");
        assert!(spec.get("backoffLimit").is_none(), "what the user leaves open stays open");
        assert_eq!(object["metadata"]["annotations"][ATTEMPT_ANNOTATION], "2");
        assert_eq!(object["metadata"]["annotations"][FINISHED_BEFORE_ANNOTATION], "5");
        let more = Numbers { parallelism: 4, ..numbers };
        assert_ne!(desired(&job(), more, &ownership).1, digest);
    }

    #[test]
    fn the_template_digest_tells_what_a_job_does_not_let_be_changed() {
        let mut other = job();
        other.spec.parallelism = 7;
        assert_eq!(template_digest(&job()), template_digest(&other));
        other.spec.template.0["spec"]["containers"][0]["image"] = json!("j");
        assert_ne!(template_digest(&job()), template_digest(&other));
    }
}

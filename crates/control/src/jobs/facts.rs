//! What is kept of Jobs in members.

use crate::copies::{Copied, copy_event, selector};
use crate::fleet::{CopyMeta, MemberEvent, Needs, Watched, resource};
use crate::names::{ATTEMPT_ANNOTATION, FINISHED_BEFORE_ANNOTATION, TEMPLATE_ANNOTATION};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use portolan_runtime::{Key, bounded_text, foreign_text};

/// The greatest number that is read from an annotation: as many completions as the schema lets anybody ask for. A greater
/// one was not written by a hub.
const NUMBER_AT_MOST: u32 = 1_000_000;

/// The longest reason that is told, in characters; Kubernetes' own are far shorter.
const REASON_AT_MOST: usize = 64;

/// What is known of a Job in a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobFacts {
    /// Whose it is.
    pub meta: CopyMeta,
    /// Which Job for the same part of the work it is: 0 for the first one.
    pub attempt: u32,
    /// How many completions of the part were finished before it was made.
    pub finished_before: u32,
    /// A digest of its pod template as it was written in the hub.
    pub template: Option<String>,
    /// How many completions it is to bring.
    pub completions: u32,
    /// How many pods it runs at the same time at most.
    pub parallelism: u32,
    /// How long it may take.
    pub deadline: Option<i64>,
    /// Whether it is held.
    pub suspended: bool,
    /// How many pods run.
    pub active: u32,
    /// How many pods are ending.
    pub terminating: u32,
    /// Whether pods have finished that its numbers do not have yet.
    pub uncounted: bool,
    /// How many pods have finished successfully.
    pub succeeded: u32,
    /// How many pods have failed.
    pub failed: u32,
    /// Whether it has brought all completions.
    pub complete: bool,
    /// Why it has failed, if it has: reason and message.
    pub failure: Option<(String, String)>,
}

impl JobFacts {
    pub(crate) fn of(job: &Job) -> Self {
        let (spec, status) = (job.spec.clone().unwrap_or_default(), job.status.clone().unwrap_or_default());
        let conditions = status.conditions.unwrap_or_default();
        let holds = |type_: &str| conditions.iter().find(|each| each.type_ == type_ && each.status == "True");
        Self {
            meta: CopyMeta::of(&job.metadata),
            attempt: number(&job.metadata, ATTEMPT_ANNOTATION),
            finished_before: number(&job.metadata, FINISHED_BEFORE_ANNOTATION),
            template: annotation(&job.metadata, TEMPLATE_ANNOTATION).map(|text| foreign_text(text)),
            completions: count(spec.completions),
            parallelism: count(spec.parallelism),
            deadline: spec.active_deadline_seconds,
            suspended: spec.suspend.unwrap_or(false),
            active: count(status.active),
            terminating: count(status.terminating),
            uncounted: status.uncounted_terminated_pods.is_some_and(|pods| {
                [pods.succeeded, pods.failed].into_iter().flatten().any(|pods| !pods.is_empty())
            }),
            succeeded: count(status.succeeded),
            failed: count(status.failed),
            complete: holds("Complete").is_some(),
            failure: holds("Failed").map(|failed| {
                let text = |field: &Option<String>| field.clone().unwrap_or_default();
                (bounded_text(&text(&failed.reason), REASON_AT_MOST), foreign_text(&text(&failed.message)))
            }),
        }
    }

    /// Whether it will bring nothing more: it has ended, or is held, no pod of it is left and all are counted.
    #[must_use]
    pub(crate) fn is_over(&self) -> bool {
        let still = self.active == 0 && self.terminating == 0 && !self.uncounted;
        self.complete || self.failure.is_some() || (self.suspended && still)
    }
}

fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a String> {
    meta.annotations.as_ref().and_then(|all| all.get(name))
}

fn number(meta: &ObjectMeta, name: &str) -> u32 {
    let number = annotation(meta, name).and_then(|text| text.parse().ok());
    number.filter(|number| *number <= NUMBER_AT_MOST).unwrap_or(0)
}

fn count(number: Option<i32>) -> u32 {
    u32::try_from(number.unwrap_or(0)).unwrap_or(0).min(NUMBER_AT_MOST)
}

impl Watched for Job {
    type Facts = JobFacts;

    fn selector(hub: &str) -> Option<String> {
        Some(selector(hub))
    }

    fn facts(self) -> JobFacts {
        JobFacts::of(&self)
    }

    fn in_place(client: Client, place: &str, config: Config) -> (Api<Self>, Config) {
        (Api::namespaced(client, place), config)
    }

    fn event(key: &Key, facts: &JobFacts) -> Option<MemberEvent> {
        Some(copy_event::<Self>(key, facts))
    }
}

impl Copied for Job {
    const NAME: &'static str = "Job";
    const OWNER: &'static str = super::KIND;
    const RUNS_PODS: bool = true;
    const NEEDS: Needs =
        Needs(&[resource::<Node>(), resource::<Pod>(), resource::<Namespace>(), resource::<Self>()]);

    fn copy_meta(facts: &JobFacts) -> &CopyMeta {
        &facts.meta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn facts(suspend: bool, status: Value) -> JobFacts {
        let job = json!({
            "metadata": {"name": "sum"},
            "spec": {"suspend": suspend, "template": {"spec": {"containers": []}}},
            "status": status,
        });
        JobFacts::of(&serde_json::from_value(job).unwrap())
    }

    #[test]
    fn a_suspended_job_is_over_once_its_last_pods_are_counted() {
        assert!(facts(true, json!({"uncountedTerminatedPods": {}})).is_over());
        assert!(facts(true, json!({"uncountedTerminatedPods": {"succeeded": [], "failed": []}})).is_over());
        assert!(!facts(true, json!({"uncountedTerminatedPods": {"succeeded": ["u1"]}})).is_over());
        assert!(!facts(true, json!({"uncountedTerminatedPods": {"failed": ["u1"]}})).is_over());
        assert!(
            !facts(true, json!({"terminating": 1})).is_over() && !facts(true, json!({"active": 1})).is_over()
        );
        assert!(!facts(false, json!({})).is_over());
        let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        assert!(facts(false, complete).is_over());
    }
}

//! A template is tried in a member before anything of it is placed.
//!
//! The hub keeps templates as they were written and knows few of their rules; the API server of a member knows all. A
//! dry run there, under a name that nobody has, tells what it thinks of the template and changes nothing.

use super::desired::Desired;
use super::memory::{FailureKind, lock};
use super::observe::Seen;
use super::{Controller, Workload};
use crate::copy;
use crate::fleet::Member;
use crate::names::FIELD_MANAGER;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::MultiClusterDeploymentSpec;
use portolan_api::Reason;
use portolan_api::placement::PlacementPolicy;
use portolan_core::placement::Decision;
use portolan_runtime::{CallError, Key, foreign_text};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// A refused template is tried again after this long: the member may have been changed, or upgraded.
pub(super) const REFUSED_FOR: Duration = Duration::from_secs(60);

/// What a member accepted is not tried again for other workloads of the namespace for so long.
const ACCEPTED_FOR: Duration = Duration::from_secs(600);

/// So many accepted templates are remembered.
const REMEMBERED: usize = 1024;

/// A template that so many members refuse is taken for invalid, however many others there are.
const CONVINCING: usize = 3;

/// The reason of a member that does not take a template.
const REFUSED: Reason = Reason::Refused;

/// The longest name of a Deployment.
const NAME_LIMIT: usize = 253;

/// What was found out about a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tried {
    /// The digest of a copy with one replica.
    template: String,
    /// The member's words, if it refused.
    refusal: Option<String>,
    at: Instant,
}

/// The templates that were accepted, by namespace and digest, and when.
#[derive(Debug, Default)]
pub(super) struct Accepted(Mutex<BTreeMap<(String, String), Instant>>);

impl Accepted {
    fn has(&self, template: &(String, String)) -> bool {
        lock(&self.0).get(template).is_some_and(|at| at.elapsed() < ACCEPTED_FOR)
    }

    fn add(&self, template: (String, String)) {
        let mut accepted = lock(&self.0);
        if accepted.len() >= REMEMBERED {
            accepted.clear();
        }
        accepted.insert(template, Instant::now());
    }
}

/// What came of trying a template.
pub(super) enum Trial {
    /// A chosen member takes it, or nobody could be asked.
    Passed,
    /// The chosen members refuse it, and there are others that were not asked: decide again without those.
    AnotherCluster,
    /// It is refused wherever it was tried: why.
    Refused(String),
}

impl Controller {
    /// Tries the template in the chosen members until one takes it, unless that was done.
    ///
    /// A member that refuses it is left out while others may take it: what one member has against a template is its own
    /// affair. A template that all chosen members refuse is invalid if there are no others to try, or when
    /// [`CONVINCING`] of them have refused it.
    ///
    /// # Errors
    /// None of the chosen members that answer could be asked.
    pub(super) async fn try_template(
        &self,
        key: &Key,
        workload: &Workload,
        decision: &Decision,
        seen: &BTreeMap<String, Seen>,
    ) -> Result<Trial, CallError> {
        let digest = self.digest(workload, 1);
        let tried = lock(&self.memory.tried).get(key).cloned();
        let holds = |tried: &Tried| {
            tried.template == digest && (tried.refusal.is_none() || tried.at.elapsed() < REFUSED_FOR)
        };
        if let Some(tried) = tried.filter(holds) {
            return Ok(tried.refusal.map_or(Trial::Passed, Trial::Refused));
        }
        let like_it = (key.namespace.clone(), asked(&workload.object.spec));
        let known = self.is_held(workload, decision, seen) || self.memory.accepted.has(&like_it);
        let refusal = if known { None } else { self.ask(key, workload, decision, seen).await? };
        let refusal = match refusal {
            None => None,
            Some(Answer::NobodyAsked) => return Ok(Trial::Passed),
            Some(Answer::Taken) => {
                self.memory.accepted.add(like_it);
                None
            }
            Some(Answer::RefusedByAll { words, news }) => {
                let failures = self.memory.failures.of(key).into_values();
                let refused =
                    failures.filter(|failure| failure.template == digest && failure.reason == REFUSED);
                let others = seen.values().any(|seen| could_take(workload, seen));
                // Where nobody refuses for the first time, no other cluster was chosen: there is none.
                if news && others && refused.count() < CONVINCING {
                    return Ok(Trial::AnotherCluster);
                }
                Some(words)
            }
        };
        let tried = Tried { template: digest, refusal: refusal.clone(), at: Instant::now() };
        lock(&self.memory.tried).insert(key.clone(), tried);
        Ok(refusal.map_or(Trial::Passed, Trial::Refused))
    }

    /// Asks the chosen members in turn until one takes the template.
    async fn ask(
        &self,
        key: &Key,
        workload: &Workload,
        decision: &Decision,
        seen: &BTreeMap<String, Seen>,
    ) -> Result<Option<Answer>, CallError> {
        let (mut last, mut refusals, desired) = (None, Vec::new(), self.desired(workload, 1));
        let chosen = decision.placed.keys().filter_map(|name| seen.get(name)).filter(|seen| seen.answers);
        let mut answer = Answer::NobodyAsked;
        let mut known = None;
        for (asked, seen) in chosen.enumerate() {
            let Some(member) = &seen.member else { continue };
            if let Some(refusal) = &seen.candidate.refused {
                known.get_or_insert_with(|| format!("{} refuses it: {}", member.name, refusal.message));
                continue;
            }
            match try_in(member, key, workload.uid(), &desired).await {
                Ok(None) => {
                    answer = Answer::Taken;
                    break;
                }
                Ok(Some(words)) => refusals.push((member.name.clone(), words)),
                Err(error) => {
                    if !error.is_busy() {
                        self.failing(key, &member.name, workload, &error);
                    }
                    last = Some(error);
                }
            }
            if asked + 1 >= CONVINCING {
                break;
            }
        }
        let first = refusals.first().map(|(member, words)| format!("{member} refuses it: {words}"));
        for (member, words) in refusals {
            self.refused(key, &member, workload, FailureKind::RefusedByMember, (REFUSED, words));
        }
        match (answer, first, last) {
            (Answer::Taken, ..) => Ok(Some(Answer::Taken)),
            (_, Some(words), _) => Ok(Some(Answer::RefusedByAll { words, news: true })),
            (_, None, Some(error)) => Err(error),
            (answer, None, None) => Ok(Some(match known {
                Some(words) => Answer::RefusedByAll { words, news: false },
                // Nothing is chosen that answers: nothing is placed either.
                None => answer,
            })),
        }
    }

    /// Whether a member holds the present template already: then it is no news.
    fn is_held(&self, workload: &Workload, decision: &Decision, seen: &BTreeMap<String, Seen>) -> bool {
        decision.placed.iter().any(|(cluster, placed)| {
            let copy = seen.get(cluster).and_then(|seen| seen.copy.as_ref());
            copy.is_some_and(|copy| copy.mark.digest == Some(self.digest(workload, placed.replicas)))
        })
    }
}

/// What the chosen members say of a template.
enum Answer {
    NobodyAsked,
    Taken,
    /// Each of them refuses it; `news` if one of them was not known to.
    RefusedByAll {
        words: String,
        news: bool,
    },
}

/// Whether a cluster that was not tried may take the workload: it answers, is open, and nothing binds the workload to
/// others.
fn could_take(workload: &Workload, seen: &Seen) -> bool {
    let spec = &workload.object.spec;
    let bound = spec.placement.effective_policy() == PlacementPolicy::ClusterAffinity
        && !spec.placement.enable_substitution
        && !spec.enable_bursting;
    let candidate = &seen.candidate;
    !bound
        && seen.answers
        && candidate.closed.is_none()
        && candidate.refused.is_none()
        && candidate.room.max_replicas.saturating_add(candidate.bound) > 0
        && candidate.running == 0
}

/// A digest of what a user asks a Deployment to be, without whose it is.
fn asked(spec: &MultiClusterDeploymentSpec) -> String {
    let strategy = spec.strategy.as_ref().map(|strategy| &strategy.0);
    let numbers = [spec.min_ready_seconds, spec.revision_history_limit, spec.progress_deadline_seconds];
    copy::digest(&json!([spec.template.0, spec.selector, strategy, numbers]))
}

/// Nothing if the member accepts the copy; its words if it never will.
async fn try_in(
    member: &Member,
    key: &Key,
    uid: &str,
    desired: &Desired,
) -> Result<Option<String>, CallError> {
    let suffix = uid.chars().filter(char::is_ascii_alphanumeric).take(8).collect::<String>().to_lowercase();
    let stem: String = key.name.chars().take(NAME_LIMIT - suffix.len() - 1).collect();
    let name = format!("{stem}-{suffix}");
    let mut object = desired.object.clone();
    object["metadata"]["name"] = json!(name);
    let api: Api<Deployment> = Api::namespaced(member.client.clone(), &key.namespace);
    let params = PatchParams { dry_run: true, ..PatchParams::apply(FIELD_MANAGER) };
    let what = format!("try the template of {key} in {}", member.name);
    match member.gate.ask(what, api.patch(&name, &params, &Patch::Apply(&object))).await {
        Ok(_) => Ok(None),
        Err(error) => match words(&error, &name, &key.name) {
            Some(words) => Ok(Some(words)),
            None if error.is_final() => Ok(None),
            None => Err(error),
        },
    }
}

/// What the API server has against the template. What it has against us (403) is told when the copy is applied.
fn words(error: &CallError, tried: &str, name: &str) -> Option<String> {
    let CallError::Refused { source, .. } = error else { return None };
    let kube::Error::Api(status) = source.as_ref() else { return None };
    // A field that the schema does not have is an internal error to the API server.
    let untyped = status.message.contains("failed to create typed patch object");
    (matches!(status.code, 400 | 422) || untyped).then(|| foreign_text(&status.message.replace(tried, name)))
}

//! A template is tried in a member before anything of it is placed.
//!
//! The hub keeps templates as they were written and knows few of their rules; the API server of a member knows all. A
//! dry run there, under a name that nobody has, tells what it thinks of the template and changes nothing.

use super::observe::ClusterSnapshot;
use super::{Placement, Workload};
use crate::copies::{self, Desired, FailureKind, Outcome, Round};
use crate::driver::Declared;
use crate::fleet::Member;
use crate::names::FIELD_MANAGER;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::MultiClusterDeploymentSpec;
use portolan_api::Reason;
use portolan_core::placement::Decision;
use portolan_runtime::{CallError, Key, foreign_text};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A refused template is tried again after this long: the member may have been changed, or upgraded.
pub(super) const REFUSED_FOR: Duration = Duration::from_secs(60);

/// A member that has not said within this time what it thinks of a template is not waited for: the next one is asked.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// When all were asked, their answers bring us back; we look after this long in any case.
const ASKED_AGAIN: Duration = Duration::from_secs(10);

/// What a member accepted is not tried again for other workloads of the namespace for so long.
const ACCEPTED_FOR: Duration = Duration::from_secs(600);

/// So many accepted templates are remembered.
const REMEMBERED: usize = 1024;

/// A template that so many members refuse is taken for invalid, however many others there are.
const CONVINCING: usize = 8;

/// The reason of a member that does not take a template.
const REFUSED: Reason = Reason::Refused;

/// The longest name of a Deployment.
const NAME_LIMIT: usize = 253;

/// What members said of templates.
#[derive(Debug, Default)]
pub(super) struct Trials(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    tried: BTreeMap<Key, Tried>,
    /// The templates that were accepted, by namespace and digest, and when.
    accepted: BTreeMap<(String, String), Instant>,
}

/// What was found out about the template of a workload.
#[derive(Debug)]
struct Tried {
    /// The digest of the template.
    template: String,
    /// The words of a member, if it was refused; nothing while it is not known.
    verdict: Option<(Option<String>, Instant)>,
    /// The clusters that were asked, and when.
    asked: BTreeMap<String, Instant>,
}

/// Whether a template may be placed.
pub(super) enum Verdict {
    /// A chosen member takes it, or nobody could be asked.
    Passed,
    /// Members are being asked: look again after this long at the latest.
    Pending(Duration),
    /// It is refused wherever it was tried: why.
    Refused(String),
}

impl Trials {
    pub(super) fn forget(&self, key: &Key) {
        self.state().tried.remove(key);
    }

    /// What is known of a template.
    fn verdict(&self, key: &Key, template: &str) -> Option<Verdict> {
        let state = self.state();
        let tried = state.tried.get(key).filter(|tried| tried.template == template)?;
        let (refusal, at) = tried.verdict.as_ref()?;
        match refusal {
            None => Some(Verdict::Passed),
            Some(words) => (at.elapsed() < REFUSED_FOR).then(|| Verdict::Refused(words.clone())),
        }
    }

    fn settle(&self, key: &Key, template: &str, refusal: Option<String>) {
        let mut state = self.state();
        // Whatever was found out about a former template says nothing about the present one.
        if state.tried.get(key).is_none_or(|tried| tried.template == template) {
            state.of(key, template).verdict = Some((refusal, Instant::now()));
        }
    }

    /// The template of a workload is this one from now on.
    fn begin(&self, key: &Key, template: &str) {
        self.state().of(key, template);
    }

    /// Since when a cluster is asked; if it was not, it is now.
    fn ask(&self, key: &Key, template: &str, cluster: &str) -> Instant {
        let mut state = self.state();
        *state.of(key, template).asked.entry(cluster.to_owned()).or_insert_with(Instant::now)
    }

    /// A cluster has answered, or failed to.
    fn answered(&self, key: &Key, template: &str, cluster: &str) {
        let mut state = self.state();
        if let Some(tried) = state.tried.get_mut(key).filter(|tried| tried.template == template) {
            tried.asked.remove(cluster);
        }
    }

    fn is_accepted(&self, like_it: &(String, String)) -> bool {
        self.state().accepted.get(like_it).is_some_and(|at| at.elapsed() < ACCEPTED_FOR)
    }

    fn accept(&self, like_it: (String, String)) {
        let accepted = &mut self.state().accepted;
        if accepted.len() >= REMEMBERED {
            accepted.clear();
        }
        accepted.insert(like_it, Instant::now());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn of(&mut self, key: &Key, template: &str) -> &mut Tried {
        let new = || Tried { template: template.to_owned(), verdict: None, asked: BTreeMap::new() };
        let tried = self.tried.entry(key.clone()).or_insert_with(new);
        if tried.template != template {
            *tried = new();
        }
        tried
    }
}

impl Placement {
    /// Whether it is known already that the template of a workload may be placed.
    pub(super) fn has_passed(&self, key: &Key, workload: &Workload) -> bool {
        let template = self.template(workload);
        if let Some(verdict) = self.trials.verdict(key, &template) {
            return matches!(verdict, Verdict::Passed);
        }
        let accepted = self.trials.is_accepted(&like_it(key, workload));
        if accepted {
            self.trials.begin(key, &template);
            self.trials.settle(key, &template, None);
        }
        accepted
    }

    /// Whether the template of a workload may be placed. Unless that is known, the chosen members are asked in turn until
    /// one takes it; the answer brings us back.
    ///
    /// A member that refuses it is left out while others may take it: what one member has against a template is its own
    /// affair. A template that all chosen members refuse is invalid, as is one that [`CONVINCING`] members refuse.
    pub(super) fn try_template(
        self: &Arc<Self>,
        key: &Key,
        workload: &Arc<Workload>,
        decision: &Decision,
        seen: &BTreeMap<String, ClusterSnapshot>,
        round: Round,
    ) -> Verdict {
        let template = self.template(workload);
        if let Some(verdict) = self.trials.verdict(key, &template) {
            return verdict;
        }
        self.trials.begin(key, &template);
        let like_it = like_it(key, workload);
        if self.is_held(workload, decision, seen) {
            self.trials.settle(key, &template, None);
            return Verdict::Passed;
        }
        let refused = |words: String| {
            self.trials.settle(key, &template, Some(words.clone()));
            Verdict::Refused(words)
        };
        let refusals = self.base.copies.memory.failures(key).into_iter();
        let mut refusals = refusals.filter(|(_, failure)| {
            failure.template == template && failure.reason == REFUSED && failure.keeps_away()
        });
        let first = refusals.next().map(|(cluster, failure)| refusal(&cluster, &failure.message));
        if let Some(words) = first.filter(|_| refusals.count() + 1 >= CONVINCING) {
            return refused(words);
        }
        let chosen = decision.placed.keys().filter_map(|name| seen.get(name)).filter(|seen| seen.is_known);
        let (mut known, mut pending, mut wait) = (None, false, ASKED_AGAIN);
        for (member, seen) in chosen.filter_map(|seen| Some((seen.member.as_ref()?, seen))).take(CONVINCING) {
            let refused = seen.candidate.refused.as_ref();
            let refused = refused.filter(|refusal| refusal.reason != Reason::MemberError);
            // Of a closed cluster nobody has marked what it refused.
            let failure = self.base.copies.memory.failure(key, &member.name).filter(|failure| {
                failure.template == template && failure.reason == REFUSED && failure.holds_in(member)
            });
            let why = refused.map(|refusal| refusal.message.clone());
            if let Some(why) = why.or_else(|| failure.map(|failure| failure.message)) {
                known.get_or_insert_with(|| refusal(&member.name, &why));
                continue;
            }
            pending = true;
            // What was submitted in an earlier round and has not begun is void.
            self.submit_trial(key, workload, member, &template, like_it.clone(), round);
            if self.trials.ask(key, &template, &member.name).elapsed() < ANSWERED_WITHIN {
                wait = ANSWERED_WITHIN;
                break;
            }
        }
        match known {
            _ if pending => Verdict::Pending(wait),
            Some(words) => refused(words),
            // Nothing is chosen that answers: nothing is placed either.
            None => Verdict::Passed,
        }
    }

    /// Has a member say what it thinks of a template.
    fn submit_trial(
        self: &Arc<Self>,
        key: &Key,
        workload: &Arc<Workload>,
        member: &Arc<Member>,
        template: &str,
        like_it: (String, String),
        round: Round,
    ) {
        let (placement, name, there) = (Arc::clone(self), key.clone(), Arc::clone(member));
        let (workload, digest) = (Arc::clone(workload), template.to_owned());
        self.base.copies.submit(round, member, key, template, move || async move {
            let desired = placement.desired(&workload, 1);
            let answer = try_in(&there, &name, workload.uid(), &desired).await;
            placement.trials.answered(&name, &digest, &there.name);
            if let Some(words) = answer? {
                let (memory, kind) = (&placement.base.copies.memory, FailureKind::RefusedByMember);
                memory.refuse(&name, &there.name, &digest, kind, (REFUSED, words));
                return Ok(Outcome::Refused);
            }
            placement.trials.accept(like_it);
            placement.trials.settle(&name, &digest, None);
            Ok(Outcome::LookAgain)
        });
    }

    /// Whether a member holds the present template already: then it is no news.
    fn is_held(
        &self,
        workload: &Workload,
        decision: &Decision,
        seen: &BTreeMap<String, ClusterSnapshot>,
    ) -> bool {
        decision.placed.iter().any(|(cluster, placed)| {
            let copy = seen.get(cluster).and_then(|seen| seen.copy.as_ref());
            copy.is_some_and(|copy| copy.meta.digest == Some(self.digest(workload, placed.replicas)))
        })
    }
}

fn refusal(cluster: &str, words: &str) -> String {
    format!("{cluster} refuses it: {words}")
}

/// What workloads share that ask for the same: the namespace, and what they ask for.
fn like_it(key: &Key, workload: &Workload) -> (String, String) {
    (key.namespace.clone(), asked(&workload.object.spec))
}

/// A digest of what a user asks a Deployment to be, without whose it is.
fn asked(spec: &MultiClusterDeploymentSpec) -> String {
    let strategy = spec.strategy.as_ref().map(|strategy| &strategy.0);
    let numbers = [spec.min_ready_seconds, spec.revision_history_limit, spec.progress_deadline_seconds];
    copies::digest(&json!([spec.template.0, spec.selector, strategy, numbers]))
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
    error.is_invalid().then(|| foreign_text(&status.message.replace(tried, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_found_out_about_a_former_template_changes_nothing_about_the_present_one() {
        let (trials, key) = (Trials::default(), Key::new("shop", "web"));
        trials.begin(&key, "old");
        let asked = trials.ask(&key, "old", "m1");
        tokio::time::sleep(ANSWERED_WITHIN).await;
        assert_eq!(trials.ask(&key, "old", "m1"), asked, "it was asked then");
        trials.begin(&key, "new");
        trials.settle(&key, "new", None);
        trials.answered(&key, "old", "m1");
        trials.settle(&key, "old", Some("no".to_owned()));
        assert!(matches!(trials.verdict(&key, "new"), Some(Verdict::Passed)));
        assert!(trials.verdict(&key, "old").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_asked_about_again_after_a_while_and_a_pass_is_not() {
        let (trials, key) = (Trials::default(), Key::new("shop", "web"));
        trials.settle(&key, "t", Some("m1 refuses it: no".to_owned()));
        assert!(matches!(trials.verdict(&key, "t"), Some(Verdict::Refused(_))));
        tokio::time::sleep(REFUSED_FOR).await;
        assert!(trials.verdict(&key, "t").is_none());
        trials.settle(&key, "t", None);
        tokio::time::sleep(10 * REFUSED_FOR).await;
        assert!(matches!(trials.verdict(&key, "t"), Some(Verdict::Passed)));
    }
}

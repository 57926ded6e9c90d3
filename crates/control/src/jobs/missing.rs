//! A Job that the watch does not show any more: it was deleted, or lost the label by which it is watched.
//!
//! Another Job for the same work, and the end of numbered work whose Job is lost, rest on its being deleted. So the member is
//! asked for it by name before anything is decided.

use super::{DeclaredJob, Jobs};
use crate::copies::{Copies, Outcome, Round, restore_ownership};
use crate::driver::Declared;
use crate::fleet::{CopyMeta, Member};
use crate::names::{HUB_LABEL, WORKLOAD_LABEL};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use portolan_runtime::{CallError, Key, Term};
use std::sync::Arc;

/// What is needed to look for a Job in a member.
struct Search {
    copies: Arc<Copies<Job>>,
    term: Term,
    member: Arc<Member>,
    key: Key,
    hub: String,
    /// The uid of the job in the hub.
    uid: String,
}

impl Jobs {
    /// Asks a member for the Job by its name: it is labelled again, or known to be gone.
    pub(super) fn search(&self, key: &Key, job: &Arc<DeclaredJob>, member: &Arc<Member>, round: Round) {
        let search = Search {
            copies: Arc::clone(&self.base.copies),
            term: self.base.context.term.clone(),
            member: Arc::clone(member),
            key: key.clone(),
            hub: self.base.context.hub.id.clone(),
            uid: job.uid().to_owned(),
        };
        self.base.copies.submit(round, member, key, "", move || search.run());
    }
}

impl Search {
    async fn run(self) -> Result<Outcome, CallError> {
        let Self { member, key, .. } = &self;
        let api: Api<Job> = Api::namespaced(member.client.clone(), &key.namespace);
        let what = format!("look for Job {key} in {}", member.name);
        match member.gate.ask(what, api.get_opt(&key.name)).await? {
            // The watch will show it.
            Some(job) if label(&job, HUB_LABEL) == Some(&self.hub) && self.is_ours(&job) => {
                Ok(Outcome::NotSeenYet)
            }
            Some(job) if label(&job, HUB_LABEL).is_none() && self.is_made_by_us(&job) => {
                let (member, meta) = (&self.member, &job.metadata);
                restore_ownership::<Job>(&self.term, member, &self.key, meta, &self.hub, &self.uid).await?;
                Ok(Outcome::NotSeenYet)
            }
            _ => {
                self.copies.memory.set_absent(key, &member.name);
                Ok(Outcome::LookAgain)
            }
        }
    }

    fn is_ours(&self, job: &Job) -> bool {
        CopyMeta::of(&job.metadata).is_of(&self.uid)
    }

    /// Whether the pods of a Job are marked as those of the job in the hub. Nobody can change that in a Job that runs.
    fn is_made_by_us(&self, job: &Job) -> bool {
        let template = job.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
        let labels = template.and_then(|template| template.labels.as_ref());
        labels.and_then(|labels| labels.get(WORKLOAD_LABEL)) == Some(&self.uid)
    }
}

fn label<'a>(job: &'a Job, name: &str) -> Option<&'a String> {
    job.metadata.labels.as_ref().and_then(|labels| labels.get(name))
}

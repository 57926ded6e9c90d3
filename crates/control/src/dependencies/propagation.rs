//! The ConfigMaps and Secrets of one workload in one member.

use super::{References, Sources, propagate, release_recorded, release_seen};
use crate::copies::{Copied, Copies, FailureKind, Outcome};
use crate::fleet::{Hub, Member};
use portolan_api::Reason;
use portolan_runtime::{CallError, Key, Term};
use std::sync::Arc;

/// What one workload refers to, brought to one member and released there.
pub(crate) struct Propagation {
    pub(crate) term: Term,
    pub(crate) hub: Hub,
    pub(crate) sources: Sources,
    pub(crate) member: Arc<Member>,
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) references: References,
    /// Whether the status says that something was propagated to the member.
    pub(crate) recorded: bool,
}

impl Propagation {
    /// Brings what the workload refers to, and keeps it current. Answers with an outcome if its copy cannot be applied
    /// now: something is refused, which is remembered for `template`, or not known yet.
    pub(crate) async fn bring<K: Copied>(
        &self,
        copies: &Copies<K>,
        template: &str,
    ) -> Result<Option<Outcome>, CallError> {
        let Self { term, hub, sources, member, key, uid, references, .. } = self;
        let propagated = propagate(term, hub, sources, member, &key.namespace, uid, references).await?;
        if let Some((reason, problem)) = propagated.problems.into_iter().next() {
            // What the hub itself may not give is refused everywhere.
            let of_the_hub = reason == Reason::NotPropagated;
            let kind = if of_the_hub { FailureKind::InvalidInHub } else { FailureKind::RefusedByMember };
            copies.memory.refuse(key, &member.name, template, kind, (reason, problem));
            return Ok(Some(Outcome::Refused));
        }
        Ok(propagated.outdated.then_some(Outcome::NotSeenYet))
    }

    /// Keeps current what was brought; answers whether that is to be looked at again.
    pub(crate) async fn keep_current(&self) -> Result<bool, CallError> {
        let Self { term, hub, sources, member, key, uid, references, .. } = self;
        Ok(propagate(term, hub, sources, member, &key.namespace, uid, references).await?.outdated)
    }

    /// Releases what the workload does not refer to any more, after its copy came to this outcome.
    pub(crate) async fn release_others(&self, outcome: Outcome) -> Result<Outcome, CallError> {
        self.release(&self.references, outcome).await
    }

    /// Releases everything, after the copy came to this outcome.
    pub(crate) async fn release_all(&self, outcome: Outcome) -> Result<Outcome, CallError> {
        self.release(&References::new(), outcome).await
    }

    async fn release(&self, kept: &References, outcome: Outcome) -> Result<Outcome, CallError> {
        let Self { term, member, key, uid, .. } = self;
        let left = if self.recorded {
            release_recorded(term, member, &key.namespace, uid, kept).await?
        } else {
            release_seen(term, member, &key.namespace, uid, kept).await?
        };
        Ok(if left && outcome == Outcome::AsDecided { Outcome::NotSeenYet } else { outcome })
    }
}

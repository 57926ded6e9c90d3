//! Making a member hold a copy as it was decided.

use super::memory::{Applied, CACHE_LAG_GRACE, FailureKind};
use super::object::{
    ApplyMode, ApplyResult, annotate_epoch, apply_if_unchanged, delete_if_unchanged, patch_if_unchanged,
};
use super::{Copied, Copies, Outcome, memory};
use crate::fleet::{CopyMeta, Member};
use portolan_api::Reason;
use portolan_runtime::{CallError, Key, Term, chain};
use serde_json::{Value, json};
use tokio::time::Instant;

/// What API servers say of a hook that has side effects and is not asked in dry runs.
const NO_DRY_RUN: &str = "does not support dry run";

/// An object to be applied in a member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Desired {
    pub(crate) object: Value,
    /// The digest of the object.
    pub(crate) digest: String,
    /// The digest of the same without numbers of replicas: what a member refuses of it, it refuses with any number.
    pub(crate) template: String,
}

impl<K: Copied> Copies<K> {
    /// Applies a copy in place of the one that was seen, unless that was done a moment ago or refused not long ago.
    /// Answers with the copy if the member was asked and took it.
    pub(crate) async fn apply(
        &self,
        member: &Member,
        key: &Key,
        seen: Option<&CopyMeta>,
        desired: &Desired,
    ) -> Result<(Outcome, Option<Box<K>>), CallError> {
        let cluster = member.name.as_str();
        if self.is_refused(member, key, &desired.template) {
            return Ok((Outcome::AsDecided, None));
        }
        let is_stray = |copy: &K::Facts| self.fleet.may_sweep(member, K::NAME, K::copy_meta(copy));
        if seen.is_none() && member.index::<K>().get(key).is_some_and(|copy| is_stray(&copy)) {
            // What a former object of the name left is being deleted.
            return Ok((Outcome::NotSeenYet, None));
        }
        let is_on_its_way = |applied: &Applied| {
            let shown = |seen: &CopyMeta| applied.generation > 0 && seen.generation >= applied.generation;
            applied.digest == desired.digest
                && applied.at.is_some_and(|at| at.elapsed() < CACHE_LAG_GRACE)
                && !seen.is_some_and(shown)
        };
        if self.memory.applied(key, cluster).as_ref().is_some_and(is_on_its_way)
            || is_superseded(&self.term, member, key, seen).await
        {
            return Ok((Outcome::NotSeenYet, None));
        }
        let seen_as = seen.map(CopyMeta::object_version);
        let result =
            apply_if_unchanged::<K>(&self.term, member, &desired.object, seen_as, ApplyMode::ForReal).await;
        let not_answered = result.as_ref().is_err_and(|error| error.code().is_none() && !error.is_busy());
        if seen.is_none() && (not_answered || matches!(result, Ok(ApplyResult::Conflict))) {
            self.memory.may_have_created(key, cluster);
        }
        let refuse = |reason, message| {
            let kind = FailureKind::RefusedByMember;
            self.memory.refuse(key, cluster, &desired.template, kind, (reason, message));
            Ok((Outcome::Refused, None))
        };
        match result {
            Ok(ApplyResult::Applied(copy)) => {
                let meta = copy.meta();
                let applied = Applied {
                    digest: desired.digest.clone(),
                    version: meta.resource_version.clone().unwrap_or_default(),
                    generation: meta.generation.unwrap_or_default(),
                    at: Some(Instant::now()),
                    shown: seen.is_some(),
                };
                self.memory.set_applied(key, cluster, applied);
                Ok((Outcome::AsDecided, Some(copy)))
            }
            Ok(ApplyResult::Conflict) => Ok((Outcome::NotSeenYet, None)),
            Ok(ApplyResult::NotOwned(message)) => refuse(Reason::NameTaken, message),
            Ok(ApplyResult::Refused(message)) => refuse(Reason::Refused, message),
            // Only a namespace that does not exist is not found.
            Err(error) if error.is_not_found() => refuse(Reason::NamespaceNotFound, chain(&error)),
            Err(error) => Err(error),
        }
    }

    /// Asks a member that did not take a copy some time ago whether it would take it now. Nothing is changed there.
    pub(crate) async fn probe(
        &self,
        member: &Member,
        key: &Key,
        desired: &Desired,
    ) -> Result<Outcome, CallError> {
        let cluster = member.name.as_str();
        let refuse = |reason, message| {
            let kind = FailureKind::RefusedByMember;
            self.memory.refuse(key, cluster, &desired.template, kind, (reason, message));
            Ok(Outcome::Refused)
        };
        match apply_if_unchanged::<K>(&self.term, member, &desired.object, None, ApplyMode::DryRun).await {
            Ok(ApplyResult::NotOwned(message)) => refuse(Reason::NameTaken, message),
            // Of a hook that knows no dry runs nobody learns anything but by trying.
            Ok(ApplyResult::Refused(message)) if !message.contains(NO_DRY_RUN) => {
                refuse(Reason::Refused, message)
            }
            Err(error) if error.is_not_found() => refuse(Reason::NamespaceNotFound, chain(&error)),
            Ok(_) => {
                self.memory.set_promised(key, cluster);
                Ok(Outcome::LookAgain)
            }
            Err(error @ CallError::NotLeading { .. }) => Err(error),
            Err(error) if error.is_busy() => Err(error),
            Err(error) => {
                tracing::debug!(cluster, object = %key, why = chain(&error), "a member cannot be asked for a copy");
                Ok(Outcome::PutOff(self.memory.postpone(key, cluster)))
            }
        }
    }

    /// Leaves a copy as it is, in this leader's name.
    pub(crate) async fn keep(
        &self,
        member: &Member,
        key: &Key,
        seen: &CopyMeta,
    ) -> Result<Outcome, CallError> {
        if self.term.epoch().is_none_or(|epoch| seen.epoch == Some(epoch)) {
            return Ok(Outcome::AsDecided);
        }
        if is_superseded(&self.term, member, key, Some(seen)).await {
            return Ok(Outcome::NotSeenYet);
        }
        let annotate = Box::pin(annotate_epoch::<K>(&self.term, member, key, seen.object_version()));
        let annotated = self.unless_put_off(member, key, "keep", annotate).await?;
        Ok(annotated.unwrap_or(Outcome::AsDecided))
    }

    /// Sets the number of replicas of a copy that keeps everything else, in this leader's name.
    pub(crate) async fn scale(
        &self,
        member: &Member,
        key: &Key,
        seen: &CopyMeta,
        replicas: u32,
    ) -> Result<Outcome, CallError> {
        self.patch(member, key, seen, "scale", json!({"spec": {"replicas": replicas}})).await
    }

    /// Changes something of a copy that still is as it was seen, in this leader's name.
    pub(crate) async fn patch(
        &self,
        member: &Member,
        key: &Key,
        seen: &CopyMeta,
        what: &str,
        patch: Value,
    ) -> Result<Outcome, CallError> {
        if is_superseded(&self.term, member, key, Some(seen)).await {
            return Ok(Outcome::NotSeenYet);
        }
        let same = format!("{what} {patch}");
        let write =
            Box::pin(patch_if_unchanged::<K>(&self.term, member, key, seen.object_version(), what, patch));
        let written = self.unless_put_off(member, key, &same, write).await?;
        Ok(written.unwrap_or(Outcome::NotSeenYet))
    }

    /// The member holds the copy as it was decided: leaves it so, and forgets what stood in the way.
    pub(crate) async fn confirm(
        &self,
        member: &Member,
        key: &Key,
        seen: &CopyMeta,
    ) -> Result<Outcome, CallError> {
        let outcome = self.keep(member, key, seen).await?;
        self.memory.forgive_in(key, &member.name);
        Ok(outcome)
    }

    /// Deletes a copy that still is as it was seen.
    pub(crate) async fn delete(
        &self,
        member: &Member,
        key: &Key,
        seen: &CopyMeta,
    ) -> Result<Outcome, CallError> {
        let is_known = self.memory.is_being_deleted(key, &member.name, &seen.uid);
        if !is_known && !is_superseded(&self.term, member, key, Some(seen)).await {
            let delete = Box::pin(delete_if_unchanged::<K>(&self.term, member, key, seen.object_version()));
            match self.unless_put_off(member, key, "delete", delete).await {
                // It has changed since it was seen: the watch shows the change.
                Err(error) if error.is_conflict() => {}
                Ok(Some(put_off)) => return Ok(put_off),
                deleted => {
                    deleted?;
                    self.memory.set_deleted(key, &member.name, &seen.uid);
                }
            }
        }
        Ok(Outcome::NotSeenYet)
    }

    /// Has a member do something about a copy, unless it failed to do the same a moment ago: then answers so. However often
    /// the object is looked at, the member is not asked more often than that.
    async fn unless_put_off(
        &self,
        member: &Member,
        key: &Key,
        what: &str,
        work: impl Future<Output = Result<(), CallError>>,
    ) -> Result<Option<Outcome>, CallError> {
        if let Some(left) = self.memory.put_off(member, key, what) {
            return Ok(Some(Outcome::PutOff(left)));
        }
        let result = work.await;
        match &result {
            Ok(()) => self.memory.set_done(key, &member.name),
            Err(error) if error.is_final() && !error.is_conflict() => {
                self.memory.set_failed(key, &member.name, what);
            }
            Err(_) => {}
        }
        result.map(|()| None)
    }

    /// Whether a member refused this not long ago.
    pub(crate) fn is_refused(&self, member: &Member, key: &Key, template: &str) -> bool {
        let refused = |failure: memory::Failure| failure.template == template && failure.holds_in(member);
        self.memory.failure(key, &member.name).is_some_and(refused)
    }
}

/// Whether a later leader may have changed a copy already: then it is left alone, and looked at again.
///
/// A greater epoch on a copy is a reason to ask the hub's Lease, no more: whoever may change the copy can write it. If the
/// Lease still names this leader, the copy is applied or deleted as if its epoch were not there; the version that was
/// seen goes along as always.
pub(crate) async fn is_superseded(term: &Term, member: &Member, key: &Key, seen: Option<&CopyMeta>) -> bool {
    let (Some(theirs), Some(ours)) = (seen.and_then(|seen| seen.epoch), term.epoch()) else { return false };
    if theirs <= ours {
        return false;
    }
    let leads = term.confirm().await;
    if leads {
        let cluster = &member.name;
        tracing::warn!(cluster, object = %key, theirs, ours, "a copy has the epoch of no leader: it is set back");
    }
    !leads
}

//! One look at one object, of any kind.

use super::base::{Base, Write, held_up};
use super::fence::Step;
use super::hub_object::{add_finalizer, has_finalizer, remove_finalizer};
use super::identify::identify;
use super::periods::{SYNC_POLL_INTERVAL, earlier};
use super::unreadable::is_unreadable;
use super::{Controller, Declared};
use crate::copies::{AWAITING_DELETION, Copied, Round};
use kube::Resource;
use portolan_api::Reason;
use portolan_runtime::{Action, CallError, EventType, Key};
use std::sync::Arc;

/// Looks at one object: fenced, kept by a finalizer, and without copies of others under its name, it is decided about.
pub(super) async fn reconcile<C: Controller>(controller: &Arc<C>, key: Key) -> Result<Action, CallError> {
    let base = controller.base();
    let context = &base.context;
    if !base.objects.synced() {
        return Ok(Action::RequeueAfter(SYNC_POLL_INTERVAL));
    }
    let declared = base.objects.get(&key);
    let recorded = declared.as_deref().map(Base::<C::Declared, C::Copy>::claimant);
    match (context.fence.step(C::Declared::KIND, &key, recorded).await, &declared) {
        (Step::Claim, Some(declared)) => return claim(base, declared).await,
        (Step::Wait(next), _) => return Ok(next),
        _ => {}
    }
    let Some(declared) = declared else {
        if is_unreadable::<<C::Declared as Declared>::Object, _>(&base.objects, &key, &base.recorder).await {
            return Ok(Action::AwaitChange);
        }
        controller.forget(&key);
        let round = base.copies.memory.begin(&key);
        let next = base.copies.sweep(round, &key, None);
        if next == Action::AwaitChange {
            base.copies.memory.forget(&key);
        }
        return Ok(next);
    };
    let round = base.copies.memory.begin(&key);
    if declared.object().meta().deletion_timestamp.is_some() {
        return delete(controller, &key, &declared, round).await;
    }
    if !has_finalizer(declared.object()) {
        add_finalizer(&context.term, &context.hub.client, declared.object()).await?;
        return Ok(Action::AwaitChange);
    }
    if let Some(next) = controller.prepare(&key, &declared).await? {
        return Ok(next);
    }
    if let Some(next) = identify(base, &key, &declared).await? {
        return Ok(next);
    }
    let swept = base.copies.sweep(round, &key, Some(declared.uid()));
    let next = controller.reconcile(&key, &declared, round).await?;
    Ok(earlier(next, swept))
}

/// Makes an object this leader's own, and leaves all else as it is.
async fn claim<D: Declared, K: Copied>(base: &Base<D, K>, declared: &D) -> Result<Action, CallError> {
    let status = declared.status().cloned().unwrap_or_else(|| declared.first_status());
    let written = base.write_status(declared, status, Write::IfChanged).await.map(|_| ());
    base.context.fence.written(D::KIND, declared.object(), &base.recorder, written).await
}

/// Has everything deleted that members hold of an object, and removes its finalizer when nothing is left.
async fn delete<C: Controller>(
    controller: &Arc<C>,
    key: &Key,
    declared: &Arc<C::Declared>,
    round: Round,
) -> Result<Action, CallError> {
    let base = controller.base();
    if !has_finalizer(declared.object()) {
        return Ok(Action::AwaitChange);
    }
    if !base.context.fleet.clusters.synced() {
        return Ok(Action::RequeueAfter(AWAITING_DELETION));
    }
    let uid = declared.object().meta().uid.as_deref().unwrap_or_default();
    if base.context.fleet.identities.is_orphaning(uid) {
        let note = "it is deleted without its copies: they go on running in their clusters";
        base.recorder.record(declared.object(), EventType::Normal, Reason::Orphaned, note).await;
        base.copies.memory.forget(key);
        controller.forget(key);
        remove_finalizer(&base.context.term, &base.context.hub.client, declared.object()).await?;
        return Ok(Action::AwaitChange);
    }
    let remaining = base.delete_everywhere(round, key, declared);
    if remaining.is_held_up() {
        base.report(declared, held_up(&remaining, &C::Copy::kind(&()))).await?;
    }
    if let Some(next) = remaining.next() {
        return Ok(next);
    }
    base.copies.memory.forget(key);
    controller.forget(key);
    remove_finalizer(&base.context.term, &base.context.hub.client, declared.object()).await?;
    Ok(Action::AwaitChange)
}

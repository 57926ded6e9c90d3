//! Who an object is, settled before anything is decided about it.

use super::{Base, Declared, SYNC_POLL_INTERVAL};
use crate::copies::Copied;
use crate::fleet::{Fleet, Member};
use crate::names::WORKLOAD_ID_ANNOTATION;
use crate::recovery::{AWAITING_MEMBERS, Recovery, annotate};
use portolan_api::Reason;
use portolan_runtime::{Action, CallError, EventType, Key};
use serde_json::json;

/// Settles the identity of an object; answers when to look again if nothing may be decided yet.
pub(super) async fn identify<D: Declared, K: Copied>(
    base: &Base<D, K>,
    key: &Key,
    declared: &D,
) -> Result<Option<Action>, CallError> {
    let Some(identity) = declared.identity() else { return Ok(None) };
    let (term, hub, object) = (&base.context.term, &base.context.hub.client, declared.object());
    if let Some(claimed) = identity.unchecked()
        && belongs_to_another::<K>(&base.context.fleet, key, claimed)
    {
        identity.deny();
    }
    if let Some(denied) = identity.denied() {
        annotate(term, hub, object, json!({ WORKLOAD_ID_ANNOTATION: null })).await?;
        let note = format!(
            "annotation {WORKLOAD_ID_ANNOTATION} {denied:?} was removed: another object of the hub has this identity, or \
             it is none"
        );
        base.recorder.record(object, EventType::Warning, Reason::IdentityTaken, &note).await;
        return Ok(Some(Action::AwaitChange));
    }
    let meta = |member: &Member| member.index::<K>().get(key).map(|copy| K::copy_meta(&copy).clone());
    let on_record = |cluster: &str| declared.is_in(cluster);
    match base.context.fleet.recovery(K::NAME, K::NEEDS, key, declared.uid(), on_record, meta) {
        Recovery::Nothing => Ok(None),
        Recovery::NotYet => Ok(Some(Action::RequeueAfter(SYNC_POLL_INTERVAL))),
        Recovery::TakeOver { identity, clusters } => {
            annotate(term, hub, object, json!({ WORKLOAD_ID_ANNOTATION: identity })).await?;
            let note = format!(
                "the copies in {} were created for this object before it was created again: it takes them over with their \
                 pods, and what Jobs have finished counts",
                clusters.join(", ")
            );
            base.recorder.record(object, EventType::Normal, Reason::Adopted, &note).await;
            Ok(Some(Action::AwaitChange))
        }
        Recovery::Ambiguous(identities) => {
            let each =
                identities.iter().map(|(identity, clusters)| format!("{identity}: {}", clusters.join(", ")));
            let message = format!(
                "copies of several former objects of this name run, and nothing is placed or moved until it is known which \
                 are its own ({}): `kubectl annotate` it with {WORKLOAD_ID_ANNOTATION}=ID, or delete the others in their \
                 clusters",
                each.collect::<Vec<_>>().join("; ")
            );
            base.report_undecided(declared, Reason::NotAdopted, &message).await?;
            Ok(Some(Action::RequeueAfter(AWAITING_MEMBERS)))
        }
        Recovery::Awaiting(away) => {
            let message = format!(
                "copies run that the status does not know of, and {} cannot be asked for more of them: nothing is placed or \
                 moved until then, so that nothing is doubled. `kubectl annotate foreigncluster NAME \
                 portolan.dev/confirmed-lost=true` gives a cluster up",
                away.join(", ")
            );
            base.report_undecided(declared, Reason::AwaitingMembers, &message).await?;
            Ok(Some(Action::RequeueAfter(AWAITING_MEMBERS)))
        }
    }
}

/// Whether a member holds a copy of this identity that names another object as its owner, and none holds one that names
/// this object: then the identity is not this object's to have, whatever its annotation says. Labels that somebody copied
/// onto an object of their own take nothing from an object that has its copies.
fn belongs_to_another<K: Copied>(fleet: &Fleet, key: &Key, identity: &str) -> bool {
    let (mut own, mut others) = (false, false);
    for member in fleet.clusters.all().iter().filter_map(|(name, _)| fleet.member(&name.name)) {
        member.index::<K>().for_each(|at, copy| {
            let meta = K::copy_meta(copy);
            let owner = meta.owner.as_ref().filter(|_| meta.workload.as_deref() == Some(identity));
            own |= at == key && owner == Some(key);
            others |= owner.is_some_and(|owner| owner != key);
        });
    }
    others && !own
}

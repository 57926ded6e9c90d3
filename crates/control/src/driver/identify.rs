//! Who an object is, settled before anything is decided about it.

use super::{Base, Declared, Problem, SYNC_POLL_INTERVAL};
use crate::copies::Copied;
use crate::fleet::{Fleet, Member};
use crate::names::WORKLOAD_ID_ANNOTATION;
use crate::recovery::{AWAITING_MEMBERS, Recovery, annotate};
use portolan_api::Reason;
use portolan_runtime::{Action, CallError, EventType, Key};
use serde_json::json;
use std::collections::BTreeMap;

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
    match recovery(base, key, declared) {
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
            base.report_undecided(declared, Reason::NotAdopted, &ambiguous(&identities)).await?;
            Ok(Some(Action::RequeueAfter(AWAITING_MEMBERS)))
        }
        Recovery::Awaiting(away) => {
            base.report_undecided(declared, Reason::AwaitingMembers, &awaiting(&away)).await?;
            Ok(Some(Action::RequeueAfter(AWAITING_MEMBERS)))
        }
    }
}

/// The identity of copies that an object would take over if it were looked at now, if there are any; or why nothing would be
/// decided about it.
pub(crate) fn taken_over<D: Declared, K: Copied>(
    base: &Base<D, K>,
    key: &Key,
    declared: &D,
) -> Result<Option<String>, Problem> {
    match recovery(base, key, declared) {
        Recovery::Nothing => Ok(None),
        Recovery::NotYet => Err(Problem::NotKnown),
        Recovery::TakeOver { identity, .. } => Ok(Some(identity)),
        Recovery::Ambiguous(identities) => {
            Err(Problem::Undecided(Reason::NotAdopted, ambiguous(&identities)))
        }
        Recovery::Awaiting(away) => Err(Problem::Undecided(Reason::AwaitingMembers, awaiting(&away))),
    }
}

fn recovery<D: Declared, K: Copied>(base: &Base<D, K>, key: &Key, declared: &D) -> Recovery {
    let meta = |member: &Member| member.index::<K>().get(key).map(|copy| K::copy_meta(&copy).clone());
    let on_record = |cluster: &str| declared.is_in(cluster);
    base.context.fleet.recovery(K::NAME, K::NEEDS, key, declared.uid(), on_record, meta)
}

fn ambiguous(identities: &BTreeMap<String, Vec<String>>) -> String {
    let each = identities.iter().map(|(identity, clusters)| format!("{identity}: {}", clusters.join(", ")));
    format!(
        "copies of several former objects of this name run, and nothing is placed or moved until it is known which are its \
         own ({}): `kubectl annotate` it with {WORKLOAD_ID_ANNOTATION}=ID, or delete the others in their clusters",
        each.collect::<Vec<_>>().join("; ")
    )
}

fn awaiting(away: &[String]) -> String {
    format!(
        "copies run that the status does not know of, and {} cannot be asked for more of them: nothing is placed or moved \
         until then, so that nothing is doubled. `kubectl annotate foreigncluster NAME portolan.dev/confirmed-lost=true` \
         gives a cluster up",
        away.join(", ")
    )
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

//! Who a workload is, settled before anything is decided about it.

use super::observe::Seen;
use super::status::undecided;
use super::{Controller, Workload};
use crate::identity::annotate;
use crate::names::WORKLOAD_ID_ANNOTATION;
use crate::recovery::{AWAITING_MEMBERS, DEPLOYMENT, Recovery};
use portolan_runtime::{CallError, Key, Next, Weight};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// How soon to look again while members are still becoming known.
const GETTING_TO_KNOW: Duration = Duration::from_millis(250);

impl Controller {
    /// Settles the identity of a workload; answers when to look again if nothing may be decided yet.
    pub(super) async fn identify(&self, key: &Key, workload: &Workload) -> Result<Option<Next>, CallError> {
        let object = &workload.object;
        if let Some(denied) = workload.identity.denied() {
            let gone = json!({ WORKLOAD_ID_ANNOTATION: null });
            annotate(&self.term, &self.hub.client, object, gone).await?;
            let note = format!(
                "annotation {WORKLOAD_ID_ANNOTATION} {denied:?} was removed: another object of the hub has this \
                 identity, or it is none"
            );
            self.recorder.record(object, Weight::Warning, "IdentityTaken", &note).await;
            return Ok(Some(Next::Done));
        }
        let on_record = |cluster: &str| is_on_record(workload, cluster);
        let mark = |member: &crate::fleet::Member| Some(member.deployments.get(key)?.mark.clone());
        match self.fleet.recovery(DEPLOYMENT, key, workload.uid(), on_record, mark) {
            Recovery::Nothing => Ok(None),
            Recovery::NotYet => Ok(Some(Next::After(GETTING_TO_KNOW))),
            Recovery::TakeOver { identity, clusters } => {
                let taken = json!({ WORKLOAD_ID_ANNOTATION: identity });
                annotate(&self.term, &self.hub.client, object, taken).await?;
                let note = format!(
                    "the copies in {} were placed for this object before it was created again: it takes them over with \
                     their pods",
                    clusters.join(", ")
                );
                self.recorder.record(object, Weight::Normal, "Adopted", &note).await;
                Ok(Some(Next::Done))
            }
            Recovery::Awaiting(away) => {
                let message = format!(
                    "copies run that the status does not know of, and {} cannot be asked for more of them: nothing is \
                     placed or moved until then. `kubectl annotate foreigncluster NAME \
                     portolan.dev/confirmed-lost=true` gives a cluster up",
                    away.join(", ")
                );
                let told = undecided(workload, "AwaitingMembers", &message, &self.clock.time());
                self.write_status(workload, told).await?;
                Ok(Some(Next::After(AWAITING_MEMBERS)))
            }
        }
    }

    /// If the record is older than the members, what runs counts as placed: nothing moves because of it.
    pub(super) fn count_what_runs(&self, workload: &Workload, seen: &mut BTreeMap<String, Seen>) {
        let unrecorded = |(name, seen): (&String, &Seen)| match (&seen.member, &seen.copy) {
            (Some(member), Some(copy)) => {
                let on_record = is_on_record(workload, name);
                self.fleet.is_unrecorded(member, DEPLOYMENT, &copy.mark, on_record)
            }
            _ => false,
        };
        if seen.iter().any(unrecorded) {
            for seen in seen.values_mut().filter(|seen| seen.answers) {
                seen.candidate.held = seen.candidate.running;
            }
        }
    }
}

fn is_on_record(workload: &Workload, cluster: &str) -> bool {
    workload.held().any(|(name, _)| name == cluster)
}

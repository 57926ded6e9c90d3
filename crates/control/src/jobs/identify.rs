//! Who a job is, settled before anything is planned about it.

use super::status::undecided;
use super::{Controller, Declared};
use crate::identity::annotate;
use crate::names::WORKLOAD_ID_ANNOTATION;
use crate::recovery::{AWAITING_MEMBERS, JOB, Recovery};
use portolan_runtime::{CallError, Key, Next, Weight};
use serde_json::json;
use std::time::Duration;

/// How soon to look again while members are still becoming known.
const GETTING_TO_KNOW: Duration = Duration::from_millis(250);

impl Controller {
    /// Settles the identity of a job; answers when to look again if nothing may be planned yet.
    pub(super) async fn identify(&self, key: &Key, job: &Declared) -> Result<Option<Next>, CallError> {
        let object = &job.object;
        if let Some(denied) = job.identity.denied() {
            let gone = json!({ WORKLOAD_ID_ANNOTATION: null });
            annotate(&self.term, &self.hub.client, object, gone).await?;
            let note = format!(
                "annotation {WORKLOAD_ID_ANNOTATION} {denied:?} was removed: another object of the hub has this \
                 identity, or it is none"
            );
            self.recorder.record(object, Weight::Warning, "IdentityTaken", &note).await;
            return Ok(Some(Next::Done));
        }
        let mark = |member: &crate::fleet::Member| Some(member.jobs.get(key)?.mark.clone());
        match self.fleet.recovery(JOB, key, job.uid(), |cluster| job.is_in(cluster), mark) {
            Recovery::Nothing => Ok(None),
            Recovery::NotYet => Ok(Some(Next::After(GETTING_TO_KNOW))),
            Recovery::TakeOver { identity, clusters } => {
                let taken = json!({ WORKLOAD_ID_ANNOTATION: identity });
                annotate(&self.term, &self.hub.client, object, taken).await?;
                let note = format!(
                    "the Jobs in {} were created for this object before it was created again: it takes them over, and \
                     what they have finished counts",
                    clusters.join(", ")
                );
                self.recorder.record(object, Weight::Normal, "Adopted", &note).await;
                Ok(Some(Next::Done))
            }
            Recovery::Awaiting(away) => {
                let message = format!(
                    "Jobs run that the status does not know of, and {} cannot be asked for more of them: nothing is \
                     started until then, so that no work is done twice. `kubectl annotate foreigncluster NAME \
                     portolan.dev/confirmed-lost=true` gives a cluster up",
                    away.join(", ")
                );
                let told = undecided(object, "AwaitingMembers", &message, &self.clock.time());
                self.write(job, told, false).await?;
                Ok(Some(Next::After(AWAITING_MEMBERS)))
            }
        }
    }
}

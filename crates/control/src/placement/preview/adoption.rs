//! What is told of a workload that is marked to take over Deployments.

use super::super::Workload;
use super::Previews;
use crate::driver::Problem;
use crate::names::ADOPT_ANNOTATION;
use kube::ResourceExt;
use portolan_api::Reason;
use portolan_api::conditions::ConditionType;
use portolan_runtime::Key;

impl Previews {
    /// Nothing is decided about a workload that is marked to take over Deployments until it has them: what it waits for, as its
    /// status says.
    pub(super) fn awaits_adoption(&self, key: &Key, workload: &Workload) -> Option<Problem> {
        if self.0.loses_mark(key, workload) {
            return None;
        }
        let mark = workload.object.annotations().get(ADOPT_ANNOTATION)?;
        let begin = format!("it is marked to take over Deployments ({ADOPT_ANNOTATION}: {mark})");
        let conditions = workload.object.status.iter().flat_map(|status| &status.conditions);
        let mut conditions = conditions.filter(|each| each.type_ == ConditionType::Placed.as_str());
        let told = conditions.find_map(|each| {
            let reason = Reason::parse(&each.reason)?;
            let waits =
                [Reason::NotAdopted, Reason::InvalidAdoption, Reason::AwaitingMembers].contains(&reason);
            waits.then(|| (reason, each.message.clone()))
        });
        let (reason, message) = match told {
            Some((reason, why)) => (reason, format!("{begin}, and nothing is decided until it has: {why}")),
            None => (Reason::NotAdopted, format!("{begin}: what is placed is decided when it has")),
        };
        Some(Problem::Undecided(reason, message))
    }
}

//! How a cluster of the fleet is reached at one moment.

use super::{Fleet, Member};
use std::sync::Arc;

/// A cluster that is known well enough to decide about, or known not to answer.
pub(crate) struct Reached {
    /// The member, once it is connected.
    pub(crate) member: Option<Arc<Member>>,
    /// Why it does not answer, if it is connected and does not.
    pub(crate) silence: Option<String>,
    /// Whether it answers now.
    pub(crate) answers: bool,
}

impl Fleet {
    /// How the cluster of this name is reached; nothing while it is still being got to know. What a decision needs of a
    /// member that answers, beside its room and its Deployments, is asked by `listed`.
    pub(crate) fn reached(&self, name: &str, listed: impl Fn(&Member) -> bool) -> Option<Reached> {
        let member = self.member(name);
        let silence = member.as_ref().and_then(|member| member.reach.silence());
        let answers = member.as_ref().is_some_and(|member| member.reach.answers());
        let known = match &member {
            Some(member) => silence.is_some() || (answers && member.known() && listed(member)),
            None => self.is_unconnected(name),
        };
        known.then_some(Reached { member, silence, answers })
    }
}

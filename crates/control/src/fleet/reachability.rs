//! How a cluster of the fleet is reached at one moment.

use super::readable::{KNOWN_WITHIN, Needs, Readable};
use super::{Fleet, Member};
use crate::capacity::Book;
use crate::copies::Copied;
use portolan_api::Reason;
use portolan_runtime::{Key, foreign_text};
use std::sync::Arc;

/// A cluster, and whether it can be decided about.
pub(crate) struct Reachability {
    /// The member, once it is connected.
    pub(crate) member: Option<Arc<Member>>,
    /// Why nothing is known of what it holds now, in a word and a sentence: it does not answer, or cannot be listed.
    pub(crate) unknown: Option<(Reason, String)>,
    /// Whether it answers, and what it holds is known.
    pub(crate) is_known: bool,
    /// Whether it was connected a moment ago and will be known soon.
    pub(crate) joining: bool,
}

impl Fleet {
    /// Whether a cluster is being connected, or was a moment ago and is being listed.
    pub(crate) fn is_joining(&self, name: &str) -> bool {
        let Some(member) = self.member(name) else { return !self.is_unconnected(name) };
        let all = member.copy_kinds().map(|kind| kind.needs);
        all.into_iter().any(|needs| self.reachability(name, None, needs).joining)
    }

    /// How a cluster is reached by those who decide about an object of which it may hold a copy. One whose copy cannot be
    /// read is not known to them.
    pub(crate) fn reachability_of<K: Copied>(
        &self,
        name: &str,
        book: Option<&Book>,
        needs: Needs,
        key: &Key,
    ) -> Reachability {
        let reached = self.reachability(name, book, needs);
        let index = reached.member.as_ref().map(|member| member.index::<K>());
        match index.and_then(|index| index.health().unreadable(key)).filter(|_| reached.is_known) {
            None => reached,
            Some(unreadable) => {
                let problem = foreign_text(&unreadable.problem);
                let message = format!("its {} {key} cannot be read: {problem}", K::NAME);
                Reachability { unknown: Some((Reason::ListFailed, message)), is_known: false, ..reached }
            }
        }
    }

    /// How the cluster of this name is reached. Whoever decides about room asks within the book that the decision rests
    /// on, so that both are of the same connection.
    ///
    /// A cluster that is not known keeps what it holds on record and takes nothing new; the others do not wait for it.
    pub(crate) fn reachability(&self, name: &str, book: Option<&Book>, needs: Needs) -> Reachability {
        let Some(member) = self.member(name) else {
            let joining = !self.is_unconnected(name);
            let unknown = joining.then(|| (Reason::CacheNotSynced, "it is being connected".to_owned()));
            return Reachability { member: None, unknown, is_known: false, joining };
        };
        let is_new = member.since.elapsed() < KNOWN_WITHIN;
        let listing = || {
            Err((
                Reason::CacheNotSynced,
                "it was connected a moment ago, and is being listed".to_owned(),
                true,
            ))
        };
        let known = match member.health.unreachable_reason() {
            Some(why) if member.health.is_refused() => Err((
                Reason::Unreachable,
                format!("its API server refuses the hub's credential: {why}"),
                false,
            )),
            Some(silence) => {
                Err((Reason::Unreachable, format!("its API server does not answer: {silence}"), false))
            }
            None if !member.health.is_reachable() && is_new => listing(),
            None if !member.health.is_reachable() => {
                Err((Reason::Unreachable, "its API server has not answered yet".to_owned(), false))
            }
            None if book.is_some_and(|book| !member.is_in(book)) => listing(),
            None => match member.readable(needs) {
                Readable::Known => Ok(()),
                Readable::Joining => listing(),
                Readable::Not(problem) => {
                    Err((Reason::ListFailed, format!("it cannot be listed: {problem}"), false))
                }
            },
        };
        match known {
            Ok(()) => Reachability { member: Some(member), unknown: None, is_known: true, joining: false },
            Err((reason, message, joining)) => Reachability {
                member: Some(member),
                unknown: Some((reason, message)),
                is_known: false,
                joining,
            },
        }
    }
}

#[cfg(test)]
#[path = "reachability_tests.rs"]
mod tests;

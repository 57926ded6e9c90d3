//! What only whoever orders a migration knows.

use crate::session::{HandsError, SessionInfo};
use crate::transfer::{SessionLimits, Ticket};
use k8s_openapi::api::core::v1::Pod;
use portolan_node::Name;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The transfer of a migration. Both agents are told the same.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// What its session is called.
    pub session: Name,
    /// What entitles to it.
    pub ticket: Ticket,
}

/// What the source is told.
#[derive(Clone, Debug)]
pub struct SourceBriefing {
    /// The peer that the pod goes to.
    pub peer: String,
    /// Where the agent of the destination listens.
    pub address: SocketAddr,
    /// The transfer.
    pub transfer: Transfer,
}

/// What the destination is told.
#[derive(Clone, Debug)]
pub struct DestinationBriefing {
    /// The peer that the pod comes from.
    pub peer: String,
    /// The transfer.
    pub transfer: Transfer,
    /// How much may arrive.
    pub limits: SessionLimits,
    /// The pod as it is at the source. Whoever briefs has checked that it may be created in this cluster.
    pub pod: Box<Pod>,
}

/// The briefings of all migrations. Copies show the same.
#[derive(Clone, Default)]
pub(super) struct Briefings(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    sources: BTreeMap<String, SourceBriefing>,
    destinations: BTreeMap<String, DestinationBriefing>,
}

impl Briefings {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_source(&self, migration: &str, briefing: SourceBriefing) {
        self.known().sources.insert(migration.to_owned(), briefing);
    }

    pub(super) fn set_destination(&self, migration: &str, briefing: DestinationBriefing) {
        self.known().destinations.insert(migration.to_owned(), briefing);
    }

    pub(super) fn remove_source(&self, migration: &str) {
        self.known().sources.remove(migration);
    }

    pub(super) fn remove_destination(&self, migration: &str) {
        self.known().destinations.remove(migration);
    }

    pub(super) fn source(&self, session: &SessionInfo) -> Result<SourceBriefing, HandsError> {
        let briefing = self.known().sources.get(&session.migration).cloned();
        briefing.ok_or_else(|| unknown(session, "where it goes"))
    }

    pub(super) fn destination(&self, session: &SessionInfo) -> Result<DestinationBriefing, HandsError> {
        let briefing = self.known().destinations.get(&session.migration).cloned();
        briefing.ok_or_else(|| unknown(session, "where it comes from"))
    }
}

fn unknown(session: &SessionInfo, what: &str) -> HandsError {
    HandsError::new(format!(
        "pod {}: the agent was not told {what} in migration {} since it was started, and waits for that",
        session.pod, session.migration
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Pod as MovedPod;

    fn session(migration: &str) -> SessionInfo {
        let terms = serde_json::json!({ "order": "Transactional", "timeout": "20s", "maxDowntime": "5s" });
        SessionInfo {
            pod: MovedPod::new("shop", "web-0", "4f1c").unwrap(),
            migration: migration.to_owned(),
            session: 7,
            terms: serde_json::from_value(terms).unwrap(),
            baseline: String::new(),
        }
    }

    #[test]
    fn a_briefing_is_of_one_migration_until_that_is_over() {
        let briefings = Briefings::default();
        let transfer = Transfer { session: Name::new("session", "1").unwrap(), ticket: Ticket::new([7; 32]) };
        let briefing = SourceBriefing {
            peer: "lille".to_owned(),
            address: "198.51.100.7:4000".parse().unwrap(),
            transfer,
        };
        briefings.set_source("m", briefing);
        assert_eq!(briefings.clone().source(&session("m")).unwrap().peer, "lille");
        let error = briefings.source(&session("n")).unwrap_err().to_string();
        assert!(error.contains("pod shop/web-0") && error.contains("migration n"), "{error}");
        assert!(briefings.destination(&session("m")).is_err());
        briefings.remove_source("m");
        assert!(briefings.source(&session("m")).is_err());
    }
}

//! What the hands are told about the other agent.

use super::briefing::{Briefings, DestinationBriefing, SourceBriefing, Transfer};
use super::peers::Peers;
use crate::hands::{DestinationTickets, Expected, Route, SourceTickets};
use crate::session::{HandsError, SessionInfo};
use crate::transfer::SessionKey;
use portolan_node::Name;

/// What was briefed, and the peers that it is about.
#[derive(Clone)]
pub(super) struct Tickets {
    briefings: Briefings,
    peers: Peers,
}

impl Tickets {
    pub(super) fn new(briefings: Briefings, peers: Peers) -> Self {
        Self { briefings, peers }
    }
}

fn key(session: &SessionInfo, transfer: &Transfer) -> Result<SessionKey, HandsError> {
    let migration = Name::new("migration", &session.migration).map_err(HandsError::new)?;
    Ok(SessionKey { migration, session: transfer.session.clone() })
}

impl SourceTickets for Tickets {
    async fn route(&self, session: &SessionInfo) -> Result<Route, HandsError> {
        let SourceBriefing { peer, address, transfer } = self.briefings.source(session)?;
        let key = key(session, &transfer)?;
        Ok(Route { credentials: self.peers.credentials(&peer)?, address, key, ticket: transfer.ticket })
    }
}

impl DestinationTickets for Tickets {
    async fn expected(&self, session: &SessionInfo) -> Result<Expected, HandsError> {
        let DestinationBriefing { peer, transfer, limits, .. } = self.briefings.destination(session)?;
        let key = key(session, &transfer)?;
        Ok(Expected { receiver: self.peers.receiver(&peer)?, peer, key, ticket: transfer.ticket, limits })
    }
}

//! What the two sides report of one migration.

use super::destination::DestinationStage;
use super::source::SourceStage;
use super::{Facts, Progress, Record};

/// What both sides report of their sessions in this migration.
pub(super) struct Sides<'a> {
    pub(super) source: Option<&'a Progress<SourceStage>>,
    pub(super) destination: Option<&'a Progress<DestinationStage>>,
}

impl Sides<'_> {
    pub(super) fn source_is_at(&self, stage: SourceStage) -> bool {
        self.source.is_some_and(|source| source.stage >= stage && source.stage < SourceStage::Aborting)
    }

    pub(super) fn destination_is_at(&self, stage: DestinationStage) -> bool {
        let alive = DestinationStage::Discarding;
        self.destination.is_some_and(|destination| destination.stage >= stage && destination.stage < alive)
    }

    pub(super) fn destination_gave_up(&self) -> bool {
        self.destination.is_some_and(|destination| destination.stage >= DestinationStage::Discarding)
    }
}

/// Reads the reports of the sessions of this migration; a session that is not known yet is taken over.
pub(super) fn sides<'a>(record: &mut Record, facts: &'a Facts) -> Sides<'a> {
    let source = facts.source.progress(&record.migration);
    if let (None, Some(source)) = (record.source_session, source) {
        record.source_session = Some(source.session);
    }
    let destination = facts.destination.progress(&record.migration);
    if let (None, Some(destination)) = (record.destination_session, destination) {
        record.destination_session = Some(destination.session);
    }
    Sides {
        source: source.filter(|source| Some(source.session) == record.source_session),
        destination: destination
            .filter(|destination| Some(destination.session) == record.destination_session),
    }
}

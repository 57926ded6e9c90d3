//! All sessions of a node.

use super::destination::Destination;
use super::run::Common;
use super::source::Source;
use super::table::Table;
use super::{DestinationHands, Journal, JournalError, Pod, Role, SessionError, Settings, SourceHands};
use portolan_core::migration::{DestinationOrder, DestinationReport, SourceOrder, SourceReport};
use portolan_runtime::Clock;
use std::collections::BTreeSet;
use std::fmt;
use tracing::error;

/// All sessions of a node. When this is dropped they stop where they are, and go on when the journal is opened again.
pub struct Sessions<S: SourceHands, D: DestinationHands> {
    source: Table<Source<S>>,
    destination: Table<Destination<D>>,
}

impl<S: SourceHands, D: DestinationHands> Sessions<S, D> {
    /// Opens the journal, which no other agent may use, and lets its sessions go on.
    ///
    /// The files of the journal that are not understood are returned too. Nothing is done for their pods, and no session
    /// is begun for them, until somebody has looked at them.
    ///
    /// # Errors
    /// The folder of the journal cannot be made or listed.
    pub async fn open(
        journal: Journal,
        source: S,
        destination: D,
        clock: Clock,
        settings: Settings,
    ) -> Result<(Self, Vec<JournalError>), JournalError> {
        let loaded = journal.load().await?;
        let common = Common { journal, clock, settings };
        let sessions = Self {
            source: Table::new(Source::new(source), common.clone()),
            destination: Table::new(Destination::new(destination), common),
        };
        let (mut sources, mut destinations) = (BTreeSet::new(), BTreeSet::new());
        for entry in loaded.sources {
            sources.insert(entry.record.fence.migration.clone());
            sessions.source.resume(entry);
        }
        for entry in loaded.destinations {
            destinations.insert(entry.record.fence.migration.clone());
            sessions.destination.resume(entry);
        }
        // Of a file that is not understood it is not known which migration it is about.
        if loaded.broken.is_empty() {
            sessions.source.remove_ended(&sources).await;
            sessions.destination.remove_ended(&destinations).await;
        }
        for error in &loaded.broken {
            error!(%error, "a session of the journal is left as it is");
        }
        Ok((sessions, loaded.broken))
    }

    /// Gives an order to the session of a pod at the source, and begins one if its goal is `Reserved`.
    ///
    /// # Errors
    /// The session cannot be begun. Nothing was done to the pod then.
    pub async fn order_source(&self, pod: &Pod, order: &SourceOrder) -> Result<SourceReport, SessionError> {
        self.source.order(pod, order).await
    }

    /// Gives an order to the session of a pod at the destination, and begins one if its goal is `Prepared`.
    ///
    /// # Errors
    /// The session cannot be begun. Nothing was done for the pod then.
    pub async fn order_destination(
        &self,
        pod: &Pod,
        order: &DestinationOrder,
    ) -> Result<DestinationReport, SessionError> {
        self.destination.order(pod, order).await
    }

    /// How far the session of a pod at the source is, if there is one.
    #[must_use]
    pub fn source_report(&self, pod: &Pod) -> Option<SourceReport> {
        self.source.report(pod)
    }

    /// How far the session of a pod at the destination is, if there is one.
    #[must_use]
    pub fn destination_report(&self, pod: &Pod) -> Option<DestinationReport> {
        self.destination.report(pod)
    }

    /// The pods that have a session, with the role that this node has for each.
    #[must_use]
    pub fn pods(&self) -> Vec<(Role, Pod)> {
        let source = self.source.pods().into_iter().map(|pod| (Role::Source, pod));
        source.chain(self.destination.pods().into_iter().map(|pod| (Role::Destination, pod))).collect()
    }
}

impl<S: SourceHands, D: DestinationHands> fmt::Debug for Sessions<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("pods", &self.pods()).finish_non_exhaustive()
    }
}

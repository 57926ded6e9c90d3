//! The coordinator of a migration: it decides by the state machine of core, and orders both agents.

use super::agents::Agents;
use crate::proof::LONG;
use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as PodObject;
use portolan_agent::session::Pod;
use portolan_api::Duration as Limit;
use portolan_api::livemigration::MigrationOrder;
use portolan_core::migration::destination::DestinationStage;
use portolan_core::migration::source::SourceStage;
use portolan_core::migration::{Answer, Facts, Record, Report, Step, Terms, plan};
use portolan_tests::migration::{Request, Ticket};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long to wait between two rounds of orders. The pod stands still meanwhile.
const PAUSE: Duration = Duration::from_millis(10);

/// A migration that is under way.
pub(super) struct Migration<'a> {
    agents: &'a mut Agents,
    pod: Pod,
    record: Record,
    facts: Facts,
}

impl<'a> Migration<'a> {
    /// Tells both agents about a migration with this UID. Nothing is ordered yet.
    pub(super) async fn begin(agents: &'a mut Agents, uid: &str, pod: &PodObject) -> Result<Self> {
        let metadata = &pod.metadata;
        let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
        let moved = Pod::new(
            namespace.context("the pod has a namespace")?,
            name.context("the pod has a name")?,
            metadata.uid.as_deref().context("the pod has a UID")?,
        )?;
        let ticket = Ticket { session: "first".to_owned(), secret: [7; 32] };
        let [destination, source] = agents.peers.clone();
        let briefing = Request::BriefSource {
            migration: uid.to_owned(),
            peer: destination,
            address: agents.address,
            ticket: ticket.clone(),
        };
        agents.source.brief(&briefing).await?;
        let pod = Box::new(pod.clone());
        let briefing = Request::BriefDestination { migration: uid.to_owned(), peer: source, ticket, pod };
        agents.destination.brief(&briefing).await?;
        // A busy machine is slow, and what is tried here is not how fast it is.
        let terms = Terms {
            order: MigrationOrder::Transactional,
            timeout: Limit::from_secs(300),
            max_downtime: Limit::from_secs(120),
        };
        let record = Record::new(uid.to_owned(), terms, 1, Timestamp::now());
        let facts = Facts { source: Answer::Silent, destination: Answer::Silent, abort_requested: false };
        Ok(Self { agents, pod: moved, record, facts })
    }

    /// Decides, and gives both agents their orders.
    async fn round(&mut self) -> Result<()> {
        let plan = plan(&self.record, &self.facts, Timestamp::now());
        if plan.record.step != self.record.step {
            eprintln!("migration {}: {:?}", plan.record.migration, plan.record.step);
        }
        self.record = plan.record;
        if let Some(order) = plan.orders.source {
            self.facts.source = self.agents.source.order_source(&self.pod, order).await?;
        }
        if let Some(order) = plan.orders.destination {
            self.facts.destination = self.agents.destination.order_destination(&self.pod, order).await?;
        }
        sleep(PAUSE).await;
        Ok(())
    }

    /// Goes on until the pod is restored at the destination, frozen. Nothing is committed then.
    pub(super) async fn until_verified(&mut self) -> Result<()> {
        loop {
            if let Answer::Report(Report::Progress(progress)) = &self.facts.destination
                && progress.stage == DestinationStage::Verified
            {
                return Ok(());
            }
            self.round().await?;
            if let Some(abort) = &self.record.abort {
                bail!("the migration was given up: {}", abort.message);
            }
        }
    }

    /// Gives the migration up, and answers after how long the source runs again.
    pub(super) async fn abort(&mut self) -> Result<Duration> {
        self.facts.abort_requested = true;
        let decided = Instant::now();
        loop {
            self.round().await?;
            if let Answer::Report(Report::Progress(progress)) = &self.facts.source
                && progress.stage == SourceStage::Aborted
            {
                return Ok(decided.elapsed());
            }
            ensure!(decided.elapsed() < LONG, "the source is not thawed: {:?}", self.facts);
        }
    }

    /// Goes on until nothing is left to do.
    pub(super) async fn finish(mut self) -> Result<Record> {
        let begun = Instant::now();
        while self.record.step != Step::Done {
            ensure!(begun.elapsed() < LONG, "it does not end: {:?} {:?}", self.record, self.facts);
            self.round().await?;
        }
        Ok(self.record)
    }
}

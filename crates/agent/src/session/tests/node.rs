//! A node with its agent, which can be killed and started again.

use super::fake::Fake;
use super::world::Shared;
use crate::session::{Journal, JournalError, Pod, Role, Sessions, Settings};
use portolan_core::migration::destination::DestinationStage;
use portolan_core::migration::source::{SourceGoal, SourceStage};
use portolan_core::migration::{Answer, DestinationOrder, Order, SourceOrder, Terms};
use portolan_runtime::Clock;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::yield_now;
use tokio::time::timeout;

/// How long the coordinator waits for an answer.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) struct Node {
    pub(super) world: Shared,
    pub(super) role: Role,
    pub(super) folder: TempDir,
    pub(super) clock: Clock,
    running: Option<Sessions<Fake, Fake>>,
}

pub(super) fn pod() -> Pod {
    Pod::new("shop", "web-0", "4f1c2a52-0f0e-4b7e-9c39-0d6b0f3d9d11").unwrap()
}

pub(super) fn terms(order: &str) -> Terms {
    let terms = serde_json::json!({ "order": order, "timeout": "20s", "maxDowntime": "5s" });
    serde_json::from_value(terms).unwrap()
}

/// An order to a source about the migration `m`.
pub(super) fn order(session: Option<u64>, token: i64, goal: SourceGoal) -> SourceOrder {
    Order { migration: "m".to_owned(), session, token, terms: terms("Transactional"), goal }
}

pub(super) fn clock() -> Clock {
    Clock::starting_at(serde_json::from_value(serde_json::json!("2026-11-19T12:00:00Z")).unwrap())
}

async fn open(
    world: &Shared,
    role: Role,
    folder: &TempDir,
    clock: &Clock,
    settings: Settings,
) -> (Sessions<Fake, Fake>, Vec<JournalError>) {
    let incarnation = world.lock().unwrap().agent(role).incarnation;
    let fake = Fake { world: Arc::clone(world), role, incarnation };
    let journal = Journal::with_disk(folder.path(), Arc::new(fake.clone()));
    Sessions::open(journal, fake.clone(), fake, clock.clone(), settings).await.unwrap()
}

impl Node {
    pub(super) async fn start(world: &Shared, role: Role, clock: &Clock) -> Self {
        Self::start_with(world, role, clock, Settings::default()).await
    }

    pub(super) async fn start_with(world: &Shared, role: Role, clock: &Clock, settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (sessions, broken) = open(world, role, &folder, clock, settings).await;
        assert!(broken.is_empty(), "{broken:?}");
        Self { world: Arc::clone(world), role, folder, clock: clock.clone(), running: Some(sessions) }
    }

    /// Kills the agent and starts it again on the same folder. What it does not understand in its journal is returned.
    pub(super) async fn restart(&mut self) -> Vec<JournalError> {
        self.running = None;
        // Its tasks end one after the other.
        for _ in 0..20 {
            yield_now().await;
        }
        {
            let mut world = self.world.lock().unwrap();
            world.receiving &= self.role != Role::Destination;
            let agent = world.agent(self.role);
            agent.incarnation += 1;
            agent.dead = false;
            agent.crash = agent.crash.and_then(|(_, mode)| Some((agent.steps + agent.again.take()?, mode)));
        }
        let (sessions, broken) =
            open(&self.world, self.role, &self.folder, &self.clock, Settings::default()).await;
        self.running = Some(sessions);
        broken
    }

    pub(super) fn sessions(&self) -> &Sessions<Fake, Fake> {
        self.running.as_ref().unwrap()
    }

    pub(super) async fn ask_source(&self, order: &SourceOrder) -> Answer<SourceStage> {
        match timeout(PATIENCE, self.sessions().order_source(&pod(), order)).await {
            Ok(Ok(report)) => Answer::Report(report),
            _ => Answer::Silent,
        }
    }

    pub(super) async fn ask_destination(&self, order: &DestinationOrder) -> Answer<DestinationStage> {
        match timeout(PATIENCE, self.sessions().order_destination(&pod(), order)).await {
            Ok(Ok(report)) => Answer::Report(report),
            _ => Answer::Silent,
        }
    }

    /// The files of its journal, except for the counter.
    pub(super) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "sessions.json").collect()
    }
}

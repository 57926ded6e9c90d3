//! A whole migration: the coordinator of core, and two nodes.

use super::node::{Node, clock, terms};
use super::world::{Shared, World};
use crate::session::Role;
use portolan_core::migration::destination::DestinationGoal;
use portolan_core::migration::{Answer, Facts, Outcome, Record, Step, plan};
use portolan_runtime::Clock;
use std::time::Duration;
use tokio::time::sleep;

pub(super) struct Play {
    pub(super) world: Shared,
    pub(super) source: Node,
    pub(super) destination: Node,
    pub(super) record: Record,
    pub(super) facts: Facts,
    clock: Clock,
}

impl Play {
    pub(super) async fn new(order: &str) -> Self {
        let (world, clock) = (World::shared(), clock());
        let source = Node::start(&world, Role::Source, &clock).await;
        let destination = Node::start(&world, Role::Destination, &clock).await;
        let record = Record::new("m".to_owned(), terms(order), 1, clock.now());
        let facts = Facts { source: Answer::Silent, destination: Answer::Silent, abort_requested: false };
        Self { world, source, destination, record, facts, clock }
    }

    /// The coordinator decides, and both agents are asked. Agents that have died are started again.
    pub(super) async fn round(&mut self) {
        let plan = plan(&self.record, &self.facts, self.clock.now());
        self.record = plan.record;
        if let Some(order) = plan.orders.source {
            self.facts.source = self.source.ask_source(&order).await;
        }
        if let Some(order) = plan.orders.destination {
            self.world.lock().unwrap().ordered_to_run |= order.goal == DestinationGoal::Running;
            self.facts.destination = self.destination.ask_destination(&order).await;
        }
        sleep(Duration::from_millis(50)).await;
        for node in [&mut self.source, &mut self.destination] {
            let dead = self.world.lock().unwrap().agent(node.role).dead;
            if dead {
                let broken = node.restart().await;
                assert!(broken.is_empty(), "{broken:?}");
            }
        }
    }

    /// Goes on until something is so.
    pub(super) async fn until(&mut self, so: fn(&World) -> bool) {
        for _ in 0..200 {
            if so(&self.world.lock().unwrap()) {
                return;
            }
            self.round().await;
        }
        unreachable!("it never comes to that: {:?} {:?}", self.record, self.world);
    }

    /// Goes on to the end, and until what was begun late has ended by itself. The end is as promised.
    pub(super) async fn settle(&mut self) -> Outcome {
        for _ in 0..400 {
            if self.record.step == Step::Done {
                break;
            }
            self.round().await;
        }
        assert_eq!(self.record.step, Step::Done, "{:?} {:?}", self.record, self.world);
        sleep(Duration::from_secs(30)).await;
        // What died at its very end goes on too.
        for node in [&mut self.source, &mut self.destination] {
            let broken = node.restart().await;
            assert!(broken.is_empty(), "{broken:?}");
        }
        sleep(Duration::from_secs(30)).await;
        self.check_end()
    }

    fn check_end(&self) -> Outcome {
        let world = self.world.lock().unwrap();
        assert!(world.violations.is_empty(), "{:?}", world.violations);
        let outcome = self.record.outcome.unwrap();
        match outcome {
            Outcome::Succeeded => {
                assert!(world.destination_runs() && world.marked && world.gone, "{world:?}");
            }
            Outcome::Aborted | Outcome::Failed => {
                assert!(world.source_runs() && !world.terminating && !world.destination_runs(), "{world:?}");
            }
            Outcome::Lost => unreachable!("the pod is lost: {world:?}"),
        }
        assert!(world.source_runs() != world.destination_runs(), "{world:?}");
        assert!(world.checkpoint.is_none() && world.data.is_none(), "left behind: {world:?}");
        for node in [&self.source, &self.destination] {
            assert_eq!(node.files(), [""; 0], "left behind at the {}", node.role);
            assert!(node.sessions().pods().is_empty());
        }
        outcome
    }
}

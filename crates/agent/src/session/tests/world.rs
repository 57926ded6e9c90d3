//! The pod at both ends, and how its agents die.

use crate::session::Role;
use portolan_core::migration::destination::Target;
use portolan_core::migration::source::Frozen;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

pub(super) type Shared = Arc<Mutex<World>>;

/// How an agent dies in a step: a write or an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Before,
    Half,
    After,
}

/// What becomes of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    Dies(Mode),
    /// The agent is dead already.
    Dead,
}

#[derive(Debug, Default)]
pub(super) struct Agent {
    pub(super) incarnation: u32,
    /// How many writes and actions there were.
    pub(super) steps: usize,
    pub(super) crash: Option<(usize, Mode)>,
    /// After so many more steps it dies once more.
    pub(super) again: Option<usize>,
    pub(super) dead: bool,
    pub(super) disk_is_full: bool,
    /// The write of the commit comes to the disk, but fails, and the disk is full from then on.
    pub(super) doubtful_commit: bool,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) agents: [Agent; 2],
    pub(super) frozen: Frozen,
    pub(super) gone: bool,
    pub(super) terminating: bool,
    /// How often the pod has gone on after it stood still.
    pub(super) life: u64,
    pub(super) checkpoint: Option<u64>,
    pub(super) dumping: bool,
    pub(super) dump_takes: Duration,
    pub(super) send_takes: Duration,
    pub(super) look_fails: bool,
    /// Why the pod cannot be moved.
    pub(super) refusal: Option<&'static str>,
    /// How long a look takes.
    pub(super) look_takes: Duration,
    /// The API server does not answer the source.
    pub(super) api_is_away: bool,
    /// Nothing can be frozen.
    pub(super) freeze_fails: bool,
    /// Whether the journal of the source says that the pod never runs there again.
    pub(super) committed: bool,
    pub(super) target: Target,
    pub(super) restored_life: u64,
    pub(super) data: Option<u64>,
    pub(super) live: bool,
    /// Whether the pod at the destination gets traffic.
    pub(super) marked: bool,
    pub(super) receiving: bool,
    /// Notified when the checkpoint has arrived.
    pub(super) arrived: Arc<Notify>,
    pub(super) ordered_to_run: bool,
    pub(super) actions: Vec<&'static str>,
    /// Whose files were kept at each start.
    pub(super) kept: Vec<(&'static str, Vec<String>)>,
    /// What must never be and was.
    pub(super) violations: Vec<String>,
}

impl World {
    pub(super) fn shared() -> Shared {
        Arc::new(Mutex::new(Self {
            agents: [Agent::default(), Agent::default()],
            frozen: Frozen::None,
            gone: false,
            terminating: false,
            life: 0,
            checkpoint: None,
            dumping: false,
            dump_takes: Duration::from_millis(60),
            send_takes: Duration::from_millis(60),
            look_fails: false,
            refusal: None,
            look_takes: Duration::ZERO,
            api_is_away: false,
            freeze_fails: false,
            committed: false,
            target: Target::None,
            restored_life: 0,
            data: None,
            live: false,
            marked: false,
            receiving: false,
            arrived: Arc::default(),
            ordered_to_run: false,
            actions: Vec::new(),
            kept: Vec::new(),
            violations: Vec::new(),
        }))
    }

    pub(super) fn agent(&mut self, role: Role) -> &mut Agent {
        &mut self.agents[usize::from(role == Role::Destination)]
    }

    pub(super) fn is_dead(&mut self, role: Role, incarnation: u32) -> bool {
        let agent = self.agent(role);
        agent.dead || agent.incarnation != incarnation
    }

    pub(super) fn step(&mut self, role: Role, incarnation: u32) -> Fate {
        if self.is_dead(role, incarnation) {
            return Fate::Dead;
        }
        let agent = self.agent(role);
        agent.steps += 1;
        match agent.crash {
            Some((at, mode)) if at == agent.steps => {
                agent.dead = true;
                Fate::Dies(mode)
            }
            _ => Fate::Done,
        }
    }

    pub(super) fn source_runs(&self) -> bool {
        !self.gone && self.frozen != Frozen::All
    }

    pub(super) fn destination_runs(&self) -> bool {
        self.target == Target::Running
    }

    pub(super) fn violate(&mut self, what: &str) {
        self.violations.push(format!("{what} after {:?}", self.actions));
    }

    /// What is promised at any time.
    pub(super) fn check(&mut self) {
        let (source, destination) = (self.source_runs(), self.destination_runs());
        for (broken, what) in [
            (source && destination, "two copies run"),
            (source && self.committed, "the source runs after the commit"),
            (destination && !self.ordered_to_run, "the destination runs without an order"),
            (destination && !self.committed, "the destination runs before the commit"),
            (destination && self.restored_life != self.life, "the destination runs something of the past"),
        ] {
            if broken {
                self.violate(what);
            }
        }
    }
}

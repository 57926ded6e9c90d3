//! What all controllers of a hub share.

use super::EpochFence;
use crate::dependencies::Sources;
use crate::fleet::{Fleet, Hub};
use crate::reschedule::Reschedulers;
use crate::settings::Settings;
use portolan_runtime::{Clock, Seed, Term};

/// What all controllers of a hub share for the length of a term.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) hub: Hub,
    pub(crate) fleet: Fleet,
    pub(crate) sources: Sources,
    pub(crate) reschedulers: Reschedulers,
    pub(crate) fence: EpochFence,
    pub(crate) clock: Clock,
    pub(crate) term: Term,
    pub(crate) seed: Seed,
    pub(crate) settings: Settings,
}

impl Context {
    pub(crate) fn new(hub: Hub, clock: Clock, seed: Seed, term: Term, settings: Settings) -> Self {
        let fence = EpochFence::new(&term);
        let (sources, reschedulers) = <(Sources, Reschedulers)>::default();
        let fleet = Fleet::measuring(settings.measure_latency);
        Self { hub, fleet, sources, reschedulers, fence, clock, term, seed, settings }
    }
}

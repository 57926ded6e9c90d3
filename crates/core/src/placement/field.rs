//! The clusters that a decision is about.

use super::{Candidate, PlacementRequest, Standing};
use std::time::Duration;

/// All candidates in order of name, with their standing before one workload.
pub(super) struct Field<'a>(Vec<(&'a Candidate, Standing)>);

impl<'a> Field<'a> {
    pub(super) fn of(request: &PlacementRequest, candidates: &'a [Candidate]) -> Self {
        let mut all: Vec<_> =
            candidates.iter().map(|each| (each, each.stands(request, candidates))).collect();
        all.sort_by(|(one, _), (other, _)| one.name().cmp(other.name()));
        Self(all)
    }

    /// All of them, in order of name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(&'a Candidate, Standing)> {
        self.0.iter()
    }

    /// The candidate of this name.
    pub(super) fn get(&self, name: &str) -> Option<&(&'a Candidate, Standing)> {
        let found = self.0.binary_search_by(|(each, _)| each.name().cmp(name));
        found.ok().and_then(|index| self.0.get(index))
    }

    /// How many replicas a cluster may hold: as many as fit, or what it keeps if nothing new may go there.
    pub(super) fn cap(&self, name: &str) -> u32 {
        match self.get(name) {
            Some((_, Standing::Feasible { max_replicas, .. })) => *max_replicas,
            Some((candidate, Standing::NoNewReplicas(_))) => candidate.keeps(),
            Some((_, Standing::Evict(_))) | None => 0,
        }
    }

    /// The round-trip time between two clusters, as far as it is known.
    pub(super) fn rtt(&self, one: &str, other: &str) -> Option<Duration> {
        let ((one, _), (other, _)) = (self.get(one)?, self.get(other)?);
        one.round_trip(other)
    }
}

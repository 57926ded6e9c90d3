//! Amounts as vectors: one slot for each resource that nodes offer.

use crate::capacity::node::MOST_RESOURCES;
use crate::capacity::{Amounts, CPU, MEMORY, PODS};

/// What is free on a node, by slot. Compared slot by slot: CPU first, then memory, then pods, then the rest by name.
pub(super) type Free = Box<[i64]>;

/// The slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resources(Vec<String>);

impl Default for Resources {
    fn default() -> Self {
        Self([CPU, MEMORY, PODS].map(str::to_owned).to_vec())
    }
}

impl Resources {
    /// Makes room for resources that have no slot yet, as long as there are not too many; answers whether any was new.
    pub(super) fn learn(&mut self, amounts: &Amounts) -> bool {
        let before = self.0.len();
        for (name, _) in amounts.iter() {
            if self.0.len() < MOST_RESOURCES && !self.0.iter().any(|known| known == name) {
                self.0.push(name.to_owned());
            }
        }
        self.0[3..].sort();
        self.0.len() > before
    }

    /// The amounts by slot; what has none is left out.
    pub(super) fn vector(&self, amounts: &Amounts) -> Free {
        self.0.iter().map(|name| amounts.get(name)).collect()
    }

    /// What a vector says, by name.
    pub(super) fn amounts(&self, vector: &[i128]) -> Amounts {
        let mut amounts = Amounts::default();
        for (name, milli) in self.0.iter().zip(vector) {
            amounts.set(name, clamp(*milli));
        }
        amounts
    }

    /// The names of the resources, by slot.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// How many slots there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What is to be free at once on a node for these requests.
    pub(super) fn need(&self, requests: &Amounts) -> Need {
        let slots = requests.iter().filter(|(_, milli)| *milli > 0);
        let slots = slots.map(|(name, milli)| Some((self.0.iter().position(|known| known == name)?, milli)));
        Need { slots: slots.collect(), takes: self.vector(requests) }
    }
}

/// What one pod needs, by slot.
#[derive(Clone, Debug)]
pub(super) struct Need {
    /// The slots that bound how often it fits; nothing if it needs what no node offers.
    slots: Option<Vec<(usize, i64)>>,
    takes: Free,
}

impl Need {
    /// How often it fits in what is free.
    pub(super) fn times(&self, free: &[i64]) -> u32 {
        let Some(slots) = &self.slots else { return 0 };
        let fits = |(slot, milli): &(usize, i64)| free[*slot].max(0) / milli;
        u32::try_from(slots.iter().map(fits).min().unwrap_or(i64::MAX)).unwrap_or(u32::MAX)
    }

    /// What is left when it has been taken so many times.
    pub(super) fn taken_from(&self, free: &[i64], times: u32) -> Free {
        let left = |(free, taken): (&i64, &i64)| free.saturating_sub(taken.saturating_mul(i64::from(times)));
        free.iter().zip(&self.takes).map(left).collect()
    }

    /// What it takes, by slot.
    pub(super) fn takes(&self) -> &[i64] {
        &self.takes
    }

    /// Whether it may fit where the first resource is this free; what is freer is compared first.
    pub(super) fn may_fit(&self, first: i64) -> bool {
        self.takes.first().is_none_or(|taken| *taken <= 0 || first >= *taken)
    }

    /// Whether no node offers all that it needs.
    pub(super) fn is_impossible(&self) -> bool {
        self.slots.is_none()
    }

    /// Whether it takes anything at all that could run out.
    pub(super) fn is_bounded(&self) -> bool {
        self.slots.as_ref().is_none_or(|slots| !slots.is_empty())
    }
}

/// A number that was counted exactly, as near as amounts can say it.
pub(super) fn clamp(milli: i128) -> i64 {
    i64::try_from(milli).unwrap_or(if milli < 0 { i64::MIN } else { i64::MAX })
}

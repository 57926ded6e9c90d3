//! What workloads hold, by what the API says and by what was decided since.

use portolan_core::capacity::Shape;
use portolan_runtime::Key;
use std::collections::{BTreeMap, BTreeSet};

/// A workload of the hub.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace and name.
    pub key: Key,
}

/// What a workload holds, as its object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The uid of the workload, which its pods in members carry as label.
    pub uid: String,
    /// The version of the object.
    pub version: Option<String>,
    /// What one replica needs. A workload whose template cannot be read has none and holds nothing.
    pub shape: Option<Shape>,
    /// How many replicas it holds in which cluster.
    pub reserved: BTreeMap<String, u32>,
    /// Where room would be used.
    pub waits: Waits,
}

/// The clusters in which room makes a difference to a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waits {
    /// These alone.
    In(BTreeSet<String>),
    /// All but these.
    NotIn(BTreeSet<String>),
}

impl Waits {
    /// Room makes no difference.
    #[must_use]
    pub const fn nowhere() -> Self {
        Self::In(BTreeSet::new())
    }

    /// Room in any cluster would be used.
    #[must_use]
    pub const fn anywhere() -> Self {
        Self::NotIn(BTreeSet::new())
    }

    /// Whether there is a cluster whose room would be used.
    #[must_use]
    pub fn is_somewhere(&self) -> bool {
        *self != Self::nowhere()
    }

    /// Whether room in this cluster would be used.
    #[must_use]
    pub fn wants(&self, cluster: &str) -> bool {
        match self {
            Self::In(clusters) => clusters.contains(cluster),
            Self::NotIn(clusters) => !clusters.contains(cluster),
        }
    }
}

/// A reservation, and the decision that will replace it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) owner: Owner,
    pub(super) recorded: Reservation,
    pub(super) assumed: Option<Assumed>,
}

/// A decision on its way to the API.
#[derive(Clone, Debug)]
pub(super) struct Assumed {
    pub(super) shape: Shape,
    pub(super) reserved: BTreeMap<String, u32>,
}

impl Entry {
    /// What counts now.
    pub(super) fn holds(&self) -> Option<(&Shape, &BTreeMap<String, u32>)> {
        match &self.assumed {
            Some(assumed) => Some((&assumed.shape, &assumed.reserved)),
            None => self.recorded.shape.as_ref().map(|shape| (shape, &self.recorded.reserved)),
        }
    }
}

//! What a status says beside numbers.

use crate::copies::Failure;
use crate::dependencies::References;
use portolan_core::placement::Order;
use std::collections::{BTreeMap, BTreeSet};

/// What there is to say beside numbers, by cluster.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// What was refused.
    pub(super) failures: BTreeMap<String, Failure>,
    /// What somebody changed there.
    pub(super) drifts: BTreeMap<String, Vec<String>>,
    /// What is done there on the way to the decision.
    pub(super) orders: BTreeMap<String, Order>,
    /// The clusters that are to keep a copy of a former template.
    pub(super) outdated: BTreeSet<String>,
    /// What the template refers to and the hub does not have; nothing if that is not known yet.
    pub(super) missing: Option<References>,
    /// Why nothing of silent clusters is replaced although the workload asks for it.
    pub(super) doubt: Option<String>,
}

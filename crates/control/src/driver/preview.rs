//! What all decisions that are only looked at share: on the leader's own view of the fleet, and without one write.

use crate::capacity::{Book, Owner};
use crate::fleet::Member;
use portolan_api::Reason;
use portolan_core::placement::Account;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why nothing can be told of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// A cluster is still being got to know.
    NotKnown,
    /// The controller does not decide either: a word and a sentence.
    Undecided(Reason, String),
}

/// A copy that would be applied in a cluster.
pub(crate) enum PreparedCopy {
    /// The cluster does not answer.
    Unreachable,
    /// The cluster holds it so already.
    Held,
    /// It would be applied.
    ToApply {
        /// The cluster.
        member: Arc<Member>,
        /// What would be applied.
        object: Value,
        /// Whether a copy that belongs to the object was seen there.
        owned: bool,
    },
}

/// In so many clusters a template is tried of which nothing would be placed for now.
const SAMPLED: usize = 3;

/// A few clusters that may take replicas.
pub(crate) fn open_to_trial(accounts: &[Account]) -> impl Iterator<Item = String> {
    let open = accounts.iter().filter(|account| account.max_replicas.is_some());
    open.take(SAMPLED).map(|account| account.cluster.clone())
}

/// What others hold in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reserved {
    /// Workloads of the same namespace, by kind and name.
    pub(crate) here: BTreeMap<String, u32>,
    /// The sum over all other namespaces, which are nobody's business here.
    pub(crate) elsewhere: u64,
}

/// What others than this owner hold in each cluster.
pub(crate) fn reserved(book: &Book, own: &Owner) -> BTreeMap<String, Reserved> {
    let mut reserved: BTreeMap<String, Reserved> = BTreeMap::new();
    for (cluster, owner, count) in book.holders().filter(|(_, owner, count)| *owner != own && *count > 0) {
        let each = reserved.entry(cluster.to_owned()).or_default();
        if owner.key.namespace == own.key.namespace {
            let kind = if owner.kind == "MultiClusterJob" { "mcj" } else { "mcd" };
            each.here.insert(format!("{kind}/{}", owner.key.name), count);
        } else {
            each.elsewhere += u64::from(count);
        }
    }
    reserved
}

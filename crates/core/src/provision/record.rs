//! What is on record of a provisioner. It is written before anything is asked of Cluster API.

use super::meter::Meter;
use crate::capacity::Amounts;
use k8s_openapi::jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The largest part of a cluster's name that the user chooses, so that names of objects made for it stay short enough.
const NAME_AT_MOST: usize = 40;

/// What is on record of a provisioner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// How many clusters were asked for so far.
    pub clusters: u32,
    /// The cluster, from the moment that it is asked for until it is gone.
    pub cluster: Option<ClusterRecord>,
    /// Its nodes, by machine type.
    pub pools: BTreeMap<String, Pool>,
    /// Since when the cluster has been without work.
    pub idle_since: Option<Timestamp>,
    /// Since when the member, which had joined, has been silent, or what is seen has been of the past. No delay goes on
    /// during that time.
    pub silent_since: Option<Timestamp>,
    /// How many times in a row the cluster could not be made.
    pub failures: u32,
    /// The last failure, and when it was.
    pub last_failure: Option<(Failure, Timestamp)>,
    /// Before this time no cluster is tried again.
    pub retry_at: Option<Timestamp>,
    /// Pods that wait beside nodes which should hold them.
    pub unhelped: Vec<Unhelped>,
    /// What was spent.
    pub meter: Meter,
}

/// The cluster that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterRecord {
    /// Which cluster of the provisioner it is.
    pub number: u32,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// Whether Cluster API was seen to have it.
    pub created: bool,
    /// When it was ready and had joined.
    pub ready_at: Option<Timestamp>,
    /// Since when Cluster API reports a failure.
    pub failing_since: Option<Timestamp>,
    /// Since when and why it is being removed.
    pub ending: Option<(Ending, Timestamp)>,
}

/// The nodes of one machine type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool {
    /// How many are wanted.
    pub desired: u32,
    /// What one costs per hour, in millionths: the type may be taken out of the spec while nodes of it exist.
    pub price: u64,
    /// Since when there are fewer machines than wanted.
    pub short_since: Option<Timestamp>,
    /// Since when Cluster API reports a failure of a machine.
    pub failing_since: Option<Timestamp>,
    /// Before this time no further nodes of the type are tried.
    pub retry_at: Option<Timestamp>,
    /// The machines that are to go.
    pub removing: BTreeSet<String>,
    /// Whether the number that is wanted was lowered for them.
    pub lowered: bool,
    /// The machines that are little used, and since when.
    pub little_used: BTreeMap<String, Timestamp>,
}

/// Pods of one kind that nodes do not help.
#[derive(Clone, Debug, PartialEq)]
pub struct Unhelped {
    /// What one of them requests.
    pub requests: Amounts,
    /// Since when they have waited beside a node with room for them, by what is declared.
    pub since: Timestamp,
    /// How many times nodes did not help.
    pub times: u32,
    /// Before this time no node is bought for them.
    pub until: Option<Timestamp>,
}

/// Why a cluster is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was without work for long enough.
    Unused,
    /// It could not be made.
    Failed,
    /// Its CloudProvisioner is being deleted.
    ProvisionerDeleted,
    /// Its ForeignCluster was deleted.
    Unpeered,
    /// Somebody else deleted it in Cluster API.
    DeletedElsewhere,
}

impl Ending {
    const ALL: [Self; 5] =
        [Self::Unused, Self::Failed, Self::ProvisionerDeleted, Self::Unpeered, Self::DeletedElsewhere];

    /// The reason in a word.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unused => "Unused",
            Self::Failed => "ProvisionFailed",
            Self::ProvisionerDeleted => "ProvisionerDeleted",
            Self::Unpeered => "Unpeered",
            Self::DeletedElsewhere => "DeletedElsewhere",
        }
    }

    /// The ending of this reason. One of another version is taken for a failure: it cannot be called off.
    pub(super) fn parse(reason: &str) -> Self {
        Self::ALL.into_iter().find(|each| each.reason() == reason).unwrap_or(Self::Failed)
    }
}

/// Why something could not be made, in the words of whoever could not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason of Cluster API or of its infrastructure provider, or Timeout.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

pub(super) fn requested(number: u32, now: Timestamp) -> ClusterRecord {
    ClusterRecord {
        number,
        requested_at: now,
        created: false,
        ready_at: None,
        failing_since: None,
        ending: None,
    }
}

/// The name of a cluster in Cluster API. The same provisioner and number always give the same name, so that a request
/// that is repeated makes no second cluster.
#[must_use]
pub fn cluster_name(base: &str, uid: &str, number: u32) -> String {
    let digest = Sha256::digest(format!("{uid}/{number}"));
    let hex: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    let base: String = base.chars().take(NAME_AT_MOST).collect();
    format!("{}-{hex}", base.trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_the_uid_and_the_number() {
        let name = cluster_name("cloud1", "c0ffee", 1);
        assert_eq!(name, cluster_name("cloud1", "c0ffee", 1));
        assert_ne!(name, cluster_name("cloud1", "c0ffee", 2));
        assert_ne!(name, cluster_name("cloud1", "decaf", 1));
        assert!(name.starts_with("cloud1-") && name.len() == 17, "{name}");
        assert!(cluster_name(&"a".repeat(63), "c0ffee", 1).len() <= 51);
    }

    #[test]
    fn every_ending_reads_back() {
        for ending in Ending::ALL {
            assert_eq!(Ending::parse(ending.reason()), ending);
        }
        assert_eq!(Ending::parse("SomethingNew"), Ending::Failed);
    }
}

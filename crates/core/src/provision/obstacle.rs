//! What keeps a provisioner from going on until somebody decides.

use super::own::own;
use super::record::cluster_name;
use super::step::Step;
use super::{MemberState, Record, Settings, Snapshot, Untouchable};
use std::fmt;

/// What keeps a provisioner from going on. Nothing is made and nothing is deleted meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A ForeignCluster of this name exists and is not the provisioner's.
    NameTaken(String),
    /// Another CloudProvisioner of this name has the same `cloudClusterName`, and comes first.
    NameShared(String),
    /// The ForeignCluster of the cluster, which had joined, is not the provisioner's any more.
    NotOwned {
        /// The name of the ForeignCluster.
        member: String,
        /// How many workloads are on record there.
        workloads: u32,
    },
    /// The provisioner is being deleted and is paused, and its cluster exists.
    Paused,
    /// What is seen may be of the past, for this reason.
    Outdated(String),
    /// The cluster on record exists in Cluster API and is not the provisioner's any more.
    ClusterNotOwned(String),
    /// The cluster on record exists in Cluster API and cannot be read.
    ClusterUnreadable {
        /// The name of the Cluster.
        cluster: String,
        /// Why it cannot be read.
        problem: String,
    },
    /// The ForeignCluster of the cluster, which had joined, is gone, and workloads are on record there.
    WorkloadsRemain {
        /// The name of the ForeignCluster.
        member: String,
        /// How many.
        workloads: u32,
    },
}

impl Obstacle {
    /// The reason in a word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NameTaken(_) | Self::NameShared(_) => "CloudClusterNameTaken",
            Self::NotOwned { .. } => "ForeignClusterNotOwned",
            Self::Paused => "Paused",
            Self::Outdated(_) => "CacheNotSynced",
            Self::ClusterNotOwned(_) => "CloudClusterNotOwned",
            Self::ClusterUnreadable { .. } => "CloudRequestFailed",
            Self::WorkloadsRemain { .. } => "WorkloadsRemain",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(member) => write!(
                f,
                "ForeignCluster {member} exists and was not made for this CloudProvisioner: no cloud cluster is requested; \
                 choose another spec.cloudClusterName, or remove that member"
            ),
            Self::NameShared(provisioner) => write!(
                f,
                "CloudProvisioner {provisioner} has the same spec.cloudClusterName and comes first: no cloud cluster is \
                 requested; give each its own name"
            ),
            Self::NotOwned { member, workloads } => write!(
                f,
                "ForeignCluster {member} does not carry the label portolan.dev/cloud-provisioner with the uid of this \
                 CloudProvisioner any more, and holds {workloads} workloads: the cloud cluster is left as it is until the \
                 label is back or the ForeignCluster is deleted"
            ),
            Self::Paused => f.write_str(
                "the CloudProvisioner is being deleted and spec.paused is true: its cloud cluster is left as it is, and the \
                 CloudProvisioner with it; with spec.paused false both are removed",
            ),
            Self::Outdated(why) => write!(f, "{why}: nothing is added or removed meanwhile"),
            Self::ClusterNotOwned(cluster) => write!(
                f,
                "Cluster {cluster} of Cluster API does not carry the labels portolan.dev/cloud-provisioner and \
                 portolan.dev/cloud-cluster-number any more that it was created with: it is left as it is, and no other is \
                 requested, until the labels are back or the Cluster is deleted"
            ),
            Self::ClusterUnreadable { cluster, problem } => write!(
                f,
                "Cluster {cluster} of Cluster API cannot be read, and is left as it is until it is mended: {problem}"
            ),
            Self::WorkloadsRemain { member, workloads } => write!(
                f,
                "ForeignCluster {member} is gone, and {workloads} workloads are on record there: the cloud cluster is left \
                 as it is until they are placed elsewhere"
            ),
        }
    }
}

/// What keeps a provisioner from doing anything about the cluster on record, if something does.
fn untouchable(settings: &Settings, record: &Record, snapshot: &Snapshot) -> Option<Obstacle> {
    let cluster = record.cluster.as_ref()?;
    let name = || cluster_name(&settings.cluster_name, &settings.uid, cluster.number);
    Some(match own(settings, record, snapshot)?.untouchable.as_ref()? {
        Untouchable::NotOwned => Obstacle::ClusterNotOwned(name()),
        Untouchable::Unreadable(problem) => {
            Obstacle::ClusterUnreadable { cluster: name(), problem: problem.clone() }
        }
    })
}

/// Whether something keeps a provisioner from adding nodes to its cluster until somebody decides.
pub(super) fn is_stuck(settings: &Settings, record: &Record, snapshot: &Snapshot) -> bool {
    let joined = record.cluster.as_ref().is_some_and(|cluster| cluster.ready_at.is_some());
    let lost = match snapshot.member {
        MemberState::Foreign { .. } => true,
        MemberState::Missing { .. } => joined,
        MemberState::Absent
        | MemberState::Joining
        | MemberState::Joined { .. }
        | MemberState::Leaving { .. } => false,
    };
    lost || untouchable(settings, record, snapshot).is_some()
}

impl Step<'_> {
    /// Says what keeps the provisioner from doing anything about its cluster, if something does.
    pub(super) fn is_untouchable(&mut self) -> bool {
        self.plan.obstacle = untouchable(self.settings, &self.plan.record, self.snapshot);
        self.plan.obstacle.is_some()
    }

    /// Says what keeps the provisioner from going on with a cluster that had joined, if something does.
    pub(super) fn is_kept(&mut self) -> bool {
        let joined = self.plan.record.cluster.as_ref().is_some_and(|cluster| cluster.ready_at.is_some());
        let member = self.settings.cluster_name.clone();
        self.plan.obstacle = match self.snapshot.member {
            MemberState::Foreign { workloads } if joined => Some(Obstacle::NotOwned { member, workloads }),
            MemberState::Missing { workloads } if joined => {
                Some(Obstacle::WorkloadsRemain { member, workloads })
            }
            MemberState::Absent
            | MemberState::Joining
            | MemberState::Joined { .. }
            | MemberState::Leaving { .. }
            | MemberState::Foreign { .. }
            | MemberState::Missing { .. } => None,
        };
        self.plan.obstacle.is_some()
    }
}

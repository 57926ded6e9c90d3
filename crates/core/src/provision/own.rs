//! The cluster of a provisioner among those that are seen.

use super::record::cluster_name;
use super::{ClusterSnapshot, Record, Settings, Snapshot};

/// The cluster on record, as Cluster API shows it.
pub(super) fn own<'a>(
    settings: &Settings,
    record: &Record,
    snapshot: &'a Snapshot,
) -> Option<&'a ClusterSnapshot> {
    let cluster = record.cluster.as_ref()?;
    snapshot.clusters.get(&cluster_name(&settings.cluster_name, &settings.uid, cluster.number))
}

//! Clusters that cost money and belong to nobody.

use std::collections::BTreeSet;

/// A cluster in Cluster API that carries Portolan's label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledCluster {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The uid of the CloudProvisioner that it was made for, by its label.
    pub provisioner: String,
}

/// The clusters whose CloudProvisioner does not exist, as namespace/name. They are shown and not deleted: whether a
/// workload of another hub is there is not known.
#[must_use]
pub fn orphans(clusters: &[LabelledCluster], provisioners: &BTreeSet<String>) -> Vec<String> {
    let orphaned = clusters.iter().filter(|cluster| !provisioners.contains(&cluster.provisioner));
    let mut names: Vec<String> =
        orphaned.map(|cluster| format!("{}/{}", cluster.namespace, cluster.name)).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_without_its_provisioner_is_named() {
        let cluster = |name: &str, uid: &str| LabelledCluster {
            namespace: "capi".into(),
            name: name.into(),
            provisioner: uid.into(),
        };
        let clusters = [cluster("b", "gone"), cluster("a", "gone"), cluster("c", "here")];
        assert_eq!(orphans(&clusters, &BTreeSet::from(["here".to_owned()])), ["capi/a", "capi/b"]);
    }
}

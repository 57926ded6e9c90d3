//! What a cluster runs on, as its nodes tell.

use std::collections::BTreeMap;
use std::str::FromStr;

/// A distribution of Kubernetes or the cloud that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// Kubernetes in Docker.
    Kind,
    /// K3s.
    K3s,
    /// Made by kubeadm.
    Kubeadm,
    /// Amazon EKS.
    Eks,
    /// Google GKE.
    Gke,
    /// Azure AKS.
    Aks,
    /// OpenShift.
    Openshift,
    /// Any other.
    Generic,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Kind,
        Self::K3s,
        Self::Kubeadm,
        Self::Eks,
        Self::Gke,
        Self::Aks,
        Self::Openshift,
        Self::Generic,
    ];

    /// Its name on the command line and in values.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::K3s => "k3s",
            Self::Kubeadm => "kubeadm",
            Self::Eks => "eks",
            Self::Gke => "gke",
            Self::Aks => "aks",
            Self::Openshift => "openshift",
            Self::Generic => "generic",
        }
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|each| each.name() == text);
        found.ok_or_else(|| {
            format!("{text:?} is no provider: give one of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// What a node tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The keys of its annotations.
    pub annotations: Vec<String>,
    /// Its `providerID`, such as `aws:///eu-west-1a/i-0123`.
    pub provider_id: String,
}

/// What a cluster with these nodes and this version of its API server runs on; [`Provider::Generic`] if nothing tells.
#[must_use]
pub fn detect(version: &str, nodes: &[NodeFacts]) -> Provider {
    let labelled =
        |prefix: &str| nodes.iter().any(|node| node.labels.keys().any(|key| key.starts_with(prefix)));
    let from = |scheme: &str| nodes.iter().any(|node| node.provider_id.starts_with(scheme));
    let annotated =
        |prefix: &str| nodes.iter().any(|node| node.annotations.iter().any(|key| key.starts_with(prefix)));
    if labelled("node.openshift.io/") {
        Provider::Openshift
    } else if version.contains("-eks-") || labelled("eks.amazonaws.com/") {
        Provider::Eks
    } else if version.contains("-gke.") || labelled("cloud.google.com/gke-") {
        Provider::Gke
    } else if labelled("kubernetes.azure.com/") {
        Provider::Aks
    } else if version.contains("+k3s") || from("k3s://") {
        Provider::K3s
    } else if from("kind://") {
        Provider::Kind
    } else if annotated("kubeadm.alpha.kubernetes.io/") {
        Provider::Kubeadm
    } else {
        Provider::Generic
    }
}

/// The region of a cluster, if all its nodes that name one are in the same.
#[must_use]
pub fn region(nodes: &[NodeFacts]) -> Option<&str> {
    let mut regions = nodes.iter().filter_map(|node| node.labels.get("topology.kubernetes.io/region"));
    let first = regions.next()?;
    regions.all(|each| each == first).then_some(first.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(labels: &[(&str, &str)], annotation: &str, provider_id: &str) -> NodeFacts {
        NodeFacts {
            labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            annotations: vec![annotation.to_owned()],
            provider_id: provider_id.to_owned(),
        }
    }

    #[test]
    fn nodes_and_version_tell_what_a_cluster_runs_on() {
        let kubeadm = "kubeadm.alpha.kubernetes.io/cri-socket";
        for (version, node, expected) in [
            ("v1.33.1", node(&[], kubeadm, "kind://docker/kind/kind-control-plane"), Provider::Kind),
            ("v1.33.1", node(&[], kubeadm, ""), Provider::Kubeadm),
            ("v1.33.1+k3s1", node(&[], "k3s.io/node-args", "k3s://a"), Provider::K3s),
            ("v1.32.3-eks-473151a", node(&[], "", "aws:///eu-west-1a/i-0a"), Provider::Eks),
            ("v1.32.4-gke.1106006", node(&[], "", "gce://p/europe-west1-b/n"), Provider::Gke),
            (
                "v1.32.4",
                node(&[("kubernetes.azure.com/cluster", "MC_a_b_c")], "", "azure:///x"),
                Provider::Aks,
            ),
            ("v1.31.7", node(&[("node.openshift.io/os_id", "rhcos")], "", "aws:///a/i"), Provider::Openshift),
            ("v1.36.3", node(&[("kubernetes.io/os", "linux")], "", ""), Provider::Generic),
        ] {
            assert_eq!(detect(version, &[node]), expected);
            assert_eq!(expected.name().parse(), Ok(expected));
        }
        assert_eq!(detect("v1.36.3", &[]), Provider::Generic);
    }

    #[test]
    fn a_region_is_that_of_all_nodes() {
        let in_region = |name: &str| node(&[("topology.kubernetes.io/region", name)], "", "");
        assert_eq!(region(&[in_region("eu"), node(&[], "", ""), in_region("eu")]), Some("eu"));
        assert_eq!(region(&[in_region("eu"), in_region("us")]), None);
        assert_eq!(region(&[]), None);
    }
}

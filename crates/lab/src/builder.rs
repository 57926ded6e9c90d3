//! Saying what a lab shall be.

use anyhow::{Context, Result, ensure};
use std::time::SystemTime;

use crate::cidr::Cidr;
use crate::parts::{DEFAULT_KUBERNETES, Parts};
use crate::state::{self, ClusterState, LabState, NodeState, Owner};
use crate::switch::{MAX_CLUSTERS, MAX_NODES, PER_CLUSTER};

/// A range of 16 bits for the pods and one for the services of each cluster.
const DEFAULT_PODS: &str = "10.64.0.0/10";
const DEFAULT_SERVICES: &str = "10.128.0.0/10";
/// Addresses of the pods of one node, if the cluster's range is wide enough for it.
const NODE_PREFIX: u8 = 24;

/// Describes a lab; made by [`Lab::builder`](crate::Lab::builder).
#[derive(Clone, Debug)]
pub struct LabBuilder {
    name: Option<String>,
    clusters: u32,
    nodes: u32,
    kwok: u32,
    only_simulated: bool,
    audit: bool,
    silence: Option<u32>,
    kubernetes: String,
    pods: Vec<Cidr>,
    services: Vec<Cidr>,
    detached: bool,
    parts: Option<Parts>,
}

impl Default for LabBuilder {
    fn default() -> Self {
        LabBuilder {
            name: None,
            clusters: 1,
            nodes: 1,
            kwok: 0,
            only_simulated: false,
            audit: false,
            silence: None,
            kubernetes: DEFAULT_KUBERNETES.to_owned(),
            pods: Vec::new(),
            services: Vec::new(),
            detached: false,
            parts: None,
        }
    }
}

impl LabBuilder {
    /// Name of the lab; one that is unique on the machine by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Number of clusters, named `c1`, `c2` and so on; 1 by default.
    pub fn clusters(mut self, clusters: u32) -> Self {
        self.clusters = clusters;
        self
    }

    /// Number of nodes of each cluster; 1 by default. The first one also runs the control plane.
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.nodes = nodes;
        self
    }

    /// Number of simulated nodes of each cluster beside the real ones; none by default.
    pub fn kwok(mut self, nodes: u32) -> Self {
        self.kwok = nodes;
        self
    }

    /// Lets pods run on simulated nodes alone: there is a control plane, and neither kubelets nor DNS.
    pub fn only_simulated(mut self) -> Self {
        self.only_simulated = true;
        self
    }

    /// Lets every API server keep an audit log of who asked for what: [`crate::Cluster::audit_log`].
    pub fn audit(mut self) -> Self {
        self.audit = true;
        self
    }

    /// Seconds of silence after which a node counts as lost; as long as Kubernetes takes (50 s) by default.
    pub fn silence(mut self, seconds: u32) -> Self {
        self.silence = Some(seconds.max(4));
        self
    }

    /// Version of Kubernetes, [`DEFAULT_KUBERNETES`] by default.
    pub fn kubernetes(mut self, version: impl Into<String>) -> Self {
        self.kubernetes = version.into();
        self
    }

    /// Ranges for pods: one for each cluster, or one for all of them, which then overlap. Distinct by default.
    pub fn pod_cidrs(mut self, ranges: impl IntoIterator<Item = Cidr>) -> Self {
        self.pods = ranges.into_iter().collect();
        self
    }

    /// Ranges for services: one for each cluster, or one for all of them, which then overlap. Distinct by default.
    pub fn service_cidrs(mut self, ranges: impl IntoIterator<Item = Cidr>) -> Self {
        self.services = ranges.into_iter().collect();
        self
    }

    /// Uses these parts instead of those in the cache; they decide the version of Kubernetes.
    pub fn parts(mut self, parts: Parts) -> Self {
        self.kubernetes = parts.kubernetes.clone();
        self.parts = Some(parts);
        self
    }

    /// Lets the lab outlive the process and the [`Lab`](crate::Lab) value.
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.detached
    }

    /// The given parts, or those of the cache, made if they are missing.
    pub(crate) async fn find_parts(&self) -> Result<Parts> {
        if let Some(parts) = &self.parts {
            return Ok(parts.clone());
        }
        let version = self.kubernetes.clone();
        let made = tokio::task::spawn_blocking(move || {
            Parts::ensure(&version, &mut |step| eprintln!("lab: {step}"))
        });
        Ok(made.await??)
    }

    pub(crate) fn lab_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| unique_name(&state::names().unwrap_or_default()))
    }

    /// Works out names and addresses of everything in the lab.
    pub(crate) fn plan(&self, name: &str, slot: u32, subnet: Cidr, parts: &Parts) -> Result<LabState> {
        state::check_name(name)?;
        ensure!(
            (1..=MAX_CLUSTERS).contains(&self.clusters),
            "a lab has 1 to {MAX_CLUSTERS} clusters, not {}",
            self.clusters
        );
        ensure!(
            (1..=MAX_NODES).contains(&self.nodes),
            "a cluster has 1 to {MAX_NODES} nodes, not {}",
            self.nodes
        );
        ensure!(
            !self.only_simulated || (self.kwok > 0 && self.nodes == 1),
            "a cluster of simulated nodes alone has at least one of them, and one node for its control plane, not {} and {}",
            self.kwok,
            self.nodes
        );
        let clusters =
            (1..=self.clusters).map(|number| self.plan_cluster(number, subnet)).collect::<Result<_>>()?;
        let created =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("the clock is before 1970")?;
        Ok(LabState {
            name: name.to_owned(),
            slot,
            subnet,
            kubernetes: self.kubernetes.clone(),
            created: created.as_secs(),
            owner: Some(Owner::this_process()?),
            ready: false,
            bin: parts.bin.clone(),
            root: parts.root.clone(),
            images: parts.images.clone(),
            clusters,
        })
    }

    fn plan_cluster(&self, number: u32, lab: Cidr) -> Result<ClusterState> {
        let name = format!("c{number}");
        let pods = range_for(&self.pods, "pod", number, self.clusters, DEFAULT_PODS)?;
        let services = range_for(&self.services, "service", number, self.clusters, DEFAULT_SERVICES)?;
        for (what, range) in [("pod", pods), ("service", services)] {
            ensure!(
                !range.overlaps(&lab),
                "the {what} range {range} of {name} overlaps the lab's own network {lab}"
            );
        }
        ensure!(
            !pods.overlaps(&services),
            "the pod range {pods} and the service range {services} of {name} overlap"
        );
        ensure!(
            services.prefix() >= 12 && services.prefix() <= 27,
            "the service range {services} of {name} must be between /12 (the API server's limit) and /27 (DNS has the tenth address)"
        );
        let bits = u32::BITS - (self.nodes - 1).leading_zeros();
        let prefix = NODE_PREFIX.max(pods.prefix() + bits as u8);
        ensure!(
            prefix <= 28,
            "the pod range {pods} of {name} is too small for {} nodes: each needs a /28 of it at least",
            self.nodes
        );
        let nodes = (1..=self.nodes).map(|node| plan_node(lab, number, pods.subnet(prefix, node - 1)?, node));
        Ok(ClusterState {
            pods,
            services,
            kwok: self.kwok,
            only_simulated: self.only_simulated,
            audit: self.audit,
            silence: self.silence,
            dedicated_control_plane: false,
            nodes: nodes.collect::<Result<_>>()?,
            name,
        })
    }
}

/// A further cluster of a lab: a control plane alone, to which nodes are added one by one.
pub(crate) fn plan_control_plane(lab: &LabState, number: u32) -> Result<ClusterState> {
    ensure!(number <= MAX_CLUSTERS, "the lab {} has no addresses for another cluster", lab.name);
    let mut cluster =
        LabBuilder { clusters: number, ..LabBuilder::default() }.plan_cluster(number, lab.subnet)?;
    cluster.dedicated_control_plane = true;
    Ok(cluster)
}

/// A further node of the cluster with this number.
pub(crate) fn plan_worker(
    lab: &LabState,
    cluster: &ClusterState,
    number: u32,
    node: u32,
) -> Result<NodeState> {
    ensure!(node <= MAX_NODES, "cluster {} has no addresses for another node", cluster.name);
    plan_node(lab.subnet, number, cluster.pods.subnet(NODE_PREFIX, node - 1)?, node)
}

fn plan_node(lab: Cidr, cluster: u32, pods: Cidr, node: u32) -> Result<NodeState> {
    Ok(NodeState {
        name: format!("c{cluster}-n{node}"),
        port: format!("c{cluster}n{node}"),
        address: lab.address(cluster * PER_CLUSTER + node)?,
        pods,
        machine: None,
    })
}

fn range_for(given: &[Cidr], what: &str, number: u32, clusters: u32, default: &str) -> Result<Cidr> {
    match given {
        [] => default.parse::<Cidr>()?.subnet(16, number),
        [all] => Ok(*all),
        each if each.len() == clusters as usize => Ok(each[number as usize - 1]),
        wrong => anyhow::bail!(
            "{} {what} ranges are given for {clusters} clusters: give one for all of them or one for each",
            wrong.len()
        ),
    }
}

/// A name of this process that no lab has yet.
fn unique_name(taken: &[String]) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    loop {
        let name = format!("p{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        if !taken.contains(&name) {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(builder: LabBuilder) -> Result<LabState> {
        let parts = Parts {
            bin: "/bin".into(),
            root: "/".into(),
            images: "/images".into(),
            kwok: "/kwok".into(),
            kubernetes: "1.36.3".into(),
        };
        builder.plan("test", 0, "198.18.0.0/20".parse()?, &parts)
    }

    #[test]
    fn every_cluster_and_node_has_addresses_of_its_own() {
        let lab = plan(LabBuilder::default().clusters(63).nodes(62)).unwrap();
        let mut addresses = std::collections::BTreeSet::new();
        for (number, cluster) in lab.clusters.iter().enumerate() {
            for node in &cluster.nodes {
                assert!(addresses.insert(node.address), "{} twice", node.address);
                assert!(node.pods.overlaps(&cluster.pods));
                assert!(node.port.len() <= 15, "{} is too long for an interface", node.port);
            }
            for other in &lab.clusters[..number] {
                assert!(!cluster.pods.overlaps(&other.pods) && !cluster.services.overlaps(&other.services));
            }
        }
        assert_eq!(addresses.len(), 63 * 62);
    }

    #[test]
    fn one_range_for_all_overlaps_on_purpose() {
        let lab =
            plan(LabBuilder::default().clusters(2).nodes(3).pod_cidrs(["10.0.0.0/24".parse().unwrap()]))
                .unwrap();
        assert_eq!(lab.clusters[0].pods, lab.clusters[1].pods);
        let nodes: Vec<String> = lab.clusters[0].nodes.iter().map(|node| node.pods.to_string()).collect();
        assert_eq!(nodes, ["10.0.0.0/26", "10.0.0.64/26", "10.0.0.128/26"]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        let cidr = |text: &str| [text.parse::<Cidr>().unwrap()];
        let lab = || LabBuilder::default().clusters(3);
        for (builder, reason) in [
            (lab().clusters(0), "1 to 63 clusters"),
            (lab().nodes(63), "1 to 62 nodes"),
            (lab().only_simulated(), "at least one of them"),
            (lab().nodes(2).kwok(1).only_simulated(), "not 1 and 2"),
            (lab().pod_cidrs(cidr("10.0.0.0/27")).nodes(3), "too small for 3 nodes"),
            (lab().pod_cidrs(cidr("10.130.0.0/16")), "overlap"),
            (lab().service_cidrs(cidr("10.0.0.0/30")), "between /12"),
            (lab().pod_cidrs(cidr("198.18.0.0/16")), "lab's own network"),
            (lab().pod_cidrs([cidr("10.0.0.0/16"), cidr("10.1.0.0/16")].concat()), "one for each"),
        ] {
            let error = plan(builder).unwrap_err().to_string();
            assert!(error.contains(reason), "{reason}: {error}");
        }
    }
}

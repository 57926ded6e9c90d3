//! From what was read of a fleet to a scenario that begins with it.

use super::nodes::Ours;
use super::{Assumption, HubState, MemberState, Unread, cloud, distances, member, workload};
use crate::scenario::{ClusterSpec, Scenario};
use jiff::Timestamp;
use portolan_api::duration::Duration;
use portolan_api::foreigncluster::StaticLatency;
use portolan_api::{CloudProvisioner, ForeignCluster};
use portolan_core::capacity::Amounts;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How long a what-if lasts if nobody says it.
const DURATION: Duration = Duration::from_secs(1800);

/// The namespace of tasks and objects that name none. No workload of the fleet is meant to be in it.
const NAMESPACE: &str = "simulation";

/// What was read of a fleet.
#[derive(Clone, Debug, Default)]
pub struct FleetState {
    /// What the hub says.
    pub hub: HubState,
    /// What each member says, by the name of its ForeignCluster.
    pub members: BTreeMap<String, MemberState>,
}

/// A scenario that begins with a fleet, and what it assumes.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The scenario: no events, half an hour.
    pub scenario: Scenario,
    /// What could not be taken from the fleet as it is.
    pub assumptions: Vec<Assumption>,
}

/// Turns a fleet into a scenario that begins with it.
#[must_use]
pub fn convert(fleet: &FleetState, now: Timestamp) -> Converted {
    let mut assumptions = fleet.hub.assumptions.clone();
    let (mut clouds, about_clouds) = cloud::clouds(&fleet.hub.provisioners);
    assumptions.extend(about_clouds);
    let provisioners = cloud::chosen(&fleet.hub.provisioners);
    let (made, mut clusters): (Vec<_>, Vec<&ForeignCluster>) =
        fleet.hub.clusters.iter().partition(|cluster| is_made_by(cluster, &provisioners));
    clusters.sort_by_key(|cluster| cluster.metadata.name.clone());
    for cluster in made {
        let problem = "it was made by a CloudProvisioner, and a scenario begins without cloud clusters";
        let assumed = "its replicas are placed again at the beginning";
        assumptions.push(Assumption::new(called(cluster), problem, assumed));
    }
    let (mut specs, mut faults) = (Vec::new(), Vec::new());
    for cluster in &clusters {
        let name = called(cluster);
        let unasked = MemberState::unread(&Unread::new("it was not asked"));
        let state = fleet.members.get(&name).unwrap_or(&unasked);
        let made = member::member(cluster, state, &ours(&fleet.hub.objects, &name), NAMESPACE);
        specs.push(made.spec);
        faults.extend(made.fault);
        assumptions.extend(made.assumptions);
    }
    let members: BTreeSet<String> = specs.iter().map(|spec: &ClusterSpec| spec.name.clone()).collect();
    let (objects, about_objects) = workload::steps(&fleet.hub.objects, &members, now);
    assumptions.extend(about_objects);
    let to_clouds: Vec<(&str, &[StaticLatency])> = provisioners
        .iter()
        .map(|of| (of.spec.cloud_cluster_name.as_str(), of.spec.latencies.as_slice()))
        .collect();
    let (hub, latencies) = distances::distances(&clusters, &to_clouds);
    // The only one has a field of its own, so that a file can name what it changes of it.
    let cloud = if clouds.len() == 1 { clouds.pop() } else { None };
    let scenario = Scenario {
        name: "fleet".to_owned(),
        title: "A fleet as it was read".to_owned(),
        seed: 1,
        duration: DURATION,
        sample_every: Duration::from_secs(15),
        namespace: NAMESPACE.to_owned(),
        hub,
        clusters: specs,
        latencies,
        cloud,
        clouds,
        objects,
        tasks: None,
        traffic: Vec::new(),
        faults,
        variants: BTreeMap::new(),
    };
    Converted { scenario, assumptions }
}

fn called(cluster: &ForeignCluster) -> String {
    cluster.metadata.name.clone().unwrap_or_default()
}

fn is_made_by(cluster: &ForeignCluster, provisioners: &[&CloudProvisioner]) -> bool {
    provisioners
        .iter()
        .any(|each| cluster.metadata.name.as_deref() == Some(each.spec.cloud_cluster_name.as_str()))
}

/// What the scenario runs itself in a member.
fn ours(objects: &[Value], cluster: &str) -> Ours {
    let runs_pods = |object: &&Value| {
        matches!(object["kind"].as_str(), Some("MultiClusterDeployment" | "MultiClusterJob"))
            && workload::is_carried(object)
    };
    let workloads = || objects.iter().filter(runs_pods);
    let mut requests = Amounts::default();
    workloads().for_each(|object| requests.add(&workload::requests(object, cluster), 1));
    let identities = workloads().filter_map(workload::identity).map(str::to_owned).collect();
    Ours { identities, requests }
}

//! What breaks between controllers and members, and in members.

use super::Story;
use crate::NAMESPACE;
use crate::simulation::PARTIES;
use crate::simulation::tally::Drawn;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::DeleteParams;
use portolan_sandbox::{FaultAnswer, PartialFault, RequestFilter};
use rand::RngExt;

/// Resources that a member may be unable to serve.
const RESOURCES: [&str; 8] = [
    "nodes",
    "pods",
    "namespaces",
    "deployments.apps",
    "jobs.batch",
    "services",
    "configmaps",
    "endpointslices.discovery.k8s.io",
];

/// For how many acts a fault holds at most.
pub(super) const LONGEST: usize = 5;

impl Story {
    pub(super) async fn break_something(&mut self, member: usize) {
        let name = self.fleet.members[member].name().to_owned();
        let resource = RESOURCES[self.rng.random_range(0..RESOURCES.len())];
        match self.rng.random_range(0..18) {
            0..=2 => {
                self.count(Drawn::CutOff);
                for party in PARTIES {
                    self.cut_off(party, name.clone());
                }
            }
            3 => {
                self.count(Drawn::HubCutOff);
                let party = PARTIES[self.rng.random_range(0..PARTIES.len())];
                self.cut_off(party, "hub".to_owned());
            }
            4 => self.fail_a_node(member).await,
            5 => self.begin_fault(member, Drawn::Resource403, resource, FaultAnswer::Status(403)),
            6 => self.begin_fault(member, Drawn::Resource404, resource, FaultAnswer::Status(404)),
            7 => self.begin_fault(member, Drawn::Resource429, resource, FaultAnswer::TooManyRequests(3)),
            8 => self.begin_fault(member, Drawn::Resource500, resource, FaultAnswer::Status(500)),
            9 => self.begin_fault(member, Drawn::ResourceSilent, resource, FaultAnswer::Hang),
            10 => self.begin_fault(member, Drawn::TokenEnded, "", FaultAnswer::Status(401)),
            11 => self.take_right(member, resource),
            12 => {
                let answer = FaultAnswer::Slow(self.rng.random_range(1..=25));
                self.begin_fault(member, Drawn::ResourceSlow, resource, answer);
            }
            13 => self.forget_history(&name),
            _ => self.turn_hostile(member, resource),
        }
    }

    /// A cluster has forgotten what controllers go on from: they are told 410, and list again.
    fn forget_history(&mut self, member: &str) {
        self.count(Drawn::HistoryForgotten);
        let hub = self.rng.random_bool(0.3);
        let fleet = &self.fleet;
        let cluster = fleet.members.iter().find(|each| !hub && each.name() == member).unwrap_or(&fleet.hub);
        cluster.compact();
        PARTIES.iter().for_each(|party| fleet.world.end_watches(party, cluster.name()));
    }

    fn begin_fault(&mut self, member: usize, drawn: Drawn, resource: &str, answer: FaultAnswer) {
        let cluster = self.fleet.members[member].name().to_owned();
        let mut requests = RequestFilter::any().cluster(&cluster);
        if !resource.is_empty() {
            requests = requests.resource(resource);
        }
        self.begin(member, drawn, requests, answer);
    }

    /// A right of the controllers' account is taken away: one verb on one resource.
    fn take_right(&mut self, member: usize, resource: &str) {
        let verb = ["list", "watch", "patch", "delete"][self.rng.random_range(0..4)];
        let cluster = self.fleet.members[member].name().to_owned();
        let requests = RequestFilter::any().cluster(&cluster).resource(resource).verb(verb);
        self.begin(member, Drawn::RightTaken, requests, FaultAnswer::Status(403));
    }

    fn begin(&mut self, member: usize, drawn: Drawn, requests: RequestFilter, answer: FaultAnswer) {
        self.count(drawn);
        let cluster = self.fleet.members[member].name().to_owned();
        self.readiness.unseen(&cluster);
        let left = self.rng.random_range(1..=LONGEST);
        for party in PARTIES {
            let name = format!("{} of {party} in {cluster}", drawn.name());
            let requests = requests.clone().party(party);
            self.fleet.world.add_fault(PartialFault::new(&name, requests, answer));
            // What is open stays open, unless the API server is started anew.
            if self.rng.random_bool(0.5) {
                self.fleet.world.end_watches(party, &cluster);
            }
            self.faults.insert(name, (left, member));
        }
    }

    pub(super) fn end_fault(&mut self, name: &str) {
        self.fleet.world.end_fault(name);
        let Some((_, member)) = self.faults.remove(name) else { return };
        if self.faults.values().all(|(_, other)| *other != member) && !self.hostile.contains_key(&member) {
            self.seen_again(self.fleet.members[member].name());
        }
    }

    pub(super) fn seen_again(&self, cluster: &str) {
        self.readiness.seen(cluster, self.fleet.world.clock().now());
    }

    fn cut_off(&mut self, party: &'static str, cluster: String) {
        self.fleet.world.partition(party, &cluster);
        if cluster == "hub" {
            // Who is cut off from the hub acts on nothing; who comes back may know what was.
            for member in self.names() {
                self.readiness.unseen(&member);
            }
        }
        self.readiness.unseen(&cluster);
        self.cut.insert((party, cluster));
    }

    pub(super) fn heal(&mut self) {
        for (party, cluster) in std::mem::take(&mut self.cut) {
            self.fleet.world.heal(party, &cluster);
        }
        let mut faulty: Vec<usize> = self.faults.values().map(|(_, member)| *member).collect();
        faulty.extend(self.hostile.keys());
        for (index, member) in self.names().iter().enumerate() {
            if !faulty.contains(&index) {
                self.seen_again(member);
            }
        }
    }

    async fn fail_a_node(&mut self, member: usize) {
        let api: Api<Node> = Api::all(self.fleet.members[member].client("user"));
        let nodes = api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
        if nodes.len() > 1 {
            self.count(Drawn::NodeFailed);
            let node = nodes[self.rng.random_range(0..nodes.len())].metadata.name.clone().unwrap_or_default();
            self.fleet.members[member].fail_node(&node);
            self.down.insert((member, node));
        }
    }

    /// A node that was down comes back without its pods.
    pub(super) async fn reboot(&self, member: usize, node: &str) {
        let api: Api<Pod> = Api::namespaced(self.fleet.members[member].client("user"), NAMESPACE);
        for pod in api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default() {
            let here = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            if here && !matches!(phase, Some("Succeeded" | "Failed")) {
                let name = pod.metadata.name.unwrap_or_default();
                let _ = api.delete(&name, &DeleteParams::default().grace_period(0)).await;
            }
        }
        self.fleet.members[member].restore_node(node);
    }
}

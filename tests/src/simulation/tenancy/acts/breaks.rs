//! What breaks for a while.

use super::Story;
use crate::simulation::tally::Drawn;
use crate::simulation::tenancy::stage::{command, controller};
use portolan_sandbox::{FaultAnswer, PartialFault, RequestFilter};
use rand::RngExt;
use std::collections::BTreeMap;

pub(super) const ACTS: &[Drawn] = &[
    Drawn::SignerStopped,
    Drawn::ControllerDown,
    Drawn::SideCutOff,
    Drawn::SideCutOff,
    Drawn::ServerAnswersBadly,
    Drawn::ServerAnswersBadly,
    Drawn::WatchesOutdated,
];

/// Resources that a server may be unable to serve.
const RESOURCES: [&str; 13] = [
    "invitations.portolan.dev",
    "foreignclusters.portolan.dev",
    "foreignclusters.portolan.dev/status",
    "resourceoffers.portolan.dev",
    "certificatesigningrequests.certificates.k8s.io",
    "certificatesigningrequests.certificates.k8s.io/approval",
    "leases.coordination.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "namespaces",
    "secrets",
    "resourcequotas",
];

/// What is broken, and for how many more acts.
#[derive(Default)]
pub(super) struct Broken {
    pub(super) down: BTreeMap<usize, u32>,
    unsigned: BTreeMap<usize, u32>,
    cut: BTreeMap<(String, String), u32>,
    faults: BTreeMap<String, u32>,
}

/// Those whose time is over; the others have one act less.
fn over<K: Ord + Clone>(broken: &mut BTreeMap<K, u32>, all: bool) -> Vec<K> {
    let ended: Vec<K> =
        broken.iter().filter(|(_, left)| all || **left == 0).map(|(key, _)| key.clone()).collect();
    broken.retain(|key, _| !ended.contains(key));
    broken.values_mut().for_each(|left| *left -= 1);
    ended
}

impl Story {
    pub(super) async fn breaks(&mut self, drawn: Drawn) -> bool {
        let site = self.site();
        let acts = self.rng.random_range(0..=4);
        match drawn {
            Drawn::SignerStopped => {
                self.stage.cluster(site).stop_signers(true);
                self.broken.unsigned.insert(site, acts);
                true
            }
            Drawn::ControllerDown => {
                let runs = self.stage.end(site);
                if runs {
                    self.broken.down.insert(site, acts);
                }
                runs
            }
            Drawn::SideCutOff => {
                let (one, other) = self.two();
                let party = [controller, command][self.rng.random_range(0..2)](self.stage.name(one));
                // Also from its own cluster.
                let place = if self.rng.random_bool(0.8) { other } else { one };
                self.cut(party, self.stage.name(place).to_owned());
                true
            }
            Drawn::ServerAnswersBadly => {
                let answer = match self.rng.random_range(0..6) {
                    0 => FaultAnswer::Status(403),
                    1 => FaultAnswer::Status(409),
                    2 => FaultAnswer::TooManyRequests(2),
                    3 => FaultAnswer::Status(500),
                    4 => FaultAnswer::Hang,
                    _ => FaultAnswer::Slow(self.rng.random_range(1..=20)),
                };
                let resource = RESOURCES[self.rng.random_range(0..RESOURCES.len())];
                self.named += 1;
                let name = format!("{resource} badly ({})", self.named);
                let mut requests = RequestFilter::any().cluster(self.stage.name(site)).resource(resource);
                // All but the administrator meet it.
                let other = self.site();
                requests = requests.party(controller(self.stage.name(other)));
                self.stage.world.add_fault(PartialFault::new(&name, requests, answer));
                self.broken.faults.insert(name, acts);
                true
            }
            _ => {
                let cluster = self.stage.cluster(site);
                cluster.compact();
                for other in 0..self.stage.sites.len() {
                    self.stage.world.end_watches(&controller(self.stage.name(other)), cluster.name());
                }
                true
            }
        }
    }

    pub(super) fn cut(&mut self, party: String, cluster: String) {
        self.stage.world.partition(&party, &cluster);
        let acts = self.rng.random_range(0..=4);
        self.broken.cut.insert((party, cluster), acts);
    }

    /// What was broken for long enough is whole again.
    pub(super) fn repair(&mut self) {
        self.restore(false);
    }

    /// Everything is whole again.
    pub(super) fn heal(&mut self) {
        self.restore(true);
    }

    fn restore(&mut self, all: bool) {
        for site in over(&mut self.broken.down, all) {
            self.stage.start(site);
        }
        for site in over(&mut self.broken.unsigned, all) {
            self.stage.cluster(site).stop_signers(false);
        }
        for (party, cluster) in over(&mut self.broken.cut, all) {
            self.stage.world.heal(&party, &cluster);
        }
        for name in over(&mut self.broken.faults, all) {
            self.stage.world.end_fault(&name);
        }
    }
}

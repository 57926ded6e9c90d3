//! A process of controllers in a world: alone, or one of several that elect a leader.

use super::Gate;
use futures::future::BoxFuture;
use kube::Client;
use portolan_api::ForeignCluster;
use portolan_control::Settings;
use portolan_control::fleet::{Connect, ConnectError};
use portolan_runtime::{Election, Seed, Standing, Term};
use portolan_sandbox::{Cluster, World};
use std::sync::Arc;
use std::time::Duration;

/// The name by which the controller's requests are known to the world.
pub const CONTROLLER: &str = "controller";

/// The name of the controller that stands by.
pub const STANDBY: &str = "standby";

/// Where the leader is elected: namespace and name of the Lease in the hub.
pub const LEASE: (&str, &str) = ("kube-system", "portolan-controller");

/// One process of controllers.
#[derive(Clone)]
pub struct Contender {
    /// Its name in the world and in the election.
    pub party: &'static str,
    /// Whether it takes part in an election.
    pub elect: bool,
    /// What it sends to the hub passes here.
    pub to_hub: Gate,
    /// What it sends to members passes here.
    pub to_members: Gate,
    /// What its operator has set.
    pub settings: Settings,
}

impl Contender {
    /// The only controller there is.
    #[must_use]
    pub fn alone() -> Self {
        Self { elect: false, ..Self::named(CONTROLLER) }
    }

    /// One that takes part in an election.
    #[must_use]
    pub fn named(party: &'static str) -> Self {
        let (to_hub, to_members) = (Gate::default(), Gate::default());
        Self { party, elect: true, to_hub, to_members, settings: Settings::default() }
    }

    /// Runs the controllers for ever, whenever it may; crashed, they start anew a second later.
    pub async fn run(self, world: World, hub: Cluster, seed: Seed) {
        let party = self.party;
        loop {
            let connect = Arc::new(InProcess { world: world.clone(), party, gate: self.to_members.clone() });
            let (client, clock) = (self.to_hub.client(&hub, party), world.clock().clone());
            let controllers = |term| {
                let (client, settings) = (client.clone(), self.settings.clone());
                portolan_control::run_with(client, connect.clone(), clock.clone(), seed, term, settings)
            };
            let election = Election {
                client: client.clone(),
                namespace: LEASE.0.to_owned(),
                name: LEASE.1.to_owned(),
                holder: party.to_owned(),
                clock: clock.clone(),
                seed: seed.child("election"),
                standing: Standing::default(),
            };
            let work = async {
                if self.elect {
                    election.lead(controllers, std::future::pending()).await
                } else {
                    controllers(Term::alone(party)).await
                }
            };
            tokio::select! {
                biased;
                () = world.crash_signal(party) => {}
                () = work => {}
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.restart(party);
        }
    }
}

/// Hands out clients of sandbox clusters.
struct InProcess {
    world: World,
    party: &'static str,
    gate: Gate,
}

impl Connect for InProcess {
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let client = self.world.cluster(name).map(|cluster| self.gate.client(&cluster, self.party));
        Box::pin(async { client.ok_or(ConnectError::NoCredentials) })
    }
}

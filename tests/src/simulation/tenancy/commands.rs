//! What administrators run: `portolan invite`, `peer` and `unpeer`, each with its own faults.

use super::dial::{by_config, keys};
use super::stage::{Stage, command};
use jiff::{SignedDuration, Timestamp};
use kube::{Api, Client, Config};
use portolan_api::ForeignCluster;
use portolan_control::peering::{self, Address, Peer, PeerError, Sides};
use portolan_control::tenancy::{self, Inviting, Redeeming, TenancyError};
use portolan_core::tenancy::InvitationLine;
use portolan_runtime::Clock;
use portolan_sandbox::World;
use std::time::Duration;

/// How long `portolan peer` waits for the provider.
const TIMEOUT: Duration = Duration::from_secs(45);

/// How often users run a command again that has failed for a reason that may pass.
const TRIES: usize = 3;

/// What is needed to use a line in a cluster.
pub(super) struct Use {
    pub(super) world: World,
    pub(super) clock: Clock,
    pub(super) consumer: &'static str,
    pub(super) line: InvitationLine,
    /// What the provider is called there.
    pub(super) name: String,
    /// Names the keys that are made.
    pub(super) key: String,
    pub(super) lifetime: i32,
    /// After this the command is interrupted.
    pub(super) patience: Option<Duration>,
}

impl Use {
    /// Uses the line, and again if that fails for a reason that may pass. Answers nothing if it was interrupted.
    pub(super) async fn run(self) -> Option<Result<(), TenancyError>> {
        let work = async {
            let mut last = Ok(());
            for _ in 0..TRIES {
                last = Box::pin(self.once()).await;
                if !matches!(
                    last,
                    Err(TenancyError::Call(_)
                        | TenancyError::Peer(PeerError::Call(_))
                        | TenancyError::Unreachable { .. }
                        | TenancyError::TimedOut { .. })
                ) {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
            last
        };
        match self.patience {
            Some(patience) => tokio::time::timeout(patience, work).await.ok(),
            None => Some(work.await),
        }
    }

    async fn once(&self) -> Result<(), TenancyError> {
        let party = command(self.consumer);
        let Some(cluster) = self.world.cluster(self.consumer) else { return Ok(()) };
        let dial = |config: Config| by_config(&self.world, &party, &config);
        let with = Redeeming {
            hub: cluster.client(&party),
            own_name: self.consumer.to_owned(),
            peer: Peer { name: self.name.clone(), ..Peer::default() },
            line: &self.line,
            lifetime: self.lifetime,
            timeout: TIMEOUT,
            dial: &dial,
            new_key: keys(&self.key),
        };
        tenancy::redeem(&with, &|| self.clock.now(), &|_| ()).await.map(|_| ())
    }
}

/// What an administrator says who invites.
pub(super) fn inviting(provider: &str, now: Timestamp, life: SignedDuration, random: [u8; 10]) -> Inviting {
    let expires = now.saturating_add(life).unwrap_or(now);
    Inviting {
        provider: provider.to_owned(),
        consumer: None,
        namespaces: Vec::new(),
        sees_cluster: false,
        sharing: None,
        acceptance: Default::default(),
        expires: Timestamp::from_second(expires.as_second()).unwrap_or(expires),
        address: Address { server: format!("https://{provider}"), ..Address::default() },
        random,
    }
}

/// What came of a command to peer by a context.
#[derive(Debug)]
pub(super) enum PeeringByContext {
    Done,
    /// The cluster has peered by an invitation.
    Refused,
}

impl Stage {
    /// A client by which a command of a cluster's administrator works.
    pub(super) fn commands(&self, site: usize) -> Client {
        self.cluster(site).client(&command(self.name(site)))
    }

    /// `portolan unpeer NAME --force`; answers whether it was done.
    pub(super) async fn unpeer(&self, site: usize, name: &str) -> Result<(), String> {
        let (hub, party) = (self.commands(site), command(self.name(site)));
        let clusters: Api<ForeignCluster> = Api::all(hub.clone());
        let cluster = clusters.get_opt(name).await.map_err(|error| error.to_string())?;
        if cluster.as_ref().is_some_and(|cluster| cluster.spec.outgoing.is_some()) {
            let dial = |config: Config| by_config(&self.world, &party, &config);
            // A provider that does not answer holds nothing up.
            let _ = tenancy::tell_provider(&hub, name, &dial).await;
        }
        peering::leave_hub(&hub, name).await.map_err(|error| error.to_string())?;
        if cluster.is_some_and(|cluster| cluster.spec.incoming.is_some()) {
            tenancy::revoke(&hub, name, &self.clock(site)).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// `portolan peer NAME --remote-context OTHER`, with rights in both clusters.
    pub(super) async fn peer_by_context(
        &self,
        site: usize,
        other: usize,
        name: &str,
    ) -> Result<PeeringByContext, String> {
        let hub = self.commands(site);
        let clusters: Api<ForeignCluster> = Api::all(hub.clone());
        // The command looks there first: an account of the hub would take the place of the tenant's credential.
        let found = clusters.get_opt(name).await.map_err(|error| error.to_string())?;
        if found.is_some_and(|found| found.spec.outgoing.is_some()) {
            return Ok(PeeringByContext::Refused);
        }
        let member = self.cluster(other).client(&command(self.name(site)));
        let address = Address { server: format!("https://{}", self.name(other)), ..Address::default() };
        let sides = Sides { hub, member, address };
        let peer = Peer { name: name.to_owned(), token_lifetime: 3600, ..Peer::default() };
        match Box::pin(peering::join(&sides, &peer, self.clock(site).now(), &|_| ())).await {
            Ok(_) => Ok(PeeringByContext::Done),
            Err(PeerError::MemberAlready { .. }) => Ok(PeeringByContext::Refused),
            Err(error) => Err(error.to_string()),
        }
    }
}

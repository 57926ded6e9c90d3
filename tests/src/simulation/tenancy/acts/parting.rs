//! Peerings are ended, from either side.

use super::{Story, all_of};
use crate::simulation::tally::Drawn;
use crate::simulation::tenancy::stage::{command, controller};
use kube::api::DynamicObject;
use portolan_core::tenancy::names::Tenant;
use rand::RngExt;
use std::time::Duration;

pub(super) const ACTS: &[Drawn] = &[
    Drawn::UnpeeredByConsumer,
    Drawn::UnpeeredByProvider,
    Drawn::UnpeeredApart,
    Drawn::UnpeerInterrupted,
    Drawn::UnpeeredDuringAcceptance,
];

/// How long administrators wait for a command to unpeer.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often to look whether a consumer is being accepted, and how long to wait in between.
const LOOKS: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);

impl Story {
    pub(super) async fn parting(&mut self, drawn: Drawn) -> bool {
        let side = match drawn {
            Drawn::UnpeeredDuringAcceptance => return self.unpeer_during_acceptance().await,
            Drawn::UnpeeredByConsumer => "outgoing",
            Drawn::UnpeeredByProvider => "incoming",
            _ => ["outgoing", "incoming"][self.rng.random_range(0..2)],
        };
        let is_one = |cluster: &DynamicObject| cluster.data["spec"][side].is_object();
        let Some((site, cluster)) = self.one_of("ForeignCluster", is_one).await else { return false };
        let name = cluster.metadata.name.clone().unwrap_or_default();
        if let Some(other) = self.stands_for(&cluster) {
            self.end(site, other);
            if drawn == Drawn::UnpeeredApart {
                let place = self.stage.name(other).to_owned();
                for party in [controller(self.stage.name(site)), command(self.stage.name(site))] {
                    self.cut(party, place.clone());
                }
            }
        }
        let patience = match drawn {
            Drawn::UnpeerInterrupted => Duration::from_millis(self.rng.random_range(1..=120)),
            _ => PATIENCE,
        };
        self.unpeer_within(patience, site, &name).await;
        true
    }

    async fn unpeer_within(&self, patience: Duration, site: usize, name: &str) {
        let done = tokio::time::timeout(patience, Box::pin(self.stage.unpeer(site, name))).await;
        self.note(&format!("command of {} to unpeer {name}: {done:?}", self.stage.name(site)));
    }

    /// A provider ends a peering that begins: its ForeignCluster is there, and rights, quotas and the certificate of the
    /// consumer are on their way.
    async fn unpeer_during_acceptance(&mut self) -> bool {
        let (provider, consumer) = self.two();
        if self.peered.contains(&(consumer, provider)) {
            return false;
        }
        let Some(line) = self.fresh(provider).await else { return false };
        let invitation = self.lines[line].line.invitation.clone();
        if self.lines[line].by_hand && !self.accept_line(line).await {
            return false;
        }
        self.use_line(line, consumer, |_| ());
        let has_tenant = |cluster: &&DynamicObject| {
            let user = cluster.data["spec"]["incoming"]["user"].as_str();
            user.and_then(Tenant::of_user).is_some_and(|tenant| tenant.invitation == invitation)
        };
        for _ in 0..LOOKS {
            let clusters = all_of(&self.stage, provider, "ForeignCluster").await;
            if let Some(cluster) = clusters.iter().find(has_tenant) {
                let name = cluster.metadata.name.clone().unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..=400))).await;
                self.end(provider, consumer);
                self.unpeer_within(PATIENCE, provider, &name).await;
                return true;
            }
            tokio::time::sleep(PAUSE).await;
        }
        false
    }
}

//! Peerings are ended, from either side.

use super::Story;
use crate::simulation::tally::Drawn;
use crate::simulation::tenancy::stage::{command, controller};
use kube::api::DynamicObject;
use rand::RngExt;
use std::time::Duration;

pub(super) const ACTS: &[Drawn] =
    &[Drawn::UnpeeredByConsumer, Drawn::UnpeeredByProvider, Drawn::UnpeeredApart, Drawn::UnpeerInterrupted];

impl Story {
    pub(super) async fn parting(&mut self, drawn: Drawn) -> bool {
        let side = match drawn {
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
            _ => Duration::from_secs(90),
        };
        let done = tokio::time::timeout(patience, Box::pin(self.stage.unpeer(site, &name))).await;
        self.note(&format!("command of {} to unpeer {name}: {done:?}", self.stage.name(site)));
        true
    }
}

//! All controllers of a hub on one fleet.

use crate::capacity::tell_of_room;
use crate::fleet::{Connect, Fleet, Hub, keep};
use crate::placement::Placement;
use kube::Client;
use portolan_runtime::{Clock, Seed, Term};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Runs the fleet's membership and all controllers for the length of a term. Dropped, they stop at once.
pub async fn run(hub: Client, connect: Arc<dyn Connect>, clock: Clock, seed: Seed, term: Term) {
    let hub = Hub::identify(hub, seed).await;
    let fleet = Fleet::default();
    let placement = Placement::new(&hub, &fleet, &clock, seed, &term);
    let (wake, room) = (placement.wake(), placement.wake());
    let mut tasks = JoinSet::new();
    tasks.spawn(tell_of_room(fleet.ledger.clone(), move |owner| room.room(owner)));
    tasks.spawn(keep(hub, fleet, connect, clock, seed.child("fleet"), move |cluster, what| {
        wake.touched(cluster, &what);
    }));
    placement.run().await;
}

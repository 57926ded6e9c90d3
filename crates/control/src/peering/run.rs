//! The controllers of peering.

use super::{depart, publish, renew};
use crate::fleet::Credentials;
use kube::Client;
use portolan_runtime::{Clock, Seed};
use std::sync::Arc;

/// Keeps credentials valid, members published and departures in order, for ever. Dropped, it stops at once.
pub async fn run(hub: Client, credentials: Arc<Credentials>, clock: Clock, seed: Seed) {
    let renewing = renew(hub.clone(), credentials, clock.clone(), seed.child("renew"));
    let departing = depart(hub.clone(), clock.clone(), seed.child("depart"));
    let publishing = publish(hub, clock, seed.child("publish"));
    tokio::join!(renewing, departing, publishing);
}

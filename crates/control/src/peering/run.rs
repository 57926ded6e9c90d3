//! The controllers of peering.

use super::depart::depart_with;
use super::publish;
use super::renew::renew_with;
use crate::fleet::Credentials;
use crate::monitor::Monitor;
use kube::Client;
use portolan_runtime::{Clock, Seed};
use std::sync::Arc;

/// Keeps credentials valid, members published and departures in order, for ever. Dropped, it stops at once.
pub async fn run(hub: Client, credentials: Arc<Credentials>, clock: Clock, seed: Seed) {
    run_with(hub, credentials, clock, seed, &Monitor::default()).await;
}

/// The same, seen by a monitor.
pub async fn run_with(
    hub: Client,
    credentials: Arc<Credentials>,
    clock: Clock,
    seed: Seed,
    monitor: &Monitor,
) {
    let renewing = renew_with(hub.clone(), credentials, clock.clone(), seed.child("renew"), monitor);
    let departing = depart_with(hub.clone(), clock.clone(), seed.child("depart"), monitor);
    let publishing = publish(hub, clock, seed.child("publish"));
    tokio::join!(renewing, departing, publishing);
}

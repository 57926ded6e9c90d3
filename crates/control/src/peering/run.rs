//! The controllers of peering.

use super::{publish, renew};
use crate::fleet::Credentials;
use kube::Client;
use portolan_runtime::{Clock, Seed};
use std::sync::Arc;

/// Keeps credentials valid and members published, for ever. Dropped, it stops at once.
pub async fn run(hub: Client, credentials: Arc<Credentials>, clock: Clock, seed: Seed) {
    let renewing = renew(hub.clone(), credentials, clock.clone(), seed.child("renew"));
    let publishing = publish(hub, clock, seed.child("publish"));
    tokio::join!(renewing, publishing);
}

//! The fleet as the controller sees it, to be asked without changing anything.

use crate::failure::Failure;
use crate::progress::Progress;
use jiff::Timestamp;
use kube::Client;
use portolan_control::Preview;
use portolan_control::fleet::Credentials;
use portolan_runtime::{Clock, Seed};
use std::sync::Arc;
use std::time::Duration;

/// Gets to know the fleet of a hub, with the credentials that the hub has for its members.
pub(super) async fn open(hub: &Client, limit: Duration) -> Result<Preview, Failure> {
    let progress = Progress::start();
    let connect = Arc::new(Credentials::from_hub(hub.clone()));
    let clock = Clock::starting_at(Timestamp::now());
    let opening = Preview::open(hub.clone(), connect, clock, Seed::new(1), limit);
    tokio::pin!(opening);
    let opened = tokio::select! {
        opened = &mut opening => opened,
        () = tokio::time::sleep(Duration::from_secs(1)) => {
            progress.step("getting to know the members");
            opening.await
        }
    };
    opened.map_err(|unknown| {
        Failure::other(format!("not known after {} s: {}", limit.as_secs(), unknown.join(", ")))
            .hint("`portolan get clusters` tells whether they answer; --timeout waits longer")
    })
}

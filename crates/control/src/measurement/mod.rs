//! Measuring the distance to the other members, where Portolan runs in a member.
//!
//! A hub names the API servers of the other members in a ClusterReport. **Only if the administrator of the member has switched it
//! on**, the controller of the member connects to each of them, one connection a period, and reports the smoothed round-trip time of
//! those that finish a handshake of TLS. Of the others it tells nothing: neither that nothing listens there, nor that something
//! does.

mod measure;

use futures::future::BoxFuture;
use portolan_core::report::Endpoint;
use std::time::Duration;

pub use measure::measure;

/// Connects to an API server. Production does it over the network; a sandbox asks its own links.
pub trait Handshake: Send + Sync + 'static {
    /// How long a round trip takes in a handshake that was finished; otherwise why it was not, for the log.
    fn time<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Duration, String>>;
}

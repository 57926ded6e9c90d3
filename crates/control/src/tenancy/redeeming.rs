//! What an invitation is used with.

use super::certificate::NewKey;
use crate::peering::Peer;
use kube::Client;
use portolan_core::tenancy::InvitationLine;
use std::time::Duration;

/// How a configuration becomes a client; a sandbox has clients of its own.
pub type DialOnce<'a> = &'a (dyn Fn(kube::Config) -> Result<Client, String> + Sync);

/// What is needed beside the line.
pub struct Redeeming<'a> {
    /// The consumer, as its administrator.
    pub hub: Client,
    /// How this cluster is called there.
    pub own_name: String,
    /// The new member: its name, labels and so on.
    pub peer: Peer,
    /// The line.
    pub line: &'a InvitationLine,
    /// For how many seconds a certificate is asked for.
    pub lifetime: i32,
    /// How long to wait for the provider.
    pub timeout: Duration,
    /// How the provider is reached.
    pub dial: DialOnce<'a>,
    /// Where keys come from.
    pub new_key: NewKey,
}

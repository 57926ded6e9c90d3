//! Why two clusters do not peer by an invitation.

use crate::peering::PeerError;
use portolan_core::tenancy::ClockSkew;
use portolan_runtime::CallError;

/// Why two clusters do not peer by an invitation.
#[derive(Debug, thiserror::Error)]
pub enum TenancyError {
    /// What stands in the way of every peering.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// An API server refused, or did not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Nothing of the provider can be reached.
    #[error("the provider's API server {server} cannot be reached: {why}")]
    Unreachable {
        /// Its URL.
        server: String,
        /// What the connection came to.
        why: String,
    },
    /// The bootstrap token is worth nothing (any more).
    #[error(
        "the provider's API server {server} does not accept invitation {invitation}: it has expired, was used, or was \
         deleted there{}", told(*.skew)
    )]
    NotAccepted {
        /// Its URL.
        server: String,
        /// The invitation.
        invitation: String,
        /// Whether the clocks differ.
        skew: Option<ClockSkew>,
    },
    /// The invitation expired.
    #[error("invitation {invitation} has expired: {message}{}", told(*.skew))]
    Expired {
        /// The invitation.
        invitation: String,
        /// What the provider says.
        message: String,
        /// Whether the clocks differ.
        skew: Option<ClockSkew>,
    },
    /// Somebody else was first.
    #[error(
        "invitation {invitation} was used already with another key, by another cluster or by somebody who has stolen it: \
         delete it on the provider, look there which cluster has peered, and make a new one"
    )]
    OtherKey {
        /// The invitation.
        invitation: String,
    },
    /// Another version of Portolan made the line, which is too far from this one.
    #[error(
        "invitation {invitation} of {provider} was made by Portolan {theirs}, and this program is {own}: versions may differ by \
         one minor version at most"
    )]
    Skew {
        /// The invitation.
        invitation: String,
        /// The provider.
        provider: String,
        /// The version of the program that made the line.
        theirs: String,
        /// That of this program.
        own: String,
    },
    /// The line names a member that may be another cluster.
    #[error(
        "the invitation says that it is of {name}, which is known here by {known}, and leads to {server}, whose authority is \
         another one: whoever has made it may not be {name}, and its credential is not replaced"
    )]
    OtherProvider {
        /// The member.
        name: String,
        /// How it is known.
        known: String,
        /// Where the line leads.
        server: String,
    },
    /// The provider said no.
    #[error("the provider refuses invitation {invitation}: {message}")]
    Refused {
        /// The invitation.
        invitation: String,
        /// Why.
        message: String,
    },
    /// A namespace that is to be opened belongs to somebody else.
    #[error(
        "namespace {namespace} belongs to {holder}: what it runs there would be bounded by one quota with what the other one \
         runs, and each could read the Secrets of the other"
    )]
    NamespaceTaken {
        /// The namespace.
        namespace: String,
        /// Whose it is.
        holder: String,
    },
    /// Nobody answered in time.
    #[error("invitation {invitation} was not answered within {seconds} s: {waiting}")]
    TimedOut {
        /// The invitation.
        invitation: String,
        /// How long it was waited for.
        seconds: u64,
        /// What was waited for last.
        waiting: String,
    },
    /// A key or a request cannot be made.
    #[error("cannot make a {what}: {why}")]
    Key {
        /// What.
        what: &'static str,
        /// Why not.
        why: String,
    },
}

fn told(skew: Option<ClockSkew>) -> String {
    skew.map(|skew| format!("; {skew}")).unwrap_or_default()
}

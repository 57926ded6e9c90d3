//! Why an order was not carried out.

use crate::fleet::ConnectError;
use crate::peering::PeerError;
use portolan_core::provision::Failure;
use portolan_runtime::CallError;

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum OrderError {
    /// An API server refused, or does not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The cluster did not become a member.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The kubeconfig of the cluster cannot be used.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// What is asked for cannot be made.
    #[error("{}", .0.message)]
    Refused(Failure),
}

//! Why a certificate is not renewed.

use super::TenancyError;
use crate::fleet::ConnectError;
use crate::peering::PeerError;
use portolan_runtime::CallError;
use std::time::Duration;

/// How long a provider has to sign.
pub(super) const SIGNED_WITHIN: Duration = Duration::from_secs(30);

/// Why a certificate is not renewed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenewError {
    #[error(
        "{0} is no user that an invitation makes: `portolan peer` with a new invitation makes another one"
    )]
    NoTenant(String),
    #[error("the provider refuses: {0}; `portolan peer` with a new invitation makes another identity")]
    Refused(String),
    #[error("the provider's controller has not answered within {} s: `portolan controller` must run there", SIGNED_WITHIN.as_secs())]
    NoController,
    #[error("the provider has approved, and nobody signed within {} s: its signer kubernetes.io/kube-apiserver-client does not run", SIGNED_WITHIN.as_secs())]
    NoSigner,
    #[error(
        "CertificateSigningRequest {0} of the provider is by another key: another copy of this cluster may renew the same \
         certificate, such as one that was restored from a backup"
    )]
    OtherKey(String),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Tenancy(#[from] TenancyError),
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error(transparent)]
    Call(#[from] CallError),
}

//! Peering by invitation: what is decided about invitations and requests for certificates. Pure.
//!
//! The provider makes an invitation; the consumer, whoever has its [`InvitationLine`], asks once for a certificate. What is
//! asked for is prescribed in every part ([`names`]), so that [`judge`] can compare instead of interpreting.

mod acceptance;
mod judge;
mod line;
pub mod names;
mod orphan;
mod presence;
mod request;
mod sealing;
mod skew;
mod unsigned;

pub use acceptance::{KnownCluster, KnownServer, fingerprint, is_claim};
pub use judge::{Asked, Invited, LONGEST_LIFE, Refusal, SHORTEST_LIFE, SIGNER, judge, judge_renewal};
pub use line::{InvitationLine, LineError, ProviderIdentity};
pub use names::Tenant;
pub use orphan::orphan;
pub use presence::{Presence, is_abandoned, presence};
pub use request::{CertificateRequest, RequestError};
pub use sealing::{OpeningKey, SealError, SealingKey};
pub use skew::{ClockSkew, clock_skew};
pub use unsigned::{NoToken, SIGNED_WITHIN, TOKEN_AFTER, Unsigned, unsigned};

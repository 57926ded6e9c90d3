//! Peering by invitation: a consumer becomes a tenant of a provider, by one certificate that the provider signs.
//!
//! On the provider [`invite`] makes an Invitation with an account that may do no more than ask for one certificate, and
//! [`run`] judges what is asked, makes the tenant and signs. On the consumer [`redeem`] asks and becomes a member, and
//! its certificate is signed anew before it ends. Where nobody signs, the tenant has a service account, and its token takes
//! the place of the certificate. All state is in the two API servers: whoever is killed goes on.

mod admit;
mod burn;
mod by_token;
mod certificate;
mod context;
mod declared;
mod error;
mod gone;
mod held;
mod hop;
mod invite;
mod keys;
mod known_provider;
mod login;
mod objects;
mod obtain;
mod orphans;
mod owners;
mod part;
mod policy;
mod probe;
mod provider;
mod redeem;
mod redeeming;
mod renew;
mod renew_error;
mod rights;
mod roles;
mod sealed;
mod tenant;
mod waits;

pub use certificate::NewKey;
pub use error::TenancyError;
pub use held::Held;
pub use invite::{Inviting, invite};
pub use part::tell_provider;
pub use policy::{TENANT_POLICY, tenant_policy};
pub use provider::{revoke, run, run_with};
pub use redeem::{Redeemed, redeem};
pub use redeeming::{DialOnce, Redeeming};
pub use renew::{renew, renew_with};
pub(crate) use roles::PROVIDER;
pub use roles::{provider_rights_table, provider_roles};

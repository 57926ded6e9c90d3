//! What a provider offers to its consumers, how an offer is divided over the namespaces of a tenant, and which offers a
//! consumer accepts.
//!
//! [`offers`] follows what is really free and never promises it twice; [`divide`] gives each namespace its quota, so that the
//! quotas of a tenant never admit more together than was offered; [`accept`] says how much of an offer counts.

mod accept;
mod divide;
mod names;
mod offer;
mod unit;

pub use accept::{Acceptance, Conditions, OfferView, accept};
pub use divide::{NamespaceState, divide};
pub use names::is_shareable;
pub use offer::{Consumer, Rule, Supply, offers};

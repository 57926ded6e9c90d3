//! The members of the fleet: connected to, watched, and known to be there or silent.
//!
//! Each ForeignCluster of the hub becomes a [`Member`] with a client and indexes of what placement needs to know. What
//! is known of a member stays known when it falls silent; only its reach changes.

mod actuator;
mod bearer;
mod bounded;
mod budgets;
mod connect;
mod connect_error;
mod copy_meta;
mod credential;
mod doubt;
mod event;
mod findings;
mod gate;
mod health;
mod hub;
mod identity;
mod member;
mod membership;
mod namespace;
mod observed;
mod prometheus;
mod query;
mod reachability;
mod readable;
mod registry;
mod report;
mod rights;
mod room;
mod secrets;
mod sites;
mod summaries;
mod switch;
mod token_claims;
mod traffic;
mod transport;
mod validity;
mod watched;

pub(crate) use actuator::{About, Subject};
pub use bearer::{Authorised, Bearer, TokenError, check_token};
pub(crate) use budgets::{BudgetsUnknown, budgets_of, tightest_budget};
pub use connect::{Access, Connect, Credentials, Dial, Refreshed};
pub use connect_error::ConnectError;
pub use copy_meta::CopyMeta;
pub(crate) use copy_meta::is_epoch;
pub use credential::check_server;
pub(crate) use doubt::Silence;
pub use event::MemberEvent;
pub use health::{Health, UNREACHABLE_AFTER};
pub use hub::Hub;
pub use member::Member;
pub(crate) use membership::keep;
pub(crate) use prometheus::ask_number;
pub(crate) use query::escaped;
pub(crate) use reachability::Reachability;
pub use readable::{KNOWN_WITHIN, Needs, Readable};
pub(crate) use readable::{is_outdated, outdated};
pub use registry::Fleet;
pub(crate) use rights::grants;
pub use sites::HUB;
pub(crate) use sites::{allowed_adoption, is_confirmed_lost};
pub use token_claims::TokenClaims;
pub use traffic::Traffic;
pub use validity::Validity;
pub(crate) use watched::{CopyKind, CopyTest, Indexes, KEEP, Registration, Starting, Watched, resource};

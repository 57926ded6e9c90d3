//! Peering: a cluster becomes a member of the fleet by a credential that may do what is listed, and nothing else.
//!
//! [`join`] makes a service account in the member, gives it the rights of [`rights`], and hands its token to the hub in a
//! Secret, with a ForeignCluster beside it. [`renew`] asks for a new token before the old one ends. [`leave`] takes all of
//! it back, and [`depart`] keeps a ForeignCluster until that can be done. Each step can be repeated; interrupted anywhere, the next run goes on.

mod access;
mod applied;
mod apply;
mod certificate_facts;
mod definitions;
mod depart;
mod finalizer;
mod hub_role;
mod identity;
mod join;
mod kubeconfig;
mod leave;
mod namespaces;
mod objects;
mod peer;
mod profile;
mod renew;
mod role;
mod run;
mod token;

pub use access::{
    Need, in_open_namespace, in_whole_member, missing, missing_in, of_hub, of_tenant, of_tenant_in,
};
pub(crate) use applied::own_namespace;
pub use applied::{is_own_namespace, with_applied};
pub use apply::{PeerError, apply};
pub(crate) use apply::{api_of, apply_by, called};
pub use certificate_facts::CertificateFacts;
pub(crate) use certificate_facts::{certificate_user, der_of};
pub use definitions::install_definitions;
pub(crate) use definitions::install_roles;
pub use depart::depart;
pub(crate) use hub_role::of_this_version;
pub use hub_role::{
    CONTROLLER, capacity_report_bindings, hub_as_member_binding, hub_needs, hub_rights_table, hub_roles,
    measurement_binding,
};
pub use identity::identity;
pub use join::{Joined, Sides, join};
pub(crate) use join::{admit, check_name, declare, grant};
pub use kubeconfig::Address;
pub use leave::{Holding, has_credential, holdings, leave_hub, leave_local, leave_member};
pub(crate) use leave::{check_credential, if_same, sweep_those};
pub use namespaces::{Departure, has_open_namespace};
pub(crate) use namespaces::{make_missing, open};
pub use objects::{Names, foreign_cluster, in_hub, in_member};
pub(crate) use objects::{SECRET_KEY, in_hub_with};
pub use peer::{NAMESPACE, Peer};
pub use profile::publish;
pub use renew::renew;
pub(crate) use role::look_rules;
pub use role::{Right, Scope, page, rights, rules};
pub use run::{run, run_with};
pub use token::TokenFacts;
pub(crate) use token::request_token;

//! Whether a provider still knows this cluster as its tenant.

use super::part::consumer_lease;
use super::renew_error::RenewError;
use crate::names::FIELD_MANAGER;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::foreigncluster::OutgoingPeering;
use portolan_core::tenancy::names::LEASE;
use portolan_runtime::{CallError, call};

/// How a provider answers.
pub(super) enum Standing {
    /// This cluster is a tenant there.
    Tenant,
    /// It has no rights there, or no namespace: in these words.
    Ended(String),
}

/// Asks for the Lease by which this cluster speaks to a provider. One that somebody has deleted is made again, so that the
/// provider knows that its consumer is there.
pub(super) async fn standing(
    provider: Client,
    outgoing: &OutgoingPeering,
    user: &str,
) -> Result<Standing, RenewError> {
    let namespace = &outgoing.tenant_namespace;
    let leases: Api<Lease> = Api::namespaced(provider, namespace);
    let what = format!("read Lease {namespace}/{LEASE} in the provider");
    let found = match call(what, leases.get_opt(LEASE)).await {
        Err(error) => return refused(error),
        Ok(found) => found,
    };
    let holder = found.and_then(|lease| lease.spec?.holder_identity);
    if holder.is_some() {
        return Ok(Standing::Tenant);
    }
    // A right to create by a name holds for what is applied by that name, and for nothing that is posted. By a manager of its
    // own, so that it takes back nothing that a command has said meanwhile.
    let params = PatchParams::apply(&format!("{FIELD_MANAGER}-probe"));
    let lease = consumer_lease(user, namespace);
    let what = format!("apply Lease {namespace}/{LEASE} in the provider");
    match call(what, leases.patch(LEASE, &params, &Patch::Apply(&lease))).await {
        Err(error) if error.is_conflict() => Ok(Standing::Tenant),
        Err(error) => refused(error),
        Ok(_) => Ok(Standing::Tenant),
    }
}

fn refused(error: CallError) -> Result<Standing, RenewError> {
    match error.code() {
        Some(401 | 403 | 404) => Ok(Standing::Ended(portolan_runtime::chain(&error))),
        _ => Err(error.into()),
    }
}

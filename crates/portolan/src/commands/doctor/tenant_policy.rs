//! Whether API servers refuse what tenants have no need to write.

use super::report::{Sheet, unasked};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_control::tenancy::TENANT_POLICY;
use portolan_core::doctor::{Check, Evidence, TenantPolicy};
use portolan_runtime::{CallError, call};

/// Checks the policy of tenants and its binding: one without the other refuses nothing.
pub(super) async fn check(sheet: &Sheet, hub: &Client) {
    let evidence = match look(hub).await {
        Ok(policy) => Evidence::TenantPolicy(policy),
        Err(error) => unasked(
            &error,
            "get validatingadmissionpolicies and validatingadmissionpolicybindings.admissionregistration.k8s.io, and list \
             foreignclusters.portolan.dev",
        ),
    };
    sheet.add(Check::TenantPolicy, "", &evidence);
}

async fn look(hub: &Client) -> Result<TenantPolicy, CallError> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(hub.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(hub.clone());
    let called = |kind: &str| format!("{kind} {TENANT_POLICY}");
    let (of_policy, of_binding) =
        (called("ValidatingAdmissionPolicy"), called("ValidatingAdmissionPolicyBinding"));
    let mut found = TenantPolicy::default();
    match call(format!("read {of_policy}"), policies.get_opt(TENANT_POLICY)).await? {
        Some(policy) => {
            let warnings = policy.status.and_then(|status| status.type_checking?.expression_warnings);
            if let Some(warning) = warnings.into_iter().flatten().next() {
                found.idle.push((of_policy, format!("{}: {}", warning.field_ref, warning.warning)));
            }
        }
        None => found.missing.push(of_policy),
    }
    match call(format!("read {of_binding}"), bindings.get_opt(TENANT_POLICY)).await? {
        Some(binding) => {
            if binding.spec.policy_name != TENANT_POLICY {
                found.idle.push((of_binding, "it binds another policy".to_owned()));
            } else if !binding.spec.validation_actions.iter().any(|action| action == "Deny") {
                found.idle.push((of_binding, "its validationActions do not have Deny".to_owned()));
            }
        }
        None => found.missing.push(of_binding),
    }
    let clusters: Api<ForeignCluster> = Api::all(hub.clone());
    found.consumers = match call("list ForeignClusters", clusters.list(&ListParams::default())).await {
        Ok(all) => all.items.iter().filter(|cluster| cluster.spec.incoming.is_some()).count(),
        // Without its definition there are none.
        Err(error) if error.is_not_found() => 0,
        Err(error) => return Err(error),
    };
    Ok(found)
}

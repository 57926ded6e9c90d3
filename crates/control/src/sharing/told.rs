//! What is told of offers in conditions: pure.

use super::classes::default_class;
use super::enforce::Enforced;
use super::objects::words;
use super::tenants::Tenant;
use portolan_api::conditions::{ConditionType, Finding};
use portolan_api::{Reason, SharingClass};
use portolan_core::capacity::Amounts;
use std::sync::Arc;

/// How an offer is enforced.
pub(super) fn ready(enforced: &Enforced) -> Finding {
    if enforced.pending.is_empty() {
        let namespaces = enforced.namespaces.len();
        let message = format!("quotas enforce the offer in {namespaces} namespaces");
        return Finding::new(ConditionType::Ready, true, Reason::QuotasEnforced, message);
    }
    Finding::new(ConditionType::Ready, false, Reason::QuotasPending, pending(enforced))
}

/// What a cluster is given.
pub(super) fn sharing(tenant: &Tenant, offered: &Amounts, enforced: &Enforced) -> Finding {
    if let Err(problem) = &tenant.terms {
        return Finding::new(ConditionType::Sharing, false, problem.reason, problem.message.clone());
    }
    if !enforced.pending.is_empty() {
        return Finding::new(ConditionType::Sharing, false, Reason::QuotasPending, pending(enforced));
    }
    if !tenant.taken.is_empty() {
        let each = |(namespace, owner): (&String, &String)| {
            format!("namespace {namespace} belongs to tenant {owner}")
        };
        let taken: Vec<String> = tenant.taken.iter().map(each).collect();
        let message = format!(
            "{}: take it out of spec.incoming.namespaces of one of the two ForeignClusters",
            taken.join(", ")
        );
        return Finding::new(ConditionType::Sharing, false, Reason::NamespaceTaken, message);
    }
    let namespaces: Vec<&str> = enforced.namespaces.keys().map(String::as_str).collect();
    let message = format!("{} in {}", words(offered), namespaces.join(", "));
    Finding::new(ConditionType::Sharing, true, Reason::QuotasEnforced, message)
}

fn pending(enforced: &Enforced) -> String {
    let namespaces = enforced.pending.join(", ");
    format!("the ResourceQuota portolan is not in force yet in namespaces {namespaces}")
}

/// What enforces an offer cannot be written. Why the offer itself is not as asked for goes before that.
pub(super) fn failed(tenant: &Tenant, why: &str) -> Finding {
    if let Err(problem) = &tenant.terms {
        let message = format!("{}; {why}", problem.message);
        return Finding::new(ConditionType::Sharing, false, problem.reason, message);
    }
    Finding::new(ConditionType::Sharing, false, Reason::QuotasPending, why.to_owned())
}

/// There is no namespace for the offer.
pub(super) fn no_tenant(tenant: &Tenant) -> Finding {
    let message = format!(
        "namespace {} does not exist or is being deleted, so that there is nowhere to put the offer: peer the clusters again \
         by `portolan invite`",
        tenant.home
    );
    Finding::new(ConditionType::Sharing, false, Reason::TenantNotFound, message)
}

/// Whom a class holds for.
pub(super) fn class(class: &SharingClass, classes: &[Arc<SharingClass>], tenants: &[Tenant]) -> Finding {
    let own = class.metadata.name.as_deref().unwrap_or_default();
    let default = default_class(classes).and_then(|class| class.metadata.name.as_deref());
    let is_of = |tenant: &&Tenant| {
        let incoming = tenant.cluster.spec.incoming.as_ref();
        match incoming.and_then(|incoming| incoming.sharing.as_ref()) {
            Some(sharing) => sharing.class_name.as_deref() == Some(own),
            None => default == Some(own),
        }
    };
    let clusters = tenants.iter().filter(is_of).count();
    let shadowed = match default {
        Some(other) if class.spec.default && other != own => {
            format!("; the default is SharingClass {other}, which was created later")
        }
        _ => String::new(),
    };
    let message = format!("it holds for {clusters} clusters{shadowed}");
    Finding::new(ConditionType::Ready, true, Reason::InForce, message)
}

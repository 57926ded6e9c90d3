//! What there is in clusters, and what is left of peerings.

use super::stage::Stage;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::json;
use std::collections::BTreeSet;

/// The kinds of which nothing may be left: group, version, kind, plural.
const KINDS: [(&str, &str, &str, &str); 18] = [
    ("portolan.dev", "v1alpha1", "ForeignCluster", "foreignclusters"),
    ("portolan.dev", "v1alpha1", "ClusterReport", "clusterreports"),
    ("portolan.dev", "v1alpha1", "Invitation", "invitations"),
    ("portolan.dev", "v1alpha1", "ResourceOffer", "resourceoffers"),
    ("portolan.dev", "v1alpha1", "SharingClass", "sharingclasses"),
    ("portolan.dev", "v1alpha1", "MultiClusterDeployment", "multiclusterdeployments"),
    ("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile", "clusterprofiles"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    ("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests"),
    ("coordination.k8s.io", "v1", "Lease", "leases"),
    ("", "v1", "Namespace", "namespaces"),
    ("", "v1", "Secret", "secrets"),
    ("", "v1", "ServiceAccount", "serviceaccounts"),
    ("", "v1", "ResourceQuota", "resourcequotas"),
    ("", "v1", "LimitRange", "limitranges"),
];

/// The API of a kind of those above, as an administrator has it.
pub(super) fn objects(stage: &Stage, site: usize, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let known = KINDS.iter().find(|each| each.2 == kind);
    let (group, version, kind, plural) = known.expect("the kind is one of those above");
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(stage.admin(site), namespace, &resource),
        None => Api::all_with(stage.admin(site), &resource),
    }
}

/// All objects of a kind.
pub(super) async fn all_of(stage: &Stage, site: usize, kind: &str) -> Vec<DynamicObject> {
    let list = objects(stage, site, kind, None).list(&ListParams::default()).await;
    list.map(|list| list.items).unwrap_or_default()
}

/// All objects of these kinds: cluster, kind, namespace and name.
pub(super) async fn listed(stage: &Stage) -> BTreeSet<(String, String, String, String)> {
    let mut all = BTreeSet::new();
    for site in 0..stage.sites.len() {
        for kind in KINDS {
            for object in all_of(stage, site, kind.2).await {
                let meta = object.metadata;
                let (namespace, name) = (meta.namespace.unwrap_or_default(), meta.name.unwrap_or_default());
                all.insert((stage.name(site).to_owned(), kind.2.to_owned(), namespace, name));
            }
        }
    }
    all
}

/// What there is, and was not before.
pub(super) async fn left(stage: &Stage, before: &BTreeSet<(String, String, String, String)>) -> Vec<String> {
    let now = listed(stage).await;
    let left = now.difference(before);
    left.map(|(cluster, kind, namespace, name)| format!("{kind} {namespace}/{name} is left in {cluster}"))
        .collect()
}

/// The objects as they are, for whoever looks for the cause of a problem.
pub(super) async fn state(stage: &Stage) -> Vec<String> {
    let mut lines = Vec::new();
    for site in 0..stage.sites.len() {
        for kind in KINDS.into_iter().filter(|kind| !matches!(kind.2, "ClusterRole" | "Secret" | "Role")) {
            for mut object in all_of(stage, site, kind.2).await {
                object.metadata.managed_fields = None;
                lines.push(format!("state of {}: {}", stage.name(site), json!(object)));
            }
        }
    }
    lines
}

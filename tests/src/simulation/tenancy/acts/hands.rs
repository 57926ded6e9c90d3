//! Administrators delete and edit by hand what Portolan has made.

use super::{Story, all_of, objects};
use crate::NAMESPACE;
use crate::simulation::tally::Drawn;
use crate::simulation::tenancy::stage::EXTRA;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use portolan_control::peering::NAMESPACE as OWN;
use portolan_control::tenancy::TENANT_POLICY;
use rand::RngExt;
use serde_json::json;

pub(super) const ACTS: &[Drawn] = &[
    Drawn::InvitationDeleted,
    Drawn::AccountDeleted,
    Drawn::BootstrapDeleted,
    Drawn::KeyDeleted,
    Drawn::CredentialDeleted,
    Drawn::RequestDeleted,
    Drawn::LeaseDeleted,
    Drawn::HomeDeleted,
    Drawn::ConsumerDeleted,
    Drawn::ProviderDeleted,
    Drawn::BindingDeleted,
    Drawn::RoleDeleted,
    Drawn::FinalizersTaken,
    Drawn::TornOut,
    Drawn::NamespacesEdited,
    Drawn::QuotaDeleted,
    Drawn::RangeDeleted,
    Drawn::PolicyDeleted,
    Drawn::OfferDeleted,
];

const TENANT: &str = "portolan.dev/tenant";
const INVITATION: &str = "portolan.dev/invitation";

fn has_label(object: &DynamicObject, label: &str) -> bool {
    object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(label))
}

fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

impl Story {
    pub(super) async fn by_hand(&mut self, drawn: Drawn) -> bool {
        let invited = |object: &DynamicObject| has_label(object, INVITATION);
        let of_tenant = |object: &DynamicObject| has_label(object, TENANT);
        let portolans = |object: &DynamicObject| of_tenant(object) && name(object) == "portolan";
        // A consumer keeps its key in a Secret with data, a provider binds a token to one without.
        let is_key = |object: &DynamicObject| invited(object) && object.data["data"].is_object();
        match drawn {
            Drawn::InvitationDeleted => self.delete_one("Invitation", |_| true, true).await,
            Drawn::AccountDeleted => self.delete_one("ServiceAccount", invited, true).await,
            Drawn::BootstrapDeleted => {
                self.delete_one("Secret", |each| invited(each) && !is_key(each), true).await
            }
            Drawn::KeyDeleted => {
                if self.one_of("Secret", is_key).await.is_none() {
                    self.wait_for_acceptance().await;
                }
                self.delete_one("Secret", is_key, true).await
            }
            Drawn::CredentialDeleted => self.forget().await,
            Drawn::RequestDeleted => {
                if self.one_of("CertificateSigningRequest", |_| true).await.is_none() {
                    self.wait_for_acceptance().await;
                }
                self.delete_one("CertificateSigningRequest", |_| true, true).await
            }
            Drawn::LeaseDeleted => {
                let own = |each: &DynamicObject| of_tenant(each) && name(each) == "consumer";
                self.delete_one("Lease", own, true).await
            }
            Drawn::HomeDeleted => self.delete_one("Namespace", of_tenant, true).await,
            Drawn::ConsumerDeleted => self.delete_cluster("incoming", false).await,
            Drawn::ProviderDeleted => self.delete_cluster("outgoing", false).await,
            Drawn::TornOut => {
                let side = ["incoming", "outgoing"][self.rng.random_range(0..2)];
                self.delete_cluster(side, true).await
            }
            Drawn::BindingDeleted => {
                let kind = ["RoleBinding", "ClusterRoleBinding"][self.rng.random_range(0..2)];
                self.delete_one(kind, of_tenant, false).await
            }
            Drawn::RoleDeleted => self.delete_one("ClusterRole", of_tenant, false).await,
            Drawn::FinalizersTaken => self.take_finalizers().await,
            Drawn::NamespacesEdited => self.edit_namespaces().await,
            Drawn::QuotaDeleted => self.delete_one("ResourceQuota", portolans, false).await,
            Drawn::RangeDeleted => self.delete_one("LimitRange", portolans, false).await,
            Drawn::PolicyDeleted => self.delete_policy().await,
            _ => self.delete_one("ResourceOffer", |_| true, false).await,
        }
    }

    /// Deletes one of these objects. Peerings that begin may come to nothing by that.
    async fn delete_one(
        &mut self,
        kind: &str,
        wanted: impl Fn(&DynamicObject) -> bool,
        is_begun: bool,
    ) -> bool {
        let Some((site, object)) = self.one_of(kind, wanted).await else { return false };
        if is_begun {
            self.unsettle(site).await;
        }
        let api = objects(&self.stage, site, kind, object.metadata.namespace.as_deref());
        api.delete(name(&object), &Default::default()).await.is_ok()
    }

    /// The admission policy that bounds tenants is deleted in one cluster, or what puts it into force.
    async fn delete_policy(&mut self) -> bool {
        let first = self.site();
        let is_binding = self.rng.random_bool(0.5);
        let count = self.stage.sites.len();
        for site in (0..count).map(|each| (first + each) % count) {
            let admin = self.stage.admin(site);
            let deleted = if is_binding {
                let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(admin);
                bindings.delete(TENANT_POLICY, &Default::default()).await.is_ok()
            } else {
                let policies: Api<ValidatingAdmissionPolicy> = Api::all(admin);
                policies.delete(TENANT_POLICY, &Default::default()).await.is_ok()
            };
            if deleted {
                return true;
            }
        }
        false
    }

    /// Peerings of a cluster that are not established on both sides may come to nothing.
    async fn unsettle(&mut self, site: usize) {
        for cluster in all_of(&self.stage, site, "ForeignCluster").await {
            let conditions = cluster.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let established =
                conditions.iter().any(|each| each["type"] == "IncomingPeering" && each["status"] == "True");
            if let Some(other) = self.stands_for(&cluster).filter(|_| !established) {
                self.peered.remove(&(other, site));
            }
        }
        for other in 0..self.stage.sites.len() {
            self.doubt((other, site));
            self.doubt((site, other));
        }
    }

    /// The Secret with a certificate is deleted in the consumer.
    async fn forget(&mut self) -> bool {
        let held = |secret: &DynamicObject| {
            let annotations = secret.metadata.annotations.as_ref();
            annotations.is_some_and(|all| all.contains_key("portolan.dev/certificate-user"))
        };
        let Some((site, secret)) = self.one_of("Secret", held).await else { return false };
        let clusters = all_of(&self.stage, site, "ForeignCluster").await;
        let cluster = clusters.iter().find(|cluster| name(cluster) == name(&secret));
        for other in 0..self.stage.sites.len() {
            self.doubt((site, other));
        }
        if let Some(other) = cluster.and_then(|cluster| self.stands_for(cluster)) {
            self.peered.remove(&(site, other));
        }
        objects(&self.stage, site, "Secret", Some(OWN))
            .delete(name(&secret), &Default::default())
            .await
            .is_ok()
    }

    /// A ForeignCluster is deleted, or torn out: its finalizers are removed as well.
    async fn delete_cluster(&mut self, side: &str, torn: bool) -> bool {
        let is_one = |cluster: &DynamicObject| cluster.data["spec"][side].is_object();
        let Some((site, cluster)) = self.one_of("ForeignCluster", is_one).await else { return false };
        if let Some(other) = self.stands_for(&cluster) {
            self.end(site, other);
        }
        let api = objects(&self.stage, site, "ForeignCluster", None);
        let deleted = api.delete(name(&cluster), &Default::default()).await.is_ok();
        if torn {
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = api.patch(name(&cluster), &PatchParams::default(), &patch).await;
        }
        deleted
    }

    async fn take_finalizers(&mut self) -> bool {
        let Some((site, cluster)) = self.one_of("ForeignCluster", |_| true).await else { return false };
        let api = objects(&self.stage, site, "ForeignCluster", None);
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        api.patch(name(&cluster), &PatchParams::default(), &patch).await.is_ok()
    }

    /// Other namespaces are opened to a consumer that may place, or one more to any.
    async fn edit_namespaces(&mut self) -> bool {
        let is_tenant = |cluster: &DynamicObject| cluster.data["spec"]["incoming"]["user"].is_string();
        let Some((site, cluster)) = self.one_of("ForeignCluster", is_tenant).await else { return false };
        let namespaces = [json!([EXTRA]), json!([NAMESPACE]), json!([NAMESPACE, EXTRA])];
        let chosen = &namespaces[self.rng.random_range(0..namespaces.len())];
        let patch = Patch::Merge(json!({"spec": {"incoming": {"namespaces": chosen}}}));
        let api = objects(&self.stage, site, "ForeignCluster", None);
        api.patch(name(&cluster), &PatchParams::default(), &patch).await.is_ok()
    }
}

//! ForeignClusters as tenancy reads them.

use super::TenancyError;
use super::context::Provider;
use super::login::{BY_TOKEN, Login};
use crate::names::{TENANCY_FINALIZER, TENANT_LOGIN_ANNOTATION, TENANT_USER_ANNOTATION};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, CustomResourceExt};
use portolan_api::conditions::{self, ConditionStatus, ConditionType};
use portolan_api::{ForeignCluster, Reason};
use portolan_core::tenancy::{KnownCluster, Tenant};
use portolan_runtime::{CallError, call};
use serde_json::Value;
use std::marker::PhantomData;

/// A ForeignCluster, of which no more is read than tenancy needs: one that cannot be read as a whole, as another version has
/// written it, holds nothing else up.
#[derive(Clone, Debug)]
pub(super) struct Declared(DynamicObject);

impl Declared {
    pub(super) fn of(object: DynamicObject) -> Self {
        Self(object)
    }

    pub(super) fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    pub(super) fn name(&self) -> String {
        self.meta().name.clone().unwrap_or_default()
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    /// Whether it stays until the rights of a tenant are removed.
    pub(super) fn has_finalizer(&self) -> bool {
        self.meta().finalizers.iter().flatten().any(|each| each == TENANCY_FINALIZER)
    }

    pub(super) fn is_of_cluster(&self, id: &str) -> bool {
        self.spec("/clusterIdentity/clusterID") == id
    }

    /// The user that the other cluster is here, if it is one.
    pub(super) fn user(&self) -> Option<&str> {
        self.spec("/incoming/user").as_str()
    }

    /// What is known of it when a consumer names its identity.
    pub(super) fn known<'a>(&self, name: &'a str) -> KnownCluster<'a> {
        KnownCluster { name, has_tenant: self.user().is_some() }
    }

    /// The namespaces that are open to it.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let all = self.spec("/incoming/namespaces").as_array();
        all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Whether it sees nodes, and pods and workloads in all namespaces.
    pub(super) fn sees_cluster(&self) -> bool {
        self.spec("/incoming/seesCluster") == true
    }

    pub(super) fn tenant(&self) -> Option<Tenant> {
        self.user().and_then(Tenant::of_user)
    }

    /// The tenant whose rights are here, also if it is the tenant no more.
    pub(super) fn last_tenant(&self) -> Option<Tenant> {
        let annotations = self.meta().annotations.as_ref();
        let last = annotations.and_then(|all| all.get(TENANT_USER_ANNOTATION));
        self.tenant().or_else(|| Tenant::of_user(last?))
    }

    /// How its tenant signs in.
    pub(super) fn login(&self) -> Login {
        let noted = self.meta().annotations.as_ref().and_then(|all| all.get(TENANT_LOGIN_ANNOTATION));
        if noted.is_some_and(|noted| noted == BY_TOKEN) { Login::Token } else { Login::Certificate }
    }

    /// Whether it stands for a tenant and is not about to end.
    pub(super) fn stands_for(&self, user: &str) -> bool {
        self.user() == Some(user) && !self.is_leaving()
    }

    /// As ForeignClusters say it themselves.
    pub(super) fn is_member(&self) -> bool {
        let has = |pointer: &str| !self.spec(pointer).is_null();
        let consumes_only = !has("/credentials") && has("/incoming") && !has("/outgoing");
        let is_tenant_only = has("/outgoing") && self.spec("/outgoing/placement") != true;
        self.spec("/type") == "Local" || (!consumes_only && !is_tenant_only)
    }

    /// Whether it is more than a consumer: this cluster consumes from it too, or has a credential for it.
    pub(super) fn is_more_than_consumer(&self) -> bool {
        self.is_member() || self.consumes_from() || !self.spec("/credentials").is_null()
    }

    /// Whether this cluster consumes from it.
    pub(super) fn consumes_from(&self) -> bool {
        !self.spec("/outgoing").is_null()
    }

    /// What is said of the consumer.
    pub(super) fn incoming(&self) -> Option<Condition> {
        let conditions = self.conditions()?;
        conditions::find(&conditions, ConditionType::IncomingPeering).cloned()
    }

    /// Whether its consumer has ever said that it is there.
    pub(super) fn has_had_consumer(&self) -> bool {
        self.incoming().is_some_and(|found| {
            found.status == ConditionStatus::True.as_str() || found.reason == Reason::ConsumerNotSeen.as_str()
        })
    }

    /// Since when its consumer is awaited, which has never said that it is there.
    pub(super) fn awaited_since(&self) -> Option<Timestamp> {
        let found = self.incoming()?;
        (found.reason == Reason::AwaitingConsumer.as_str()).then_some(found.last_transition_time.0)
    }

    /// Its conditions; none if they cannot be read.
    pub(super) fn conditions(&self) -> Option<Vec<Condition>> {
        match self.0.data.pointer("/status/conditions") {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(conditions) => serde_json::from_value(conditions.clone()).ok(),
        }
    }

    /// What events are recorded about.
    pub(super) fn regarding(&self) -> PartialObjectMeta<ForeignCluster> {
        PartialObjectMeta { types: None, metadata: self.meta().clone(), _phantom: PhantomData }
    }

    pub(super) fn spec(&self, pointer: &str) -> &Value {
        self.0.data.get("spec").and_then(|spec| spec.pointer(pointer)).unwrap_or(&Value::Null)
    }
}

/// All ForeignClusters, read as little as that.
pub(super) fn declared(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ForeignCluster::api_resource())
}

/// What is declared now.
pub(super) async fn all_declared(client: &Client) -> Result<Vec<Declared>, CallError> {
    let all = call("list ForeignClusters", declared(client).list(&Default::default())).await?;
    Ok(all.items.into_iter().map(Declared).collect())
}

impl Provider {
    pub(super) async fn clusters(&self) -> Result<Vec<Declared>, TenancyError> {
        Ok(all_declared(&self.client).await?)
    }

    pub(super) async fn cluster(&self, name: &str) -> Result<Option<Declared>, CallError> {
        let found = call(format!("read ForeignCluster {name}"), declared(&self.client).get_opt(name)).await?;
        Ok(found.map(Declared))
    }

    /// The ForeignCluster that stands for a user.
    pub(super) async fn cluster_of(&self, user: &str) -> Result<Option<Declared>, TenancyError> {
        Ok(self.clusters().await?.into_iter().find(|cluster| cluster.stands_for(user)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_told_apart_as_the_type_tells_them() {
        let secret = json!({"secretRef": {"namespace": "portolan", "name": "x"}});
        let specs = [
            json!({}),
            json!({"type": "Local", "incoming": {}}),
            json!({"incoming": {"user": "x"}}),
            json!({"incoming": {}, "credentials": secret}),
            json!({"outgoing": {"tenantNamespace": "x"}, "credentials": secret}),
            json!({"outgoing": {"tenantNamespace": "x", "placement": true}, "incoming": {}, "credentials": secret}),
        ];
        for mut spec in specs {
            spec["clusterIdentity"] = json!({"clusterID": "x", "clusterName": "x"});
            let object = json!({
                "apiVersion": portolan_api::API_VERSION, "kind": "ForeignCluster", "metadata": {"name": "x"}, "spec": spec,
            });
            let typed: ForeignCluster = serde_json::from_value(object.clone()).unwrap();
            let read = Declared::of(serde_json::from_value(object).unwrap());
            assert_eq!(read.is_member(), typed.spec.is_member(), "{read:?}");
        }
    }

    #[test]
    fn one_that_another_version_has_written_is_read_as_far_as_needed() {
        let object = json!({
            "apiVersion": portolan_api::API_VERSION, "kind": "ForeignCluster", "metadata": {"name": "x"},
            "spec": {"type": "Teleported", "clusterIdentity": 7}, "status": {"conditions": "many"},
        });
        assert!(serde_json::from_value::<ForeignCluster>(object.clone()).is_err());
        let read = Declared::of(serde_json::from_value(object).unwrap());
        assert_eq!((read.name(), read.user(), read.is_leaving()), ("x".to_owned(), None, false));
        assert_eq!(read.conditions(), None, "what cannot be read is not overwritten");
    }
}

//! What has the name of a part of a tenant and is not its own: it is not taken over, and the tenant is not made.

use super::context::Provider;
use super::objects::{Whose, tenant as objects_of, whose};
use crate::peering::{api_of, called};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;
use portolan_core::tenancy::names::{self, Tenant};
use portolan_runtime::{CallError, call};
use serde_json::Value;

/// Why a tenant cannot be made.
pub(super) enum Obstacle {
    /// It ends by itself.
    Passing(String),
    /// Somebody has to do something.
    Lasting(String),
}

impl Provider {
    /// Whether the namespace of a tenant is its own, or can be made.
    pub(super) async fn home(&self, cluster: &str, tenant: &Tenant) -> Result<Option<Obstacle>, CallError> {
        let home = names::tenant_namespace(cluster);
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = call(format!("look for Namespace {home}"), namespaces.get_metadata_opt(&home)).await?;
        Ok(match found.map(|found| found.metadata) {
            Some(meta) if meta.deletion_timestamp.is_some() => Some(Obstacle::Passing(format!(
                "waits until Namespace {home} is gone, which is being deleted"
            ))),
            Some(meta) => in_the_way(&format!("Namespace {home}"), whose(&meta, cluster, tenant)),
            None => None,
        })
    }

    /// Whether anything that a tenant is made of exists and is not its own.
    pub(super) async fn obstacle(
        &self,
        cluster: &str,
        tenant: &Tenant,
        namespaces: &[String],
        sees_cluster: bool,
    ) -> Result<Option<Obstacle>, CallError> {
        if let Some(obstacle) = self.home(cluster, tenant).await? {
            return Ok(Some(obstacle));
        }
        for namespace in namespaces {
            if !self.exists(namespace).await? {
                return Ok(Some(Obstacle::Lasting(format!(
                    "namespace {namespace}, which the invitation opens, does not exist: create it, and make a new invitation"
                ))));
            }
        }
        let all = objects_of(cluster, tenant, namespaces, sees_cluster);
        for object in all.iter().filter(|each| each["kind"] != "Namespace") {
            let Some(meta) = self.named(object).await? else { continue };
            let owner = match whose(&meta, cluster, tenant) {
                // What an earlier tenant has left of its rights becomes this one's.
                Whose::Earlier => Whose::Its,
                owner => owner,
            };
            if let Some(obstacle) = in_the_way(&called(object), owner) {
                return Ok(Some(obstacle));
            }
        }
        Ok(None)
    }

    async fn exists(&self, namespace: &str) -> Result<bool, CallError> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found =
            call(format!("look for Namespace {namespace}"), namespaces.get_metadata_opt(namespace)).await?;
        Ok(found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()))
    }

    /// What there is by the name of an object.
    async fn named(&self, object: &Value) -> Result<Option<ObjectMeta>, CallError> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let what = format!("look for {}", called(object));
        let list = call(what, api_of(&self.client, object).list_metadata(&params)).await?;
        Ok(list.items.into_iter().next().map(|found| found.metadata))
    }
}

fn in_the_way(called: &str, whose: Whose) -> Option<Obstacle> {
    let why = match whose {
        Whose::Its => return None,
        Whose::Earlier => format!(
            "{called} is that of an earlier tenant, and may hold what belongs to it: delete it, or `portolan invite --name NAME` \
             gives the cluster another name"
        ),
        Whose::Foreign => format!(
            "{called} exists, and Portolan has not made it: `portolan invite --name NAME` gives the cluster another name, or \
             delete it if nobody needs it"
        ),
    };
    Some(Obstacle::Lasting(why))
}

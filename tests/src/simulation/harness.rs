//! A fleet of sandbox clusters with Portolan at work on it.

use super::Contender;
use crate::{foreign_cluster, open_namespace};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use portolan_api::MultiClusterDeployment;
use portolan_runtime::Seed;
use portolan_sandbox::{Behaviour, Cluster, ClusterConfig, NodeConfig, Pattern, Profile, Rule, World};
use serde_json::Value;
use std::time::Duration;

/// A hub and members in one world.
pub struct Fleet {
    /// The world.
    pub world: World,
    /// The hub.
    pub hub: Cluster,
    /// The members, by name.
    pub members: Vec<Cluster>,
}

impl Fleet {
    /// Makes the clusters, installs the definitions, and makes the members known to the hub.
    ///
    /// # Panics
    /// The sandbox refuses what every cluster accepts.
    pub async fn new(world: World, members: &[(&str, usize, NodeConfig)]) -> Self {
        let hub = world.add_cluster(ClusterConfig::named("hub"));
        let user = hub.client("user");
        for crd in portolan_api::crds() {
            apply(&user, &serde_json::to_value(crd).expect("a definition is JSON")).await;
        }
        apply(&user, &open_namespace()).await;
        let mut fleet = Self { world, hub, members: Vec::new() };
        for (name, nodes, node) in members {
            let config = ClusterConfig::named(*name).nodes(*nodes, node.clone()).profile(profile());
            let member = fleet.world.add_cluster(config);
            apply(&member.client("user"), &open_namespace()).await;
            apply(&user, &foreign_cluster(name)).await;
            fleet.members.push(member);
        }
        fleet
    }

    /// Runs the controllers for ever, without an election; crashed, they start anew a second later.
    pub async fn control(world: World, hub: Cluster, seed: Seed) {
        Contender::alone().run(world, hub, seed).await;
    }

    /// The workloads as users see them.
    ///
    /// # Panics
    /// The hub does not answer a user, to whom nothing goes wrong.
    pub async fn workloads(&self) -> Vec<MultiClusterDeployment> {
        let api: Api<MultiClusterDeployment> = Api::all(self.hub.client("user"));
        api.list(&Default::default()).await.expect("users are served").items
    }
}

/// Pods of images that are called broken never become ready.
fn profile() -> Profile {
    let never = Behaviour { readiness: Some(Duration::from_secs(1_000_000)), ..Behaviour::default() };
    let rule = Rule { image: Some(Pattern("broken:*".to_owned())), behaviour: never, ..Rule::default() };
    Profile { rules: vec![rule] }
}

/// Applies an object as a user does.
///
/// # Panics
/// The sandbox refuses it.
pub async fn apply(client: &Client, object: &Value) {
    let applied = try_apply(client, object).await;
    assert!(applied.is_ok(), "{} {} is refused: {applied:?}", object["kind"], object["metadata"]["name"]);
}

/// Applies an object as a user does, if it is taken.
///
/// # Errors
/// The cluster refuses it.
pub async fn try_apply(client: &Client, object: &Value) -> kube::Result<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply("user").force();
    api.patch(name, &params, &Patch::Apply(object)).await
}

//! Reads a fleet. Every request is a list.

use super::{Assumption, Unread};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Resource};
use portolan_api::{CloudProvisioner, ForeignCluster};
use portolan_control::names::{OPT_IN, OPT_IN_LABEL};
use portolan_runtime::{CallError, call, chain};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;

/// The kinds of objects that become objects of the scenario.
const KINDS: [&str; 5] = [
    "MultiClusterDeployment",
    "MultiClusterJob",
    "MultiClusterService",
    "MultiClusterHorizontalPodAutoscaler",
    "MultiClusterRescheduler",
];

/// What helps somebody who may not list the objects of the hub.
const HUB_RIGHTS: &str = "ask an administrator of the hub for the ClusterRoles portolan-developer and portolan-fleet-viewer, \
                          which `portolan crds --roles` prints";

/// What a hub says.
#[derive(Clone, Debug, Default)]
pub struct HubState {
    /// The members.
    pub clusters: Vec<ForeignCluster>,
    /// The CloudProvisioners.
    pub provisioners: Vec<CloudProvisioner>,
    /// The workloads, Services, autoscalers and reschedulers.
    pub objects: Vec<Value>,
    /// What may not be listed.
    pub assumptions: Vec<Assumption>,
}

/// What a member says.
#[derive(Clone, Debug)]
pub struct MemberState {
    /// Its nodes.
    pub nodes: Result<Vec<Node>, Unread>,
    /// Its pods, in all namespaces.
    pub pods: Result<Vec<Pod>, Unread>,
    /// The namespaces that are open to placement.
    pub namespaces: Result<Vec<String>, Unread>,
}

impl MemberState {
    /// A member that cannot be asked.
    #[must_use]
    pub fn unread(why: &Unread) -> Self {
        Self { nodes: Err(why.clone()), pods: Err(why.clone()), namespaces: Err(why.clone()) }
    }
}

/// Reads the objects of a hub.
///
/// # Errors
/// The members cannot be listed, or the hub does not answer. Other objects that the user may not list are named instead.
pub async fn read_hub(hub: &Client) -> Result<HubState, CallError> {
    let mut state = HubState { clusters: list(hub, "ForeignClusters").await?, ..HubState::default() };
    match list(hub, "CloudProvisioners").await {
        Ok(found) => state.provisioners = found,
        Err(error) => state.assumptions.extend(not_listed("CloudProvisioner", error)?),
    }
    for kind in KINDS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("portolan.dev", "v1alpha1", kind));
        let api: Api<DynamicObject> = Api::all_with(hub.clone(), &resource);
        match call(format!("list {kind}s"), api.list(&ListParams::default())).await {
            Ok(found) => state.objects.extend(found.items.into_iter().filter_map(|each| value(each, kind))),
            Err(error) => state.assumptions.extend(not_listed(kind, error)?),
        }
    }
    Ok(state)
}

/// Reads the nodes, pods and open namespaces of a member. What fails is part of the answer.
pub async fn read_member(client: &Client, name: &str) -> MemberState {
    let nodes = list(client, &format!("the nodes of {name}")).await;
    let pods = list(client, &format!("the pods of {name}")).await;
    let namespaces: Result<Vec<Namespace>, _> = list(client, &format!("the namespaces of {name}")).await;
    let open = |namespace: &Namespace| {
        let labels = namespace.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(OPT_IN_LABEL)).is_some_and(|value| value == OPT_IN)
    };
    let open = |all: Vec<Namespace>| {
        all.into_iter().filter(open).filter_map(|namespace| namespace.metadata.name).collect()
    };
    MemberState {
        nodes: nodes.map_err(|error| unread(name, &error)),
        pods: pods.map_err(|error| unread(name, &error)),
        namespaces: namespaces.map(open).map_err(|error| unread(name, &error)),
    }
}

async fn list<K>(client: &Client, what: &str) -> Result<Vec<K>, CallError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    Ok(call(format!("list {what}"), api.list(&ListParams::default())).await?.items)
}

fn value(mut object: DynamicObject, kind: &str) -> Option<Value> {
    object.metadata.managed_fields = None;
    let mut value = serde_json::to_value(object).ok()?;
    value["apiVersion"] = "portolan.dev/v1alpha1".into();
    value["kind"] = kind.into();
    Some(value)
}

/// A kind that the user may not list; one that the hub does not have has no objects.
fn not_listed(kind: &str, error: CallError) -> Result<Option<Assumption>, CallError> {
    match error.code() {
        Some(404) => Ok(None),
        Some(403) => {
            let assumed = if kind.ends_with("Deployment") || kind.ends_with("Job") {
                "none; their pods count as pods of others"
            } else {
                "none"
            };
            Ok(Some(Assumption::new(format!("{kind}s"), chain(&error), assumed).hint(Some(HUB_RIGHTS))))
        }
        _ => Err(error),
    }
}

fn unread(name: &str, error: &CallError) -> Unread {
    let unread = Unread::new(chain(error));
    match error.code() {
        Some(403) => unread.hint(format!(
            "give a context of {name} that may list nodes, pods and namespaces: --member-context {name}=CONTEXT"
        )),
        Some(401) => {
            unread.hint(format!("renew the credential of that context, or give --member-context {name}=CONTEXT"))
        }
        _ => unread.hint(format!("check by `kubectl get nodes` with the context of {name} that it answers")),
    }
}

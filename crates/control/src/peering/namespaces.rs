//! The namespaces of a member that peering made or opened, and how they are given back.

use super::applied::{is_applied, with_applied};
use super::apply::{PeerError, apply, apply_by};
use super::objects::{Names, open_namespace};
use super::peer::{NAMESPACE, Peer};
use crate::names::{FIELD_MANAGER, HUB_LABEL, OPT_IN, OPT_IN_LABEL, POD_SECURITY_LABEL, TENANT_LABEL};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::core::PartialObjectMeta;
use kube::discovery::{ApiResource, Discovery, Scope, verbs};
use kube::{Api, Client};
use portolan_runtime::{CallError, Term, call};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// On a namespace that was not there before: the hub whose peering made it.
const MADE_BY: &str = "portolan.dev/made-by";

/// What Kubernetes puts into every namespace, or keeps there by itself.
const COMES_BY_ITSELF: [(&str, &str); 2] = [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")];
const KEPT_BY_KUBERNETES: [&str; 4] = ["Event", "Endpoints", "EndpointSlice", "PodMetrics"];

/// What such an owner controls goes with it: a Pod of a ReplicaSet of a Deployment that was just deleted may still be there
/// for a moment. While the owner is there, it is found itself.
const OWNERS: [&str; 6] = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"];

/// The kinds that a hub places or carries.
const PLACED: [&str; 5] = ["Deployment", "Job", "Service", "ConfigMap", "Secret"];

/// How many objects of a kind are looked at, at a time.
const PAGE: u32 = 500;

/// What leaving a member came to, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// What was taken away.
    pub went: Vec<String>,
    /// What stays there although peering made or changed it, and why.
    pub stays: Vec<String>,
}

/// Applies a namespace of peering's. One that is not there yet is marked as made by it.
pub(super) async fn make(
    term: &Term,
    client: &Client,
    namespace: &Value,
    hub: &str,
    place: &str,
) -> Result<(), PeerError> {
    let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
    let there = found(client, name, place).await?;
    let maker = match &there {
        None => Some(hub.to_owned()),
        Some(found) => maker(found),
    };
    let mut namespace = namespace.clone();
    if let Some(found) = &there {
        // What pods may do in a namespace that is there is for its owner to say, also after peering has made it.
        if let Some(labels) = namespace["metadata"]["labels"].as_object_mut() {
            labels.remove(POD_SECURITY_LABEL);
        }
        namespace = with_applied(&namespace, &found.metadata);
    }
    if let Some(maker) = maker {
        namespace["metadata"]["annotations"][MADE_BY] = json!(maker);
    }
    apply_by(term, client, &namespace, place).await?;
    Ok(())
}

/// Opens a namespace to a tenant, and makes it if it does not exist. What its pods may do follows what is shared.
pub(crate) async fn open(client: &Client, namespace: &str, hub: &str, place: &str) -> Result<(), PeerError> {
    let mut namespace = open_namespace(namespace, &Peer::default());
    if let Some(labels) = namespace["metadata"]["labels"].as_object_mut() {
        labels.remove(POD_SECURITY_LABEL);
    }
    make(&Term::alone(FIELD_MANAGER), client, &namespace, hub, place).await
}

/// Applies a namespace unless it exists: the hub may be a member of another hub, whose peering made it.
pub(crate) async fn make_missing(
    term: &Term,
    client: &Client,
    namespace: &Value,
    place: &str,
) -> Result<(), PeerError> {
    let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
    if found(client, name, place).await?.is_none() {
        apply_by(term, client, namespace, place).await?;
    }
    Ok(())
}

/// The namespaces of a member that hubs have rights in.
pub(super) struct Opened {
    /// To this hub, Portolan's own among them.
    pub(super) to_us: BTreeSet<String>,
    /// To others.
    to_others: BTreeSet<String>,
}

/// Looks which namespaces of the hub itself peering made or opened: no binding tells that of a local peer, but whose the
/// label is does.
pub(super) async fn opened_locally(hub: &Client, names: &Names) -> Result<Opened, PeerError> {
    let others = opened(hub, names).await?.to_others;
    let api: Api<Namespace> = Api::all(hub.clone());
    let list = call("list Namespaces of the hub", api.list_metadata(&ListParams::default())).await?;
    let ours = list.items.into_iter().filter(|namespace| {
        maker(namespace).as_deref() == Some(names.hub())
            || is_applied(&namespace.metadata, "f:labels", OPT_IN_LABEL)
    });
    let to_us = ours.filter_map(|namespace| namespace.metadata.name).collect();
    Ok(Opened { to_us, to_others: others })
}

/// Looks which namespaces are bound to which hub, or to a tenant of the member, which is another hub.
pub(super) async fn opened(member: &Client, names: &Names) -> Result<Opened, PeerError> {
    let api: Api<RoleBinding> = Api::all(member.clone());
    let params = ListParams::default().labels(HUB_LABEL);
    let list = call("list RoleBindings of hubs in the member", api.list_metadata(&params)).await?;
    let (mut to_us, mut to_others) = (BTreeSet::from([NAMESPACE.to_owned()]), BTreeSet::new());
    for binding in list.items {
        let labels = binding.metadata.labels.unwrap_or_default();
        if labels.get(HUB_LABEL).is_some_and(|hub| hub != names.hub()) {
            to_others.extend(binding.metadata.namespace);
        } else if binding.metadata.name.as_ref() == Some(&names.placement) {
            to_us.extend(binding.metadata.namespace);
        }
    }
    let params = ListParams::default().labels(TENANT_LABEL);
    let list = call("list RoleBindings of tenants in the member", api.list_metadata(&params)).await?;
    to_others.extend(list.items.into_iter().filter_map(|binding| binding.metadata.namespace));
    Ok(Opened { to_us, to_others })
}

/// Whether some namespace of a member is open to the hub, or to itself if it is a member of its own fleet.
///
/// # Errors
/// The member does not answer, or does not let us look.
pub async fn has_open_namespace(member: &Client, hub: &str, local: bool) -> Result<bool, PeerError> {
    let names = Names::of(hub);
    let labelled = ListParams::default().labels(&format!("{OPT_IN_LABEL}={OPT_IN}"));
    let api: Api<Namespace> = Api::all(member.clone());
    let list = call("list the open Namespaces of the member", api.list_metadata(&labelled)).await?;
    let open: BTreeSet<String> = list.items.into_iter().filter_map(|each| each.metadata.name).collect();
    if local || open.is_empty() {
        return Ok(!open.is_empty());
    }
    let api: Api<ClusterRoleBinding> = Api::all(member.clone());
    let what = format!("look for ClusterRoleBinding {} in the member", names.placement);
    if call(what, api.get_metadata_opt(&names.placement)).await?.is_some() {
        return Ok(true);
    }
    Ok(!opened(member, &names).await?.to_us.is_disjoint(&open))
}

/// Takes away those of the namespaces that peering made, if nothing else is in them, and the labels that it gave to others.
pub(super) async fn give_back(
    member: &Client,
    names: &Names,
    opened: &Opened,
    which: impl Fn(&str) -> bool,
) -> Result<Departure, PeerError> {
    let mut came = Departure::default();
    let mut kinds = None;
    for name in opened.to_us.iter().filter(|name| which(name)) {
        let Some(namespace) = found(member, name, "the member").await? else { continue };
        if opened.to_others.contains(name) {
            came.stays.push(format!("Namespace {name}: another hub uses it"));
            continue;
        }
        let kinds = match &mut kinds {
            Some(kinds) => kinds,
            none => none.insert(namespaced_kinds(member).await?),
        };
        if let Some(held) = placed(member, name, kinds, names).await? {
            came.stays.push(format!("Namespace {name}: the hub's {held} is there, and goes on running"));
            continue;
        }
        let made = maker(&namespace).as_deref() == Some(names.hub());
        match if made { others_there(member, name, kinds, names).await? } else { None } {
            None if made => {
                let api: Api<Namespace> = Api::all(member.clone());
                let what = format!("delete Namespace {name} in the member");
                call(what, api.delete(name, &DeleteParams::default())).await?;
                came.went.push(format!("Namespace {name}"));
            }
            held => {
                close(member, &namespace, names, &mut came).await?;
                came.stays.extend(held.map(|held| format!("Namespace {name}: {held}")));
            }
        }
    }
    Ok(came)
}

/// Takes the label back that opens a namespace, unless somebody else has set it too.
async fn close(
    member: &Client,
    namespace: &PartialObjectMeta<Namespace>,
    names: &Names,
    came: &mut Departure,
) -> Result<(), PeerError> {
    let name = namespace.metadata.name.clone().unwrap_or_default();
    let is_open = |labels: Option<&std::collections::BTreeMap<String, String>>| {
        labels.is_some_and(|all| all.contains_key(OPT_IN_LABEL))
    };
    let was_open = is_open(namespace.metadata.labels.as_ref());
    let wanted = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let mut wanted = with_applied(&wanted, &namespace.metadata);
    if let Some(labels) = wanted.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(OPT_IN_LABEL);
    }
    if let Some(annotations) = wanted.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, maker| key != MADE_BY || *maker != names.hub());
    }
    let after = apply(member, &wanted, "the member").await?;
    match (was_open, is_open(after.metadata.labels.as_ref())) {
        (true, false) => came.went.push(format!("label {OPT_IN_LABEL} of Namespace {name}")),
        (true, true) => {
            came.stays.push(format!("label {OPT_IN_LABEL} of Namespace {name}: somebody else set it"));
        }
        (false, _) => {}
    }
    Ok(())
}

async fn found(
    client: &Client,
    name: &str,
    place: &str,
) -> Result<Option<PartialObjectMeta<Namespace>>, CallError> {
    let api: Api<Namespace> = Api::all(client.clone());
    call(format!("look for Namespace {name} in {place}"), api.get_metadata_opt(name)).await
}

fn maker(namespace: &PartialObjectMeta<Namespace>) -> Option<String> {
    namespace.metadata.annotations.as_ref()?.get(MADE_BY).cloned()
}

/// Every kind of object that a namespace can hold.
async fn namespaced_kinds(member: &Client) -> Result<Vec<ApiResource>, PeerError> {
    let discovery = Discovery::new(member.clone());
    let discovery = call("ask the member which kinds it has", discovery.run_aggregated()).await?;
    let all = discovery.groups().flat_map(|group| group.recommended_resources());
    let listed = all.filter(|(_, can)| can.scope == Scope::Namespaced && can.supports_operation(verbs::LIST));
    Ok(listed
        .map(|(kind, _)| kind)
        .filter(|kind| !KEPT_BY_KUBERNETES.contains(&kind.kind.as_str()))
        .collect())
}

/// Something that the hub placed in a namespace.
async fn placed(
    member: &Client,
    namespace: &str,
    kinds: &[ApiResource],
    names: &Names,
) -> Result<Option<String>, PeerError> {
    for kind in kinds.iter().filter(|kind| PLACED.contains(&kind.kind.as_str())) {
        if let Some(name) = list(member, namespace, kind, &names.selector()).await?.first() {
            return Ok(Some(format!("{} {name}", kind.kind)));
        }
    }
    Ok(None)
}

/// Something in a namespace that is not the hub's, or why that cannot be told.
async fn others_there(
    member: &Client,
    namespace: &str,
    kinds: &[ApiResource],
    names: &Names,
) -> Result<Option<String>, PeerError> {
    let not_ours = names.selector().replacen('=', "!=", 1);
    for kind in kinds {
        let there = match list(member, namespace, kind, &not_ours).await {
            Err(error) if error.code() == Some(403) => {
                return Ok(Some(format!("you may not see whether {} are in it", kind.plural)));
            }
            // It is listed as a kind and does not serve its list.
            Err(error) if matches!(error.code(), Some(404 | 405)) => continue,
            other => other?,
        };
        let by_itself = |name: &&String| COMES_BY_ITSELF.contains(&(kind.kind.as_str(), name.as_str()));
        if let Some(name) = there.iter().find(|name| !by_itself(name)) {
            return Ok(Some(format!("{} {name} is in it", kind.kind)));
        }
    }
    Ok(None)
}

async fn list(
    member: &Client,
    namespace: &str,
    kind: &ApiResource,
    selector: &str,
) -> Result<Vec<String>, CallError> {
    let api: Api<DynamicObject> = Api::namespaced_with(member.clone(), namespace, kind);
    let params = ListParams::default().labels(selector).limit(PAGE);
    let what = format!("list {} of namespace {namespace} in the member", kind.plural);
    let list = call(what, api.list_metadata(&params)).await?;
    let owned = |meta: &ObjectMeta| {
        let owners = meta.owner_references.iter().flatten();
        owners
            .filter(|owner| owner.controller == Some(true))
            .any(|owner| OWNERS.contains(&owner.kind.as_str()))
    };
    let own = list.items.into_iter().filter(|each| !owned(&each.metadata));
    Ok(own.filter_map(|each| each.metadata.name).collect())
}

//! Writes to declared objects in the hub, by compare-and-swap on the version that was read.

use crate::copies::Kind;
use crate::names::{FIELD_MANAGER, FINALIZER};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use portolan_runtime::{CallError, Key, Term};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;

/// Replaces the status of an object in the hub, by compare-and-swap on the version that the object carries.
///
/// Nothing means that the object has changed meanwhile, or is gone.
///
/// # Errors
/// The hub cannot be asked, or refuses the status.
pub(crate) async fn replace_status<K: Kind>(
    term: &Term,
    hub: &Client,
    object: &K,
    status: &impl Serialize,
) -> Result<Option<K>, CallError> {
    let api: Api<K> = Api::namespaced(hub.clone(), &Key::of(object).namespace);
    replace_status_by(term, &api, object, status).await
}

/// The same for an object of any scope, by an API for it.
pub(crate) async fn replace_status_by<K>(
    term: &Term,
    api: &Api<K>,
    object: &K,
    status: &impl Serialize,
) -> Result<Option<K>, CallError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let (key, metadata) = (Key::of(object), object.meta());
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let what = format!("write status of {} {key}", K::kind(&()));
    // Nothing but the status is written by this: to send the rest along would only cost both sides time.
    let body = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {
            "name": metadata.name, "namespace": metadata.namespace,
            "uid": metadata.uid, "resourceVersion": metadata.resource_version,
        },
        "status": status,
    });
    let write = api.replace_subresource("status", &key.name, &params, &body);
    match term.call(what, write).await {
        Ok(written) => Ok(Some(written)),
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts a finalizer on an object in the hub, or takes it off, by compare-and-swap.
///
/// # Errors
/// The hub cannot be asked, or the object has changed meanwhile: look again.
pub(crate) async fn set_finalizer_by<K>(
    term: &Term,
    api: &Api<K>,
    object: &K,
    finalizer: &str,
    is_on: bool,
) -> Result<(), CallError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let (key, metadata) = (Key::of(object), object.meta());
    let others = metadata.finalizers.iter().flatten().map(String::as_str).filter(|each| *each != finalizer);
    let finalizers: Vec<&str> = others.chain(is_on.then_some(finalizer)).collect();
    let patch =
        json!({ "metadata": { "resourceVersion": metadata.resource_version, "finalizers": finalizers } });
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("set finalizers of {} {key}", K::kind(&()));
    match term.call(what, api.patch(&key.name, &params, &Patch::Merge(patch))).await {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Whether our finalizer is on the object.
pub(crate) fn has_finalizer<K: Kind>(object: &K) -> bool {
    object.meta().finalizers.iter().flatten().any(|each| each == FINALIZER)
}

/// Adds our finalizer to the object.
pub(crate) async fn add_finalizer<K: Kind>(term: &Term, hub: &Client, object: &K) -> Result<(), CallError> {
    let api: Api<K> = Api::namespaced(hub.clone(), &Key::of(object).namespace);
    set_finalizer_by(term, &api, object, FINALIZER, true).await
}

/// Removes our finalizer from the object.
pub(crate) async fn remove_finalizer<K: Kind>(
    term: &Term,
    hub: &Client,
    object: &K,
) -> Result<(), CallError> {
    let api: Api<K> = Api::namespaced(hub.clone(), &Key::of(object).namespace);
    set_finalizer_by(term, &api, object, FINALIZER, false).await
}

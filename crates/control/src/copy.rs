//! Objects of the hub's making in members: marked, applied, taken away. The same for every kind.
//!
//! Each copy says whose it is (hub, workload), what was applied (a digest) and in which term (the leader's epoch).
//! What was seen of a copy is given with every change of it: the API server refuses the change if the copy is another
//! one by then. So a leader that was replaced and does not know it cannot undo what its successor did; see
//! placement for the whole argument.

use crate::fleet::Member;
use crate::names::{
    DIGEST_ANNOTATION, EPOCH_ANNOTATION, FIELD_MANAGER, HUB_LABEL, OWNER_ANNOTATION, WORKLOAD_LABEL,
};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource};
use portolan_api::template::PodTemplate;
use portolan_core::capacity::{PodShape, Shape, TemplateHash};
use portolan_runtime::{CallError, Key, Term, chain, foreign_text};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Debug;

/// What every namespaced kind is to the functions here.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned
{
}

/// Whose a copy is.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// The identity of the hub.
    pub hub: &'a str,
    /// The uid of the workload in the hub.
    pub workload: &'a str,
    /// The workload's namespace and name.
    pub owner: &'a Key,
    /// The epoch of the leader that applies it, if there is an election.
    pub epoch: Option<i64>,
}

/// A digest of what a value says.
pub fn digest(value: &Value) -> String {
    Sha256::digest(value.to_string())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Marks<'_> {
    /// Marks an object as ours, and answers the digest of what is applied. The epoch is no part of the digest: another
    /// leader applies the same.
    pub fn put_on(&self, object: &mut Value) -> String {
        insert(object, &["metadata", "labels"], WORKLOAD_LABEL, json!(self.workload));
        insert(object, &["metadata", "labels"], HUB_LABEL, json!(self.hub));
        insert(object, &["metadata", "annotations"], OWNER_ANNOTATION, json!(self.owner.to_string()));
        let digest = digest(object);
        insert(object, &["metadata", "annotations"], DIGEST_ANNOTATION, json!(digest));
        if let Some(epoch) = self.epoch {
            insert(object, &["metadata", "annotations"], EPOCH_ANNOTATION, json!(epoch.to_string()));
        }
        digest
    }
}

/// Lets pods of a template say which template made them, as far as room is concerned. Nothing else about pods tells that
/// once admission in a member has changed them.
pub(crate) fn insert_template_hash(template: &mut Value, written: &PodTemplate) {
    let typed = written.to_typed().ok();
    let shape = typed.and_then(|typed| PodShape::of_template(&typed).ok()).map(Shape::from);
    // A template that cannot be read makes no pods: it is refused before.
    if let Some(shape) = shape {
        let hash = json!(shape.template_hash().to_string());
        insert(template, &["metadata", "labels"], TemplateHash::LABEL, hash);
    }
}

/// A copy as it was seen: which object, and which state of it.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// Its version.
    pub version: &'a str,
}

/// What came of applying a copy.
#[derive(Debug)]
pub enum Put<K> {
    /// The member holds it.
    Applied(Box<K>),
    /// It was no longer as it was seen: look again.
    Outdated,
    /// An object of this name is there that is not ours: it stays as it is.
    Taken(String),
    /// The member refuses it, and will again.
    Refused(String),
}

/// A version that no object has. Applied with it, an object is made where there is none, and refused where there is one.
const NONE_HAS: &str = "1";

/// Applies a copy in a member, in place of the one that was seen there, if any was.
///
/// What is ours is set back, whoever changed it; what is not ours is not taken over.
///
/// # Errors
/// The member cannot be asked.
pub async fn put<K: Kind>(
    term: &Term,
    member: &Member,
    object: &Value,
    seen: Option<Sight<'_>>,
) -> Result<Put<K>, CallError> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let key = Key::new(text("namespace"), text("name"));
    let kind = K::kind(&());
    let api: Api<K> = Api::namespaced(member.client.clone(), &key.namespace);
    let mut object = object.clone();
    match seen {
        Some(seen) => {
            insert(&mut object, &["metadata"], "resourceVersion", json!(seen.version));
            insert(&mut object, &["metadata"], "uid", json!(seen.uid));
        }
        None => insert(&mut object, &["metadata"], "resourceVersion", json!(NONE_HAS)),
    }
    let params = PatchParams { force: seen.is_some(), ..PatchParams::apply(FIELD_MANAGER) };
    let what = format!("apply {kind} {key} in {}", member.name);
    let applied = member.gate.call(term, what, api.patch(&key.name, &params, &Patch::Apply(&object))).await;
    let error = match applied {
        Ok(applied) => return Ok(Put::Applied(Box::new(applied))),
        Err(error) if error.is_final() => return Ok(Put::Refused(told(&error, &key.namespace))),
        Err(error) if !error.is_conflict() => return Err(error),
        Err(_) if seen.is_some() => return Ok(Put::Outdated),
        Err(error) => error,
    };
    let look = format!("look for {kind} {key} in {}", member.name);
    match member.gate.ask(look, api.get_metadata_opt(&key.name)).await? {
        Some(found) if is_of(&found.metadata, &object) => Ok(Put::Outdated),
        Some(found) if lost_its_hub(&found.metadata, &object) => {
            label::<K>(term, member, &key, &found.metadata, &object).await?;
            Ok(Put::Outdated)
        }
        Some(_) => Ok(Put::Taken(format!(
            "{kind} {key} exists there already and is not ours: rename one of the two"
        ))),
        // It went meanwhile.
        None => Err(error),
    }
}

/// Whether an object has the marks of another, but for the label that says which hub placed it.
fn lost_its_hub(meta: &ObjectMeta, marked: &Value) -> bool {
    let label = |name: &str| meta.labels.as_ref().and_then(|labels| labels.get(name)).map(String::as_str);
    let owner = meta.annotations.as_ref().and_then(|all| all.get(OWNER_ANNOTATION)).map(String::as_str);
    label(HUB_LABEL).is_none()
        && label(WORKLOAD_LABEL).is_some()
        && label(WORKLOAD_LABEL) == marked["metadata"]["labels"][WORKLOAD_LABEL].as_str()
        && owner == marked["metadata"]["annotations"][OWNER_ANNOTATION].as_str()
}

/// Puts the labels back by which a copy of ours is known, and leaves it otherwise as it is: the watch shows it then.
async fn label<K: Kind>(
    term: &Term,
    member: &Member,
    key: &Key,
    found: &ObjectMeta,
    marked: &Value,
) -> Result<(), CallError> {
    let api: Api<K> = Api::namespaced(member.client.clone(), &key.namespace);
    let labels = &marked["metadata"]["labels"];
    let patch = json!({"metadata": {
        "uid": found.uid,
        "resourceVersion": found.resource_version,
        "labels": { HUB_LABEL: labels[HUB_LABEL], WORKLOAD_LABEL: labels[WORKLOAD_LABEL] },
    }});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("label {} {key} in {}", K::kind(&()), member.name);
    match member.gate.call(term, what, api.patch(&key.name, &params, &Patch::Merge(patch))).await {
        Err(error) if error.is_conflict() => Ok(()),
        other => unless_gone(other),
    }
}

/// Whether an object has the marks of another.
fn is_of(meta: &ObjectMeta, marked: &Value) -> bool {
    let has = |label: &str| {
        let found = meta.labels.as_ref().and_then(|labels| labels.get(label));
        found.map(String::as_str) == marked["metadata"]["labels"][label].as_str()
    };
    has(HUB_LABEL) && has(WORKLOAD_LABEL)
}

/// Writes the leader's epoch on a copy that is otherwise left as it is. One that has changed meanwhile is left alone: the
/// watch shows the change, and then it is stamped.
///
/// # Errors
/// The member cannot be asked.
pub async fn stamp<K: Kind>(
    term: &Term,
    member: &Member,
    key: &Key,
    seen: Sight<'_>,
) -> Result<(), CallError> {
    let Some(epoch) = term.epoch() else { return Ok(()) };
    let api: Api<K> = Api::namespaced(member.client.clone(), &key.namespace);
    let patch = json!({"metadata": {
        "uid": seen.uid,
        "resourceVersion": seen.version,
        "annotations": { EPOCH_ANNOTATION: epoch.to_string() },
    }});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("mark {} {key} in {}", K::kind(&()), member.name);
    match member.gate.call(term, what, api.patch(&key.name, &params, &Patch::Merge(patch))).await {
        Err(error) if error.is_conflict() => Ok(()),
        other => unless_gone(other),
    }
}

/// Deletes a copy, if it still is as it was seen; what it owns goes in the background.
///
/// # Errors
/// The member cannot be asked, or the copy was no longer as it was seen: look again. One that is gone is no error.
pub async fn take_away<K: Kind>(
    term: &Term,
    member: &Member,
    key: &Key,
    seen: Sight<'_>,
) -> Result<(), CallError> {
    let api: Api<K> = Api::namespaced(member.client.clone(), &key.namespace);
    let preconditions =
        Preconditions { uid: Some(seen.uid.to_owned()), resource_version: Some(seen.version.to_owned()) };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    let what = format!("delete {} {key} in {}", K::kind(&()), member.name);
    unless_gone(member.gate.call(term, what, api.delete(&key.name, &params)).await)
}

/// Replaces the status of an object in the hub, by compare-and-swap on the version that the object carries.
///
/// Nothing means that the object has changed meanwhile, or is gone.
///
/// # Errors
/// The hub cannot be asked, or refuses the status.
pub async fn replace_status<K: Kind>(
    term: &Term,
    hub: &Client,
    object: &K,
    status: &impl Serialize,
) -> Result<Option<K>, CallError> {
    let (key, metadata) = (Key::of(object), object.meta());
    let api: Api<K> = Api::namespaced(hub.clone(), &key.namespace);
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

/// Writes the finalizers of an object in the hub, by compare-and-swap.
///
/// # Errors
/// The hub cannot be asked, or the object has changed meanwhile: look again.
pub async fn set_finalizers<K: Kind>(
    term: &Term,
    hub: &Client,
    object: &K,
    finalizers: &[String],
) -> Result<(), CallError> {
    let key = Key::of(object);
    let api: Api<K> = Api::namespaced(hub.clone(), &key.namespace);
    let version = &object.meta().resource_version;
    let patch = json!({ "metadata": { "resourceVersion": version, "finalizers": finalizers } });
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("set finalizers of {} {key}", K::kind(&()));
    unless_gone(term.call(what, api.patch(&key.name, &params, &Patch::Merge(patch))).await)
}

/// Why a member refuses, and what would help.
pub(crate) fn told(error: &CallError, namespace: &str) -> String {
    // The member's own words are in it.
    let why = foreign_text(&chain(error));
    match error.code() {
        Some(403) => format!("{why}; `portolan peer --namespace {namespace}` opens it to the hub"),
        _ => why,
    }
}

fn unless_gone<T>(result: Result<T, CallError>) -> Result<(), CallError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Sets a field of a nested object, making the objects on the way.
pub(crate) fn insert(object: &mut Value, path: &[&str], field: &str, value: Value) {
    let mut at = object;
    for step in path {
        become_object(at);
        at = &mut at[*step];
    }
    become_object(at);
    at[field] = value;
}

fn become_object(value: &mut Value) {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
}

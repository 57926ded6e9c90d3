//! Objects of the hub in members: applied, annotated, deleted. The same for every kind.
//!
//! Each copy says whose it is (hub, workload), what was applied (a digest) and in which term (the leader's epoch).
//! What was seen of a copy is given with every change of it: the API server refuses the change if the copy is another
//! one by then. So a leader that was replaced and does not know it cannot undo what its successor did; see
//! the driver for the whole argument.

use super::ownership::insert;
use crate::fleet::Member;
use crate::names::{
    DIGEST_ANNOTATION, EPOCH_ANNOTATION, FIELD_MANAGER, HUB_LABEL, OWNER_ANNOTATION, WORKLOAD_LABEL,
};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use portolan_runtime::{CallError, Key, Term, chain, foreign_text};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
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

/// A copy as it was seen: which object, and which state of it.
#[derive(Clone, Copy, Debug)]
pub struct ObjectVersion<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// Its version.
    pub version: &'a str,
}

/// What came of applying a copy.
#[derive(Debug)]
pub(crate) enum ApplyResult<K> {
    /// The member holds it.
    Applied(Box<K>),
    /// It was no longer as it was seen: look again.
    Conflict,
    /// An object of this name is there that is not ours: it stays as it is.
    NotOwned(String),
    /// The member refuses it, and will again.
    Refused(String),
}

/// Whether something is to come of applying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApplyMode {
    /// The member is to hold it.
    ForReal,
    /// The member only says what would come of it.
    DryRun,
}

/// A version that no object has. Applied with it, an object is made where there is none, and refused where there is one.
const CREATE_ONLY_RESOURCE_VERSION: &str = "1";

/// Applies a copy in a member, in place of the one that was seen there, if any was.
///
/// What is ours is set back, whoever changed it; what is not ours is not taken over.
///
/// # Errors
/// The member cannot be asked.
pub(crate) async fn apply_if_unchanged<K: Kind>(
    term: &Term,
    member: &Member,
    object: &Value,
    seen: Option<ObjectVersion<'_>>,
    mode: ApplyMode,
) -> Result<ApplyResult<K>, CallError> {
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
        None => insert(&mut object, &["metadata"], "resourceVersion", json!(CREATE_ONLY_RESOURCE_VERSION)),
    }
    let dry_run = mode == ApplyMode::DryRun;
    let params = PatchParams { force: seen.is_some(), dry_run, ..PatchParams::apply(FIELD_MANAGER) };
    let what = format!("{} {kind} {key} in {}", if dry_run { "try" } else { "apply" }, member.name);
    let applied = member.gate.call(term, what, api.patch(&key.name, &params, &Patch::Apply(&object))).await;
    let error = match applied {
        Ok(applied) => return Ok(ApplyResult::Applied(Box::new(applied))),
        Err(error) if error.is_final() => {
            return Ok(ApplyResult::Refused(refusal_message(&error, &key.namespace)));
        }
        Err(error) if !error.is_conflict() => return Err(error),
        Err(_) if seen.is_some() => return Ok(ApplyResult::Conflict),
        Err(error) => error,
    };
    let look = format!("look for {kind} {key} in {}", member.name);
    let resource = ApiResource::erase::<K>(&());
    let any: Api<DynamicObject> = Api::namespaced_with(member.client.clone(), &key.namespace, &resource);
    match member.gate.ask(look, any.get_opt(&key.name)).await? {
        Some(found) if is_of(&found.metadata, &object) => Ok(ApplyResult::Conflict),
        Some(found) if lost_its_hub(&found.metadata, &object) || is_stripped(&found, &object) => {
            if dry_run {
                return Ok(ApplyResult::Conflict);
            }
            let label = |name: &str| object["metadata"]["labels"][name].as_str().unwrap_or_default();
            let (hub, workload) = (label(HUB_LABEL), label(WORKLOAD_LABEL));
            restore_ownership::<K>(term, member, &key, &found.metadata, hub, workload).await?;
            Ok(ApplyResult::Conflict)
        }
        Some(found) => {
            let help = match found.labels().get(HUB_LABEL) {
                Some(hub) if kind == "Deployment" => {
                    format!("the hub {} placed it; `portolan adopt` takes it over", foreign_text(hub))
                }
                None if kind == "Deployment" => {
                    "rename one of the two, or take it over by `portolan adopt`".to_owned()
                }
                _ => "rename one of the two".to_owned(),
            };
            Ok(ApplyResult::NotOwned(format!("{kind} {key} exists there already and is not ours: {help}")))
        }
        // It went meanwhile.
        None => Err(error),
    }
}

/// Whether an object has the marks of another, but for the label that says which hub placed it. One that lost both labels is
/// known by the digest of what was applied, which they are part of.
fn lost_its_hub(meta: &ObjectMeta, marked: &Value) -> bool {
    let label = |name: &str| meta.labels.as_ref().and_then(|labels| labels.get(name)).map(String::as_str);
    let annotation = |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name)).map(String::as_str);
    let same = |name: &str| {
        annotation(name).is_some() && annotation(name) == marked["metadata"]["annotations"][name].as_str()
    };
    let workload = match label(WORKLOAD_LABEL) {
        Some(workload) => marked["metadata"]["labels"][WORKLOAD_LABEL].as_str() == Some(workload),
        None => same(DIGEST_ANNOTATION),
    };
    label(HUB_LABEL).is_none() && workload && same(OWNER_ANNOTATION)
}

/// Whether an object has lost all marks of another, and its pods still carry the label of the workload that the other belongs
/// to: somebody wrote it without labels and annotations.
fn is_stripped(found: &DynamicObject, marked: &Value) -> bool {
    let none = |name: &str| !found.labels().contains_key(name);
    let of_pods =
        found.data.pointer("/spec/template/metadata/labels").and_then(|labels| labels.get(WORKLOAD_LABEL));
    let ours = &marked["metadata"]["labels"][WORKLOAD_LABEL];
    none(HUB_LABEL) && none(WORKLOAD_LABEL) && ours.is_string() && of_pods == Some(ours)
}

/// Puts the labels back by which a copy of ours is known, and leaves it otherwise as it is: the watch shows it then.
///
/// # Errors
/// The member cannot be asked. A copy that has changed meanwhile or is gone is no error.
pub(crate) async fn restore_ownership<K: Kind>(
    term: &Term,
    member: &Member,
    key: &Key,
    found: &ObjectMeta,
    hub: &str,
    workload: &str,
) -> Result<(), CallError> {
    let api: Api<K> = Api::namespaced(member.client.clone(), &key.namespace);
    let patch = json!({"metadata": {
        "uid": found.uid,
        "resourceVersion": found.resource_version,
        "labels": { HUB_LABEL: hub, WORKLOAD_LABEL: workload },
        "annotations": { OWNER_ANNOTATION: key.to_string() },
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
/// watch shows the change, and then it is annotated.
///
/// # Errors
/// The member cannot be asked.
pub(super) async fn annotate_epoch<K: Kind>(
    term: &Term,
    member: &Member,
    key: &Key,
    seen: ObjectVersion<'_>,
) -> Result<(), CallError> {
    if term.epoch().is_none() {
        return Ok(());
    }
    patch_if_unchanged::<K>(term, member, key, seen, "annotate", json!({})).await
}

/// Merges something into a copy, and the leader's epoch. One that has changed meanwhile is left alone, as above.
///
/// # Errors
/// The member cannot be asked, or refuses it.
pub(super) async fn patch_if_unchanged<K: Kind>(
    term: &Term,
    member: &Member,
    key: &Key,
    seen: ObjectVersion<'_>,
    what: &str,
    mut patch: Value,
) -> Result<(), CallError> {
    let what = format!("{what} {} {key} in {}", K::kind(&()), member.name);
    let api: Api<K> = Api::namespaced(member.client.clone(), &key.namespace);
    insert(&mut patch, &["metadata"], "uid", json!(seen.uid));
    insert(&mut patch, &["metadata"], "resourceVersion", json!(seen.version));
    if let Some(epoch) = term.epoch() {
        insert(&mut patch, &["metadata", "annotations"], EPOCH_ANNOTATION, json!(epoch.to_string()));
    }
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    match member.gate.call(term, what, api.patch(&key.name, &params, &Patch::Merge(patch))).await {
        Err(error) if error.is_conflict() => Ok(()),
        other => unless_gone(other),
    }
}

/// Deletes a copy, if it still is as it was seen; what it owns goes in the background.
///
/// # Errors
/// The member cannot be asked, or the copy was no longer as it was seen: look again. One that is gone is no error.
pub(crate) async fn delete_if_unchanged<K: Kind>(
    term: &Term,
    member: &Member,
    key: &Key,
    seen: ObjectVersion<'_>,
) -> Result<(), CallError> {
    let api: Api<K> = Api::namespaced(member.client.clone(), &key.namespace);
    let preconditions =
        Preconditions { uid: Some(seen.uid.to_owned()), resource_version: Some(seen.version.to_owned()) };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    let what = format!("delete {} {key} in {}", K::kind(&()), member.name);
    unless_gone(member.gate.call(term, what, api.delete(&key.name, &params)).await)
}

/// Why a member refuses, and what would help.
pub(crate) fn refusal_message(error: &CallError, namespace: &str) -> String {
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

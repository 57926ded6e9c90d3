//! Manifests as the hub would keep them: merged with what is there, with defaults, and checked by a dry run.

use super::Unanswered;
use super::merge::{Way, way};
use crate::driver::Problem;
use crate::names::FIELD_MANAGER;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::discovery::ApiResource;
use kube::{Api, Client, CustomResourceExt, Resource};
use portolan_api::Reason;
use portolan_api::placementreview::{ReviewError, ReviewedKind};
use portolan_api::{MultiClusterDeployment, MultiClusterJob, MultiClusterService, unknown_fields};
use portolan_runtime::{CallError, Key, call, chain, foreign_text};
use serde_json::{Value, json};

/// A manifest after the hub has looked at it.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    pub(super) kind: ReviewedKind,
    pub(super) key: Key,
    /// The object as it is now, if it is there.
    pub(super) live: Option<Value>,
    /// The object as it would be, or why it would be refused.
    pub(super) object: Result<Value, Vec<ReviewError>>,
    /// How a manifest was combined with what is there, where that is not plain.
    pub(super) note: Option<String>,
}

/// Checks a manifest in the hub. Only objects of the review's own namespace are looked at.
///
/// # Errors
/// The hub cannot be asked.
pub(super) async fn check(hub: &Client, namespace: &str, manifest: &Value) -> Result<Checked, CallError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&manifest["kind"]), text(&manifest["metadata"]["name"]));
    let refused = |kind: ReviewedKind, errors: Vec<ReviewError>| Checked {
        kind,
        key: Key::new(namespace, &name),
        live: None,
        object: Err(errors),
        note: None,
    };
    let Some(kind) = ReviewedKind::of(&kind) else {
        let known = ReviewedKind::ALL.map(ReviewedKind::as_str).join(", ");
        let message = format!("kind {:?} cannot be planned: {known} can", foreign_text(&kind));
        return Ok(refused(ReviewedKind::default(), vec![error(Reason::UnknownKind, message)]));
    };
    let (definition, resource) = of(kind);
    if manifest["apiVersion"] != portolan_api::API_VERSION {
        let message = format!("apiVersion must be {}", portolan_api::API_VERSION);
        return Ok(refused(kind, vec![error(Reason::UnknownKind, message)]));
    }
    if name.is_empty() {
        return Ok(refused(kind, vec![error(Reason::Invalid, "metadata.name is missing".to_owned())]));
    }
    if manifest["metadata"]["namespace"].as_str().is_some_and(|given| given != namespace) {
        let message = format!("it is of another namespace than the review, which is of {namespace}");
        return Ok(refused(kind, vec![error(Reason::NamespaceMismatch, message)]));
    }
    let unknown = unknown_fields(&definition, manifest);
    if !unknown.is_empty() {
        let errors =
            unknown.iter().take(10).map(|each| error(Reason::UnknownField, foreign_text(&each.to_string())));
        return Ok(refused(kind, errors.collect()));
    }
    let mut manifest = manifest.clone();
    manifest["metadata"]["namespace"] = json!(namespace);
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.remove("status");
    }
    let api: Api<DynamicObject> = Api::namespaced_with(hub.clone(), namespace, &resource);
    let what = format!("look for {} {namespace}/{name}", kind.as_str());
    let live = call(what, api.get_opt(&name)).await?.map(|live| as_value(&live));
    let (object, note) = apply(&api, kind, &name, &manifest, live.as_ref()).await?;
    Ok(Checked { kind, key: Key::new(namespace, &name), live, object, note })
}

type Applied = (Result<Value, Vec<ReviewError>>, Option<String>);

async fn apply(
    api: &Api<DynamicObject>,
    kind: ReviewedKind,
    name: &str,
    manifest: &Value,
    live: Option<&Value>,
) -> Result<Applied, CallError> {
    let what = format!("check {} {name}", kind.as_str());
    let manager = format!("{FIELD_MANAGER}-plan");
    let params = PostParams { dry_run: true, field_manager: Some(manager) };
    let read = |value: &Value| serde_json::from_value::<DynamicObject>(value.clone());
    let mut note = None;
    let answer = match live.map(|live| way(live, manifest)) {
        None => match read(manifest) {
            Ok(object) => call(what, api.create(&params, &object)).await,
            Err(problem) => return Ok((Err(vec![error(Reason::Invalid, problem.to_string())]), None)),
        },
        Some(Way::ServerSide(manager)) => {
            let params = PatchParams { dry_run: true, ..PatchParams::apply(&manager).force() };
            note = Some(format!("it is applied from the server's side by {}", foreign_text(&manager)));
            call(what, api.patch(name, &params, &Patch::Apply(manifest))).await
        }
        Some(Way::Merged(object) | Way::Replaced(object)) => match read(&object) {
            Ok(object) => call(what, api.replace(name, &params, &object)).await,
            Err(problem) => return Ok((Err(vec![error(Reason::Invalid, problem.to_string())]), None)),
        },
    };
    match answer {
        Ok(object) => Ok((Ok(as_value(&object)), note)),
        Err(problem) => match problem.code() {
            Some(400 | 422) => Ok((Err(vec![error(Reason::Invalid, said(&problem))]), note)),
            _ if said(&problem).contains("failed to create typed patch object") => {
                Ok((Err(vec![error(Reason::Invalid, said(&problem))]), note))
            }
            Some(403) => Ok((Err(vec![error(Reason::Forbidden, said(&problem))]), note)),
            _ => Err(problem),
        },
    }
}

/// What the hub says, without what was tried.
fn said(error: &CallError) -> String {
    match error {
        CallError::Refused { source, .. } => match source.as_ref() {
            kube::Error::Api(status) => foreign_text(&status.message),
            _ => foreign_text(&chain(error)),
        },
        _ => foreign_text(&chain(error)),
    }
}

fn of(kind: ReviewedKind) -> (CustomResourceDefinition, ApiResource) {
    fn both<K: CustomResourceExt + Resource<DynamicType = ()>>() -> (CustomResourceDefinition, ApiResource) {
        (K::crd(), ApiResource::erase::<K>(&()))
    }
    match kind {
        ReviewedKind::MultiClusterDeployment => both::<MultiClusterDeployment>(),
        ReviewedKind::MultiClusterJob => both::<MultiClusterJob>(),
        ReviewedKind::MultiClusterService => both::<MultiClusterService>(),
    }
}

fn as_value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

pub(super) fn error(reason: Reason, message: String) -> ReviewError {
    ReviewError { cluster: None, reason: reason.into(), message }
}

/// What is told when nothing could be decided.
pub(super) fn undecided(problem: &Problem) -> Result<ReviewError, Unanswered> {
    match problem {
        Problem::NotKnown => Err(Unanswered::NotYet),
        Problem::Undecided(reason, message) => Ok(error(*reason, message.clone())),
    }
}

//! Patch: JSON, merge, strategic merge, and server-side apply.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::update::Part;
use super::{convert, metadata};
use crate::api::{Answer, Api, UnknownFields, Writer};
use crate::auth::Attributes;
use crate::error::{ApiError, Cause};
use crate::merge::{self, ApplyError, Manager, Operation};
use crate::registry::Resource;
use crate::store::Stored;

/// A patch as it was sent.
#[derive(Clone, Debug)]
pub(crate) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
    Apply { config: Value, force: bool },
}

/// Where a patch goes.
pub(crate) struct PatchRequest<'a> {
    pub(crate) row: &'a Arc<Resource>,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) part: Part,
    pub(crate) patch: Patch,
}

impl Api {
    /// Patches an object and answers it; true if it was created.
    pub(crate) fn patch(
        &mut self,
        request: PatchRequest<'_>,
        writer: &Writer,
    ) -> Result<(Answer, bool), ApiError> {
        let PatchRequest { row, namespace, name, part, patch } = request;
        let live = self.live(row, if row.namespaced { namespace } else { "" }, name);
        if let Patch::Apply { config, force } = patch {
            let target = ApplyTarget { row, namespace, name, part, force };
            return self.apply(target, live, config, writer);
        }
        let live = live?;
        let old = convert::shown(row, &live);
        let mut new = match patch {
            Patch::Json(patch) => {
                let mut new = Value::clone(&old);
                json_patch(&mut new, &patch)?;
                new
            }
            Patch::Merge(patch) => {
                let mut new = Value::clone(&old);
                merge_patch(&mut new, &patch);
                new
            }
            Patch::Strategic(patch) if !row.custom => merge::strategic_merge(&old, &patch, &row.node)
                .map_err(|error| ApiError::plain(500, error.to_string()))?,
            Patch::Strategic(_) => {
                let known = [
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    "application/apply-patch+yaml",
                ];
                return Err(ApiError::unsupported_media_type(
                    "application/strategic-merge-patch+json",
                    &known,
                ));
            }
            Patch::Apply { .. } => Value::clone(&old),
        };
        metadata::check_body(row, namespace, &mut new)?;
        let given = metadata::text(&new, "name");
        if given != name {
            let message =
                format!("the name of the object ({given}) does not match the name on the URL ({name})");
            return Err(ApiError::bad_request(message));
        }
        let uid = metadata::text(&new, "uid");
        if !uid.is_empty() && uid != metadata::text(&old, "uid") {
            let cause = Cause::invalid("metadata.uid", &json!(uid), "field is immutable");
            return Err(ApiError::invalid(&row.group, &row.kind, name, &[cause.clone(), cause]));
        }
        Ok((self.write(row, &live, part, new, writer, true)?, false))
    }

    fn apply(
        &mut self,
        target: ApplyTarget<'_>,
        live: Result<Arc<Stored>, ApiError>,
        mut config: Value,
        writer: &Writer,
    ) -> Result<(Answer, bool), ApiError> {
        let ApplyTarget { row, namespace, name, part, force } = target;
        check_configuration(row, &config)?;
        metadata::check_body(row, namespace, &mut config)?;
        if config
            .pointer("/metadata/managedFields")
            .is_some_and(|managed| managed.as_array().is_none_or(|m| !m.is_empty()))
        {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        match metadata::text(&config, "name") {
            "" => config["metadata"]["name"] = json!(name),
            given if given == name => {}
            given => {
                let message =
                    format!("the name of the object ({given}) does not match the name on the URL ({name})");
                return Err(ApiError::bad_request(message));
            }
        }
        let strict = Writer { unknown_fields: UnknownFields::Refuse, ..writer.clone() };
        if let Err(error) = self.drop_unknown(row, &mut config.clone(), &strict) {
            return Err(undeclared(row, name, &error));
        }
        merge::check_items(&config, &row.node).map_err(|error| untyped(row, name, &error.to_string()))?;
        let manager = Manager {
            name: writer.manager.clone(),
            operation: Operation::Apply,
            subresource: part.subresource().to_owned(),
            api_version: row.api_version(),
        };
        let old = live.as_ref().ok().map(|live| convert::shown(row, live));
        let request = merge::Apply {
            live: old.as_deref(),
            config: &config,
            node: &row.node,
            manager,
            force,
            time: self.time(),
            reset: part.reset(row),
        };
        let merged = merge::apply(&request).map_err(|error| match error {
            ApplyError::Conflicts(owned) => {
                ApiError::apply_conflict(ApplyError::Conflicts(owned.clone()).to_string(), &owned)
            }
            ApplyError::Merge(error) => untyped(row, name, &error.to_string()),
        })?;
        match (live, old) {
            (Ok(live), Some(old)) => {
                let prepared = self.prepare(row, &live, old, part, merged, writer)?;
                Ok((self.store_change(prepared, writer)?, false))
            }
            (Err(missing), _) if part != Part::Main => Err(missing),
            _ => {
                // A version, other than a uid, does not keep an object from being made.
                if !metadata::text(&merged, "uid").is_empty() {
                    return Err(ApiError::modified(row.about(name)));
                }
                self.check_namespace(row, namespace, name)?;
                let mut object = merged;
                if crate::kinds::is_csr(row) {
                    crate::kinds::set_requester(&mut object, writer.user.as_deref());
                }
                self.fill_in(row, &mut object, writer)?;
                crate::kinds::prepare_create(self, row, &mut object, writer.dry_run)?;
                // Who may patch may not therefore create.
                if let Some(user) = &writer.user {
                    let wanted = Attributes {
                        verb: "create".to_owned(),
                        group: row.group.clone(),
                        resource: row.plural.clone(),
                        namespace: if row.namespaced { namespace.to_owned() } else { String::new() },
                        name: name.to_owned(),
                        ..Attributes::default()
                    };
                    self.authorise(user, &wanted)?;
                }
                Ok((self.insert(row, namespace, name, object, writer)?, true))
            }
        }
    }
}

/// An applied configuration says what it is, and what it is called.
fn check_configuration(row: &Resource, config: &Value) -> Result<(), ApiError> {
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    if config.is_object() && (text("apiVersion") != row.api_version() || text("kind") != row.kind) {
        let version = text("apiVersion");
        let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
        return Err(ApiError::bad_request(format!("invalid object type: {version}, Kind={}", text("kind"))));
    }
    if config.is_object() && metadata::text(config, "name").is_empty() {
        let message = "the name of the object (one based on URL) was undeterminable: name must be provided";
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}

/// An applied configuration names its fields, and so may name only those there are.
fn undeclared(row: &Resource, name: &str, error: &ApiError) -> ApiError {
    let fields = error.message.split("unknown field \"").skip(1).filter_map(|rest| rest.split('"').next());
    let listed: Vec<String> = fields.map(|path| format!(".{path}: field not declared in schema")).collect();
    untyped(row, name, &listed.join("\n"))
}

/// A configuration that is not one of the kind.
fn untyped(row: &Resource, name: &str, why: &str) -> ApiError {
    let (group, version, kind) = (&row.group, &row.version, &row.kind);
    let message =
        format!("failed to create typed patch object (/{name}; {group}/{version}, Kind={kind}): {why}");
    ApiError::plain(500, message)
}

struct ApplyTarget<'a> {
    row: &'a Arc<Resource>,
    namespace: &'a str,
    name: &'a str,
    part: Part,
    force: bool,
}

/// RFC 6902, but what is replaced need not be there.
fn json_patch(target: &mut Value, patch: &json_patch::Patch) -> Result<(), ApiError> {
    for operation in &patch.0 {
        let added = match operation {
            json_patch::PatchOperation::Replace(replace) if replace.path.resolve(target).is_err() => {
                Some(json_patch::PatchOperation::Add(json_patch::AddOperation {
                    path: replace.path.clone(),
                    value: replace.value.clone(),
                }))
            }
            _ => None,
        };
        json_patch::patch(target, std::slice::from_ref(added.as_ref().unwrap_or(operation)))
            .map_err(|_| ApiError::unprocessable())?;
    }
    Ok(())
}

/// RFC 7386.
fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge_patch(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

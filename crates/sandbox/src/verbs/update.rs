//! Update: the whole object, or its status.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{convert, metadata};
use crate::api::{Answer, Api, Writer};
use crate::error::{ApiError, Cause};
use crate::kinds;
use crate::merge::{Manager, Operation, track_update};
use crate::registry::Resource;
use crate::store::{ObjectKey, Stored, WriteError, at};

/// Which part of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
    /// The finalizers of a namespace's spec.
    Finalize,
    /// The conditions of a request for a certificate.
    Approval,
    /// The replicas.
    Scale,
}

impl Part {
    pub(super) fn subresource(self) -> &'static str {
        match self {
            Part::Main => "",
            Part::Status => "status",
            Part::Finalize => "finalize",
            Part::Approval => "approval",
            Part::Scale => "scale",
        }
    }

    /// Fields which an endpoint does not write, and so nobody comes to own through it.
    pub(super) fn reset(self, row: &Resource) -> &'static [&'static [&'static str]] {
        match self {
            Part::Main if kinds::is_csr(row) => &[&["spec"], &["status"]],
            Part::Status if kinds::is_csr(row) => &[&["spec"], &["status", "conditions"]],
            Part::Approval => &[&["spec"], &["status", "certificate"]],
            Part::Main | Part::Scale if row.status => &[&["status"]],
            Part::Main | Part::Scale => &[],
            Part::Status if row.custom => &[&["spec"], &["metadata"]],
            Part::Status | Part::Finalize => &[&["spec"]],
        }
    }
}

/// A write that has passed every check, or turned out to be none.
pub(super) struct Prepared<'a> {
    pub(super) row: &'a Arc<Resource>,
    pub(super) live: Arc<Stored>,
    pub(super) old: Arc<Value>,
    pub(super) new: Value,
}

impl Api {
    /// Replaces an object (or its status) and answers it.
    pub(crate) fn update(
        &mut self,
        row: &Arc<Resource>,
        namespace: &str,
        name: &str,
        part: Part,
        mut object: Value,
        writer: &Writer,
    ) -> Result<Answer, ApiError> {
        metadata::check_body(row, namespace, &mut object)?;
        let given = metadata::text(&object, "name");
        if given.is_empty() {
            object["metadata"]["name"] = json!(name);
        } else if given != name {
            let message =
                format!("the name of the object ({given}) does not match the name on the URL ({name})");
            return Err(ApiError::bad_request(message));
        }
        let live = self.live(row, if row.namespaced { namespace } else { "" }, name)?;
        if row.custom && metadata::text(&object, "resourceVersion").is_empty() {
            let cause =
                Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            // Here the resource is told, not the kind.
            return Err(ApiError::invalid(&row.group, &row.plural, name, &[cause]));
        }
        self.write(row, &live, part, object, writer, true)
    }

    /// Carries out a change of `live` to `object`: what an update, a patch and the sandbox itself do.
    pub(super) fn write(
        &mut self,
        row: &Arc<Resource>,
        live: &Arc<Stored>,
        part: Part,
        object: Value,
        writer: &Writer,
        track: bool,
    ) -> Result<Answer, ApiError> {
        let old = convert::shown(row, live);
        self.write_from(row, live, old, part, object, writer, track)
    }

    #[allow(clippy::too_many_arguments, reason = "what `write` takes, and what it was")]
    fn write_from(
        &mut self,
        row: &Arc<Resource>,
        live: &Arc<Stored>,
        old: Arc<Value>,
        part: Part,
        object: Value,
        writer: &Writer,
        track: bool,
    ) -> Result<Answer, ApiError> {
        let mut prepared = self.prepare(row, live, old, part, object, writer)?;
        if track {
            let time = if part == Part::Scale { Value::Null } else { self.time() };
            let who = manager(row, writer, part.subresource());
            let Prepared { old, new, .. } = &mut prepared;
            track_update(Some(&**old), new, &row.node, who, time, part.reset(row));
        }
        self.store_change(prepared, writer)
    }

    /// Checks a change and brings it into the form that is stored.
    pub(super) fn prepare<'a>(
        &mut self,
        row: &'a Arc<Resource>,
        live: &Arc<Stored>,
        old: Arc<Value>,
        part: Part,
        mut new: Value,
        writer: &Writer,
    ) -> Result<Prepared<'a>, ApiError> {
        let name = live.key.name.to_string();
        let version = metadata::text(&new, "resourceVersion");
        if !version.is_empty() && version != live.revision.to_string() {
            return Err(ApiError::modified(row.about(&name)));
        }
        let uid = metadata::text(&new, "uid");
        if !uid.is_empty() && uid != metadata::text(&old, "uid") {
            let place = if row.namespaced { format!("{}/", live.key.namespace) } else { String::new() };
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{place}{name}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                row.plural,
                metadata::text(&old, "uid")
            );
            return Err(ApiError::conflict(row.about(&name), &why));
        }
        // The sandbox itself writes what it knows.
        if writer.user.is_some() {
            self.drop_unknown(row, &mut new, writer)?;
        }
        isolate(row, part, &old, &mut new);
        for field in metadata::SERVER_OWNED.iter().chain(&["name", "namespace", "resourceVersion"]) {
            carry(&old, &mut new, field);
        }
        kinds::prepare_update(row, &old, &mut new);
        if kinds::is_csr(row) {
            kinds::prepare_csr_update(part, &old, &mut new, &self.time());
        }
        self.fill_in_defaults(row, &mut new);
        kinds::count_template(row, &old, &mut new);
        if part == Part::Main {
            self.admit_change(row, &mut new);
        }
        if let Some(generation) = metadata::next_generation(row, &old, &new) {
            new["metadata"]["generation"] = json!(generation);
        }
        let mut causes = match part {
            Part::Main | Part::Scale => self.causes(row, Some(&old), &new),
            Part::Status if row.custom => self.causes(row, Some(&old), &new),
            Part::Status | Part::Approval if kinds::is_csr(row) => {
                kinds::validate_csr_update(part, &old, &new)
            }
            Part::Status | Part::Approval | Part::Finalize => Vec::new(),
        };
        causes.extend(new_finalizers_while_deleting(&old, &new));
        self.refuse(row, &name, &causes)?;
        // What goes away may go whatever policies say of it.
        if part == Part::Main && metadata::text(&old, "deletionTimestamp").is_empty() {
            self.check_policies(row, &new)?;
            self.check_expressions(row, Some(&old), &new, writer)?;
        }
        self.check_signer(row, part, Some(&old), &new, writer)?;
        if row.is("", "services") && part == Part::Main {
            kinds::change_node_ports(self, &old, &mut new, writer.dry_run)?;
        }
        Ok(Prepared { row, live: live.clone(), old, new })
    }

    /// Writes a checked change, unless it changes nothing; takes the object away if nothing holds it any more.
    pub(super) fn store_change(&mut self, change: Prepared<'_>, writer: &Writer) -> Result<Answer, ApiError> {
        let Prepared { row, live, old, mut new } = change;
        if *old == new {
            return Ok(Answer::Stored(live));
        }
        if writer.dry_run {
            return Ok(Answer::Value(new));
        }
        let gone = may_go(row, &new);
        convert::to_stored(row, &mut new);
        let key = live.key.clone();
        let written = if gone {
            self.store.remove(&row.table, key, new, &row.selectable)
        } else {
            self.store.replace(&row.table, key, new, &row.selectable, live.revision)
        };
        match written {
            Ok(event) => {
                self.changed(row, &event);
                Ok(Answer::Stored(event.object.clone()))
            }
            Err(WriteError::Missing) => Err(ApiError::not_found(row.about(&live.key.name))),
            Err(WriteError::Stale | WriteError::Exists) => Err(ApiError::modified(row.about(&live.key.name))),
        }
    }

    /// Changes an object on the sandbox' own account; absent objects and void changes are no errors.
    pub(crate) fn modify(
        &mut self,
        row: &Arc<Resource>,
        key: &ObjectKey,
        part: Part,
        manager: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Option<Answer>, ApiError> {
        let Some(live) = self.store.get(&row.table, key) else { return Ok(None) };
        let old = convert::shown(row, &live);
        let mut object = Value::clone(&old);
        change(&mut object);
        if object == *old {
            return Ok(Some(Answer::Stored(live)));
        }
        self.write_from(row, &live, old, part, object, &Writer::named(manager), true).map(Some)
    }

    /// Changes the status of an object on the sandbox' own account, given the object and what its status was.
    pub(crate) fn modify_status(
        &mut self,
        row: &Arc<Resource>,
        key: &ObjectKey,
        manager: &str,
        change: impl FnOnce(&Value, &mut Value),
    ) -> Result<(), ApiError> {
        let Some(live) = self.store.get(&row.table, key) else { return Ok(()) };
        let old = convert::shown(row, &live);
        let mut status = old["status"].clone();
        change(&old, &mut status);
        if status == old["status"] {
            return Ok(());
        }
        let mut object = Value::clone(&old);
        object["status"] = status;
        self.write_from(row, &live, old, Part::Status, object, &Writer::named(manager), true)?;
        Ok(())
    }
}

/// A deleted object goes when no finalizer and no grace period holds it.
fn may_go(row: &Resource, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let held = |list: Option<&Value>| list.and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let grace = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    metadata.get("deletionTimestamp").is_some_and(Value::is_string)
        && !held(metadata.get("finalizers"))
        && grace == 0
        && !(row.is("", "namespaces") && held(at(object, "/spec/finalizers")))
}

/// Each endpoint writes its part only.
fn isolate(row: &Resource, part: Part, old: &Value, new: &mut Value) {
    match part {
        Part::Main | Part::Scale => {
            if row.status {
                copy(old, new, "status");
            }
            // Only `finalize` takes a namespace's finalizers away; a request for a certificate never changes.
            if row.is("", "namespaces") || kinds::is_csr(row) {
                copy(old, new, "spec");
            }
        }
        Part::Status | Part::Approval => {
            let labelled: &[&str] =
                if row.is("", "pods") || row.is("", "nodes") { &["labels", "annotations"] } else { &[] };
            let managed = at(new, "/metadata/managedFields").is_some();
            set_back(old, new, &["status", "metadata"]);
            if !new["metadata"].is_object() {
                new["metadata"] = json!({});
            }
            let but = labelled.iter().chain(managed.then_some(&"managedFields"));
            set_back(&old["metadata"], &mut new["metadata"], &but.copied().collect::<Vec<_>>());
        }
        Part::Finalize => {
            let finalizers = at(new, "/spec/finalizers").cloned().unwrap_or_else(|| json!([]));
            *new = old.clone();
            new["spec"]["finalizers"] = finalizers;
        }
    }
}

/// Sets the fields of an object back to what they were, but for some.
fn set_back(old: &Value, new: &mut Value, but: &[&str]) {
    let (Some(before), Some(now)) = (old.as_object(), new.as_object_mut()) else { return };
    now.retain(|name, _| but.contains(&name.as_str()) || before.contains_key(name));
    for (name, value) in before.iter().filter(|(name, _)| !but.contains(&name.as_str())) {
        // Most are as they were: to compare them costs less than to copy them.
        if now.get(name) != Some(value) {
            now.insert(name.clone(), value.clone());
        }
    }
}

fn copy(old: &Value, new: &mut Value, field: &str) {
    match (old.get(field), new.as_object_mut()) {
        (Some(value), Some(object)) => {
            object.insert(field.to_owned(), value.clone());
        }
        (None, Some(object)) => {
            object.remove(field);
        }
        (_, None) => {}
    }
}

fn carry(old: &Value, new: &mut Value, field: &str) {
    let Some(metadata) = new["metadata"].as_object_mut() else { return };
    match old["metadata"].get(field) {
        Some(value) => metadata.insert(field.to_owned(), value.clone()),
        None => metadata.remove(field),
    };
}

fn new_finalizers_while_deleting(old: &Value, new: &Value) -> Option<Cause> {
    if metadata::text(old, "deletionTimestamp").is_empty() {
        return None;
    }
    let of = |object: &Value| -> Vec<String> {
        let list = at(object, "/metadata/finalizers").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let before = of(old);
    let added: Vec<String> = of(new).into_iter().filter(|finalizer| !before.contains(finalizer)).collect();
    let shown = added.iter().map(|finalizer| format!("{finalizer:?}")).collect::<Vec<_>>().join(", ");
    (!added.is_empty()).then(|| {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        );
        Cause::forbidden("metadata.finalizers", &detail)
    })
}

pub(super) fn manager(row: &Resource, writer: &Writer, subresource: &str) -> Manager {
    Manager {
        name: writer.manager.clone(),
        operation: Operation::Update,
        subresource: subresource.to_owned(),
        api_version: row.api_version(),
    }
}

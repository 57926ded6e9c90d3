//! Create.

use std::sync::Arc;

use serde_json::{Value, json};

use super::update::{Part, manager};
use super::{convert, metadata};
use crate::api::{Answer, Api, Writer};
use crate::error::{About, ApiError, Cause};
use crate::kinds;
use crate::merge::track_update;
use crate::registry::{Generation, Resource};
use crate::store::{ObjectKey, WriteError};

/// How often a generated name is drawn anew when it is taken.
const NAME_ATTEMPTS: usize = 8;
/// Generated names end in five random letters, and fit into 63 characters.
const SUFFIX: usize = 5;
const LONGEST_PREFIX: usize = 58;

impl Api {
    /// Creates an object and answers it.
    pub(crate) fn create(
        &mut self,
        row: &Arc<Resource>,
        namespace: &str,
        mut object: Value,
        writer: &Writer,
    ) -> Result<Answer, ApiError> {
        metadata::check_body(row, namespace, &mut object)?;
        if !metadata::text(&object, "resourceVersion").is_empty() {
            return Err(ApiError::plain(500, "resourceVersion should not be set on objects to be created"));
        }
        let name = self.choose_name(row, namespace, &object)?;
        object["metadata"]["name"] = json!(name);
        self.check_namespace(row, namespace, &name)?;
        if kinds::is_csr(row) {
            kinds::set_requester(&mut object, writer.user.as_deref());
        }
        self.fill_in(row, &mut object, writer)?;
        // Owned is what was sent and what was filled in by default, not what the server itself adds then.
        let reset = Part::Main.reset(row);
        track_update(None, &mut object, &row.node, manager(row, writer, ""), self.time(), reset);
        kinds::prepare_create(self, row, &mut object, writer.dry_run)?;
        self.insert(row, namespace, &name, object, writer)
    }

    /// Everything between a body and the store that both create and apply need.
    pub(super) fn fill_in(
        &mut self,
        row: &Arc<Resource>,
        object: &mut Value,
        writer: &Writer,
    ) -> Result<(), ApiError> {
        // The sandbox itself writes what it knows.
        if writer.user.is_some() {
            self.drop_unknown(row, object, writer)?;
        }
        if let Some(fields) = object["metadata"].as_object_mut() {
            for field in metadata::SERVER_OWNED {
                // Kinds without generations keep what they are given.
                if *field != "generation" || row.generation != Generation::None {
                    fields.remove(*field);
                }
            }
            fields.remove("resourceVersion");
        }
        let uid = self.new_uid();
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["creationTimestamp"] = self.time();
        if row.generation != Generation::None {
            object["metadata"]["generation"] = json!(1);
        }
        // Nodes are registered together with their status; of all others it is written separately.
        if row.status
            && !row.is("", "nodes")
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        self.fill_in_defaults(row, object);
        self.admit_new(row, object)?;
        let name = metadata::text(object, "name").to_owned();
        let causes = self.causes(row, None, object);
        self.refuse(row, &name, &causes)?;
        self.check_admission(row, object, writer)?;
        self.check_signer(row, Part::Main, None, object, writer)
    }

    pub(super) fn refuse(&self, row: &Resource, name: &str, causes: &[Cause]) -> Result<(), ApiError> {
        if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid(&row.group, &row.kind, name, causes)) }
    }

    pub(super) fn insert(
        &mut self,
        row: &Arc<Resource>,
        namespace: &str,
        name: &str,
        mut object: Value,
        writer: &Writer,
    ) -> Result<Answer, ApiError> {
        let key = ObjectKey::new(if row.namespaced { namespace } else { "" }, name);
        if self.store.get(&row.table, &key).is_some() {
            return Err(ApiError::already_exists(row.about(name)));
        }
        if writer.dry_run {
            return Ok(Answer::Value(object));
        }
        convert::to_stored(row, &mut object);
        match self.store.create(&row.table, key, object, &row.selectable) {
            Ok(event) => {
                self.changed(row, &event);
                Ok(Answer::Stored(event.object.clone()))
            }
            Err(WriteError::Exists | WriteError::Missing | WriteError::Stale) => {
                Err(ApiError::already_exists(row.about(name)))
            }
        }
    }

    fn choose_name(&mut self, row: &Resource, namespace: &str, object: &Value) -> Result<String, ApiError> {
        let name = metadata::text(object, "name");
        if !name.is_empty() {
            return Ok(name.to_owned());
        }
        let prefix = metadata::text(object, "generateName");
        if prefix.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(ApiError::invalid(&row.group, &row.kind, "", &[cause]));
        }
        let prefix: String = prefix.chars().take(LONGEST_PREFIX).collect();
        let mut candidate = String::new();
        for _ in 0..NAME_ATTEMPTS {
            candidate = format!("{prefix}{}", self.name_suffix(SUFFIX));
            if self.store.get(&row.table, &ObjectKey::new(namespace, &candidate)).is_none() {
                break;
            }
        }
        Ok(candidate)
    }

    /// A namespaced object needs a namespace that is there to stay.
    pub(super) fn check_namespace(
        &self,
        row: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        if !row.namespaced {
            return Ok(());
        }
        let Some(found) = self.store.get("/namespaces", &ObjectKey::new("", namespace)) else {
            return Err(ApiError::not_found(About { group: "", resource: "namespaces", name: namespace }));
        };
        if found.deleting {
            return Err(ApiError::terminating(row.about(name), namespace));
        }
        Ok(())
    }
}

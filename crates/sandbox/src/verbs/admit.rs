//! What every object passes on its way in: fields that nobody knows, defaults, rules.

use std::sync::Arc;

use serde_json::Value;

use super::metadata;
use crate::api::{Api, UnknownFields, Writer};
use crate::error::{ApiError, Cause};
use crate::kinds;
use crate::registry::Resource;
use crate::schema;

impl Api {
    /// Drops what the resource's schema does not name, and says so as the writer asked for.
    pub(super) fn drop_unknown(
        &mut self,
        row: &Resource,
        object: &mut Value,
        writer: &Writer,
    ) -> Result<(), ApiError> {
        let mut unknown = match &row.definition {
            Some(definition) => definition.prune(object),
            None if row.custom => Vec::new(),
            None => schema::drop_unknown(object, &row.node),
        };
        if row.custom
            && let Some(fields) = object.get_mut("metadata")
        {
            let in_metadata = schema::drop_unknown(fields, &schema::metadata());
            unknown.extend(in_metadata.into_iter().map(|path| format!("metadata.{path}")));
        }
        let told: Vec<String> = unknown.into_iter().map(|path| format!("unknown field \"{path}\"")).collect();
        match writer.unknown_fields {
            UnknownFields::Refuse if !told.is_empty() => Err(ApiError::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {}",
                told.join(", "),
                kind = row.kind,
                version = row.version,
            ))),
            UnknownFields::Warn => {
                self.warnings.extend(told);
                Ok(())
            }
            UnknownFields::Refuse | UnknownFields::Ignore => Ok(()),
        }
    }

    /// Fills in defaults.
    pub(super) fn fill_in_defaults(&self, row: &Resource, object: &mut Value) {
        match &row.definition {
            Some(definition) => definition.fill_in(object),
            None => {
                metadata::normalise(object, &row.node);
                kinds::apply_defaults(row, object);
            }
        }
    }

    /// What is wrong with a new object or a change.
    pub(super) fn causes(&self, row: &Arc<Resource>, old: Option<&Value>, object: &Value) -> Vec<Cause> {
        let mut causes = match old {
            Some(old) => kinds::validate_update(row, old, object),
            None => kinds::validate_create(row, object),
        };
        if let Some(definition) = &row.definition {
            causes.extend(definition.validate(&self.rules, old, object));
        }
        causes.extend(metadata::check_owners(object));
        causes
    }
}

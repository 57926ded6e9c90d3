//! How a copy says whose it is and what was applied.

use crate::names::{DIGEST_ANNOTATION, EPOCH_ANNOTATION, HUB_LABEL, OWNER_ANNOTATION, WORKLOAD_LABEL};
use portolan_api::template::PodTemplate;
use portolan_core::capacity::{PodShape, Shape, TemplateHash};
use portolan_runtime::Key;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Whose a copy is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ownership<'a> {
    /// The identity of the hub.
    pub(crate) hub: &'a str,
    /// The uid of the workload in the hub.
    pub(crate) workload: &'a str,
    /// The workload's namespace and name.
    pub(crate) owner: &'a Key,
    /// The epoch of the leader that applies it, if there is an election.
    pub(crate) epoch: Option<i64>,
}

/// A digest of what a value says.
pub(crate) fn digest(value: &Value) -> String {
    Sha256::digest(value.to_string())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Ownership<'_> {
    /// Marks an object as ours, and answers the digest of what is applied. The epoch is no part of the digest: another
    /// leader applies the same.
    pub(crate) fn mark(&self, object: &mut Value) -> String {
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

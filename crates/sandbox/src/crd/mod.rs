//! What a custom resource definition asks of its objects: pruning, defaults, schema, rules.

mod defaults;
mod definition;
mod formats;
mod path;
mod pruning;
mod ruled;
mod rules;
mod structural;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use kube_cel::{CompiledSchema, compile_schema};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::Cause;

pub(crate) use definition::validate_definition;
use ruled::{Part, Ruled};
pub(crate) use rules::Validator;

/// The schema of one version of a custom resource, ready to use.
pub(crate) struct Definition {
    schema: Value,
    rules: CompiledSchema,
    ruled: Ruled,
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Definition")
    }
}

/// Compiled schemas, most of which are asked for again: by the next write of a definition, by other clusters.
static COMPILED: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);

/// How many compiled schemas are kept.
const KEPT: usize = 256;

#[derive(Default)]
struct Cache {
    found: BTreeMap<Digest256, Arc<Definition>>,
    order: VecDeque<Digest256>,
}

type Digest256 = [u8; 32];

impl Definition {
    /// The compiled form of a schema, compiled once.
    pub(crate) fn of(schema: &Value) -> Arc<Self> {
        let key: Digest256 = Sha256::digest(schema.to_string().as_bytes()).into();
        let mut cache = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = cache.found.get(&key) {
            return found.clone();
        }
        let (rules, ruled) = (compile_schema(schema), Ruled::of(schema));
        let made = Arc::new(Self { schema: schema.clone(), rules, ruled });
        if cache.order.len() == KEPT
            && let Some(oldest) = cache.order.pop_front()
        {
            cache.found.remove(&oldest);
        }
        cache.order.push_back(key);
        cache.found.insert(key, made.clone());
        made
    }

    /// The schema as it was declared.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Takes out what the schema does not name; tells the paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        pruning::prune_object(object, &self.schema)
    }

    /// Fills in what the schema has a default for.
    pub(crate) fn fill_in(&self, object: &mut Value) {
        defaults::apply(object, &self.schema);
    }

    /// What is wrong with an object, or with its change.
    ///
    /// What was wrong before and has not been touched is left alone, so that a stricter definition does not lock
    /// its objects.
    pub(crate) fn validate(&self, validator: &Validator, old: Option<&Value>, object: &Value) -> Vec<Cause> {
        let mut causes = structural::validate(object, old, &self.schema);
        if let Some(old) = old {
            causes.retain(|cause| !path::unchanged(old, object, &cause.field));
        }
        if causes.iter().any(|cause| blocks_rules(cause.reason)) {
            causes.push(Cause {
                reason: "FieldValueInvalid",
                field: "<nil>".to_owned(),
                message: "Invalid value: null: some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation"
                    .to_owned(),
            });
            return causes;
        }
        match self.ruled.part(old, object) {
            Part::Whole => causes.extend(validator.check(&self.rules, (old, object), (old, object))),
            Part::Fields(fields, before) => {
                causes.extend(validator.check(&self.rules, (before.as_ref(), &fields), (old, object)));
            }
            Part::Nothing => {}
        }
        causes
    }
}

/// Rules are not asked about objects that are not even of the right shape.
fn blocks_rules(reason: &str) -> bool {
    matches!(
        reason,
        "FieldValueRequired" | "FieldValueTooLong" | "FieldValueTooMany" | "FieldValueTypeInvalid"
    )
}

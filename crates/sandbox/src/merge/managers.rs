//! Field managers: who owns what, through updates and server-side apply.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fieldset::FieldSet;
use super::typed::{self, MergeError};
use crate::schema::Node;

/// How a manager came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// A manager as `managedFields` tells it from others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    pub(crate) subresource: String,
    pub(crate) api_version: String,
}

impl Manager {
    /// Two applies of one name are one manager, whatever version they speak.
    fn key(&self) -> ManagerKey {
        let version = match self.operation {
            Operation::Apply => String::new(),
            Operation::Update => self.api_version.clone(),
        };
        (self.operation, self.name.clone(), self.subresource.clone(), version)
    }

    /// As a conflict names it.
    fn describe(&self) -> String {
        let mut out = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            out.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            out.push_str(&format!(" using {}", self.api_version));
        }
        out
    }
}

type ManagerKey = (Operation, String, String, String);

#[derive(Clone)]
struct Owned {
    manager: Manager,
    set: FieldSet,
    time: Value,
}

type Owners = BTreeMap<ManagerKey, Owned>;

/// Fields that are never owned.
const NEVER_OWNED: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// A server-side apply: what is applied by whom, and what the endpoint leaves out of it.
pub(crate) struct Apply<'a> {
    pub(crate) live: Option<&'a Value>,
    pub(crate) config: &'a Value,
    pub(crate) node: &'a Node,
    pub(crate) manager: Manager,
    pub(crate) force: bool,
    pub(crate) time: Value,
    /// Paths which this endpoint does not write (status on the main one, all else on `status`).
    pub(crate) reset: &'a [&'a [&'a str]],
}

/// Why an apply was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("{}", describe_conflicts(.0))]
    Conflicts(Vec<(String, Vec<String>)>),
    #[error(transparent)]
    Merge(#[from] MergeError),
}

fn describe_conflicts(conflicts: &[(String, Vec<String>)]) -> String {
    let count: usize = conflicts.iter().map(|(_, paths)| paths.len()).sum();
    let mut message = format!("Apply failed with {count} conflict{}: ", if count == 1 { "" } else { "s" });
    if let [(manager, paths)] = conflicts
        && let [path] = paths.as_slice()
    {
        message.push_str(&format!("conflict with {manager}: {path}"));
        return message;
    }
    let parts: Vec<String> = conflicts
        .iter()
        .map(|(manager, paths)| format!("conflicts with {manager}:\n- {}", paths.join("\n- ")))
        .collect();
    message.push_str(&parts.join("\n"));
    message
}

/// Refuses a configuration in which an item of a list is there twice.
pub(crate) fn check_items(config: &Value, node: &Node) -> Result<(), MergeError> {
    typed::check(config, node, "").map(|_| ())
}

/// Applies a configuration; the result carries its new `managedFields`.
pub(crate) fn apply(request: &Apply<'_>) -> Result<Value, ApplyError> {
    let Apply { live, config, node, manager, force, time, reset } = request;
    let empty = json!({});
    let live_bare = without_managed_fields(live.unwrap_or(&empty));
    let config_bare = without_managed_fields(config);
    let mut owners = live.map(read).unwrap_or_default();
    if live.is_some() && owners.is_empty() {
        // What nobody has recorded so far was there before the first apply.
        let mut before = live_bare.clone();
        node.complete(&mut before);
        let mut set = typed::compare(&node.empty(), &before, node).added;
        strip(&mut set, reset);
        let name = "before-first-apply".to_owned();
        let first = Manager { name, operation: Operation::Update, ..manager.clone() };
        if !set.is_empty() {
            owners.insert(first.key(), Owned { manager: first, set, time: time.clone() });
        }
    }

    let mut merged = typed::merge(&live_bare, &config_bare, node, "")?;
    let mut set = typed::field_set(&config_bare, node);
    // The name is part of every configuration: it keeps the metadata when nothing else in it is applied any more.
    let applied = set.clone();
    strip(&mut set, reset);
    let last = owners.get(&manager.key()).map(|owned| owned.set.clone());
    let changed = last.as_ref() != Some(&set);
    let old_time = owners.get(&manager.key()).map(|owned| owned.time.clone());
    owners.insert(manager.key(), Owned { manager: manager.clone(), set, time: time.clone() });

    if let Some(last) = last.filter(|last| !last.is_empty()) {
        merged = prune(&merged, node, &owners, &last, &applied);
    }
    let comparison = typed::compare(&live_bare, &merged, node);
    let mut touched = comparison.modified.union(&comparison.added);
    strip(&mut touched, reset);
    settle(&mut owners, &manager.key(), &touched, &comparison.removed, *force)?;
    // A repeated apply that changes nothing keeps its time, so that the object stays byte for byte the same.
    if !changed
        && live_bare == merged
        && let (Some(owned), Some(old)) = (owners.get_mut(&manager.key()), old_time)
    {
        owned.time = old;
    }
    write(&mut merged, &owners);
    Ok(merged)
}

/// Removes what the manager applied before, does not apply now, and nobody else owns.
fn prune(merged: &Value, node: &Node, owners: &Owners, last: &FieldSet, applied: &FieldSet) -> Value {
    let last = typed::with_named_fields(last, node);
    let without = |set: &FieldSet| typed::without(merged, node, set).unwrap_or_else(|| json!({}));
    let pruned = without(&last);
    let everything = typed::with_named_fields(&typed::field_set(merged, node), node);
    let managed = owners.values().fold(applied.clone(), |all, owned| all.union(&owned.set));
    let managed = typed::with_named_fields(&managed, node);
    let kept = typed::with_named_fields(&typed::field_set(&pruned, node), node);
    let pruned = without(&everything.difference(&kept.union(&managed)));
    // What nobody owns and this manager never applied (defaults, say) comes back with its parent.
    let kept = typed::with_named_fields(&typed::field_set(&pruned, node), node);
    without(&everything.difference(&kept).intersection(&last))
}

/// Takes written fields from the other managers, or refuses.
fn settle(
    owners: &mut Owners,
    writer: &ManagerKey,
    touched: &FieldSet,
    removed: &FieldSet,
    force: bool,
) -> Result<(), ApplyError> {
    let mut conflicts = BTreeMap::new();
    for (key, owned) in owners.iter().filter(|(key, _)| *key != writer) {
        let overlap = owned.set.intersection(touched);
        if !overlap.is_empty() {
            conflicts.insert(key.clone(), overlap);
        }
    }
    if !force && !conflicts.is_empty() {
        let mut named: Vec<(String, Vec<String>)> = conflicts
            .iter()
            .filter_map(|(key, set)| Some((owners.get(key)?.manager.describe(), set.paths())))
            .collect();
        named.sort();
        return Err(ApplyError::Conflicts(named));
    }
    for (key, owned) in owners.iter_mut() {
        if let Some(overlap) = conflicts.get(key) {
            owned.set = owned.set.difference(overlap);
        }
        if key != writer && !removed.is_empty() {
            owned.set = owned.set.difference(removed);
        }
    }
    owners.retain(|_, owned| !owned.set.is_empty());
    Ok(())
}

/// Records in `new` what a create, update or patch changed.
pub(crate) fn track_update(
    live: Option<&Value>,
    new: &mut Value,
    node: &Node,
    manager: Manager,
    time: Value,
    reset: &[&[&str]],
) {
    let empty = json!({});
    // An object without a record of owners is not tracked by updates; one whose sender emptied the record
    // with an explicit `[{}]` or `[]` is reset.
    let mut owners = match live {
        Some(live) => read(if new.pointer("/metadata/managedFields").is_some() { new } else { live }),
        None => Owners::default(),
    };
    if live.is_some() && owners.is_empty() && new.pointer("/metadata/managedFields").is_none() {
        return;
    }
    let (live_bare, new_bare) = match live {
        Some(live) => differing(live, new),
        None => (empty, without_managed_fields(new)),
    };
    if live.is_some() && live_bare == new_bare {
        write(new, &owners);
        return;
    }
    let complete = |mut value: Value| {
        node.complete(&mut value);
        value
    };
    let comparison = typed::compare(&complete(live_bare), &complete(new_bare), node);
    let mut touched = comparison.modified.union(&comparison.added);
    strip(&mut touched, reset);
    // Without `force` the only error is a conflict, and updates always force.
    let forced = settle(&mut owners, &manager.key(), &touched, &comparison.removed, true);
    debug_assert!(forced.is_ok(), "a forced write has no conflicts");
    let own = owners.remove(&manager.key()).map(|owned| (owned.set, owned.time));
    let (before, old_time) = own.unwrap_or_default();
    let untouched = touched.is_empty() && before.intersection(&comparison.removed).is_empty();
    let mut set = if comparison.removed.is_empty() { before } else { before.difference(&comparison.removed) };
    set.merge(&touched);
    if !set.is_empty() {
        let time = if untouched { old_time } else { time };
        owners.insert(manager.key(), Owned { manager, set, time });
    }
    write(new, &owners);
}

fn strip(set: &mut FieldSet, reset: &[&[&str]]) {
    for path in NEVER_OWNED {
        set.remove_below(path);
    }
    set.remove_exact(&["metadata"]);
    for path in reset {
        set.remove_below(path);
    }
    set.compact();
}

fn without_managed_fields(object: &Value) -> Value {
    match object {
        Value::Object(fields) => Value::Object(fields.iter().map(bare).collect()),
        other => other.clone(),
    }
}

/// Two states of an object without the parts that are the same in both, which nobody has written.
fn differing(one: &Value, other: &Value) -> (Value, Value) {
    let part = |own: &Value, others: &Value| match own {
        Value::Object(fields) => {
            let differs = |name: &String, value: &Value| others.get(name) != Some(value);
            Value::Object(fields.iter().filter(|(name, value)| differs(name, value)).map(bare).collect())
        }
        own => own.clone(),
    };
    (part(one, other), part(other, one))
}

/// A field of an object, of its metadata without who owns what.
fn bare((name, value): (&String, &Value)) -> (String, Value) {
    let value = match value {
        Value::Object(metadata) if name == "metadata" => {
            let kept = metadata.iter().filter(|(name, _)| *name != "managedFields");
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        value => value.clone(),
    };
    (name.clone(), value)
}

fn read(object: &Value) -> Owners {
    let mut owners = Owners::new();
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => continue,
        };
        let manager = Manager {
            name: text("manager"),
            operation,
            subresource: text("subresource"),
            api_version: text("apiVersion"),
        };
        let set = entry.get("fieldsV1").map(FieldSet::from_json).unwrap_or_default();
        let time = entry.get("time").cloned().unwrap_or_default();
        owners.insert(manager.key(), Owned { manager, set, time });
    }
    owners
}

fn write(object: &mut Value, owners: &Owners) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let mut owned: Vec<&Owned> = owners.values().collect();
    owned.sort_by(|a, b| {
        (a.manager.operation, a.time.as_str(), &a.manager.name, &a.manager.subresource).cmp(&(
            b.manager.operation,
            b.time.as_str(),
            &b.manager.name,
            &b.manager.subresource,
        ))
    });
    let entries: Vec<Value> = owned.into_iter().map(entry).collect();
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

fn entry(owned: &Owned) -> Value {
    let operation = match owned.manager.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut out = Map::from_iter([
        ("manager".to_owned(), json!(owned.manager.name)),
        ("operation".to_owned(), json!(operation)),
        ("apiVersion".to_owned(), json!(owned.manager.api_version)),
        ("fieldsType".to_owned(), json!("FieldsV1")),
        ("fieldsV1".to_owned(), owned.set.to_json()),
    ]);
    if !owned.time.is_null() {
        out.insert("time".to_owned(), owned.time.clone());
    }
    if !owned.manager.subresource.is_empty() {
        out.insert("subresource".to_owned(), json!(owned.manager.subresource));
    }
    Value::Object(out)
}

//! Field managers: who owns what, through updates and server-side apply.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fieldset::FieldSet;
use super::typed::{self, MergeError};
use crate::schema::Node;
use crate::store::at;

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
    fields: Fields,
    time: Value,
}

/// What a manager owns.
#[derive(Clone)]
enum Fields {
    Read(FieldSet),
    /// As it is written: a write does not concern it.
    Untouched(Value),
}

impl Fields {
    fn set(&self) -> Cow<'_, FieldSet> {
        match self {
            Self::Read(set) => Cow::Borrowed(set),
            Self::Untouched(written) => Cow::Owned(FieldSet::from_json(written)),
        }
    }

    fn into_set(self) -> FieldSet {
        match self {
            Self::Read(set) => set,
            Self::Untouched(written) => FieldSet::from_json(&written),
        }
    }
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
    let written = live.and_then(|live| at(live, MANAGED_FIELDS)).cloned();
    let mut owners = read(written, |_| true);
    if live.is_some() && owners.is_empty() {
        // What nobody has recorded so far was there before the first apply.
        let mut before = live_bare.clone();
        node.complete(&mut before);
        let mut set = typed::compare(&node.empty(), &before, node).added;
        strip(&mut set, reset);
        let name = "before-first-apply".to_owned();
        let first = Manager { name, operation: Operation::Update, ..manager.clone() };
        if !set.is_empty() {
            owners
                .insert(first.key(), Owned { manager: first, fields: Fields::Read(set), time: time.clone() });
        }
    }

    let mut merged = typed::merge(&live_bare, &config_bare, node, "")?;
    let mut set = typed::field_set(&config_bare, node);
    // The name is part of every configuration: it keeps the metadata when nothing else in it is applied any more.
    let applied = set.clone();
    strip(&mut set, reset);
    let last = owners.get(&manager.key()).map(|owned| owned.fields.set().into_owned());
    let changed = last.as_ref() != Some(&set);
    let old_time = owners.get(&manager.key()).map(|owned| owned.time.clone());
    let own = Owned { manager: manager.clone(), fields: Fields::Read(set), time: time.clone() };
    owners.insert(manager.key(), own);

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
    write(&mut merged, owners);
    Ok(merged)
}

/// Removes what the manager applied before, does not apply now, and nobody else owns.
fn prune(merged: &Value, node: &Node, owners: &Owners, last: &FieldSet, applied: &FieldSet) -> Value {
    let last = typed::with_named_fields(last, node);
    let without = |set: &FieldSet| typed::without(merged, node, set).unwrap_or_else(|| json!({}));
    let pruned = without(&last);
    let everything = typed::with_named_fields(&typed::field_set(merged, node), node);
    let managed = owners.values().fold(applied.clone(), |all, owned| all.union(&owned.fields.set()));
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
        let Fields::Read(set) = &owned.fields else { continue };
        let overlap = set.intersection(touched);
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
        let Fields::Read(set) = &mut owned.fields else { continue };
        if let Some(overlap) = conflicts.get(key) {
            *set = set.difference(overlap);
        }
        if key != writer && !removed.is_empty() {
            *set = set.difference(removed);
        }
    }
    owners.retain(|_, owned| !matches!(&owned.fields, Fields::Read(set) if set.is_empty()));
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
    let written = match live {
        Some(live) if at(new, MANAGED_FIELDS).is_none() => at(live, MANAGED_FIELDS).cloned(),
        Some(_) => new.pointer_mut(MANAGED_FIELDS).map(Value::take),
        None => None,
    };
    if live.is_some() && written.is_none() {
        return;
    }
    let (live_bare, new_bare) = match live {
        Some(live) => differing(live, new, &["metadata", "managedFields"]),
        None => (empty, without_managed_fields(new)),
    };
    if live.is_some() && live_bare == new_bare {
        write(new, read(written, |_| false));
        return;
    }
    let complete = |mut value: Value| {
        node.complete(&mut value);
        value
    };
    let comparison = typed::compare(&complete(live_bare), &complete(new_bare), node);
    let mut touched = comparison.modified.union(&comparison.added);
    strip(&mut touched, reset);
    let concerned = |element: &str| {
        touched.children.contains_key(element) || comparison.removed.children.contains_key(element)
    };
    let mut owners = read(written, concerned);
    // Without `force` the only error is a conflict, and updates always force.
    let forced = settle(&mut owners, &manager.key(), &touched, &comparison.removed, true);
    debug_assert!(forced.is_ok(), "a forced write has no conflicts");
    let own = owners.remove(&manager.key()).map(|owned| (owned.fields.into_set(), owned.time));
    let (before, old_time) = own.unwrap_or_default();
    let untouched = touched.is_empty() && before.intersection(&comparison.removed).is_empty();
    let mut set = if comparison.removed.is_empty() { before } else { before.difference(&comparison.removed) };
    set.merge(&touched);
    if !set.is_empty() {
        let time = if untouched { old_time } else { time };
        owners.insert(manager.key(), Owned { manager, fields: Fields::Read(set), time });
    }
    write(new, owners);
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

/// Two states of an object without what is at `path`, and without what is the same in both, which nobody has written.
fn differing(one: &Value, other: &Value, path: &[&str]) -> (Value, Value) {
    let (Value::Object(one), Value::Object(other)) = (one, other) else {
        return (one.clone(), other.clone());
    };
    let counts = |name: &String| path != [name.as_str()];
    let below = |name: &String| match path {
        [first, rest @ ..] if first == name => rest,
        _ => &[],
    };
    let (mut left, mut right) = (Map::new(), Map::new());
    for (name, value) in one.iter().filter(|(name, _)| counts(name)) {
        match other.get(name) {
            Some(same) if same == value => {}
            Some(changed) => {
                let (before, after) = differing(value, changed, below(name));
                left.insert(name.clone(), before);
                right.insert(name.clone(), after);
            }
            None => {
                left.insert(name.clone(), value.clone());
            }
        }
    }
    let new = other.iter().filter(|(name, _)| counts(name) && !one.contains_key(*name));
    right.extend(new.map(|(name, value)| (name.clone(), value.clone())));
    (Value::Object(left), Value::Object(right))
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

const MANAGED_FIELDS: &str = "/metadata/managedFields";

/// Who owns what, as it is written; of fields that are of no concern, no more than that.
fn read(written: Option<Value>, concerned: impl Fn(&str) -> bool) -> Owners {
    let mut owners = Owners::new();
    let Some(Value::Array(entries)) = written else { return owners };
    for mut entry in entries {
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
        let written = entry.get_mut("fieldsV1").map(Value::take).unwrap_or_default();
        let is_concerned =
            |fields: &Map<String, Value>| fields.is_empty() || fields.keys().any(|key| concerned(key));
        let fields = if written.as_object().is_none_or(is_concerned) {
            Fields::Read(FieldSet::from_json(&written))
        } else {
            Fields::Untouched(written)
        };
        let time = entry.get_mut("time").map(Value::take).unwrap_or_default();
        owners.insert(manager.key(), Owned { manager, fields, time });
    }
    owners
}

fn write(object: &mut Value, owners: Owners) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let mut owned: Vec<Owned> = owners.into_values().collect();
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

fn entry(owned: Owned) -> Value {
    let operation = match owned.manager.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let fields = match owned.fields {
        Fields::Read(set) => set.to_json(),
        Fields::Untouched(written) => written,
    };
    let mut out = Map::from_iter([
        ("manager".to_owned(), json!(owned.manager.name)),
        ("operation".to_owned(), json!(operation)),
        ("apiVersion".to_owned(), json!(owned.manager.api_version)),
        ("fieldsType".to_owned(), json!("FieldsV1")),
        ("fieldsV1".to_owned(), fields),
    ]);
    if !owned.time.is_null() {
        out.insert("time".to_owned(), owned.time);
    }
    if !owned.manager.subresource.is_empty() {
        out.insert("subresource".to_owned(), json!(owned.manager.subresource));
    }
    Value::Object(out)
}

//! Walks over values along their structure: which paths a value has, what differs between two values,
//! how two values merge, and a value without a set of paths.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use crate::schema::{Node, Relation};

/// What differs between an old and a new value.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

/// A list item that cannot be told from others.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MergeError {
    #[error(
        "{path}: element {index}: associative list with keys has an element that omits key field {key:?} (and doesn't have default value)"
    )]
    MissingKey { path: String, index: usize, key: String },
    #[error("{path}: duplicate entries for key {element}")]
    Duplicate { path: String, element: String },
}

/// The element that names an item of a list.
pub(super) fn item_element(item: &Value, node: &Node, relation: &Relation) -> Option<String> {
    match relation {
        Relation::Atomic => None,
        Relation::Set => Some(format!("v:{item}")),
        Relation::Map(keys) => {
            let mut named = BTreeMap::new();
            for key in keys {
                let value = item.get(key).or_else(|| node.field(key).0.default())?;
                named.insert(key.as_str(), value);
            }
            serde_json::to_string(&named).ok().map(|text| format!("k:{text}"))
        }
    }
}

/// The paths of `value`.
pub(super) fn field_set(value: &Value, node: &Node) -> FieldSet {
    let mut set = FieldSet::default();
    collect(value, node, &mut set);
    set
}

fn collect(value: &Value, node: &Node, set: &mut FieldSet) {
    match value {
        Value::Object(object) if !node.is_atomic_object() => {
            for (name, child) in object {
                let (below, named) = node.field(name);
                let inner = set.child_mut(&FieldSet::field(name));
                collect(child, below, inner);
                let empty = child.is_null() || child.as_object().is_some_and(Map::is_empty);
                if empty || !named {
                    inner.member = true;
                }
            }
        }
        Value::Array(items) => {
            let (item_node, relation) = node.list();
            if *relation == Relation::Atomic {
                set.member = true;
                return;
            }
            for item in items {
                if let Some(element) = item_element(item, item_node, relation) {
                    let inner = set.child_mut(&element);
                    collect(item, item_node, inner);
                    inner.member = true;
                }
            }
        }
        _ => set.member = true,
    }
}

/// What changed from `old` to `new`.
pub(super) fn compare(old: &Value, new: &Value, node: &Node) -> Comparison {
    changes(Some(old), Some(new), node)
}

impl Comparison {
    /// Takes in what changed below an element.
    fn add(&mut self, element: &str, below: Comparison) {
        let into = [&mut self.added, &mut self.modified, &mut self.removed];
        for (set, child) in into.into_iter().zip([below.added, below.modified, below.removed]) {
            if child.member || !child.children.is_empty() {
                set.children.insert(element.to_owned(), child);
            }
        }
    }
}

fn changes(old: Option<&Value>, new: Option<&Value>, node: &Node) -> Comparison {
    let mut out = Comparison::default();
    if old == new {
        return out;
    }
    let leaf = match (old, new) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            node.is_atomic_object() || a.is_empty() && b.is_empty()
        }
        (Some(Value::Object(one)), None) | (None, Some(Value::Object(one))) => {
            node.is_atomic_object() || one.is_empty()
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            *node.list().1 == Relation::Atomic || a.is_empty() && b.is_empty()
        }
        (Some(Value::Array(one)), None) | (None, Some(Value::Array(one))) => {
            *node.list().1 == Relation::Atomic || one.is_empty()
        }
        _ => true,
    };
    match (old, new) {
        (None, _) => out.added.member = true,
        (_, None) => out.removed.member = true,
        _ if leaf => out.modified.member = true,
        _ => {}
    }
    if leaf {
        return out;
    }
    if matches!(old.or(new), Some(Value::Object(_))) {
        let empty = Map::new();
        let a = old.and_then(Value::as_object).unwrap_or(&empty);
        let b = new.and_then(Value::as_object).unwrap_or(&empty);
        for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
            let (before, after) = (a.get(name), b.get(name));
            if before != after {
                out.add(&FieldSet::field(name), changes(before, after, node.field(name).0));
            }
        }
        return out;
    }
    let (item_node, relation) = node.list();
    let a = grouped(old, item_node, relation);
    let b = grouped(new, item_node, relation);
    for element in a.keys().chain(b.keys().filter(|element| !a.contains_key(*element))) {
        let none = Vec::new();
        let (before, after) = (a.get(element).unwrap_or(&none), b.get(element).unwrap_or(&none));
        if before == after {
            continue;
        }
        let mut below = Comparison::default();
        match (before.as_slice(), after.as_slice()) {
            ([_, _, ..], [_, _, ..]) => below.modified.member = true,
            ([_, _, ..], rest) => {
                below = changes(None, rest.first().copied(), item_node);
                below.removed.member = true;
            }
            (rest, [_, _, ..]) => {
                below = changes(rest.first().copied(), None, item_node);
                below.added.member = true;
            }
            (before, after) => below = changes(before.first().copied(), after.first().copied(), item_node),
        }
        out.add(element, below);
    }
    out
}

fn grouped<'a>(
    list: Option<&'a Value>,
    node: &Node,
    relation: &Relation,
) -> BTreeMap<String, Vec<&'a Value>> {
    let mut out: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        if let Some(element) = item_element(item, node, relation) {
            out.entry(element).or_default().push(item);
        }
    }
    out
}

/// `applied` merged into `live`: what is applied wins, what is not mentioned stays.
pub(super) fn merge(live: &Value, applied: &Value, node: &Node, path: &str) -> Result<Value, MergeError> {
    match (live, applied) {
        (Value::Object(a), Value::Object(b)) if !node.is_atomic_object() => {
            let mut out = a.clone();
            for (name, value) in b {
                let below = node.field(name).0;
                let here = format!("{path}.{name}");
                let merged = match a.get(name) {
                    Some(existing) => merge(existing, value, below, &here)?,
                    None => check(value, below, &here)?,
                };
                out.insert(name.clone(), merged);
            }
            Ok(Value::Object(out))
        }
        (Value::Array(a), Value::Array(b)) if *node.list().1 != Relation::Atomic => {
            let (item_node, relation) = node.list();
            merge_lists(a, b, item_node, relation, path).map(Value::Array)
        }
        (_, applied) => check(applied, node, path),
    }
}

/// `value` itself, once its associative lists are known to have keys and no duplicates.
pub(super) fn check(value: &Value, node: &Node, path: &str) -> Result<Value, MergeError> {
    match value {
        Value::Object(object) if !node.is_atomic_object() => {
            for (name, child) in object {
                check(child, node.field(name).0, &format!("{path}.{name}"))?;
            }
        }
        Value::Array(items) if *node.list().1 != Relation::Atomic => {
            let (item_node, relation) = node.list();
            elements(items, item_node, relation, path, false)?;
            for item in items {
                check(item, item_node, path)?;
            }
        }
        _ => {}
    }
    Ok(value.clone())
}

fn elements(
    items: &[Value],
    node: &Node,
    relation: &Relation,
    path: &str,
    duplicates: bool,
) -> Result<Vec<String>, MergeError> {
    let mut out = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let element = item_element(item, node, relation).ok_or_else(|| {
            let key = match relation {
                Relation::Map(keys) => {
                    keys.iter().find(|key| item.get(key.as_str()).is_none()).cloned().unwrap_or_default()
                }
                _ => String::new(),
            };
            MergeError::MissingKey { path: path.to_owned(), index, key }
        })?;
        if !duplicates && out.contains(&element) {
            let element = super::fieldset::readable(&element);
            return Err(MergeError::Duplicate { path: path.to_owned(), element });
        }
        out.push(element);
    }
    Ok(out)
}

/// Live items keep their place; applied ones come in the order of the applied list.
fn merge_lists(
    live: &[Value],
    applied: &[Value],
    node: &Node,
    relation: &Relation,
    path: &str,
) -> Result<Vec<Value>, MergeError> {
    let ours = elements(live, node, relation, path, true)?;
    let theirs = elements(applied, node, relation, path, false)?;
    let mut shared = theirs.iter().filter(|element| ours.contains(element));
    let mut next_shared = shared.next();
    let mut merged: Vec<&String> = Vec::new();
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    let merge_at = |j: usize| -> Result<Value, MergeError> {
        let mut matches = ours.iter().enumerate().filter(|(_, element)| **element == theirs[j]);
        match (matches.next(), matches.next()) {
            (Some((index, _)), None) => merge(&live[index], &applied[j], node, path),
            _ => check(&applied[j], node, path),
        }
    };
    while i < ours.len() || j < theirs.len() {
        if i < ours.len() && j < theirs.len() {
            if ours[i] == theirs[j] {
                out.push(merge_at(j)?);
                merged.push(&theirs[j]);
                (i, j, next_shared) = (i + 1, j + 1, shared.next());
                continue;
            }
            if theirs.contains(&ours[i]) && next_shared.is_some_and(|next| *next != ours[i]) {
                i += 1;
                continue;
            }
        }
        if i < ours.len() {
            if !theirs.contains(&ours[i]) {
                out.push(live[i].clone());
                i += 1;
                continue;
            }
            if merged.contains(&&ours[i]) {
                i += 1;
                continue;
            }
        }
        if j < theirs.len() {
            out.push(merge_at(j)?);
            merged.push(&theirs[j]);
            if next_shared == Some(&theirs[j]) {
                next_shared = shared.next();
            }
            j += 1;
        }
    }
    Ok(out)
}

/// `value` without what `set` names. None when nothing is left.
pub(super) fn without(value: &Value, node: &Node, set: &FieldSet) -> Option<Value> {
    match value {
        Value::Object(object) => {
            if object.is_empty() || node.is_atomic_object() {
                return None;
            }
            let mut out = Map::new();
            for (name, child) in object {
                match set.children.get(&FieldSet::field(name)) {
                    Some(below) if below.member => {}
                    Some(below) if !below.is_empty() => {
                        out.insert(
                            name.clone(),
                            without(child, node.field(name).0, below).unwrap_or(Value::Null),
                        );
                    }
                    _ => {
                        out.insert(name.clone(), child.clone());
                    }
                }
            }
            out.retain(|_, child| !child.is_null());
            (!out.is_empty()).then_some(Value::Object(out))
        }
        Value::Array(items) => {
            let (item_node, relation) = node.list();
            if items.is_empty() || *relation == Relation::Atomic {
                return None;
            }
            let mut out = Vec::new();
            for item in items {
                let element = item_element(item, item_node, relation);
                match element.and_then(|element| set.children.get(&element)) {
                    Some(below) if below.member => {}
                    Some(below) if !below.is_empty() => out.extend(without(item, item_node, below)),
                    _ => out.push(item.clone()),
                }
            }
            (!out.is_empty()).then_some(Value::Array(out))
        }
        scalar => Some(scalar.clone()),
    }
}

/// The set, with every named field that leads to a member made a member too.
pub(super) fn with_named_fields(set: &FieldSet, node: &Node) -> FieldSet {
    let mut out = FieldSet { member: set.member, children: BTreeMap::new() };
    for (element, child) in &set.children {
        let (below, named) = match element.strip_prefix("f:") {
            Some(name) => node.field(name),
            None => (node.list().0, false),
        };
        let mut inner = with_named_fields(child, below);
        inner.member |= named && !child.is_empty();
        out.children.insert(element.clone(), inner);
    }
    out
}

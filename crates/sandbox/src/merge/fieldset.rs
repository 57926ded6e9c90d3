//! Sets of field paths, in the form `managedFields` stores them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A set of paths. An element of a path is kept as Kubernetes writes it: `f:name` for a field,
/// `k:{"name":"x"}` for an item of a list with keys, `v:"x"` for an item of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// The path that leads here is itself in the set.
    pub(crate) member: bool,
    pub(crate) children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// The element of a field called `name`.
    pub(crate) fn field(name: &str) -> String {
        format!("f:{name}")
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(FieldSet::is_empty)
    }

    /// The set below `element`, made if absent.
    pub(crate) fn child_mut(&mut self, element: &str) -> &mut FieldSet {
        self.children.entry(element.to_owned()).or_default()
    }

    /// Adds the path of `elements`.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, elements: &[&str]) {
        let mut set = self;
        for element in elements {
            set = set.child_mut(element);
        }
        set.member = true;
    }

    /// Drops branches that lead nowhere.
    pub(crate) fn compact(&mut self) {
        self.children.values_mut().for_each(FieldSet::compact);
        self.children.retain(|_, child| !child.is_empty());
    }

    /// Takes the field at `path` (names only) and all below it out of the set.
    pub(crate) fn remove_below(&mut self, path: &[&str]) {
        match path {
            [] => *self = FieldSet::default(),
            [name, rest @ ..] => {
                let element = Self::field(name);
                if let Some(child) = self.children.get_mut(&element) {
                    child.remove_below(rest);
                    if child.is_empty() {
                        self.children.remove(&element);
                    }
                }
            }
        }
    }

    /// Takes only the path itself out, not what is below.
    pub(crate) fn remove_exact(&mut self, path: &[&str]) {
        match path {
            [] => self.member = false,
            [name, rest @ ..] => {
                let element = Self::field(name);
                if let Some(child) = self.children.get_mut(&element) {
                    child.remove_exact(rest);
                    if child.is_empty() {
                        self.children.remove(&element);
                    }
                }
            }
        }
    }

    pub(crate) fn union(&self, other: &FieldSet) -> FieldSet {
        let mut out = self.clone();
        out.merge(other);
        out
    }

    /// Adds the paths of another set.
    pub(crate) fn merge(&mut self, other: &FieldSet) {
        self.member |= other.member;
        for (element, child) in &other.children {
            self.child_mut(element).merge(child);
        }
    }

    pub(crate) fn difference(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, |mine, theirs| mine && !theirs, true)
    }

    pub(crate) fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, |mine, theirs| mine && theirs, false)
    }

    fn combine(&self, other: &FieldSet, keep: fn(bool, bool) -> bool, keep_alone: bool) -> FieldSet {
        let mut out = FieldSet { member: keep(self.member, other.member), children: BTreeMap::new() };
        for (element, child) in &self.children {
            let combined = match other.children.get(element) {
                Some(theirs) => child.combine(theirs, keep, keep_alone),
                None if keep_alone => child.clone(),
                None => continue,
            };
            if !combined.is_empty() {
                out.children.insert(element.clone(), combined);
            }
        }
        out
    }

    /// The set as `fieldsV1` spells it.
    pub(crate) fn to_json(&self) -> Value {
        let mut out = Map::new();
        for (element, child) in &self.children {
            if child.is_empty() {
                continue;
            }
            let mut value = child.to_json();
            if child.member
                && child.children.values().any(|c| !c.is_empty())
                && let Some(object) = value.as_object_mut()
            {
                object.insert(".".to_owned(), Value::Object(Map::new()));
            }
            out.insert(element.clone(), value);
        }
        Value::Object(out)
    }

    /// Reads `fieldsV1`.
    pub(crate) fn from_json(value: &Value) -> FieldSet {
        let mut set = FieldSet::default();
        for (element, below) in value.as_object().into_iter().flatten() {
            if element == "." {
                set.member = true;
                continue;
            }
            let mut child = FieldSet::from_json(below);
            if below.as_object().is_none_or(Map::is_empty) {
                child.member = true;
            }
            set.children.insert(element.clone(), child);
        }
        set
    }

    /// Every path of the set, as messages name them (`.spec.containers[name="x"].image`).
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.collect_paths("", &mut out);
        out
    }

    fn collect_paths(&self, prefix: &str, out: &mut Vec<String>) {
        if self.member {
            out.push(prefix.to_owned());
        }
        for (element, child) in &self.children {
            child.collect_paths(&format!("{prefix}{}", readable(element)), out);
        }
    }
}

pub(super) fn readable(element: &str) -> String {
    match element.split_at_checked(2) {
        Some(("f:", name)) => format!(".{name}"),
        Some(("v:", value)) => format!("[={value}]"),
        Some(("k:", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", pairs.join(","))
        }
        _ => format!("[{element}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_survive_their_written_form() {
        let mut set = FieldSet::default();
        set.insert(&["f:metadata", "f:labels"]);
        set.insert(&["f:metadata", "f:labels", "f:app"]);
        set.insert(&["f:spec", "f:containers", "k:{\"name\":\"web\"}", "f:image"]);
        assert_eq!(FieldSet::from_json(&set.to_json()), set);
        assert_eq!(
            set.paths(),
            [".metadata.labels", ".metadata.labels.app", ".spec.containers[name=\"web\"].image"]
        );
    }

    #[test]
    fn difference_takes_members_not_subtrees() {
        let mut whole = FieldSet::default();
        whole.insert(&["f:a"]);
        whole.insert(&["f:a", "f:b"]);
        let mut parent = FieldSet::default();
        parent.insert(&["f:a"]);
        assert_eq!(whole.difference(&parent).paths(), [".a.b"]);
        assert_eq!(whole.intersection(&parent).paths(), [".a"]);
    }
}

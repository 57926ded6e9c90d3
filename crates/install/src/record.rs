//! What is on record of an installation in its cluster: the version, the values and the objects.

use crate::NAMESPACE;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// The ConfigMap with the record, in Portolan's namespace.
pub const RECORD: &str = portolan_control::names::INSTALL_RECORD;

/// Which object it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// Its group and version, as in a manifest.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if its kind has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Identity {
    /// The identity of an object.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            api_version: text(&object["apiVersion"]).unwrap_or_default(),
            kind: text(&object["kind"]).unwrap_or_default(),
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]).unwrap_or_default(),
        }
    }

    /// Whether it holds other things: it is deleted only with all of them.
    #[must_use]
    pub fn is_container(&self) -> bool {
        ["Namespace", "CustomResourceDefinition"].contains(&self.kind.as_str())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{} {namespace}/{}", self.kind, self.name),
            None => write!(formatter, "{} {}", self.kind, self.name),
        }
    }
}

/// An object of an installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Which one.
    #[serde(flatten)]
    pub object: Identity,
    /// Whether it was there before Portolan was installed.
    #[serde(default)]
    pub existed: bool,
}

/// How far an installation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Objects are being applied or deleted; the same command again goes on from there.
    Changing,
    /// Everything is as on record.
    Installed,
}

/// What is on record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The version of Portolan.
    pub version: String,
    /// How far it is.
    pub phase: Phase,
    /// The values that differ from the defaults.
    pub values: Value,
    /// The objects, in the order in which they are applied.
    pub objects: Vec<Entry>,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("ConfigMap portolan/portolan-install is no record of an installation: {problem}")]
pub struct RecordError {
    problem: String,
}

impl RecordError {
    fn new(problem: impl fmt::Display) -> Self {
        Self { problem: problem.to_string() }
    }
}

impl Record {
    /// The record of what is about to be applied, after another one; `existing` are the objects that are in the cluster now.
    /// Objects that are no longer wanted stay on it until they are deleted.
    #[must_use]
    pub fn begin(
        before: Option<&Self>,
        version: &str,
        values: &Value,
        objects: &[Value],
        existing: &BTreeSet<Identity>,
    ) -> Self {
        let known = |object: &Identity| {
            before.and_then(|record| record.objects.iter().find(|each| each.object == *object))
        };
        let mut entries: Vec<Entry> = objects
            .iter()
            .map(Identity::of)
            .map(|object| match known(&object) {
                Some(entry) => entry.clone(),
                None => Entry { existed: existing.contains(&object), object },
            })
            .collect();
        let surplus = before.iter().flat_map(|record| &record.objects);
        let surplus: Vec<Entry> = surplus
            .filter(|each| !entries.iter().any(|entry| entry.object == each.object))
            .cloned()
            .collect();
        entries.extend(surplus);
        Self { version: version.to_owned(), phase: Phase::Changing, values: values.clone(), objects: entries }
    }

    /// The entries of objects that are no longer wanted and are Portolan's to delete. Definitions stay, since all objects of
    /// their kinds would go with them.
    #[must_use]
    pub fn surplus(&self, wanted: &[Value]) -> Vec<Identity> {
        let wanted: BTreeSet<Identity> = wanted.iter().map(Identity::of).collect();
        let entries = self.objects.iter().filter(|entry| !entry.existed && !entry.object.is_container());
        entries.map(|entry| entry.object.clone()).filter(|object| !wanted.contains(object)).collect()
    }

    /// The record when everything is as wanted.
    #[must_use]
    pub fn done(mut self, wanted: &[Value]) -> Self {
        let gone = self.surplus(wanted);
        self.objects.retain(|entry| !gone.contains(&entry.object));
        self.phase = Phase::Installed;
        self
    }

    /// The ConfigMap that holds it.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn to_config_map(&self) -> Result<Value, RecordError> {
        let text = serde_json::to_string(self).map_err(RecordError::new)?;
        let labels = json!({"app.kubernetes.io/part-of": "portolan"});
        Ok(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": RECORD, "namespace": NAMESPACE, "labels": labels},
            "data": {"version": self.version, "record": text},
        }))
    }

    /// The record out of its ConfigMap.
    ///
    /// # Errors
    /// Somebody wrote something else into it.
    pub fn from_config_map(object: &Value) -> Result<Self, RecordError> {
        let text =
            object["data"]["record"].as_str().ok_or_else(|| RecordError::new("it has no key record"))?;
        serde_json::from_str(text).map_err(RecordError::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
    }

    #[test]
    fn what_was_there_before_is_known_also_after_an_interruption() {
        let wanted = [object("Namespace", "portolan"), object("Secret", "a"), object("Secret", "b")];
        let before_all = BTreeSet::from([Identity::of(&wanted[0])]);
        let begun = Record::begin(None, "0.1.0", &json!({}), &wanted, &before_all);
        // Interrupted: the next run finds what the first one made, and must not take it for somebody else's.
        let everything = wanted.iter().map(Identity::of).collect();
        let again = Record::begin(Some(&begun), "0.1.0", &json!({}), &wanted, &everything);
        assert_eq!(again, begun);
        let existed: Vec<bool> = again.objects.iter().map(|entry| entry.existed).collect();
        assert_eq!(existed, [true, false, false]);
    }

    #[test]
    fn what_is_no_longer_wanted_is_deleted_unless_others_made_it_or_are_in_it() {
        let old = [
            object("Namespace", "portolan"),
            object("Secret", "mine"),
            object("Secret", "theirs"),
            object("CustomResourceDefinition", "old"),
        ];
        let theirs = BTreeSet::from([Identity::of(&old[2])]);
        let record = Record::begin(None, "0.1.0", &json!({}), &old, &theirs).done(&old);
        assert_eq!(record.phase, Phase::Installed);
        let new = [object("Namespace", "portolan"), object("Secret", "new")];
        let next = Record::begin(Some(&record), "0.2.0", &json!({}), &new, &BTreeSet::new());
        assert_eq!(next.surplus(&new), [Identity::of(&old[1])]);
        let names = |record: &Record| -> Vec<String> {
            record.objects.iter().map(|entry| entry.object.name.clone()).collect()
        };
        assert_eq!(names(&next), ["portolan", "new", "mine", "theirs", "old"]);
        assert_eq!(names(&next.done(&new)), ["portolan", "new", "theirs", "old"]);
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let wanted = [object("Namespace", "portolan")];
        let record = Record::begin(None, "0.1.0", &json!({"a": 1}), &wanted, &BTreeSet::new());
        let written = record.to_config_map().unwrap();
        assert_eq!(Record::from_config_map(&written).unwrap(), record);
        let error = Record::from_config_map(&object("ConfigMap", RECORD)).unwrap_err().to_string();
        assert!(error.contains("portolan/portolan-install") && error.contains("no key record"), "{error}");
    }
}

//! The form in which objects are answered: whole, their metadata alone, or as a table.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::registry::Resource;
use crate::store::Stored;
use crate::table::{self, Include};
use crate::verbs::{Page, present, shown};

/// A form of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata,
    Table(Include),
}

impl Form {
    /// The first form of an `Accept` header that is known here.
    pub(super) fn of(accept: &str, include: Option<&str>) -> Self {
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            if !matches!(parts.next(), Some("application/json" | "*/*" | "application/*")) {
                continue;
            }
            let asked = parts.find_map(|part| part.strip_prefix("as="));
            match asked {
                None => return Self::Whole,
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => return Self::Metadata,
                Some("Table") => {
                    return Self::Table(match include {
                        Some("None") => Include::Nothing,
                        Some("Object") => Include::Object,
                        _ => Include::Metadata,
                    });
                }
                Some(_) => {}
            }
        }
        Self::Whole
    }

    /// One object of the store.
    pub(crate) fn one(self, row: &Resource, object: &Stored, headers: bool, now: Timestamp) -> Bytes {
        match self {
            Form::Whole => present(row, object),
            _ => self.value(row, Arc::unwrap_or_clone(shown(row, object)), headers, now),
        }
    }

    /// One object that is not (any longer) in the store.
    pub(crate) fn value(self, row: &Resource, value: Value, headers: bool, now: Timestamp) -> Bytes {
        let shown = match self {
            Form::Whole => value,
            Form::Metadata => table::partial(&value),
            Form::Table(include) => {
                let version = value["metadata"]["resourceVersion"].clone();
                let mut out = table::table(row, &[value], include, headers, now);
                out["metadata"]["resourceVersion"] = version;
                out
            }
        };
        serde_json::to_vec(&shown).unwrap_or_default().into()
    }

    /// A page of a list.
    pub(super) fn page(self, row: &Resource, page: &Page, now: Timestamp) -> Bytes {
        let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
        match &page.next {
            Some(next) => metadata["continue"] = json!(next),
            // Lists of custom resources say that there is no more.
            None if row.custom && !matches!(self, Form::Table(_)) => metadata["continue"] = json!(""),
            None => {}
        }
        if let Some(remaining) = page.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        if let Form::Table(include) = self {
            let objects: Vec<Value> =
                page.items.iter().map(|item| Arc::unwrap_or_clone(shown(row, item))).collect();
            let mut out = table::table(row, &objects, include, true, now);
            out["metadata"] = metadata;
            return serde_json::to_vec(&out).unwrap_or_default().into();
        }
        let (kind, version) = match self {
            Form::Metadata => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
            _ => (row.kind.clone(), row.api_version()),
        };
        let size: usize = page.items.iter().map(|item| item.bytes.len() + 1).sum();
        let mut out = BytesMut::with_capacity(size + 256);
        let head = format!(
            "{{\"kind\":\"{kind}List\",\"apiVersion\":\"{version}\",\"metadata\":{metadata},\"items\":["
        );
        out.put_slice(head.as_bytes());
        for (index, item) in page.items.iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            let bytes = self.one(row, item, false, now);
            if self == Form::Whole && !row.custom {
                put_untyped(&mut out, row, &bytes);
            } else {
                out.put_slice(&bytes);
            }
        }
        out.put_slice(b"]}");
        out.freeze()
    }
}

/// An item of a built-in kind's list does not say its kind and version again.
///
/// Objects are encoded with their fields in order, so that both can be cut out; where that is not certain, the object is
/// encoded anew.
fn put_untyped(out: &mut BytesMut, row: &Resource, bytes: &[u8]) {
    let head = format!("{{\"apiVersion\":\"{}\",", row.api_version());
    let kind = format!("\"kind\":\"{}\",", row.kind);
    let needle = format!("{kind}\"metadata\":{{");
    let certain = !matches!(row.kind.as_str(), "Event" | "ControllerRevision");
    let cut = bytes.strip_prefix(head.as_bytes()).filter(|_| certain).and_then(|rest| {
        let at = rest.windows(needle.len()).position(|window| window == needle.as_bytes())?;
        Some((&rest[..at], &rest[at + kind.len()..]))
    });
    if let Some((before, after)) = cut {
        out.put_u8(b'{');
        out.put_slice(before);
        out.put_slice(after);
        return;
    }
    let mut value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    out.put_slice(&serde_json::to_vec(&value).unwrap_or_default());
}
